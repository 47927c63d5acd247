//! What the collective engine computes, and the words that tell of it.
//!
//! - Sums of integers wrap. Sums of floating-point numbers are rounded as the engine is told, and say which exceptions they
//!   met; they cannot underflow. Whatever NaN goes in, the one that comes out is quiet and bare.
//! - The smallest or greatest comes with the index of whoever gave it. Of several that gave the same it is the lowest index,
//!   or the greatest; indices have no sign. Among floating-point numbers a zero with a sign is below one without, and a NaN is
//!   taken only where there are NaNs alone.
//! - Short commands take the lower 32 bits of all numbers, and give them.
//!
//! | field of a result's first word | bits |
//! |---|---|
//! | it is whole | 63 |
//! | status | 48 to 53 |
//! | exceptions | 44 to 47 |
//! | the reduction's name | 0 to 43 |
//!
//! The event of an engine holds the engine's number above 44 bits of the reduction's name. The chip's layouts are not public.

use std::cmp::Ordering;

use gasworks_gni_sys::*;

use crate::entry::Status;

/// Bits of the name of a reduction.
pub const NAME_BITS: u32 = 44;
/// The exceptions that there are.
pub const EXCEPTIONS: u8 =
    (GNI_CE_FPE_OP_INVAL | GNI_CE_FPE_OFLOW | GNI_CE_FPE_UFLOW | GNI_CE_FPE_PRECISION) as u8;
const INVALID: u8 = GNI_CE_FPE_OP_INVAL as u8;
const OVERFLOW: u8 = GNI_CE_FPE_OFLOW as u8;
const INEXACT: u8 = GNI_CE_FPE_PRECISION as u8;

/// Whether a number may name a reduction.
pub fn is_name(id: u64) -> bool {
    id >> NAME_BITS == 0
}

/// How a sum that is no floating-point number is made one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, and of two that are as near to the even one.
    #[default]
    Near,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Towards zero.
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    And,
    Or,
    Xor,
    Add,
    FloatAdd,
    /// Smallest or greatest, with an index.
    Best {
        float: bool,
        greatest: bool,
        /// Of several it is the last.
        last: bool,
    },
}

/// The bits of a command, but for the lowest, which says that it is not short.
const KINDS: [(u8, Kind); 13] = [
    (0x00, Kind::And),
    (0x02, Kind::Or),
    (0x04, Kind::Xor),
    (0x10, Kind::Best { float: false, greatest: false, last: false }),
    (0x12, Kind::Best { float: false, greatest: true, last: false }),
    (0x14, Kind::Add),
    (0x18, Kind::Best { float: true, greatest: false, last: false }),
    (0x1a, Kind::Best { float: true, greatest: true, last: false }),
    (0x1c, Kind::FloatAdd),
    (0x30, Kind::Best { float: false, greatest: false, last: true }),
    (0x32, Kind::Best { float: false, greatest: true, last: true }),
    (0x38, Kind::Best { float: true, greatest: false, last: true }),
    (0x3a, Kind::Best { float: true, greatest: true, last: true }),
];

/// What is done to contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    command: u8,
    /// To both of their numbers.
    two: bool,
}

impl Operation {
    /// The command of that number (`GNI_FMA_CE_*`), on two numbers or one; `None` if there is none.
    pub fn decode(command: gni_ce_cmd_type_t, two: bool) -> Option<Self> {
        let command = u8::try_from(command).ok()?;
        let kind = KINDS.iter().find(|(bits, _)| *bits == command & !1)?.1;
        // Those with an index have two anyway, and clients say so or not.
        Some(Self { command, two: two && !matches!(kind, Kind::Best { .. }) })
    }

    /// The number of the command, and whether it is for two numbers.
    pub fn encode(self) -> (u8, bool) {
        (self.command, self.two)
    }

    fn kind(self) -> Kind {
        let found = KINDS.iter().find(|(bits, _)| *bits == self.command & !1);
        found.map_or(Kind::And, |(_, kind)| *kind)
    }

    fn is_short(self) -> bool {
        self.command & 1 == 0
    }
}

/// What one contributes, or several do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    operation: Operation,
    numbers: [u64; 2],
    exceptions: u8,
}

impl Part {
    /// Numbers for an operation, and the exceptions that were met on the way to them. Bits that the operation does not look
    /// at are gone.
    pub fn new(operation: Operation, numbers: [u64; 2], exceptions: u8) -> Self {
        let bits = if operation.is_short() { u32::MAX.into() } else { u64::MAX };
        let has_second = operation.two || matches!(operation.kind(), Kind::Best { .. });
        let numbers = [numbers[0] & bits, if has_second { numbers[1] & bits } else { 0 }];
        Self { operation, numbers, exceptions: exceptions & EXCEPTIONS }
    }

    /// What is done to them.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The two numbers of a result.
    pub fn numbers(&self) -> [u64; 2] {
        self.numbers
    }

    /// `GNI_CE_FPE_*`.
    pub fn exceptions(&self) -> u8 {
        self.exceptions
    }

    /// Both together.
    ///
    /// # Errors
    /// [`Status::Mismatch`]: they are for different operations.
    pub fn with(self, other: Self, rounding: Rounding) -> Result<Self, Status> {
        if self.operation != other.operation {
            return Err(Status::Mismatch);
        }
        let (operation, short) = (self.operation, self.operation.is_short());
        let mut met = self.exceptions | other.exceptions;
        let numbers = if let Kind::Best { float, greatest, last } = operation.kind() {
            let [ours, theirs] =
                [self.numbers, other.numbers].map(|numbers| Place::of(numbers[0], float, short));
            if ours == Place::Signal || theirs == Place::Signal {
                met |= INVALID;
            }
            let by_index = self.numbers[1].cmp(&other.numbers[1]);
            let by_index = if last { by_index.reverse() } else { by_index };
            let order = match (ours, theirs) {
                (Place::At(a), Place::At(b)) if greatest => b.cmp(&a).then(by_index),
                (Place::At(a), Place::At(b)) => a.cmp(&b).then(by_index),
                (Place::At(_), _) => Ordering::Less,
                (_, Place::At(_)) => Ordering::Greater,
                _ => by_index,
            };
            let [number, index] = if order.is_le() { self.numbers } else { other.numbers };
            let none = !matches!((ours, theirs), (Place::At(_), _) | (_, Place::At(_)));
            let quiet = if short { QUIET32.into() } else { QUIET64 };
            [if none { quiet } else { number }, index]
        } else {
            let mut together = |a: u64, b: u64| match operation.kind() {
                Kind::And => a & b,
                Kind::Or => a | b,
                Kind::Xor => a ^ b,
                Kind::FloatAdd => {
                    let (sum, exceptions) = if short {
                        let (sum, exceptions) = sum32(a as u32, b as u32, rounding);
                        (sum.into(), exceptions)
                    } else {
                        sum64(a, b, rounding)
                    };
                    met |= exceptions;
                    sum
                }
                Kind::Add | Kind::Best { .. } => a.wrapping_add(b),
            };
            let first = together(self.numbers[0], other.numbers[0]);
            [first, if operation.two { together(self.numbers[1], other.numbers[1]) } else { 0 }]
        };
        Ok(Self::new(operation, numbers, met))
    }
}

/// The NaN of all results.
const QUIET32: u32 = 0x7fc0_0000;
const QUIET64: u64 = 0x7ff8 << 48;

/// Where a number stands among others of its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    At(i64),
    /// It is no number.
    Nowhere,
    /// It is no number, and whoever touches it is to be told.
    Signal,
}

impl Place {
    fn of(bits: u64, float: bool, short: bool) -> Self {
        let whole = if short { i64::from(bits as i32) } else { bits as i64 };
        if !float {
            return Self::At(whole);
        }
        let (is_nan, signals) = if short {
            (f32::from_bits(bits as u32).is_nan(), signals32(bits as u32))
        } else {
            (f64::from_bits(bits).is_nan(), signals64(bits))
        };
        match (signals, is_nan) {
            (true, _) => Self::Signal,
            (_, true) => Self::Nowhere,
            // Floating-point numbers are ordered as integers, those with a sign the other way round.
            _ if whole < 0 => Self::At(whole ^ i64::MAX),
            _ => Self::At(whole),
        }
    }
}

macro_rules! floats {
    ($float:ident, $word:ident, $quiet:ident, $signals:ident, $sum:ident) => {
        fn $signals(x: $word) -> bool {
            $float::from_bits(x).is_nan() && x & $quiet != $quiet
        }

        fn $sum(a: $word, b: $word, rounding: Rounding) -> ($word, u8) {
            let signal = $signals(a) || $signals(b);
            let (a, b) = ($float::from_bits(a), $float::from_bits(b));
            let near = a + b;
            if near.is_nan() {
                // Of a NaN, or of infinities that cancel each other.
                let quiet = !signal && (a.is_nan() || b.is_nan());
                return ($quiet, if quiet { 0 } else { INVALID });
            }
            if a.is_infinite() || b.is_infinite() {
                return (near.to_bits(), 0);
            }
            if near.is_infinite() {
                let away = match rounding {
                    Rounding::Near => true,
                    Rounding::Up => near > 0.0,
                    Rounding::Down => near < 0.0,
                    Rounding::Zero => false,
                };
                let sum = if away { near } else { $float::MAX.copysign(near) };
                return (sum.to_bits(), OVERFLOW | INEXACT);
            }
            // What the nearest lacks, which is a number: it comes out exactly where the greater is taken away first.
            let (great, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
            let lack = small - (near - great);
            let sum = match rounding {
                Rounding::Up if lack > 0.0 => near.next_up(),
                Rounding::Down if lack < 0.0 => near.next_down(),
                Rounding::Zero if lack < 0.0 && near > 0.0 => near.next_down(),
                Rounding::Zero if lack > 0.0 && near < 0.0 => near.next_up(),
                // What cancels each other gives a zero with a sign, going down.
                Rounding::Down if near == 0.0 && (a.is_sign_negative() || b.is_sign_negative()) => -0.0,
                _ => near,
            };
            let overflow = if sum.is_infinite() { OVERFLOW } else { 0 };
            (sum.to_bits(), overflow | if lack == 0.0 { 0 } else { INEXACT })
        }
    };
}

floats!(f64, u64, QUIET64, signals64, sum64);
floats!(f32, u32, QUIET32, signals32, sum32);

/// A place in a tree: of which engine, and as which of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The engine, of those of its NIC.
    pub engine: u8,
    /// The child.
    pub child: u8,
}

/// What goes up an edge of a tree, or comes down it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The upper end of the edge.
    pub seat: Seat,
    /// The engine at the lower end, of those of its NIC; `None` for a client.
    pub below: Option<u8>,
    /// The name of the reduction, as it is known below.
    pub id: u64,
    /// What is contributed, or has come of it.
    pub part: Result<Part, Status>,
}

const WHOLE: u32 = 63;
const STATUS: u32 = 48;
const STATUS_BITS: u64 = 0x3f;

/// The first word of a result, which is written last.
pub fn control(id: u64, part: &Result<Part, Status>) -> u64 {
    let (status, exceptions) = match part {
        Ok(part) => (Status::Ok, part.exceptions),
        Err(status) => (*status, 0),
    };
    1 << WHOLE | (status as u64) << STATUS | u64::from(exceptions) << NAME_BITS | id
}

/// Whether a result's first word says that it is whole.
pub fn is_whole(control: u64) -> bool {
    control >> WHOLE == 1
}

/// The number of its status.
pub fn status(control: u64) -> u64 {
    control >> STATUS & STATUS_BITS
}

/// Its exceptions (`GNI_CE_FPE_*`).
pub fn exceptions(control: u64) -> u64 {
    control >> NAME_BITS & u64::from(EXCEPTIONS)
}

/// The name of its reduction.
pub fn name(control: u64) -> u64 {
    control & ((1 << NAME_BITS) - 1)
}

/// As much of an engine's name as there is room for in an event: it tells the engines of a process apart, but for those of more than
/// four domains.
pub fn short_name(name: u32) -> u8 {
    name as u8 & 0xf
}

/// What the event of an engine holds: its short name, and that of the reduction.
pub fn told(engine: u8, id: u64) -> u64 {
    u64::from(engine) << NAME_BITS | id
}

/// The short name of the engine of an event that holds this.
pub fn engine(told: u64) -> u64 {
    told >> NAME_BITS
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use gasworks_gni_sys::CONSTANTS;
    use proptest::prelude::*;

    const ROUNDINGS: [Rounding; 4] = [Rounding::Near, Rounding::Up, Rounding::Down, Rounding::Zero];

    /// All commands that the interface names.
    fn named() -> Vec<(&'static str, u32)> {
        let named = CONSTANTS.iter().filter(|(name, _)| name.starts_with("GNI_FMA_CE_"));
        named.map(|(name, value)| (*name, *value as u32)).collect()
    }

    /// What a command gives, by its name, of numbers that all contribute: the plain way, at once.
    fn model(name: &str, all: &[[u64; 2]]) -> [u64; 2] {
        let what = name.strip_prefix("GNI_FMA_CE_").expect("a command");
        let (what, short) = what.strip_suffix("_S").map_or((what, false), |what| (what, true));
        let cut = |word: u64| if short { word & 0xffff_ffff } else { word };
        let all: Vec<[u64; 2]> = all.iter().map(|both| both.map(cut)).collect();
        let Some((what, last)) = what
            .strip_suffix("_GIDX")
            .map(|what| (what, true))
            .or_else(|| what.strip_suffix("_LIDX").map(|what| (what, false)))
        else {
            return [0, 1].map(|at| {
                let numbers = all.iter().map(|both| both[at]);
                cut(match what {
                    "AND" => numbers.fold(u64::MAX, |a, b| a & b),
                    "OR" => numbers.fold(0, |a, b| a | b),
                    "XOR" => numbers.fold(0, |a, b| a ^ b),
                    "IADD" => numbers.fold(0, u64::wrapping_add),
                    _ => panic!("{what}"),
                })
            });
        };
        let is_nan = |word: u64| match what.starts_with("FP") {
            false => false,
            true if short => f32::from_bits(word as u32).is_nan(),
            true => f64::from_bits(word).is_nan(),
        };
        let below = |a: u64, b: u64| match (what.starts_with("FP"), short) {
            (false, false) => (a as i64) < b as i64,
            (false, true) => (a as i32) < b as i32,
            (true, false) => {
                let (a, b) = (f64::from_bits(a), f64::from_bits(b));
                a < b || a == b && a.is_sign_negative() && b.is_sign_positive()
            }
            (true, true) => {
                let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
                a < b || a == b && a.is_sign_negative() && b.is_sign_positive()
            }
        };
        let beats = |a: u64, b: u64| if what.ends_with("MIN") { below(a, b) } else { below(b, a) };
        let numbers: Vec<_> = all.iter().filter(|both| !is_nan(both[0])).collect();
        if numbers.is_empty() {
            let index = all.iter().map(|both| both[1]);
            let quiet = if short { 0x7fc0_0000 } else { 0x7ff8 << 48 };
            return [quiet, if last { index.max() } else { index.min() }.expect("some")];
        }
        let is_best = |both: &&&[u64; 2]| numbers.iter().all(|other| !beats(other[0], both[0]));
        let best = numbers.iter().filter(is_best);
        let best = if last { best.max_by_key(|both| both[1]) } else { best.min_by_key(|both| both[1]) };
        **best.expect("one")
    }

    fn together(operation: Operation, all: &[[u64; 2]]) -> Part {
        let parts = all.iter().map(|both| Part::new(operation, *both, 0));
        parts.reduce(|a, b| a.with(b, Rounding::Near).expect("the same operation")).expect("some")
    }

    /// Numbers among which there are equal ones, and all kinds of floating-point numbers, of both sizes.
    fn number() -> impl Strategy<Value = u64> {
        let long = [0.0f64, 1.5, f64::MAX, f64::MIN_POSITIVE / 4.0, f64::INFINITY, f64::NAN];
        let short = [0.0f32, 1.5, f32::MAX, f32::MIN_POSITIVE / 4.0, f32::INFINITY, f32::NAN];
        let long = long.into_iter().flat_map(|x| [x, -x]).map(f64::to_bits);
        let short = short.into_iter().flat_map(|x| [x, -x]).map(|x| u64::from(x.to_bits()));
        let signals = [0x7ff0 << 48 | 1, 0xff80_0001];
        let some: Vec<u64> =
            long.chain(short).chain(signals).chain([1, u64::MAX, 1 << 63, 1 << 31]).collect();
        prop_oneof![3 => prop::sample::select(some), 1 => any::<u64>()]
    }

    proptest! {
        #![proptest_config(crate::trials())]
        /// Every command but sums of floating-point numbers, whatever the order.
        #[test]
        fn commands_do_as_the_model(
            all in prop::collection::vec((number(), prop_oneof![0..3u64, any::<u64>()]), 2..6),
            turn: prop::sample::Index,
        ) {
            let mut all: Vec<[u64; 2]> = all.into_iter().map(|(a, b)| [a, b]).collect();
            for (name, command) in named().into_iter().filter(|(name, _)| !name.contains("FPADD")) {
                let operation = Operation::decode(command, true).expect(name);
                let wanted = model(name, &all);
                prop_assert_eq!(together(operation, &all).numbers(), wanted, "{}", name);
                let alone = Operation::decode(command, false).expect(name);
                let second = if name.contains("IDX") { wanted[1] } else { 0 };
                prop_assert_eq!(together(alone, &all).numbers(), [wanted[0], second], "{}", name);
                let by = turn.index(all.len());
                all.rotate_left(by);
            }
        }

        /// Short sums against long ones, which are exact unless the numbers are far apart.
        #[test]
        fn short_sums_are_rounded_as_they_are_told(a in -1e9f32..1e9, b in -1e9f32..1e9) {
            let exact = f64::from(a) + f64::from(b);
            for rounding in ROUNDINGS {
                let (sum, met) = sum32(a.to_bits(), b.to_bits(), rounding);
                let sum = f32::from_bits(sum);
                let wanted = match rounding {
                    Rounding::Near => exact as f32,
                    Rounding::Up | Rounding::Down | Rounding::Zero => {
                        let up = rounding == Rounding::Up || rounding == Rounding::Zero && exact < 0.0;
                        let near = exact as f32;
                        match up {
                            true if f64::from(near) < exact => near.next_up(),
                            false if f64::from(near) > exact => near.next_down(),
                            _ => near,
                        }
                    }
                };
                prop_assert_eq!(sum, wanted, "{} and {}, {:?}", a, b, rounding);
                prop_assert_eq!(met, if f64::from(sum) == exact { 0 } else { INEXACT });
            }
        }

        /// Of numbers of any kind: near is what the processor gives; down is not above it, and up not below.
        #[test]
        fn long_sums_are_rounded_as_they_are_told(a in number(), b in number()) {
            let near = f64::from_bits(a) + f64::from_bits(b);
            let [(to_near, _), (up, _), (down, _), (zero, _)] = ROUNDINGS.map(|rounding| sum64(a, b, rounding));
            if near.is_nan() {
                prop_assert_eq!([to_near, up, down, zero], [QUIET64; 4]);
            } else {
                let [up, down, zero] = [up, down, zero].map(f64::from_bits);
                prop_assert_eq!(to_near, near.to_bits());
                prop_assert!(down <= near && near <= up && (up == down || near == up || near == down));
                prop_assert_eq!(zero, if near < 0.0 { up } else { down });
            }
        }
    }

    #[test]
    fn sums_say_what_they_met() {
        use Rounding::{Down, Near, Up, Zero};
        let (max, inf, min) = (f64::MAX, f64::INFINITY, -f64::MAX);
        let over = OVERFLOW | INEXACT;
        // Two numbers, how, what comes of it, and the exceptions.
        let cases = [
            (1.0, 2.0, Near, 3.0, 0),
            (1.0, 1e-30, Near, 1.0, INEXACT),
            (1.0, 1e-30, Up, 1.0f64.next_up(), INEXACT),
            (1.0, 1e-30, Down, 1.0, INEXACT),
            (1.0, -1e-30, Zero, 1.0f64.next_down(), INEXACT),
            (-1.0, 1e-30, Zero, (-1.0f64).next_up(), INEXACT),
            (1e-30, -1.0, Zero, (-1.0f64).next_up(), INEXACT),
            (max, max, Near, inf, over),
            (max, max, Down, max, over),
            (max, max, Zero, max, over),
            (min, min, Up, min, over),
            (min, min, Down, -inf, over),
            (max, 1.0, Up, inf, over),
            (max, 1.0, Near, max, INEXACT),
            (inf, 1.0, Near, inf, 0),
            (1.0, -1.0, Near, 0.0, 0),
            (1.0, -1.0, Down, -0.0, 0),
            (0.0, 0.0, Down, 0.0, 0),
            (0.0, -0.0, Down, -0.0, 0),
            (-0.0, -0.0, Up, -0.0, 0),
            (f64::MIN_POSITIVE, -f64::MIN_POSITIVE / 2.0, Near, f64::MIN_POSITIVE / 2.0, 0),
        ];
        for (a, b, rounding, sum, met) in cases {
            let got = sum64(f64::to_bits(a), f64::to_bits(b), rounding);
            assert_eq!(got, (f64::to_bits(sum), met), "{a:e} and {b:e}, {rounding:?}");
        }
        let signal = 0x7ff0 << 48 | 1;
        assert_eq!(sum64(inf.to_bits(), (-inf).to_bits(), Near), (QUIET64, INVALID));
        assert_eq!(sum64(signal, 0, Near), (QUIET64, INVALID));
        assert_eq!(sum64(0, 0xfff8 << 48 | 5, Near), (QUIET64, 0));
        assert_eq!(sum32(f32::MAX.to_bits(), f32::MAX.to_bits(), Near), (f32::INFINITY.to_bits(), over));
    }

    #[test]
    fn exceptions_are_kept() {
        let sum = Operation::decode(GNI_FMA_CE_FPADD, true).expect("a command");
        let part = |numbers: [f64; 2], met| Part::new(sum, numbers.map(f64::to_bits), met);
        let with = |a: Part, b| a.with(b, Rounding::Near).expect("the same operation");
        let all = with(part([1.0, 1.0], 4), part([1.0, 1e-30], 0));
        assert_eq!((all.exceptions(), with(part([0.0; 2], 0), all).exceptions()), (4 | INEXACT, 4 | INEXACT));
        let least = Operation::decode(GNI_FMA_CE_FPMIN_LIDX, false).expect("a command");
        let part = |number| Part::new(least, [number, 3], 0);
        let signal = part(0x7ff0 << 48 | 1);
        assert_eq!(with(part(1), signal), Part::new(least, [1, 3], INVALID));
        assert_eq!(with(part(0x7ff8 << 48), part(1)).exceptions(), 0);
        let other = Operation::decode(GNI_FMA_CE_FPMIN_GIDX, false).expect("a command");
        let other = Part::new(other, [1, 3], 0);
        assert_eq!(part(1).with(other, Rounding::Near), Err(Status::Mismatch));
    }

    #[test]
    fn no_other_number_is_a_command() {
        let known: Vec<u32> = named().into_iter().map(|(_, command)| command).collect();
        assert_eq!(known.len(), 26);
        for command in 0..0x200 {
            assert_eq!(Operation::decode(command, true).is_some(), known.contains(&command), "{command:#x}");
        }
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn the_first_word_says_all(id in 0..1u64 << NAME_BITS, met in 0..=EXCEPTIONS, failure in 1..Status::ALL.len()) {
            let sum = Operation::decode(GNI_FMA_CE_IADD, true).expect("a command");
            let word = control(id, &Ok(Part::new(sum, [1, 2], met)));
            prop_assert!(is_whole(word) && !is_whole(id));
            prop_assert_eq!((status(word), exceptions(word), name(word)), (0, met.into(), id));
            let word = control(id, &Err(Status::ALL[failure]));
            prop_assert!(is_whole(word));
            prop_assert_eq!((status(word), exceptions(word), name(word)), (failure as u64, 0, id));
            let word = told(3, id);
            prop_assert_eq!((engine(word), name(word)), (3, id));
        }
    }
}
