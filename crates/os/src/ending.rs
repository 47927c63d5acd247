//! How this process leaves its job: what calls and hooks wish for, and the hooks themselves.
//!
//! Whoever wants the process to end writes a *wish* and rings a bell. A thread of the layer above, the keeper, reads
//! it, comes to terms with the other ranks and the launcher, and ends the process. So a call, a signal handler and a
//! return from `main` all come to the same place, and a signal handler does next to nothing.
//!
//! # Invariants
//! - ending.1: a signal handler reads and writes atomics of the registry and calls async-signal-safe functions, nothing else.
//!   The exit hook runs where `exit` was called, which is no signal handler of ours.
//! - ending.2: these calls take numbers, or structures that live through the call; all zeroes is a valid `sigaction`.
//! - ending.3: the bell's descriptor stays open as long as the process lives, and the program lets it: its owner is leaked.
//! - ending.4: C's standard output and input are valid streams from the start of the process to its end.
//! - ending.5: a stream that is read holds nothing to be written: flushing all streams looks at its flags alone, without its lock
//!   where a thread keeps that.
//! - ending.6: what is registered by [`at_end`] is called by the thread that has registered it. Other threads move it, and drop what is left of it when it is
//!   gone: counts, which are atomic.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{PoisonError, Weak};
use std::time::{Duration, Instant};

use gasworks_sync::atomic::Ordering;
use nix::sys::signal::Signal;

use crate::eventfd::EventFd;
use crate::hooks::{Act, Ending};
use crate::{OsError, Result, descriptor, futex, jobs, process, signals};

pub use crate::hooks::{AtEnd, EndStep};

impl Ending {
    fn is_ours(&self) -> bool {
        self.pid.load(Ordering::Acquire) == std::process::id()
    }

    /// As [`Ending::is_ours`], once a job that begins to open has its keeper: before that nobody hears a wish.
    fn becomes_ours(&self) -> bool {
        let begun = Instant::now();
        while self.pid.load(Ordering::Acquire) == 0
            && self.jobs.load(Ordering::Acquire) > 0
            && begun.elapsed() < ARMING
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_ours()
    }

    /// Whether a signal is a wish: in a job, and as long as there is a keeper who hears it.
    fn takes_signals(&self) -> bool {
        self.is_ours() && self.jobs.load(Ordering::Acquire) > 0 && !self.has_left()
    }

    /// Enters a wish, unless one is there that comes first: what is certain before what is not, the end of the job
    /// before that of the process alone, and the first code that is not zero before any other.
    fn enter(&self, wanted: u32) {
        let mut now = self.wish.load(Ordering::Acquire);
        loop {
            let settles = now & !wanted & PROVISIONAL != 0;
            let upgrade = now & EXIT == 0 || (now & CODE == 0 && wanted & CODE != 0);
            if now != 0 && !settles && !(upgrade && wanted & EXIT != 0) {
                break;
            }
            let next = match now & wanted & EXIT {
                0 => wanted,
                // The program has said what it wishes for, and is not asked. What was to be at once still is.
                _ => (wanted & !PROVISIONAL) | (now & AT_ONCE),
            };
            match self.wish.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        self.ring();
    }

    fn ring(&self) {
        let Ok(number) = i32::try_from(self.bell.load(Ordering::Acquire)) else { return };
        // SAFETY: ending.3: `number` is the bell's, which nothing here closes. Where the program has closed it, `is_counter` looks at what
        // is there now before anything is written.
        let bell = unsafe { BorrowedFd::borrow_raw(number) };
        if !descriptor::is_counter(bell) {
            // After its jobs a program may close what it likes: the keeper looks for wishes then.
            if self.jobs.load(Ordering::Acquire) == 0 {
                return;
            }
            descriptor::lost(number);
        }
        // A full counter is readable already.
        let _ = nix::unistd::write(bell, &1u64.to_ne_bytes());
    }

    /// The caller of `exit` has nothing more to write.
    fn said_all(&self) {
        self.wish.fetch_and(!SPEAKING, Ordering::AcqRel);
        self.ring();
    }

    fn has_left(&self) -> bool {
        self.stage.load(Ordering::Acquire) & LEFT != 0
    }

    /// Lets the thread that waits in [`Ending::park`] go on with the end, which is one with `code`.
    fn let_go(&self, code: u8) {
        self.stage.store(LEFT | u32::from(code), Ordering::Release);
        futex::wake(&self.stage, u32::MAX);
    }

    /// Waits until the keeper has let this thread go on, or has ended the process. Gives the code with which it ends.
    fn park(&self, code: i32) -> u32 {
        // A handler of the program that ends the process in its turn has done what it had to.
        if self.speaker.load(Ordering::Acquire) == process::thread() {
            self.spoken.store(1, Ordering::Release);
            self.ring();
        }
        let patience = Duration::from_millis(self.patience.load(Ordering::Acquire));
        let begun = Instant::now();
        while !self.has_left() {
            if begun.elapsed() > patience {
                process::exit_now(code);
            }
            futex::wait(&self.stage, 0, Some(Duration::from_millis(100)));
        }
        self.stage.load(Ordering::Acquire) & CODE
    }
}

/// How long a job may take from its beginning to its keeper: reading settings, and starting a thread.
const ARMING: Duration = Duration::from_secs(1);

const CODE: u32 = 0xff;
const LEAVE: u32 = 1 << 8;
const EXIT: u32 = 1 << 9;
const SPEAKING: u32 = 1 << 10;
const AT_ONCE: u32 = 1 << 11;
const PROVISIONAL: u32 = 1 << 12;
const LEFT: u32 = 1 << 8;

/// What somebody in this process wishes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// This process ends by itself with this code, and the job need not end with it.
    Leave {
        /// Its exit code.
        code: u8,
    },
    /// The whole job is to end.
    Exit {
        /// With this code.
        code: u8,
        /// Whether the caller still has something to write, and says so when it has done.
        speaking: bool,
        /// Whether the others get no time to come to the same wish by themselves: this process was told to end, or
        /// aborts.
        at_once: bool,
        /// Whether the code is only that of a signal, and [`consult`] may find another one.
        provisional: bool,
    },
}

/// The signals that end a program and, unless the program handles them itself, end its job.
const ENDING: [Signal; 5] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGPIPE, Signal::SIGQUIT, Signal::SIGTERM];

/// A thread that waits for the end waits no longer than this.
pub fn wait_no_longer(patience: Duration) {
    let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    jobs::ending().patience.store(millis, Ordering::Release);
}

/// Installs the hooks of `rank`: from now on wishes ring the bell that is returned. Once in a process.
///
/// With `catch` an end by `exit` or by a return from `main` while a job is open is a wish to end the job. A thread
/// that waits for the end waits no longer than `patience`. Signals in the list `alone` stay the system's
/// ([`is_among`](crate::signals::is_among)).
pub fn arm(rank: u32, catch: bool, patience: Duration, alone: &str) -> Result<&'static EventFd> {
    let bell: &'static EventFd = Box::leak(Box::new(EventFd::new()?));
    let state = jobs::ending();
    state.bell.store(bell.as_fd().as_raw_fd().unsigned_abs(), Ordering::Release);
    state.rank.store(rank, Ordering::Release);
    state.catch.store(u32::from(catch), Ordering::Release);
    wait_no_longer(patience);
    state.pid.store(std::process::id(), Ordering::Release);
    for signal in ENDING.into_iter().filter(|signal| !signals::is_among(alone, *signal as i32)) {
        take_over(signal)?;
    }
    // SAFETY: ending.2: `at_exit` is a function of the type that `on_exit` wants, and makes no use of the argument, which is null.
    if unsafe { on_exit(at_exit, std::ptr::null_mut()) } != 0 {
        return Err(OsError::last("install", "an exit hook"));
    }
    Ok(bell)
}

/// There is no keeper after all: the process ends by itself, and its signals are the system's.
pub fn disarm() {
    jobs::ending().pid.store(0, Ordering::Release);
}

// SAFETY: these are the types of C and of the GNU C library, as `stdio.h`, `stdio_ext.h` and `stdlib.h` declare them.
unsafe extern "C" {
    /// As `atexit`, but the hook is told the code. Of the GNU C library.
    fn on_exit(hook: extern "C" fn(i32, *mut libc::c_void), argument: *mut libc::c_void) -> i32;
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
    #[link_name = "stdin"]
    static C_STDIN: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> i32;
    fn funlockfile(stream: *mut libc::FILE);
    /// Says who locks a stream. Of the GNU C library.
    fn __fsetlocking(stream: *mut libc::FILE, by: i32) -> i32;
}

/// The caller of each function locks the stream, if anybody does.
const FSETLOCKING_BYCALLER: i32 = 2;

/// Handles `signal`, if so far nobody does.
fn take_over(signal: Signal) -> Result<()> {
    if disposition(signal)? != libc::SIG_DFL {
        return Ok(());
    }
    // SAFETY: ending.2: `wanted` is a local, which is read. ending.1: its handler, `on_signal`, does no more than one may. SA_RESTART: the
    // program goes on undisturbed until the keeper ends it.
    let done = unsafe {
        let mut wanted: libc::sigaction = std::mem::zeroed();
        wanted.sa_sigaction = ours();
        wanted.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(signal as i32, &raw const wanted, std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(OsError::last("install a handler for", signal)) }
}

fn ours() -> libc::sighandler_t {
    let handler: extern "C" fn(i32) = on_signal;
    handler as libc::sighandler_t
}

fn disposition(signal: Signal) -> Result<libc::sighandler_t> {
    // SAFETY: ending.2: `present` is a local, which is written; the null pointer asks for no change.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal as i32, std::ptr::null(), &raw mut present) != 0 {
            return Err(OsError::last("read the handler of", signal));
        }
        Ok(present.sa_sigaction)
    }
}

/// Whether the program handles `signal` itself.
pub fn program_handles(signal: Signal) -> bool {
    disposition(signal).is_ok_and(|now| ![libc::SIG_DFL, libc::SIG_IGN, ours()].contains(&now))
}

/// What is done where a signal tells this process to end: the program's own handler of SIGQUIT may end it with a code
/// of its own choice; else that of the signal becomes certain. Called on a thread of its own.
pub fn consult() {
    quit();
    settle();
}

/// What is wished for is certain, whatever the program's handler still does.
pub fn settle() {
    let state = jobs::ending();
    state.wish.fetch_and(!PROVISIONAL, Ordering::AcqRel);
    state.ring();
}

/// What a process does that is told to end: the program's own handler of SIGQUIT, unless the end is also its own wish,
/// and what the standard streams still hold. Called on a thread of its own; the bell rings when it is done, also where
/// the handler ends the process in its turn.
pub fn speak() {
    let state = jobs::ending();
    state.speaker.store(process::thread(), Ordering::Release);
    if !matches!(wish(), Some(Wish::Exit { .. })) {
        quit();
    }
    flush();
    state.spoken.store(1, Ordering::Release);
    state.ring();
}

/// Whether [`speak`] is done.
pub fn has_spoken() -> bool {
    jobs::ending().spoken.load(Ordering::Acquire) != 0
}

fn quit() {
    if program_handles(Signal::SIGQUIT) && jobs::ending().quit.swap(1, Ordering::AcqRel) == 0 {
        raise_here(Signal::SIGQUIT);
    }
}

/// Raises `signal` in this thread, if the program handles it, and returns when its handler has.
pub fn raise_if_handled(signal: Signal) {
    if program_handles(signal) {
        raise_here(signal);
    }
}

fn raise_here(signal: Signal) {
    let one: nix::sys::signal::SigSet = std::iter::once(signal).collect();
    // Neither can fail for a signal that exists.
    let _ = one.thread_unblock();
    let _ = nix::sys::signal::raise(signal);
}

extern "C" fn on_signal(signal: i32) {
    let state = jobs::ending();
    if state.takes_signals() {
        // The program goes on for a moment: it must not see that anything was called.
        let errno = nix::errno::Errno::last_raw();
        state.enter(EXIT | AT_ONCE | PROVISIONAL | (128 + signal as u32) & CODE);
        nix::errno::Errno::set_raw(errno);
        return;
    }
    // No job, or one that this process has left: what the system does for a program that does not handle it.
    // SAFETY: ending.1: both calls are async-signal-safe. ending.2: `default` is a local, which is read. The signal is blocked while this
    // handler runs, and ends the process when it returns.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        libc::raise(signal);
    }
}

extern "C" fn at_exit(status: i32, _: *mut libc::c_void) {
    let state = jobs::ending();
    if !state.is_ours() || state.hooked.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let mut code = byte(status);
    let caught = state.jobs.load(Ordering::Acquire) > 0 && state.catch.load(Ordering::Acquire) != 0;
    if caught {
        let is_first = state.wish.load(Ordering::Acquire) == 0;
        if code == 0 && is_first && state.may_return.load(Ordering::Acquire) == 0 {
            crate::say(&format!(
                "gasworks: rank {}: the program ended with its job open (Job::close ends a job, and gasworks::exit \
                 the job with the program): the job has failed",
                state.rank.load(Ordering::Acquire)
            ));
            code = 1;
        }
        state.enter(EXIT | SPEAKING | code);
        flush();
        if code == 0 {
            do_all(EndStep::Settle);
        }
        state.returns.store(1, Ordering::Release);
        state.said_all();
    } else {
        state.enter(LEAVE | code);
    }
    let verdict = state.park(code as i32);
    if caught && verdict == 0 {
        do_all(EndStep::GiveUp);
    }
    // What was registered before this hook runs now, and streams are written out once more.
    if verdict != status as u32 & CODE {
        // SAFETY: ending.2: `exit` is given a number. Called in a hook, it goes on with the other hooks, and with this code.
        unsafe { libc::exit(verdict as i32) }
    }
}

/// Says whether a program that ends with code 0 and its job open, by libc's `exit` or by a return from `main`, ends the job
/// well, as programs in C do. So it is unless something else is said.
pub fn may_return(may: bool) {
    jobs::ending().may_return.store(u32::from(may), Ordering::Release);
}

/// A code as the system keeps it; one that is not zero stays so.
fn byte(code: i32) -> u32 {
    match code as u32 & CODE {
        0 if code != 0 => 1,
        code => code,
    }
}

/// Ends the whole job with `code`, from any thread, also in a handler of a message: this process and, within the exit
/// time-out, every other rank; those that call this as well within a moment end as if nobody had told them to. Where
/// this process is in no job, or has left all of them, only the process ends. Functions registered with `atexit` do not
/// run. The first code that is not zero is the job's.
pub fn exit(code: i32) -> ! {
    begin(code, EXIT);
    finish_exit(code)
}

/// As [`exit`], but at once, and only the first half of it: for a caller that has something to say to the launcher
/// before the process ends. What takes long there is cut short.
pub fn begin_abort(code: i32) {
    begin(code, EXIT | AT_ONCE);
}

fn begin(code: i32, exit: u32) {
    let state = jobs::ending();
    if state.becomes_ours() {
        let whose = if state.jobs.load(Ordering::Acquire) > 0 { exit | SPEAKING } else { LEAVE };
        state.enter(whose | byte(code));
    }
}

/// The second half of [`exit`], or of an abort.
pub fn finish_exit(code: i32) -> ! {
    let state = jobs::ending();
    flush();
    if state.is_ours() {
        let in_job = state.jobs.load(Ordering::Acquire) > 0;
        if byte(code) == 0 && in_job && do_all(EndStep::Settle) {
            // This thread ends the process then.
            state.returns.store(1, Ordering::Release);
        }
        state.said_all();
        if state.park(byte(code) as i32) == 0 && in_job {
            do_all(EndStep::GiveUp);
        }
    }
    process::exit_now(byte(code) as i32)
}

// SAFETY: ending.6: other threads only move it from list to list, under the lock, or drop it when nothing but its counts is there; `do_all` calls those of its
// own thread alone, and the list is a static's, which is not dropped.
unsafe impl Send for Act {}

/// Has this done, as long as it is there, where the thread that calls this ends the process with its job open and with code 0, by [`exit`] or libc's: each step
/// once, the second when all ranks have come to it. What has been registered with libc before this call comes after it.
///
/// # Errors
/// The system takes no hook.
pub fn at_end(act: Weak<dyn AtEnd>) -> Result<()> {
    let act = Act { thread: process::thread(), act };
    let mut acts = jobs::acts().lock().unwrap_or_else(PoisonError::into_inner);
    // A process may be in many jobs, one after the other.
    acts.retain(|act| act.act.strong_count() > 0);
    acts.push(act);
    drop(acts);
    // SAFETY: ending.2: `at_exit` is of the type that `on_exit` wants; its argument is null and not used, and once called it does nothing.
    if unsafe { on_exit(at_exit, std::ptr::null_mut()) } != 0 {
        return Err(OsError::last("install", "an exit hook"));
    }
    Ok(())
}

/// Does a step of all that this thread has registered; whether there is anything.
fn do_all(step: EndStep) -> bool {
    let all = || jobs::acts().lock().unwrap_or_else(PoisonError::into_inner);
    // Without the lock: what is done may take a while.
    let (own, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut *all()).into_iter().partition(|act| act.thread == process::thread());
    all().extend(others);
    let done = own.iter().filter_map(|act| act.act.upgrade()).inspect(|act| act.end(step)).count();
    all().extend(own);
    done > 0
}

/// Waits for the keeper to end this process: for a thread that has no part in that.
pub fn wait_for_the_end() -> ! {
    jobs::ending().park(1);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Writes out what the standard output of Rust and all streams of C still hold. The process is about to end.
pub fn flush() {
    // Nobody could be told of a failure.
    let _ = std::io::stdout().flush();
    // SAFETY: ending.4: the streams are C's own, which nothing here closes; a null pointer stands for all. ending.5: where standard input
    // is another thread's, that only reads, and what is looked at without its lock is whether it has something to write.
    unsafe {
        libc::fflush(C_STDOUT);
        // All streams are locked one by one, and a thread that reads its standard input holds the lock until a line comes.
        if ftrylockfile(C_STDIN) == 0 {
            funlockfile(C_STDIN);
        } else {
            __fsetlocking(C_STDIN, FSETLOCKING_BYCALLER);
        }
        libc::fflush(std::ptr::null_mut());
    }
}

/// A job begins in this process.
pub fn enter_job() {
    jobs::ending().jobs.fetch_add(1, Ordering::AcqRel);
}

/// A job has ended in good order in this process.
pub fn leave_job() {
    jobs::ending().jobs.fetch_sub(1, Ordering::AcqRel);
}

/// Whether this process is in a job.
pub fn in_job() -> bool {
    jobs::ending().jobs.load(Ordering::Acquire) > 0
}

/// What is wished for at present.
pub fn wish() -> Option<Wish> {
    let wish = jobs::ending().wish.load(Ordering::Acquire);
    let code = (wish & CODE) as u8;
    match wish {
        _ if wish & EXIT != 0 => Some(Wish::Exit {
            code,
            speaking: wish & SPEAKING != 0,
            at_once: wish & AT_ONCE != 0,
            provisional: wish & PROVISIONAL != 0,
        }),
        _ if wish & LEAVE != 0 => Some(Wish::Leave { code }),
        _ => None,
    }
}

/// Lets the thread that ends the process by itself, with `code`, go on.
pub fn let_go(code: u8) {
    jobs::ending().let_go(code);
}

/// Ends this process with `code`, when its job has ended. A thread that is in libc's `exit` does it, by what the program has
/// registered there before the job; it has `patience` for that.
pub fn end(code: u8, patience: Duration) -> ! {
    let state = jobs::ending();
    if state.returns.load(Ordering::Acquire) != 0 {
        state.let_go(code);
        std::thread::sleep(patience);
    }
    process::exit_now(code.into())
}

/// Whether the job has ended in this process, and only what the program has registered for its end still runs.
pub fn is_over() -> bool {
    jobs::ending().has_left()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(wishes: &[u32]) -> u32 {
        let state = Ending::new();
        // Rung into the void: no process has this descriptor.
        state.bell.store(u32::MAX, Ordering::Relaxed);
        wishes.iter().for_each(|&wish| state.enter(wish));
        state.wish.load(Ordering::Relaxed)
    }

    #[test]
    fn the_first_code_that_is_not_zero_wins() {
        assert_eq!(after(&[EXIT | 3, EXIT | 4, EXIT]), EXIT | 3);
        assert_eq!(after(&[EXIT, EXIT | 4, EXIT | 5]), EXIT | 4);
        assert_eq!(after(&[LEAVE | 1, EXIT, LEAVE | 2]), EXIT);
        assert_eq!(after(&[LEAVE, LEAVE | 2]), LEAVE);
        assert_eq!((byte(0), byte(256), byte(263), byte(-1)), (0, 1, 7, 255));
    }

    #[test]
    fn a_program_that_is_told_to_end_chooses_the_code() {
        const TOLD: u32 = EXIT | AT_ONCE | PROVISIONAL | 143;
        // Any code, and the first signal's where it chooses none.
        for chosen in [EXIT | 11, EXIT] {
            assert_eq!(after(&[TOLD, chosen]), chosen | AT_ONCE);
        }
        assert_eq!(after(&[TOLD, EXIT | 11, EXIT | 12]), EXIT | AT_ONCE | 11);
        assert_eq!(after(&[TOLD, TOLD - 13]), TOLD);
        assert_eq!(after(&[TOLD, LEAVE | 4]), LEAVE | 4);
        assert_eq!(after(&[LEAVE, TOLD]), TOLD);
        // It is not asked where it has chosen before.
        assert_eq!(after(&[EXIT, TOLD]), TOLD & !PROVISIONAL);
        assert_eq!(after(&[EXIT | 3, TOLD]), EXIT | 3);
    }

    #[test]
    fn a_job_that_begins_to_open_is_waited_for() {
        let state = Ending::new();
        assert!(!state.becomes_ours(), "in no job");
        state.jobs.store(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| state.becomes_ours());
            std::thread::sleep(Duration::from_millis(10));
            state.pid.store(std::process::id(), Ordering::Release);
            assert!(waits.join().expect("it waited"));
        });
        let forked = Ending::new();
        forked.jobs.store(1, Ordering::Relaxed);
        forked.pid.store(std::process::id() + 1, Ordering::Relaxed);
        assert!(!forked.becomes_ours(), "the parent's");
    }

    #[test]
    fn signals_are_wishes_while_somebody_hears_them() {
        let state = Ending::new();
        assert!(!state.takes_signals());
        state.jobs.store(1, Ordering::Relaxed);
        assert!(!state.takes_signals(), "armed by another process, or by none");
        state.pid.store(std::process::id(), Ordering::Relaxed);
        assert!(state.takes_signals());
        // The keeper has gone, and what runs at the exit may take for ever: a signal must end it.
        state.let_go(3);
        assert!(!state.takes_signals());
        assert_eq!(state.park(0), 3);
    }

    #[test]
    fn handlers_of_the_program_are_told_from_none() {
        assert!(!program_handles(Signal::SIGWINCH));
        take_over(Signal::SIGWINCH).expect("installed");
        assert!(!program_handles(Signal::SIGWINCH));
        assert_eq!(disposition(Signal::SIGWINCH).expect("read"), ours());
        assert!(!jobs::ending().is_ours() && wish().is_none() && !in_job());
    }
}
