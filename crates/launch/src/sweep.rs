//! Finding what ranks have left behind, through `/proc`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gasworks_os::{process, random};
use nix::sys::resource::{Resource, getrlimit, rlim_t};
use nix::sys::signal::{Signal, kill as send, killpg};
use nix::unistd::Pid;

/// What every process carries that comes from a rank, whatever becomes of its session, its environment and its descriptors: a
/// limit that limits nothing, for it is longer than any machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(rlim_t);

/// How long a process may run in real time without a pause, in microseconds.
const CARRIED: Resource = Resource::RLIMIT_RTTIME;
/// No less than this, which is 35 years.
const LEAST: rlim_t = 1 << 50;

impl Mark {
    /// A new one. `None` where that limit is in use: then the environment alone tells.
    pub(crate) fn new() -> Option<Self> {
        let most = getrlimit(CARRIED).ok()?.1.min(rlim_t::MAX >> 1);
        let number = random::nonce().ok()?;
        let number = rlim_t::from_le_bytes(number.first_chunk().copied()?);
        // Below this process's own, which is the mark of the job that it may be in.
        (most >= 2 * LEAST).then(|| Self(most / 2 + number % (most / 2)))
    }

    /// The limit, soft and hard.
    pub(crate) fn limit(self) -> (Resource, rlim_t, rlim_t) {
        (CARRIED, self.0, self.0)
    }

    /// Whether a process carries it.
    fn is_on(self, pid: i32) -> bool {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
        line.is_some_and(|line| line.split_ascii_whitespace().next() == Some(&self.0.to_string()))
    }
}

/// The processes whose environment has the entry `marker`, and those that carry `mark`.
pub(crate) fn marked(marker: &str, mark: Option<Mark>) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|entry| entry == marker.as_bytes())
                || mark.is_some_and(|mark| mark.is_on(*pid))
        })
        .collect()
}

/// Kills processes by number.
pub(crate) fn kill(pids: &[i32]) {
    for &pid in pids.iter().filter(|&&pid| pid > 1) {
        // One that is gone already is what was wanted.
        let _ = send(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// The children of this process but `except`: after the ranks have ended, what they left and the system gave to us.
fn adopted(except: i32) -> Vec<i32> {
    let me = std::process::id();
    let own_list = format!("/proc/self/task/{me}/children");
    let pids: Vec<i32> = match fs::read_to_string(Path::new(&own_list)) {
        Ok(text) => text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect(),
        Err(_) => children_by_search(me),
    };
    pids.into_iter().filter(|&pid| pid != except).collect()
}

/// The same on a kernel that keeps no list: by the parent that each process names.
fn children_by_search(parent: u32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            // "PID (NAME) STATE PARENT ...": the name may hold anything, so look behind its last parenthesis.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
            behind.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
        })
        .collect()
}

/// Ends what is left of the ranks' groups, and what left those groups and was given to us as the nearest subreaper.
/// The groups are asked first, and have a moment; `guardian` is spared.
pub(crate) fn leftovers(groups: &[i32], guardian: i32) -> usize {
    let alive = |group: &&i32| killpg(Pid::from_raw(**group), None).is_ok();
    let mut found = 0;
    let mut left: Vec<i32> = groups.iter().filter(alive).copied().collect();
    if !left.is_empty() {
        found += left.len();
        signal_all(&left, Signal::SIGTERM);
        let deadline = Instant::now() + Duration::from_millis(200);
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
            while process::reap().is_some() {}
            left.retain(|group| alive(&group));
        }
        signal_all(&left, Signal::SIGKILL);
    }
    // A killed parent hands its own children over, so look until there are none.
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        while process::reap().is_some() {}
        let children = adopted(guardian);
        if children.is_empty() || Instant::now() > deadline {
            return found;
        }
        found += children.len();
        kill(&children);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal_all(groups: &[i32], signal: Signal) {
    for &group in groups {
        // A group that is gone already is what was wanted.
        let _ = process::kill_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_carried_whatever_is_cleared() {
        let (mark, other) = (Mark::new().expect("a mark"), Mark::new().expect("another"));
        let (_, soft, hard) = mark.limit();
        assert!(mark != other && soft >= LEAST && soft == hard);
        let limits = format!("--rttime={soft}:{hard}");
        let words = [limits.as_str(), "env", "-i", "setsid", "sleep", "30"];
        let mut child = std::process::Command::new("prlimit").args(words).spawn().expect("prlimit");
        let pid = i32::try_from(child.id()).expect("a pid");
        let deadline = Instant::now() + Duration::from_secs(5);
        while !marked("GASWORKS_TEST_MARK=none", Some(mark)).contains(&pid) {
            assert!(Instant::now() < deadline, "the marked process was not found");
        }
        assert!(!marked("GASWORKS_TEST_MARK=none", Some(other)).contains(&pid));
        kill(&[pid]);
        child.wait().expect("ended");
    }

    #[test]
    fn both_ways_find_the_same_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("GASWORKS_TEST_MARK", "x1y")
            .spawn()
            .expect("sleep");
        let pid = i32::try_from(child.id()).expect("a pid");
        assert!(children_by_search(std::process::id()).contains(&pid));
        let deadline = Instant::now() + Duration::from_secs(5);
        while !marked("GASWORKS_TEST_MARK=x1y", None).contains(&pid) {
            assert!(Instant::now() < deadline, "the marked process was not found");
        }
        assert!(!marked("GASWORKS_TEST_MARK=x1", None).contains(&pid));
        kill(&[pid]);
        child.wait().expect("ended");
    }
}
