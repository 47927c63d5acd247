//! How numbers are combined.

use super::Combine;
use gasworks_core::WordOp;
use gasworks_memory::atomic::{Ops, Type};

/// Combines numbers of a type by an operation: the specification's `GEX_OP_*` that are for reductions.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    of: Type,
    combine: fn(&mut [u8], &[u8]),
    word: Option<WordOp>,
}

/// Combines numbers one by one.
fn each<T: bytemuck::Pod>(before: &mut [u8], after: &[u8], combine: impl Fn(T, T) -> T) {
    let after = bytemuck::cast_slice::<u8, T>(after);
    for (before, &after) in bytemuck::cast_slice_mut::<u8, T>(before).iter_mut().zip(after) {
        *before = combine(*before, after);
    }
}

macro_rules! integer {
    ($op:expr, $t:ty) => {
        match $op {
            Ops::AND => Some((|a, b| each::<$t>(a, b, |a, b| a & b), Some(WordOp::And))),
            Ops::OR => Some((|a, b| each::<$t>(a, b, |a, b| a | b), Some(WordOp::Or))),
            Ops::XOR => Some((|a, b| each::<$t>(a, b, |a, b| a ^ b), Some(WordOp::Xor))),
            Ops::ADD => Some((|a, b| each::<$t>(a, b, <$t>::wrapping_add), Some(WordOp::Add))),
            Ops::MULT => Some((|a, b| each::<$t>(a, b, <$t>::wrapping_mul), None)),
            Ops::MIN => Some((|a, b| each::<$t>(a, b, <$t>::min), None)),
            Ops::MAX => Some((|a, b| each::<$t>(a, b, <$t>::max), None)),
            _ => None,
        }
    };
}

macro_rules! float {
    ($op:expr, $t:ty) => {
        match $op {
            Ops::ADD => Some((|a, b| each::<$t>(a, b, |a, b| a + b), None)),
            Ops::MULT => Some((|a, b| each::<$t>(a, b, |a, b| a * b), None)),
            Ops::MIN => Some((|a, b| each::<$t>(a, b, <$t>::min), None)),
            Ops::MAX => Some((|a, b| each::<$t>(a, b, <$t>::max), None)),
            _ => None,
        }
    };
}

/// A function that combines numbers, and what a network may have that does the same to words.
type Found = Option<(fn(&mut [u8], &[u8]), Option<WordOp>)>;

impl Numbers {
    /// Of this type, by this one operation: bits, sum and product modulo 2 to the number of bits, the least, the largest; `None` if the type does not have it, or it is
    /// none for reductions.
    pub fn new(of: Type, op: Ops) -> Option<Self> {
        let found: Found = match of {
            Type::I32 => integer!(op, i32),
            Type::U32 => integer!(op, u32),
            Type::I64 => integer!(op, i64),
            Type::U64 => integer!(op, u64),
            Type::F32 => float!(op, f32),
            Type::F64 => float!(op, f64),
        };
        found.map(|(combine, word)| Self { of, combine, word })
    }

    /// The bits that any word has.
    pub const OR: Self = Self {
        of: Type::U64,
        combine: |before, after| each::<u64>(before, after, |a, b| a | b),
        word: Some(WordOp::Or),
    };
}

impl Combine for Numbers {
    fn element(&self) -> usize {
        self.of.width()
    }

    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        (self.combine)(before, after);
    }

    fn commutes(&self) -> bool {
        true
    }

    fn word_op(&self) -> Option<WordOp> {
        self.word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_combined_as_their_types_have_it() {
        let of = |of, op, a: u64, b: u64| {
            let mut combined = [a];
            let mut numbers = Numbers::new(of, op).expect("it has this");
            assert_eq!((numbers.element(), numbers.commutes()), (of.width(), true));
            numbers.combine(bytemuck::bytes_of_mut(&mut combined), bytemuck::bytes_of_mut(&mut [b]));
            combined[0]
        };
        assert_eq!(of(Type::U64, Ops::ADD, u64::MAX, 3), 2);
        assert_eq!(of(Type::I64, Ops::MIN, u64::MAX, 3), u64::MAX, "-1 is less");
        assert_eq!(of(Type::U64, Ops::MAX, u64::MAX, 3), u64::MAX);
        assert_eq!(of(Type::U32, Ops::ADD, 1 << 32 | 0xFFFF_FFFF, 2 << 32 | 1), 3 << 32);
        assert_eq!(of(Type::F64, Ops::MULT, 1.5f64.to_bits(), 4f64.to_bits()), 6f64.to_bits());
        let has = |of, op| Numbers::new(of, op).is_some();
        assert!(
            !has(Type::F32, Ops::AND) && !has(Type::U64, Ops::SET) && !has(Type::U64, Ops::AND | Ops::OR)
        );
    }

    /// What is said to do the same to words does.
    #[test]
    fn words_are_combined_as_numbers_are() {
        for of in Type::ALL {
            for op in [Ops::AND, Ops::OR, Ops::XOR, Ops::ADD, Ops::MULT, Ops::MIN, Ops::MAX] {
                let Some(mut numbers) = Numbers::new(of, op) else { continue };
                let (a, b) = (0x8123_4567_FFFF_FFFFu64, 0x9FED_CBA9_0000_0003u64);
                let word = match numbers.word_op() {
                    None => continue,
                    Some(WordOp::And) => a & b,
                    Some(WordOp::Or) => a | b,
                    Some(WordOp::Xor) => a ^ b,
                    Some(WordOp::Add) => a.wrapping_add(b),
                };
                let width = of.width();
                let (mut before, mut after) = ([a], [b]);
                numbers.combine(
                    &mut bytemuck::bytes_of_mut(&mut before)[..width],
                    &mut bytemuck::bytes_of_mut(&mut after)[..width],
                );
                assert_eq!(
                    bytemuck::bytes_of(&before)[..width],
                    bytemuck::bytes_of(&[word])[..width],
                    "{of:?} {op:?}"
                );
            }
        }
    }
}
