//! The machine: its processors and memory, and the program that runs on it.
//!
//! # Invariants
//! - machine.1: a call that takes numbers alone touches no memory.
//! - machine.2: a new mapping is at nobody else's address.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;

use gasworks_os::affinity;

use crate::environ::{is_on, warn};
use crate::fatal::end;
use crate::settings;
use crate::text::{self, c_text};

static PROGRAM: OnceLock<CString> = OnceLock::new();

/// Notes the name by which the program was started; the first word counts.
///
/// # Safety
/// text.1; it may be null.
pub unsafe fn note_program(name: *const c_char) {
    // SAFETY: text.1: the caller promises that `name` is null or a text that stays until this returns.
    if let Some(name) = unsafe { text::read(name) }.filter(|name| !name.is_empty()) {
        let _ = PROGRAM.set(c_text(&name));
    }
}

/// Has the C library's allocator keep what it has, if `GASNET_DISABLE_MUNMAP` says so.
pub fn keep_memory_if_wanted() {
    if is_on(&settings::DISABLE_MUNMAP) {
        // SAFETY: machine.1: each call takes two numbers, and changes settings that the allocator itself keeps.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
            libc::mallopt(libc::M_MMAP_MAX, 0);
        }
    }
}

/// The path of the program that runs.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_exe_name() -> *const c_char {
    let program = PROGRAM.get_or_init(|| {
        let path = std::env::current_exe().unwrap_or_else(|_| "unknown".into());
        CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
    });
    program.as_ptr()
}

/// How many processors the machine has running; 0 if it does not say.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_cpu_count() -> c_int {
    // SAFETY: machine.1: the call takes the number of a property and gives a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(0) as c_int
}

/// The bytes of the machine's memory; 0 if it does not say.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_getPhysMemSz(failure_is_fatal: c_int) -> u64 {
    // SAFETY: machine.1: both calls take the number of a property and give a number.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    if pages <= 0 || page <= 0 {
        if failure_is_fatal != 0 {
            end(None, "the system does not say how much memory it has");
        }
        return 0;
    }
    pages as u64 * page as u64
}

/// Binds this thread to one of the processors it may run on, the ranks of a host in turn. Gives 0 if it is.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_set_affinity(rank: c_int) -> c_int {
    let bound = affinity::allowed().and_then(|cpus| {
        let place = usize::try_from(rank).unwrap_or(0).checked_rem(cpus.len());
        place.map_or(Ok(()), |place| affinity::bind(cpus[place]))
    });
    bound.map_or_else(
        |e| {
            warn(&e.to_string());
            1
        },
        |()| 0,
    )
}

/// New memory, all zeros; `MAP_FAILED` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_mmap(size: usize) -> *mut c_void {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: machine.2: the address is null and not fixed, so the kernel takes one where nothing is mapped; no file is named.
    unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        assert!(gasnett_cpu_count() >= 1);
        let told = std::fs::read_to_string("/proc/meminfo").expect("the system's own words");
        let kilobytes: u64 = told.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
        assert_eq!(gasnett_getPhysMemSz(1), kilobytes << 10);
    }

    #[test]
    fn a_thread_is_bound_to_the_processor_of_its_rank() {
        let all = affinity::allowed().expect("a set");
        for rank in 0..2 * all.len() {
            // Each in a thread of its own, which may run anywhere first.
            let now = std::thread::spawn(move || {
                assert_eq!(gasnett_set_affinity(rank as c_int), 0);
                affinity::allowed().expect("a set")
            });
            assert_eq!(now.join().expect("bound"), [all[rank % all.len()]]);
        }
    }
}
