//! The one loop: what ranks say to the server, what they write, signals, and ends of processes.

use std::time::{Duration, Instant};

use gasworks_bootstrap::server::{Output, Phase};
use gasworks_os::process::{self, Exit};
use gasworks_sock::{Direction, Event};
use nix::sys::signal::Signal;

use super::entrance::{Arrival, Entrance};
use super::tree::Tree;
use super::{HIGH, Job};
use crate::remote::message::Announced;
use crate::stream::{Sink, Source};
use crate::{code, token};

/// How long the first failure waits for the death that may have caused it.
const HINDSIGHT: Duration = Duration::from_millis(5);
/// How many events are dealt with before output, signals and clocks are looked after again.
const MOST_EVENTS: usize = 256;

impl Job {
    /// Serves the ranks until all have ended.
    pub(super) fn attend(&mut self) {
        while self.living > 0 || self.tree.as_ref().is_some_and(Tree::is_busy) {
            if let Err(e) = self.turn() {
                // The set itself does not work any more: nothing can be waited for.
                self.fail(&format!("wait for the ranks: {e}"), Some(code::FAILED), None);
                return;
            }
        }
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        self.flush()?;
        self.signalled.ask(Direction::Read)?;
        let timeout = self.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
        self.wait(timeout)?;
        if !self.signalled.is_asked() {
            self.look_at_signals()?;
        }
        self.inspect(None)?;
        let late = self.entrance.as_mut().and_then(Entrance::late);
        self.receive(late)?;
        self.look_at_tree()?;
        self.look_at_the_clock();
        Ok(())
    }

    /// Waits for whatever comes, and deals with it.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> anyhow::Result<()> {
        let mut timeout = timeout;
        // Not for ever: there are other things to look after.
        for _ in 0..MOST_EVENTS {
            let Some(event) = self.set.wait(timeout)? else { break };
            timeout = Some(Duration::ZERO);
            self.event(event)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> anyhow::Result<()> {
        match event.user {
            token::SIGNALS => self.signalled.told(),
            token::STDIN => self.read_input(&event)?,
            token::STDOUT => self.stdout.has_room(),
            token::STDERR => self.stderr.has_room(),
            token::RANK0_INPUT => self.input_event(event)?,
            user if user == token::ASKED_BY_HAND || user >= token::QUESTIONS => self.inspect(Some(event))?,
            user if user >= token::ENTRANCE => {
                let arrival = self.entrance.as_mut().and_then(|entrance| entrance.event(&self.set, event));
                self.receive(arrival)?;
            }
            user if (token::RANKS..token::GATE).contains(&user) => self.rank_event(event)?,
            _ => self.tree_event(event)?,
        }
        Ok(())
    }

    /// A rank has said or written something.
    fn rank_event(&mut self, event: Event) -> anyhow::Result<()> {
        let user = event.user;
        let Some((source, sink)) = self.stream(user) else {
            let rank = u32::try_from((user - token::RANKS) / 4).unwrap_or(u32::MAX);
            if let Some(line) = self.ranks.get_mut(&rank).and_then(|r| r.connection.as_mut()) {
                line.event(event);
            }
            return self.listen(rank);
        };
        let Some(stream) = source else { return Ok(()) };
        let was_due = stream.due();
        let ended = stream.event(event, sink);
        let due = stream.due().filter(|_| was_due.is_none());
        if ended {
            *source = None;
        }
        self.held.extend(due.map(|at| (at, user)));
        Ok(())
    }

    /// The stream of a rank that has this token, and where it goes; `None` of what is no stream.
    fn stream(&mut self, user: u64) -> Option<(&mut Option<Source>, &mut Sink)> {
        let word = user.checked_sub(token::RANKS)?;
        let r = self.ranks.get_mut(&u32::try_from(word / 4).ok()?)?;
        match word % 4 {
            token::OUT => Some((&mut r.out, &mut self.stdout)),
            token::ERR => Some((&mut r.err, &mut self.stderr)),
            _ => None,
        }
    }

    /// Passes on beginnings of lines that have waited long enough for the rest.
    pub(super) fn release_held(&mut self) {
        let now = Instant::now();
        while let Some((at, user)) = self.held.pop_front_if(|(at, _)| *at <= now) {
            // It may have come to its end, and another one have begun, which is in the queue, too.
            let Some((Some(source), sink)) = self.stream(user) else { continue };
            if source.due().is_some_and(|due| due <= at) {
                source.release(sink);
                let again = source.due();
                self.held.extend(again.map(|at| (at, user)));
            }
        }
    }

    /// Signals have come, also of processes that ended.
    pub(super) fn look_at_signals(&mut self) -> anyhow::Result<()> {
        while let Some((signal, sender)) = self.signals.take() {
            match signal {
                Signal::SIGCHLD => {}
                Signal::SIGTSTP => self.suspend(),
                signal => self.pass_on(signal, sender),
            }
        }
        self.look_for_the_stopped();
        let ends = self.reaped();
        if !ends.is_empty() {
            self.hear_last_words(&ends)?;
        }
        for (pid, exit) in ends {
            self.ended(pid, exit);
        }
        Ok(())
    }

    /// What ranks that have ended said and wrote before is there, and comes before the news of their ends. Others may talk
    /// on.
    fn hear_last_words(&mut self, ends: &[(i32, Exit)]) -> anyhow::Result<()> {
        for r in self.ranks.values_mut().filter(|r| ends.iter().any(|(pid, _)| *pid == r.pid)) {
            // Also if there is no room: it is no more than a pipe holds.
            r.out.iter_mut().chain(&mut r.err).for_each(Source::go_on);
        }
        for _ in 0..MOST_EVENTS * self.ranks.len() {
            match self.set.wait(Some(Duration::ZERO))? {
                Some(event) => self.event(event)?,
                None => break,
            }
        }
        Ok(())
    }

    /// The processes that have ended, the likeliest cause first. A rank that is killed makes its peers fail, and their
    /// exits may be collected before its own: a first failure waits a moment for a death by signal.
    fn reaped(&self) -> Vec<(i32, Exit)> {
        let mut ends: Vec<_> = std::iter::from_fn(process::reap).collect();
        let killed = |ends: &[(i32, Exit)]| ends.iter().any(|(_, exit)| matches!(exit, Exit::Signal(_)));
        if !self.failed && ends.iter().any(|(_, exit)| exit.code() != 0) && !killed(&ends) {
            std::thread::sleep(HINDSIGHT);
            ends.extend(std::iter::from_fn(process::reap));
        }
        ends.sort_by_key(|(_, exit)| matches!(exit, Exit::Code(_)));
        ends
    }

    /// Writes what waits for readers, and has ranks go on that were held up by a reader that was too slow.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.flush_tree();
        for (kind, name) in [(token::OUT, "standard output"), (token::ERR, "standard error")] {
            let sink = if kind == token::OUT { &mut self.stdout } else { &mut self.stderr };
            sink.flush()?;
            let (failure, broken, again) = (sink.failure(), sink.broken, sink.takes_again());
            if let Some(e) = failure {
                self.output_lost(name, &e);
            }
            for r in self.ranks.values_mut().filter(|_| broken || again) {
                let source = if kind == token::OUT { &mut r.out } else { &mut r.err };
                // Nobody reads a broken stream any more: the ranks find out as they would without gasrun.
                match broken {
                    true => *source = None,
                    false => source.iter_mut().for_each(Source::go_on),
                }
            }
        }
        Ok(())
    }

    /// Somebody has come to the entrance.
    fn receive(&mut self, arrival: Option<Arrival>) -> anyhow::Result<()> {
        match arrival {
            Some(Arrival::Stranger { why }) if self.verbose => {
                self.say(&format!("sent a stranger away from PMI_PORT: {why}"));
                Ok(())
            }
            None | Some(Arrival::Stranger { .. }) => Ok(()),
            Some(Arrival::Rank { rank, line }) => {
                if let Some(r) = self.ranks.get_mut(&rank).filter(|r| r.exit.is_none()) {
                    r.connection = Some(line);
                }
                self.listen(rank)
            }
        }
    }

    /// Hears what a rank has to say to the server, and answers.
    pub(super) fn listen(&mut self, rank: u32) -> anyhow::Result<()> {
        let Some(r) = self.ranks.get_mut(&rank).filter(|r| !r.hung_up) else { return Ok(()) };
        let Some(line) = &mut r.connection else { return Ok(()) };
        let mut outputs = Vec::new();
        self.server.feed(rank, &mut line.inbox, &mut outputs);
        for output in outputs {
            self.act(output)?;
        }
        self.look_for_stuck();
        let Some(r) = self.ranks.get_mut(&rank) else { return Ok(()) };
        let Some(line) = &mut r.connection else { return Ok(()) };
        if line.unwritten() <= HIGH {
            line.go_on();
        }
        // Our end of the connection stays open until the rank ends: closing it would tell it that the launcher is gone.
        r.hung_up = line.ended().is_some();
        if r.hung_up && matches!(self.server.phase(rank), Phase::Greeted | Phase::Joined | Phase::InFence) {
            self.hang_ups.push_back((Instant::now(), rank));
        }
        Ok(())
    }

    pub(super) fn act(&mut self, output: Output) -> anyhow::Result<()> {
        match output {
            Output::Send { rank, bytes } => {
                if let Some(line) = self.ranks.get_mut(&rank).and_then(|r| r.connection.as_mut()) {
                    line.post(&bytes);
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
            Output::Abort { rank, code, message } => {
                let printable: String = message.chars().filter(|c| !c.is_control()).take(512).collect();
                let text = if printable.is_empty() { String::new() } else { format!(": {printable}") };
                if !self.failed {
                    self.aborter = Some(rank);
                }
                // Without a code of its own it is asked for by the code that the rank ends with.
                let code = code.map(|code| code & 0xff).filter(|&code| code != 0);
                self.fail(&format!("{} aborted the job{text}", self.who(rank)), code, Some(rank));
            }
            Output::Exits { rank, code, told } => {
                let who = self.who(rank);
                self.exits(Announced { who, code, told });
            }
            Output::Up { bytes } => self.pmi_up(bytes),
            Output::Down { child, bytes } => self.pmi_down(child, bytes),
            Output::Broken { rank, what } => {
                self.fail(&format!("{}: {what}", self.who(rank)), Some(code::FAILED), None);
            }
        }
        Ok(())
    }
}
