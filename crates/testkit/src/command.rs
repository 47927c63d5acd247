//! Running programs: under a limit on time, with their output kept, and with a mark by which what they leave is found.
//!
//! Programs see nothing of the cargo environment of the program that starts them.

use crate::leftovers::{MARK, Mark, SharedMemory};
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What cargo sets for the programs it runs. A child that is another toolchain's cargo must not see it.
const CARGO_OWN: &[&str] = &[
    "CARGO",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
    "LD_LIBRARY_PATH",
];

/// A program to run, with how long it may take and what it may leave.
#[derive(Clone, Debug)]
pub struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    limit: Duration,
    stdin: Option<Arc<UnixStream>>,
    leaves: Option<&'static str>,
    is_job: bool,
}

impl Cmd {
    /// A program, started in the repository's root, with ten minutes.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: crate::root(),
            limit: Duration::from_secs(600),
            stdin: None,
            leaves: None,
            is_job: false,
        }
    }

    /// Cargo, with arguments separated by blanks.
    pub fn cargo(words: &str) -> Self {
        let cargo = Self::new("cargo").words(words);
        // An incremental build inlines less, and what is counted and timed is an optimised one as users have it.
        if words.contains("--release") { cargo.env("CARGO_INCREMENTAL", "0") } else { cargo }
    }

    /// Arguments separated by blanks.
    pub fn words(mut self, words: &str) -> Self {
        self.args.extend(words.split_whitespace().map(Into::into));
        self
    }

    /// One argument as it stands.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Several arguments as they stand.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().into()));
        self
    }

    /// A variable in its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Where it starts.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// How many seconds it may take.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Its standard input is a socket.
    pub fn socket(mut self, stdin: UnixStream) -> Self {
        self.stdin = Some(Arc::new(stdin));
        self
    }

    /// It may leave processes behind whose command lines have this in them: they are killed, and the log says so.
    pub fn leaves(mut self, part: &'static str) -> Self {
        self.leaves = Some(part);
        self
    }

    /// It is a job: it gets a temporary directory of its own (`TMPDIR`), and [`Cmd::run`] fails if a file is left there or in
    /// `/dev/shm`.
    pub fn job(mut self) -> Self {
        self.is_job = true;
        self
    }

    /// The same program with the same arguments, started by `outer`, of which only the words are taken.
    pub fn started_by(self, outer: Cmd) -> Self {
        let args = outer.args.into_iter().chain([self.program]).chain(self.args).collect();
        Self { program: outer.program, args, ..self }
    }

    /// How it would be typed.
    pub fn shown(&self) -> String {
        let env = self.env.iter().map(|(k, v)| format!("{}={}", k.to_string_lossy(), quote(v)));
        let words = std::iter::once(&self.program).chain(&self.args).map(|w| quote(w));
        env.chain(words).collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir).stdin(Stdio::null());
        for name in CARGO_OWN {
            command.env_remove(name);
        }
        // A failure shows the end of the log: the message belongs there, not forty frames.
        command.env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// What its standard input is.
    fn stdin(&self) -> Result<Stdio> {
        Ok(match &self.stdin {
            Some(stream) => OwnedFd::from(stream.try_clone().context("a second handle on a socket")?).into(),
            None => Stdio::null(),
        })
    }

    /// Runs it to its end and keeps its output. A time-out is an end like any other; a program that cannot be started is an
    /// error, and so is a process that it leaves behind.
    pub fn run(&self) -> Result<Ended> {
        Ok(self.run_into(tempfile::tempfile().context("a file for the output")?)?.0)
    }

    /// [`Cmd::run`], where anything but code 0 in time is an error that holds the output.
    pub fn run_ok(&self) -> Result<Ended> {
        let ended = self.run()?;
        ensure!(ended.ok(), "{}: {}; it said:\n{}", ended.how(), ended.shown, ended.output);
        Ok(ended)
    }

    /// Runs it with its output appended to `file`. What it left and was allowed to is returned beside its end.
    fn run_into(&self, mut file: File) -> Result<(Ended, Vec<String>)> {
        let start = file.seek(SeekFrom::End(0)).context("the end of the output")?;
        let place = Place::of(self)?;
        let (begun, mark) = (Instant::now(), Mark::new());
        let mut command = self.command();
        if let Some(place) = &place {
            command.env("TMPDIR", place.temp.path());
        }
        let mut child = command
            .env(MARK, mark.value())
            .stdin(self.stdin()?)
            .stdout(file.try_clone().context("sharing the output")?)
            .stderr(file.try_clone().context("sharing the output")?)
            .spawn()
            .with_context(|| format!("starting {}", self.shown()))?;
        let status = wait(&mut child, self.limit).with_context(|| format!("waiting for {}", self.shown()))?;
        let took = begun.elapsed();
        file.seek(SeekFrom::Start(start)).context("reading the output")?;
        let mut output = Vec::new();
        file.read_to_end(&mut output).context("reading the output")?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let left =
            mark.check_but(self.leaves).with_context(|| format!("{}; it said:\n{output}", self.shown()))?;
        if let Some(place) = place {
            place.check().with_context(|| self.shown())?;
        }
        Ok((Ended { shown: self.shown(), status, output, took }, left))
    }

    /// Runs it with its output on this terminal.
    pub fn show(&self) -> Result<()> {
        eprintln!("+ {}", self.shown());
        let mut command = self.command();
        command.env_remove("CARGO_TERM_COLOR");
        let status = command.status().with_context(|| format!("starting {}", self.shown()))?;
        if !status.success() {
            bail!("{} ended with {}", self.shown(), describe(status));
        }
        Ok(())
    }

    /// Runs it and returns what it wrote to standard output; its error output is dropped.
    pub fn read(&self) -> Result<String> {
        let output = self
            .command()
            .stderr(Stdio::null())
            .output()
            .with_context(|| format!("starting {}", self.shown()))?;
        if !output.status.success() {
            bail!("{} ended with {}", self.shown(), describe(output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts it and leaves it running, its output to be read, its error output on this program's.
    pub fn spawn_piped(&self) -> Result<Child> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {}", self.shown()))
    }

    /// Starts it and leaves it running, its output to be read, its error output in a log.
    pub fn spawn_into(&self, log: &Log) -> Result<Child> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(log.open()?);
        command.spawn().with_context(|| format!("starting {}", self.shown()))
    }

    /// Whether it can be started and ends well.
    pub fn works(&self) -> bool {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    }
}

/// Where a job may write, looked at when it has ended.
struct Place {
    temp: tempfile::TempDir,
    shared: SharedMemory,
}

impl Place {
    fn of(cmd: &Cmd) -> Result<Option<Self>> {
        if !cmd.is_job {
            return Ok(None);
        }
        let temp = tempfile::TempDir::with_prefix("gasworks-test-").context("a temporary directory")?;
        Ok(Some(Self { temp, shared: SharedMemory::before() }))
    }

    fn check(self) -> Result<()> {
        let entries = std::fs::read_dir(self.temp.path()).context("looking into the temporary directory")?;
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        ensure!(names.is_empty(), "left behind in its temporary directory: {names:?}");
        self.shared.check()
    }
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains([' ', '"', '\'', '$', '*']) {
        format!("'{word}'")
    } else {
        word.into_owned()
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "no status".into(),
    }
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// How it was started.
    pub shown: String,
    /// Its status; `None` if it ran out of time and was killed.
    pub status: Option<ExitStatus>,
    /// Standard output and error, in the order in which they came.
    pub output: String,
    /// How long it took.
    pub took: Duration,
}

impl Ended {
    /// Its exit code; of a program that a signal ended, what a shell makes of that. `None` if it ran out of time.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)))
    }

    /// Whether it ended with code 0 in time.
    pub fn ok(&self) -> bool {
        self.status.is_some_and(|s| s.success())
    }

    /// Its end in words.
    pub fn how(&self) -> String {
        self.status.map_or_else(|| format!("no end within {} s", self.took.as_secs()), describe)
    }

    /// An error unless it ended with code 0 in time.
    pub fn check(self) -> Result<Self> {
        if !self.ok() {
            bail!("{}: {}", self.how(), self.shown);
        }
        Ok(self)
    }
}

/// Where a row's programs write.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    nice: bool,
}

impl Log {
    /// A new, empty log at `path`.
    pub fn create(path: PathBuf) -> Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        File::create(&path).with_context(|| format!("making the log {}", path.display()))?;
        Ok(Self { path, nice: false })
    }

    /// Whether programs that run into it have a low priority, so that what runs beside them is hardly disturbed.
    pub fn nice(self, nice: bool) -> Self {
        Self { nice, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder of its own beside it, empty.
    pub fn scratch(&self) -> Result<PathBuf> {
        let dir = self.path.with_extension("d");
        crate::files::empty(&dir)?;
        Ok(dir)
    }

    fn open(&self) -> Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).read(true);
        options.open(&self.path).with_context(|| format!("opening the log {}", self.path.display()))
    }

    /// Adds a line.
    pub fn note(&self, line: &str) -> Result<()> {
        writeln!(self.open()?, "{line}").context("writing the log")
    }

    /// Its last `count` lines that are not empty.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines.iter().skip(lines.len().saturating_sub(count)).map(|l| (*l).to_owned()).collect()
    }

    /// Runs a program into this log, as [`Cmd::run`] does.
    pub fn run(&self, cmd: &Cmd) -> Result<Ended> {
        self.note(&format!("+ {}", cmd.shown()))?;
        let nice = self.nice.then(|| cmd.clone().started_by(Cmd::new("nice").words("-n 2")));
        let (ended, left) = nice.as_ref().unwrap_or(cmd).run_into(self.open()?)?;
        if ended.status.is_none() {
            self.note(&format!("killed: no end within {} s", ended.took.as_secs()))?;
        }
        for left in left {
            self.note(&format!("left behind, as it may be, and killed now: {left}"))?;
        }
        Ok(ended)
    }

    /// Runs a program into this log; anything but code 0 in time is an error.
    pub fn run_ok(&self, cmd: &Cmd) -> Result<Ended> {
        self.run(cmd)?.check()
    }
}

fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    let mut nap = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > limit {
            end_with_descendants(child);
            return Ok(None);
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(20));
    }
}

/// Kills a program that was started here, and what it has started.
pub fn end_with_descendants(child: &mut Child) {
    for pid in descendants(child.id()) {
        // The list is a moment old; one that has gone meanwhile needs no signal.
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The processes that `pid` has started, and those that they have.
fn descendants(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // "pid (name) state parent ...": the name may hold blanks and parentheses.
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (child, parent)));
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(c, _)| *c));
        next += 1;
    }
    found.remove(0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, Log) {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::create(dir.path().join("log")).unwrap();
        (dir, log)
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let (_dir, log) = log();
        let ended = log.run(&Cmd::new("sh").arg("-c").arg("sleep 98765 & echo $!; wait").limit(1)).unwrap();
        assert!(ended.status.is_none());
        let child: i32 = ended.output.trim().parse().unwrap();
        // An orphan that has been killed may stay a zombie until init takes it, but it sleeps no more.
        let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let begun = Instant::now();
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(begun.elapsed() < Duration::from_secs(5), "{}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_that_leaves_a_process_fails_its_row() {
        let (_dir, log) = log();
        let leaves = Cmd::new("sh").arg("-c").arg("setsid sleep 43210 & sleep 0.1; exit 0");
        let error = format!("{:#}", log.run(&leaves).unwrap_err());
        assert!(error.contains("left behind") && error.contains("(sleep 43210)"), "{error}");
        log.run(&leaves.clone().leaves("(sleep 43210")).unwrap();
        assert!(log.tail(1)[0].starts_with("left behind, as it may be"), "{:?}", log.tail(1));
        assert!(log.run(&leaves.leaves("(sleep 5")).is_err());
    }

    #[test]
    fn output_and_code_come_back() {
        let (_dir, log) = log();
        let ended = log.run(&Cmd::new("sh").arg("-c").arg("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!((ended.output.as_str(), ended.how().as_str()), ("out\nerr\n", "exit code 3"));
        assert!(ended.check().unwrap_err().to_string().starts_with("exit code 3: sh -c"));
        assert_eq!(log.tail(1), ["err"]);
    }

    #[test]
    fn children_do_not_inherit_the_toolchain() {
        let text = Cmd::new("env").read().unwrap();
        assert!(!text.lines().any(|l| l.starts_with("RUSTUP_TOOLCHAIN=") || l.starts_with("CARGO=")));
    }
}
