//! `gasrun` starts the ranks of a job, on this machine or on several hosts, and stays with them to the end.
//!
//! One thread waits for everything in one set: what the ranks say to the PMI server, what they write, what other hosts
//! say, signals, and ends of processes. A second process, the *guardian*, does nothing but wait for this one to vanish.
//! On each of several hosts an *agent* does the same; it is this program too.
//!
//! - [`options`]: the command line; [`report`]: the table of settings; `template`: jobs that another launcher starts.
//! - `job`: the loop and its judgement of what happened; `spawn`: one rank's process; `stream`: lines from the ranks;
//!   `line`: a connection; `token`: whom an event is about; `watched`: a descriptor shared with others; `stdin`: input for
//!   rank 0; `guardian` and `sweep`: nothing is left behind.
//! - [`gasnetrun`]: GASNet's launchers, which are this program under other names.
//! - `hosts`: which ranks run where; `remote`: agents, and what they and `gasrun` say to each other.
//! - `endpoints`: the endpoints of this machine.
//! - `inspect`: how the ranks of a running job stand; `observe`: what the ranks count and record.
#![deny(missing_docs)]

mod endpoints;
pub mod gasnetrun;
#[allow(unsafe_code)]
mod guardian;
mod hosts;
mod inspect;
mod job;
mod line;
mod meeting;
mod observe;
pub mod options;
pub mod remote;
pub mod report;
#[allow(unsafe_code)]
mod spawn;
mod stdin;
mod stream;
mod sweep;
mod template;
mod token;
mod visitors;
mod watched;

pub use report::SETTINGS;

use std::io::Write;
use std::process::ExitCode;

/// Exit codes of `gasrun` itself; otherwise it ends with the first non-zero code of a rank.
pub mod code {
    /// Something failed that is not a rank's own code.
    pub const FAILED: i32 = 1;
    /// The command line is wrong.
    pub const USAGE: i32 = 2;
    /// The job did not end in the time allowed.
    pub const TIMED_OUT: i32 = 124;
    /// The program cannot be executed.
    pub const NOT_EXECUTABLE: i32 = 126;
    /// The program was not found.
    pub const NOT_FOUND: i32 = 127;
}

/// The program `gasrun`: reads the command line, runs the job, gives its code. Called by another name it is
/// [`gasnetrun`].
///
/// It must be called before the process has other threads.
pub fn main() -> ExitCode {
    if let Some(launcher) = gasnetrun::called(std::env::args_os().next()) {
        return gasnetrun::main(&launcher);
    }
    let options = options::Options::read(std::env::args_os()).unwrap_or_else(|e| e.exit());
    if options.env {
        let mut text = Vec::new();
        report::write(&mut text);
        let mut stdout = std::io::stdout();
        return match stdout.write_all(&text).and_then(|()| stdout.flush()) {
            // Whoever closes the pipe has read enough.
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                gasworks_os::say(&format!("gasrun: write standard output: {e}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let instead = match (&options.inspect, &options.endpoints, options.agent) {
        (Some(job), ..) => Some(inspect::ask::ask(job)),
        (None, Some(base), _) => Some(endpoints::list(base.as_deref())),
        (None, None, true) => Some(job::run_agent()),
        (None, None, false) => None,
    };
    match instead {
        None => {}
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(e)) => {
            gasworks_os::say(&format!("gasrun: {e:#}"));
            return ExitCode::FAILURE;
        }
    }
    match template::start(&options) {
        Ok(None) => {}
        Ok(Some(shown)) => {
            let mut stdout = std::io::stdout();
            let written = writeln!(stdout, "{shown}").and_then(|()| stdout.flush());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(e) => {
            gasworks_os::say(&format!("gasrun: {e:#}"));
            return ExitCode::from(code::USAGE as u8);
        }
    }
    let code = run(&options);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Runs a job to its end and gives the exit code. See [`main`] for when it may be called.
pub fn run(options: &options::Options) -> i32 {
    match job::run(options) {
        Ok(code) => code,
        Err(refused) => {
            gasworks_os::say(&format!("gasrun: {:#}", refused.why));
            refused.code
        }
    }
}
