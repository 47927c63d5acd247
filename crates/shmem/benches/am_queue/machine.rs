//! What the measurement needs of the machine: shared memory, a second process, a core for each.
//!
//! # Invariants
//! - machine.1: the shared mapping is never unmapped.
//! - machine.2: there is one thread when the process forks, and the child runs only the measurement.

use gasworks_sync::{RawSlice, VolatileSlice};

/// Zeroed memory that a child shares.
pub fn shared(len: usize) -> VolatileSlice<'static> {
    // SAFETY: the address is null and not fixed, so the kernel takes one where nothing is mapped; no file is named.
    let at = unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), len, rights, flags, -1, 0)
    };
    assert_ne!(at, libc::MAP_FAILED, "no shared memory: {}", std::io::Error::last_os_error());
    // SAFETY: machine.1: the `len` bytes that were just mapped are never unmapped; they are reached through views of atomics only.
    unsafe { RawSlice::new(at.cast(), len).borrow() }
}

/// Starts a second process; `None` in the child.
pub fn fork() -> Option<i32> {
    // SAFETY: machine.2: `main` has started no thread before, and the child goes on to the measurement and to `leave`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no second process: {}", std::io::Error::last_os_error());
    (child > 0).then_some(child)
}

/// Pins this process to the core of that number, and takes real-time priority if that is allowed.
pub fn pin(core: usize) {
    // SAFETY: each call is given numbers or a pointer to `set` or `priority`, which are of this function and of which zeros are values.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
            eprintln!("not pinned to core {core}: {}", std::io::Error::last_os_error());
        }
        let priority = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
        // A parent that fails must not leave its child spinning.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(120);
    }
}

/// Ends the child without running what the parent will run.
pub fn leave() -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(0) }
}

/// Waits for the child.
pub fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: the pointer is to `status`, of this function, and the call ends before it goes.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the second process failed");
}
