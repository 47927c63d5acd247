//! What a job could leave lying about: processes, found by a mark in their environment, and files, by their names.

use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The variable that tells one job's processes from all others: they inherit it, however they are started.
pub const MARK: &str = "GASWORKS_TEST_MARK";

/// How long what is just ending may take.
const GRACE: Duration = Duration::from_secs(1);

/// What `look` still finds after a second; nothing, as soon as it finds nothing.
fn lasting<K: Ord, V>(look: impl Fn() -> BTreeMap<K, V>) -> BTreeMap<K, V> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_empty() || begun.elapsed() >= GRACE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The value of [`MARK`] for one job.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    /// One that no other job has.
    pub fn new() -> Self {
        static NEXT: Mutex<u64> = Mutex::new(0);
        let mut next = NEXT.lock().unwrap_or_else(|e| e.into_inner());
        *next += 1;
        Self(format!("{}-{next}", std::process::id()))
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// Whether processes of the job are running, or begin to within a second: one that is just being replaced by another
    /// program has no environment for a moment.
    pub fn lives(&self) -> bool {
        let begun = Instant::now();
        while self.processes().is_empty() {
            if begun.elapsed() >= GRACE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// An error if processes of the job are left after a second. They are killed then.
    pub fn check(&self) -> Result<()> {
        self.check_but(None).map(drop)
    }

    /// The same, but those whose command lines have this in them are killed and returned.
    pub fn check_but(&self, spared: Option<&str>) -> Result<Vec<String>> {
        let left = lasting(|| self.processes());
        for pid in left.keys() {
            // One that has gone meanwhile needs no signal.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        let shown = left.into_iter().map(|(pid, line)| format!("process {pid} ({line})"));
        let (spared, wrong): (Vec<_>, Vec<_>) =
            shown.partition(|line| spared.is_some_and(|part| line.contains(part)));
        ensure!(wrong.is_empty(), "left behind, and killed now: {}", wrong.join(", "));
        Ok(spared)
    }

    /// The processes with this mark by number, with their command lines. A zombie's environment reads as empty, so
    /// that only what lives is found.
    fn processes(&self) -> BTreeMap<i32, String> {
        let entry = format!("{MARK}={}", self.0);
        let mut found = BTreeMap::new();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
            // It may have ended since it was listed, and then has no files.
            let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
            if read("environ").split(|&b| b == 0).any(|e| e == entry.as_bytes()) {
                let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.insert(pid, line.trim_end().to_owned());
            }
        }
        // Never this program, whatever started it.
        found.remove(&Pid::this().as_raw());
        found
    }
}

/// Files that look like a job's.
#[derive(Debug)]
pub struct Leftovers {
    before: BTreeMap<String, ()>,
}

impl Leftovers {
    /// The files that there are before the job.
    pub fn before() -> Self {
        Self { before: files() }
    }

    /// An error if there are more now, and a second later.
    pub fn check(&self) -> Result<()> {
        let more = lasting(|| {
            let mut found = files();
            found.retain(|path, ()| !self.before.contains_key(path));
            found
        });
        let shown: Vec<_> = more.into_keys().collect();
        ensure!(shown.is_empty(), "left behind: {}", shown.join(", "));
        Ok(())
    }
}

fn files() -> BTreeMap<String, ()> {
    let ours = |name: &str| name.starts_with("gasworks") || name.starts_with("gasrun");
    let files = ["/dev/shm", "/tmp"].into_iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let files = files.flatten().filter(|entry| ours(&entry.file_name().to_string_lossy()));
    files.map(|entry| (entry.path().display().to_string(), ())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_a_job_left_is_found_and_killed() {
        let (ours, other) = (Mark::new(), Mark::new());
        let start = |mark: &Mark| {
            let mut sleep = std::process::Command::new("sleep");
            sleep.arg("54321").env(MARK, mark.value()).spawn().unwrap()
        };
        let (mut left, mut stranger) = (start(&ours), start(&other));
        // Both are programs of their own by now: a check in the middle of that change would find no environment.
        assert!(ours.lives() && other.lives());
        let error = ours.check().unwrap_err().to_string();
        assert!(error.contains(&format!("process {} (sleep 54321)", left.id())), "{error}");
        assert!(!error.contains(&stranger.id().to_string()), "{error}");
        // It is a zombie until it is waited for: no longer found.
        ours.check().unwrap();
        assert!(!left.wait().unwrap().success());
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        other.check().unwrap();
    }

    #[test]
    fn a_file_that_a_job_left_is_found() {
        let leftovers = Leftovers::before();
        let path = format!("/tmp/gasworks-left-{}", std::process::id());
        std::fs::write(&path, "x").unwrap();
        let found = leftovers.check();
        std::fs::remove_file(&path).unwrap();
        assert!(found.unwrap_err().to_string().contains(&path));
        // Tests that run beside this one may have files of their own.
        let after = leftovers.check().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!after.contains(&path), "{after}");
    }
}
