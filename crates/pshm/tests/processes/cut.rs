//! A segment that cannot be backed with memory: the access kills, and the report names the segment.
//!
//! A rank's own file is sealed, so the process that dies lays a page of another file, which is then cut, over a page
//! of its segment. To the fault handler that is what a machine without memory looks like.
//!
//! # Invariants
//! - cut.1: the page that is replaced lies inside a segment that stays mapped to the end of the process, and only raw
//!   copies ever touch it.
//! - cut.2: a call that is given a string or numbers only touches no memory of ours.

use gasworks_bootstrap::Single;
use gasworks_memory::Rights;
use gasworks_os::memfd::page_size;
use gasworks_pshm::open;
use gasworks_sync::Seq;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

/// Which page of the segment loses its memory, and which byte of it is touched.
const PAGE: usize = 3;
const AT: usize = 5;

/// Starts this program as `cut`, and reads what it leaves.
pub fn check() {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    // A sanitizer's own handler would come before ours.
    for options in ["TSAN_OPTIONS", "ASAN_OPTIONS"] {
        command.env(options, "handle_sigbus=0:detect_leaks=0");
    }
    let output = command.arg("cut").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let wanted = format!("cannot be backed with memory at byte {}:", PAGE * page_size() + AT);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{}: {text}", output.status);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("segment of rank 0 (job single-") && text.contains(&wanted), "{text}");
}

/// The process that dies.
pub fn die() -> ExitCode {
    // SAFETY: cut.2: the call takes a number of seconds alone.
    unsafe { libc::alarm(20) };
    let opened = open::<Seq>(&Single::new().expect("a job"), &crate::CONFIG).expect("open");
    let page = page_size();
    let segment = opened.peers.reach(0, 0, 8 * page, Rights::all()).expect("inside").expect("mapped");
    let byte = segment.slice(PAGE * page + AT, 1).expect("inside");
    byte.write(&[7]);
    // SAFETY: cut.2: the first call reads a literal. The descriptor that it gives is new and nobody else's; -1 panics.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"cut".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len(page as u64).expect("sized");
    let target = segment.slice(PAGE * page, page).expect("inside").as_ptr();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let how = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: cut.1: the page at `target` is one of the eight of the segment that `opened` keeps mapped; raw copies alone touch it from
    // here on.
    let mapped = unsafe { libc::mmap(target.cast(), page, access, how, file.as_raw_fd(), 0) };
    assert_eq!(mapped, target.cast(), "{}", std::io::Error::last_os_error());
    let mut found = [9];
    byte.read(&mut found);
    assert_eq!(found, [0], "the other file's page is not there");
    file.set_len(0).expect("cut");
    byte.read(&mut found);
    println!("the access was not refused: {found:?}");
    ExitCode::SUCCESS
}
