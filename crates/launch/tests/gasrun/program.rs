//! Programs whose operations are known, for the cases that observe them.

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use gasworks::{Agent, Config, Error, Job, Landed, Part, Payload, Request, Seq, Table};
use nix::sys::signal::Signal;

/// Of each rank, to the next one.
pub const SHORTS: u64 = 10;
pub const MEDIUMS: u64 = 5;
pub const MEDIUM: usize = 100;
pub const LONGS: u64 = 3;
pub const LONG: usize = 5000;
pub const PUTS: u64 = 7;
pub const GETS: u64 = 4;
pub const GET: usize = 70_000;
/// With the one at the end of the job.
pub const BARRIERS: u64 = 3;

pub fn act(action: &str) -> ExitCode {
    let outcome = match action {
        "counts" => counts(),
        "collectives" => collectives(),
        "again" => again(),
        "die-in-a-handler" => die_in_a_handler(),
        "die-with-given-memory" => with_given_memory(true),
        "hang-with-given-memory" => with_given_memory(false),
        "hang-in-a-loop" => hang_in_a_loop(),
        "hang-in-a-wait" => hang_in_a_wait(),
        "hang-in-a-collective" => hang_in_a_collective(),
        _ => Err(Error::Program(format!("no action {action:?}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(99)
        }
    }
}

fn open(table: Table<Seq>) -> Result<Job<Seq>, Error> {
    Job::open(Config::from_env()?.segment(1 << 20), table)
}

/// So many jobs after the first ones, by which a process is settled.
const JOBS: u32 = 1000;
const FIRST_JOBS: u32 = 20;

/// What a process has open, how many threads and mappings it has, and the bytes that it has of its own.
fn held() -> [usize; 4] {
    let count = |place: &str| std::fs::read_dir(place).expect("a folder").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a file");
    let own = gasworks_os::memory_use::own().expect("known").anonymous;
    [count("/proc/self/fd"), count("/proc/self/task"), maps.lines().count(), own as usize]
}

/// Many jobs one after the other, in each of which ranks meet, make a team, put and do collectives; nothing of a job is left.
fn again() -> Result<(), Error> {
    let mut first = None;
    for number in 0..FIRST_JOBS + JOBS {
        let job = open(Table::new())?;
        let agent = job.agent()?;
        let next = agent.segment((agent.rank() + 1) % agent.ranks())?;
        agent.put_value(next.at::<u32>(0, 1)?, number)?;
        let team = job.everyone().split(&agent, Some(0), -i64::from(agent.rank()))?.expect("a team");
        let mut sum = [number; 2];
        team.reduce_all(&agent, &mut sum, |a, b| a + b)?;
        agent.on(&team).barrier()?;
        let got: u32 = agent.get_value(agent.segment(agent.rank())?.at(0, 1)?)?;
        if sum != [agent.ranks() * number; 2] || got != number {
            return Err(Error::Program(format!("job {number}: {sum:?} and {got}")));
        }
        drop(team);
        job.close()?;
        if number + 1 == FIRST_JOBS {
            first = Some(held());
        }
    }
    let (first, last) = (first.expect("there were some"), held());
    // Of the first jobs something may still be on its way out; what is allocated and given back grows by some pages.
    if (0..3).any(|of| last[of] > first[of]) || last[3] > first[3] + (64 << 10) {
        return Err(Error::Program(format!("after {FIRST_JOBS} jobs {first:?}, after {JOBS} more {last:?}")));
    }
    Ok(())
}

fn collectives() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let everyone = job.everyone();
    let mut word = [u64::from(agent.rank())];
    everyone.broadcast(&agent, 1, &mut word)?;
    everyone.broadcast(&agent, 2, &mut word)?;
    everyone.reduce_all(&agent, &mut [1u64; 75], |a, b| a + b)?;
    let all = everyone.split(&agent, Some(0), 0)?.expect("a rank with a colour has a team");
    all.gather(&agent, 0, &[1u8; 9], &mut [0; 27][..if agent.rank() == 0 { 27 } else { 0 }])?;
    drop(all);
    agent.barrier()?;
    job.close()
}

fn counts() -> Result<(), Error> {
    let (handled, replies) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let more = |count: &Rc<Cell<u64>>| {
        let count = count.clone();
        move || count.set(count.get() + 1)
    };
    let (short_came, medium_came, long_came) = (more(&handled), more(&handled), more(&handled));
    let reply_came = more(&replies);
    let mut table = Table::new();
    let pong = table.short_reply("pong", move |_, _: u64| reply_came())?;
    let ping = table.short_request("ping", move |request: Request<'_, Seq>, x: u64| {
        short_came();
        request.reply_short(pong, x)
    })?;
    let medium =
        table.medium_request("medium", move |_: Request<'_, Seq>, _: u32, _: Payload<'_>| medium_came())?;
    let long = table.long_request("long", move |_: Request<'_, Seq>, _: u32, _: Landed| long_came())?;
    let job = open(table)?;
    let agent = job.agent()?;
    let next = (agent.rank() + 1) % agent.ranks();
    agent.barrier()?;
    for i in 0..SHORTS {
        agent.request_short(next, ping, i)?;
    }
    for _ in 0..MEDIUMS {
        agent.request_medium(next, medium, 0u32, &[1; MEDIUM])?;
    }
    let place = agent.segment(next)?.at::<u8>(0, GET as u64)?;
    for _ in 0..LONGS {
        agent.request_long(long, 0u32, &[2; LONG], place)?;
    }
    agent.wait_until(|| handled.get() == SHORTS + MEDIUMS + LONGS && replies.get() == SHORTS)?;
    agent.barrier()?;
    move_bytes(&agent, next)?;
    job.close()
}

/// Puts and gets, each of which is checked.
fn move_bytes(agent: &Agent<'_, Seq>, next: u32) -> Result<(), Error> {
    let segment = agent.segment(next)?;
    for i in 0..PUTS {
        agent.put_value(segment.at::<u64>(GET as u64 / 8 * 8 + 8 * i, 1)?, 3 * i)?;
    }
    let mut bytes = vec![0u8; GET];
    for _ in 0..GETS - 1 {
        agent.get(segment.at::<u8>(0, GET as u64)?, &mut bytes)?;
    }
    let last = agent.get_owned(segment.at::<u8>(0, GET as u64)?, GET)?.wait(agent)?;
    assert!(last == bytes && bytes[..LONG].iter().all(|&byte| byte == 2), "what landed is not what was sent");
    Ok(())
}

/// The last rank is killed while it handles a message.
fn die_in_a_handler() -> Result<(), Error> {
    let mut table = Table::new();
    let fatal = table.short_request("fatal", |_: Request<'_, Seq>, _: u32| {
        nix::sys::signal::raise(Signal::SIGKILL).map_err(|e| Error::Program(e.to_string()))
    })?;
    let job = open(table)?;
    let agent = job.agent()?;
    if agent.rank() == 0 {
        agent.request_short(agent.ranks() - 1, fatal, 0)?;
    }
    agent.barrier()?;
    agent.wait_until(|| false)
}

/// All ranks meet twice; then the last one computes for ever, and the others wait for it.
fn hang_in_a_loop() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    agent.barrier()?;
    agent.barrier()?;
    if agent.rank() + 1 == agent.ranks() {
        println!("it hangs");
        loop {
            std::hint::spin_loop();
        }
    }
    agent.barrier()
}

/// Rank 0 gets from memory that rank 1 gave, which polls no more after the first; or again and again, until rank 1 is killed.
fn with_given_memory(dies: bool) -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let region = job.create_region_of(Part::of(vec![7u64; 100_000].into_boxed_slice()))?;
    let mut found = vec![0u64; 100_000];
    if agent.rank() == 0 {
        agent.get(region.at(1, 0, 100_000)?, &mut found)?;
        assert!(found.iter().all(|&word| word == 7), "what was got is not what was given");
    }
    agent.barrier()?;
    if agent.rank() == 1 {
        std::thread::sleep(Duration::from_millis(if dies { 200 } else { 50_000 }));
        return nix::sys::signal::raise(Signal::SIGKILL).map_err(|e| Error::Program(e.to_string()));
    }
    if dies {
        loop {
            agent.get(region.at(1, 0, 100_000)?, &mut found)?;
        }
    }
    println!("it hangs");
    agent.barrier()
}

/// Rank 0 uses up its credits for rank 1, which polls no more; rank 0 then waits for a credit.
/// The last rank stays away from two collectives of its team, of which one is begun by the others and one waited for.
fn hang_in_a_collective() -> Result<(), Error> {
    let job = open(Table::new())?;
    let agent = job.agent()?;
    let team =
        job.everyone().split(&agent, Some(agent.rank() % 2), 0)?.expect("a rank with a colour has a team");
    agent.barrier()?;
    if agent.rank() + 1 == agent.ranks() {
        std::thread::sleep(Duration::from_secs(50));
        return Ok(());
    }
    if agent.rank() == 0 {
        println!("it hangs");
    }
    let begun = team.begin_all_gather(&agent, vec![agent.rank(); 3])?;
    team.reduce_all(&agent, &mut [1u64], |a, b| a + b)?;
    begun.wait(&agent)?;
    job.everyone().broadcast(&agent, agent.ranks() - 1, &mut [0u8; 9])
}

fn hang_in_a_wait() -> Result<(), Error> {
    let mut table = Table::new();
    let nothing = table.short_request("nothing", |_: Request<'_, Seq>, _: u32| ())?;
    let job = open(table)?;
    let agent = job.agent()?;
    agent.barrier()?;
    if agent.rank() == 1 {
        std::thread::sleep(Duration::from_secs(50));
        return Ok(());
    }
    println!("it hangs");
    loop {
        agent.request_short(1, nothing, 0)?;
    }
}
