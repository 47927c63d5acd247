//! How the ranks of a running job stand, for one that hangs.
//!
//! Every `gasrun` listens on a socket that its job's name gives, and asks its ranks when somebody asks it there or by a
//! signal. They answer to the same socket. Those that do not answer in time are told of by what the kernel knows. On several hosts
//! it asks its agents, each of which asks its ranks like that, and sends up what there is to be told of them.
//!
//! - `ask`: the other `gasrun`, the one that is told `--inspect`; `kernel`: what `/proc` says of a process.

pub(crate) mod ask;
mod kernel;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use gasworks_bootstrap::server::Phase;
use gasworks_core::observe::{Standing, ranks};
use gasworks_os::inquiry::{self, Inquiry};
use gasworks_os::{process, unix};
use gasworks_sock::{Address, Direction, Event, Op, Set, Sock};

use crate::line::Line;
use crate::token;
use crate::watched::Watched;

/// How long ranks may take to answer. One that does not poll looks on for half a second before it says so.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the hosts of a job may take to tell what theirs have answered.
const PATIENCE_WITH_HOSTS: Duration = Duration::from_secs(5);
/// How much of a rank's answer goes up the tree.
const LONGEST_TOLD: usize = 16 << 10;
/// The longest answer that is taken, and the most connections at a time.
const LONGEST: usize = 1 << 20;
const MOST: usize = 8192;
/// How much of an answer is read at once.
const CHUNK: usize = 4 << 10;

/// A rank as the job knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) rank: u32,
    /// What it was started as, if that was here.
    pub(crate) pid: Option<i32>,
    pub(crate) lives: bool,
    pub(crate) phase: Phase,
    /// Its host in words, in a job over several.
    pub(crate) place: String,
}

/// How a rank stands, as far as its host could find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) rank: u32,
    /// The process that answered, or that was started.
    pub(crate) pid: Option<i32>,
    /// What it answered.
    pub(crate) standing: Option<Standing>,
    /// What is known of it otherwise, in words.
    pub(crate) otherwise: String,
    /// What the kernel says of its process.
    pub(crate) state: String,
    /// The rest of its answer, a line for each thing.
    pub(crate) text: String,
}

/// What comes of a question.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What is to be printed.
    pub(crate) aloud: Option<String>,
    /// What is to be told to who asked this agent, and the number of that question.
    pub(crate) up: Option<(u64, Vec<Told>)>,
    /// The number of a question and the signal, for all agents.
    pub(crate) down: Option<(u64, i32)>,
}

/// Takes questions and answers.
#[derive(Debug)]
pub(crate) struct Inspector {
    job: String,
    since: Instant,
    listener: Sock,
    signal: i32,
    /// The signal, if it may be sent to this process by hand.
    by_hand: Option<(Inquiry, Watched)>,
    /// Those who ask or answer, by the user words of their socks.
    connections: BTreeMap<u64, Connection>,
    /// The user word of the next one.
    next: u64,
    question: Option<Question>,
    /// The ranks are on other hosts, whose agents are asked.
    asks_hosts: bool,
    /// How many questions there were.
    questions: u64,
}

#[derive(Debug)]
struct Connection {
    line: Line,
    /// The process at the other end.
    pid: i32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It speaks.
    Speaks,
    /// It asked, and waits.
    Waits,
    /// It is being told.
    Told,
}

/// A question that is being answered.
#[derive(Debug)]
struct Question {
    number: u64,
    /// The ranks that were there when it was asked.
    ranks: BTreeSet<u32>,
    /// Those that were asked.
    asked: BTreeSet<u32>,
    told: BTreeMap<u32, Told>,
    until: Instant,
    /// Whether the answer goes to standard error.
    aloud: bool,
    /// Whether it goes up to who asked.
    up: bool,
}

impl Inspector {
    /// Takes questions about `job` at this address from now on; ranks are asked by `signal`, or not at all if it is 0. `None` where the
    /// system has no such sockets: then there is nothing to be asked.
    pub(crate) fn new(
        job: &str,
        address: &str,
        signal: i32,
        asks_hosts: bool,
        set: &Set,
    ) -> anyhow::Result<Option<Self>> {
        let address = Address::Abstract(address.as_bytes().to_vec());
        let Ok((listener, _)) = set.listen(token::QUESTIONS, &address) else { return Ok(None) };
        let mut by_hand = None;
        if signal != 0
            && let Some(inquiry) = Inquiry::on(signal)?
        {
            let mut watched = Watched::new(set, token::ASKED_BY_HAND, &inquiry)?;
            watched.ask(Direction::Read)?;
            by_hand = Some((inquiry, watched));
        }
        Ok(Some(Self {
            job: job.to_owned(),
            since: Instant::now(),
            listener,
            signal,
            by_hand,
            connections: BTreeMap::new(),
            next: token::QUESTIONS + 1,
            question: None,
            asks_hosts,
            questions: 0,
        }))
    }

    /// When the present question must be answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.question.as_ref().map(|question| question.until)
    }

    /// Deals with an event of one of its socks.
    pub(crate) fn event(
        &mut self,
        event: Event,
        set: &Set,
        known: impl Fn() -> Vec<Known>,
    ) -> anyhow::Result<Outcome> {
        let mut down = None;
        if event.op == Op::Accept {
            self.accept(set);
        } else if let Some((inquiry, watched)) = self.by_hand.as_mut().filter(|_| event.op == Op::Readable) {
            watched.told();
            let asked = inquiry.take() != Default::default();
            watched.ask(Direction::Read)?;
            if asked {
                down = self.begin(&known(), true);
            }
        } else if self.hear(event) == Heard::Question {
            down = self.begin(&known(), false);
        }
        let outcome = self.conclude(known);
        Ok(Outcome { down, ..outcome })
    }

    /// Answers the present question if everybody has answered or time is up.
    pub(crate) fn conclude(&mut self, known: impl Fn() -> Vec<Known>) -> Outcome {
        let Some(question) = &self.question else { return Outcome::default() };
        let mut known = known();
        // Ranks may have been started since it was asked.
        known.retain(|known| question.ranks.contains(&known.rank));
        let awaited = |known: &Known| {
            known.lives && question.asked.contains(&known.rank) && !question.told.contains_key(&known.rank)
        };
        if known.iter().any(awaited) && Instant::now() < question.until {
            return Outcome::default();
        }
        let Some(mut question) = self.question.take() else { return Outcome::default() };
        let told: Vec<Told> = known.iter().map(|known| self.tell(&mut question, known)).collect();
        if question.up {
            // Who asked this agent itself meanwhile is told nothing: the picture is composed above.
            self.connections.retain(|_, c| c.stage != Stage::Waits);
            return Outcome { up: Some((question.number, told)), ..Outcome::default() };
        }
        let text = self.compose(&told, &known);
        for connection in self.connections.values_mut().filter(|c| c.stage == Stage::Waits) {
            connection.line.post(text.as_bytes());
            connection.stage = Stage::Told;
        }
        // Most have got all of it at once.
        self.connections.retain(|_, c| c.stage != Stage::Told || c.line.unwritten() > 0);
        Outcome { aloud: question.aloud.then_some(text), ..Outcome::default() }
    }

    /// An agent is asked from above: asks its ranks by `signal`, whatever else it was asked before.
    pub(crate) fn ask(&mut self, number: u64, signal: i32, known: &[Known]) {
        self.signal = signal;
        self.question = None;
        self.begin(known, false);
        self.question.iter_mut().for_each(|question| (question.number, question.up) = (number, true));
    }

    /// A host has told of one of its ranks.
    pub(crate) fn hear_host(&mut self, number: u64, told: Told) {
        if let Some(question) = self.question.as_mut().filter(|question| question.number == number)
            && question.asked.contains(&told.rank)
        {
            question.told.entry(told.rank).or_insert(told);
        }
    }

    fn accept(&mut self, set: &Set) {
        let token = self.next;
        self.next += 1;
        // What is gone again was not there.
        let Ok(sock) = set.accept(&self.listener, token) else { return };
        let peer = sock.with_fd(|fd| unix::peer_of(fd));
        let line = Line::new(sock, CHUNK);
        // A stranger has no business here; neither has whoever floods us.
        if let Ok(Ok(peer)) = peer
            && [0, process::user()].contains(&peer.uid)
            && self.connections.len() < MOST
        {
            self.connections.insert(token, Connection { line, pid: peer.pid, stage: Stage::Speaks });
        }
    }

    /// Hears what came on a connection.
    fn hear(&mut self, event: Event) -> Heard {
        let token = event.user;
        let Some(Connection { line, pid, stage }) = self.connections.get_mut(&token) else {
            return Heard::Nothing;
        };
        line.event(event);
        let (ended, flooded) = (line.ended().is_some(), line.inbox.len() > LONGEST);
        let over = match stage {
            Stage::Speaks | Stage::Waits => ended,
            Stage::Told => line.unwritten() == 0,
        };
        if over || flooded {
            let answered = *stage == Stage::Speaks && !flooded;
            let said = answered.then(|| (String::from_utf8_lossy(&line.inbox).into_owned(), *pid));
            self.connections.remove(&token);
            if let Some((text, pid)) = said {
                self.note(&text, pid);
            }
            return Heard::Nothing;
        }
        line.go_on();
        if *stage == Stage::Speaks && line.inbox.starts_with(b"ask\n") {
            *stage = Stage::Waits;
            return Heard::Question;
        }
        Heard::Nothing
    }

    /// A rank has answered.
    fn note(&mut self, text: &str, pid: i32) {
        let Some(question) = &mut self.question else { return };
        if let Some(told) = read(text, pid)
            && question.ranks.contains(&told.rank)
        {
            question.told.entry(told.rank).or_insert(told);
        }
    }

    /// Asks all ranks, unless they are being asked. What agents are to be asked is returned.
    fn begin(&mut self, known: &[Known], aloud: bool) -> Option<(u64, i32)> {
        if let Some(question) = &mut self.question {
            question.aloud |= aloud;
            return None;
        }
        let mut asked = BTreeSet::new();
        if self.asks_hosts {
            asked.extend(known.iter().map(|known| known.rank));
        } else if self.signal != 0 {
            let answering = kernel::answering(known, &self.job, self.signal);
            for (known, pid) in known.iter().zip(answering) {
                // One that has just ended is not waited for, which the kernel is asked about below.
                if pid.is_some_and(|pid| inquiry::send(pid, self.signal).is_ok()) {
                    asked.insert(known.rank);
                }
            }
        }
        self.questions += 1;
        let number = self.questions;
        let patience = if self.asks_hosts { PATIENCE_WITH_HOSTS } else { PATIENCE };
        self.question = Some(Question {
            number,
            ranks: known.iter().map(|known| known.rank).collect(),
            asked,
            told: BTreeMap::new(),
            until: Instant::now() + patience,
            aloud,
            up: false,
        });
        self.asks_hosts.then_some((number, self.signal))
    }

    /// What there is to be told of a rank.
    fn tell(&self, question: &mut Question, known: &Known) -> Told {
        if let Some(told) = question.told.remove(&known.rank).filter(|_| known.lives) {
            return told;
        }
        let seconds = PATIENCE.as_secs_f64();
        let otherwise = match (known.phase, question.asked.contains(&known.rank)) {
            _ if !known.lives => "has ended".into(),
            (_, true) if self.asks_hosts => "nothing was heard from its host".into(),
            (_, true) => format!("gave no answer within {seconds} s"),
            (Phase::Silent | Phase::Greeted, _) => "has not joined the job".into(),
            (Phase::InFence, _) => "waits for all ranks to join, or to end".into(),
            (Phase::Finalized, _) => "has left the job and not ended".into(),
            (Phase::Joined | Phase::Broken, _) => "has joined the job and cannot be asked".into(),
        };
        let state = known.pid.map_or_else(|| "is elsewhere".into(), kernel::state);
        Told { rank: known.rank, pid: known.pid, standing: None, otherwise, state, text: String::new() }
    }

    fn compose(&self, told: &[Told], known: &[Known]) -> String {
        let (all, living) = (known.len(), known.iter().filter(|rank| rank.lives).count());
        let seconds = self.since.elapsed().as_secs_f64();
        // A String takes all that is written to it, here and below.
        let mut text =
            format!("job {}: {living} of {all} ranks run, {seconds:.1} s after the start\n", self.job);
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for of in told {
            let standing = standing(of, told);
            match groups.iter_mut().find(|(text, _)| *text == standing) {
                Some((_, ranks)) => ranks.push(of.rank),
                None => groups.push((standing, vec![of.rank])),
            }
        }
        for (standing, of) in &groups {
            let _ = writeln!(text, "{}: {standing}", ranks(of));
        }
        for (told, known) in told.iter().zip(known).filter(|(_, known)| known.lives) {
            let pid = told.pid.map_or_else(|| "somewhere".into(), |pid| format!("pid {pid}"));
            let _ = writeln!(text, "rank {} ({pid}{}): {}", told.rank, known.place, told.state);
            for line in told.text.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

/// Where a rank stands among all, in words.
fn standing(of: &Told, all: &[Told]) -> String {
    let Some(standing) = of.standing else { return of.otherwise.clone() };
    if !standing.waiting {
        return standing.to_string();
    }
    let which = |is: &dyn Fn(&Told) -> bool| -> Vec<u32> {
        all.iter().filter(|told| is(told)).map(|told| told.rank).collect()
    };
    let missing = which(&|told| told.standing.is_some_and(|other| other.begun < standing.begun));
    let silent = which(&|told| told.standing.is_none());
    match (&missing[..], &silent[..]) {
        ([], []) => format!("{standing}, to which all have come"),
        ([], silent) => format!("{standing}, which waits for some of {}", ranks(silent)),
        (missing, _) => format!("{standing}, which waits for {}", ranks(missing)),
    }
}

/// Reads what a rank sent: its number and how it stands in the first line, then the rest.
fn read(text: &str, pid: i32) -> Option<Told> {
    let (first, rest) = text.split_once('\n')?;
    let mut words = first.strip_prefix("answer ")?.split(' ');
    let rank = words.next()?.parse().ok()?;
    let standing = Standing { begun: words.next()?.parse().ok()?, waiting: words.next()?.parse().ok()? };
    let text = rest.chars().filter(|&c| c == '\n' || !c.is_control()).take(LONGEST_TOLD).collect();
    let (standing, otherwise, state) = (Some(standing), String::new(), kernel::state(pid));
    Some(Told { rank, pid: Some(pid), standing, otherwise, state, text })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Question,
}
