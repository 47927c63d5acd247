//! How much memory there is, and whose limit that is: the machine's, or that of a control group on the way up.

use crate::sys;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// An amount of memory, and who sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many bytes can still be had.
    pub bytes: u64,
    /// Who says so, for a message.
    pub who: String,
}

/// The memory that this process can still get: the least of what the machine has available and what each control
/// group from this process's own up to the root leaves. Page cache that a group can give back counts as free.
pub fn available_memory() -> Limit {
    let unknown = Limit { bytes: u64::MAX, who: "nobody (no limit could be read)".into() };
    machine(Path::new("/proc/meminfo"))
        .into_iter()
        .chain(groups().iter().flat_map(Group::limits))
        .fold(unknown, |least, limit| if limit.bytes < least.bytes { limit } else { least })
}

/// The memory that there is, used or not: the machine's, or what a control group above this process allows in all.
pub fn total_memory() -> Limit {
    let unknown = Limit { bytes: u64::MAX, who: "nobody (no limit could be read)".into() };
    total(Path::new("/proc/meminfo"))
        .into_iter()
        .chain(groups().iter().flat_map(Group::totals))
        .fold(unknown, |least, limit| if limit.bytes < least.bytes { limit } else { least })
}

fn total(meminfo: &Path) -> Option<Limit> {
    let bytes = match field(meminfo, "MemTotal:") {
        Some(kib) => kib.checked_mul(1024)?,
        // A container may be without /proc.
        None => sys::pages(libc::_SC_PHYS_PAGES)?,
    };
    Some(Limit { bytes, who: "the machine (MemTotal)".into() })
}

/// The addresses that a process has on all machines of 64 bits.
const ADDRESSES: u64 = 1 << 47;

/// How many bytes of addresses this process can still map (`RLIMIT_AS`).
pub fn address_space() -> u64 {
    let used = field(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0).saturating_mul(1024);
    soft(Resource::RLIMIT_AS).unwrap_or(ADDRESSES).min(ADDRESSES).saturating_sub(used)
}

/// The largest file that this process may make, memory files among them (`RLIMIT_FSIZE`); `None` without a limit.
pub fn file_size() -> Option<Limit> {
    let who = "the limit on the size of files (ulimit -f)".into();
    soft(Resource::RLIMIT_FSIZE).map(|bytes| Limit { bytes, who })
}

/// A raised limit on open descriptors, until it is dropped.
#[derive(Debug)]
pub struct MoreDescriptors {
    /// The limit before, and how many were open then.
    before: Option<(u64, u64)>,
}

/// Lets this process open so many more descriptors for some time, as far as its hard limit allows. When what it gives is dropped, the
/// program can open as many as before: the limit stays higher by those that were kept.
pub fn more_descriptors(more: u64) -> MoreDescriptors {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return MoreDescriptors { before: None };
    };
    let open = open_descriptors(soft);
    let wanted = open.saturating_add(more).min(hard);
    let raised = wanted > soft && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    MoreDescriptors { before: raised.then_some((soft, open)) }
}

impl Drop for MoreDescriptors {
    fn drop(&mut self) {
        let Some((soft, open)) = self.before else { return };
        if let Ok((now, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let kept = open_descriptors(now).saturating_sub(open);
            // Lower is always allowed; where it is not there is nobody to tell.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, (soft + kept).min(hard), hard);
        }
    }
}

/// How many descriptors this process may have open.
pub(crate) fn descriptors() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

/// How many descriptors are open, of which all are below `limit`.
fn open_descriptors(limit: u64) -> u64 {
    let is_open = |fd: u64| i32::try_from(fd).is_ok_and(crate::inherited::is_open);
    match fs::read_dir("/proc/self/fd") {
        // The folder itself is one of them.
        Ok(open) => (open.count() as u64).saturating_sub(1),
        Err(_) => (0..limit.min(1 << 16)).filter(|&fd| is_open(fd)).count() as u64,
    }
}

fn soft(resource: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != nix::sys::resource::RLIM_INFINITY).then_some(soft)
}

/// How often the kernel has killed a process for lack of memory: in this process's control groups, or on the whole
/// machine where those do not say. Only differences mean something.
pub fn out_of_memory_kills() -> u64 {
    let of_groups: Vec<u64> = groups().iter().filter_map(Group::kills).collect();
    match of_groups.iter().max() {
        Some(&most) => most,
        None => field(Path::new("/proc/vmstat"), "oom_kill").unwrap_or(0),
    }
}

fn machine(meminfo: &Path) -> Option<Limit> {
    let bytes = match field(meminfo, "MemAvailable:") {
        Some(kib) => kib.checked_mul(1024)?,
        // Less than could be had: what the page cache takes counts as taken.
        None => sys::pages(libc::_SC_AVPHYS_PAGES)?,
    };
    Some(Limit { bytes, who: "the machine (MemAvailable)".into() })
}

/// The number after `name` in a file of lines.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok()).flatten()
    })
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// The file with a group's limit.
    fn max(self) -> &'static str {
        match self {
            Version::Two => "memory.max",
            Version::One => "memory.limit_in_bytes",
        }
    }
}

/// The control group of this process in one hierarchy: where that is mounted, and the way down to the group.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    version: Version,
    mount: PathBuf,
    path: PathBuf,
}

fn groups() -> Vec<Group> {
    let (Ok(own), Ok(mounts)) =
        (fs::read_to_string("/proc/self/cgroup"), fs::read_to_string("/proc/self/mountinfo"))
    else {
        return Vec::new();
    };
    find_groups(&own, &mounts)
}

fn find_groups(own: &str, mounts: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let version = match controllers {
            "" => Version::Two,
            c if c.split(',').any(|c| c == "memory") => Version::One,
            _ => continue,
        };
        if let Some((root, mount)) = mounts.lines().find_map(|line| mount_of(line, version)) {
            // Inside a container the mount shows a part of the hierarchy, and the path may be written from the
            // root of the whole, or not at all reachable: then the mount itself is the group.
            let inside = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
            let inside = if mount.join(inside).is_dir() { inside } else { Path::new("") };
            found.push(Group { version, mount, path: inside.to_owned() });
        }
    }
    found
}

/// The root and the mount point that a line of `mountinfo` gives for a hierarchy that has memory limits.
fn mount_of(line: &str, version: Version) -> Option<(PathBuf, PathBuf)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1)?);
    let fits = match version {
        Version::Two => kind == "cgroup2",
        Version::One => kind == "cgroup" && options.split(',').any(|o| o == "memory"),
    };
    fits.then(|| (root.into(), mount.into()))
}

impl Group {
    /// What this group and those above it leave.
    fn limits(&self) -> Vec<Limit> {
        let max = self.version.max();
        let (used, cache) = match self.version {
            Version::Two => ("memory.current", "inactive_file"),
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
        };
        let limit_at = |relative: &Path| {
            let dir = self.mount.join(relative);
            // "max" is no number; version 1 writes a huge one instead.
            let limit = number(&dir.join(max)).filter(|&n| n < 1 << 60)?;
            let used = number(&dir.join(used)).unwrap_or(0);
            let cache = field(&dir.join("memory.stat"), cache).unwrap_or(0);
            let bytes = limit.saturating_sub(used.saturating_sub(cache));
            Some(Limit { bytes, who: format!("the control group /{} ({max})", relative.display()) })
        };
        self.path.ancestors().filter_map(limit_at).collect()
    }

    /// What this group and those above it allow in all.
    fn totals(&self) -> Vec<Limit> {
        let max = self.version.max();
        let limit_at = |relative: &Path| {
            let bytes = number(&self.mount.join(relative).join(max)).filter(|&n| n < 1 << 60)?;
            Some(Limit { bytes, who: format!("the control group /{} ({max})", relative.display()) })
        };
        self.path.ancestors().filter_map(limit_at).collect()
    }

    fn kills(&self) -> Option<u64> {
        let file = match self.version {
            Version::Two => "memory.events",
            Version::One => "memory.oom_control",
        };
        // Version 2 counts a kill in every group above as well; version 1 in the group only.
        let counts: Vec<u64> =
            self.path.ancestors().filter_map(|p| field(&self.mount.join(p).join(file), "oom_kill")).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_something() {
        let limit = available_memory();
        assert!(limit.bytes > 0 && limit.bytes < 1 << 50, "{limit:?}");
        let total = total_memory();
        assert!(total.bytes >= limit.bytes && total.bytes < 1 << 50, "{total:?} {limit:?}");
    }

    #[test]
    fn what_the_machine_has_is_what_its_file_says() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(&file, "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  400 kB\n").expect("written");
        let bytes = |limit: Option<Limit>| limit.map(|limit| limit.bytes);
        assert_eq!(
            (bytes(total(file.path())), bytes(machine(file.path()))),
            (Some(1_024_000), Some(409_600))
        );
        // Where there is no such file the C library is asked.
        fs::write(&file, "MemTotal:  many kB\n").expect("written");
        let (all, free) = (bytes(total(file.path())), bytes(machine(file.path())));
        let real = field(Path::new("/proc/meminfo"), "MemTotal:").map(|kib| kib * 1024);
        assert!(all == real && free > Some(0) && free < all, "{all:?} {free:?} {real:?}");
    }

    /// A limit is a process's own, so this one asks another.
    #[test]
    fn limits_of_the_process_are_seen() {
        const SPACE: u64 = 4_096_000_000;
        if std::env::args().any(|arg| arg == "limited") {
            // Not before it starts: a sanitizer wants more.
            let limit = |resource, bytes| {
                let (_, hard) = getrlimit(resource).expect("a limit");
                setrlimit(resource, bytes, hard).expect("a limit")
            };
            limit(Resource::RLIMIT_FSIZE, 8 << 20);
            let before = getrlimit(Resource::RLIMIT_AS).expect("a limit").0;
            limit(Resource::RLIMIT_AS, SPACE);
            let (space, file) = (address_space(), file_size().expect("limited"));
            limit(Resource::RLIMIT_AS, before);
            assert!(space < SPACE, "{space:?}");
            assert!(file.who.contains("ulimit -f"));
            assert_eq!(file.bytes, 8 << 20);
            return;
        }
        let program = std::env::current_exe().expect("this program");
        let mut child = std::process::Command::new(program);
        let output = child.args(["limits_of_the_process_are_seen", "limited", "--test-threads=1"]).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn the_least_of_the_tree_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(file, text).expect("written");
        };
        write("memory.max", "max\n");
        write("a/memory.max", "1000000\n");
        write("a/memory.current", "600000\n");
        write("a/memory.stat", "anon 1\ninactive_file 100000\n");
        write("a/memory.events", "oom 3\noom_kill 2\n");
        write("a/b/memory.max", "900000\n");
        write("a/b/memory.current", "1000\n");
        let mounts =
            format!("30 23 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", dir.path().display());
        let groups = find_groups("0::/a/b\n", &mounts);
        let mut limits = groups[0].limits();
        limits.sort_by_key(|l| l.bytes);
        assert_eq!(limits[0], Limit { bytes: 500_000, who: "the control group /a (memory.max)".into() });
        assert_eq!(limits[1].bytes, 899_000);
        assert_eq!(limits.len(), 2);
        assert_eq!(groups[0].kills(), Some(2));
        let least = groups[0].totals().into_iter().map(|limit| limit.bytes).min();
        assert_eq!(least, Some(900_000));
    }

    #[test]
    fn version_one_and_containers() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("memory.limit_in_bytes"), "5000\n").expect("written");
        fs::write(dir.path().join("memory.usage_in_bytes"), "6000\n").expect("written");
        let control = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n";
        fs::write(dir.path().join("memory.oom_control"), control).expect("written");
        let mounts = format!(
            "31 25 0:27 /docker/abc {} rw - cgroup cgroup rw,cpu,memory\n32 25 0:28 / /nowhere rw - tmpfs none rw\n",
            dir.path().display()
        );
        let groups = find_groups("5:cpu,memory:/docker/abc/inner\n4:pids:/x\nnonsense\n", &mounts);
        assert_eq!(groups.len(), 1);
        let limits = groups[0].limits();
        assert_eq!(limits[0], Limit { bytes: 0, who: "the control group / (memory.limit_in_bytes)".into() });
        assert_eq!(groups[0].kills(), Some(4));
    }
}
