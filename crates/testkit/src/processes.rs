//! Jobs of real processes: run under a watchdog, their output kept, and what they leave found.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use thiserror::Error;

/// The variable by which a job's processes are known again, whoever started them.
const MARK: &str = "GASWORKS_TEST_MARK";
/// How long processes have to go after their job has ended.
const GRACE: Duration = Duration::from_secs(5);

/// Why a job could not be run, or what it did wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A program is not where it is built.
    #[error("no program {name} at {}: build it first (cargo build --bins)", at.display())]
    NoProgram {
        /// Its name.
        name: String,
        /// Where it was looked for.
        at: PathBuf,
    },
    /// The system refused something.
    #[error("{during}: {cause}")]
    Io {
        /// What was being done.
        during: &'static str,
        /// The cause.
        cause: std::io::Error,
    },
    /// The job did not end. It has been killed.
    #[error("the job did not end within {} s; it said:\n{output}", limit.as_secs_f32())]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// What it printed.
        output: String,
    },
    /// The job has left something behind.
    #[error("the job left behind: {}; it said:\n{output}", what.join(", "))]
    LeftBehind {
        /// What.
        what: Vec<String>,
        /// What it printed.
        output: String,
    },
}

fn io(during: &'static str) -> impl Fn(std::io::Error) -> ProcessError {
    move |cause| ProcessError::Io { during, cause }
}

/// The program `name`, built into the directory of the test that asks, or the one above it.
///
/// # Errors
/// It is not there.
pub fn program(name: &str) -> Result<PathBuf, ProcessError> {
    let here = std::env::current_exe().map_err(io("looking for this program"))?;
    let mut at = here.parent().unwrap_or(Path::new(".")).to_owned();
    if at.ends_with("deps") {
        at.pop();
    }
    at.push(name);
    if at.is_file() { Ok(at) } else { Err(ProcessError::NoProgram { name: name.into(), at }) }
}

/// How a job has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its launcher's status.
    pub status: ExitStatus,
    /// What the launcher and all ranks printed, on either stream.
    pub output: String,
    /// How long it took.
    pub took: Duration,
}

/// A job to be run by `gasrun`.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    limit: Duration,
    mark: String,
    /// The job's own directory for temporary files, which must be empty at the end.
    temp: TempDir,
}

impl Launch {
    /// `program` as so many ranks.
    ///
    /// # Errors
    /// `gasrun` is not built, or there is no room for a temporary directory.
    pub fn new(ranks: u32, program: &Path) -> Result<Self, ProcessError> {
        let mut this = Self::plain(&self::program("gasrun")?)?;
        this.command.args(["-n", &ranks.to_string(), "--"]).arg(program);
        Ok(this)
    }

    /// Any program, `gasrun` itself for instance.
    ///
    /// # Errors
    /// There is no room for a temporary directory.
    pub fn plain(program: &Path) -> Result<Self, ProcessError> {
        let temp = TempDir::with_prefix("gasworks-test-").map_err(io("making a temporary directory"))?;
        // The directory's name is this job's alone, so it serves as its mark.
        let mark = temp.path().display().to_string();
        let mut command = Command::new(program);
        command.env("TMPDIR", temp.path()).env(MARK, &mark).stdin(Stdio::null());
        Ok(Self { command, limit: Duration::from_secs(60), mark, temp })
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Kills the job after so long.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the job to its end, and requires that nothing is left of it: no process, nothing in `/dev/shm`, nothing in
    /// its temporary directory.
    ///
    /// # Errors
    /// It could not be run, did not end, or left something behind.
    pub fn run(mut self) -> Result<Ended, ProcessError> {
        let shm = names("/dev/shm");
        let mut file = tempfile::tempfile().map_err(io("making a file for the output"))?;
        let out = || file.try_clone().map_err(io("sharing the file for the output"));
        self.command.stdout(out()?).stderr(out()?);
        let begun = Instant::now();
        let mut child = self.command.spawn().map_err(io("starting the job"))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io("waiting for the job"))? {
                break Some(status);
            }
            if begun.elapsed() > self.limit {
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = begun.elapsed();
        if status.is_none() {
            child.kill().map_err(io("killing the job"))?;
            child.wait().map_err(io("waiting for the killed job"))?;
        }
        let mut what = self.processes_left();
        what.extend(shared_memory_left(&shm, GRACE));
        what.extend(names(self.temp.path()).into_iter().map(|name| format!("temporary file {name}")));
        let output = read(&mut file)?;
        match status {
            None => Err(ProcessError::TimedOut { limit: self.limit, output }),
            Some(_) if !what.is_empty() => Err(ProcessError::LeftBehind { what, output }),
            Some(status) => Ok(Ended { status, output, took }),
        }
    }

    /// Gives the job's processes a moment to go, then names those that stay, and kills them.
    fn processes_left(&self) -> Vec<String> {
        let deadline = Instant::now() + GRACE;
        loop {
            let left = self.marked();
            if left.is_empty() {
                return Vec::new();
            }
            if Instant::now() > deadline {
                for &(pid, _) in &left {
                    // They carry this job's mark, so they are ours to end.
                    let _ = nix::sys::signal::kill(
                        nix::unistd::Pid::from_raw(pid),
                        nix::sys::signal::Signal::SIGKILL,
                    );
                }
                return left.into_iter().map(|(pid, name)| format!("process {pid} ({name})")).collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes whose environment carries this job's mark.
    fn marked(&self) -> Vec<(i32, String)> {
        let wanted = format!("{MARK}={}", self.mark);
        let carries = |pid: i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|variable| variable == wanted.as_bytes())
        };
        let pids = names("/proc").into_iter().filter_map(|name| name.parse().ok());
        pids.filter(|&pid| carries(pid))
            .map(|pid| {
                (
                    pid,
                    std::fs::read_to_string(format!("/proc/{pid}/comm"))
                        .unwrap_or_default()
                        .trim()
                        .to_owned(),
                )
            })
            .collect()
    }
}

/// What is in `/dev/shm` beside the names of `before`, lasts, and is in nobody's hands: of what a living process has open
/// or mapped, that process will see to it. The job's own have ended by now.
fn shared_memory_left(before: &[String], grace: Duration) -> Vec<String> {
    let deadline = Instant::now() + grace;
    loop {
        let mut left = names("/dev/shm");
        left.retain(|name| !before.contains(name));
        let mut left: Vec<_> = left.into_iter().map(|name| format!("/dev/shm/{name}")).collect();
        if !left.is_empty() {
            let held = held_files();
            left.retain(|path| !held.contains(path));
        }
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The files in `/dev/shm` that some process has open or mapped.
fn held_files() -> BTreeSet<String> {
    let mut held = BTreeSet::new();
    for process in names("/proc").into_iter().filter(|name| name.parse::<i32>().is_ok()) {
        // One that has ended meanwhile holds nothing.
        for fd in names(format!("/proc/{process}/fd")) {
            let file = std::fs::read_link(format!("/proc/{process}/fd/{fd}")).unwrap_or_default();
            held.insert(file.to_string_lossy().into_owned());
        }
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        held.extend(maps.lines().filter_map(|line| Some(line[line.find("/dev/shm/")?..].to_owned())));
    }
    held
}

fn names(dir: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn read(file: &mut File) -> Result<String, ProcessError> {
    let mut bytes = Vec::new();
    file.rewind().map_err(io("reading the output"))?;
    file.read_to_end(&mut bytes).map_err(io("reading the output"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Builds `gasrun` where `beside`, a program of the calling test, is: it belongs to another package, so a test of one
/// package alone has not built it.
///
/// # Panics
/// If it does not build.
pub fn build_launcher(beside: &str) {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "gasworks-launch", "--bin", "gasrun"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    // Whatever the target directory was called.
    let target = program(beside).ok().and_then(|at| Some(at.parent()?.parent()?.to_owned()));
    target.iter().for_each(|target| {
        build.env("CARGO_TARGET_DIR", target);
    });
    assert!(build.status().is_ok_and(|status| status.success()), "gasrun does not build");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Launch, ProcessError> {
        Ok(Launch::plain(Path::new("/bin/sh"))?.args(&["-c", script]))
    }

    #[test]
    fn output_and_status_are_kept() {
        let ended = shell("echo out; echo err >&2; exit 3").and_then(Launch::run);
        assert!(ended.is_ok_and(|e| e.status.code() == Some(3) && e.output == "out\nerr\n"));
    }

    #[test]
    fn what_is_left_is_found_and_ended() {
        let left = shell("sleep 600 & touch \"$TMPDIR/it\"; echo begun").and_then(Launch::run);
        let said = left.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            said.contains("(sleep)") && said.contains("temporary file it") && said.contains("begun"),
            "{said}"
        );
    }

    #[test]
    fn shared_memory_is_left_once_nobody_holds_it() {
        let (before, path) = (names("/dev/shm"), format!("/dev/shm/testkit-{}", std::process::id()));
        // Other tests that look meanwhile have more patience than this file lasts.
        let moment = Duration::from_millis(50);
        let left = || shared_memory_left(&before, moment).contains(&path);
        let held = File::create(&path).expect("a file in /dev/shm");
        let while_held = left();
        drop(held);
        let afterwards = left();
        std::fs::remove_file(&path).expect("the file is there");
        assert!(!while_held && afterwards && !left(), "{while_held} {afterwards}");
    }

    #[test]
    fn a_job_that_does_not_end_is_ended() {
        let stuck = shell("echo waiting; exec sleep 600").map(|s| s.limit(Duration::from_millis(200)));
        let said = stuck.and_then(Launch::run).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(said.contains("did not end within 0.2 s") && said.contains("waiting"), "{said}");
    }

    #[test]
    fn a_program_that_is_not_built_is_named() {
        let missing = program("no-such-program").err().map(|e| e.to_string()).unwrap_or_default();
        assert!(missing.contains("no-such-program") && missing.contains("cargo build"), "{missing}");
    }
}
