//! The end of a process: what is to be written and checked then, however the process ends.
//!
//! Counts and records are written when the last domain goes, when the process leaves PMI, and at `exit`. Clients such as GASNet's end
//! by `_exit`, which runs no hooks, so `_exit` and `_Exit` are here in place of the C library's, for all that is linked with this
//! library. They may be called in a signal handler: what is to be done needs locks and memory, so a thread that waits for that does
//! it.
//!
//! # Invariants
//! - leave.1: `_exit` uses only what a signal handler may: two descriptors that stay open, and system calls. It waits for the thread for a
//!   while only, since whoever was interrupted may hold a lock that the thread needs.
//! - leave.2: a hook that runs at the end of the process uses nothing but statics that are never dropped.

use gasworks_os::threads;
use std::ffi::c_int;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::OnceLock;
use std::time::Duration;

use crate::{strict, trace, witness};

/// How long `_exit` waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the thread, in the process that it is of.
struct ExitThread {
    process: u32,
    stream: UnixStream,
}

unsafe extern "C" {
    /// As `atexit`, for `quick_exit`. Of the C library.
    fn at_quick_exit(hook: extern "C" fn()) -> c_int;
}

static EXIT_THREAD: OnceLock<Option<ExitThread>> = OnceLock::new();

/// There is something to be done at the end of this process.
pub(crate) fn watch() {
    EXIT_THREAD.get_or_init(|| {
        // SAFETY: leave.2: the hook writes what `witness` and `trace` hold, all of it in statics; its code stays loaded (`build.rs`).
        unsafe { at_quick_exit(write_at_quick_exit) };
        let (stream, other) = UnixStream::pair().ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        threads::start("ugni-exit", None, move || serve(other)).ok()?;
        Some(ExitThread { process: process::id(), stream })
    });
}

fn serve(mut stream: UnixStream) {
    let mut code = [0; size_of::<c_int>()];
    while stream.read_exact(&mut code).is_ok() {
        strict::check_end(c_int::from_ne_bytes(code), "_exit");
        write();
        if stream.write_all(&[0]).is_err() {
            return;
        }
    }
}

/// Writes what there is so far. What is written later replaces it, or follows it.
pub(crate) fn write() {
    witness::write();
    trace::flush();
}

extern "C" fn write_at_quick_exit() {
    write();
}

fn leave(code: c_int) -> ! {
    // A child of `fork` has nothing of its own.
    if let Some(Some(thread)) = EXIT_THREAD.get()
        && thread.process == process::id()
    {
        let mut stream = &thread.stream;
        let asked = stream.write_all(&code.to_ne_bytes());
        let _ = asked.and_then(|()| stream.read_exact(&mut [0]));
    }
    loop {
        // SAFETY: leave.1: a call of the system that takes a number and ends the process; it touches none of its memory.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// `_exit`
#[unsafe(no_mangle)]
pub extern "C" fn _exit(code: c_int) -> ! {
    leave(code)
}

/// `_Exit`
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(code: c_int) -> ! {
    leave(code)
}
