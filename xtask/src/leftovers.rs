//! What a job could leave lying about: processes, found by a mark in their environment, and files, by their names.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The variable that tells one job's processes from all others: they inherit it, however they were started.
pub const MARK: &str = "GASWORKS_TEST_MARK";

/// How long what is just ending may take.
const GRACE: Duration = Duration::from_secs(1);

/// The value of [`MARK`] for one job.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    /// One that no other job has.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)))
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// An error if processes of the job are left after a second. They are killed then.
    pub fn check(&self) -> anyhow::Result<()> {
        let left = lasting(|| self.processes());
        for pid in left.keys() {
            // One that has gone meanwhile needs no signal.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        let shown: Vec<_> = left.iter().map(|(pid, line)| format!("process {pid} ({line})")).collect();
        anyhow::ensure!(shown.is_empty(), "left behind, and killed now: {}", shown.join(", "));
        Ok(())
    }

    /// The living processes with this mark, and their command lines. A zombie's environment reads as empty.
    fn processes(&self) -> std::collections::BTreeMap<i32, String> {
        let entry = format!("{MARK}={}", self.0);
        let mut found = std::collections::BTreeMap::new();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
            let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
            if read("environ").split(|&b| b == 0).any(|e| e == entry.as_bytes()) {
                let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.insert(pid, line.trim_end().to_owned());
            }
        }
        // A job of this program's own that runs this program: it has the mark of the outer job.
        found.remove(&Pid::this().as_raw());
        found
    }
}

/// What is still there after a second of looking.
fn lasting<T: Default + IsEmpty>(look: impl Fn() -> T) -> T {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_empty() || begun.elapsed() >= GRACE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
