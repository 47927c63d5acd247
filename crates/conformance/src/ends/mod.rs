//! Every way in which a job can end, as a table: what one rank does, and what must come of it.
//!
//! [`act`] is what the ranks do, each in a process of its own; the test program `exit` of this package starts such jobs and
//! judges them. [`collective`] is what the ranks of the jobs do of which the test program `kill` kills one.
//!
//! # Invariants
//! - ends.1: handlers of signals are functions that make async-signal-safe calls, or none that returns.
//! - ends.2: calls that take numbers only touch no memory of ours; a text that is written is a constant.
//! - ends.3: a forked child makes async-signal-safe calls only, and ends by itself.

#[allow(unsafe_code)]
mod acts;
mod collective;

pub use acts::act;
pub use collective::collective;

/// Seconds of the exit time-out of these jobs, and of those in which it matters which of several limits is reached first.
const TIMEOUT: f64 = 0.6;
const LONG_TIMEOUT: f64 = 2.0;
/// The ranks of each job.
pub const RANKS: u32 = 3;

/// A way to end.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The codes with which the job may end.
    pub codes: &'static [i32],
    /// What must be printed.
    pub said: &'static [&'static str],
    /// What must not be printed.
    pub unsaid: &'static [&'static str],
    /// How many ranks must tell the launcher that they end in good order; `None` where the job fails.
    pub finalized: Option<usize>,
}

impl Case {
    /// Whether the rank that acts is gone without a word.
    pub fn vanishes(&self) -> bool {
        ["sigkill", "sigkill-after-exit-zero", "sigkill-with-child", "sigsegv", "libc-abort"]
            .contains(&self.name)
    }

    /// Whether ranks may leave the job and go on.
    pub fn leaves(&self) -> bool {
        ["return-not-caught", "return-not-caught-after-exit-zero", "signal-in-exit-hook"].contains(&self.name)
    }

    /// The exit time-out of the job in seconds.
    pub fn timeout(&self) -> f64 {
        let is_long = ["exit-by-all", "quit-handler-forever", "sigterm-before-exit-by-others"];
        let is_long = is_long.contains(&self.name);
        if is_long { LONG_TIMEOUT } else { TIMEOUT }
    }

    /// Whether ranks may end in good order though the job fails.
    pub fn is_mixed(&self) -> bool {
        ["exit-after-close", "return-not-caught-after-exit-zero"].contains(&self.name)
    }
}

const fn fails(name: &'static str, codes: &'static [i32]) -> Case {
    Case { name, codes, said: &[], unsaid: &[], finalized: None }
}

/// A program in Rust that ends with code 0 and its job open.
const fn left_open(name: &'static str) -> Case {
    Case { said: &["the program ended with its job open"], ..fails(name, &[1]) }
}

const fn ends(name: &'static str) -> Case {
    Case { finalized: Some(RANKS as usize), ..fails(name, &[0]) }
}

/// All ways. In each, one rank does what the name says; unless it says otherwise the others compute meanwhile and make no
/// call of the library.
pub const CASES: &[Case] = &[
    ends("close"),
    Case { said: &["rank 0 was in 3 jobs", "rank 1 was in 3 jobs"], ..ends("job-after-job") },
    fails("exit-after-close", &[5]),
    Case { said: &["the next rank went on", "the last rank went on"], ..ends("exit-zero-after-close") },
    fails("exit", &[7]),
    ends("exit-zero"),
    ends("exit-zero-by-all"),
    Case { unsaid: &["quit handler ran"], ..fails("exit-by-all", &[3, 4, 5]) },
    fails("exit-zero-then-another", &[9]),
    fails("exit-large", &[1]),
    fails("exit-before-open", &[7]),
    fails("exit-while-opening", &[7]),
    ends("exit-zero-while-opening"),
    fails("exit-in-handler", &[7]),
    fails("exit-in-thread", &[7]),
    fails("exit-in-signal", &[7]),
    fails("libc-exit", &[7]),
    left_open("return-open"),
    left_open("return-open-by-all"),
    left_open("libc-exit-zero"),
    ends("return-allowed"),
    fails("return-error", &[1]),
    left_open("return-dropped"),
    Case { said: &["the next rank went on", "the last rank went on"], ..ends("return-not-caught") },
    Case { said: &["an exit hook ran"], ..fails("return-not-caught-after-exit-zero", &[1]) },
    Case { finalized: Some(1), ..fails("signal-in-exit-hook", &[128 + 15]) },
    Case { said: &["gasworks: rank ", "asked to"], ..fails("abort", &[42]) },
    fails("panic", &[101]),
    fails("panic-in-thread", &[101]),
    fails("panic-in-handler", &[1]),
    fails("sigterm", &[128 + 15]),
    fails("sigint", &[128 + 2]),
    fails("sigquit", &[128 + 3]),
    fails("sighup", &[128 + 1]),
    fails("sigpipe-chosen", &[11]),
    fails("sigterm-chosen", &[11]),
    fails("sigterm-chosen-by-libc-exit", &[12]),
    Case { said: &["quit handler ran"], ..fails("sigint-not-chosen", &[128 + 2]) },
    fails("sigterm-chosen-never", &[128 + 15]),
    Case { said: &["quit handler ran"], ..fails("sigterm-before-exit-by-others", &[128 + 15]) },
    fails("sigkill", &[128 + 9]),
    fails("sigkill-after-exit-zero", &[128 + 9]),
    fails("sigkill-with-child", &[128 + 9]),
    fails("sigsegv", &[128 + 11]),
    fails("libc-abort", &[128 + 6]),
    Case { said: &["quit handler ran", "what was printed before"], ..fails("quit-handler", &[7]) },
    fails("quit-handler-forever", &[7]),
    fails("quit-handler-exits", &[7]),
    fails("stopped", &[7]),
    ends("stopped-zero"),
    Case { said: &["no exit hook of the program"], ..ends("bypass-atexit") },
];
