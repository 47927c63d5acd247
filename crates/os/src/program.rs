//! Starting programs without copying this process first.
//!
//! `fork(2)` copies the page tables of the parent, and afterwards both sides take a fault for each page that they write:
//! where tens of processes are started, that takes most of the time. Here the child runs in the parent's memory until it
//! executes the program, while the parent waits, as in `posix_spawn(3)`; that one has no way to ask for a signal at the
//! parent's end, for other limits or for a processor.
//!
//! # Invariants
//! - program.1: until it executes the program or ends, the child runs on a stack of its own and only makes system calls, on values
//!   that the parent made before; the thread that made them is suspended meanwhile, so nothing else touches them.
//! - program.2: all signals are blocked in the child until none has a handler any more, so none of this process runs in it.
//! - program.3: what is executed is named by strings that end with a NUL, in arrays that end with a null pointer, all of which
//!   outlive the call.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

use nix::errno::Errno;
use nix::sched::{CloneFlags, clone};
use nix::sys::resource::{Resource, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::unistd::{Pid, getpid};

use crate::turns::Turns;
use crate::{OsError, Result};

/// What executes a file that is neither a program nor names an interpreter, as in `execvp(3)`.
const SHELL: &str = "/bin/sh";
/// For the child until it executes the program.
const STACK: usize = 32 << 10;

/// A program with its arguments, to be started any number of times.
#[derive(Debug)]
pub struct Program {
    /// Where it may be, in order.
    files: Vec<CString>,
    words: Vec<CString>,
}

/// How a child differs from its parent, besides being the first of a process group of its own that is killed with the
/// thread that started it.
#[derive(Debug)]
pub struct Child<'a> {
    /// Its standard input, output and error: any descriptor from 3 on, or the parent's own stream of that number.
    pub streams: [BorrowedFd<'a>; 3],
    /// The signals that it starts with blocked.
    pub blocked: SigSet,
    /// Limits of its own, soft and hard.
    pub limits: &'a [(Resource, rlim_t, rlim_t)],
    /// Whether its addresses are those that any child of this program has, and not drawn by lot.
    pub one_layout: bool,
    /// On which processors it runs.
    pub processors: Processors,
    /// How long its turns on a processor are, if its parent has changed its own.
    pub turns: Option<Turns>,
}

/// Asks `personality` for what it is.
const PRESENT: libc::c_ulong = 0xffff_ffff;

/// On which processors a child runs, by masks as of [`affinity::mask_of`](crate::affinity::mask_of).
#[derive(Debug)]
pub enum Processors {
    /// On those of its parent.
    Inherited,
    /// On these alone.
    Only(Vec<u64>),
    /// On the first to begin with, and then wherever the second lets it. Where the system refuses, it runs all the same.
    Beginning(Vec<u64>, Vec<u64>),
}

impl Program {
    /// The program and its arguments; a name without a slash is looked for in the directories of `path`.
    ///
    /// # Errors
    /// There is no name, or a word has a NUL in it.
    pub fn new(words: &[OsString], path: &OsStr) -> Result<Self> {
        let [name, ..] = words else {
            return Err(OsError::new("start", "a program without a name", Errno::EINVAL));
        };
        let files = match name.as_bytes().contains(&b'/') {
            true => vec![terminated(name.clone())?],
            // An empty entry is the working directory.
            false => std::env::split_paths(path)
                .map(|directory| terminated(Path::new(".").join(directory).join(name).into_os_string()))
                .collect::<Result<_>>()?,
        };
        let words = words.iter().cloned().map(terminated).collect::<Result<_>>()?;
        Ok(Self { files, words })
    }

    /// Starts it with the entries of `environment`, each a name, `=` and a value. The number of the process is given
    /// once it is that program.
    ///
    /// # Errors
    /// `ENOENT` if it is nowhere, `EACCES` if it was found and may not be executed, others as the calls of the system
    /// gave them. No process is left then.
    pub fn start<'e>(
        &self,
        environment: impl IntoIterator<Item = &'e CString>,
        child: &Child<'_>,
    ) -> std::result::Result<i32, Errno> {
        let at_home = |(place, stream): (usize, &BorrowedFd<'_>)| {
            let fd = stream.as_raw_fd();
            fd > 2 || fd as usize == place
        };
        if !child.streams.iter().enumerate().all(at_home) {
            return Err(Errno::EINVAL);
        }
        let environment = pointers(environment);
        // A place for the shell, and its first argument, which is the file.
        let shell = CString::new(SHELL).map_err(|_| Errno::EINVAL)?;
        let mut words = pointers([&shell].into_iter().chain(&self.words));
        let parent = getpid();
        let mut failure = None;
        let mut stack = vec![0; STACK];
        let before = block_all()?;
        let body = || {
            let Err(e) = child.prepare(parent).and_then(|()| self.execute(&mut words, &environment));
            failure = Some(e);
            0
        };
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: program.1: `body` only makes system calls, on what this function borrows or has on its stack, and is over before this
        // goes on. program.2: `block_all` has blocked all signals.
        let started = unsafe { clone(Box::new(body), &mut stack, flags, Some(libc::SIGCHLD)) };
        before.thread_set_mask()?;
        let pid = started?.as_raw();
        match failure {
            None => Ok(pid),
            Some(e) => {
                // Its end tells nothing more.
                let _ = crate::process::wait(pid);
                Err(e)
            }
        }
    }

    /// In the child: becomes the program. The first of `words` is the shell's name, then come those of the program.
    fn execute(
        &self,
        words: &mut [*const c_char],
        environment: &[*const c_char],
    ) -> std::result::Result<std::convert::Infallible, Errno> {
        let mut found = Errno::ENOENT;
        for file in &self.files {
            // SAFETY: program.3: `file` and the strings of `words` and `environment` are the parent's; both arrays end with null.
            unsafe { libc::execve(file.as_ptr(), words[1..].as_ptr(), environment.as_ptr()) };
            match Errno::last() {
                Errno::ENOEXEC => {
                    words[1] = file.as_ptr();
                    // SAFETY: program.3: `words` now begins with the shell's name and the file's, both C strings, and still ends with null.
                    unsafe { libc::execve(words[0], words.as_ptr(), environment.as_ptr()) };
                    return Err(Errno::last());
                }
                // It may be in another directory, too.
                Errno::EACCES => found = Errno::EACCES,
                e @ (Errno::ENOENT | Errno::ENOTDIR) if found != Errno::EACCES => found = e,
                Errno::ENOENT | Errno::ENOTDIR => {}
                e => return Err(e),
            }
        }
        Err(found)
    }
}

impl Child<'_> {
    /// In the child: everything but the program.
    fn prepare(&self, parent: Pid) -> std::result::Result<(), Errno> {
        // SAFETY: program.1: these are system calls that are given numbers and give numbers.
        unsafe {
            Errno::result(libc::setpgid(0, 0))?;
            Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            if libc::getppid() != parent.as_raw() {
                // The parent ended before the signal was asked for.
                libc::_exit(1);
            }
        }
        for signal in 1..=libc::SIGRTMAX() {
            default_unless_ignored(signal);
        }
        for (place, stream) in (0..).zip(&self.streams) {
            if stream.as_raw_fd() != place {
                // SAFETY: program.1: `stream` is borrowed from the parent, and the table of descriptors is the child's own.
                Errno::result(unsafe { libc::dup2(stream.as_raw_fd(), place) })?;
            }
        }
        for &(resource, soft, hard) in self.limits {
            setrlimit(resource, soft, hard)?;
        }
        if self.one_layout {
            // SAFETY: program.1: it is given the number `PRESENT`, which changes nothing.
            let now = unsafe { libc::personality(PRESENT) };
            // Where it is not told, or forbidden, addresses are drawn by lot.
            if let Ok(now) = libc::c_ulong::try_from(now) {
                // SAFETY: program.1: it is given a number, and changes the personality of the child alone.
                unsafe { libc::personality(now | libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
            }
        }
        if let Some(turns) = &self.turns {
            // Those that it has are as good.
            let _ = turns.take();
        }
        let bind = |mask: &[u64]| {
            // SAFETY: program.1: `mask` is the parent's, and read no further than its length; 0 is the child.
            Errno::result(unsafe { libc::sched_setaffinity(0, size_of_val(mask), mask.as_ptr().cast()) })
        };
        match &self.processors {
            Processors::Inherited => {}
            Processors::Only(mask) => _ = bind(mask)?,
            Processors::Beginning(first, then) => _ = bind(first).and_then(|_| bind(then)),
        }
        // SAFETY: program.1: `blocked` is the parent's, and is read. program.2: no signal has a handler any more.
        let rc = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.blocked.as_ref(), ptr::null_mut()) };
        if rc == 0 { Ok(()) } else { Err(Errno::from_raw(rc)) }
    }
}

/// In the child: a program gets no handlers of its parent, and learns of a reader that went away as programs do.
fn default_unless_ignored(signal: i32) {
    // SAFETY: program.1: `action` is a local; zeros are the default action, and no more is written than an action. The table of actions is
    // the child's own.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        // Numbers that the C library keeps for itself are refused.
        if libc::sigaction(signal, ptr::null(), &mut action) != 0 || action.sa_sigaction == libc::SIG_DFL {
            return;
        }
        if action.sa_sigaction != libc::SIG_IGN || signal == Signal::SIGPIPE as i32 {
            action = std::mem::zeroed();
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Blocks all signals for this thread; gives the mask as it was.
fn block_all() -> std::result::Result<SigSet, Errno> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    Ok(before)
}

fn terminated(text: OsString) -> Result<CString> {
    let shown = text.to_string_lossy().into_owned();
    CString::new(text.into_vec()).map_err(|e| OsError::new("start a program with", shown, e))
}

fn pointers<'s>(strings: impl IntoIterator<Item = &'s CString>) -> Vec<*const c_char> {
    strings.into_iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Exit, wait};
    use std::fs;
    use std::io::{self, Read};
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    fn start(
        words: &[OsString],
        path: &str,
        environment: &[CString],
        change: impl FnOnce(&mut Child<'_>),
    ) -> std::result::Result<(String, Exit), Errno> {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let null = fs::File::open("/dev/null").expect("opened");
        let mut child = Child {
            streams: [null.as_fd(), writer.as_fd(), writer.as_fd()],
            blocked: SigSet::empty(),
            limits: &[],
            one_layout: false,
            processors: Processors::Inherited,
            turns: None,
        };
        change(&mut child);
        let pid = Program::new(words, path.as_ref()).expect("words").start(environment, &child)?;
        drop(writer);
        let mut said = String::new();
        reader.read_to_string(&mut said).expect("read");
        Ok((said.replace(&pid.to_string(), "PID"), wait(pid).expect("its end")))
    }

    fn shell(script: &str, environment: &[CString], change: impl FnOnce(&mut Child<'_>)) -> (String, Exit) {
        start(&words(&["sh", "-c", script, "name", "a b"]), PATH, environment, change).expect("started")
    }

    #[test]
    fn a_child_is_as_it_was_asked_for() {
        let entry = c"GREETING=good day".to_owned();
        let (said, exit) = shell("echo $GREETING, $1; cut -d' ' -f5 /proc/$$/stat; exit 3", &[entry], |_| {});
        assert_eq!((said.as_str(), exit), ("good day, a b\nPID\n", Exit::Code(3)), "group and all");
        let last = *crate::affinity::allowed().expect("processors").last().expect("one");
        let mask = crate::affinity::mask_of(&[last]);
        let script = "ulimit -Sn; ulimit -Hn; grep Cpus_allowed_list /proc/$$/status";
        let (said, _) = shell(script, &[], |child| {
            child.limits = &[(Resource::RLIMIT_NOFILE, 17, 18)];
            child.processors = Processors::Only(mask);
        });
        assert_eq!(said, format!("17\n18\nCpus_allowed_list:\t{last}\n"));
        // It begins on the last, and may go anywhere; where there is no such processor, it runs as well.
        let allowed = crate::affinity::allowed().expect("processors");
        for first in [vec![last], vec![]] {
            let (said, _) = shell("grep Cpus_allowed_list /proc/$$/status", &[], |child| {
                let [first, then] = [&first, &allowed].map(|cpus| crate::affinity::mask_of(cpus));
                child.processors = Processors::Beginning(first, then);
            });
            let own = fs::read_to_string("/proc/self/status").expect("read");
            let wanted = own.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("a line");
            assert_eq!(said.trim_end(), wanted);
        }
    }

    #[test]
    fn signals_are_those_of_a_new_program() {
        extern "C" fn never(_: i32) {
            std::process::abort();
        }
        // SAFETY: a handler that only aborts; nothing else in these tests uses the signal.
        unsafe {
            use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
            let action = SigAction::new(SigHandler::Handler(never), SaFlags::empty(), SigSet::empty());
            sigaction(Signal::SIGURG, &action).expect("set");
        }
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGUSR2);
        let before = SigSet::thread_get_mask().expect("the mask");
        let ask = words(&["cat", "/proc/self/status"]);
        let (said, _) = start(&ask, PATH, &[], |child| child.blocked = blocked).expect("started");
        let own = fs::read_to_string("/proc/self/status").expect("read");
        let bits = |text: &str, name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            u64::from_str_radix(value.trim(), 16).expect("bits")
        };
        let bit = |signal: Signal| 1 << (signal as u32 - 1);
        // This process ignores SIGPIPE, as every program in Rust.
        assert_eq!(bits(&said, "SigIgn:"), bits(&own, "SigIgn:") & !bit(Signal::SIGPIPE));
        assert_ne!(bits(&own, "SigIgn:") & bit(Signal::SIGPIPE), 0);
        assert_eq!((bits(&said, "SigBlk:"), bits(&said, "SigCgt:")), (bit(Signal::SIGUSR2), 0));
        assert_eq!(SigSet::thread_get_mask().expect("the mask"), before);
        let (_, exit) = shell("kill -TERM $$", &[], |_| {});
        assert_eq!(exit, Exit::Signal(15));
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = |name: &str| {
            let at = dir.path().join(name);
            fs::create_dir(&at).expect("made");
            at
        };
        let (closed, open) = (place("closed"), place("open"));
        let write = |at: &Path, mode: u32| {
            fs::write(at, "echo ours $1\n").expect("written");
            fs::set_permissions(at, fs::Permissions::from_mode(mode)).expect("set");
        };
        write(&closed.join("tool"), 0o644);
        let path = format!("/nowhere:{}", closed.display());
        let tool = words(&["tool", "one"]);
        assert_eq!(start(&tool, &path, &[], |_| {}).expect_err("no executable"), Errno::EACCES);
        // One that can be executed is taken though it comes later, by the shell if it names no interpreter.
        write(&open.join("tool"), 0o755);
        let path = format!("{path}:{}", open.display());
        assert_eq!(start(&tool, &path, &[], |_| {}), Ok(("ours one\n".into(), Exit::Code(0))));
        assert_eq!(start(&tool, "/nowhere:", &[], |_| {}).expect_err("nowhere"), Errno::ENOENT);
        let named = [closed.join("tool").into_os_string()];
        assert_eq!(start(&named, &path, &[], |_| {}).expect_err("named"), Errno::EACCES);
        let inside_a_file = start(&words(&["/etc/passwd/tool"]), PATH, &[], |_| {});
        assert_eq!(inside_a_file.expect_err("no directory"), Errno::ENOTDIR);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Program::new(&[], "".as_ref()).is_err());
        assert!(Program::new(&words(&["a\0b"]), PATH.as_ref()).is_err());
        let stdout = io::stdout();
        let misplaced = Child {
            streams: [stdout.as_fd(), stdout.as_fd(), stdout.as_fd()],
            blocked: SigSet::empty(),
            limits: &[],
            one_layout: false,
            processors: Processors::Inherited,
            turns: None,
        };
        let program = Program::new(&words(&["true"]), PATH.as_ref()).expect("words");
        assert_eq!(program.start(&[], &misplaced).expect_err("refused"), Errno::EINVAL);
    }
}
