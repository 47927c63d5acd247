//! How long a thread may run before others that wait for the processor get it (`sched_setattr(2)`).
//!
//! The system lets a thread that asks for short turns run sooner, for as long in all (Linux 6.12; earlier ones leave it at
//! that). That is for whoever hands work out while all processors are busy with what was handed out before: where each of
//! its steps waits for the end of somebody's long turn, processors idle in between.
//!
//! # Invariants
//! - turns.1: the calls read or write one `sched_attr` of ours, whose size it names, and change this thread's scheduling, no memory.

use std::time::Duration;

use libc::sched_attr;

/// The shortest turns that the system gives.
const SHORT: Duration = Duration::from_micros(100);

/// A thread's turns as they were.
#[derive(Clone, Copy, Debug)]
pub struct Turns(sched_attr);

/// Asks for short turns for this thread; gives what there was before, or nothing where nothing was changed: the system
/// does not allow it, or the thread does not share processors fairly.
pub fn shorten() -> Option<Turns> {
    let before = Turns::of(0)?;
    let fair = [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(before.0.sched_policy as i32));
    let short = Turns(sched_attr { sched_runtime: SHORT.as_nanos() as u64, ..before.0 });
    (fair && short.take()).then_some(before)
}

impl Turns {
    /// Those of the thread `pid`, 0 being this one.
    fn of(pid: i32) -> Option<Self> {
        // SAFETY: turns.1: `attr` is a local, of which no more than `size` is written; all zeros are a value of it.
        unsafe {
            let mut attr: sched_attr = std::mem::zeroed();
            let size = size_of::<sched_attr>();
            let rc = libc::syscall(libc::SYS_sched_getattr, pid, &raw mut attr, size, 0);
            (rc == 0).then_some(Self(attr))
        }
    }

    /// Gives this thread these turns; `false` if it could not. Safe between fork and exec.
    pub fn take(&self) -> bool {
        let attr = sched_attr { size: size_of::<sched_attr>() as u32, ..self.0 };
        // SAFETY: turns.1: `attr` is a local that says its own size, and is read; 0 is this thread.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the turns of the thread `pid` in nanoseconds; systems that know of none tell 0.
    fn length(pid: i32) -> u64 {
        Turns::of(pid).expect("known").0.sched_runtime
    }

    #[test]
    fn turns_are_shortened_and_put_back() {
        let test = || {
            let before = length(0);
            let given = shorten().expect("a test is scheduled fairly");
            let short = length(0);
            assert!(short == SHORT.as_nanos() as u64 || (short, before) == (0, 0), "{short}");
            assert!(given.take());
            assert_eq!(length(0), before);
        };
        std::thread::spawn(test).join().expect("no panic");
    }

    #[test]
    fn a_child_has_its_own_again() {
        use crate::program::{Child, Program};
        use std::os::fd::AsFd;
        let test = || {
            let before = length(0);
            let null = std::fs::File::open("/dev/null").expect("opened");
            let child = Child {
                streams: [null.as_fd(); 3],
                blocked: nix::sys::signal::SigSet::empty(),
                limits: &[],
                one_layout: false,
                processors: crate::program::Processors::Inherited,
                turns: shorten(),
            };
            let sleep =
                Program::new(&["sleep".into(), "60".into()], "/usr/bin:/bin".as_ref()).expect("words");
            let pid = sleep.start(&[], &child).expect("started");
            assert_eq!(length(pid), before);
            crate::process::kill_group(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
            crate::process::wait(pid).expect("its end");
        };
        std::thread::spawn(test).join().expect("no panic");
    }
}
