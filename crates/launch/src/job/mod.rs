//! The job: its ranks, how it starts and how it ends.
//!
//! `attend` is the loop that waits for everything while it runs, `judge` decides what an event means for the job.

mod attend;
mod entrance;
mod input;
mod judge;
mod setup;
mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, PipeReader};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use gasworks_bootstrap::ExitTimeout;
use gasworks_bootstrap::server::{Output, Part, Phase, Server};
use gasworks_os::process::{self, Exit};
use gasworks_os::program::Processors;
use gasworks_os::signals::{self, Signals};
use gasworks_os::{affinity, limits, random, turns};
use gasworks_sock::{Direction, Event, Set};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::Signal;

use crate::guardian::Guardian;
use crate::inspect::{Inspector, Known};
use crate::line::Line;
use crate::meeting::MeetingSocket;
use crate::observe::Observation;
use crate::options::{Bind, Options};
use crate::remote::agent;
use crate::remote::message::{Announced, Down, Up};
use crate::spawn::{self, Input, Plan, Streams};
use crate::stdin::{self, Piped, Typed};
use crate::stream::{Sink, Source};
use crate::watched::Watched;
use crate::{code, report, sweep, token};

use entrance::Entrance;
use setup::Setup;
use tree::Tree;

/// Signals that are passed on to the ranks.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];
/// How long ranks have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a rank may live on after it closed its connection without a word: as a rule it is just dying.
const CLOSING: Duration = Duration::from_millis(500);
/// How long a rank may wait for one that has ended: the ranks may be about to end all together.
const STUCK: Duration = Duration::from_millis(500);
/// How long the streams may take to run dry after everything that could write has ended, and a reader of a job that has
/// failed to read anything.
const DRAIN: Duration = Duration::from_secs(2);
/// Signals that come as close to each other as this are one: `timeout(1)` sends its own to this process and to its group.
const TWICE: Duration = Duration::from_millis(200);
/// How much of what a rank says is read at once.
const CHUNK: usize = 4 << 10;
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
    connection: Option<Line>,
    /// The rank has closed its end of it.
    hung_up: bool,
    out: Option<Source>,
    err: Option<Source>,
}

#[derive(Debug)]
struct Job {
    /// All that is waited for.
    set: Set,
    server: Server,
    /// The ranks here.
    ranks: BTreeMap<u32, Rank>,
    living: usize,
    signals: Signals,
    /// Tells of signals.
    signalled: Watched,
    guardian: Guardian,
    stdout: Sink,
    stderr: Sink,
    /// Where input for rank 0 comes from, and where it goes to, as far as that is here.
    takes_input: bool,
    typed: Option<Typed>,
    piped: Option<Piped>,
    /// When the beginning of a line is to be passed on, and whose it is.
    held: VecDeque<(Instant, u64)>,
    /// When which rank closed its connection before it was to.
    hang_ups: VecDeque<(Instant, u32)>,
    verbose: bool,
    kills_before: u64,
    /// Set by the first thing that went wrong.
    failed: bool,
    code: Option<i32>,
    /// The rank that asked for the end: its own code is the job's.
    aborter: Option<u32>,
    /// The rank that ends the job: the others end with the same code.
    exiting: Option<Announced>,
    /// Since when a rank waits for one that has ended.
    stuck: Option<Instant>,
    /// The signal of those that end a program that was passed on.
    ended_by: Option<Signal>,
    /// When it came.
    ended_at: Option<Instant>,
    timeout: Option<(Instant, Duration)>,
    /// How long ranks may take to end after a signal was passed on.
    exit_timeout: Duration,
    /// When ranks that end by themselves are told to.
    end_at: Option<Instant>,
    kill_at: Option<Instant>,
    observation: Option<Observation>,
    inspector: Option<Inspector>,
    /// Where ranks connect, if they get no descriptor.
    entrance: Option<Entrance>,
    /// The other hosts, if there are others.
    tree: Option<Tree>,
    strict: bool,
}

/// Runs a job.
pub(crate) fn run(options: &Options) -> Result<i32, Refused> {
    if options.program.is_empty() {
        return Err(Refused { why: anyhow!("start a job: no program was given"), code: code::USAGE });
    }
    let name = format!("gasrun-{}-{}", std::process::id(), random::hex(&random::nonce()?[..6]));
    serve(options, setup::first(options, name)?)
}

/// Runs an agent to its end: it is let in, and runs the part of the job that it has.
pub(crate) fn run_agent() -> anyhow::Result<()> {
    let started = agent::begin().context("begin as an agent")?;
    let (options, setup) = setup::agent(started)?;
    // What there is to be said was said to the parent.
    serve(&options, setup).map(drop).map_err(|refused| refused.why)
}

fn serve(options: &Options, mut setup: Setup) -> Result<i32, Refused> {
    let verbose = options.verbose || report::VERBOSE.boolean()?;
    let below = setup.tree.as_ref().map_or(0, |tree| tree.plan.children(tree.node).count());
    let guardian =
        Guardian::start(&setup.name, setup.mine.len() + below).context("start the guardian process")?;
    let over_hosts = setup.tree.is_some();
    let mut job = Job::new(options, &mut setup, guardian, verbose)?;
    let started = job.start(options, &setup);
    let refusal = match started {
        Err(refused) if over_hosts => {
            let text = format!("{:#}{}", refused.why, job.here());
            job.fail(&text, Some(refused.code), None);
            job.attend();
            None
        }
        Err(refused) => Some(refused),
        Ok(()) => {
            job.attend();
            None
        }
    };
    let code = job.end();
    refusal.map_or(Ok(code), Err)
}

/// How long ranks may take to end after a signal: never less than they themselves count with.
fn exit_timeout(ranks: u32) -> Result<Duration, Refused> {
    let own = report::EXIT_TIMEOUT.seconds()?.unwrap_or(Duration::from_secs(10));
    Ok(own.max(ExitTimeout::of_environment()?.of(ranks)))
}

/// The processor of its own that a rank in such a place has, of so many ranks, if there are enough; and on which processors it runs.
/// Where nobody says, it begins on its own: a machine that has nothing else to do leaves it there, and any other finds it a better one.
fn processors(
    bind: Option<Bind>,
    place: usize,
    ranks: usize,
) -> Result<(Option<usize>, Processors), Refused> {
    let allowed = match (bind, affinity::allowed()) {
        (Some(Bind::None), _) | (None, Err(_)) => return Ok((None, Processors::Inherited)),
        (_, allowed) => allowed?,
    };
    let own = allowed.get(place).copied().filter(|_| allowed.len() >= ranks);
    let processors = match (own.map(|cpu| affinity::mask_of(&[cpu])), bind) {
        (Some(own), Some(_)) => Processors::Only(own),
        (Some(own), None) => Processors::Beginning(own, affinity::mask_of(&allowed)),
        (None, None) => Processors::Inherited,
        (None, Some(_)) => {
            let why = anyhow!("bind {ranks} ranks to {} processors: too few; use --bind none", allowed.len());
            return Err(Refused { why, code: code::USAGE });
        }
    };
    Ok((own, processors))
}

/// Makes room for the descriptors of so many ranks; gives the limit that ranks should have.
fn raise_open_files(ranks: usize, observed: bool) -> Result<Option<(rlim_t, rlim_t)>, Refused> {
    // Two streams and a connection for each rank, and what it records in.
    let of_each: u32 = if observed { 4 } else { 3 };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = ranks as rlim_t * rlim_t::from(of_each) + 64;
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
    fn new(options: &Options, setup: &mut Setup, guardian: Guardian, verbose: bool) -> Result<Self, Refused> {
        let tree = setup.tree.take();
        let Setup { name, mine, set, .. } = setup;
        process::become_subreaper()?;
        spawn::hear_of_children()?;
        // What whoever started this process told it to ignore (nohup) is not for the ranks either.
        let ignored = signals::ignored();
        let mut watched = PASSED_ON.to_vec();
        watched.push(Signal::SIGTSTP);
        watched.retain(|signal| !ignored.contains(signal));
        watched.push(Signal::SIGCHLD);
        let signals = Signals::block(&watched)?;
        let inspector = match &tree {
            // Asked from above, which says by what signal.
            Some(tree) if !tree.is_root() => Inspector::new(name, &tree.answers(), 0, false, set)?,
            tree => {
                let (address, signal) =
                    (gasworks::inspect::address(name), gasworks::settings::inspect_signal()?);
                Inspector::new(name, &address, signal, tree.is_some(), set)?
            }
        };
        let signalled = Watched::new(set, token::SIGNALS, &signals)?;
        let entrance = options.pmi_port && !mine.is_empty();
        let entrance = entrance.then(|| Entrance::open(options.ranks, mine, set)).transpose()?;
        let upward = tree.as_ref().is_some_and(|tree| !tree.is_root());
        let observation = match tree.as_ref().filter(|_| upward) {
            Some(tree) => tree.plan.events.map(|events| Observation::of_agent(events, mine)).transpose()?,
            None => Observation::new(options, mine)?,
        };
        let server = match &tree {
            None => Server::new(options.ranks, name),
            Some(tree) => Server::of_part(Part {
                job: name.clone(),
                size: options.ranks,
                ranks: mine.clone(),
                children: tree.plan.children(tree.node).count(),
                has_parent: upward,
                mapping: tree.plan.mapping.clone(),
            }),
        };
        Ok(Self {
            set: set.clone(),
            server,
            ranks: BTreeMap::new(),
            living: 0,
            signals,
            signalled,
            guardian,
            stdout: if upward { Sink::upward() } else { Sink::new(set, token::STDOUT, io::stdout())? },
            stderr: if upward { Sink::upward() } else { Sink::new(set, token::STDERR, io::stderr())? },
            takes_input: !options.no_input,
            typed: None,
            piped: None,
            held: VecDeque::new(),
            hang_ups: VecDeque::new(),
            verbose,
            kills_before: limits::out_of_memory_kills(),
            failed: false,
            code: None,
            aborter: None,
            exiting: None,
            stuck: None,
            ended_by: None,
            ended_at: None,
            timeout: options.timeout.map(|t| (Instant::now() + t, t)),
            exit_timeout: exit_timeout(options.ranks)?,
            end_at: None,
            kill_at: None,
            observation,
            inspector,
            entrance,
            strict: options.strict,
            tree,
        })
    }

    /// Which host this is, in a job over several.
    fn here(&self) -> String {
        self.tree.as_ref().map_or_else(String::new, Tree::here)
    }

    fn say(&mut self, text: &str) {
        if self.say_up(&Up::Say(text.to_owned())) {
            return;
        }
        self.stderr.line(&format!("gasrun: {text}"));
    }

    fn start(&mut self, options: &Options, setup: &Setup) -> Result<(), Refused> {
        let open_files = match self.tree.as_ref().filter(|tree| !tree.is_root()) {
            Some(tree) => {
                setup::imitate(&tree.plan)?;
                raise_open_files(setup.mine.len(), tree.plan.events.is_some())?
            }
            None => setup.open_files,
        };
        // What is too much to ask for is refused before anything is started.
        processors(options.bind, 0, setup.mine.len())?;
        self.start_children()?;
        // A rank has a process group of its own, and some terminals let only the foreground's write.
        let alone = options.ranks == 1 && !options.label && self.tree.is_none() && !stdin::stops_output();
        if self.verbose && self.tree.as_ref().is_none_or(Tree::is_root) {
            self.say(&format!("this is job {}", setup.name));
        }
        let streams = if alone { Streams::Inherited } else { Streams::Piped };
        let mask = self.signals.mask_before();
        let words = &options.program;
        let plan = Plan::new(
            words,
            (options.ranks, setup.mine.len()),
            &setup.name,
            &setup.environment,
            streams,
            mask,
        );
        let refused = |rank, e| cannot_start(&words[0].to_string_lossy(), rank, e);
        let mut plan = plan.map_err(|e| refused(0, e))?;
        let open_files = open_files.map(|(soft, hard)| (Resource::RLIMIT_NOFILE, soft, hard));
        plan.limits = open_files.into_iter().chain(self.guardian.limit()).collect();
        plan.one_layout = options.ranks > 1 && !report::RANDOMIZE.boolean()?;
        if options.ranks > 1 && self.tree.is_none() {
            plan.meeting = MeetingSocket::open(&setup.name);
        }
        plan.answers = self.tree.as_ref().map(Tree::answers);
        plan.port = self.entrance.as_ref().map(Entrance::address);
        // The ranks keep the processors busy from the first on; those that are to start, and all that wait for an answer,
        // should not have to wait for them.
        plan.turns = turns::shorten();
        for (place, &rank) in setup.mine.iter().enumerate() {
            self.beat();
            if self.tree.is_none() {
                // What those say that run already is heard at once: else processors would idle until all have been
                // started. What comes from other hosts may be for ranks that have not.
                self.wait(Some(Duration::ZERO))?;
                if self.failed {
                    return Ok(());
                }
            }
            let (processor, processors) = processors(options.bind, place, setup.mine.len())?;
            let record = self.observation.as_ref().and_then(|observation| observation.file(rank));
            let input = match (rank, &self.tree) {
                (0, None) => stdin::input(self.takes_input),
                (0, Some(_)) => Input::Piped,
                _ => Input::Null,
            };
            let started =
                plan.start((rank, place), processors, input, record).map_err(|e| refused(rank, e))?;
            let pid = started.pid;
            self.guardian.announce(pid);
            let word = token::of_rank(rank);
            let adopt = |socket| self.set.adopt(word, socket);
            let connection = started.connection.map(adopt).transpose()?.map(|sock| Line::new(sock, CHUNK));
            let label = if options.label { format!("[{rank}] ") } else { String::new() };
            let source = |pipe: Option<PipeReader>, kind| {
                pipe.map(|pipe| Source::new(&self.set, word + kind, pipe.into(), label.clone(), !alone))
                    .transpose()
            };
            let out = source(started.out, token::OUT)?;
            let err = source(started.err, token::ERR)?;
            if let Some(pipe) = started.input {
                self.piped = Some(Piped::new(pipe.into(), &self.set)?);
                if self.tree.is_none() {
                    self.begin_input()?;
                }
            }
            self.ranks.insert(rank, Rank { pid, exit: None, connection, hung_up: false, out, err });
            self.living += 1;
            if self.verbose {
                let place = processor.map_or_else(String::new, |cpu| format!(" on processor {cpu}"));
                self.say(&format!("started rank {rank} as process {pid}{place}{}", self.here()));
            }
        }
        Ok(())
    }

    /// The ranks here; for the root of several hosts, all.
    fn known(&self) -> Vec<Known> {
        if let Some(tree) = self.tree.as_ref().filter(|tree| tree.is_root()) {
            let living = tree.living();
            let of = |rank, host: &str| {
                let (lives, place) = (living.binary_search(&rank).is_ok(), format!(" on {host}"));
                Known { rank, pid: None, lives, phase: Phase::Silent, place }
            };
            let hosts = tree.plan.hosts.iter();
            let mut all: Vec<Known> =
                hosts.flat_map(|host| host.ranks.iter().map(|&rank| of(rank, &host.name))).collect();
            all.sort_by_key(|known| known.rank);
            return all;
        }
        let of = |(&rank, r): (&u32, &Rank)| {
            let (phase, place) = (self.server.phase(rank), String::new());
            Known { rank, pid: Some(r.pid), lives: r.exit.is_none(), phase, place }
        };
        self.ranks.iter().map(of).collect()
    }

    /// Something has come for the inspector, or its time may be up.
    fn inspect(&mut self, event: Option<Event>) -> anyhow::Result<()> {
        let Some(mut inspector) = self.inspector.take() else { return Ok(()) };
        let outcome = match event {
            Some(event) => inspector.event(event, &self.set, || self.known())?,
            None => inspector.conclude(|| self.known()),
        };
        self.inspector = Some(inspector);
        if let (Some(tree), Some((question, signal))) = (&mut self.tree, outcome.down) {
            tree.tell_children(&Down::Ask { question, signal });
        }
        if let Some((question, all)) = outcome.up {
            for told in all {
                self.say_up(&Up::Stands { question, told });
            }
        }
        if let Some(text) = outcome.aloud {
            text.lines().for_each(|line| self.say(line));
        }
        Ok(())
    }

    fn who(&self, rank: u32) -> String {
        let place = self.place_of(rank);
        match self.ranks.get(&rank) {
            Some(r) => format!("rank {rank} (pid {}{place})", r.pid),
            None => format!("rank {rank} (somewhere{place})"),
        }
    }

    /// Ends what is left, passes on the last output, and gives the exit code.
    fn end(mut self) -> i32 {
        let mut groups: Vec<i32> = self.ranks.values().map(|r| r.pid).collect();
        if self.living > 0 {
            self.signal_living(Signal::SIGKILL, None);
        }
        self.await_remote_commands();
        if let Some(tree) = &self.tree {
            groups.extend(tree.processes());
        }
        self.beat();
        let found = sweep::leftovers(&groups, self.guardian.pid());
        // Nobody is left to get a signal: numbers of processes that were collected may be somebody else's by now.
        for rank in self.ranks.values_mut() {
            rank.exit.get_or_insert(Exit::Signal(Signal::SIGKILL as i32));
        }
        let refused = self.entrance.take().map_or(0, |entrance| entrance.visitors.refused) + self.strangers();
        if refused > 0 && self.verbose {
            self.say(&format!("sent away {refused} strangers in all"));
        }
        if found > 0 && self.verbose {
            self.say(&format!("ended {found} processes or groups that the ranks had left"));
        }
        self.drain();
        self.tell_what_was_recorded();
        self.leave_tree();
        self.guardian.release();
        match self.failed {
            true => self.code.unwrap_or(code::FAILED),
            false => 0,
        }
    }

    fn tell_what_was_recorded(&mut self) {
        if self.send_recordings() {
            return;
        }
        let Some(observation) = self.observation.take() else { return };
        let mut lines = Vec::new();
        let finished = observation.finish(self.tree.as_ref().map(|tree| &tree.plan), &mut lines);
        lines.iter().for_each(|line| self.stderr.line(line));
        if let Err(e) = finished {
            self.say(&format!("{e:#}"));
            if !self.failed {
                (self.failed, self.code) = (true, Some(code::FAILED));
            }
        }
        self.drain();
    }

    /// Everything that could write has ended: passes on what is still in the pipes. A reader of a job that ended well may
    /// take its time, until a signal or the job's time ends that.
    fn drain(&mut self) {
        let mut deadline = Instant::now() + DRAIN;
        let mut patience = Duration::ZERO;
        let mut passed = 0;
        let ended_before = self.ended_by.is_some();
        loop {
            self.pause(patience);
            let flushed = self.flush().is_ok();
            self.heed_signals(ended_before);
            let written = self.stdout.is_empty() && self.stderr.is_empty();
            let dry = self.ranks.values().all(|r| r.out.is_none() && r.err.is_none());
            if !flushed || (written && (dry || Instant::now() >= deadline)) {
                return;
            }
            if written {
                // Something outside the job holds a pipe open: a moment more, not for ever.
                patience = Duration::from_millis(5);
            } else {
                let now = self.stdout.passed() + self.stderr.passed();
                if !self.failed || now > passed {
                    deadline = Instant::now() + DRAIN;
                }
                passed = now;
                if Instant::now() >= deadline {
                    return;
                }
                patience = Duration::from_millis(100);
            }
        }
    }

    /// What ends a job ends this process, too, where nobody reads what the ranks have written.
    fn heed_signals(&mut self, ended_before: bool) {
        // What fails here shows in that nothing comes.
        if !self.signalled.is_asked() {
            let _ = self.look_at_signals();
            let _ = self.signalled.ask(Direction::Read);
        }
        if let Some(signal) = self.ended_by.filter(|_| !ended_before && !self.failed) {
            let text = format!("the job was ended by {signal} while its output was not read");
            self.fail(&text, Some(128 + signal as i32), None);
        }
        self.look_at_the_clock();
    }

    /// Waits until something comes, or not for longer than this, and deals with it.
    fn pause(&mut self, most: Duration) {
        // What fails here fails again where it is acted on.
        let _ = self.wait(Some(most));
        self.beat();
    }
}

/// The reason and the code for a program that cannot be started.
fn cannot_start(program: &str, rank: u32, e: io::Error) -> Refused {
    let (code, hint) = match e.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            (code::NOT_FOUND, " (it was looked for in PATH)")
        }
        io::ErrorKind::NotFound if std::path::Path::new(program).exists() => {
            (code::NOT_FOUND, " (the file is there, the interpreter it names is not)")
        }
        io::ErrorKind::NotFound => (code::NOT_FOUND, ""),
        io::ErrorKind::PermissionDenied => (code::NOT_EXECUTABLE, " (is it an executable file?)"),
        _ if e.raw_os_error() == Some(libc::ENOEXEC) => (code::NOT_EXECUTABLE, ""),
        _ => (code::FAILED, ""),
    };
    Refused { why: anyhow!("start rank {rank}: {program}: {e}{hint}"), code }
}
