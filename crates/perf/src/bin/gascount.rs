//! Does one operation of the library many times and nothing else, so that what it costs can be counted: the difference
//! between two runs, divided by the difference of their operations. `gascount OPERATION N`, as a job of one rank, which
//! sends to itself by the same path as to a peer.
//!
//! At its end it prints how many allocations the operations made.
//!
//! # Invariants
//! G1. Every call is passed on unchanged to the system's allocator.

use anyhow::{Context, Result, bail, ensure};
use gasworks::{Agent, Config, Job, Payload, Reply, Request, Seq, Table};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;

/// Counts allocations.
struct Counting {
    made: AtomicU64,
}

#[global_allocator]
static ALLOCATOR: Counting = Counting { made: AtomicU64::new(0) };

// SAFETY: G1.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.made.fetch_add(1, Ordering::Relaxed);
        // SAFETY: G1.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: G1.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.made.fetch_add(1, Ordering::Relaxed);
        // SAFETY: G1.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// So many requests leave before any is handled.
const FLOOD: u64 = 32;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gascount: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The operation, so many times, numbered from 1.
#[inline(always)]
fn each(
    times: u64,
    operation: impl FnMut(u64) -> Result<(), gasworks::Error>,
) -> Result<(), gasworks::Error> {
    (1..=times).try_for_each(operation)
}

/// Polls until so many have been counted.
#[inline(always)]
fn wait(agent: &Agent<'_, Seq>, counter: &Cell<u64>, wanted: u64) -> Result<(), gasworks::Error> {
    agent.wait_until(|| counter.get() >= wanted)
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [operation, times] = &words[..] else { bail!("wanted: gascount OPERATION N") };
    let times: u64 = times.parse().with_context(|| format!("{times:?} is no number of operations"))?;

    let (handled, replied) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let mut table = Table::<Seq>::new();
    let count = replied.clone();
    let pong = table.short_reply("pong", move |_: Reply<'_>, _: u64| count.set(count.get() + 1))?;
    let count = handled.clone();
    let short =
        table.short_request("short", move |_: Request<'_, Seq>, _: u64| count.set(count.get() + 1))?;
    let count = handled.clone();
    let ping = table.short_request("ping", move |request: Request<'_, Seq>, value: u64| {
        count.set(count.get() + 1);
        request.reply_short(pong, value)
    })?;
    let count = handled.clone();
    let medium = table.medium_request("medium", move |_: Request<'_, Seq>, _: u64, _: Payload<'_>| {
        count.set(count.get() + 1);
    })?;
    let job = Job::open(Config::from_env()?.segment(1 << 20), table)?;
    let agent = job.agent()?;
    let to = black_box(agent.rank());
    let place = black_box(job.alloc::<u64>(8)?);
    let payload = vec![7u8; 65536];
    let (kind, bytes) = match operation.rsplit_once('-') {
        Some((kind, bytes)) if bytes.parse::<usize>().is_ok() => (kind, bytes.parse::<usize>()?),
        _ => (operation.as_str(), 0),
    };
    let payload = payload.get(..bytes).with_context(|| format!("{operation}: more bytes than there are"))?;

    let room = black_box(job.alloc::<u8>(65536)?);
    let mut target = payload.to_vec();

    let before = ALLOCATOR.made.load(Ordering::Relaxed);
    let times = black_box(times);
    match kind {
        "nothing" => each(times, |number| {
            black_box(number);
            Ok(())
        })?,
        "put" => each(times, |number| agent.put_value(place, number))?,
        "get" => each(times, |_| {
            black_box(agent.get_value(place)?);
            Ok(())
        })?,
        "put-slice" => each(times, |_| agent.put(room, black_box(payload)))?,
        "get-slice" => each(times, |_| agent.get(room, black_box(&mut target[..])))?,
        "planted" => each(times, |number| {
            agent.put_value(place, number)?;
            // What must not be found in an operation: an allocation, a copy, a call of the system.
            let copy = black_box(payload.to_vec());
            black_box(std::fs::metadata("/")).ok();
            black_box(copy);
            Ok(())
        })?,
        "poll" => each(times, |_| {
            black_box(agent.poll()?);
            Ok(())
        })?,
        "barrier" => each(times, |_| agent.barrier())?,
        "short-request" => each(times, |number| {
            agent.request_short(to, short, number)?;
            wait(&agent, &handled, number)
        })?,
        "short-flood" => {
            each(times, |number| {
                agent.request_short(to, short, number)?;
                if number.is_multiple_of(FLOOD) { wait(&agent, &handled, number) } else { Ok(()) }
            })?;
            wait(&agent, &handled, times)?;
        }
        "short-round-trip" => each(times, |number| {
            agent.request_short(to, ping, number)?;
            wait(&agent, &replied, number)
        })?,
        "medium" => each(times, |number| {
            agent.request_medium(to, medium, number, payload)?;
            wait(&agent, &handled, number)
        })?,
        _ => bail!("{operation} is no operation: see ci/counts"),
    }
    let made = ALLOCATOR.made.load(Ordering::Relaxed) - before;
    ensure!(kind != "put" || times == 0 || agent.get_value(place)? == times, "the last put is not there");
    println!("allocations {made}");
    Ok(job.close()?)
}
