//! The transport between real processes: this program starts itself once for each rank.
//!
//! The ranks talk and end. In a build with debug assertions one of them is also killed at every kill point in turn, and
//! the others must end by themselves, in time, without having seen anything wrong.

#[path = "processes/cut.rs"]
#[allow(unsafe_code)]
mod cut;
#[path = "processes/steps.rs"]
#[allow(unsafe_code)]
mod steps;

use gasworks_bootstrap::{Bootstrap, BootstrapError, Host, Hosts};
use gasworks_core::{Arrived, Class, Members, Name, SharedBarrier, TeamBarriers, WaitSet, Wire, WireError};
use gasworks_memory::Rights;
use gasworks_pshm::{Config, MAX_MEDIUM, Memory, Opened, open};
use gasworks_sync::{Mode, Par, Seq};
use gasworks_testkit::Case;
use std::cell::{Cell, OnceCell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

fn table() -> Vec<Case> {
    let mut table = vec![
        Case::check("a_segment_that_cannot_be_backed_is_named", cut::check),
        Case::check("an_empty_poll_does_not_depend_on_the_number_of_ranks", steps::check),
    ];
    for (ranks, mode) in [1, 2, 4, 7].into_iter().flat_map(|ranks| [(ranks, "seq"), (ranks, "par")]) {
        table.push(Case::check(format!("talk/{mode}/{ranks}"), move || {
            let ends = Run::start(mode, ranks, 30, None).finish();
            assert!(ends.iter().all(ExitStatus::success), "{ends:?}");
        }));
    }
    #[cfg(debug_assertions)]
    table.extend(deaths::cases());
    table
}

const GAVE_UP: u8 = 3;
const NOT_OPENED: u8 = 2;
const CONFIG: Config = Config { memory: Memory::of(100_000), depth: 4, total: 8, volume: 4 << 16 };
const SIZES: [usize; 5] = [0, 100, 600, 5000, MAX_MEDIUM];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rank", mode, rank, size, seconds] => {
            let number = |text: &str| text.parse::<u32>().expect("a number");
            let size = number(size);
            let start = Start {
                rank: number(rank),
                size,
                seconds: number(seconds).into(),
                host: OnceCell::new(),
                hosts: Hosts::led_by(vec![0; size as usize]),
                fresh: RefCell::default(),
                known: RefCell::default(),
            };
            if mode == "par" { rank_main::<Par>(&start) } else { rank_main::<Seq>(&start) }
        }
        ["cut"] => cut::die(),
        ["steps", mode, size] => steps::poll(mode, size.parse().expect("a number")),
        _ => gasworks_testkit::cases::main("pshm/processes", table()),
    }
}

// ---- The launcher's side.

struct Run {
    ranks: Vec<Child>,
    lines: Vec<BufReader<std::process::ChildStdout>>,
    started: Instant,
}

impl Run {
    fn start(mode: &str, size: u32, seconds: u32, kill_at: Option<&str>) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut ranks: Vec<Child> = (0..size)
            .map(|rank| {
                let mut command = Command::new(&program);
                command.args(["rank", mode, &rank.to_string(), &size.to_string(), &seconds.to_string()]);
                command.env("PMI_RANK", rank.to_string()).env("GASWORKS_ATTACH_TIMEOUT", "1.5");
                kill_at.map(|point| command.env("GASWORKS_KILL_AT", point));
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a rank")
            })
            .collect();
        let lines = ranks.iter_mut().map(|rank| BufReader::new(rank.stdout.take().expect("piped"))).collect();
        Self { ranks, lines, started: Instant::now() }
    }

    /// A fence: everybody's line to everybody; whether all have come to it.
    fn fence(&mut self) -> bool {
        let mut all = String::new();
        let complete = self.lines.iter_mut().all(|lines| {
            let mut line = String::new();
            let read = lines.read_line(&mut line).is_ok_and(|len| len > 0);
            all.push_str(line.trim_end());
            read
        });
        // A rank that was killed meanwhile does not read.
        complete
            && self
                .ranks
                .iter_mut()
                .all(|rank| writeln!(rank.stdin.as_mut().expect("piped"), "{all}").is_ok())
    }

    /// Serves the fences of the start, then waits for all. If a rank dies before, the others see the end of their input.
    fn finish(mut self) -> Vec<ExitStatus> {
        // Ranks meet between two fences; a single one meets nobody.
        let _complete = self.ranks.len() == 1 || (self.fence() && self.fence());
        self.ranks.iter_mut().for_each(|rank| drop(rank.stdin.take()));
        let deadline = self.started + Duration::from_secs(60);
        let mut ends = Vec::new();
        for rank in &mut self.ranks {
            let end = loop {
                match rank.try_wait().expect("a child") {
                    Some(end) => break end,
                    None if Instant::now() > deadline => {
                        rank.kill().expect("a child");
                        panic!("a rank did not end by itself");
                    }
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
            };
            ends.push(end);
        }
        ends
    }
}

// ---- A rank's side.

struct Start {
    rank: u32,
    size: u32,
    seconds: u64,
    host: OnceCell<Host>,
    hosts: Hosts,
    /// What was put and not fenced yet, and what was fenced.
    fresh: RefCell<String>,
    known: RefCell<String>,
}

/// Fences over standard input and output; one value, of rank 0.
impl Bootstrap for Start {
    fn rank(&self) -> u32 {
        self.rank
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn job(&self) -> &str {
        "processes"
    }
    fn put(&self, _: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.fresh.replace(gasworks_os::random::hex(value));
        Ok(())
    }
    fn fence(&self) -> Result<(), BootstrapError> {
        println!("{}", self.fresh.take());
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(0) => Err(BootstrapError::Protocol { during: "fence", what: "the launcher hung up".into() }),
            Ok(_) => {
                self.known.borrow_mut().push_str(line.trim_end());
                Ok(())
            }
            Err(source) => Err(BootstrapError::Io { during: "fence", source }),
        }
    }
    fn get(&self, _: u32, _: &str) -> Result<Vec<u8>, BootstrapError> {
        let known = self.known.borrow();
        let byte = |at| u8::from_str_radix(&known[2 * at..2 * at + 2], 16).expect("hexadecimal");
        Ok((0..known.len() / 2).map(byte).collect())
    }
    fn host(&self) -> Result<&Host, BootstrapError> {
        if self.host.get().is_none() {
            self.host.set(Host::meet(self, Duration::from_secs(10))?).expect("once");
        }
        Ok(self.host.get().expect("they have met"))
    }
    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        Ok(&self.hosts)
    }
    fn abort(&self, code: i32, message: &str) -> ! {
        eprintln!("{message}");
        std::process::exit(code)
    }
    fn finalize(&self) -> Result<(), BootstrapError> {
        Ok(())
    }
}

/// A peer is silent for too long.
struct GiveUp;

fn rank_main<M: Mode>(start: &Start) -> ExitCode {
    match open::<M>(start, &CONFIG) {
        Ok(opened) => match talk(start, opened) {
            Ok(()) => ExitCode::SUCCESS,
            Err(GiveUp) => ExitCode::from(GAVE_UP),
        },
        Err(error) => {
            eprintln!("rank {}: {error}", start.rank);
            ExitCode::from(NOT_OPENED)
        }
    }
}

fn fill(from: u32, number: u64) -> Vec<u8> {
    vec![from as u8 ^ number as u8; SIZES[number as usize % SIZES.len()]]
}

fn talk<M: Mode>(start: &Start, opened: Opened<M>) -> Result<(), GiveUp> {
    let &Start { rank: me, size, seconds, .. } = start;
    let Opened { wire, peers, barrier, teams, .. } = opened;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let alive = || if Instant::now() < deadline { Ok(()) } else { Err(GiveUp) };
    let pass = |barrier: &dyn SharedBarrier| {
        barrier.arrive(Name::Any);
        while barrier.done().is_none() {
            WaitSet::new().sleep(std::iter::once(&wire), Duration::from_millis(50), &|| true).expect("slept");
            alive()?;
        }
        Ok(())
    };
    // Each is late once, so that it finds the others asleep.
    for late in 0..size {
        if me == late {
            std::thread::sleep(Duration::from_millis(10));
        }
        pass(&barrier)?;
        // In a team of the others, too, which are in the same slot as the last ones.
        let others = Members::list((0..size).rev().filter(|&rank| rank != late), size);
        let team = others.ok().filter(|_| me != late).and_then(|others| teams.open(3, &others));
        assert_eq!(team.is_some(), me != late);
        team.as_deref().map_or(Ok(()), |team| pass(team))?;
        drop(team);
        pass(&barrier)?;
        assert!(teams.free_slots() >> 3 & 1 == 1, "all have left");
    }
    let counts = RefCell::new((0u64, 0u64));
    let out = Cell::new(0u32);
    let send = |to: u32, class: Class, number: u64| -> Result<(), WireError> {
        let bytes = fill(me, number);
        let room = wire.reserve(to, class, bytes.len())?;
        room.payload().write(&bytes);
        wire.commit(room, &[&number.to_le_bytes()[..], &[class as u8; 20]].concat())
    };
    let sink = &mut |message: Arrived<'_>| {
        let number = u64::from_le_bytes(message.head[..8].try_into().expect("a number"));
        let mut bytes = vec![0; message.payload.len()];
        message.payload.read(&mut bytes);
        assert_eq!(bytes, fill(message.from, number), "rank {me} got a spoilt payload from {}", message.from);
        assert_eq!(message.head[8..], [message.head[8]; 20]);
        if message.head[8] == Class::Request as u8 {
            send(message.from, Class::Reply, number).expect("replies always fit");
            counts.borrow_mut().0 += 1;
        } else {
            counts.borrow_mut().1 += 1;
            out.set(out.get() - 1);
        }
    };
    const ROUNDS: u64 = 60;
    for number in 0..ROUNDS {
        for to in 0..size {
            while out.get() >= CONFIG.depth || send(to, Class::Request, number) == Err(WireError::Busy { to })
            {
                wire.poll(4, sink).expect("a healthy queue");
                alive()?;
            }
            out.set(out.get() + 1);
        }
    }
    let all = (ROUNDS * u64::from(size), ROUNDS * u64::from(size));
    while *counts.borrow() != all {
        if wire.poll(4, sink).expect("a healthy queue") == 0 {
            WaitSet::new().sleep(std::iter::once(&wire), Duration::from_millis(50), &|| true).expect("slept");
        }
        alive()?;
    }
    for phase in 0..20u64 {
        let right =
            peers.reach((me + 1) % size, phase * 8, 8, Rights::all()).expect("inside").expect("mapped");
        right.write(&(u64::from(me) << 32 | phase).to_le_bytes());
        pass(&barrier)?;
        let mut found = [0; 8];
        peers.reach(me, phase * 8, 8, Rights::all()).expect("inside").expect("mapped").read(&mut found);
        assert_eq!(u64::from_le_bytes(found), u64::from((me + size - 1) % size) << 32 | phase);
        pass(&barrier)?;
    }
    Ok(())
}

// ---- Deaths.

#[cfg(debug_assertions)]
mod deaths {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// Every kill point that a rank passes, who is killed there, and at which passage.
    const POINTS: [(&str, u32, u32); 34] = [
        ("pshm.open.created", 0, 1),
        ("pshm.open.prepared", 0, 1),
        ("host.named", 0, 1),
        ("host.come", 1, 1),
        ("host.fenced", 0, 1),
        ("host.fenced", 2, 1),
        ("host.welcomed", 0, 1),
        ("host.met", 2, 1),
        ("host.given", 1, 1),
        ("host.collected", 0, 1),
        ("host.handed", 1, 1),
        ("pshm.open.gathered", 0, 1),
        ("pshm.open.gathered", 2, 1),
        ("pshm.open.mapped", 1, 1),
        ("pshm.reserve.claimed", 1, 7),
        ("core.sleep.asleep", 1, 1),
        ("inbox.reserve.claimed", 2, 3),
        ("claims.keep.kept", 1, 2),
        ("doorbell.ring.rung", 1, 1),
        ("inbox.send.placed", 1, 30),
        ("inbox.send.filled", 2, 30),
        ("inbox.send.published", 0, 30),
        ("inbox.take.consumed", 0, 1),
        ("blocks.claim.claimed", 1, 9),
        ("blocks.free.before", 1, 9),
        ("blocks.free.freed", 2, 9),
        ("doorbell.ticket.taken", 1, 1),
        ("eventcount.arm.armed", 1, 2),
        ("eventcount.count.counted", 2, 30),
        ("eventcount.disarm.disarmed", 0, 1),
        ("barrier.arrive.before", 1, 5),
        ("barrier.arrive.counted", 2, 5),
        ("barrier.arrive.counted", 0, 40),
        ("barrier.leave.left", 1, 2),
    ];

    /// A case for each.
    pub fn cases() -> impl Iterator<Item = Case> {
        POINTS.into_iter().map(|(point, victim, nth)| {
            let at = format!("{point}@{victim}#{nth}");
            Case::check(format!("killed/{at}"), move || {
                let run = Run::start("par", 3, 2, Some(&at));
                let started = run.started;
                let ends = run.finish();
                assert_eq!(ends[victim as usize].signal(), Some(9), "{at} was not passed: {ends:?}");
                for (rank, end) in ends.iter().enumerate().filter(|&(rank, _)| rank != victim as usize) {
                    let known = [0, NOT_OPENED.into(), GAVE_UP.into()];
                    let is_known = end.code().is_some_and(|code| known.contains(&code));
                    assert!(is_known, "{at}: rank {rank} ended {end}");
                }
                assert!(started.elapsed() < Duration::from_secs(10), "{at} took {:?}", started.elapsed());
            })
        })
    }
}
