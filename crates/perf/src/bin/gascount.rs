//! Does one operation of the library many times and nothing else, so that what it costs can be counted: the difference
//! between two runs, divided by the difference of their operations. `gascount OPERATION N`: messages between two ranks, which are this process's,
//! so that one thread does in turn what both of them do; everything else as a job of one rank. `par:short-flood` is that operation where
//! several threads may communicate, `team:put-val` on a member of a team of three, `region:put-val` on a region of this rank's,
//! `on-region-put-val` by an agent on that region. `meet:job-2` is the barrier of two ranks, both of this process, where several threads may
//! communicate, and `meet:team-2` that of another team of the same ranks; `collective:broadcast-8` and `collective:reduce-8` are collectives of those
//! two, begun by who gives something, and then by who gets it. `collective:reduce-all:messages` is one of four ranks that share no board
//! (`GASNET_BARRIER=AMDISSEM`), each on a thread of its own, of several lengths in turn: of that only the allocations can be counted.
//!
//! At its end it prints how many allocations the operations made.
//!
//! # Invariants
//! - gascount.1: every call is passed on unchanged to the system's allocator.
#![allow(unsafe_code)]

#[path = "gascount/connected.rs"]
mod connected;

use anyhow::{Context, Result, bail, ensure};
use gasworks::{
    Agent, Config, GlobalPtr, Job, Landed, LongRequest, MediumRequest, Par, ParSync, Payload, Reply, Request,
    Seq, ShortRequest, Table, Team, ThreadMode,
};
use gasworks_bootstrap::Together;
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

/// Counts allocations.
struct Counting {
    made: AtomicU64,
}

#[global_allocator]
static ALLOCATOR: Counting = Counting { made: AtomicU64::new(0) };

// SAFETY: gascount.1: all memory is that of `System`, which keeps to the rules of an allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.made.fetch_add(1, Ordering::Relaxed);
        // SAFETY: gascount.1: the caller promises a layout that is not empty, which is what `System` wants.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: gascount.1: the caller promises that `at` was allocated here with `layout`, and so by `System`.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.made.fetch_add(1, Ordering::Relaxed);
        // SAFETY: gascount.1: the caller promises that `at` was allocated here with `layout`, so by `System`, and that `size` is one for
        // it.
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

/// Puts and gets of words go round so many of them.
const RING: u64 = 512;

/// Puts or gets so many words one by one: whose they are and where is known only while the program runs.
#[inline(never)]
fn ring(agent: &Agent<'_, Seq>, kind: &str, first: GlobalPtr<u64>, times: u64) -> Result<()> {
    let (rank, start) = (first.rank(), first.offset());
    let place = |number: u64| GlobalPtr::<u64>::new(rank, start + number % RING * 8);
    let is_put = kind.starts_with("put");
    for number in 0..RING {
        agent.put_value(place(number), if is_put { 0 } else { number })?;
    }
    let mut sum = 0u64;
    match kind {
        "put-val" => {
            for number in 0..times {
                agent.put_value(place(number), number)?;
            }
        }
        "get-val" => {
            for number in 0..times {
                sum += agent.get_value(place(number))?;
            }
        }
        "put" => {
            for number in 0..times {
                agent.put(place(number), &[number])?;
            }
        }
        // Done at once: the event has nothing to wait for.
        "put-nb" => {
            for number in 0..times {
                agent.put_copy(place(number), &[number])?.wait(agent)?;
            }
        }
        _ => {
            for number in 0..times {
                let mut word = [0];
                agent.get(place(number), &mut word)?;
                sum += word[0];
            }
        }
    }
    let (rounds, rest) = (times / RING, times % RING);
    match is_put {
        true => ensure!(
            times == 0 || agent.get_value(place(times - 1))? == times - 1,
            "the last put is not there"
        ),
        false => ensure!(
            sum == rounds * (RING * (RING - 1) / 2) + rest * rest.saturating_sub(1) / 2,
            "other words"
        ),
    }
    Ok(())
}

/// What the handlers of the two ranks count.
#[derive(Default)]
struct Counts {
    handled: AtomicU64,
    replied: AtomicU64,
}

/// One more. There is one thread.
#[inline(always)]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Polls until so many have been counted.
#[inline(always)]
fn wait<M: ThreadMode>(
    agent: &Agent<'_, M>,
    counter: &AtomicU64,
    wanted: u64,
) -> Result<(), gasworks::Error> {
    agent.wait_until(|| counter.load(Ordering::Relaxed) >= wanted)
}

/// Operations of connected endpoints.
fn connected_endpoints(kind: &str, payload: &[u8], number: usize, times: u64) -> Result<()> {
    let mut counts = Vec::new();
    connected::run(kind, payload, number, times, || counts.push(ALLOCATOR.made.load(Ordering::Relaxed)))?;
    let [before, after] = counts[..] else { bail!("the operations were not counted") };
    println!("allocations {}", after - before);
    Ok(())
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [operation, times] = &words[..] else { bail!("wanted: gascount OPERATION N") };
    let times: u64 = times.parse().with_context(|| format!("{times:?} is no number of operations"))?;

    let (kind, bytes) = match operation.rsplit_once('-') {
        Some((kind, bytes)) if bytes.parse::<usize>().is_ok() => (kind, bytes.parse::<usize>()?),
        _ => (operation.as_str(), 0),
    };
    let payload = vec![7u8; 65536];
    let payload = payload.get(..bytes).with_context(|| format!("{operation}: more bytes than there are"))?;
    if ["short", "medium", "long"].into_iter().any(|category| kind.starts_with(category)) {
        return messages(in_parsync, kind, times, payload);
    }
    match kind.split_once(':') {
        Some(("par", kind)) => return messages(in_par, kind, times, payload),
        Some(("team", kind)) => return on_team(kind, times),
        Some(("region", kind)) => return in_region(false, kind, times),
        Some(("collective", kind)) => match kind.strip_suffix(":messages") {
            Some(kind) => return by_messages(kind, times),
            None => return collectives(kind, payload, times),
        },
        Some(("cci", kind)) => return connected_endpoints(kind, payload, bytes, times),
        Some(("meet", kind @ ("job" | "team"))) => return barriers(kind == "team", bytes as u32, times),
        _ => {}
    }
    if let Some(kind) = kind.strip_prefix("on-region-") {
        return in_region(true, kind, times);
    }

    let job = Job::open(Config::from_env()?.segment(1 << 20), Table::<Seq>::new())?;
    let agent = job.agent()?;
    let place = black_box(job.alloc::<u64>(8)?);
    let room = black_box(job.alloc::<u8>(65536)?);
    let mut target = payload.to_vec();

    let before = ALLOCATOR.made.load(Ordering::Relaxed);
    let times = black_box(times);
    match kind {
        "nothing" => each(times, |number| {
            black_box(number);
            Ok(())
        })?,
        // As `gascount-c` does them: round a ring of bytes, each of which is checked.
        "put-val" | "get-val" | "put" | "get" | "put-nb" => {
            ring(&agent, kind, black_box(job.alloc::<u64>(RING)?), times)?
        }
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
        _ => bail!("{operation} is no operation: see ci/counts"),
    }
    let made = ALLOCATOR.made.load(Ordering::Relaxed) - before;
    println!("allocations {made}");
    Ok(job.close()?)
}

/// Words of this rank's part of a region, by places in it, or by an agent on it.
fn in_region(is_on: bool, kind: &str, times: u64) -> Result<()> {
    let job = Job::open(Config::from_env()?, Table::<Seq>::new())?;
    let region = job.create_region(RING * 8)?;
    let agent = job.agent()?;
    let agent = if is_on { agent.on_region(&region)? } else { agent };
    let words =
        if is_on { agent.segment(job.rank())?.at(0, RING)? } else { region.at(job.rank(), 0, RING)? };
    let before = ALLOCATOR.made.load(Ordering::Relaxed);
    ring(&agent, kind, black_box(words), times)?;
    println!("allocations {}", ALLOCATOR.made.load(Ordering::Relaxed) - before);
    region.withdraw()?;
    Ok(job.close()?)
}

/// Words of a member of a team, by its number there.
fn on_team(kind: &str, times: u64) -> Result<()> {
    let members = [1, 0, 2];
    let open = |bootstrap| {
        Job::open_by(Box::new(bootstrap), Config::from_env()?.segment(1 << 20), Table::<Seq>::new())
    };
    let mut ranks = Together::ranks(members.len() as u32)?.into_iter();
    let first = ranks.next().context("there is no rank")?;
    let others: Vec<_> = ranks
        .map(|rank| {
            std::thread::spawn(move || {
                let job = open(rank)?;
                let made = job.everyone().create(&job.agent()?, members).map(drop);
                // Its segment is used below, and nobody closes.
                std::mem::forget(job);
                made
            })
        })
        .collect();
    let job = open(first)?;
    let agent = job.agent()?;
    let team = job.everyone().create(&agent, members)?.context("rank 0 is a member")?;
    for other in others {
        other.join().map_err(|_| anyhow::anyhow!("another rank panicked"))??;
    }
    let next = (team.member() + 1) % team.size();
    ring(&agent.on(&team), kind, black_box(job.alloc::<u64>(RING)?.on(next)), times)?;
    drop(team);
    std::mem::forget(job);
    Ok(())
}

type Opened = (&'static Job<Par>, Option<Team<'static, Par>>);

/// The agent of a rank, or of its team if it has one.
fn agent_of((job, team): &Opened) -> Result<Agent<'_, Par>> {
    let agent = job.agent()?;
    Ok(if let Some(team) = team { agent.on(team) } else { agent })
}

/// So many ranks, and a team of all of them if that is wanted.
fn ranks(of_team: bool, ranks: u32) -> Result<Vec<Opened>> {
    let open = move |bootstrap| -> Result<Opened> {
        let job = Job::open_by(Box::new(bootstrap), Config::from_env()?, Table::<Par>::new())?;
        // Nobody closes it, as below.
        let job: &'static Job<Par> = Box::leak(Box::new(job));
        let key = if of_team { -i64::from(job.rank()) } else { 0 };
        Ok((job, job.everyone().split(&job.agent()?, of_team.then_some(0), key)?))
    };
    let ranks: Vec<_> = Together::ranks(ranks)?;
    let opening: Vec<_> = ranks.into_iter().map(|rank| std::thread::spawn(move || open(rank))).collect();
    let opened =
        opening.into_iter().map(|rank| rank.join().map_err(|_| anyhow::anyhow!("a rank panicked"))?);
    opened.collect()
}

/// Collectives of two ranks, in which the first gives something and is through, and the second gets it. Both have as many bytes.
fn collectives(kind: &str, payload: &[u8], times: u64) -> Result<()> {
    let opened = ranks(false, 2)?;
    let ranks: Vec<_> =
        opened.iter().map(|(job, _)| Ok((job.agent()?, job.everyone()))).collect::<Result<_>>()?;
    let words = payload.len() / 8;
    let (mut values, before) = (vec![1u64; words], ALLOCATOR.made.load(Ordering::Relaxed));
    each(black_box(times), |_| {
        ranks.iter().try_for_each(|(agent, everyone)| match kind {
            "broadcast" => everyone.broadcast(agent, 0, black_box(&mut values)),
            _ => everyone.reduce(agent, 1, black_box(&mut values), u64::max),
        })
    })?;
    println!("allocations {}", ALLOCATOR.made.load(Ordering::Relaxed) - before);
    ensure!(values.iter().all(|&value| value == 1), "other values");
    drop(ranks);
    std::mem::forget(opened);
    Ok(())
}

/// Collectives by messages of four ranks, of 8 bytes to 60,000 together.
fn by_messages(kind: &str, times: u64) -> Result<()> {
    const RANKS: usize = 4;
    ensure!(
        gasworks_testkit::programs::variable("GASNET_BARRIER").is_some_and(|way| way == "AMDISSEM"),
        "without GASNET_BARRIER=AMDISSEM ranks that share memory have a board"
    );
    let opened = ranks(false, RANKS as u32)?;
    let (begun, ended) = (std::sync::Barrier::new(RANKS + 1), std::sync::Barrier::new(RANKS + 1));
    let rank = |(job, _): Opened| -> Result<()> {
        let (agent, everyone) = (job.agent()?, job.everyone());
        let lens = [8, 1000, 15_000];
        let mut buffers =
            lens.map(|len| (vec![1u64; len / 8], vec![1u64; len / 8 * RANKS], vec![1u64; len / 8 * RANKS]));
        begun.wait();
        let done = each(times, |number| {
            let root = number as u32 % RANKS as u32;
            let (own, all, each) = &mut buffers[number as usize % lens.len()];
            match kind {
                "broadcast" => everyone.broadcast(&agent, root, all),
                "reduce" => everyone.reduce(&agent, root, all, u64::max),
                "reduce-all" => everyone.reduce_all(&agent, all, u64::max),
                "scan" => everyone.scan(&agent, all, u64::max),
                "scan-before" => everyone.scan_before(&agent, all, u64::max),
                "gather" => everyone.gather(&agent, root, own, all),
                "scatter" => everyone.scatter(&agent, root, all, own),
                "all-gather" => everyone.all_gather(&agent, own, all),
                "all-to-all" => everyone.all_to_all(&agent, all, each),
                "begun-broadcast" => {
                    let begun = everyone.begin_broadcast(&agent, root, std::mem::take(all))?;
                    begun.wait(&agent).map(|values| *all = values)
                }
                "begun-reduce-all" => {
                    let begun = everyone.begin_reduce_all(&agent, std::mem::take(all), u64::max)?;
                    begun.wait(&agent).map(|values| *all = values)
                }
                "barrier" => agent.barrier(),
                _ => Err(gasworks::Error::Program(format!("{kind} is no collective"))),
            }
        });
        ended.wait();
        done?;
        let all = buffers.iter().flat_map(|(own, all, each)| own.iter().chain(all).chain(each));
        ensure!(all.into_iter().all(|&value| value == 1), "other values");
        Ok(())
    };
    std::thread::scope(|scope| {
        let ranks: Vec<_> = opened.into_iter().map(|opened| scope.spawn(move || rank(opened))).collect();
        begun.wait();
        let before = ALLOCATOR.made.load(Ordering::Relaxed);
        ended.wait();
        println!("allocations {}", ALLOCATOR.made.load(Ordering::Relaxed) - before);
        ranks.into_iter().try_for_each(|rank| rank.join().map_err(|_| anyhow::anyhow!("a rank panicked"))?)
    })
}

/// The barrier of so many ranks, or of a team of all of them: one thread begins it for each, and then ends it for each.
fn barriers(of_team: bool, count: u32, times: u64) -> Result<()> {
    let opened = ranks(of_team, count)?;
    let agents = opened.iter().map(agent_of).collect::<Result<Vec<_>>>()?;
    let mut phases = Vec::with_capacity(agents.len());
    let before = ALLOCATOR.made.load(Ordering::Relaxed);
    each(black_box(times), |_| {
        for agent in &agents {
            phases.push(agent.barrier_begin()?);
        }
        for (agent, phase) in agents.iter().zip(phases.drain(..)) {
            while !phase.test(agent)? {
                for other in &agents {
                    other.poll()?;
                }
            }
        }
        Ok(())
    })?;
    println!("allocations {}", ALLOCATOR.made.load(Ordering::Relaxed) - before);
    drop((agents, phases));
    std::mem::forget(opened);
    Ok(())
}

/// What rank 0 sends to rank 1.
#[derive(Clone, Copy)]
struct Messages {
    short: ShortRequest<u64>,
    ping: ShortRequest<u64>,
    medium: MediumRequest<u64>,
    echo: MediumRequest<u64>,
    long: LongRequest<u64>,
    long_ping: LongRequest<u64>,
}

type Registered<M> = Result<(Table<M>, Messages), gasworks::Error>;

/// Registers the handlers: what a closure has to be differs from mode to mode, so each expands this for itself.
macro_rules! handlers {
    ($name:ident, $mode:ty) => {
        fn $name(counts: &Arc<Counts>, copy: Arc<[u8]>) -> Registered<$mode> {
            let mut table = Table::<$mode>::new();
            let c = counts.clone();
            let pong = table.short_reply("pong", move |_: Reply<'_>, _: u64| count(&c.replied))?;
            let c = counts.clone();
            let short = move |_: Request<'_, $mode>, _: u64| count(&c.handled);
            let short = table.short_request("short", short)?;
            let c = counts.clone();
            let ping = move |request: Request<'_, $mode>, value: u64| {
                count(&c.handled);
                request.reply_short(pong, value)
            };
            let ping = table.short_request("ping", ping)?;
            let c = counts.clone();
            let medium = move |_: Request<'_, $mode>, _: u64, _: Payload<'_>| count(&c.handled);
            let medium = table.medium_request("medium", medium)?;
            let c = counts.clone();
            let echoed = move |_: Reply<'_>, _: u64, _: Payload<'_>| count(&c.replied);
            let echoed = table.medium_reply("echoed", echoed)?;
            let c = counts.clone();
            let echo = move |request: Request<'_, $mode>, value: u64, payload: Payload<'_>| {
                count(&c.handled);
                request.reply_medium(echoed, value, &copy[..payload.len()])
            };
            let echo = table.medium_request("echo", echo)?;
            let c = counts.clone();
            let long = move |_: Request<'_, $mode>, _: u64, _: Landed| count(&c.handled);
            let long = table.long_request("long", long)?;
            let c = counts.clone();
            let long_ping = move |request: Request<'_, $mode>, value: u64, _: Landed| {
                count(&c.handled);
                request.reply_short(pong, value)
            };
            let long_ping = table.long_request("long_ping", long_ping)?;
            Ok((table, Messages { short, ping, medium, echo, long, long_ping }))
        }
    };
}

handlers!(in_parsync, ParSync);
handlers!(in_par, Par);

/// Messages from rank 0 to rank 1.
fn messages<M: ThreadMode>(
    handlers: fn(&Arc<Counts>, Arc<[u8]>) -> Registered<M>,
    kind: &str,
    times: u64,
    payload: &[u8],
) -> Result<()>
where
    Job<M>: Send,
{
    let counts = Arc::new(Counts::default());
    let (counted, copy) = (counts.clone(), Arc::<[u8]>::from(payload));
    let open = move |bootstrap: Together| -> Result<_> {
        let (table, messages) = handlers(&counted, copy.clone())?;
        Ok((Job::open_by(Box::new(bootstrap), Config::from_env()?.segment(1 << 20), table)?, messages))
    };
    let mut ranks = Together::ranks(2)?.into_iter();
    let (Some(first), Some(second)) = (ranks.next(), ranks.next()) else { bail!("there are not two ranks") };
    let opens = open.clone();
    let other = std::thread::spawn(move || opens(second));
    let (here, Messages { short, ping, medium, echo, long, long_ping }) = open(first)?;
    let (there, _) = other.join().map_err(|_| anyhow::anyhow!("the other rank panicked"))??;
    let (sender, receiver) = (here.agent()?, there.agent()?);
    let (to, Counts { handled, replied }) = (black_box(receiver.rank()), &*counts);
    let landing = black_box(GlobalPtr::new(to, 4096));

    let before = ALLOCATOR.made.load(Ordering::Relaxed);
    let times = black_box(times);
    match kind {
        "short-request" => each(times, |number| {
            sender.request_short(to, short, number)?;
            wait(&receiver, handled, number)
        })?,
        "short-flood" => {
            each(times, |number| {
                sender.request_short(to, short, number)?;
                if number.is_multiple_of(FLOOD) { wait(&receiver, handled, number) } else { Ok(()) }
            })?;
            wait(&receiver, handled, times)?;
        }
        "short-round-trip" => each(times, |number| {
            sender.request_short(to, ping, number)?;
            wait(&receiver, handled, number)?;
            wait(&sender, replied, number)
        })?,
        "medium" => each(times, |number| {
            sender.request_medium(to, medium, number, payload)?;
            wait(&receiver, handled, number)
        })?,
        "medium-flood" => {
            each(times, |number| {
                sender.request_medium(to, medium, number, payload)?;
                if number.is_multiple_of(FLOOD) { wait(&receiver, handled, number) } else { Ok(()) }
            })?;
            wait(&receiver, handled, times)?;
        }
        "medium-round-trip" => each(times, |number| {
            sender.request_medium(to, echo, number, payload)?;
            wait(&receiver, handled, number)?;
            wait(&sender, replied, number)
        })?,
        "long" => each(times, |number| {
            sender.request_long(long, number, payload, landing)?;
            wait(&receiver, handled, number)
        })?,
        "long-flood" => {
            each(times, |number| {
                sender.request_long(long, number, payload, landing)?;
                if number.is_multiple_of(FLOOD) { wait(&receiver, handled, number) } else { Ok(()) }
            })?;
            wait(&receiver, handled, times)?;
        }
        "long-round-trip" => each(times, |number| {
            sender.request_long(long_ping, number, payload, landing)?;
            wait(&receiver, handled, number)?;
            wait(&sender, replied, number)
        })?,
        _ => bail!("{kind} is no operation: see ci/counts"),
    }
    let made = ALLOCATOR.made.load(Ordering::Relaxed) - before;
    println!("allocations {made}");
    // Two threads would have to close the jobs, and how often each looks for the other is not always the same.
    std::mem::forget((here, there));
    Ok(())
}
