//! What happened, whose fault it was, and what becomes of the others.

use std::io;
use std::time::Instant;

use gasworks_bootstrap::server::Phase;
use gasworks_core::observe;
use gasworks_os::process::{self, Exit};
use gasworks_os::{limits, signals};
use nix::sys::signal::Signal;

use super::entrance::Entrance;
use super::tree::Tree;
use super::{CLOSING, GRACE, Job, Rank, STUCK, TWICE};
use crate::remote::message::{Announced, Down, Up};
use crate::{code, report};

impl Job {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let asked = self.inspector.as_ref().and_then(|inspector| inspector.deadline());
        let visitor = self.entrance.as_ref().and_then(Entrance::deadline);
        let tree = self.tree.as_ref().and_then(Tree::deadline);
        let held = self.held.front().map(|(at, _)| *at);
        if self.failed {
            return [self.end_at, self.kill_at, asked, visitor, tree, held].into_iter().flatten().min();
        }
        let kill_at = self.kill_at;
        let closing = self.hang_ups.front().map(|&(at, _)| at + CLOSING);
        let timeout = self.timeout.map(|(at, _)| at);
        let stuck = self.stuck.map(|at| at + STUCK);
        [kill_at, closing, timeout, asked, stuck, visitor, tree, held].into_iter().flatten().min()
    }

    pub(super) fn look_at_the_clock(&mut self) {
        self.release_held();
        let now = Instant::now();
        if self.failed {
            if self.end_at.is_some_and(|at| at <= now) {
                self.end_all(None);
            }
            if self.kill_at.is_some_and(|at| at <= now) {
                self.kill_at = None;
                self.signal_living(Signal::SIGKILL, None);
            }
            return;
        }
        if let Some(signal) = self.ended_by
            && self.kill_at.is_some_and(|at| at <= now)
        {
            let text = format!(
                "the ranks did not end within {} s of {signal} ({}): killing them",
                self.exit_timeout.as_secs_f64(),
                report::EXIT_TIMEOUT.name
            );
            self.kill(&text, signal);
            return;
        }
        if let Some((at, allowed)) = self.timeout
            && at <= now
        {
            let left: Vec<u32> = match &self.tree {
                Some(tree) => tree.living(),
                None => self.ranks.iter().filter(|(_, r)| r.exit.is_none()).map(|(rank, _)| *rank).collect(),
            };
            let seconds = allowed.as_secs_f64();
            let still = match left.as_slice() {
                [] => "its output is not read".to_owned(),
                left => format!("still running: {}", observe::ranks(left)),
            };
            let text = format!("the job did not end within {seconds} s: {still}");
            self.fail(&text, Some(code::TIMED_OUT), None);
            return;
        }
        if self.stuck.is_some_and(|at| at + STUCK <= now) {
            self.stuck = None;
            if let Some((waiting, gone)) = self.server.stuck() {
                let text = format!("{} has ended, and rank {waiting} waits for it", self.who(gone));
                self.fail(&text, Some(code::FAILED), None);
                return;
            }
        }
        while let Some(&(at, rank)) = self.hang_ups.front()
            && at + CLOSING <= now
        {
            self.hang_ups.pop_front();
            if self.ranks.get(&rank).is_some_and(|r| r.exit.is_none()) {
                let text = format!("{} closed its connection to gasrun before finalize", self.who(rank));
                self.fail(&text, Some(code::FAILED), None);
            }
        }
    }

    /// The job has failed: says why, once, and ends the ranks, all but `spare` at once.
    pub(super) fn fail(&mut self, text: &str, code: Option<i32>, spare: Option<u32>) {
        if self.failed {
            return;
        }
        self.failed = true;
        self.code = code;
        if self.say_up(&Up::Failed { text: text.to_owned(), code, spare }) {
            // The root says what is to be done.
            return;
        }
        self.say(text);
        self.end_all(spare);
    }

    /// Ends the ranks, all but `spare` at once.
    pub(super) fn end_all(&mut self, spare: Option<u32>) {
        self.failed = true;
        self.end_at = None;
        if self.strict {
            self.signal_living(Signal::SIGKILL, spare);
        } else {
            self.signal_living(Signal::SIGTERM, spare);
        }
        self.kill_at = Some(Instant::now() + GRACE);
    }

    /// The job fails because of `signal`, and the ranks get no time for it.
    fn kill(&mut self, text: &str, signal: Signal) {
        self.fail(text, Some(128 + signal as i32), None);
        self.kill_at = None;
        self.signal_living(Signal::SIGKILL, None);
    }

    /// What ranks wrote does not reach where it was to go: the job fails, whatever the ranks make of it.
    pub(super) fn output_lost(&mut self, stream: &str, why: &io::Error) {
        let text = format!("write {stream}: {why}");
        if self.failed {
            self.say(&text);
        }
        self.fail(&text, Some(code::FAILED), None);
    }

    pub(super) fn signal_living(&mut self, signal: Signal, spare: Option<u32>) {
        if self.verbose {
            self.say(&format!("sending {signal} to the ranks that still run"));
        }
        if let Some(tree) = &mut self.tree {
            tree.tell_children(&Down::Send { signal: signal as i32, spare });
            tree.give_up_coming();
        }
        self.signal_here(signal, spare);
    }

    pub(super) fn signal_here(&self, signal: Signal, spare: Option<u32>) {
        for (rank, r) in &self.ranks {
            if r.exit.is_none() && Some(*rank) != spare {
                // A group that is gone has ended already, which is about to be noticed.
                let _ = process::kill_group(r.pid, signal);
                // A stopped process does not hear of anything but its death.
                if signal != Signal::SIGSTOP {
                    let _ = process::kill_group(r.pid, Signal::SIGCONT);
                }
            }
        }
    }

    /// This process is to stop, as a rule by Ctrl-Z: the ranks stop with it, and go on when it does. What the job may take does
    /// not go on meanwhile.
    pub(super) fn suspend(&mut self) {
        let begun = Instant::now();
        self.send_all(Signal::SIGSTOP);
        // What was said to other hosts is on its way; this returns when somebody lets the process go on.
        let _ = nix::sys::signal::raise(Signal::SIGSTOP);
        self.send_all(Signal::SIGCONT);
        let stopped = begun.elapsed();
        let timeout = self.timeout.as_mut().map(|(at, _)| at);
        let ends = [timeout, self.end_at.as_mut(), self.kill_at.as_mut(), self.stuck.as_mut()];
        ends.into_iter().flatten().for_each(|at| *at += stopped);
    }

    /// To all ranks, which nothing else comes of.
    pub(super) fn send_all(&mut self, signal: Signal) {
        if let Some(tree) = &mut self.tree {
            tree.tell_children(&Down::Send { signal: signal as i32, spare: None });
        }
        self.signal_here(signal, None);
    }

    /// A rank that the terminal has stopped would be waited for in vain.
    pub(super) fn look_for_the_stopped(&mut self) {
        while let Some((pid, signal)) = process::stopped() {
            let rank = self.ranks.iter().find(|(_, r)| r.pid == pid).map(|(rank, _)| *rank);
            if let (Some(rank), libc::SIGTTIN | libc::SIGTTOU) = (rank, signal) {
                let text = format!(
                    "{} was stopped at the terminal, which is not a rank's to read from or to set: what is typed comes to \
                     the standard input of rank 0",
                    self.who(rank)
                );
                self.fail(&text, Some(code::FAILED), None);
            }
        }
    }

    pub(super) fn pass_on(&mut self, signal: Signal, sender: u32) {
        let ends = !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2);
        if self.tree.as_ref().is_some_and(|tree| !tree.is_root()) {
            // Signals for the job come to gasrun; this one is meant for the agent.
            if ends {
                let text = format!("gasrun's agent{} got {signal}", self.here());
                self.fail(&text, Some(128 + signal as i32), None);
            }
            return;
        }
        if self.verbose {
            self.say(&format!("{signal} came from process {sender}"));
        }
        if ends && self.ended_by == Some(signal) && self.ended_at.is_some_and(|at| at.elapsed() < TWICE) {
            return;
        }
        if ends && self.ended_by.is_some() {
            self.kill(&format!("a second signal came ({signal}): killing the ranks"), signal);
            return;
        }
        if ends {
            self.ended_by = Some(signal);
            self.ended_at = Some(Instant::now());
            if !self.failed {
                self.kill_at = Some(Instant::now() + self.exit_timeout);
            }
        }
        if ends && self.tree.as_ref().is_some_and(Tree::is_starting) {
            let number = signal as i32;
            self.fail(&format!("the job was ended by {signal} while it started"), Some(128 + number), None);
            return;
        }
        if let Some(tree) = &mut self.tree {
            tree.tell_children(&Down::Pass { signal: signal as i32 });
        }
        if self.verbose {
            self.say(&format!("sending {signal} to the ranks that still run"));
        }
        self.signal_here(signal, None);
    }

    /// A process has ended: a rank, or something that a rank left behind.
    pub(super) fn ended(&mut self, pid: i32, exit: Exit) {
        let of = |(_, r): &(&u32, &Rank)| r.pid == pid && r.exit.is_none();
        let Some(rank) = self.ranks.iter().find(of).map(|(rank, _)| *rank) else {
            self.remote_ended(pid, exit);
            return;
        };
        if let Some(r) = self.ranks.get_mut(&rank) {
            r.exit = Some(exit);
            r.connection = None;
        }
        self.living -= 1;
        self.rank_gone(rank, exit);
        if self.verbose {
            self.say(&format!("{} {exit}", self.who(rank)));
        }
        if self.aborter == Some(rank) && self.code.is_none() && exit.code() != 0 {
            // The others, told to end, may have made it end with their code in place of the one that it has told of.
            let code = match (exit, &self.exiting) {
                (Exit::Code(_), Some(announced)) if announced.who == self.who(rank) => announced.code,
                _ => exit.code(),
            };
            self.code = Some(code);
            self.say_up(&Up::Code { rank, code });
        }
        let unfinished = self.strict && self.server.phase(rank) != Phase::Finalized;
        let midway = matches!(self.server.phase(rank), Phase::Greeted | Phase::Joined | Phase::InFence);
        match exit {
            // Ranks of ours end with the code that a shell would give for the signal.
            Exit::Signal(_) | Exit::Code(_)
                if self.ended_by.is_some_and(|s| 128 + s as i32 == exit.code()) =>
            {
                let signal = exit.code() - 128;
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
            Exit::Code(0) if midway || unfinished => {
                let text = format!("{} exited with code 0 without finalize", self.who(rank));
                self.fail(&text, Some(code::FAILED), None);
            }
            Exit::Code(0) => self.look_for_stuck(),
            Exit::Code(code) => {
                let who = self.who(rank);
                self.exited(who, code);
            }
        }
    }

    /// A rank announces the code with which it ends the job.
    pub(super) fn exits(&mut self, announced: Announced) {
        self.say_up(&Up::Exiting(announced.clone()));
        self.exiting.get_or_insert(announced);
    }

    /// A rank has ended with a code that is not zero.
    pub(super) fn exited(&mut self, who: String, code: i32) {
        if self.failed {
            return;
        }
        // Of ranks that end with one code the one to name is the one whose code it was.
        let announced = self.exiting.as_ref().filter(|announced| announced.code == code).cloned();
        let who = announced.as_ref().map_or(who, |announced| announced.who.clone());
        if self.say_up(&Up::Exited { who: who.clone(), code }) {
            self.failed = true;
            return;
        }
        // A program that ends its job with a code has said itself what there is to say.
        if announced.is_none() || code >= 128 || self.verbose {
            self.say(&format!("{who} exited with code {code}"));
        }
        self.code = Some(code);
        if announced.is_some_and(|announced| announced.told) && !self.strict {
            self.failed = true;
            self.end_at = Some(Instant::now() + self.exit_timeout);
        } else {
            self.end_all(None);
        }
    }

    pub(super) fn look_for_stuck(&mut self) {
        if !self.failed && self.stuck.is_none() && self.server.stuck().is_some() {
            self.stuck = Some(Instant::now());
        }
    }
}
