//! The job: its ranks, the one loop that waits for all of them, and the judgement of what happened.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use gasworks_bootstrap::server::{Output, Phase, Server};
use gasworks_os::process::{self, Exit};
use gasworks_os::signals::{self, Signals};
use gasworks_os::{affinity, limits, random};
use gasworks_sock::{Channel, Event, Filled, Interest, Set};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::Signal;

use crate::guardian::Guardian;
use crate::options::{Bind, Options};
use crate::spawn::{self, Input, Plan, Streams};
use crate::stdin::{self, Terminal};
use crate::stream::{Sink, Source};
use crate::{code, report, sweep};

/// Who an event of the set is about: four tokens for each rank, and these.
pub(crate) mod token {
    pub(crate) const SIGNALS: u64 = u64::MAX - 1;
    pub(crate) const STDOUT: u64 = u64::MAX - 2;
    pub(crate) const STDERR: u64 = u64::MAX - 3;
    pub(crate) const TERMINAL: u64 = u64::MAX - 4;
    pub(crate) const RANK0_INPUT: u64 = u64::MAX - 5;
    /// Kinds of a rank's own: its token is four times the rank and this.
    pub(crate) const PMI: u64 = 0;
    pub(crate) const OUT: u64 = 1;
    pub(crate) const ERR: u64 = 2;
}

/// Signals that are passed on to the ranks.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];
/// How long ranks have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a rank may live on after it closed its connection without a word: as a rule it is just dying.
const CLOSING: Duration = Duration::from_millis(500);
/// How long the streams may take to run dry after everything that could write has ended.
const DRAIN: Duration = Duration::from_secs(2);
/// What is read of a rank that has ended before that is judged: all that a pipe holds. Something that the rank left
/// behind may write for ever.
const LAST_WORDS: usize = 1 << 20;
/// With more than this to be sent to a rank, it is not listened to any more.
const HIGH: usize = 1 << 20;

/// Why a job did not even start, and the exit code for that.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) why: anyhow::Error,
    pub(crate) code: i32,
}

impl<E: Into<anyhow::Error>> From<E> for Refused {
    fn from(e: E) -> Self {
        Refused { why: e.into(), code: code::FAILED }
    }
}

#[derive(Debug)]
struct Rank {
    pid: i32,
    exit: Option<Exit>,
    connection: Option<Channel>,
    /// What the set waits for on it.
    interest: Interest,
    /// The connection after the rank closed its end.
    hung_up: Option<Channel>,
    out: Option<Source>,
    err: Option<Source>,
}

#[derive(Debug)]
struct Job {
    set: Set,
    server: Server,
    ranks: Vec<Rank>,
    living: usize,
    signals: Signals,
    guardian: Guardian,
    stdout: Sink,
    stderr: Sink,
    /// Whether the ranks' streams are in the set: taken out while a sink is full.
    reading: [bool; 2],
    terminal: Option<Terminal>,
    /// When which rank closed its connection before it was to.
    hang_ups: VecDeque<(Instant, u32)>,
    verbose: bool,
    kills_before: u64,
    /// Set by the first thing that went wrong.
    failed: bool,
    code: Option<i32>,
    /// The rank that asked for the end: its own code is the job's.
    aborter: Option<u32>,
    /// The signal of those that end a program that was passed on.
    ended_by: Option<Signal>,
    timeout: Option<(Instant, Duration)>,
    kill_at: Option<Instant>,
}

/// Runs a job.
pub(crate) fn run(options: &Options) -> Result<i32, Refused> {
    if options.program.is_empty() {
        return Err(Refused { why: anyhow!("start a job: no program was given"), code: code::USAGE });
    }
    let verbose = options.verbose || report::VERBOSE.boolean()?;
    let processors = processors(options)?;
    let name = format!("gasrun-{}-{}", std::process::id(), random::hex(&random::nonce()?[..6]));
    let guardian = Guardian::start(&spawn::marker(&name)).context("start the guardian process")?;
    let mut job = Job::new(options, &name, guardian, verbose)?;
    let started = job.start(options, name, processors.as_deref());
    if started.is_ok() {
        job.attend();
    }
    let code = job.end();
    started.map(|()| code)
}

/// The processors to bind to, one for each rank.
fn processors(options: &Options) -> Result<Option<Vec<usize>>, Refused> {
    let (ranks, allowed) = (options.ranks as usize, affinity::allowed()?);
    match options.bind {
        Some(Bind::None) => Ok(None),
        Some(Bind::Core) if allowed.len() < ranks => {
            let why = anyhow!("bind {ranks} ranks to {} processors: too few; use --bind none", allowed.len());
            Err(Refused { why, code: code::USAGE })
        }
        _ => Ok((allowed.len() >= ranks).then_some(allowed)),
    }
}

/// Makes room for the descriptors of so many ranks; gives the limit that ranks should have.
fn raise_open_files(ranks: u32) -> Result<Option<(rlim_t, rlim_t)>, Refused> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = rlim_t::from(ranks) * 3 + 64;
    if soft >= needed {
        return Ok(None);
    }
    if hard < needed {
        let why = anyhow!(
            "start {ranks} ranks: that takes {needed} open descriptors, and the limit (ulimit -Hn) is {hard}"
        );
        return Err(Refused { why, code: code::FAILED });
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?;
    Ok(Some((soft, hard)))
}

impl Job {
    fn new(options: &Options, name: &str, guardian: Guardian, verbose: bool) -> Result<Self, Refused> {
        process::become_subreaper()?;
        // What whoever started this process told it to ignore (nohup) is not for the ranks either.
        let ignored = signals::ignored();
        let mut watched = PASSED_ON.to_vec();
        watched.retain(|signal| !ignored.contains(signal));
        watched.push(Signal::SIGCHLD);
        let signals = Signals::block(&watched)?;
        let set = Set::new()?;
        set.add(&signals, token::SIGNALS, Interest::Read)?;
        Ok(Self {
            set,
            server: Server::new(options.ranks, name),
            ranks: Vec::with_capacity(options.ranks as usize),
            living: 0,
            signals,
            guardian,
            stdout: Sink::new(io::stdout(), token::STDOUT)?,
            stderr: Sink::new(io::stderr(), token::STDERR)?,
            reading: [true; 2],
            terminal: None,
            hang_ups: VecDeque::new(),
            verbose,
            kills_before: limits::out_of_memory_kills(),
            failed: false,
            code: None,
            aborter: None,
            ended_by: None,
            timeout: options.timeout.map(|t| (Instant::now() + t, t)),
            kill_at: None,
        })
    }

    fn say(&mut self, text: &str) {
        self.stderr.line(&format!("gasrun: {text}"));
    }

    fn start(&mut self, options: &Options, job: String, processors: Option<&[usize]>) -> Result<(), Refused> {
        let alone = options.ranks == 1 && !options.label;
        let plan = Plan {
            program: options.program.clone(),
            signal_mask: self.signals.mask_before(),
            ranks: options.ranks,
            job,
            streams: if alone { Streams::Inherited } else { Streams::Piped },
            open_files: raise_open_files(options.ranks)?,
        };
        for rank in 0..options.ranks {
            let processor = processors.map(|all| all[rank as usize]);
            let input = if rank == 0 { stdin::input() } else { Input::Null };
            let (mut child, connection) =
                spawn::rank(&plan, rank, processor, input).map_err(|e| cannot_start(&plan, rank, e))?;
            let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
            self.guardian.announce(pid);
            let connection = Channel::new(connection)?;
            let base = u64::from(rank) * 4;
            self.set.add(&connection, base + token::PMI, Interest::Read)?;
            let label = if options.label { format!("[{rank}] ") } else { String::new() };
            let source = |fd: Option<OwnedFd>, kind| -> Result<Option<Source>, Refused> {
                let Some(fd) = fd else { return Ok(None) };
                let source = Source::new(fd, label.clone(), !alone)?;
                self.set.add(&source, base + kind, Interest::Read)?;
                Ok(Some(source))
            };
            let out = source(child.stdout.take().map(OwnedFd::from), token::OUT)?;
            let err = source(child.stderr.take().map(OwnedFd::from), token::ERR)?;
            if let Some(pipe) = child.stdin.take() {
                self.terminal = Some(Terminal::new(pipe.into(), &self.set)?);
            }
            self.ranks.push(Rank {
                pid,
                exit: None,
                connection: Some(connection),
                interest: Interest::Read,
                hung_up: None,
                out,
                err,
            });
            self.living += 1;
            if self.verbose {
                let place = processor.map_or_else(String::new, |cpu| format!(" on processor {cpu}"));
                self.say(&format!("started rank {rank} as process {pid}{place}"));
            }
        }
        Ok(())
    }

    /// Serves the ranks until all have ended.
    fn attend(&mut self) {
        let mut events = Vec::new();
        while self.living > 0 {
            if let Err(e) = self.turn(&mut events) {
                // The set itself does not work any more: nothing can be waited for.
                self.fail(&format!("wait for the ranks: {e}"), Some(code::FAILED), None);
                return;
            }
        }
    }

    fn turn(&mut self, events: &mut Vec<Event>) -> anyhow::Result<()> {
        self.flush()?;
        let timeout = self.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
        self.set.wait(timeout, events)?;
        // What ranks said comes before the news that they ended.
        for event in events.iter().filter(|event| event.token != token::SIGNALS) {
            match event.token {
                token::STDOUT | token::STDERR => {}
                token::TERMINAL | token::RANK0_INPUT => {
                    if let Some(terminal) = &mut self.terminal {
                        terminal.turn(event.token == token::TERMINAL, &self.set)?;
                    }
                }
                of_rank => {
                    let rank = u32::try_from(of_rank / 4).unwrap_or(u32::MAX);
                    match of_rank % 4 {
                        token::PMI => self.listen(rank)?,
                        kind => self.read(rank, kind, 64 << 10)?,
                    }
                }
            }
        }
        while let Some((signal, sender)) = self.signals.take() {
            if signal != Signal::SIGCHLD {
                self.pass_on(signal, sender);
            }
        }
        while let Some((pid, exit)) = process::reap() {
            self.ended(pid, exit)?;
        }
        self.look_at_the_clock();
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.failed {
            return self.kill_at;
        }
        let closing = self.hang_ups.front().map(|&(at, _)| at + CLOSING);
        let timeout = self.timeout.map(|(at, _)| at);
        [closing, timeout].into_iter().flatten().min()
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        if self.failed {
            if self.kill_at.is_some_and(|at| at <= now) {
                self.kill_at = None;
                self.signal_living(Signal::SIGKILL, None);
            }
            return;
        }
        if let Some((at, allowed)) = self.timeout
            && at <= now
        {
            let left: Vec<u32> =
                (0u32..).zip(&self.ranks).filter(|(_, r)| r.exit.is_none()).map(|(i, _)| i).collect();
            let seconds = allowed.as_secs_f64();
            let text = format!("the job did not end within {seconds} s: still running: {}", list(&left));
            self.fail(&text, Some(code::TIMED_OUT), None);
            return;
        }
        while let Some(&(at, rank)) = self.hang_ups.front()
            && at + CLOSING <= now
        {
            self.hang_ups.pop_front();
            if self.ranks[rank as usize].exit.is_none() {
                let text = format!("{} closed its connection to gasrun before finalize", self.who(rank));
                self.fail(&text, Some(code::FAILED), None);
            }
        }
    }

    fn who(&self, rank: u32) -> String {
        format!("rank {rank} (pid {})", self.ranks[rank as usize].pid)
    }

    /// The job has failed: says why, once, and ends the ranks, all but `spare` at once.
    fn fail(&mut self, text: &str, code: Option<i32>, spare: Option<u32>) {
        if self.failed {
            return;
        }
        self.failed = true;
        self.code = code;
        self.say(text);
        self.signal_living(Signal::SIGTERM, spare);
        self.kill_at = Some(Instant::now() + GRACE);
    }

    fn signal_living(&mut self, signal: Signal, spare: Option<u32>) {
        if self.verbose {
            self.say(&format!("sending {signal} to the ranks that still run"));
        }
        for (rank, r) in (0u32..).zip(&self.ranks) {
            if r.exit.is_none() && Some(rank) != spare {
                // A group that is gone has ended already, which is about to be noticed.
                let _ = process::kill_group(r.pid, signal);
            }
        }
    }

    fn pass_on(&mut self, signal: Signal, sender: u32) {
        let ends = !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2);
        if self.verbose {
            self.say(&format!("{signal} came from process {sender}"));
        }
        if ends && self.ended_by.is_some() {
            self.fail(
                &format!("a second signal came ({signal}): killing the ranks"),
                Some(128 + signal as i32),
                None,
            );
            self.signal_living(Signal::SIGKILL, None);
            return;
        }
        if ends {
            self.ended_by = Some(signal);
        }
        self.signal_living(signal, None);
    }

    /// Reads what a rank wrote, as long as there is room for it.
    fn read(&mut self, rank: u32, kind: u64, enough: usize) -> anyhow::Result<()> {
        let r = &mut self.ranks[rank as usize];
        let (source, sink) = match kind {
            token::OUT => (&mut r.out, &mut self.stdout),
            _ => (&mut r.err, &mut self.stderr),
        };
        if source.as_mut().is_some_and(|s| s.turn(enough, sink)) {
            // Closing it takes it out of the set: no other process holds this end.
            *source = None;
        }
        Ok(())
    }

    /// Writes what waits for readers; stops reading from ranks while a reader is too slow.
    fn flush(&mut self) -> anyhow::Result<()> {
        self.stdout.flush(&self.set)?;
        self.stderr.flush(&self.set)?;
        let before @ [out, err] = self.reading;
        self.reading = [!self.stdout.is_full(), !self.stderr.is_full()];
        if before == self.reading && !self.stdout.broken && !self.stderr.broken {
            return Ok(());
        }
        for (rank, r) in (0u64..).zip(&mut self.ranks) {
            // Nobody reads this stream any more: the ranks find out as they would without gasrun.
            if self.stdout.broken {
                r.out = None;
            }
            if self.stderr.broken {
                r.err = None;
            }
            let streams =
                [(&r.out, out, self.reading[0], token::OUT), (&r.err, err, self.reading[1], token::ERR)];
            for (source, before, now, kind) in streams {
                match source {
                    Some(source) if before && !now => self.set.remove(source)?,
                    Some(source) if now && !before => {
                        self.set.add(source, rank * 4 + kind, Interest::Read)?
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Hears what a rank has to say to the server, and answers.
    fn listen(&mut self, rank: u32) -> anyhow::Result<()> {
        let Some(connection) = &mut self.ranks[rank as usize].connection else { return Ok(()) };
        let filled =
            if connection.unwritten() > HIGH { Ok(Filled::Bytes(0)) } else { connection.fill(64 << 10) };
        let mut outputs = Vec::new();
        self.server.feed(rank, connection.inbox(), &mut outputs);
        let closed = !matches!(filled, Ok(Filled::Bytes(_)));
        for output in outputs {
            self.act(output)?;
        }
        self.look_for_stuck();
        self.send(rank)?;
        if closed {
            self.hang_up(rank)?;
        }
        Ok(())
    }

    fn act(&mut self, output: Output) -> anyhow::Result<()> {
        match output {
            Output::Send { rank, bytes } => {
                if let Some(connection) = &mut self.ranks[rank as usize].connection {
                    connection.post(&bytes);
                    self.send(rank)?;
                }
            }
            Output::Joined { rank } => {
                if self.verbose {
                    self.say(&format!("rank {rank} has joined"));
                }
            }
            Output::Finalized { rank } => {
                if self.verbose {
                    self.say(&format!("rank {rank} is about to end in good order"));
                }
            }
            Output::Abort { rank, message } => {
                let printable: String = message.chars().filter(|c| !c.is_control()).take(512).collect();
                let text = if printable.is_empty() { String::new() } else { format!(": {printable}") };
                if !self.failed {
                    self.aborter = Some(rank);
                }
                self.fail(&format!("{} aborted the job{text}", self.who(rank)), None, Some(rank));
            }
            Output::Broken { rank, what } => {
                self.fail(&format!("{}: {what}", self.who(rank)), Some(code::FAILED), None);
            }
        }
        Ok(())
    }

    fn send(&mut self, rank: u32) -> anyhow::Result<()> {
        let r = &mut self.ranks[rank as usize];
        let Some(connection) = &mut r.connection else { return Ok(()) };
        match connection.flush() {
            Ok(_) => {
                let waiting = connection.unwritten();
                let interest = Interest::new(waiting <= HIGH, waiting > 0);
                if interest != r.interest {
                    self.set.modify(&*connection, u64::from(rank) * 4 + token::PMI, interest)?;
                    r.interest = interest;
                }
                Ok(())
            }
            Err(_) => self.hang_up(rank),
        }
    }

    /// A rank has closed its connection. Our end of it stays open until the rank ends: closing it would tell the rank
    /// that the launcher is gone.
    fn hang_up(&mut self, rank: u32) -> anyhow::Result<()> {
        let r = &mut self.ranks[rank as usize];
        let Some(connection) = r.connection.take() else { return Ok(()) };
        self.set.remove(&connection)?;
        r.hung_up = Some(connection);
        if matches!(self.server.phase(rank), Phase::Greeted | Phase::Joined | Phase::InFence) {
            self.hang_ups.push_back((Instant::now(), rank));
        }
        Ok(())
    }

    /// A process has ended: a rank, or something that a rank left behind.
    fn ended(&mut self, pid: i32, exit: Exit) -> anyhow::Result<()> {
        let Some(rank) = self.ranks.iter().position(|r| r.pid == pid && r.exit.is_none()) else {
            return Ok(());
        };
        let rank = rank as u32;
        // Its last words first: what it said to the server, and what it wrote.
        self.listen(rank)?;
        self.read(rank, token::OUT, LAST_WORDS)?;
        self.read(rank, token::ERR, LAST_WORDS)?;
        let r = &mut self.ranks[rank as usize];
        r.exit = Some(exit);
        (r.connection, r.hung_up) = (None, None);
        self.living -= 1;
        self.server.gone(rank);
        if self.verbose {
            self.say(&format!("{} {exit}", self.who(rank)));
        }
        if self.aborter == Some(rank) && self.code.is_none() && exit.code() != 0 {
            self.code = Some(exit.code());
        }
        let midway = matches!(self.server.phase(rank), Phase::Greeted | Phase::Joined | Phase::InFence);
        match exit {
            Exit::Signal(signal) if self.ended_by.is_some_and(|s| s as i32 == signal) => {
                let name = signals::name(signal);
                let text = format!("the job was ended by signal {signal} ({name}), passed on to all ranks");
                self.fail(&text, Some(exit.code()), None);
            }
            Exit::Signal(signal) => {
                let for_memory =
                    signal == Signal::SIGKILL as i32 && limits::out_of_memory_kills() > self.kills_before;
                let why = if for_memory { ", by the kernel for lack of memory" } else { "" };
                self.fail(&format!("{} {exit}{why}", self.who(rank)), Some(exit.code()), None);
            }
            Exit::Code(0) if midway => {
                let text = format!("{} exited with code 0 without finalize", self.who(rank));
                self.fail(&text, Some(code::FAILED), None);
            }
            Exit::Code(0) => self.look_for_stuck(),
            Exit::Code(code) => {
                self.fail(&format!("{} {exit}", self.who(rank)), Some(code), None);
            }
        }
        Ok(())
    }

    fn look_for_stuck(&mut self) {
        if self.failed {
            return;
        }
        if let Some((waiting, gone)) = self.server.stuck() {
            let text = format!("{} has ended, and rank {waiting} waits for it in a fence", self.who(gone));
            self.fail(&text, Some(code::FAILED), None);
        }
    }

    /// Ends what is left, passes on the last output, and gives the exit code.
    fn end(mut self) -> i32 {
        let groups: Vec<i32> = self.ranks.iter().map(|r| r.pid).collect();
        if self.living > 0 {
            self.signal_living(Signal::SIGKILL, None);
        }
        let found = sweep::leftovers(&groups, self.guardian.pid());
        if found > 0 && self.verbose {
            self.say(&format!("ended {found} processes or groups that the ranks had left"));
        }
        self.drain();
        self.guardian.release();
        match self.failed {
            true => self.code.unwrap_or(code::FAILED),
            false => 0,
        }
    }

    /// Everything that could write has ended: passes on what is still in the pipes.
    fn drain(&mut self) {
        let mut events = Vec::new();
        let mut deadline = Instant::now() + DRAIN;
        loop {
            for rank in 0..self.ranks.len() as u32 {
                for kind in [token::OUT, token::ERR] {
                    let full = if kind == token::OUT { self.stdout.is_full() } else { self.stderr.is_full() };
                    if !full {
                        // Reading fails only as an end, which is what is waited for.
                        let _ = self.read(rank, kind, 64 << 10);
                    }
                }
            }
            let before = (self.stdout.is_empty(), self.stderr.is_empty());
            let flushed = self.flush().is_ok();
            let written = self.stdout.is_empty() && self.stderr.is_empty();
            let dry = self.ranks.iter().all(|r| r.out.is_none() && r.err.is_none());
            if !flushed || (written && (dry || Instant::now() >= deadline)) {
                return;
            }
            if before == (true, true) || written {
                // Something outside the job holds a pipe open: a moment more, not for ever.
                let _ = self.set.wait(Some(Duration::from_millis(5)), &mut events);
            } else {
                // A slow reader may take its time: every turn waits for it.
                deadline = Instant::now() + DRAIN;
                let _ = self.set.wait(Some(Duration::from_millis(100)), &mut events);
            }
        }
    }
}

/// The reason and the code for a program that cannot be started.
fn cannot_start(plan: &Plan, rank: u32, e: io::Error) -> Refused {
    let program = plan.program[0].to_string_lossy().into_owned();
    let (code, hint) = match e.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            (code::NOT_FOUND, " (it was looked for in PATH)")
        }
        io::ErrorKind::NotFound if std::path::Path::new(&program).exists() => {
            (code::NOT_FOUND, " (the file is there, the interpreter it names is not)")
        }
        io::ErrorKind::NotFound => (code::NOT_FOUND, ""),
        io::ErrorKind::PermissionDenied => (code::NOT_EXECUTABLE, " (is it an executable file?)"),
        _ if e.raw_os_error() == Some(libc::ENOEXEC) => (code::NOT_EXECUTABLE, ""),
        _ => (code::FAILED, ""),
    };
    Refused { why: anyhow!("start rank {rank}: {program}: {e}{hint}"), code }
}

/// Ranks in few words: `ranks 0-2, 5`.
fn list(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let text = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.iter().map(text).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(list(&[3]), "rank 3");
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "ranks 0-2, 5, 7-8");
    }
}
