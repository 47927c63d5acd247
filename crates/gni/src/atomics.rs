//! Which commands of the NIC's atomic unit do an operation.
//!
//! Gemini has six operations on words of 64 bits; with one of them, and-then-exclusive-or, a word is set, too. Aries has those of its second
//! generation: on 32 bits as well, the smaller and the greater of integers with a sign, and floating-point numbers. Neither multiplies.
//! The processor's own operations do not mix with these, whatever the word.

use crate::domain::{Chip, Command};
use gasworks_gni_sys::*;
use gasworks_memory::atomic::{Change, Ops, Type, Update};
use gasworks_rdma::Atomics;

/// Makes a command that brings back what the word was into one that does not.
const PLAIN: gni_fma_cmd_type_t = 0x100;
/// Of the second generation: what commands on 32 bits have, and what those on 64 have.
const NARROW: gni_fma_cmd_type_t = 0x200;
const WIDE: gni_fma_cmd_type_t = 1;

/// All that a chip's NIC does.
pub(crate) fn of(chip: Chip) -> Atomics {
    let on = |of: Type| {
        let has = |bit: &Ops| Update::new(of, *bit, [0; 2]).is_some_and(|u| command(chip, &u).is_some());
        Ops::all().iter().filter(has).collect()
    };
    Atomics { of: Type::ALL.map(on), mixes: false }
}

/// What does this operation; `None` if nothing does.
pub(crate) fn command(chip: Chip, update: &Update) -> Option<Command> {
    match chip {
        Chip::Gemini => first_generation(update),
        Chip::Aries => second_generation(update),
    }
}

fn first_generation(update: &Update) -> Option<Command> {
    let &Update { of, change, fetches, operands: [first, second] } = update;
    let (number, operands) = match change {
        _ if update.width() != 8 => return None,
        // With no bit, then those of the operand alone.
        Change::Set => (GNI_FMA_ATOMIC_FAX, [0, first]),
        // It brings back what the word was, wanted or not.
        Change::Cas => return Some(Command { number: GNI_FMA_ATOMIC_CSWAP, operands: [first, second] }),
        Change::Get => (GNI_FMA_ATOMIC_FOR, [0, 0]),
        _ if of.is_float() => return None,
        Change::And => (GNI_FMA_ATOMIC_FAND, [first, 0]),
        Change::Or => (GNI_FMA_ATOMIC_FOR, [first, 0]),
        Change::Xor => (GNI_FMA_ATOMIC_FXOR, [first, 0]),
        _ => (GNI_FMA_ATOMIC_FADD, [summand(update)?, 0]),
    };
    Some(Command { number: if fetches { number } else { number | PLAIN }, operands })
}

fn second_generation(update: &Update) -> Option<Command> {
    let &Update { of, change, fetches, operands: [first, second] } = update;
    let (number, operands) = match change {
        Change::And => (GNI_FMA_ATOMIC2_FAND, [first, 0]),
        Change::Or => (GNI_FMA_ATOMIC2_FOR, [first, 0]),
        Change::Xor => (GNI_FMA_ATOMIC2_FXOR, [first, 0]),
        Change::Set => (GNI_FMA_ATOMIC2_FSWAP, [first, 0]),
        Change::Cas => (GNI_FMA_ATOMIC2_FCSWAP, [first, second]),
        // No bit more, of whatever the word holds.
        Change::Get => (GNI_FMA_ATOMIC2_FOR, [0, 0]),
        Change::Min if of.is_float() => (GNI_FMA_ATOMIC2_FFPMIN, [first, 0]),
        Change::Max if of.is_float() => (GNI_FMA_ATOMIC2_FFPMAX, [first, 0]),
        // It takes all integers for such as have a sign.
        Change::Min | Change::Max if matches!(of, Type::U32 | Type::U64) => return None,
        Change::Min => (GNI_FMA_ATOMIC2_FIMIN, [first, 0]),
        Change::Max => (GNI_FMA_ATOMIC2_FIMAX, [first, 0]),
        _ if of.is_float() => (GNI_FMA_ATOMIC2_FFPADD, [summand(update)?, 0]),
        _ => (GNI_FMA_ATOMIC2_FIADD, [summand(update)?, 0]),
    };
    let number = if fetches { number } else { number | PLAIN };
    let number = if update.width() == 4 { number & !WIDE | NARROW } else { number };
    Some(Command { number, operands })
}

/// What is added where an operation is a sum; `None` if it is none.
fn summand(update: &Update) -> Option<u64> {
    let by = update.operands[0];
    let (one, negated) = match update.of {
        Type::F32 => (1f32.to_bits().into(), (-f32::from_bits(by as u32)).to_bits().into()),
        Type::F64 => (1f64.to_bits(), (-f64::from_bits(by)).to_bits()),
        _ => (1, by.wrapping_neg()),
    };
    match update.change {
        Change::Add => Some(by),
        Change::Sub => Some(negated),
        Change::Inc => Some(one),
        Change::Dec => Some(match update.of {
            Type::F32 => (-1f32).to_bits().into(),
            Type::F64 => (-1f64).to_bits(),
            _ => u64::MAX,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(chip: Chip, of: Type, bit: Ops) -> Option<gni_fma_cmd_type_t> {
        command(chip, &Update::new(of, bit, [5, 6])?).map(|command| command.number)
    }

    #[test]
    fn commands_are_those_of_the_header() {
        use {Chip::*, Type::*};
        let rows = [
            (Gemini, U64, Ops::ADD, GNI_FMA_ATOMIC_ADD),
            (Gemini, I64, Ops::FDEC, GNI_FMA_ATOMIC_FADD),
            (Gemini, I64, Ops::AND, GNI_FMA_ATOMIC_AND),
            (Gemini, I64, Ops::FXOR, GNI_FMA_ATOMIC_FXOR),
            (Gemini, F64, Ops::SET, GNI_FMA_ATOMIC_AX),
            (Gemini, U64, Ops::SWAP, GNI_FMA_ATOMIC_FAX),
            (Gemini, U64, Ops::CAS, GNI_FMA_ATOMIC_CSWAP),
            (Aries, U64, Ops::ADD, GNI_FMA_ATOMIC2_IADD),
            (Aries, I32, Ops::ADD, GNI_FMA_ATOMIC2_IADD_S),
            (Aries, I32, Ops::FSUB, GNI_FMA_ATOMIC2_FIADD_S),
            (Aries, U32, Ops::AND, GNI_FMA_ATOMIC2_AND_S),
            (Aries, U32, Ops::FOR, GNI_FMA_ATOMIC2_FOR_S),
            (Aries, U64, Ops::XOR, GNI_FMA_ATOMIC2_XOR),
            (Aries, F32, Ops::SET, GNI_FMA_ATOMIC2_SWAP_S),
            (Aries, F64, Ops::SWAP, GNI_FMA_ATOMIC2_FSWAP),
            (Aries, F64, Ops::CAS, GNI_FMA_ATOMIC2_CSWAP),
            (Aries, U32, Ops::CAS, GNI_FMA_ATOMIC2_CSWAP_S),
            (Aries, U32, Ops::FCAS, GNI_FMA_ATOMIC2_FCSWAP_S),
            (Aries, I64, Ops::MIN, GNI_FMA_ATOMIC2_IMIN),
            (Aries, I32, Ops::FMAX, GNI_FMA_ATOMIC2_FIMAX_S),
            (Aries, F64, Ops::FMIN, GNI_FMA_ATOMIC2_FFPMIN),
            (Aries, F32, Ops::MAX, GNI_FMA_ATOMIC2_FPMAX_S),
            (Aries, F32, Ops::INC, GNI_FMA_ATOMIC2_FPADD_S),
            (Aries, F64, Ops::FADD, GNI_FMA_ATOMIC2_FFPADD),
        ];
        for (chip, of, bit, wanted) in rows {
            assert_eq!(number(chip, of, bit), Some(wanted), "{bit:?} on {of:?}, {chip:?}");
        }
    }

    #[test]
    fn what_no_command_does_is_not_offered() {
        let (gemini, aries) = (super::of(Chip::Gemini), super::of(Chip::Aries));
        let arithmetic = Ops::MULT | Ops::FMULT | Ops::MIN | Ops::FMIN | Ops::MAX | Ops::FMAX;
        for of in [Type::I64, Type::U64] {
            assert_eq!(gemini.on(of), Ops::all() - arithmetic);
        }
        for of in [Type::I32, Type::U32, Type::F32] {
            assert_eq!(gemini.on(of), Ops::empty(), "Gemini has 64 bits alone");
        }
        assert_eq!(gemini.on(Type::F64), Ops::SET | Ops::SWAP | Ops::CAS | Ops::FCAS | Ops::GET);
        let product = Ops::MULT | Ops::FMULT;
        for of in [Type::I32, Type::I64] {
            assert_eq!(aries.on(of), Ops::all() - product);
        }
        for of in [Type::U32, Type::U64] {
            assert_eq!(aries.on(of), Ops::all() - arithmetic);
        }
        for of in [Type::F32, Type::F64] {
            assert_eq!(aries.on(of), Ops::all() - Ops::BITWISE - product);
        }
        assert!(!gemini.mixes && !aries.mixes);
    }
}
