//! How the ranks of a running job stand, for one that hangs.
//!
//! Every `gasrun` listens on a socket that its job's name gives, and asks its ranks when somebody asks it there or by a
//! signal. They answer to the same socket. Those that do not answer in time are told of by what the kernel knows.
//!
//! - `ask`: the other `gasrun`, the one that is told `--inspect`; `kernel`: what `/proc` says of a process.

pub(crate) mod ask;
mod kernel;

use std::collections::BTreeMap;
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
/// The longest answer that is taken, and the most connections at a time.
const LONGEST: usize = 1 << 20;
const MOST: usize = 8192;
/// How much of an answer is read at once.
const CHUNK: usize = 4 << 10;

/// A rank as the job knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) pid: i32,
    pub(crate) lives: bool,
    pub(crate) phase: Phase,
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
    answers: Vec<Option<Answer>>,
    /// Whether a rank was asked.
    asked: Vec<bool>,
    until: Instant,
    /// Whether the answer goes to standard error.
    aloud: bool,
}

/// What a rank said.
#[derive(Clone, Debug)]
struct Answer {
    /// The process that did.
    pid: i32,
    standing: Standing,
    /// The rest, a line for each thing.
    text: String,
}

impl Inspector {
    /// Takes questions about `job` from now on; ranks are asked by `signal`, or not at all if it is 0. `None` where the
    /// system has no such sockets: then there is nothing to be asked.
    pub(crate) fn new(job: &str, signal: i32, set: &Set) -> anyhow::Result<Option<Self>> {
        let address = Address::Abstract(gasworks::inspect::address(job).into_bytes());
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
        }))
    }

    /// When the present question must be answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.question.as_ref().map(|question| question.until)
    }

    /// Deals with an event of one of its socks. What is to be printed is returned.
    pub(crate) fn event(
        &mut self,
        event: Event,
        set: &Set,
        known: impl Fn() -> Vec<Known>,
    ) -> anyhow::Result<Option<String>> {
        if event.op == Op::Accept {
            self.accept(set);
        } else if let Some((inquiry, watched)) = self.by_hand.as_mut().filter(|_| event.op == Op::Readable) {
            watched.told();
            let asked = inquiry.take() != Default::default();
            watched.ask(Direction::Read)?;
            if asked {
                self.begin(&known(), true);
            }
        } else if self.hear(event) == Heard::Question {
            self.begin(&known(), false);
        }
        Ok(self.conclude(known))
    }

    /// Answers the present question if everybody has answered or time is up. What is to be printed is returned.
    pub(crate) fn conclude(&mut self, known: impl Fn() -> Vec<Known>) -> Option<String> {
        let question = self.question.as_ref()?;
        let mut known_now = known();
        // Ranks may have been started since it was asked.
        known_now.truncate(question.asked.len());
        let awaited =
            |rank: usize| question.asked[rank] && question.answers[rank].is_none() && known_now[rank].lives;
        if (0..known_now.len()).any(awaited) && Instant::now() < question.until {
            return None;
        }
        let text = self.compose(question, &known_now);
        let aloud = question.aloud.then(|| text.clone());
        self.question = None;
        for connection in self.connections.values_mut().filter(|c| c.stage == Stage::Waits) {
            connection.line.post(text.as_bytes());
            connection.stage = Stage::Told;
        }
        // Most have got all of it at once.
        self.connections.retain(|_, c| c.stage != Stage::Told || c.line.unwritten() > 0);
        aloud
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
        if let Some((rank, answer)) = read(text, pid)
            && let Some(place) = question.answers.get_mut(rank)
        {
            place.get_or_insert(answer);
        }
    }

    /// Asks all ranks, unless they are being asked.
    fn begin(&mut self, known: &[Known], aloud: bool) {
        if let Some(question) = &mut self.question {
            question.aloud |= aloud;
            return;
        }
        let mut asked = vec![false; known.len()];
        if self.signal != 0 {
            let answering = kernel::answering(known, &self.job, self.signal);
            for (asked, pid) in asked.iter_mut().zip(answering) {
                // One that has just ended is not waited for, which the kernel is asked about below.
                *asked = pid.is_some_and(|pid| inquiry::send(pid, self.signal).is_ok());
            }
        }
        let answers = vec![None; known.len()];
        self.question = Some(Question { answers, asked, until: Instant::now() + PATIENCE, aloud });
    }

    fn compose(&self, question: &Question, known: &[Known]) -> String {
        let (all, living) = (known.len(), known.iter().filter(|rank| rank.lives).count());
        let seconds = self.since.elapsed().as_secs_f64();
        // A String takes all that is written to it, here and below.
        let mut text =
            format!("job {}: {living} of {all} ranks run, {seconds:.1} s after the start\n", self.job);
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for (rank, known) in (0..).zip(known) {
            let standing = question.standing(rank as usize, known);
            match groups.iter_mut().find(|(text, _)| *text == standing) {
                Some((_, of)) => of.push(rank),
                None => groups.push((standing, vec![rank])),
            }
        }
        for (standing, of) in &groups {
            let _ = writeln!(text, "{}: {standing}", ranks(of));
        }
        for (rank, known) in known.iter().enumerate().filter(|(_, known)| known.lives) {
            let answer = question.answers[rank].as_ref();
            let pid = answer.map_or(known.pid, |answer| answer.pid);
            let _ = writeln!(text, "rank {rank} (pid {pid}): {}", kernel::state(pid));
            for line in answer.iter().flat_map(|answer| answer.text.lines()) {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

impl Question {
    /// Where a rank stands, in words.
    fn standing(&self, rank: usize, known: &Known) -> String {
        let seconds = PATIENCE.as_secs_f64();
        match (&self.answers[rank], known.phase, self.asked[rank]) {
            _ if !known.lives => "has ended".into(),
            (Some(Answer { standing, .. }), ..) if standing.waiting => {
                let late = |answer: &Answer| answer.standing.begun < standing.begun;
                let all = || (0..).zip(&self.answers);
                let missing: Vec<u32> =
                    all().filter(|(_, a)| a.as_ref().is_some_and(late)).map(|(rank, _)| rank).collect();
                let silent: Vec<u32> = all().filter(|(_, a)| a.is_none()).map(|(rank, _)| rank).collect();
                match (&missing[..], &silent[..]) {
                    ([], []) => format!("{standing}, to which all have come"),
                    ([], silent) => format!("{standing}, which waits for some of {}", ranks(silent)),
                    (missing, _) => format!("{standing}, which waits for {}", ranks(missing)),
                }
            }
            (Some(Answer { standing, .. }), ..) => standing.to_string(),
            (None, _, true) => format!("gave no answer within {seconds} s"),
            (None, Phase::Silent | Phase::Greeted, _) => "has not joined the job".into(),
            (None, Phase::InFence, _) => "waits for all ranks to join, or to end".into(),
            (None, Phase::Finalized, _) => "has left the job and not ended".into(),
            (None, Phase::Joined | Phase::Broken, _) => "has joined the job and cannot be asked".into(),
        }
    }
}

/// Reads what a rank sent: its number and how it stands in the first line, then the rest.
fn read(text: &str, pid: i32) -> Option<(usize, Answer)> {
    let (first, rest) = text.split_once('\n')?;
    let mut words = first.strip_prefix("answer ")?.split(' ');
    let rank = words.next()?.parse().ok()?;
    let standing = Standing { begun: words.next()?.parse().ok()?, waiting: words.next()?.parse().ok()? };
    let text = rest.chars().filter(|&c| c == '\n' || !c.is_control()).collect();
    Some((rank, Answer { pid, standing, text }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Question,
}
