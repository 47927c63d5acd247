//! Where a process is: the functions that called each other, printed.
//!
//! # Invariants
//! - backtrace.1: the client's variables are written before it starts threads, as it promises; they are read whole, as volatile.
//! - backtrace.2: what the client put into them are functions that take a descriptor, and texts (text.1).
//! - backtrace.3: an array of this function's own has room for what the C library is told to write there.
//! - backtrace.4: a descriptor from C is open for as long as the call lasts.

use std::arch::global_asm;
use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::errno::Errno;

use crate::{settings, text};

/// A way to print a backtrace: gives 0 if it did.
pub type Print = extern "C" fn(c_int) -> c_int;

/// `gasnett_backtrace_type_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct User {
    name: *const c_char,
    print: Option<Print>,
    takes_threads: c_int,
}

// A client may define it, and there is no weak definition in Rust: this one counts where the client has none.
global_asm!(
    ".pushsection .data.gasnett_backtrace_user, \"aw\"",
    ".balign 16",
    ".weak gasnett_backtrace_user",
    ".type gasnett_backtrace_user, %object",
    "gasnett_backtrace_user:",
    ".zero {size}",
    ".size gasnett_backtrace_user, {size}",
    ".popsection",
    size = const size_of::<User>(),
);

unsafe extern "C" {
    static mut gasnett_backtrace_user: User;
}

/// What is called where a backtrace is wanted of a process that fails. A client may put its own there.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut gasnett_print_backtrace_ifenabled: Option<Print> = Some(if_enabled);

/// Whether a signal that kills prints one.
static OF_CRASHES: OnceLock<bool> = OnceLock::new();
/// Whether this rank prints any; one that is in no job does.
static HERE: OnceLock<bool> = OnceLock::new();

const GDB: &str = "GDB";
const EXECINFO: &str = "EXECINFO";
const MOST_FRAMES: usize = 128;
/// A debugger that does not come to an end is given up after so many seconds.
const PATIENCE: u32 = 60;

/// Lets this rank print backtraces, if `GASNET_BACKTRACE_NODES` names it: `0,3-5`, or `*` for all.
pub fn of_rank(rank: u32) {
    let list = settings::text(&settings::BACKTRACE_NODES);
    let _ = HERE.set(list.is_none_or(|list| is_among(&list, rank)));
}

fn is_among(list: &str, rank: u32) -> bool {
    list.split(',').map(str::trim).any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        part == "*" || number(from).zip(number(to)).is_some_and(|(from, to)| (from..=to).contains(&rank))
    })
}

fn is_here() -> bool {
    HERE.get().is_none_or(|here| *here)
}

extern "C" fn if_enabled(fd: c_int) -> c_int {
    match settings::answer(&settings::BACKTRACE) {
        // SAFETY: backtrace.4: whoever asks for a backtrace keeps `fd` open until this function returns.
        Some(true) if is_here() => unsafe { gasnett_print_backtrace(fd) },
        _ => 1,
    }
}

/// Prints a backtrace if the client or the environment wants one.
pub fn print_if_enabled(fd: c_int) {
    // SAFETY: backtrace.1: the client writes this static, if at all, before it starts threads; it is read whole.
    if let Some(print) = unsafe { (&raw const gasnett_print_backtrace_ifenabled).read_volatile() } {
        print(fd);
    }
}

/// Does before a signal comes what cannot be done in its handler; and notes whether one that kills prints where the process is.
pub(crate) fn prepare(wanted: bool) {
    // The first call loads a library, which is better done before something fails.
    frames(&mut [std::ptr::null_mut()]);
    let _ = OF_CRASHES.set(wanted);
}

/// Where this thread is, if that is wanted of a process that a signal kills.
pub(crate) fn print_own_if_enabled() {
    // Read when the signals were set up, and not in a handler.
    if is_here() && OF_CRASHES.get().is_some_and(|wanted| *wanted) {
        print_own(libc::STDERR_FILENO);
    }
}

/// Says where this thread is when a signal asks for it. In its handler nothing may be allocated, and no debugger started.
pub(crate) extern "C" fn on_signal(_signal: c_int) {
    // The program goes on after it, and must not see that anything was called.
    let errno = Errno::last_raw();
    print_own(libc::STDERR_FILENO);
    Errno::set_raw(errno);
}

/// Prints where the process is. Gives 0 if a way was found.
///
/// # Safety
/// backtrace.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_print_backtrace(fd: c_int) -> c_int {
    let user = user();
    for name in wanted() {
        let printed = match (&user, name.as_str()) {
            (Some((own, print)), name) if own == name => print(fd) == 0,
            (_, GDB) => debugger().is_some_and(|text| {
                // SAFETY: backtrace.4: `fd` is open until this returns. The file never drops, so it does not close what it does not own.
                let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
                file.write_all(text.as_bytes()).is_ok()
            }),
            (_, EXECINFO) => print_own(fd),
            _ => false,
        };
        if printed {
            return 0;
        }
    }
    1
}

/// The ways there are, in the order in which they are tried.
pub(crate) fn known() -> Vec<String> {
    let own = user().map(|(name, _)| name);
    own.into_iter().chain([GDB.to_owned(), EXECINFO.to_owned()]).collect()
}

/// The ways that the environment wants, or all.
pub(crate) fn wanted() -> Vec<String> {
    let Some(list) = settings::text(&settings::BACKTRACE_TYPE) else { return known() };
    list.split(',').map(|name| name.trim().to_ascii_uppercase()).filter(|name| !name.is_empty()).collect()
}

/// The client's own way, if it has one.
fn user() -> Option<(String, Print)> {
    // SAFETY: backtrace.1: the symbol is of this size, here or in the client, who wrote it before it started threads. Zeros are a value of
    // it.
    let user = unsafe { (&raw const gasnett_backtrace_user).read_volatile() };
    // SAFETY: backtrace.2: the name is null, as in the definition here, or a text of the client's.
    let name = unsafe { text::read(user.name) }?.to_ascii_uppercase();
    let threads = settings::answer(&settings::BACKTRACE_MT).unwrap_or(false);
    user.print.filter(|_| !threads || user.takes_threads != 0).map(|print| (name, print))
}

fn frames(into: &mut [*mut c_void]) -> usize {
    // SAFETY: backtrace.3: `into` has room for the number of frames that the call is told.
    unsafe { libc::backtrace(into.as_mut_ptr(), into.len() as c_int) }.max(0) as usize
}

/// This thread's frames, by the C library, which needs no memory for it.
fn print_own(fd: c_int) -> bool {
    let mut found = [std::ptr::null_mut(); MOST_FRAMES];
    let count = frames(&mut found);
    // SAFETY: backtrace.3: `frames` has written the first `count` entries of `found`; the call reads these, and writes to `fd` alone.
    unsafe { libc::backtrace_symbols_fd(found.as_ptr(), count as c_int, fd) };
    count > 0
}

/// What gdb says of this process.
fn debugger() -> Option<String> {
    // A debugger is no parent of ours, and some systems let only a parent look, unless it is admitted.
    gasworks_os::remote::admit_all();
    let all = settings::answer(&settings::BACKTRACE_MT).unwrap_or(true);
    let output = Command::new("timeout")
        .args([&PATIENCE.to_string(), "gdb", "-nx", "-batch", "-p", &std::process::id().to_string()])
        .args(["-ex", if all { "thread apply all backtrace" } else { "backtrace" }])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains("#0").then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use std::os::fd::AsRawFd;

    #[test]
    fn ranks_are_named_by_lists() {
        for (list, wanted) in [
            ("0,3-5", [0, 3, 4, 5].as_slice()),
            ("*", &[0, 1, 2, 3, 4, 5]),
            ("2 - 3 , 9", &[2, 3]),
            ("x,", &[]),
        ] {
            let found: Vec<_> = (0..6).filter(|rank| is_among(list, *rank)).collect();
            assert_eq!(found, wanted, "{list}");
        }
    }

    #[test]
    fn without_a_debugger_the_c_library_prints() {
        let mut file = tempfile::tempfile().expect("a file");
        assert!(print_own(file.as_raw_fd()));
        let mut text = String::new();
        file.rewind().expect("rewound");
        file.read_to_string(&mut text).expect("a text");
        assert!(text.lines().count() > 2, "{text}");
    }

    #[test]
    fn a_client_that_defines_no_way_of_its_own_has_none() {
        assert!(user().is_none());
        assert_eq!(known(), [GDB, EXECINFO]);
    }
}
