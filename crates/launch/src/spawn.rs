//! One rank's process: its environment, its streams, its connection to the PMI server.
//!
//! # Invariants
//! - spawn.1: `gasrun` has one thread, so between fork and exec the child's heap and locks are as consistent as the parent's.
//! - spawn.2: what runs between fork and exec only makes system calls on values that it owns.
//! - spawn.3: a signal's default action is no code of this process.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use gasworks_os::memfd::MemFd;
use gasworks_os::program::{self, Processors, Program};
use gasworks_os::turns::Turns;
use gasworks_os::{environ, inherited};
use nix::sys::resource::{Resource, rlim_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::setsid;

use crate::meeting::{MEET_FD, MeetingSocket};

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
    program: Program,
    /// The environment but for what is different for each rank.
    environment: Vec<CString>,
    null: OwnedFd,
    pub(crate) streams: Streams,
    /// The signals that were blocked before this process blocked its own.
    pub(crate) signal_mask: SigSet,
    /// Whether all have the same addresses.
    pub(crate) one_layout: bool,
    /// Limits that are not this process's own, soft and hard.
    pub(crate) limits: Vec<(Resource, rlim_t, rlim_t)>,
    /// Where ranks connect, if they get no descriptor.
    pub(crate) port: Option<String>,
    /// Where they say how they stand, if that is not where the job's name says.
    pub(crate) answers: Option<String>,
    /// Where they meet, if all of them are here.
    pub(crate) meeting: Option<MeetingSocket>,
    /// The turns on a processor that this process had before it asked for short ones.
    pub(crate) turns: Option<Turns>,
}

/// A rank's process, and this side of what leads to it.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// None if it is to connect by itself.
    pub(crate) connection: Option<UnixStream>,
    pub(crate) input: Option<PipeWriter>,
    pub(crate) out: Option<PipeReader>,
    pub(crate) err: Option<PipeReader>,
}

/// Where a rank records, for the library.
const OBSERVE_FD: &str = "GASWORKS_OBSERVE_FD";
/// Where a rank says how it stands, for the library.
const INSPECT_ADDRESS: &str = "GASWORKS_INSPECT_ADDRESS";
/// Variables of other launchers, and of the way to this one, which would mislead a rank about who started it.
const FOREIGN: [&str; 13] = [
    "PMI_FD",
    "PMI_PORT",
    "PMI_RANK",
    "PMI_ID",
    "PMI_SPAWNED",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_SERVER_URI2",
    "PMI_CONTROL_PORT",
    OBSERVE_FD,
    INSPECT_ADDRESS,
    MEET_FD,
    gasworks_bootstrap::BECAME,
];
/// Where programs are looked for where nothing says where.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Has this process hear of its children's ends, also if whoever started it ignores those of its own: that is inherited, and
/// the system then forgets how they ended.
pub(crate) fn hear_of_children() -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: spawn.3: `default` is the default action, so nothing of this process runs for a SIGCHLD.
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
    // SAFETY: spawn.1: no other thread can hold a lock as the child is made. spawn.2: `prepare` makes two system calls, on the mask that it
    // owns.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

impl Plan {
    /// For ranks of the job `job` that run `words`, so many in all and here, with some additions to the environment.
    pub(crate) fn new(
        words: &[OsString],
        (ranks, here): (u32, usize),
        job: &str,
        additions: &[(OsString, OsString)],
        streams: Streams,
        signal_mask: SigSet,
    ) -> io::Result<Self> {
        let mut variables: BTreeMap<OsString, OsString> = environ::all().collect();
        variables.extend(additions.iter().cloned());
        for name in FOREIGN {
            variables.remove(OsStr::new(name));
        }
        variables.insert("PMI_SIZE".into(), ranks.to_string().into());
        variables.insert("MPI_LOCALNRANKS".into(), here.to_string().into());
        variables.insert("PMI_JOBID".into(), job.into());
        let path = variables.get(OsStr::new("PATH")).map_or(OsStr::new(USUAL_PATH), OsString::as_os_str);
        let program = Program::new(words, path).map_err(|e| e.cause)?;
        let environment = variables.into_iter().map(|(name, value)| entry(name, value));
        Ok(Self {
            program,
            environment: environment.collect::<io::Result<_>>()?,
            null: nothing()?,
            streams,
            signal_mask,
            limits: Vec::new(),
            one_layout: false,
            port: None,
            answers: None,
            meeting: None,
            turns: None,
        })
    }

    /// Starts one rank, which is so many among those here.
    pub(crate) fn start(
        &self,
        (rank, place): (u32, usize),
        processors: Processors,
        input: Input,
        record: Option<&MemFd>,
    ) -> io::Result<Started> {
        let number = rank.to_string();
        let place = ("MPI_LOCALRANKID", place.to_string());
        let mut own = vec![("PMI_RANK", number.clone()), ("PMI_ID", number), place];
        // Our copies of what the rank inherits close when this returns.
        let record = record.map(|file| file.as_fd().try_clone_to_owned()).transpose()?;
        if let Some(record) = &record {
            inherited::let_pass(record).map_err(|e| e.cause)?;
            own.push((OBSERVE_FD, record.as_raw_fd().to_string()));
        }
        own.extend(self.answers.iter().map(|address| (INSPECT_ADDRESS, address.clone())));
        let (connection, theirs) = match &self.port {
            Some(port) => {
                own.push(("PMI_PORT", port.clone()));
                (None, None)
            }
            None => {
                let (ours, theirs) = UnixStream::pair()?;
                inherited::let_pass(&theirs).map_err(|e| e.cause)?;
                own.push(("PMI_FD", theirs.as_raw_fd().to_string()));
                (Some(ours), Some(theirs))
            }
        };
        // Who connects by itself inherits nothing.
        let meeting = self.meeting.as_ref().filter(|_| theirs.is_some());
        let meeting = meeting
            .map(|meeting| if rank == 0 { meeting.listener.as_fd() } else { meeting.connector.as_fd() });
        let meeting = meeting.map(|fd| fd.try_clone_to_owned()).transpose()?;
        if let Some(meeting) = &meeting {
            inherited::let_pass(meeting).map_err(|e| e.cause)?;
            own.push((MEET_FD, meeting.as_raw_fd().to_string()));
        }
        let own = own.into_iter().map(|(name, value)| entry(name.into(), value.into()));
        let own = own.collect::<io::Result<Vec<_>>>()?;
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let typed = (input == Input::Piped).then(io::pipe).transpose()?;
        let piped = || (self.streams == Streams::Piped).then(io::pipe).transpose();
        let (out, err) = (piped()?, piped()?);
        let child = program::Child {
            streams: [
                match (&typed, input) {
                    (Some((theirs, _)), _) => theirs.as_fd(),
                    (None, Input::Inherited) => stdin.as_fd(),
                    (None, _) => self.null.as_fd(),
                },
                out.as_ref().map_or(stdout.as_fd(), |(_, theirs)| theirs.as_fd()),
                err.as_ref().map_or(stderr.as_fd(), |(_, theirs)| theirs.as_fd()),
            ],
            blocked: self.signal_mask,
            limits: &self.limits,
            one_layout: self.one_layout,
            processors,
            turns: self.turns,
        };
        let pid = self.program.start(self.environment.iter().chain(&own), &child)?;
        drop((theirs, meeting));
        Ok(Started {
            pid,
            connection,
            input: typed.map(|(_, ours)| ours),
            out: out.map(|(ours, _)| ours),
            err: err.map(|(ours, _)| ours),
        })
    }
}

/// What holds nothing to be read, also where there are no devices.
fn nothing() -> io::Result<OwnedFd> {
    match File::open("/dev/null") {
        Ok(null) => Ok(null.into()),
        Err(_) => io::pipe().map(|(reader, _)| reader.into()),
    }
}

/// One of the environment's.
fn entry(mut name: OsString, value: OsString) -> io::Result<CString> {
    name.push("=");
    name.push(value);
    Ok(CString::new(name.into_vec())?)
}
