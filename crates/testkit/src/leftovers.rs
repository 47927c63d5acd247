//! What a job could leave lying about: processes, found by a mark in their environment, and shared memory, by its names.

use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The variable that tells one job's processes from all others: they inherit it, however they are started.
pub const MARK: &str = "GASWORKS_TEST_MARK";

/// How long processes that are just ending may take: the machine may be busy.
const GRACE: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(5) };

/// What `look` still finds after that time; nothing, as soon as it finds nothing.
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

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

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

    /// Whether processes of the job are running, or begin to within a moment: one that is just being replaced by another
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

    /// An error if processes of the job are left after five seconds. They are killed then.
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

/// The names in `/dev/shm` before a job.
#[derive(Debug)]
pub struct SharedMemory {
    before: Vec<String>,
}

impl SharedMemory {
    /// Those that are there now.
    pub fn before() -> Self {
        Self { before: names("/dev/shm") }
    }

    /// An error if there are more that last and that no process has open or mapped: what a living process holds belongs to
    /// another job, for this one has ended.
    pub fn check(&self) -> Result<()> {
        let left = lasting(|| {
            let mut left = names("/dev/shm");
            left.retain(|name| !self.before.contains(name));
            let mut left: BTreeMap<_, _> =
                left.into_iter().map(|name| (format!("/dev/shm/{name}"), ())).collect();
            if !left.is_empty() {
                let held = held_files();
                left.retain(|path, ()| !held.contains(path));
            }
            left
        });
        ensure!(left.is_empty(), "left behind: {}", left.into_keys().collect::<Vec<_>>().join(", "));
        Ok(())
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
    fn shared_memory_is_left_once_nobody_holds_it() {
        let shared = SharedMemory::before();
        let path = format!("/dev/shm/gasworks-testkit-{}", std::process::id());
        let held = std::fs::File::create(&path).unwrap();
        let while_held = held_files().contains(&path);
        drop(held);
        let error = shared.check().unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(while_held && error.contains(&path), "{while_held}, {error}");
        assert!(!names("/dev/shm").iter().any(|name| path.ends_with(name)));
    }
}
