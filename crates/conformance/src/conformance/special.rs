//! What needs a job of its own: tables that differ, several jobs in a process, networks that fail.

use super::handlers::Count;
use super::pattern::Random;
use super::{Failure, Stage, State, SuiteMode, cases, require, run_case, segment};
use crate::simnet::{Faults, SimConfig, SimError, SimNet, SimRank, job, run};
use gasworks::{Job, Landed, Par, Payload, Reply, Request, Seq, Table};
use gasworks_core::message::MAX_HEAD;
use gasworks_core::message::{Encoded, Head, Landing, Returned};
use gasworks_core::{Category, Class, Wire, WireError};
use gasworks_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The stack that the suite's ranks have: a flood of replies must not need more. Three times as much without
/// optimisation, by which a frame has a place for each value that it only passes on: there opening a job over uGNI takes over 128 KiB.
pub const STACK: usize = if cfg!(debug_assertions) { 192 << 10 } else { 64 << 10 };

/// Opens the suite's job as one rank of a net and runs the cases whose names contain `pattern`.
///
/// # Errors
/// Whatever fails first.
pub fn suite<M: SuiteMode>(rank: &SimRank, pattern: &str, report: &dyn Fn(&str)) -> Result<(), Failure> {
    let state = Arc::new(State::default());
    let (table, handlers) = M::table(&state)?;
    let job = rank.open(table)?;
    {
        let stage = Stage::new(&job, &handlers, &state)?;
        for case in
            cases::<M>().iter().filter(|case| case.ranks <= job.ranks() && case.name.contains(pattern))
        {
            run_case(&stage, case)?;
            report(case.name);
        }
    }
    Ok(job.close()?)
}

/// The suite over a net.
///
/// # Errors
/// Whatever fails first.
pub fn suite_on<M: SuiteMode>(
    config: SimConfig,
    pattern: &str,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), Failure> {
    let config = SimConfig { segment: segment(config.ranks) as usize, stack: Some(STACK), ..config };
    let silent = |_: &str| ();
    run(config, |rank| {
        let report: &dyn Fn(&str) = if rank.rank() == 0 { report } else { &silent };
        suite::<M>(&rank, pattern, report)
            .unwrap_or_else(|failure| std::panic::resume_unwind(Box::new(failure.to_string())))
    })?;
    Ok(())
}

/// A handler table that is this rank's alone: opening a job with it must fail on every rank.
///
/// # Errors
/// A handler was refused.
pub fn odd_table(rank: u32) -> Result<Table<Seq>, gasworks::Error> {
    let mut table = Table::<Seq>::new();
    table.short_request("common", |_: Request<'_, Seq>, _: u32| ())?;
    if rank == 1 {
        table.short_request("only.here", |_: Request<'_, Seq>, _: u64| ())?;
    }
    Ok(table)
}

/// A special case over `SimNet`: its name, and what it does with a seed.
pub type Special = (&'static str, fn(u64) -> Result<(), Failure>);

/// All of them.
pub const SPECIALS: &[Special] = &[
    ("special.tables-differ", tables_differ),
    ("special.one-job-after-another", one_after_another),
    ("special.two-jobs-at-once", two_at_once),
    ("special.peer-vanishes", peer_vanishes),
    ("special.transfer-fails", transfer_fails),
    ("special.registration-refused", registration_refused),
    ("special.hostile-peer", hostile_peer),
    ("special.progress-thread", progress_thread),
];

fn small(seed: u64) -> SimConfig {
    SimConfig {
        ranks: 3,
        segment: segment(3) as usize,
        watchdog: Duration::from_secs(60),
        ..SimConfig::varied(3, seed)
    }
}

/// Every rank is told that the tables differ, and in what.
fn tables_differ(seed: u64) -> Result<(), Failure> {
    let said = run(small(seed), |rank| {
        let opened = odd_table(rank.rank()).and_then(|table| rank.open(table).map(drop));
        opened.err().map(|e| e.to_string()).unwrap_or_default()
    })?;
    for (rank, said) in said.iter().enumerate() {
        require!(
            said.contains("the handler tables differ")
                && said.contains("only.here")
                && said.contains("rank 1"),
            "rank {rank} was told {said:?}"
        );
    }
    Ok(())
}

fn short_suite(rank: &SimRank) -> Result<(), Failure> {
    suite::<Seq>(rank, "message.arguments", &|_| ())
}

/// Jobs one after the other on the same threads.
fn one_after_another(seed: u64) -> Result<(), Failure> {
    let nets: Vec<_> = (0..2).map(|more| SimNet::new(small(seed + more))).collect();
    run(small(seed), |rank| {
        let both = || nets.iter().try_for_each(|net| short_suite(&net[rank.rank() as usize]));
        both().map_err(|failure| failure.to_string())
    })?
    .into_iter()
    .try_for_each(|ended| ended.map_err(Failure::Wrong))
}

/// Two jobs open at the same time on the same threads, used in turn.
fn two_at_once(seed: u64) -> Result<(), Failure> {
    let other = SimNet::new(small(seed + 1));
    let ended = run(small(seed), |rank| {
        let both = || -> Result<(), Failure> {
            let states = [Arc::new(State::default()), Arc::new(State::default())];
            let (table, handlers) = Seq::table(&states[0])?;
            let first = rank.open(table)?;
            let (table, _) = Seq::table(&states[1])?;
            let second = other[rank.rank() as usize].open(table)?;
            let (a, b) = (first.agent()?, second.agent()?);
            let to = (rank.rank() + 1) % rank.config().ranks;
            // A rank that waits in one job alone makes the other job's peers wait, so nothing here blocks.
            let turn = || -> Result<(), Failure> {
                if a.poll()? + b.poll()? == 0 {
                    std::thread::yield_now();
                }
                Ok(())
            };
            for value in 0..200 {
                for (agent, value) in [(&a, value), (&b, 2 * value)] {
                    while let Err(error) = agent.try_request_short(to, handlers.echo, value) {
                        if !error.is_busy() {
                            return Err(error.into());
                        }
                        turn()?;
                    }
                }
            }
            while states.iter().any(|state| state.get(Count::Echoed) < 200) {
                turn()?;
            }
            let (first_phase, second_phase) = (a.barrier_begin()?, b.barrier_begin()?);
            let (mut first_done, mut second_done) = (false, false);
            while !(first_done && second_done) {
                turn()?;
                first_done = first_done || first_phase.test(&a)?;
                second_done = second_done || second_phase.test(&b)?;
            }
            let sums = (states[0].get(Count::EchoSum), states[1].get(Count::EchoSum));
            require!(sums == (19_900, 39_800), "the jobs' sums are {sums:?}");
            first.close()?;
            Ok(second.close()?)
        };
        both().map_err(|failure| failure.to_string())
    })?;
    ended.into_iter().try_for_each(|ended| ended.map_err(Failure::Wrong))
}

/// A rank vanishes in the middle: every other one gets an error that names it, and none waits for ever.
fn peer_vanishes(seed: u64) -> Result<(), Failure> {
    let faults = Faults { gone: Some((1, 40 + seed % 50)), ..Faults::default() };
    let said = run(SimConfig { faults, ..small(seed) }, |rank| {
        let failed = suite::<Seq>(&rank, "message", &|_| ()).err();
        failed.map(|failure| failure.to_string()).unwrap_or_default()
    })?;
    for (rank, said) in said.iter().enumerate() {
        require!(said.contains("rank 1"), "rank {rank} was told {said:?} when rank 1 vanished");
    }
    Ok(())
}

/// A transfer fails on the network: the operation that needed it says so, blocking or not, or a poll where it is over for its caller.
fn transfer_fails(seed: u64) -> Result<(), Failure> {
    let faults = Faults { nic_error: 1, ..Faults::default() };
    let table = |_: &SimRank| Seq::table(&Arc::new(State::default())).map_err(Failure::from);
    let config = SimConfig { faults, mapped: false, ..small(seed) };
    job::<Seq, _, (), Failure>(config, table, |job, handlers| {
        let agent = job.agent()?;
        let to = (agent.rank() + 1) % agent.ranks();
        let place = agent.segment(to)?.at::<u8>(0, 100_000)?;
        let bytes = vec![1; 100_000];
        let later = || (0..1000).find_map(|_| agent.poll().err());
        let failures = [
            agent.put(place, &bytes).err(),
            agent.put_copy(place, &bytes)?.wait(&agent).err(),
            agent.get_owned(place, 100_000)?.wait(&agent).err(),
            agent.scope(|scope| scope.put(place, &bytes)).err(),
            // Its payload may have been copied before: then the next polls tell.
            agent.request_long(handlers.n1.long, [1], &bytes, place).err().or_else(later),
        ];
        for failure in failures {
            let said = failure.map(|e| e.to_string()).unwrap_or_default();
            require!(said.contains("cannot be reached"), "a failed transfer said {said:?}");
        }
        Ok(())
    })?;
    Ok(())
}

/// A rank cannot register its segment: it says so, and the others do not wait for it for ever.
fn registration_refused(seed: u64) -> Result<(), Failure> {
    let faults = Faults { refuse_registration: Some(1), ..Faults::default() };
    let table = |_: &SimRank| Seq::table(&Arc::new(State::default())).map_err(Failure::from);
    let config = SimConfig { faults, mapped: false, ..small(seed) };
    let refused = job::<Seq, _, (), Failure>(config, table, |_, _| Ok(()));
    match refused {
        Err(SimError::Panicked { rank: 1, message, .. }) => {
            require!(message.contains("could not be registered"), "rank 1 said {message:?}");
            Ok(())
        }
        other => Err(Failure::Wrong(format!("a refused registration gave {other:?}"))),
    }
}

/// A rank that sends what no library does: heads cut short or made up, payloads that do not fit them, credits that it
/// never had, landings outside the segment. Its victim gets errors that name it, and goes on talking to the others.
fn hostile_peer(seed: u64) -> Result<(), Failure> {
    const MESSAGES: u64 = 3000;
    let (over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let ended = run(SimConfig { mapped: seed.is_multiple_of(2), ..small(seed) }, |rank| {
        let whole = || -> Result<(), Failure> {
            let echoed = Arc::new(AtomicU64::new(0));
            let mut table = Table::<Seq>::new();
            let reply = table.short_reply("reply", {
                let echoed = echoed.clone();
                // Among what rank 1 makes up are replies.
                move |from: Reply<'_>, value: u32| {
                    if from.source() != 1 {
                        echoed.fetch_add(value.into(), Ordering::AcqRel);
                    }
                }
            })?;
            let short = table.short_request("short", move |request: Request<'_, Seq>, value: u32| {
                request.reply_short(reply, value)
            })?;
            table.medium_request("medium", |_: Request<'_, Seq>, _: [u32; 2], bytes: Payload<'_>| {
                drop(bytes.to_vec::<u8>());
            })?;
            table.long_request("long", |_: Request<'_, Seq>, _: [u32; 0], _: Landed| ())?;
            let job = rank.open(table)?;
            if rank.rank() == 1 {
                assault(&rank, seed, MESSAGES);
                over.store(true, Ordering::Release);
                return Ok(());
            }
            let agent = job.agent()?;
            let (mut errors, mut sent) = (0, 0);
            // Polls; what goes wrong must be rank 1's doing. Whether there was nothing to do.
            let quiet = |errors: &mut u64| -> Result<bool, Failure> {
                match agent.poll() {
                    Ok(handled) => Ok(handled == 0),
                    Err(error) => {
                        let said = error.to_string();
                        require!(said.contains("rank 1"), "what rank 1 sent gave {said:?}");
                        *errors += 1;
                        Ok(false)
                    }
                }
            };
            loop {
                let last = over.load(Ordering::Acquire);
                let quiet = quiet(&mut errors)?;
                if sent < 500 && agent.try_request_short(2 - rank.rank(), short, 1).is_ok() {
                    sent += 1;
                }
                if quiet && last && sent > 0 {
                    break;
                }
                std::thread::yield_now();
            }
            require!(
                rank.rank() != 0 || errors > 100,
                "only {errors} of {MESSAGES} odd messages were refused"
            );
            // The two that behave still understand each other; each serves the other until both are content.
            let mut content = false;
            while served.load(Ordering::Acquire) < 2 {
                if quiet(&mut errors)? {
                    std::thread::yield_now();
                }
                if !content && echoed.load(Ordering::Acquire) == sent {
                    content = true;
                    served.fetch_add(1, Ordering::AcqRel);
                }
            }
            Ok(())
        };
        // A rank that leaves early must not be waited for.
        let ended = whole().map_err(|failure| failure.to_string());
        ended.inspect_err(|_| rank.vanish())
    })?;
    ended.into_iter().try_for_each(|ended| ended.map_err(Failure::Wrong))
}

/// Sends odd messages to rank 0: half of them any bytes, half a well-formed head with one byte changed.
fn assault(rank: &SimRank, seed: u64, messages: u64) {
    let (wire, mut random) = (&rank.wire() as &dyn Wire<Seq>, Random(seed + 12345));
    for _ in 0..messages {
        let mut head: Vec<u8> =
            (0..random.below(MAX_HEAD as u64 + 1)).map(|_| random.below(256) as u8).collect();
        if random.below(2) == 0 {
            let category = [Category::Short, Category::Medium, Category::Long][random.below(3) as usize];
            let landing = Landing { offset: random.below(4), len: random.below(4), in_packet: true };
            let landing = (category == Category::Long).then_some(landing);
            let (handler, reply) = (252 + random.below(4) as u8, random.below(2) == 0);
            let words = [1u8; 12];
            let args = &words[..4 * random.below(3) as usize];
            let fields = Head::Message { category, reply, handler, landing };
            head = Encoded::new(fields, Returned::default(), args).as_bytes().to_vec();
            let at = random.below(head.len() as u64) as usize;
            head[at] = random.below(256) as u8;
        }
        let payload = random.below(9) as usize;
        loop {
            match wire.reserve(0, Class::Request, payload) {
                Ok(room) => break drop(wire.commit(room, &head)),
                Err(WireError::Busy { .. }) => std::thread::yield_now(),
                Err(_) => return,
            }
        }
    }
}

/// A progress thread serves while the program computes, and polls nothing.
fn progress_thread(seed: u64) -> Result<(), Failure> {
    let table = |_: &SimRank| -> Result<_, Failure> {
        let heard = Arc::new(AtomicU64::new(0));
        let mut table = Table::<Par>::new();
        let hears = heard.clone();
        let short = table.short_request("short", move |_: Request<'_, Par>, value: u32| {
            hears.fetch_add(value.into(), Ordering::AcqRel);
        })?;
        Ok((table, (short, heard)))
    };
    job::<Par, _, _, Failure>(small(seed), table, |job: &Job<Par>, (short, heard)| {
        let agent = job.agent()?;
        require!(!job.has_progress_thread(), "nobody asked for one with the job");
        let serves = job.progress_thread()?;
        agent.request_short((agent.rank() + 1) % agent.ranks(), *short, 7)?;
        // The net's watchdog ends it otherwise.
        while heard.load(Ordering::Acquire) != 7 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(serves);
        Ok(agent.barrier()?)
    })?;
    Ok(())
}
