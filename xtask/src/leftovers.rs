//! What a job could leave lying about, looked at before and after.

use std::collections::BTreeSet;

/// Files and processes that look like a job's.
#[derive(Debug)]
pub struct Leftovers {
    before: BTreeSet<String>,
}

impl Leftovers {
    /// What there is before the job.
    pub fn before() -> Self {
        Self { before: found() }
    }

    /// An error if there is more now; processes that are just ending get a second.
    pub fn check(&self) -> anyhow::Result<()> {
        let begun = std::time::Instant::now();
        loop {
            let more: Vec<_> = found().difference(&self.before).cloned().collect();
            if more.is_empty() {
                return Ok(());
            }
            if begun.elapsed().as_secs() >= 1 {
                anyhow::bail!("left behind: {}", more.join(", "));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn found() -> BTreeSet<String> {
    let ours = |name: &str| name.starts_with("gasworks") || name.starts_with("gasrun");
    let files = ["/dev/shm", "/tmp"]
        .into_iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
    let files = files.filter(|entry| ours(&entry.file_name().to_string_lossy()));
    files.map(|entry| entry.path().display().to_string()).collect()
}

/// The processes with this word among their arguments, which no other program would have.
pub fn processes_with(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.split(|&b| b == 0).any(|arg| arg == word.as_bytes()) {
            found.push(pid);
        }
    }
    found
}
