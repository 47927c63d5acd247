//! The Rust face in a job of one rank, or of ranks of this process: what a program sees when it, or its handlers, do something wrong.

use gasworks::{Config, Error, GlobalPtr, Job, Landed, Par, ParSync, Reply, Request, Seq, Table, ThreadMode};
use gasworks_bootstrap::Together;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn open(table: Table<Seq>) -> Result<Job<Seq>, Error> {
    open_as(table)
}

fn open_as<M: ThreadMode>(table: Table<M>) -> Result<Job<M>, Error> {
    Job::open(Config::from_env()?.segment(1 << 16), table)
}

#[test]
fn a_handler_that_panics_fails_the_poll_and_costs_no_credit() -> Result<(), Error> {
    let mut table = Table::<Seq>::new();
    let panics = table.short_request("panics", |_: Request<'_, Seq>, x: u32| -> () { panic!("x is {x}") })?;
    let job = open(table)?;
    let agent = job.agent()?;
    for round in 0..100u32 {
        agent.request_short(0, panics, round)?; // a lost credit would make this wait for ever
        let error = loop {
            match agent.poll() {
                Ok(_) => {}
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("\"panics\" panicked") && error.contains(&format!("x is {round}")), "{error}");
    }
    job.close()
}

/// What is still there of operations keeps nobody from closing the job.
#[test]
fn a_closed_job_fails_what_waits_for_it() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let place: GlobalPtr<u64> = job.alloc(1)?;
    let mut put = agent.put_copy(place, &[7])?;
    assert!(put.test()?);
    job.close()?;
    const OVER: &str = "the job is closed: nothing goes on in it";
    assert_eq!(put.wait(&agent).map_err(|e| e.to_string()), Ok(()), "it was done before");
    assert_eq!(agent.get_value(place)?, 7, "the memory is there until the job is dropped");
    assert_eq!(agent.wait_until(|| false).map_err(|e| e.to_string()), Err(OVER.into()));
    assert_eq!(job.close().map_err(|e| e.to_string()), Err(OVER.into()));
    // Another one follows while the first is there.
    let next = open(Table::new())?;
    next.agent()?.barrier()?;
    next.close()
}

/// Two jobs of a process have regions of the same names.
#[test]
fn an_agent_takes_no_region_of_another_job() -> Result<(), Error> {
    let first = open(Table::new())?;
    let mine = first.create_region(64)?;
    first.close()?;
    let second = open(Table::new())?;
    let (agent, theirs) = (second.agent()?, second.create_region(64)?);
    assert_eq!(mine.handle(0), theirs.handle(0));
    let refused = agent.on_region(&mine).map(drop).map_err(|e| e.to_string());
    assert_eq!(refused, Err("the region is of another job than the agent".into()));
    let within = agent.on_region(&theirs)?;
    within.put_value(within.segment(0)?.at::<u64>(8, 1)?, 7)?;
    assert_eq!(agent.get_value(theirs.at::<u64>(0, 8, 1)?)?, 7);
    theirs.withdraw()?;
    second.close()
}

#[test]
fn a_handler_that_fails_fails_the_poll() -> Result<(), Error> {
    let mut table = Table::<Seq>::new();
    let fails = table.short_request("fails", |_: Request<'_, Seq>, _: u32| -> Result<(), Error> {
        Err(Error::Program("no such key".into()))
    })?;
    let job = open(table)?;
    let agent = job.agent()?;
    agent.request_short(0, fails, 1)?;
    let error = agent.wait_until(|| false).map_err(|e| e.to_string());
    assert_eq!(error, Err("handling a message from rank 0: no such key".into()));
    job.close()
}

#[test]
fn a_long_to_this_rank_itself_never_waits() -> Result<(), Error> {
    let landed = Rc::new(Cell::new(0));
    let mut table = Table::<Seq>::new();
    let land = table.long_request("land", {
        let landed = landed.clone();
        move |_: Request<'_, Seq>, _: [u32; 0], at: Landed| landed.set(landed.get() + at.len)
    })?;
    let job = open(table)?;
    let agent = job.agent()?;
    let place: GlobalPtr<u8> = job.alloc(16)?;
    for sent in 1..=10_000 {
        agent.try_request_long(land, [], &[8; 16], place)?;
        assert_eq!(landed.get(), 16 * sent, "handled in the call");
    }
    assert_eq!(agent.get_value(place)?, 8);
    job.close()
}

#[test]
fn barriers_out_of_turn_are_refused() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let first = agent.barrier_begin()?;
    assert!(agent.barrier_begin().is_err_and(|e| e.to_string().contains("begun twice")));
    while !first.test(&agent)? {}
    let second = agent.barrier_begin()?;
    assert!(
        first.test(&agent).is_err_and(|e| e.to_string().contains("finished")),
        "an old phase ends no other"
    );
    drop(second); // closing finishes what was begun
    job.close()
}

#[test]
fn what_is_wrong_is_said() -> Result<(), Error> {
    let mut table = Table::<Seq>::new();
    let short = table.at(200).short_request("short", |_: Request<'_, Seq>, _: u32| {})?;
    assert_eq!(short.index(), 200);
    let taken = table.at(200).short_request("again", |_: Request<'_, Seq>, _: u32| {});
    assert!(taken.is_err_and(|e| e.to_string().contains("taken by \"short\"")));
    let job = open(table)?;
    let agent = job.agent()?;
    let says = |result: Result<(), Error>, text: &str| {
        let error = result.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    };
    says(agent.request_short(1, short, 0), "rank 1 is out of range: the job has 1 ranks");
    says(
        agent.put(GlobalPtr::new(0, 1 << 16), &[1u8]),
        "outside the segment of rank 0, which has 65536 bytes",
    );
    says(agent.get(GlobalPtr::new(9, 0), &mut [0u8]), "rank 9 is out of range");
    says(job.alloc::<u64>(1 << 20).map(|_| ()), "of 65536 bytes are left; ask for a larger segment");
    says(job.alloc::<u64>(u64::MAX).map(|_| ()), "are left");
    says(agent.local(GlobalPtr::<u64>::new(0, 65530), 1).map(|_| ()), "not inside the segment");
    job.close()
}

#[test]
fn several_threads_wait_while_one_of_them_handles() -> Result<(), Error> {
    let (heard, news) = mpsc::channel();
    let count = Arc::new(std::sync::Mutex::new(0));
    let mut table = Table::<Par>::new();
    let add = table.short_request("add", {
        let count = count.clone();
        let heard = std::sync::Mutex::new(heard);
        move |_: Request<'_, Par>, _: u32| {
            *count.lock().unwrap_or_else(|e| e.into_inner()) += 1;
            let _ = heard.lock().unwrap_or_else(|e| e.into_inner()).send(());
        }
    })?;
    let job = Job::open(Config::from_env()?.segment(1 << 16), table)?;
    const ROUNDS: u32 = 200;
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let agent = job.agent()?;
                    agent.wait_until(|| *count.lock().unwrap_or_else(|e| e.into_inner()) == ROUNDS)
                })
            })
            .collect();
        let agent = job.agent()?;
        for round in 0..ROUNDS {
            agent.request_short(0, add, round)?;
            agent.wait_until(|| news.try_recv().is_ok())?;
        }
        for waiter in waiters {
            waiter.join().map_err(|_| Error::Program("a waiting thread panicked".into()))??;
        }
        Ok::<_, Error>(())
    })?;
    job.close()
}

#[test]
fn threads_take_turns_with_a_parsync_job() {
    let count = Arc::new(Mutex::new(0));
    let mut table = Table::<ParSync>::new();
    let counted = count.clone();
    let add = table.short_request("add", move |_: Request<'_, ParSync>, x: u64| {
        *counted.lock().unwrap_or_else(|e| e.into_inner()) += x;
    });
    let add = add.expect("registered");
    let job = Mutex::new(open_as(table).expect("a job of one"));
    std::thread::scope(|scope| {
        for thread in 1..=3u64 {
            let job = &job;
            scope.spawn(move || {
                for _ in 0..100 {
                    let job = job.lock().expect("nobody panicked");
                    let agent = job.agent().expect("an agent");
                    agent.request_short(0, add, thread).expect("sent");
                    agent.poll().expect("polled");
                }
            });
        }
    });
    let job = job.into_inner().expect("nobody panicked");
    let sum = || *count.lock().unwrap_or_else(|e| e.into_inner());
    job.agent().expect("an agent").wait_until(|| sum() == 600).expect("they all arrive");
    job.close().expect("closed");
}

#[test]
fn more_handlers_are_registered_while_the_job_is_open() {
    let job = open_as(Table::<Seq>::new()).expect("a job of one");
    let (seen, agent) = (Rc::new(Cell::new(0)), job.agent().expect("an agent"));
    for value in 1..4u64 {
        let counted = seen.clone();
        let late = job.table().short_request("late", move |_: Request<'_, Seq>, x: u64| counted.set(x));
        agent.request_short(0, late.expect("registered"), value).expect("sent");
        agent.wait_until(|| seen.get() == value).expect("handled by the latest");
    }
    let taken = job.table().at(255).short_request("taken", |_: Request<'_, Seq>, _: u64| ()).err();
    assert!(taken.is_some_and(|e| e.to_string().contains("index 255 is taken by \"late\"")));
    job.close().expect("closed");
}

#[test]
fn a_progress_thread_is_for_jobs_in_par() {
    let job = open_as(Table::<Par>::new()).expect("a job of one");
    drop(job.progress_thread().expect("a thread"));
    job.close().expect("closed");

    let job = open_as(Table::<Seq>::new()).expect("a job of one");
    assert!(job.progress_thread().is_err_and(|e| e.to_string().contains("seq mode")));
    job.close().expect("closed");
}

/// A message to this rank itself, and its reply, are handled in the call, on the thread that sends it, whoever else polls.
#[test]
fn what_a_rank_sends_to_itself_is_handled_in_the_call() {
    let ran_on = Arc::new(Mutex::new(Vec::new()));
    let seen =
        |on: &Arc<Mutex<Vec<_>>>| on.lock().expect("nobody panicked").push(std::thread::current().id());
    let mut table = Table::<Par>::new();
    let there = ran_on.clone();
    let reply = table.short_reply("reply", move |_: Reply<'_>, _: u32| seen(&there)).expect("registered");
    let there = ran_on.clone();
    let request = table.short_request("request", move |request: Request<'_, Par>, x: u32| {
        seen(&there);
        let replied = request.reply_short(reply, x);
        // Back in the request's handler, in which nothing is sent.
        assert_eq!(there.lock().expect("nobody panicked").len() % 2, 0, "the reply was handled in the call");
        replied
    });
    let request = request.expect("registered");
    let job = open_as(table).expect("a job of one");
    let progress = job.progress_thread().expect("a thread");
    let agent = job.agent().expect("an agent");
    for rounds in 1..=100 {
        agent.request_short(0, request, 7).expect("sent");
        let on = ran_on.lock().expect("nobody panicked");
        assert_eq!(*on, vec![std::thread::current().id(); 2 * rounds]);
    }
    assert_eq!(agent.poll().expect("nothing went wrong in a handler"), 0);
    drop(progress);
    job.close().expect("closed");
}

/// In a job of one rank a team is that rank, whatever it is made by; everyone is the same team however often it is asked for.
#[test]
fn teams_of_a_job_of_one_rank() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let (everyone, same) = (job.everyone(), job.everyone());
    let split = everyone.split(&agent, Some(3), -1)?.expect("a team");
    let created = same.create(&agent, [0])?.expect("a team");
    assert!(everyone.split(&agent, None, 0)?.is_none());
    assert_eq!((everyone.number(), split.number(), created.number()), (0, 1, 2));
    assert_eq!(format!("{split:?}"), "team 0x1, member 0 of 1");
    let on = agent.on(&split);
    assert_eq!((on.rank(), on.ranks(), split.iter().collect::<Vec<_>>()), (0, 1, vec![0]));
    let place: GlobalPtr<u64> = job.alloc(1)?;
    on.put_value(place, 9)?;
    assert_eq!(agent.on(&created).get_value(place)?, 9);
    let phase = on.barrier_begin()?;
    assert!(on.barrier_begin().is_err_and(|e| e.to_string().contains("begun twice")));
    agent.barrier()?; // another's
    phase.wait(&on)?;
    assert!(everyone.create(&agent, [0, 0]).is_err_and(|e| e.to_string().contains("both be rank 0")));
    job.close()
}

/// Two ranks of this process, each of which does `other` on another thread when this one closes the job; what came of that, and when.
fn closed_meanwhile(
    other: impl Fn(&Job<Par>) -> Result<(), Error> + Sync,
) -> Vec<(Result<(), Error>, Duration)> {
    let rank = |bootstrap: Together| {
        let config = Config::from_env().expect("settings").segment(1 << 16);
        let job = Job::open_by(Box::new(bootstrap), config, Table::<Par>::new()).expect("a job");
        std::thread::scope(|scope| {
            let (begins, begun) = mpsc::channel();
            let (job, other) = (&job, &other);
            let waits = scope.spawn(move || {
                begins.send(()).expect("somebody waits");
                (other(job), Instant::now())
            });
            begun.recv().expect("the other thread has begun");
            // So long that it sleeps.
            std::thread::sleep(Duration::from_millis(50));
            job.close().expect("closed");
            let closed = Instant::now();
            let (outcome, ended) = waits.join().expect("no panic");
            (outcome, ended.saturating_duration_since(closed))
        })
    };
    let ranks = Together::ranks(2).expect("a bootstrap");
    std::thread::scope(|scope| {
        let ranks: Vec<_> = ranks.into_iter().map(|bootstrap| scope.spawn(|| rank(bootstrap))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

/// What a rank does on another thread.
type Part<'a> = &'a (dyn Fn(&Job<Par>) -> Result<(), Error> + Sync);

/// The first rank is in a collective that the second has no part in: on the board, and by messages.
#[test]
fn a_job_that_is_closed_ends_a_collective_of_another_thread() {
    let short = |job: &Job<Par>| job.everyone().reduce_all(&job.agent()?, &mut [1u64], |a, b| a + b);
    let by_messages = |job: &Job<Par>| {
        let (mut all, counts) = ([0u64; 2], [1, 1]);
        job.everyone().gather_each(&job.agent()?, 0, &[1], &mut all, &counts)
    };
    let long =
        |job: &Job<Par>| job.everyone().reduce_all(&job.agent()?, &mut vec![1u64; 50_000], |a, b| a + b);
    let ways: [Part<'_>; 3] = [&short, &by_messages, &long];
    for way in ways {
        let ended = closed_meanwhile(|job| if job.rank() == 0 { way(job) } else { Ok(()) });
        let [(first, took), (second, _)] = &ended[..] else { panic!("two ranks") };
        let said = first.as_ref().map_err(ToString::to_string);
        assert_eq!(said, Err("the job is closed: nothing goes on in it".into()));
        assert!(*took < Duration::from_secs(1), "told {took:?} after the end");
        assert_eq!(second.as_ref().err().map(ToString::to_string), None);
    }
}

/// Both ranks do one collective after the other, of all lengths, until the job is closed under them.
#[test]
fn a_job_is_closed_among_collectives_of_other_threads() {
    for round in 0..10 {
        let ended = closed_meanwhile(|job| {
            let (agent, everyone) = (job.agent()?, job.everyone());
            for number in round.. {
                let mut values = vec![1u64; [1, 700, 1, 20_000][number % 4]];
                match number % 3 {
                    0 => everyone.reduce_all(&agent, &mut values, |a, b| a + b)?,
                    1 => everyone.broadcast(&agent, number as u32 / 3 % 2, &mut values)?,
                    _ => {
                        let mut all = vec![0; 2 * values.len()];
                        everyone.all_gather(&agent, &values, &mut all)?;
                    }
                }
            }
            Ok(())
        });
        for (outcome, took) in ended {
            let said = outcome.map_err(|error| error.to_string());
            assert_eq!(said, Err("the job is closed: nothing goes on in it".into()));
            assert!(took < Duration::from_secs(1), "told {took:?} after the end");
        }
    }
}
