//! What the atomic units compute: both generations of commands, on words of 32 and 64 bits.
//!
//! A command is a number whose bits say which operation it is, on how many bits, whether the old value is brought back, and
//! whether the word is kept in the NIC's cache. Gemini has the first generation; Aries has both.

use crate::chip::Chip;
use gasworks_gni_sys::gni_fma_cmd_type_t;

/// An operation on a word and up to two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum with the first operand.
    Add,
    /// The bits that the first operand has too.
    And,
    /// The bits that either has.
    Or,
    /// The bits that one of them has.
    Xor,
    /// And with the first operand, then exclusive or with the second.
    AndXor,
    /// The first operand.
    Swap,
    /// The second operand, if the word is the first.
    CompareSwap,
    /// The smaller, as integers with a sign.
    Min,
    /// The greater, as integers with a sign.
    Max,
    /// The smaller, as floating-point numbers.
    FloatMin,
    /// The greater, as floating-point numbers.
    FloatMax,
    /// The sum, as floating-point numbers.
    FloatAdd,
}

/// A command, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// What it computes.
    pub operation: Operation,
    /// On 32 bits instead of 64.
    pub half: bool,
    /// Whether the old value is brought back.
    pub fetches: bool,
    /// Whether the word is kept in the NIC's cache.
    pub cached: bool,
    /// Of the second generation: Aries alone has it.
    pub second: bool,
}

/// Bits of a command.
const SECOND: u32 = 0x40;
const SECOND_CACHED: u32 = 0x20;
const FIRST_CACHED: u32 = 0x10;
const NO_FETCH: u32 = 0x100;
const HALF: u32 = 0x200;

/// The operations of the first generation by the lower four bits.
const FIRST: [(u32, Operation); 6] = [
    (8, Operation::Add),
    (9, Operation::And),
    (10, Operation::Or),
    (11, Operation::Xor),
    (12, Operation::AndXor),
    (13, Operation::CompareSwap),
];

/// The operations of the second by the lower five bits on 32 bits; on 64 it is one more.
const LATER: [(u32, Operation); 12] = [
    (0, Operation::And),
    (2, Operation::Or),
    (4, Operation::Xor),
    (6, Operation::Swap),
    (8, Operation::AndXor),
    (10, Operation::CompareSwap),
    (16, Operation::Min),
    (18, Operation::Max),
    (20, Operation::Add),
    (24, Operation::FloatMin),
    (26, Operation::FloatMax),
    (28, Operation::FloatAdd),
];

impl Command {
    /// Takes a command apart; `None` if there is no such command.
    pub fn decode(number: gni_fma_cmd_type_t) -> Option<Self> {
        let fetches = number & NO_FETCH == 0;
        if number & SECOND == 0 {
            let rest = number & !(NO_FETCH | FIRST_CACHED);
            let operation = FIRST.into_iter().find(|(bits, _)| *bits == rest)?.1;
            // A compare that tells nothing is not in the first generation.
            if operation == Operation::CompareSwap && !fetches {
                return None;
            }
            let cached = number & FIRST_CACHED != 0;
            return Some(Self { operation, half: false, fetches, cached, second: false });
        }
        let half = number & HALF != 0;
        let rest = number & !(SECOND | SECOND_CACHED | NO_FETCH | HALF);
        let operation = LATER.into_iter().find(|(bits, _)| bits + u32::from(!half) == rest)?.1;
        Some(Self { operation, half, fetches, cached: number & SECOND_CACHED != 0, second: true })
    }

    /// Its number.
    pub fn encode(&self) -> gni_fma_cmd_type_t {
        let bit = |bit: u32, wanted: bool| if wanted { bit } else { 0 };
        let of = |table: &[(u32, Operation)]| {
            table.iter().find(|(_, operation)| *operation == self.operation).map_or(0, |(bits, _)| *bits)
        };
        let rest = if self.second {
            let cached = bit(SECOND_CACHED, self.cached);
            SECOND | of(&LATER) | u32::from(!self.half) | bit(HALF, self.half) | cached
        } else {
            of(&FIRST) | bit(FIRST_CACHED, self.cached)
        };
        rest | bit(NO_FETCH, !self.fetches)
    }

    /// Whether a chip has it.
    pub fn is_of(&self, chip: Chip) -> bool {
        !self.second || chip == Chip::Aries
    }

    /// Bytes of its word: 4 or 8.
    pub fn width(&self) -> usize {
        if self.half { 4 } else { 8 }
    }

    /// The word after the command. Of 32 bits only the lower of all numbers count.
    pub fn apply(&self, word: u64, first: u64, second: u64) -> u64 {
        if self.half {
            let float = |f: fn(f32, f32) -> f32| {
                f(f32::from_bits(word as u32), f32::from_bits(first as u32)).to_bits()
            };
            let (word, first, second) = (word as u32, first as u32, second as u32);
            return u64::from(match self.operation {
                Operation::Add => word.wrapping_add(first),
                Operation::Min => (word as i32).min(first as i32) as u32,
                Operation::Max => (word as i32).max(first as i32) as u32,
                Operation::FloatMin => float(f32::min),
                Operation::FloatMax => float(f32::max),
                Operation::FloatAdd => float(|a, b| a + b),
                _ => self.bits(word.into(), first.into(), second.into()) as u32,
            });
        }
        let float = |f: fn(f64, f64) -> f64| f(f64::from_bits(word), f64::from_bits(first)).to_bits();
        match self.operation {
            Operation::Add => word.wrapping_add(first),
            Operation::Min => (word as i64).min(first as i64) as u64,
            Operation::Max => (word as i64).max(first as i64) as u64,
            Operation::FloatMin => float(f64::min),
            Operation::FloatMax => float(f64::max),
            Operation::FloatAdd => float(|a, b| a + b),
            _ => self.bits(word, first, second),
        }
    }

    /// The operations that are the same on any number of bits.
    fn bits(&self, word: u64, first: u64, second: u64) -> u64 {
        match self.operation {
            Operation::And => word & first,
            Operation::Or => word | first,
            Operation::Xor => word ^ first,
            Operation::AndXor => word & first ^ second,
            Operation::Swap => first,
            Operation::CompareSwap if word == first => second,
            _ => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_gni_sys::CONSTANTS;

    /// All commands that the interface names.
    fn named() -> impl Iterator<Item = (&'static str, Command)> {
        let named = CONSTANTS.iter().filter(|(name, _)| name.starts_with("GNI_FMA_ATOMIC"));
        named.map(|(name, value)| {
            (*name, Command::decode(*value as u32).unwrap_or_else(|| panic!("{name} is no command")))
        })
    }

    /// Each name says what its bits say.
    #[test]
    fn every_name_says_what_its_bits_say() {
        let mut count = 0;
        for (name, command) in named() {
            let (generation, rest) =
                name.strip_prefix("GNI_FMA_ATOMIC").and_then(|s| s.split_once('_')).expect(name);
            let (what, suffix) = rest.split_once('_').unwrap_or((rest, ""));
            let known = |what: &str| {
                Some(match what {
                    "ADD" | "IADD" => Operation::Add,
                    "AND" => Operation::And,
                    "OR" => Operation::Or,
                    "XOR" => Operation::Xor,
                    "AX" => Operation::AndXor,
                    "SWAP" => Operation::Swap,
                    "CSWAP" => Operation::CompareSwap,
                    "IMIN" => Operation::Min,
                    "IMAX" => Operation::Max,
                    "FPMIN" => Operation::FloatMin,
                    "FPMAX" => Operation::FloatMax,
                    "FPADD" => Operation::FloatAdd,
                    _ => return None,
                })
            };
            let (operation, fetches) = match known(what) {
                Some(operation) => (operation, false),
                None => (what.strip_prefix('F').and_then(known).expect(name), true),
            };
            // The one whose name does not say that it brings back the old value.
            let fetches = fetches || generation.is_empty() && operation == Operation::CompareSwap;
            let wanted = Command {
                operation,
                half: suffix.starts_with('S'),
                fetches,
                cached: suffix.ends_with('C'),
                second: generation == "2",
            };
            assert_eq!(command, wanted, "{name}");
            count += 1;
        }
        assert_eq!(count, 118);
    }

    #[test]
    fn no_other_number_is_a_command() {
        let known: std::collections::BTreeSet<_> =
            named().map(|(_, command)| format!("{command:?}")).collect();
        for number in (0..0x1000).step_by(if cfg!(miri) { 61 } else { 1 }) {
            if let Some(command) = Command::decode(number) {
                assert!(known.contains(&format!("{command:?}")), "{number:#x} is {command:?}");
                assert_eq!(command.encode(), number);
            }
        }
    }

    #[test]
    fn commands_compute() {
        let command = |number| Command::decode(number).expect("a command");
        let big = |f: f64| f.to_bits();
        let small = |f: f32| u64::from(f.to_bits());
        // The command, the word, the operands, the result.
        let cases = [
            (0x08, u64::MAX, 3, 0, 2),
            (0x09, 0b1100, 0b1010, 0, 0b1000),
            (0x0a, 0b1100, 0b1010, 0, 0b1110),
            (0x0b, 0b1100, 0b1010, 0, 0b0110),
            (0x0c, 0b1100, 0b1010, 0b1001, 0b0001),
            (0x0d, 5, 5, 9, 9),
            (0x0d, 6, 5, 9, 6),
            (0x47, 5, 7, 0, 7),
            (0x51, 1, u64::MAX, 0, u64::MAX),
            (0x53, 1, u64::MAX, 0, 1),
            (0x55, 7, u64::MAX, 0, 6),
            (0x254, 7 | 1 << 40, 0xffff_ffff, 0, 6),
            (0x250, 1, 0xffff_ffff, 0, 0xffff_ffff),
            (0x24a, 5 | 1 << 40, 5, 9 | 1 << 40, 9),
            (0x5d, big(1.5), big(2.0), 0, big(3.5)),
            (0x59, big(1.5), big(-2.0), 0, big(-2.0)),
            (0x5b, big(1.5), big(-2.0), 0, big(1.5)),
            (0x25c, small(1.5), small(2.0), 0, small(3.5)),
            (0x258, small(1.5), small(-2.0), 0, small(-2.0)),
            (0x25a, small(1.5), small(-2.0), 0, small(1.5)),
        ];
        for (number, word, first, second, result) in cases {
            assert_eq!(command(number).apply(word, first, second), result, "{number:#x} on {word:#x}");
        }
    }

    #[test]
    fn gemini_has_the_first_generation_alone() {
        for (name, command) in named() {
            assert!(command.is_of(Chip::Aries), "{name}");
            assert_eq!(command.is_of(Chip::Gemini), !name.starts_with("GNI_FMA_ATOMIC2"), "{name}");
        }
    }
}
