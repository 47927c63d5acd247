//! One rank's process: its environment, its streams, its connection to the PMI server.
//!
//! # Invariants
//! L1. `gasrun` has one thread, so between fork and exec the child's heap and locks are as consistent as the parent's.
//! L2. What runs between fork and exec only makes system calls on values that it owns.
//! L3. A signal's default action is no code of this process.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use gasworks_os::memfd::MemFd;
use gasworks_os::{affinity, inherited, process};
use nix::sys::resource::{Resource, rlim_t, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, getppid, setsid};

/// Where a rank's standard streams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    /// To this process, line by line.
    Piped,
    /// Straight to where this process's own go: a job of one rank.
    Inherited,
}

/// Where a rank's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// From where this process's own comes.
    Inherited,
    /// From this process.
    Piped,
    /// From nowhere.
    Null,
}

/// What the ranks of a job have in common.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: Vec<OsString>,
    pub(crate) ranks: u32,
    pub(crate) job: String,
    pub(crate) streams: Streams,
    /// The signals that were blocked before this process blocked its own.
    pub(crate) signal_mask: SigSet,
    /// The limit on open descriptors as it was before this process raised its own.
    pub(crate) open_files: Option<(rlim_t, rlim_t)>,
    /// Where ranks connect, if they get no descriptor.
    pub(crate) port: Option<String>,
    /// What is added to the environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Where a rank records, for the library.
const OBSERVE_FD: &str = "GASWORKS_OBSERVE_FD";
/// Variables of other launchers, which would mislead a rank about who started it.
const FOREIGN: [&str; 8] = [
    "PMI_FD",
    "PMI_PORT",
    "PMI_SPAWNED",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_SERVER_URI2",
    "PMI_CONTROL_PORT",
    OBSERVE_FD,
];

/// Has this process hear of its children's ends, also if whoever started it ignores those of its own: that is inherited, and
/// the system then forgets how they ended.
pub(crate) fn hear_of_children() -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: L3.
    unsafe { sigaction(Signal::SIGCHLD, &default) }.map(drop)
}

/// The entry of a rank's environment that names its job.
pub(crate) fn marker(job: &str) -> String {
    format!("PMI_JOBID={job}")
}

/// Starts the remote command for another host, which gets the signals that this process keeps for itself. It has a
/// session of its own: a signal from the terminal is for gasrun, which passes it on in its own way, and a question that
/// nobody could answer ends it, where a process in the background would be stopped at the terminal without a word.
pub(crate) fn remote(mut command: Command, signal_mask: SigSet) -> io::Result<Child> {
    let prepare = move || {
        setsid()?;
        Ok(signal_mask.thread_set_mask()?)
    };
    // SAFETY: L1 and L2.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Starts one rank; gives its process, and this side of its connection unless it is to connect by itself.
pub(crate) fn rank(
    plan: &Plan,
    rank: u32,
    processor: Option<usize>,
    input: Input,
    record: Option<&MemFd>,
) -> io::Result<(Child, Option<UnixStream>)> {
    let record = record.map(|file| file.as_fd().try_clone_to_owned()).transpose()?;
    let mut command = Command::new(&plan.program[0]);
    command.args(&plan.program[1..]).process_group(0);
    command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
    for name in FOREIGN {
        command.env_remove(name);
    }
    if let Some(record) = &record {
        inherited::let_pass(record).map_err(|e| e.cause)?;
        command.env(OBSERVE_FD, record.as_raw_fd().to_string());
    }
    // Our copy of what the rank inherits closes when this returns.
    let (ours, _theirs) = match &plan.port {
        Some(port) => {
            command.env("PMI_PORT", port);
            (None, None)
        }
        None => {
            let (ours, theirs) = UnixStream::pair()?;
            inherited::let_pass(&theirs).map_err(|e| e.cause)?;
            command.env("PMI_FD", theirs.as_raw_fd().to_string());
            (Some(ours), Some(theirs))
        }
    };
    command
        .env("PMI_RANK", rank.to_string())
        .env("PMI_ID", rank.to_string())
        .env("PMI_SIZE", plan.ranks.to_string())
        .env("PMI_JOBID", &plan.job);
    command.stdin(match input {
        Input::Inherited => Stdio::inherit(),
        Input::Piped => Stdio::piped(),
        Input::Null => Stdio::null(),
    });
    if plan.streams == Streams::Piped {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let parent = Pid::this();
    let (open_files, signal_mask) = (plan.open_files, plan.signal_mask);
    let prepare = move || {
        process::set_parent_death_signal(Signal::SIGKILL).map_err(|e| e.cause)?;
        if getppid() != parent {
            // The parent ended before the signal was asked for.
            process::exit_now(1);
        }
        signal_mask.thread_set_mask()?;
        if let Some((soft, hard)) = open_files {
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
        }
        if let Some(cpu) = processor {
            affinity::bind(cpu).map_err(|e| e.cause)?;
        }
        Ok(())
    };
    // SAFETY: L1 and L2.
    unsafe { command.pre_exec(prepare) };
    Ok((command.spawn()?, ours))
}
