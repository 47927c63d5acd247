//! The one loop: what ranks say to the server, what they write, signals, and ends of processes.

use std::time::{Duration, Instant};

use gasworks_bootstrap::server::{Output, Phase};
use gasworks_os::process::{self, Exit};
use gasworks_sock::Direction;
use gasworks_sock::poll::{Event, Interest};
use nix::sys::signal::Signal;

use super::entrance::{Arrival, Entrance};
use super::tree::{Tree, engine};
use super::{HIGH, Job, token};
use crate::code;

/// How long the first failure waits for the death that may have caused it.
const HINDSIGHT: Duration = Duration::from_millis(5);
/// How many events of other nodes are dealt with before ranks are looked after again.
const MOST_EVENTS: usize = 256;

impl Job {
    /// Serves the ranks until all have ended.
    pub(super) fn attend(&mut self) {
        let mut events = Vec::new();
        while self.living > 0 || self.tree.as_ref().is_some_and(Tree::is_busy) {
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
        events.clear();
        if self.wait(timeout)? {
            self.set.wait(Some(Duration::ZERO), events)?;
        }
        // What ranks said comes before the news that they ended.
        for event in events.iter().filter(|event| event.token != token::SIGNALS) {
            match event.token {
                token::STDOUT | token::STDERR => {}
                token::TERMINAL | token::RANK0_INPUT => {
                    if let Some(terminal) = &mut self.terminal {
                        terminal.turn(event.token == token::TERMINAL, &self.set)?;
                    }
                    self.feed(None)?;
                }
                asked @ (token::QUESTIONS | token::ASKED_BY_HAND) => self.inspect(Some(asked))?,
                asked if asked >= token::CONNECTIONS => self.inspect(Some(asked))?,
                of_rank => {
                    let rank = u32::try_from(of_rank / 4).unwrap_or(u32::MAX);
                    self.read(rank, of_rank % 4, 64 << 10)?;
                }
            }
        }
        while let Some((signal, sender)) = self.signals.take() {
            if signal != Signal::SIGCHLD {
                self.pass_on(signal, sender);
            }
        }
        let ends = self.reaped();
        if !ends.is_empty() {
            self.hear_last_words()?;
        }
        for (pid, exit) in ends {
            self.ended(pid, exit)?;
        }
        self.inspect(None)?;
        let late = self.entrance.as_mut().and_then(Entrance::late);
        self.receive(late)?;
        self.look_at_tree()?;
        self.look_at_the_clock();
        Ok(())
    }

    /// Waits for whatever comes, and hears what other nodes say; `true`: there is something nearer.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> anyhow::Result<bool> {
        if !self.near_posted {
            self.near.post_ready(Direction::Read)?;
            self.near_posted = true;
        }
        let mut timeout = timeout;
        // Not for ever: others want to be heard too.
        for _ in 0..MOST_EVENTS {
            let Some(event) = self.engine.wait(timeout)? else { break };
            timeout = Some(Duration::ZERO);
            self.far_event(event)?;
        }
        Ok(!self.near_posted)
    }

    fn far_event(&mut self, event: gasworks_sock::Event) -> anyhow::Result<()> {
        match event.user {
            engine::NEAR => {
                self.near_posted = false;
                Ok(())
            }
            user if user >= engine::ENTRANCE => {
                let arrival = self.entrance.as_mut().and_then(|entrance| entrance.event(&self.engine, event));
                self.receive(arrival)
            }
            user if (engine::RANKS..engine::GATE).contains(&user) => {
                let rank = u32::try_from(user - engine::RANKS).unwrap_or(u32::MAX);
                if let Some(line) = self.ranks.get_mut(&rank).and_then(|r| r.connection.as_mut()) {
                    line.event(event);
                }
                self.listen(rank)
            }
            _ => self.tree_event(event),
        }
    }

    /// What ranks that have ended said before is there, and comes before the news of their ends. Others may talk on.
    fn hear_last_words(&mut self) -> anyhow::Result<()> {
        for _ in 0..MOST_EVENTS * self.ranks.len() {
            match self.engine.wait(Some(Duration::ZERO))? {
                Some(event) => self.far_event(event)?,
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

    /// Reads what a rank wrote, as long as there is room for it.
    pub(super) fn read(&mut self, rank: u32, kind: u64, enough: usize) -> anyhow::Result<()> {
        let Some(r) = self.ranks.get_mut(&rank) else { return Ok(()) };
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
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.flush_tree();
        self.stdout.flush(&self.set)?;
        if let Some(e) = self.stdout.failure() {
            self.output_lost("standard output", &e);
        }
        self.stderr.flush(&self.set)?;
        if let Some(e) = self.stderr.failure() {
            self.output_lost("standard error", &e);
        }
        let before @ [out, err] = self.reading;
        self.reading = [!self.stdout.is_full(), !self.stderr.is_full()];
        if before == self.reading && !self.stdout.broken && !self.stderr.broken {
            return Ok(());
        }
        for (&rank, r) in &mut self.ranks {
            let rank = u64::from(rank);
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
            Output::Exits { rank, code } => {
                let who = self.who(rank);
                self.exits(who, code);
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
