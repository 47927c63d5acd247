//! Endpoints of several processes, of which some die: this program starts itself for each.
//!
//! - `killed/POINT`: a process dies at a kill point while it talks with this one.
//! - `churn`: processes connect and disconnect, and are killed at random.
//! - `hostile`: a process writes nonsense to all that it may map, while another one works.

mod churn;
#[cfg(debug_assertions)]
mod deaths;
mod hostile;
mod raw;
mod talker;

use gasworks_cci::directory::{self, Liveness};
use gasworks_cci::endpoint::{Endpoint, EndpointConfig};
use gasworks_testkit::Case;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::RwLock;
use std::time::{Duration, Instant};

/// Held alone by tests that count what this process holds: where tests are threads of one process, others do not run meanwhile.
static COUNTED: RwLock<()> = RwLock::new(());

/// How long anything may take that is expected to happen.
const LONG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["talk", base, uri] => talker::live(base, uri),
        ["come-and-go", base, uri, seed] => churn::live(base, uri, seed.parse().expect("a number")),
        ["write-nonsense", base, uri, seed] => hostile::live(base, uri, seed.parse().expect("a number")),
        _ => gasworks_testkit::cases::main("cci/processes", table()),
    }
}

fn table() -> Vec<Case> {
    let mut table = vec![
        Case::check("talk", talker::nobody_dies),
        Case::check("churn", churn::check),
        Case::check("hostile/polling", || hostile::check(false)),
        Case::check("hostile/asleep", || hostile::check(true)),
    ];
    #[cfg(debug_assertions)]
    table.extend(deaths::cases());
    table
}

/// Another process, which ends with this one at the latest.
struct Process(Child);

impl Process {
    fn start(words: &[&str], kill_at: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        command.env_remove("PMI_RANK").env_remove("GASWORKS_KILL_AT");
        kill_at.map(|point| command.env("GASWORKS_KILL_AT", point));
        Self(command.spawn().expect("a process"))
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended needs no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cci").tempdir().expect("a directory")
}

fn config(base: &str) -> EndpointConfig {
    EndpointConfig { base: base.into(), wakes: true, ..EndpointConfig::default() }
}

/// Sleeps until one of these endpoints has something to do, or a moment is over.
fn sleep(ends: &[&Endpoint]) {
    let mut fds: Vec<_> = ends.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
    let _ = poll(&mut fds, PollTimeout::from(5u8));
}

/// Goes on until `is_over`.
fn until(what: &str, mut is_over: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_over() {
        assert!(start.elapsed() < LONG, "{what}: not within {LONG:?}");
    }
}

/// Checks that nothing is left in a base directory but what belongs to so many endpoints of this process, which are alive.
fn nothing_is_left(base: &str, own: usize) {
    directory::endpoints(base, true).expect("it can be read");
    let found = directory::endpoints(base, true).expect("it can be read");
    let is_own =
        |found: &directory::Found| found.liveness == Liveness::Alive && found.uri.pid() == std::process::id();
    assert!(found.len() == own && found.iter().all(is_own), "{found:?}");
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    assert_eq!(names(Path::new(base)), [std::process::id().to_string().as_str()]);
    let of_process = Path::new(base).join(std::process::id().to_string());
    assert_eq!(names(&of_process).len(), own);
}

/// The descriptors of this process, and its mappings of endpoints' memory.
fn held() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("the descriptors").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    (descriptors, maps.lines().filter(|line| line.contains("gasworks-cci")).count())
}

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.word() >> 33) % end
    }
}
