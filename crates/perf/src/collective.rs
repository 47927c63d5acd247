//! Collectives of all ranks, one after the other. Every operation moves a number of its own in the first and the last bytes of each part, and every
//! rank looks for it; the bytes between are compared after each block of operations.

use crate::session::{Block, PerfMode, Plan, Session, Who, since};
use anyhow::{Result, ensure};
use gasworks::bytemuck::cast_slice_mut;
use std::time::Instant;

/// What is measured.
#[derive(Clone, Copy)]
enum Kind {
    /// From the first rank, which may be some broadcasts ahead of the others: so the rank that takes longest counts.
    Broadcast,
    /// The maximum of words of 8 bytes.
    ReduceAll,
    AllGather,
    AllToAll,
}

const KINDS: [(&str, Kind); 4] = [
    ("broadcast", Kind::Broadcast),
    ("reduce-all", Kind::ReduceAll),
    ("all-gather", Kind::AllGather),
    ("all-to-all", Kind::AllToAll),
];

/// Bytes of a word of a reduction.
const WORD: usize = size_of::<u64>();

/// The fewest broadcasts of a block: how long it takes until all have the last is no part of what one of many takes.
const BROADCASTS: u64 = 64;

/// Collectives of all ranks, by the bytes that a rank gives to each (`all-to-all`) or to all (the others).
pub fn collective<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let ranks = session.ranks() as usize;
    for bytes in session.sizes(&[8, 1 << 10, 16 << 10, 1 << 20]) {
        let length = bytes as usize;
        // Words, so that those of a reduction are aligned.
        let [mut give, mut get] = [(); 2].map(|()| vec![0u64; (length * ranks).div_ceil(WORD)]);
        for (name, kind) in KINDS.into_iter().filter(|(name, _)| session.wants(name)) {
            if matches!(kind, Kind::ReduceAll) && !length.is_multiple_of(WORD) {
                continue;
            }
            let least = if matches!(kind, Kind::Broadcast) { BROADCASTS } else { 1 };
            let plan = Plan { who: Who::First, single: true, least, ..Plan::new("collective", name, bytes) };
            session.measure(&plan, |block| match kind {
                Kind::Broadcast => broadcast(session, block, &mut cast_slice_mut(&mut give)[..length]),
                Kind::ReduceAll => reduce_all(session, block, &mut give[..length / WORD]),
                Kind::AllGather => {
                    let all = &mut cast_slice_mut(&mut get)[..length * ranks];
                    all_gather(session, block, &mut cast_slice_mut(&mut give)[..length], all)
                }
                Kind::AllToAll => {
                    let [give, get] =
                        [&mut give, &mut get].map(|words| &mut cast_slice_mut(words)[..length * ranks]);
                    all_to_all(session, block, give, get)
                }
            })?;
        }
    }
    Ok(())
}

fn broadcast<M: PerfMode>(session: &Session<'_, M>, block: &mut Block, values: &mut [u8]) -> Result<f64> {
    let (agent, everyone, root) = (&session.agent, session.job.everyone(), session.rank() == 0);
    if root {
        fill(values, block.n)
    } else {
        values.fill(0)
    }
    let took = timed(session, block, |number| {
        if root {
            stamp(values, number);
        }
        everyone.broadcast(agent, 0, values)?;
        Ok(is_stamped(values, number))
    })?;
    ensure!(is_filled(values, block.n), "what the root has did not come whole");
    let mut longest = [took];
    everyone.reduce_all(agent, &mut longest, f64::max)?;
    Ok(longest[0])
}

fn reduce_all<M: PerfMode>(session: &Session<'_, M>, block: &mut Block, values: &mut [u64]) -> Result<f64> {
    let (agent, everyone) = (&session.agent, session.job.everyone());
    let (rank, ranks) = (u64::from(session.rank()), u64::from(session.ranks()));
    // In each place another rank has the greatest, which is odd.
    let even = |at: u64| 2 * (at + block.n);
    for (at, value) in (0..).zip(values.iter_mut()) {
        *value = even(at) + u64::from(at % ranks == rank);
    }
    let (last, n) = (values.len() - 1, block.n);
    let mut next = 0;
    let took = timed(session, block, |number| {
        let own = 2 * number + u64::from(next == rank);
        next = if next + 1 == ranks { 0 } else { next + 1 };
        (values[0], values[last]) = (own, own);
        everyone.reduce_all(agent, values, |a, b| a.max(b))?;
        Ok(values[0] == 2 * number + 1 && values[last] == 2 * number + 1)
    })?;
    let between = values.get(1..last).unwrap_or_default();
    ensure!((1..).zip(between).all(|(at, value)| *value == 2 * (at + n) + 1), "a maximum is another");
    Ok(took)
}

fn all_gather<M: PerfMode>(
    session: &Session<'_, M>,
    block: &mut Block,
    own: &mut [u8],
    all: &mut [u8],
) -> Result<f64> {
    let (agent, everyone, rank) = (&session.agent, session.job.everyone(), u64::from(session.rank()));
    let length = own.len();
    fill(own, rank + block.n);
    all.fill(0);
    let took = timed(session, block, |number| {
        stamp(own, number + rank);
        everyone.all_gather(agent, own, all)?;
        Ok((number..).zip(all.chunks_exact(length)).all(|(number, part)| is_stamped(part, number)))
    })?;
    let whole = (block.n..).zip(all.chunks_exact(length)).all(|(seed, part)| is_filled(part, seed));
    ensure!(whole, "what a rank has did not come whole");
    Ok(took)
}

fn all_to_all<M: PerfMode>(
    session: &Session<'_, M>,
    block: &mut Block,
    to: &mut [u8],
    from: &mut [u8],
) -> Result<f64> {
    let (agent, everyone, rank) = (&session.agent, session.job.everyone(), u64::from(session.rank()));
    let length = to.len() / session.ranks() as usize;
    // What tells one pair's bytes from another's, and from those the other way.
    let pair = |from: u64, to: u64| 3 * from + 5 * to;
    for (other, part) in (0..).zip(to.chunks_exact_mut(length)) {
        fill(part, pair(rank, other) + block.n);
    }
    from.fill(0);
    let took = timed(session, block, |number| {
        for (other, part) in (0..).zip(to.chunks_exact_mut(length)) {
            stamp(part, number + pair(rank, other));
        }
        everyone.all_to_all(agent, to, from)?;
        let mut parts = (0..).zip(from.chunks_exact(length));
        Ok(parts.all(|(other, part)| is_stamped(part, number + pair(other, rank))))
    })?;
    let mut parts = (0..).zip(from.chunks_exact(length));
    let whole = parts.all(|(other, part)| is_filled(part, pair(other, rank) + block.n));
    ensure!(whole, "what a rank has for this one did not come whole");
    Ok(took)
}

/// Times a block of collectives, of which each gets its number and says whether what came is what was due.
fn timed<M: PerfMode>(
    session: &Session<'_, M>,
    block: &mut Block,
    mut one: impl FnMut(u64) -> Result<bool, gasworks::Error>,
) -> Result<f64> {
    // All have laid out what they give.
    session.agent.barrier()?;
    let mut right = true;
    let begin = Instant::now();
    block.begin();
    for number in 0..block.n {
        right &= one(number)?;
        block.done();
    }
    let took = since(begin);
    ensure!(right, "the bytes that came are those of another collective, or of another rank");
    Ok(took)
}

/// Puts a number into the first bytes, and into the last where these are others.
fn stamp(bytes: &mut [u8], number: u64) {
    let (number, length) = (number.to_le_bytes(), bytes.len());
    match bytes.first_chunk_mut() {
        Some(first) => *first = number,
        None => bytes.copy_from_slice(&number[..length]),
    }
    if length >= 2 * WORD
        && let Some(last) = bytes.last_chunk_mut()
    {
        *last = number;
    }
}

fn is_stamped(bytes: &[u8], number: u64) -> bool {
    let number = number.to_le_bytes();
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => *first == number && (bytes.len() < 2 * WORD || *last == number),
        _ => *bytes == number[..bytes.len()],
    }
}

/// A byte of what `seed` stands for.
fn pattern(at: usize, seed: u64) -> u8 {
    ((at as u64).wrapping_mul(131).wrapping_add(seed.wrapping_mul(29)).wrapping_add(at as u64 >> 8) ^ 0x5a)
        as u8
}

fn fill(bytes: &mut [u8], seed: u64) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = pattern(at, seed);
    }
}

/// Whether the bytes that [`stamp`] leaves alone are those of [`fill`].
fn is_filled(bytes: &[u8], seed: u64) -> bool {
    let end = if bytes.len() < 2 * WORD { bytes.len() } else { bytes.len() - WORD };
    let rest = bytes.get(WORD..end).unwrap_or_default();
    (WORD..).zip(rest).all(|(at, byte)| *byte == pattern(at, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_another_is_found() {
        for length in [1, 4, 8, 12, 16, 40] {
            let mut bytes = vec![0; length];
            fill(&mut bytes, 7);
            stamp(&mut bytes, 0x0102_0304_0506_0708);
            let right = |bytes: &[u8]| is_stamped(bytes, 0x0102_0304_0506_0708) && is_filled(bytes, 7);
            assert!(right(&bytes) && !is_stamped(&bytes, 9), "{length}");
            for at in 0..length {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1;
                assert!(!right(&wrong), "byte {at} of {length}");
            }
        }
        assert!((0..40).all(|at| pattern(at, 7) != pattern(at, 8)));
    }
}
