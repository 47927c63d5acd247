//! The thread that sees to the end of this process: it hears the wishes of calls and hooks, comes to terms with the
//! other ranks, tells the launcher, and ends the process. It also notices when the launcher or another rank is gone.
//!
//! A rank that computes looks at nothing for a long time; this thread sleeps until something happens, and costs
//! nothing meanwhile. See `docs/decisions/0005-exit.md` for the protocol.

mod star;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gasworks_os::descriptor::Descriptor;
use gasworks_os::ending::{self, Wish};
use gasworks_os::eventfd::EventFd;
use gasworks_os::{process, threads};
use gasworks_sync::kill_point;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::lifeline::Word;
use crate::link::Link;
use crate::{BootstrapError, ExitTimeout};
use star::{Heard, Star};

/// How long the launcher has to end this rank, or this rank to notice by itself, when the launcher or another rank is
/// gone: each of them knows more about it than this thread.
const GRACE: Duration = Duration::from_millis(300);
/// How long ranks have at most to wish for the end of the job by themselves, before they are told of it.
const CONSENT: Duration = Duration::from_millis(250);
/// How long a rank that aborts may take for what it still has to write, and an end with an error for the launcher's answer.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How often a thread that hears nothing looks whether the program has closed what it hears by, in milliseconds.
const LOOK: u16 = 1000;
/// How often the clock is looked at while the job ends.
const TICK: Duration = Duration::from_millis(10);

/// What the thread is told from outside.
#[derive(Debug)]
pub(crate) struct Keeper {
    bell: &'static EventFd,
    link: Arc<OnceLock<Arc<Link>>>,
}

impl Keeper {
    /// Starts it for `rank`; `launcher` hangs up when the launcher vanishes, where there is such a descriptor. `timeout` is
    /// the exit time-out.
    pub(crate) fn start(
        rank: u32,
        launcher: Option<OwnedFd>,
        bell: &'static EventFd,
        timeout: ExitTimeout,
    ) -> Result<Self, BootstrapError> {
        let link = Arc::new(OnceLock::new());
        let mut state = State::new(rank, bell, timeout);
        state.launcher = launcher.map(Descriptor::from);
        state.link = Arc::clone(&link);
        threads::start("gasworks-keeper", Some(STACK), move || state.run()).map_err(|source| {
            // Nobody would answer who waits for the end.
            ending::disarm();
            BootstrapError::Io { during: "start the keeper of this rank", source }
        })?;
        Ok(Self { bell, link })
    }

    /// This rank has joined: the launcher can be told of its end.
    pub(crate) fn joined(&self, link: Arc<Link>) {
        // There is one link in a process.
        let _ = self.link.set(link);
    }

    /// The link has met the ranks of this host: from now on it can be told, and tell, of the end.
    pub(crate) fn met(&self) {
        let _ = self.bell.ring();
    }
}

/// How large the keeper's stack is.
const STACK: usize = 0x2_0000;

/// How far the end has come.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nobody wishes for it.
    Running,
    /// Somebody does, since then.
    Asked { code: u8, at_once: bool, since: Instant },
    /// It is certain.
    Ending(Ending),
}

#[derive(Clone, Copy, Debug)]
struct Ending {
    code: u8,
    since: Instant,
    /// This rank has said that it is ready.
    ready: bool,
    /// Everybody is ready, or nobody is waited for any more.
    go: bool,
    /// Those below have been told so.
    passed: bool,
    /// Every rank of the job ends so.
    whole: bool,
    /// How many steps of the escalation have been taken.
    steps: usize,
}

#[derive(Debug)]
struct State {
    rank: u32,
    bell: &'static EventFd,
    launcher: Option<Descriptor>,
    link: Arc<OnceLock<Arc<Link>>>,
    /// Made when the ranks of this host have met.
    star: Option<Star>,
    timeout: ExitTimeout,
    phase: Phase,
    /// Since when the program's handler of SIGQUIT is asked for the code of a signal.
    consulted: Option<Instant>,
    /// The last wish of this process that was taken up, as the code and one.
    told: u16,
    /// The leader has heard of it.
    said: bool,
    /// The last word that the first leader was told, where this rank leads another host.
    raised: Option<Word>,
    /// How many steps were taken to make the leader answer.
    pushed: usize,
    /// Since when the launcher is gone.
    lost: Option<Instant>,
    /// Which rank is gone without a word, and since when.
    missing: Option<(u32, Instant)>,
}

/// What is sent to processes that do not end, and when, as parts of the time-out.
const ESCALATION: [(f64, Signal); 3] =
    [(0.5, Signal::SIGQUIT), (0.75, Signal::SIGTERM), (1.25, Signal::SIGKILL)];

/// How long ranks have to ask for an end that need not be at once, before they are told of it.
fn consent_limit(timeout: Duration) -> Duration {
    CONSENT.min(timeout / 4)
}

/// How long a rank that asks for the end with `code` waits for the ranks of its host to meet.
fn meeting_limit(timeout: Duration, code: u8) -> Duration {
    if code == 0 { timeout * 3 / 2 } else { timeout / 2 }
}

/// How long a follower that asks for the end with `code` waits for the leader's verdict. The leader decides in a moment,
/// or for code 0 at the end of the time-out.
fn verdict_limit(timeout: Duration, code: u8) -> Duration {
    if code == 0 { timeout * 5 / 4 } else { timeout / 4 + consent_limit(timeout) }
}

/// How many quarters of the time-out a follower has waited longer than `limit`: so many signals the leader is to have got.
fn quarters_beyond(waited: Duration, limit: Duration, timeout: Duration) -> usize {
    (waited.saturating_sub(limit).as_secs_f64() / timeout.as_secs_f64() * 4.0) as usize
}

/// How long a follower waits for the leader beyond the time at which it would be told: for its verdict, and for its last
/// word.
fn leader_limit(timeout: Duration) -> Duration {
    timeout * 5 / 4
}

/// How long a leader waits for the processes of its followers to end.
fn followers_limit(timeout: Duration) -> Duration {
    timeout * 3 / 2
}

/// The signal that is due as step number `step` of the escalation, where so much time has passed.
fn due_signal(step: usize, waited: Duration, timeout: Duration) -> Option<Signal> {
    ESCALATION.get(step).filter(|(part, _)| waited > timeout.mul_f64(*part)).map(|(_, signal)| *signal)
}

/// A list of ranks, cut where it is long.
fn list_of(ranks: &[u32]) -> String {
    let list: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    list.join(", ") + if ranks.len() > 8 { ", ..." } else { "" }
}

/// Starts a thread on which the program's own code runs, which may take as long as it likes.
fn start_end(run: fn()) -> std::io::Result<()> {
    std::thread::Builder::new().name("gasworks-end".into()).spawn(run).map(drop)
}

impl State {
    /// Of a rank that nothing is known of: no launcher, no other rank, no end.
    fn new(rank: u32, bell: &'static EventFd, timeout: ExitTimeout) -> Self {
        Self {
            rank,
            bell,
            launcher: None,
            link: Arc::default(),
            star: None,
            timeout,
            phase: Phase::Running,
            consulted: None,
            told: 0,
            said: false,
            raised: None,
            pushed: 0,
            lost: None,
            missing: None,
        }
    }

    /// Runs until this process ends, or goes on to its end by itself.
    fn run(&mut self) {
        loop {
            let heard = self.wait();
            if self.star.is_none()
                && let Some(lines) = self.link.get().and_then(|link| link.take_lines())
            {
                self.star = Some(Star::new(lines));
                kill_point!("keeper.star");
            }
            for word in heard {
                self.hear(word);
            }
            match ending::wish() {
                // Also where another rank has asked for an end, as long as that is not certain.
                Some(Wish::Leave { code }) if !matches!(self.phase, Phase::Ending(_)) => {
                    return self.leave(code);
                }
                Some(Wish::Exit { provisional: true, .. }) => self.consult(),
                Some(Wish::Exit { code, at_once, .. }) if self.told != u16::from(code) + 1 => {
                    self.told = u16::from(code) + 1;
                    self.wished_here(code, at_once);
                }
                _ => {}
            }
            self.look_for_the_dead();
            self.look_at_the_clock();
        }
    }

    /// The exit time-out: of this rank alone, as long as it has not joined.
    fn timeout(&self) -> Duration {
        self.timeout.of(self.link.get().map_or(1, |link| link.size))
    }

    /// Sleeps until something happens; gives what came from other ranks.
    fn wait(&mut self) -> Vec<Heard> {
        // What is polled is looked at first: the program may have closed it. Where it is in no job that is its own affair, and nobody can be
        // told of its end.
        while !ending::in_job() && !self.is_whole() {
            if let Some(Wish::Leave { code }) = ending::wish() {
                ending::let_go(code);
            }
            std::thread::park_timeout(TICK);
        }
        let pause = match self.phase {
            Phase::Running if self.lost.or(self.consulted).is_none() && self.missing.is_none() => LOOK.into(),
            _ => PollTimeout::try_from(TICK).unwrap_or(PollTimeout::MAX),
        };
        // The flag that a stream socket sets as soon as the other side writes no more; nix has no name for it.
        let half_closed = PollFlags::from_bits_retain(nix::libc::POLLRDHUP);
        let mut fds = vec![PollFd::new(self.bell.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.launcher.iter().map(|fd| PollFd::new(fd.as_fd(), half_closed)));
        let own = fds.len();
        let others = self.star.iter().flat_map(Star::descriptors);
        fds.extend(others.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        // An interrupted or refused wait is one in which nothing has come.
        let _ = poll(&mut fds, pause);
        // `None` is a flag without a name, such as the one above.
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any() != Some(false)).collect();
        drop(fds);
        // It may have closed them meanwhile.
        if !ending::in_job() && !self.is_whole() {
            return Vec::new();
        }
        if ready[0] {
            self.bell.clear();
        }
        if own == 2 && ready[1] {
            self.launcher = None;
            self.lost = Some(Instant::now());
        }
        self.star.as_mut().map(|star| star.turn(&ready[own..])).unwrap_or_default()
    }

    /// Whether the program has left open what this thread hears by.
    fn is_whole(&self) -> bool {
        let launcher = self.launcher.as_ref().is_none_or(Descriptor::is_whole);
        self.bell.is_whole() && launcher && self.star.as_ref().is_none_or(Star::is_whole)
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Exit { code, at_once } => self.wished(code, at_once),
            Heard::Verdict { code } => self.end(code),
            Heard::Go { whole } => {
                if let Phase::Ending(ending) = &mut self.phase {
                    (ending.go, ending.whole) = (true, whole);
                }
            }
            Heard::Gone { rank, bye } => self.miss(rank, bye),
        }
    }

    /// The process of another rank has ended: at the leader any, at the others the leader.
    fn miss(&mut self, rank: u32, bye: bool) {
        let above = self.star.as_mut().is_some_and(|star| star.lose_above(rank));
        // One that leads a host goes on as its first leader.
        let follows = above && matches!(self.star, Some(Star::Alone));
        match &mut self.phase {
            Phase::Ending(ending) if follows => {
                ending.go = true;
            }
            Phase::Asked { code, .. } if follows && (bye || *code != 0) => {
                let code = *code;
                self.end(code);
            }
            Phase::Asked { code: 1.., .. } if above => {}
            phase @ (Phase::Running | Phase::Asked { .. }) if !bye && ending::in_job() => {
                // It did not wish for an end with code 0, so this is none.
                if above {
                    *phase = Phase::Running;
                }
                self.missing.get_or_insert_with(|| (rank, Instant::now()));
            }
            _ => {}
        }
    }

    /// A signal tells this process to end: the program's handler of SIGQUIT is asked first, and has half the time-out.
    fn consult(&mut self) {
        match self.consulted {
            None => {
                self.consulted = Some(Instant::now());
                if start_end(ending::consult).is_err() {
                    ending::settle();
                }
            }
            Some(since) if since.elapsed() > self.timeout() / 2 => ending::settle(),
            Some(_) => {}
        }
    }

    /// This process wishes for the end.
    fn wished_here(&mut self, code: u8, at_once: bool) {
        if let (Some(link), true) = (self.link.get(), code != 0) {
            // Where hosts are not connected the launcher ends the others.
            link.announce_exit(code, self.star.is_some() && !link.needs_launcher());
        }
        kill_point!("keeper.wished");
        match self.star {
            // The leader is told as soon as there is a way.
            Some(Star::Follower(_)) | None => {
                self.said = false;
                self.ask(code, at_once);
            }
            Some(Star::Leader(_) | Star::Alone) => self.wished(code, at_once),
        }
    }

    fn ask(&mut self, code: u8, at_once: bool) {
        match &mut self.phase {
            Phase::Asked { code: asked, at_once: now, .. } if *asked != 0 || code == 0 => *now |= at_once,
            Phase::Running | Phase::Asked { .. } => {
                self.phase = Phase::Asked { code, at_once, since: Instant::now() };
            }
            Phase::Ending(_) => {}
        }
    }

    /// At the leader, or at a rank alone: somebody wishes for the end.
    fn wished(&mut self, code: u8, at_once: bool) {
        match ending::wish() {
            // What this process itself wished for before comes first.
            Some(Wish::Exit { code: own @ 1.., at_once: now, provisional: false, .. }) => {
                self.ask(own, at_once || now);
            }
            _ => self.ask(code, at_once),
        }
    }

    /// It is certain: the job ends with `code`.
    fn end(&mut self, code: u8) {
        if matches!(self.phase, Phase::Ending(_)) {
            return;
        }
        kill_point!("keeper.verdict");
        if let Some(star @ Star::Leader(leader)) = &self.star {
            star.say(Word::Verdict { code });
            let mut absent = leader.absent();
            if !matches!(ending::wish(), Some(Wish::Exit { provisional: false, .. })) {
                absent.insert(0, self.rank);
            }
            if code == 0 && !absent.is_empty() {
                self.tell_of(&absent);
            }
        }
        self.phase = Phase::Ending(Ending {
            code,
            since: Instant::now(),
            ready: false,
            go: false,
            passed: false,
            whole: false,
            steps: 0,
        });
        if start_end(ending::speak).is_err() {
            self.get_ready();
        }
    }

    fn look_for_the_dead(&mut self) {
        if let Phase::Ending(_) = self.phase {
            return;
        }
        if self.lost.is_some_and(|at| at.elapsed() > GRACE) {
            self.lost = None;
            if ending::in_job() {
                gasworks_os::say(&format!(
                    "gasworks: rank {}: the launcher is gone (it closed the connection): this rank ends",
                    self.rank
                ));
                process::exit_now(1);
            }
        }
        if let Some((rank, _)) = self.missing.filter(|(_, at)| at.elapsed() > GRACE) {
            self.missing = None;
            if ending::in_job() {
                gasworks_os::say(&format!(
                    "gasworks: rank {}: rank {rank} is gone without a word: the job ends",
                    self.rank
                ));
                match self.star.as_ref().is_some_and(Star::has_above) {
                    true => self.ask(1, true),
                    false => self.end(1),
                }
            }
        }
    }

    fn look_at_the_clock(&mut self) {
        match self.phase {
            Phase::Running => {}
            Phase::Asked { code, at_once, since } => self.while_asked(code, at_once, since),
            Phase::Ending(ending) => self.while_ending(ending),
        }
    }

    fn while_asked(&mut self, code: u8, at_once: bool, since: Instant) {
        let waited = since.elapsed();
        let wish = ending::wish();
        let own = matches!(wish, Some(Wish::Exit { provisional: false, .. }));
        let consulting = matches!(wish, Some(Wish::Exit { provisional: true, .. }));
        match &self.star {
            Some(Star::Alone) => self.end(code),
            // Not with 0, before it is clear what has become of a rank, or what this one wishes for.
            Some(Star::Leader(_)) if code == 0 && (self.missing.is_some() || consulting) => {}
            Some(star @ Star::Leader(leader)) if star.has_above() => {
                let agreed = own && leader.wished_by_all();
                let is_known = at_once || agreed || code != 0 && waited > consent_limit(self.timeout());
                self.raise(if is_known { Word::Exit { code, at_once } } else { Word::Asked { code } });
                if waited > verdict_limit(self.timeout(), code) + leader_limit(self.timeout()) {
                    self.end(code);
                }
            }
            Some(Star::Leader(leader)) if code != 0 => {
                let agreed = own && leader.wished_by_all();
                if at_once || agreed || self.missing.is_some() || waited > consent_limit(self.timeout()) {
                    self.end(code);
                }
            }
            Some(Star::Leader(leader)) => {
                if own && leader.wished_by_all() {
                    return self.end(0);
                }
                if waited > self.timeout() {
                    self.end(0);
                }
            }
            None => {
                // The ranks of the host may be about to meet.
                if waited > meeting_limit(self.timeout(), code) {
                    self.end(code);
                }
            }
            Some(star @ Star::Follower(_)) => {
                if !self.said {
                    star.say(Word::Exit { code, at_once });
                    self.said = true;
                    self.phase = Phase::Asked { code, at_once, since: Instant::now() };
                    return;
                }
                // A leader that is stopped is first let run, and hears what was said to it before any signal.
                let limit = verdict_limit(self.timeout(), code);
                let steps = [Signal::SIGCONT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGKILL];
                let step = quarters_beyond(waited, limit, self.timeout());
                if waited > limit && step >= self.pushed {
                    if let Some(&signal) = steps.get(self.pushed) {
                        star.signal(signal);
                    }
                    self.pushed += 1;
                }
                if waited > limit + leader_limit(self.timeout()) {
                    self.end(code);
                }
            }
        }
    }

    /// Says a word to the first leader, once.
    fn raise(&mut self, word: Word) {
        if self.raised != Some(word) {
            self.star.iter().for_each(|star| star.say_above(word));
            self.raised = Some(word);
        }
    }

    fn tell_of(&self, absent: &[u32]) {
        gasworks_os::say(&format!(
            "gasworks: the job ends by exit(0), which not all ranks have called within {:.1} s \
             (GASNET_EXITTIMEOUT): rank {} did not",
            self.timeout().as_secs_f64(),
            list_of(absent)
        ));
    }

    /// This rank has done what it does before the end.
    fn get_ready(&mut self) {
        let Phase::Ending(ending) = &mut self.phase else { return };
        if ending.ready {
            return;
        }
        ending.ready = true;
        kill_point!("keeper.ready");
        if let Some(star @ Star::Follower(_)) = &self.star {
            star.say(Word::Ready);
        }
    }

    fn while_ending(&mut self, ending: Ending) {
        let Ending { since, go, steps, .. } = ending;
        let waited = since.elapsed();
        let (speaking, consulting) = match ending::wish() {
            // Data of the program's are waited for, but not where something has gone wrong already.
            Some(Wish::Exit { speaking, at_once, provisional, .. }) => {
                (speaking && !(at_once && waited > LAST_WORDS), provisional)
            }
            _ => (false, false),
        };
        if ending::has_spoken() && !consulting && !speaking {
            self.get_ready();
        }
        if let Some(signal) = due_signal(steps, waited, self.timeout()) {
            if let Some(star @ Star::Leader(_)) = &self.star {
                star.signal(signal);
            }
            if signal == Signal::SIGTERM && !ending.ready {
                // Without it the end comes a quarter of the time-out later.
                let _ = start_end(|| ending::raise_if_handled(Signal::SIGTERM));
            }
            if let Phase::Ending(ending) = &mut self.phase {
                ending.steps += 1;
            }
        }
        let late = waited > self.timeout();
        if late {
            self.get_ready();
        }
        let Phase::Ending(ending @ Ending { code, ready, .. }) = self.phase else { return };
        let (over, whole) = match &self.star {
            None => (ready, false),
            Some(Star::Alone) => (ready, ending.whole || self.link.get().is_some_and(|link| link.size == 1)),
            Some(Star::Follower(_)) => (ready && (go || waited > leader_limit(self.timeout())), ending.whole),
            Some(star @ Star::Leader(leader)) => {
                let (mut whole, above) = (ending.whole, star.has_above());
                // A launcher of ours ends the other hosts itself where a rank fails, and knows of those that nobody reaches.
                let hosts = code == 0 || !self.link.get().is_some_and(|link| link.ours);
                let is_ready = ready && (late || leader.all_ready(hosts));
                let reaches_all =
                    leader.reaches_all() || !self.link.get().is_some_and(|link| link.spans_hosts());
                // The host is ready with its leader; the first leader says when all hosts are.
                let may_go = ready && (go || waited > leader_limit(self.timeout()));
                let is_whole = leader.is_whole() && if above { ending.whole } else { reaches_all };
                if is_ready && above {
                    self.raise(Word::Ready);
                }
                if !ending.passed && if above { may_go } else { is_ready } {
                    whole = is_whole;
                    // Those that are ready have as long again for what the program has registered for its end.
                    let (since, steps) =
                        if late { (since, ending.steps) } else { (Instant::now(), ESCALATION.len() - 1) };
                    self.phase = Phase::Ending(Ending { passed: true, whole, since, steps, ..ending });
                    if let Some(star) = &self.star {
                        star.say(Word::Go { whole });
                    }
                }
                let Some(Star::Leader(leader)) = &self.star else { return };
                let passed = matches!(self.phase, Phase::Ending(Ending { passed: true, .. }));
                (passed && (leader.all_gone(hosts) || waited > followers_limit(self.timeout())), whole)
            }
        };
        if over {
            self.finish(code, whole)
        }
    }

    /// Ends this process.
    fn finish(&self, code: u8, whole: bool) -> ! {
        if let Some(link) = self.link.get() {
            // A launcher that kills the others when one ends without this word makes that the job's code. So it is said
            // with any code where all ranks end by themselves; but where there is an error nothing long is waited for.
            // One that leads another host, and does not end: it is stopped, or cannot be reached any more. Or one that never could.
            let told = matches!(self.phase, Phase::Ending(Ending { go: true, .. }));
            let is_stuck = match &self.star {
                Some(star @ Star::Leader(leader)) if link.spans_hosts() => match star.has_above() {
                    true => leader.has_unreached() || !told,
                    false => leader.has_unreached() || code != 0 && !leader.reaches_all(),
                },
                _ => false,
            };
            let fails_alone = link.needs_launcher() && !matches!(self.star, Some(Star::Follower(_)));
            let by_launcher = is_stuck || code != 0 && !whole && fails_alone;
            if by_launcher && (code == 0 || !link.ours) {
                // Not every launcher ends the others when a rank fails.
                link.abort(code.into(), "a rank of the job has ended it");
            } else if code == 0 {
                link.finalize_at_exit(self.timeout());
            } else if whole && !link.ours {
                link.finalize_at_exit(LAST_WORDS.min(self.timeout()));
            }
        }
        kill_point!("keeper.finish");
        ending::end(code, self.timeout())
    }

    /// This process ends by itself, and the job need not.
    fn leave(&mut self, code: u8) {
        if let Some(star) = &self.star {
            star.say(Word::Bye);
            if star.has_above() {
                star.say_above(Word::Bye);
            }
        }
        kill_point!("keeper.bye");
        if code == 0
            && let Some(link) = self.link.get()
        {
            link.finalize_at_exit(self.timeout());
        }
        ending::let_go(code);
    }
}

#[cfg(test)]
mod tests;
