//! An empty poll costs the same however many ranks are silent: its instructions are counted, one by one.
//!
//! # Invariants
//! - steps.1: a call that is given numbers only, and of ptrace the requests without a pointer, touches no memory of ours.
//! - steps.2: the status that waitpid fills in is a local integer.

use gasworks_bootstrap::Together;
use gasworks_core::Wire;
use gasworks_pshm::{Opened, open};
use gasworks_sync::{Mode, Par, Seq};
use std::hint::black_box;
use std::process::{Command, ExitCode};

/// Where the counted parts begin and end.
const MARK: i32 = libc::SIGUSR1;

/// Counts at 2 and at 64 ranks.
pub fn check() {
    for mode in ["seq", "par"] {
        let ([few, few_control], [many, many_control]) = (count(mode, 2), count(mode, 64));
        // A sanitizer does some of its own now and then.
        let is_one = few.abs_diff(many) < 62;
        assert!(is_one, "{mode}: an empty poll is {few} instructions among 2 ranks, and {many} among 64");
        // That the count would show a walk over the ranks.
        assert!(few_control + 62 <= many_control, "{mode}: a walk took {few_control} and {many_control}");
        println!("an empty poll, {mode}: {few} instructions with those of the marks");
    }
}

/// Starts this program as `steps`; returns the number of instructions of a poll, and of a walk over all ranks.
fn count(mode: &str, size: u32) -> [u64; 2] {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program).args(["steps", mode, &size.to_string()]).spawn().expect("it runs");
    let pid = child.id() as libc::pid_t;
    assert_eq!(next_stop(pid), MARK);
    // It does not outlive this process, should that end by a failed assertion.
    request(libc::PTRACE_SETOPTIONS, pid, libc::PTRACE_O_EXITKILL);
    let counts = [(); 2].map(|()| {
        let mut steps = 0u64;
        loop {
            request(libc::PTRACE_SINGLESTEP, pid, 0);
            match next_stop(pid) {
                libc::SIGTRAP => steps += 1,
                MARK => break steps,
                other => panic!("signal {other} stopped it after {steps} steps"),
            }
        }
    });
    request(libc::PTRACE_DETACH, pid, 0);
    assert!(child.wait().expect("a child").success());
    counts
}

/// A request about a stopped child; the signal that stopped it is dropped where it goes on.
fn request(request: libc::c_uint, pid: libc::pid_t, data: i32) {
    // SAFETY: steps.1: the requests made here take options or nothing as data, and the address is zero.
    let done = unsafe { libc::ptrace(request, pid, 0usize, data as usize) };
    assert_eq!(done, 0, "request {request}: {}", std::io::Error::last_os_error());
}

/// Waits for a signal to stop the child; returns which.
fn next_stop(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: steps.2: the pointer is to `status`, of this function, and the call ends before it goes.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid, "{}", std::io::Error::last_os_error());
    assert!(libc::WIFSTOPPED(status), "it ended by {status:#x}");
    libc::WSTOPSIG(status)
}

/// The process whose instructions are counted.
pub fn poll(mode: &str, size: u32) -> ExitCode {
    if mode == "par" { poll_as::<Par>(size) } else { poll_as::<Seq>(size) }
}

fn poll_as<M: Mode>(size: u32) -> ExitCode {
    // SAFETY: steps.1: the call takes a number of seconds alone.
    unsafe { libc::alarm(60) };
    let mut ranks = Together::ranks(size).expect("a job").into_iter();
    let first = ranks.next().expect("a rank");
    let silent: Vec<_> = ranks
        .map(|rank| {
            // They stay open, and never say a word.
            std::thread::spawn(move || std::mem::forget(open::<M>(&rank, &crate::CONFIG).expect("open")))
        })
        .collect();
    let Opened { wire, peers, .. } = open::<M>(&first, &crate::CONFIG).expect("open");
    silent.into_iter().for_each(|rank| rank.join().expect("a rank"));
    let poll = || assert_eq!(black_box(&wire).poll(8, &mut |_| ()), Ok(0));
    let walk = || assert!((0..size).all(|rank| black_box(peers.flags(rank)).is_some()));
    // Once without being counted, so that everything is bound and mapped.
    poll();
    walk();
    // SAFETY: steps.1: the request looks at none of its other arguments, which are zero.
    let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0usize, 0usize) };
    assert_eq!(traced, 0, "this machine forbids ptrace: {}", std::io::Error::last_os_error());
    mark();
    poll();
    mark();
    walk();
    mark();
    ExitCode::SUCCESS
}

#[inline(never)]
fn mark() {
    // SAFETY: steps.1: the call takes a number alone; the parent, which traces this process, swallows the signal.
    unsafe { libc::raise(MARK) };
}
