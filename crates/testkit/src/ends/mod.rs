//! Every way in which a job can end, as a table: what one rank does, and what must come of it.
//!
//! `acts` is what the ranks do, each in a process of its own; [`check`] starts such a job and judges it.
//!
//! # Invariants
//! N1. Handlers of signals are functions that make async-signal-safe calls, or none that returns.
//! N2. Calls that take numbers only touch no memory of ours; a text that is written is a constant.
//! N3. A forked child makes async-signal-safe calls only, and ends by itself.

#[allow(unsafe_code)]
mod acts;

pub use acts::act;

use crate::processes::{Ended, Launch, ProcessError, program};
use std::path::Path;
use std::time::Duration;

/// The exit time-out of these jobs, and of those in which ranks are to come to one wish by themselves.
const TIMEOUT: f64 = 0.6;
const LONG_TIMEOUT: f64 = 2.0;
/// What starting a job, and the machine's other work, may add to it.
const SLACK: Duration = Duration::from_secs(6);
/// The ranks of each job.
const RANKS: u32 = 3;

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
    /// How often the launcher must hear of an end in good order; `None` where the end is none.
    pub finalized: Option<usize>,
}

impl Case {
    /// Whether the rank that acts is gone without a word.
    fn vanishes(&self) -> bool {
        ["sigkill", "sigkill-after-exit-zero", "sigkill-with-child", "sigsegv", "libc-abort"]
            .contains(&self.name)
    }

    /// Whether ranks may leave the job and go on.
    fn leaves(&self) -> bool {
        ["return-not-caught", "return-not-caught-after-exit-zero", "signal-in-exit-hook"].contains(&self.name)
    }

    fn timeout(&self) -> f64 {
        let is_long = ["exit-by-all", "sigterm-before-exit-by-others"].contains(&self.name);
        if is_long { LONG_TIMEOUT } else { TIMEOUT }
    }

    /// Whether ranks may end in good order though the job fails.
    fn is_mixed(&self) -> bool {
        ["exit-after-close", "return-not-caught-after-exit-zero"].contains(&self.name)
    }
}

const fn fails(name: &'static str, codes: &'static [i32]) -> Case {
    Case { name, codes, said: &[], unsaid: &[], finalized: None }
}

const fn ends(name: &'static str) -> Case {
    Case { finalized: Some(RANKS as usize), ..fails(name, &[0]) }
}

/// All ways. In each, one rank does what the name says; unless it says otherwise the others compute meanwhile and look at
/// nothing.
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
    ends("return-open"),
    ends("return-open-by-all"),
    fails("return-error", &[1]),
    ends("return-dropped"),
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

/// Who starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Ours.
    Gasrun,
    /// MPICH's `mpiexec.hydra`.
    Hydra,
    /// The same, told to leave the others alone when a rank fails.
    HydraWithoutCare,
}

/// What makes a launcher leave them alone indeed: it kills the others all the same when one was killed, so it sees none
/// that was, and sends them this signal when one has failed.
const ALONE: &str = r#"trap "" USR1; "$@"; exit $?"#;

impl Launcher {
    /// Whether this launcher makes a code of its own of such an end: it kills the others when a rank ends that has not
    /// said so before, and takes the code of any of them.
    fn has_own_codes(self, case: &Case) -> bool {
        let by_itself = ["exit-after-close", "exit-while-opening", "return-not-caught-after-exit-zero"];
        self != Launcher::Gasrun && (by_itself.contains(&case.name) || case.vanishes())
    }

    /// Whether a case can be run: a rank that no launcher has heard of is none to others, nor is one that has left.
    pub fn runs(self, case: &Case) -> bool {
        match self {
            Launcher::Gasrun => true,
            Launcher::Hydra => !["exit-before-open", "signal-in-exit-hook"].contains(&case.name),
            // Nor does a rank without a job have a reason to end.
            Launcher::HydraWithoutCare => Launcher::Hydra.runs(case) && case.name != "exit-after-close",
        }
    }

    fn launch(self, ranks: u32, this: &Path) -> Result<Launch, ProcessError> {
        let ranks = ranks.to_string();
        let (launcher, options, before) = match self {
            Launcher::Gasrun => (program("gasrun")?, &["-v"][..], &[][..]),
            Launcher::Hydra => ("mpiexec.hydra".into(), &[][..], &[][..]),
            Launcher::HydraWithoutCare => {
                ("mpiexec.hydra".into(), &["-disable-auto-cleanup"][..], &["sh", "-c", ALONE, "rank"][..])
            }
        };
        let launch = Launch::plain(&launcher)?.args(options).args(&["-n", &ranks]);
        Ok(launch.args(before).args(&[&this.display().to_string()]))
    }
}

/// Runs a case with one rank as the one that acts; says what is wrong with the way in which the job ended.
///
/// # Errors
/// It is described.
pub fn check(case: &Case, victim: u32, launcher: Launcher, this: &Path) -> Result<Ended, String> {
    let whole = |e: ProcessError| e.to_string();
    let begun = launcher.launch(RANKS, this).map_err(whole)?;
    let catch = if case.leaves() { "0" } else { "1" };
    let limit = Duration::from_secs_f64(2.5 * case.timeout()) + SLACK;
    let ended = begun
        .args(&["act", case.name, &victim.to_string()])
        .env("GASNET_EXITTIMEOUT", &case.timeout().to_string())
        .env("GASNET_CATCH_EXIT", catch)
        .limit(limit)
        .run()
        .map_err(whole)?;
    let wrong = |what: String| Err(format!("{what}; it said:\n{}", ended.output));
    let code = ended.status.code().unwrap_or(-1);
    if !(case.codes.contains(&code) || launcher.has_own_codes(case) && code > 0) {
        return wrong(format!("the job ended with {}, not with code {:?}", ended.status, case.codes));
    }
    if let Some(missing) = case.said.iter().find(|text| !ended.output.contains(**text)) {
        return wrong(format!("nobody said {missing:?}"));
    }
    if ended.output.contains("rank ended too late") {
        return wrong("a rank was not told of the end".into());
    }
    if let Some(said) = case.unsaid.iter().find(|text| ended.output.contains(**text)) {
        return wrong(format!("somebody said {said:?}"));
    }
    // This one leaves it to the others to notice.
    if launcher == Launcher::HydraWithoutCare
        && case.vanishes()
        && !ended.output.contains("is gone without a word")
    {
        return wrong("no rank has noticed that another one is gone".into());
    }
    if launcher == Launcher::Gasrun {
        let heard = ended.output.matches("is about to end in good order").count();
        if case.finalized.is_some_and(|wanted| wanted != heard) || heard > RANKS as usize {
            return wrong(format!("{heard} ends in good order, not {:?}", case.finalized));
        }
        if case.finalized.is_none() && !case.is_mixed() && heard > 0 {
            return wrong(format!("{heard} ends in good order of a job that failed"));
        }
    }
    Ok(ended)
}
