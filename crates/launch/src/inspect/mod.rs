//! How the ranks of a running job stand, for one that hangs.
//!
//! Every `gasrun` listens on a socket that its job's name gives, and asks its ranks when somebody asks it there or by a
//! signal. They answer to the same socket. Those that do not answer in time are told of by what the kernel knows.
//!
//! - `ask`: the other `gasrun`, the one that is told `--inspect`; `kernel`: what `/proc` says of a process.

pub(crate) mod ask;
mod kernel;

use std::fmt::Write;
use std::time::{Duration, Instant};

use gasworks_bootstrap::server::Phase;
use gasworks_core::observe::{Standing, ranks};
use gasworks_os::inquiry::{self, Inquiry};
use gasworks_os::process;
use gasworks_os::unix::{self, Listener};
use gasworks_sock::poll::{Channel, Filled, Interest, Set, SockError};

use crate::job::token;

/// How long ranks may take to answer. One that does not poll looks on for half a second before it says so.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest answer that is taken, and the most connections at a time.
const LONGEST: usize = 1 << 20;
const MOST: usize = 8192;

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
    listener: Listener,
    signal: i32,
    /// The signal, if it may be sent to this process by hand.
    by_hand: Option<Inquiry>,
    connections: Vec<Option<Connection>>,
    question: Option<Question>,
}

#[derive(Debug)]
struct Connection {
    channel: Channel,
    /// The process at the other end.
    pid: i32,
    /// It asked, and waits.
    asks: bool,
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
    pub(crate) fn new(job: &str, signal: i32, set: &Set) -> Result<Option<Self>, SockError> {
        let Ok(listener) = unix::listen(&gasworks::inspect::address(job)) else { return Ok(None) };
        set.add(&listener, token::QUESTIONS, Interest::Read)?;
        let by_hand = if signal == 0 { None } else { Inquiry::on(signal)? };
        if let Some(by_hand) = &by_hand {
            set.add(by_hand, token::ASKED_BY_HAND, Interest::Read)?;
        }
        Ok(Some(Self {
            job: job.to_owned(),
            since: Instant::now(),
            listener,
            signal,
            by_hand,
            connections: Vec::new(),
            question: None,
        }))
    }

    /// When the present question must be answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.question.as_ref().map(|question| question.until)
    }

    /// Deals with an event of one of its tokens. What is to be printed is returned.
    pub(crate) fn event(
        &mut self,
        token: u64,
        set: &Set,
        known: impl Fn() -> Vec<Known>,
    ) -> Result<Option<String>, SockError> {
        match token {
            token::QUESTIONS => self.accept(set)?,
            token::ASKED_BY_HAND => {
                if self.by_hand.as_ref().is_some_and(|inquiry| inquiry.take() != Default::default()) {
                    self.begin(&known(), true);
                }
            }
            connection => {
                let index = usize::try_from(connection - token::CONNECTIONS).unwrap_or(usize::MAX);
                if self.hear(index) == Heard::Question {
                    self.begin(&known(), false);
                }
            }
        }
        self.conclude(set, known)
    }

    /// Answers the present question if everybody has answered or time is up. What is to be printed is returned.
    pub(crate) fn conclude(
        &mut self,
        set: &Set,
        known: impl Fn() -> Vec<Known>,
    ) -> Result<Option<String>, SockError> {
        let Some(question) = &self.question else { return Ok(None) };
        let known_now = known();
        let awaited =
            |rank: usize| question.asked[rank] && question.answers[rank].is_none() && known_now[rank].lives;
        if (0..known_now.len()).any(awaited) && Instant::now() < question.until {
            return Ok(None);
        }
        let text = self.compose(question, &known_now);
        let aloud = question.aloud.then(|| text.clone());
        self.question = None;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let Some(Connection { channel, asks, .. }) = connection else { continue };
            if std::mem::take(asks) {
                channel.post(text.as_bytes());
                // It has room for that, or whoever asked does not read: then it is cut short.
                match channel.flush() {
                    Ok(false) => set.modify(&*channel, token::CONNECTIONS + index as u64, Interest::Both)?,
                    _ => *connection = None,
                }
            }
        }
        Ok(aloud)
    }

    fn accept(&mut self, set: &Set) -> Result<(), SockError> {
        while let Ok(stream) = self.listener.accept(Instant::now()) {
            let Ok(peer) = stream.peer() else { continue };
            // A stranger has no business here; neither has whoever floods us.
            let free = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
            if ![0, process::user()].contains(&peer.uid) || free >= MOST {
                continue;
            }
            let Ok(channel) = Channel::new(stream.into_fd()) else { continue };
            set.add(&channel, token::CONNECTIONS + free as u64, Interest::Read)?;
            let connection = Some(Connection { channel, pid: peer.pid, asks: false });
            match self.connections.get_mut(free) {
                Some(place) => *place = connection,
                None => self.connections.push(connection),
            }
        }
        Ok(())
    }

    /// Hears what came on a connection.
    fn hear(&mut self, index: usize) -> Heard {
        let Some(place) = self.connections.get_mut(index) else { return Heard::Nothing };
        let Some(connection) = place else { return Heard::Nothing };
        if connection.channel.unwritten() > 0 {
            if !matches!(connection.channel.flush(), Ok(false)) {
                *place = None;
            }
            return Heard::Nothing;
        }
        let ended = !matches!(connection.channel.fill(64 << 10), Ok(Filled::Bytes(_)));
        let inbox = connection.channel.inbox();
        if inbox.len() > LONGEST || (ended && connection.asks) {
            *place = None;
            return Heard::Nothing;
        }
        if inbox.starts_with(b"ask\n") && !connection.asks {
            connection.asks = true;
            return Heard::Question;
        }
        if ended {
            let (text, pid) = (String::from_utf8_lossy(inbox).into_owned(), connection.pid);
            *place = None;
            self.note(&text, pid);
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
