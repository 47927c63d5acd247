//! The machine itself: the measurements in C, between ranks 0 and 1 over memory of their own.

use crate::call::{Call, Measurement, Memory};
use crate::session::{Block, PerfMode, Plan, Session, Sum, Who};
use anyhow::{Context, Result, ensure};
use gasworks_os::affinity;

/// Memory for the measurements between ranks; the copies have some of their own.
const SHARED: usize = 16 << 20;
/// For copies: two halves, each more than the caches hold.
const COPIES: usize = 256 << 20;

/// What can be measured, and how.
#[derive(Clone, Copy)]
struct Kind {
    bench: &'static str,
    measurement: Measurement,
    sizes: &'static [u64],
    /// Operations of the result for each that is counted: a line passed one way is half a round trip.
    each: f64,
    most: u64,
    /// Whether all ranks take part, or ranks 0 and 1.
    all: bool,
    /// Whether every variant stands for itself.
    alone: bool,
}

const SIZES: &[u64] = &[8, 64, 512, 1024, 4096, 65536];
const COPIED: &[u64] = &[64, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26];

const fn kind(bench: &'static str, measurement: Measurement, sizes: &'static [u64]) -> Kind {
    Kind { bench, measurement, sizes, each: 1.0, most: 50_000_000, all: false, alone: false }
}

const KINDS: &[Kind] = &[
    Kind { each: 2.0, ..kind("raw-line", Measurement::Line, &[8]) },
    kind("raw-roundtrip", Measurement::Trip, &[64]),
    kind("raw-message", Measurement::Message, SIZES),
    kind("raw-stream", Measurement::Stream, &[64]),
    kind("raw-unread", Measurement::Unread, &[512, 4096, 65536]),
    kind("raw-checked", Measurement::Checked, &[512, 4096, 65536]),
    Kind { all: true, ..kind("raw-barrier", Measurement::Barrier, &[0]) },
    kind("raw-memcpy-warm", Measurement::Warm, COPIED),
    kind("raw-memcpy-cold", Measurement::Cold, COPIED),
    SHARING,
];
const ATOMIC: Kind = Kind { alone: true, ..kind("raw-atomic", Measurement::Atomic, &[8]) };
const WAKE: Kind = Kind { most: 8, alone: true, ..kind("raw-wake", Measurement::Wake, &[0]) };
const SHARING: Kind = Kind { alone: true, ..kind("raw-share", Measurement::Share, &[0]) };

/// Everything.
pub fn run<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let kinds: Vec<Kind> = KINDS.iter().copied().chain([ATOMIC, WAKE]).collect();
    measure(session, &kinds)
}

/// The processor's atomics.
pub fn atomics<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    measure(session, &[ATOMIC])
}

/// A futex between two processes.
pub fn wakes<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    measure(session, &[WAKE])
}

fn measure<M: PerfMode>(session: &Session<'_, M>, kinds: &[Kind]) -> Result<()> {
    // Where there are fewer processors than ranks nobody is bound; the two that spin are, each to its own.
    let before = affinity::allowed()?;
    let place = session.rank() as usize;
    if before.len() > 1 && place < before.len() && place < 2 {
        affinity::bind(before[place])?;
    }
    let together = share(session, &before)?;
    let mut memory = Memory::shared(session.job, &session.agent, SHARED, 1 << 20)?;
    for kind in kinds {
        let copies = kind.measurement.copies();
        if session.rank() == 0 && copies {
            memory.grow_own(COPIES);
        }
        let most = if copies { COPIES as u64 / 2 } else { memory.largest(kind.measurement) };
        let sizes = if kind.sizes.len() > 1 { session.sizes(kind.sizes) } else { kind.sizes.to_vec() };
        for bytes in sizes {
            if session.options.bytes.is_some() && (bytes > most || !bytes.is_multiple_of(8)) {
                continue;
            }
            let mut rows = Vec::new();
            for (variant, name) in (0..).zip(kind.measurement.names()) {
                if session.wants(name) || session.wants(kind.bench) {
                    rows.extend(one(session, *kind, bytes, variant, name, &mut memory, together)?);
                }
            }
            let best = rows.iter().map(|row| row.p50).fold(f64::INFINITY, f64::min);
            for mut row in rows {
                row.best = kind.alone || row.p50 <= best;
                session.print(&row);
            }
        }
    }
    affinity::bind_any(&before)?;
    Ok(session.agent.barrier()?)
}

/// Tells everybody a processor of rank 0.
fn share<M: PerfMode>(session: &Session<'_, M>, own: &[usize]) -> Result<u32> {
    let told = session.job.alloc::<u64>(1)?;
    if session.rank() == 0 {
        let first = own.first().copied().unwrap_or(0) as u64;
        for rank in 0..session.ranks() {
            session.agent.put_value(told.on(rank), first)?;
        }
    }
    session.agent.barrier()?;
    Ok(session.agent.local(told, 1)?.get(0) as u32)
}

fn one<M: PerfMode>(
    session: &Session<'_, M>,
    kind: Kind,
    bytes: u64,
    variant: u32,
    name: &str,
    memory: &mut Memory,
    together: u32,
) -> Result<Option<crate::row::Row>> {
    session.agent.barrier()?;
    if session.rank() == 0 {
        memory.clear();
    }
    let plan = Plan {
        transport: "raw",
        who: Who::First,
        sum: Sum::Mean,
        each: kind.each,
        most: kind.most,
        single: kind.bench == WAKE.bench,
        ..Plan::new(kind.bench, name, bytes)
    };
    let ranks = match (kind.all, kind.measurement.copies()) {
        (true, _) => session.ranks(),
        (_, true) => 1,
        _ => 2,
    };
    let mut base = 0;
    session.blocks(&plan, |block: &mut Block| {
        if session.rank() >= ranks {
            return Ok(0.0);
        }
        let call = Call { base, n: block.n, bytes, me: session.rank(), ranks, variant, together };
        let mut samples = vec![0; if block.wants_single() { block.n as usize } else { 0 }];
        let took = call.run(kind.measurement, memory, &mut samples);
        block.add(&samples);
        base += block.n;
        let took = took.with_context(|| format!("{} {name}: {bytes} bytes arrived wrong", kind.bench))?;
        ensure!(took > 0 || session.rank() > 0, "{} {name}: it took no time", kind.bench);
        Ok(took as f64 * session.tick)
    })
}
