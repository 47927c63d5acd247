//! Puts of strided arrays, beside a loop of copies written by hand, in the same blocks.
//!
//! # Invariants
//! - scattered.1: what the loop copies from is a slice that holds every run, and what it copies to a part of the partner's segment that does,
//!   which the job keeps mapped and in which nobody else is.

use crate::session::{PerfMode, Plan, Session, Who, since};
use anyhow::{Context, Result, ensure};
use gasworks::{GlobalPtr, Rights, Strided};
use std::hint::black_box;
use std::time::Instant;

/// Runs of a row of the array.
const COLUMNS: usize = 64;
/// Bytes that move, where both sides stay in a cache, and where neither does.
const AREAS: [(&str, usize); 2] = [("warm", 64 << 10), ("cold", 16 << 20)];
/// The largest run that is measured.
const LARGEST: u64 = 64 << 10;

/// Bytes of the segment.
pub fn segment() -> u64 {
    // The runs are half of it; a row has a gap of a run more.
    3 * (AREAS[1].1 as u64).max(LARGEST * COLUMNS as u64)
}

/// An array: runs two lengths apart, in rows which have a gap between them.
#[derive(Clone, Copy)]
struct Shape {
    run: usize,
    rows: usize,
}

impl Shape {
    fn row(self) -> usize {
        (2 * COLUMNS + 1) * self.run
    }
    fn len(self) -> usize {
        self.rows * self.row()
    }
    fn runs(self) -> usize {
        self.rows * COLUMNS
    }
}

/// Puts of runs by size, and the same copies.
pub fn strided<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let sizes = session.sizes(&[8, 64, 512]);
    ensure!(sizes.iter().all(|&size| size <= LARGEST), "a run is no longer than {LARGEST} bytes");
    let room = session.job.alloc::<u64>(segment() / 8)?.cast::<u8>();
    for bytes in sizes {
        for (area, moved) in AREAS {
            let run = bytes as usize;
            let shape = Shape { run, rows: (moved / (COLUMNS * run)).max(1) };
            for variant in [area].into_iter().filter(|variant| session.wants(variant)) {
                compare(session, shape, variant, room)?;
            }
        }
    }
    Ok(())
}

/// Measures a shape both ways in each block.
fn compare<M: PerfMode>(
    session: &Session<'_, M>,
    shape: Shape,
    area: &str,
    room: GlobalPtr<u8>,
) -> Result<()> {
    let (agent, Shape { run, rows }) = (&session.agent, shape);
    let there = room.on(session.partner().unwrap_or(session.rank()));
    let peers = session.job.engine().peers();
    let mapped = peers.reach(there.rank(), there.offset(), shape.len(), Rights::WRITE)?;
    let mapped = mapped.context("the partner is not mapped: there is nothing to copy to by hand")?;
    let mut source = vec![1u8; if session.rank() == 0 { shape.len() } else { 0 }];
    let strides = [2 * run as isize, shape.row() as isize];
    let counts = [COLUMNS, rows];
    let array = Strided { element: run, counts: &counts, first: 0, local: &strides, remote: &strides };
    let plan = |variant: String| Plan {
        who: Who::First,
        least: shape.runs() as u64,
        ..Plan::new("strided", variant, run as u64)
    };
    let (mut number, mut by_hand) = (0u8, Vec::new());
    let row = session.blocks(&plan(format!("put {area}")), |block| {
        if session.rank() != 0 {
            return Ok(0.0);
        }
        number = number.wrapping_add(1);
        let last = (rows - 1) * shape.row() + (COLUMNS - 1) * 2 * run;
        source[last..][..run].fill(number);
        let rounds = (block.n as usize / shape.runs()).max(1);
        let of_one = |took: f64| took / (rounds * shape.runs()) as f64;
        let (mut found, mut took) = (vec![0; run], [0.0; 2]);
        // In turn the one and the other is first: the partner goes to sleep meanwhile.
        for by_hand in [number % 2 == 0, number % 2 == 1] {
            agent.put(there.add(last as u64)?, &vec![!number; run])?;
            let begin = Instant::now();
            for _ in 0..rounds {
                match by_hand {
                    true => copies(black_box(&source), black_box(mapped.as_ptr()), shape),
                    false => agent.put_strided(there, black_box(&source), &array)?,
                }
            }
            took[usize::from(by_hand)] = of_one(since(begin));
            agent.get(there.add(last as u64)?, &mut found)?;
            ensure!(found.iter().all(|byte| *byte == number), "the last run there is not what was copied");
        }
        let [put, copied] = took;
        by_hand.push((put, copied));
        Ok(put * block.n as f64)
    })?;
    let Some(row) = row else { return Ok(()) };
    // Those that were measured are the last; before them it was settled how many make a block.
    let measured = by_hand.split_off(by_hand.len() - session.options.blocks as usize);
    let copied = measured.iter().map(|(_, copied)| *copied).collect();
    let ratios = measured.iter().map(|(put, copied)| copied / put).collect();
    session.print(&row);
    session.print(&session.row(&plan(format!("copies {area}")), "ns", copied));
    let ratios = session.row(&plan(format!("rate of copies {area}")), "1", ratios);
    ensure!(ratios.p50.is_finite(), "no time went by");
    session.print(&ratios);
    Ok(())
}

/// The loop written by hand: for lengths of a run that its writer knows and for others; of the array it knows two dimensions.
fn copies(source: &[u8], target: *mut u8, shape: Shape) {
    let [columns, rows, step, row] = black_box([COLUMNS, shape.rows, 2 * shape.run, shape.row()]);
    assert!(columns == COLUMNS && rows == shape.rows && source.len() >= shape.len());
    macro_rules! copies {
        ($run:expr) => {
            for at in 0..rows {
                for column in 0..columns {
                    let place = at * row + column * step;
                    // SAFETY: scattered.1: the run at `place` is inside a shape of `shape.len()` bytes, which both sides have.
                    unsafe { source.as_ptr().add(place).copy_to_nonoverlapping(target.add(place), $run) };
                }
            }
        };
    }
    match shape.run {
        8 => copies!(8),
        64 => copies!(64),
        512 => copies!(512),
        run => copies!(run),
    }
}
