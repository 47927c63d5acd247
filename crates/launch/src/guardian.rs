//! The guardian: a process that outlives `gasrun` when that is killed, and then ends what it left.
//!
//! It is forked at the start, has a session of its own and nothing open but a pipe. Into the pipe go the process groups
//! of all ranks, and a zero if all is well. It sleeps until the other end is closed, since to wake it for each rank would
//! take time from the ranks; if it then finds no zero, it kills the groups, and then every process that still carries the
//! job's name in its environment, or its [mark](Mark).
//!
//! # Invariants
//! - guardian.1: the process has one thread when it forks (the contract of [`crate::main`]), so no lock is held in the child.
//! - guardian.2: the child never returns from [`guard`]: it ends by `_exit`.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use gasworks_os::{process, signals};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, rlim_t};
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, fork};

use crate::sweep::Mark;
use crate::{meeting, spawn, sweep};

/// What fits into a pipe as it is made.
const ROOM: usize = 64 << 10;

/// The parent's side.
#[derive(Debug)]
pub(crate) struct Guardian {
    pid: i32,
    pipe: Option<PipeWriter>,
    /// What it knows their processes by.
    mark: Option<Mark>,
}

impl Guardian {
    /// Forks it, for this job, with room for so many groups at least.
    pub(crate) fn start(job: &str, groups: usize) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mark = Mark::new();
        let bytes = (groups + 1) * size_of::<i32>();
        if bytes > ROOM {
            fcntl(&writer, FcntlArg::F_SETPIPE_SZ(i32::try_from(bytes).unwrap_or(i32::MAX)))?;
        }
        // SAFETY: guardian.1: no other thread can hold a lock as the child is made. guardian.2: the child goes to `guard` and ends there.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child.as_raw(), pipe: Some(writer), mark }),
            ForkResult::Child => {
                drop(writer);
                guard(reader, job, mark)
            }
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// A limit that each rank is to have.
    pub(crate) fn limit(&self) -> Option<(Resource, rlim_t, rlim_t)> {
        self.mark.map(Mark::limit)
    }

    /// Tells it of a process group. If it is gone, somebody killed it; the ranks still have their own signal.
    pub(crate) fn announce(&mut self, group: i32) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(&group.to_le_bytes());
        }
    }

    /// Lets it go: nothing is left to guard.
    pub(crate) fn release(mut self) {
        self.announce(0);
        self.pipe = None;
        // If somebody else has reaped it, it is gone as well.
        let _ = process::wait(self.pid);
    }
}

fn guard(mut pipe: PipeReader, job: &str, mark: Option<Mark>) -> ! {
    // What fails here fails for a reason that nobody could be told; the guard goes on with what it has.
    let _ = nix::unistd::setsid();
    signals::block_all();
    let _ = nix::unistd::chdir("/");
    close_all_but(pipe.as_raw_fd());
    let hung_up = || {
        let mut end = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::NONE)
    };
    while hung_up() == Err(Errno::EINTR) {}
    let mut groups = Vec::new();
    let mut word = [0; size_of::<i32>()];
    while pipe.read_exact(&mut word).is_ok() {
        match i32::from_le_bytes(word) {
            0 => process::exit_now(0),
            group => groups.push(group),
        }
    }
    // It is there only if its maker was killed between two system calls.
    let _ = std::fs::remove_file(meeting::file(job));
    let marker = spawn::marker(job);
    for _ in 0..200 {
        for &group in &groups {
            let _ = process::kill_group(group, Signal::SIGKILL);
        }
        let left = sweep::marked(&marker, mark);
        if left.is_empty() {
            break;
        }
        sweep::kill(&left);
        std::thread::sleep(Duration::from_millis(10));
    }
    process::exit_now(0)
}

/// Closes what was inherited, so that nobody waits for the end of a pipe that only the guardian still holds.
fn close_all_but(keep: i32) {
    let keep = keep.unsigned_abs();
    let close = |first: u32, last: u32| {
        // SAFETY: guardian.1, guardian.2: none of the descriptors from `first` to `last` is used in this process after this: its only
        // thread ends in `guard`, which keeps the pipe alone.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
    };
    let done = (keep == 0 || close(0, keep - 1)) && close(keep + 1, u32::MAX);
    if !done {
        for fd in (0..4096).filter(|&fd| fd != keep) {
            // SAFETY: guardian.1, guardian.2: `fd` is not the pipe's, and the only thread of this process uses no other after this.
            unsafe { libc::close(fd as i32) };
        }
    }
}
