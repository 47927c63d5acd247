//! The tools test themselves, in the program that uses them.

use std::ffi::{c_char, c_int};
use std::thread;

use gasworks_os::say;

use crate::{bytes, host, library, machine, numbers, process, text, timer};

/// A test: the letter of its section, what it looks at, and whether all is well after so many rounds.
type Test = (char, &'static str, fn(u32) -> bool);

const TESTS: &[Test] = &[
    ('T', "ticks do not go back, and are as long as the clock says", ticks),
    ('N', "numbers are read as they were written", read_again),
    ('B', "sums and counts of bytes agree with the bytes", sums),
    ('M', "the machine has processors and memory", described),
    ('V', "the library has a version", versioned),
];

/// Runs the tests in every thread, and gives how many failed.
pub fn run(rounds: u32, threads: usize, sections: &str) -> usize {
    let chosen = TESTS.iter().filter(|(section, ..)| sections.is_empty() || sections.contains(*section));
    let mut failed = 0;
    for (section, what, test) in chosen {
        let bad = thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(|| test(rounds))).collect();
            all.into_iter().filter_map(|thread| thread.join().ok().filter(|well| *well)).count() < threads
        });
        if bad {
            say(&format!("ERROR: diagnostics {section}: not so: {what}"));
            failed += 1;
        }
    }
    failed
}

/// Runs the tests of some sections, or of all, and gives how many failed.
///
/// # Safety
/// text.1 for the sections; they may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_tools_diagnostics(
    rounds: c_int,
    threads: c_int,
    sections: *const c_char,
) -> c_int {
    // SAFETY: text.1: the caller promises that `sections` is null or a text that stays until this returns.
    let sections = unsafe { text::read(sections) }.unwrap_or_default().to_ascii_uppercase();
    run(rounds.max(1) as u32, threads.max(1) as usize, &sections) as c_int
}

fn ticks(rounds: u32) -> bool {
    (0..rounds).all(|_| {
        let start = timer::gasworks_tools_ticks();
        let slept = process::gasnett_nsleep(50_000);
        let passed = timer::gasworks_tools_ticks().checked_sub(start);
        slept == 0 && passed.is_some_and(|passed| timer::gasnett_ticks_to_ns(passed) >= 49_000)
    })
}

fn read_again(rounds: u32) -> bool {
    (0..i64::from(rounds)).all(|n| {
        let value = (n * n * 1021) << (n % 20);
        [false, true].iter().all(|memory| numbers::parse(&numbers::format(value, *memory), 0) == Some(value))
    })
}

fn sums(rounds: u32) -> bool {
    (0..rounds).all(|n| {
        let run: Vec<u8> = (0..=n % 200).map(|at| (at % 7) as u8).collect();
        bytes::zeros(&run) == run.len().div_ceil(7) && bytes::checksum(&run) != bytes::checksum(&run[1..])
    })
}

fn described(_rounds: u32) -> bool {
    machine::gasnett_cpu_count() > 0 && machine::gasnett_getPhysMemSz(0) > 0 && !host::name().is_empty()
}

fn versioned(_rounds: u32) -> bool {
    library::gasnett_release_version() > 0
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tools_are_well() {
        assert_eq!(super::run(20, 3, ""), 0);
    }
}
