//! Atomic operations on a segment's words: of which types, which operations, and how the processor does them.
//!
//! Types and operations are those of the specification's atomic domains, with its numbers. A value is handed about as its bits, in the
//! low-order bytes of a word.

use bitflags::bitflags;
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// What a word holds: the specification's `GEX_DT_*`, by the number of its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `GEX_DT_I32`.
    I32 = 0,
    /// `GEX_DT_U32`.
    U32 = 1,
    /// `GEX_DT_I64`.
    I64 = 2,
    /// `GEX_DT_U64`.
    U64 = 3,
    /// `GEX_DT_FLT`.
    F32 = 4,
    /// `GEX_DT_DBL`.
    F64 = 5,
}

impl Type {
    /// All of them, by number.
    pub const ALL: [Self; 6] = [Self::I32, Self::U32, Self::I64, Self::U64, Self::F32, Self::F64];

    /// The one with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Bytes of such a word: 4 or 8. It lies at a multiple of them.
    #[inline]
    pub const fn width(self) -> usize {
        match self {
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point number.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The operations that make sense on such words: all, but bits are an integer's.
    pub const fn operations(self) -> Ops {
        if self.is_float() { Ops::all().difference(Ops::BITWISE) } else { Ops::all() }
    }

    /// Its bits alone.
    fn cut(self, bits: u64) -> u64 {
        if self.width() == 4 { bits & u64::from(u32::MAX) } else { bits }
    }
}

bitflags! {
    /// A set of operations: the specification's `GEX_OP_*`. Of most there are two, of which one brings back what the word was.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Ops: u32 {
        /// The bits that the operand has too.
        const AND = 1;
        /// The bits that either has.
        const OR = 1 << 1;
        /// The bits that one of them has.
        const XOR = 1 << 2;
        /// The sum.
        const ADD = 1 << 3;
        /// The difference.
        const SUB = 1 << 4;
        /// The product.
        const MULT = 1 << 5;
        /// The smaller.
        const MIN = 1 << 6;
        /// The greater.
        const MAX = 1 << 7;
        /// One more.
        const INC = 1 << 8;
        /// One less.
        const DEC = 1 << 9;
        /// The operand.
        const SET = 1 << 10;
        /// The second operand, if the word's bits are those of the first.
        const CAS = 1 << 11;
        /// [`AND`](Self::AND), fetching.
        const FAND = 1 << 15;
        /// [`OR`](Self::OR), fetching.
        const FOR = 1 << 16;
        /// [`XOR`](Self::XOR), fetching.
        const FXOR = 1 << 17;
        /// [`ADD`](Self::ADD), fetching.
        const FADD = 1 << 18;
        /// [`SUB`](Self::SUB), fetching.
        const FSUB = 1 << 19;
        /// [`MULT`](Self::MULT), fetching.
        const FMULT = 1 << 20;
        /// [`MIN`](Self::MIN), fetching.
        const FMIN = 1 << 21;
        /// [`MAX`](Self::MAX), fetching.
        const FMAX = 1 << 22;
        /// [`INC`](Self::INC), fetching.
        const FINC = 1 << 23;
        /// [`DEC`](Self::DEC), fetching.
        const FDEC = 1 << 24;
        /// [`SET`](Self::SET), fetching.
        const SWAP = 1 << 25;
        /// [`CAS`](Self::CAS), fetching.
        const FCAS = 1 << 26;
        /// The word as it is.
        const GET = 1 << 27;
    }
}

impl Ops {
    /// Those on bits.
    pub const BITWISE: Self =
        Self::AND.union(Self::OR).union(Self::XOR).union(Self::FAND).union(Self::FOR).union(Self::FXOR);
}

/// How far the bit of a fetching operation is from its partner's.
const FETCHING: u32 = 15;

/// What a word becomes: by the number of the bit of that operation which does not fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The bits that the operand has too.
    And = 0,
    /// The bits that either has.
    Or = 1,
    /// The bits that one of them has.
    Xor = 2,
    /// The sum.
    Add = 3,
    /// The difference.
    Sub = 4,
    /// The product.
    Mult = 5,
    /// The smaller.
    Min = 6,
    /// The greater.
    Max = 7,
    /// One more.
    Inc = 8,
    /// One less.
    Dec = 9,
    /// The operand.
    Set = 10,
    /// The second operand, if the word's bits are those of the first.
    Cas = 11,
    /// What it was: that is always fetched.
    Get = 12,
}

impl Change {
    /// All of them, by number.
    pub const ALL: [Self; 13] = {
        use Change::*;
        [And, Or, Xor, Add, Sub, Mult, Min, Max, Inc, Dec, Set, Cas, Get]
    };
}

/// An atomic operation on a word of some type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// What the word holds.
    pub of: Type,
    /// What it becomes.
    pub change: Change,
    /// Whether what it was is brought back.
    pub fetches: bool,
    /// The bits of the operands; what is not used is not looked at.
    pub operands: [u64; 2],
}

/// Why the processor cannot do an operation here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAWord;

/// Both sizes of words alike.
macro_rules! on_word {
    ($self:ident, $word:ident, $int:ty) => {{
        let Update { of, change, operands: [first, second], .. } = *$self;
        let (first, second) = (first as $int, second as $int);
        let old = match change {
            Change::Get => $word.load(Acquire),
            Change::Set if !$self.fetches => {
                $word.store(first, Release);
                0
            }
            Change::Set => $word.swap(first, AcqRel),
            Change::Cas => {
                $word.compare_exchange(first, second, AcqRel, Acquire).unwrap_or_else(|found| found)
            }
            Change::And => $word.fetch_and(first, AcqRel),
            Change::Or => $word.fetch_or(first, AcqRel),
            Change::Xor => $word.fetch_xor(first, AcqRel),
            Change::Add if !of.is_float() => $word.fetch_add(first, AcqRel),
            Change::Sub if !of.is_float() => $word.fetch_sub(first, AcqRel),
            Change::Inc if !of.is_float() => $word.fetch_add(1, AcqRel),
            Change::Dec if !of.is_float() => $word.fetch_sub(1, AcqRel),
            _ => {
                let becomes = |old: $int| Some($self.apply(old.into()) as $int);
                $word.fetch_update(AcqRel, Acquire, becomes).unwrap_or_else(|found| found)
            }
        };
        u64::from(old)
    }};
}

/// What an integer becomes, as bits: round at the ends of its type.
macro_rules! integer {
    ($self:ident, $number:ty, $bits:ty, $old:ident) => {{
        let (old, by) = ($old as $number, $self.operands[0] as $number);
        let becomes = match $self.change {
            Change::Add => old.wrapping_add(by),
            Change::Sub => old.wrapping_sub(by),
            Change::Mult => old.wrapping_mul(by),
            Change::Min => old.min(by),
            Change::Max => old.max(by),
            Change::Inc => old.wrapping_add(1),
            Change::Dec => old.wrapping_sub(1),
            _ => old,
        };
        becomes as $bits as u64
    }};
}

/// What a floating-point number becomes, as bits.
macro_rules! float {
    ($self:ident, $number:ty, $bits:ty, $old:ident) => {{
        let of = |bits: u64| <$number>::from_bits(bits as $bits);
        let (old, by) = (of($old), of($self.operands[0]));
        let becomes = match $self.change {
            Change::Add => old + by,
            Change::Sub => old - by,
            Change::Mult => old * by,
            Change::Min => old.min(by),
            Change::Max => old.max(by),
            Change::Inc => old + 1.0,
            Change::Dec => old - 1.0,
            _ => old,
        };
        u64::from(becomes.to_bits())
    }};
}

impl Update {
    /// The operation's bit among those of the specification.
    #[inline(always)]
    pub const fn bit(&self) -> Ops {
        let fetches = self.fetches || matches!(self.change, Change::Get);
        let number = self.change as u32 + if fetches { FETCHING } else { 0 };
        Ops::from_bits_truncate(1 << number)
    }

    /// Bytes of the word.
    #[inline]
    pub const fn width(&self) -> usize {
        self.of.width()
    }

    /// The operation of this bit; `None` if it is not exactly one of the specification's, or none on such a type.
    pub fn new(of: Type, bit: Ops, operands: [u64; 2]) -> Option<Self> {
        let number = bit.bits().trailing_zeros();
        let fetches = number >= FETCHING;
        let change =
            *Change::ALL.get(if fetches { number.checked_sub(FETCHING)? } else { number } as usize)?;
        let this = Self { of, change, fetches, operands };
        (this.bit() == bit && of.operations().contains(bit)).then_some(this)
    }

    /// What the word becomes that was this.
    pub fn apply(&self, old: u64) -> u64 {
        let [first, second] = self.operands;
        let becomes = match self.change {
            Change::Get => old,
            Change::Set => first,
            Change::Cas if self.of.cut(old) == self.of.cut(first) => second,
            Change::Cas => old,
            Change::And => old & first,
            Change::Or => old | first,
            Change::Xor => old ^ first,
            Change::Add
            | Change::Sub
            | Change::Mult
            | Change::Min
            | Change::Max
            | Change::Inc
            | Change::Dec => match self.of {
                Type::I32 => integer!(self, i32, u32, old),
                Type::U32 => integer!(self, u32, u32, old),
                Type::I64 => integer!(self, i64, u64, old),
                Type::U64 => integer!(self, u64, u64, old),
                Type::F32 => float!(self, f32, u32, old),
                Type::F64 => float!(self, f64, u64, old),
            },
        };
        self.of.cut(becomes)
    }

    /// Does it to the word at the start of `place`, which others may be using so as well, and says what it was: 0 where it is not fetched
    /// and nobody knows. What was written before it can be seen by whoever sees what it did, and acts after that.
    ///
    /// # Errors
    /// There is no such word: too few bytes, or not at a multiple of its width.
    #[inline(always)]
    pub fn at(&self, place: VolatileSlice<'_>) -> Result<u64, NotAWord> {
        match self.width() {
            4 => place.with_u32(|word| on_word!(self, word, u32)),
            _ => place.with_u64(|word| on_word!(self, word, u64)),
        }
        .ok_or(NotAWord)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
    use proptest::prelude::*;

    /// As many of a word's bytes as such a number has.
    fn place(word: &[AtomicU64; 1], of: Type) -> VolatileSlice<'_> {
        VolatileSlice::from_words(word).slice(0, of.width()).expect("it is inside")
    }

    /// One row for each operation: what 6 becomes by 3, and 3 by 6, on all types.
    #[test]
    fn operations_do_what_they_are_called() {
        type Row = (Ops, Ops, [i32; 2]);
        let rows: [Row; 11] = [
            (Ops::AND, Ops::FAND, [2, 2]),
            (Ops::OR, Ops::FOR, [7, 7]),
            (Ops::XOR, Ops::FXOR, [5, 5]),
            (Ops::ADD, Ops::FADD, [9, 9]),
            (Ops::SUB, Ops::FSUB, [3, -3]),
            (Ops::MULT, Ops::FMULT, [18, 18]),
            (Ops::MIN, Ops::FMIN, [3, 3]),
            (Ops::MAX, Ops::FMAX, [6, 6]),
            (Ops::INC, Ops::FINC, [7, 4]),
            (Ops::DEC, Ops::FDEC, [5, 2]),
            (Ops::SET, Ops::SWAP, [3, 6]),
        ];
        let bits = |of: Type, number: i32| match of {
            Type::I32 | Type::U32 => u64::from(number as u32),
            Type::I64 | Type::U64 => i64::from(number) as u64,
            Type::F32 => u64::from((number as f32).to_bits()),
            Type::F64 => f64::from(number).to_bits(),
        };
        for of in Type::ALL {
            for (plain, fetching, becomes) in rows {
                for ((old, by), becomes) in [(6, 3), (3, 6)].into_iter().zip(becomes) {
                    for bit in [plain, fetching] {
                        let update = Update::new(of, bit, [bits(of, by), 99]);
                        assert_eq!(update.is_some(), of.operations().contains(bit), "{bit:?} of {of:?}");
                        let Some(update) = update else { continue };
                        assert_eq!(update.bit(), bit);
                        let wanted = bits(of, becomes);
                        assert_eq!(update.apply(bits(of, old)), wanted, "{old} {bit:?} {by} as {of:?}");
                        let word = [AtomicU64::new(bits(of, old))];
                        let was = update.at(place(&word, of)).expect("it is one");
                        assert!(was == bits(of, old) || bit == Ops::SET, "{bit:?}");
                        assert_eq!(word[0].load(Relaxed), wanted, "{bit:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn types_are_as_the_specification_numbers_them() {
        let rows = [
            (Type::I32, 4, false, 25),
            (Type::U32, 4, false, 25),
            (Type::I64, 8, false, 25),
            (Type::U64, 8, false, 25),
            (Type::F32, 4, true, 19),
            (Type::F64, 8, true, 19),
        ];
        for (number, (of, width, is_float, operations)) in (0u32..).zip(rows) {
            assert_eq!(Type::from_number(number), Some(of));
            assert_eq!((of.width(), of.is_float()), (width, is_float), "{of:?}");
            assert_eq!(of.operations().bits().count_ones(), operations, "{of:?}");
            assert_eq!(of.operations().intersects(Ops::BITWISE), !is_float, "{of:?}");
        }
        assert_eq!((Type::from_number(6), Type::from_number(u32::MAX)), (None, None));
    }

    #[test]
    fn an_update_has_the_bit_of_its_change() {
        for (change, plain, fetching) in [
            (Change::And, Ops::AND, Ops::FAND),
            (Change::Add, Ops::ADD, Ops::FADD),
            (Change::Set, Ops::SET, Ops::SWAP),
            (Change::Cas, Ops::CAS, Ops::FCAS),
            (Change::Get, Ops::GET, Ops::GET),
        ] {
            for (fetches, bit) in [(false, plain), (true, fetching)] {
                assert_eq!(Update { of: Type::U64, change, fetches, operands: [0; 2] }.bit(), bit);
            }
        }
    }

    /// Integers wrap around, and are compared with their sign if they have one.
    #[test]
    fn integers_keep_to_their_type_at_its_ends() {
        let (least_32, most_32) = (u64::from(i32::MIN as u32), u64::from(i32::MAX as u32));
        let (least_64, most_64) = (i64::MIN as u64, i64::MAX as u64);
        let (all_32, all_64) = (u64::from(u32::MAX), u64::MAX);
        for (of, bit, old, by, becomes) in [
            (Type::I32, Ops::ADD, most_32, 1, least_32),
            (Type::I32, Ops::SUB, least_32, 1, most_32),
            (Type::I32, Ops::INC, all_32, 9, 0),
            (Type::I32, Ops::MULT, all_32, all_32, 1),
            (Type::I32, Ops::MIN, all_32, 1, all_32),
            (Type::I32, Ops::MAX, all_32, 1, 1),
            (Type::U32, Ops::ADD, all_32, 1, 0),
            (Type::U32, Ops::DEC, 0, 9, all_32),
            (Type::U32, Ops::MULT, 1 << 31, 2, 0),
            (Type::U32, Ops::MIN, all_32, 1, 1),
            (Type::U32, Ops::MAX, all_32, 1, all_32),
            (Type::I64, Ops::ADD, most_64, 1, least_64),
            (Type::I64, Ops::SUB, least_64, 1, most_64),
            (Type::I64, Ops::MIN, all_64, 1, all_64),
            (Type::I64, Ops::MAX, all_64, 1, 1),
            (Type::U64, Ops::ADD, all_64, 1, 0),
            (Type::U64, Ops::DEC, 0, 9, all_64),
            (Type::U64, Ops::MULT, 1 << 63, 2, 0),
            (Type::U64, Ops::MIN, all_64, 1, 1),
            (Type::U64, Ops::MAX, all_64, 1, all_64),
        ] {
            let update = Update::new(of, bit, [by, 99]).expect("there is one");
            assert_eq!(update.apply(old), becomes, "{old:#x} {bit:?} {by:#x} as {of:?}");
            let word = [AtomicU64::new(old)];
            let was = update.at(place(&word, of));
            assert_eq!((was, word[0].load(Relaxed)), (Ok(old), becomes), "{bit:?} of {of:?}");
        }
    }

    #[test]
    fn a_comparison_is_of_bits() {
        for (old, [first, second], becomes) in [(5, [5, 9], 9), (5, [6, 9], 5)] {
            for bit in [Ops::CAS, Ops::FCAS] {
                let update = Update::new(Type::U64, bit, [first, second]).expect("there is one");
                assert_eq!(update.apply(old), becomes);
                let word = [AtomicU64::new(old)];
                let was = update.at(place(&word, Type::U64));
                assert_eq!((was, word[0].load(Relaxed)), (Ok(old), becomes));
            }
        }
        let zeros = [0f64.to_bits(), 1f64.to_bits()];
        let update = Update::new(Type::F64, Ops::FCAS, zeros).expect("there is one");
        assert_eq!(update.apply((-0f64).to_bits()), (-0f64).to_bits(), "the zeros are two");
        let narrow = Update::new(Type::U32, Ops::CAS, [1 << 40 | 5, 7]).expect("there is one");
        assert_eq!(narrow.apply(5), 7, "the low-order bits alone");
    }

    #[test]
    fn no_other_bit_is_an_operation() {
        let known = Ops::all();
        assert_eq!(known.bits().count_ones(), 25);
        for number in 0..32 {
            let bit = Ops::from_bits_retain(1 << number);
            assert_eq!(Update::new(Type::U64, bit, [0; 2]).is_some(), known.contains(bit), "bit {number}");
        }
        for none in [Ops::empty(), Ops::ADD | Ops::SUB, Ops::ADD | Ops::FADD] {
            assert_eq!(Update::new(Type::U64, none, [0; 2]), None);
        }
    }

    #[test]
    fn a_word_lies_at_a_multiple_of_its_width() {
        let words = [const { AtomicU64::new(0) }; 2];
        let bytes = VolatileSlice::from_words(&words);
        for of in Type::ALL {
            let update = Update::new(of, Ops::GET, [0; 2]).expect("there is one");
            for at in 0..=16 {
                let place = bytes.slice(at, 16 - at).expect("it is inside");
                let is_one = at % of.width() == 0 && at + of.width() <= 16;
                assert_eq!(update.at(place).is_ok(), is_one, "{of:?} at {at}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 4096 }, failure_persistence: None,
            ..ProptestConfig::default() })]
        /// What the processor does at once is what is computed. Miri draws what the language leaves open of floating-point numbers, each time
        /// anew.
        #[test]
        fn the_processor_does_what_is_computed(
            number in 0u32..if cfg!(miri) { 4 } else { 6 }, bit in 0u32..28, old: u64, operands: [u64; 2],
        ) {
            let of = Type::from_number(number).expect("there is one");
            let operands = if bit % 2 == 0 { operands } else { [old, operands[1]] };
            if let Some(update) = Update::new(of, Ops::from_bits_retain(1 << bit), operands) {
                let word = [AtomicU64::new(old)];
                let was = update.at(place(&word, of)).expect("it is a word");
                let now = word[0].load(Relaxed);
                prop_assert!(was == of.cut(old) || !update.fetches);
                prop_assert_eq!(of.cut(now), update.apply(old));
                prop_assert_eq!(now & !of.cut(u64::MAX), old & !of.cut(u64::MAX));
            }
        }
    }
}
