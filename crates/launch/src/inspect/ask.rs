//! `gasrun --inspect JOB`: asks the `gasrun` of another job.

use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use gasworks_os::process;
use gasworks_os::unix::{self, Stream};
use gasworks_sock::{Class, Set};

/// How long an answer may take: that gasrun's own patience and what it takes to write it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints how the ranks of `job` stand, a name or the process of its `gasrun`.
pub(crate) fn ask(job: &str) -> Result<()> {
    let names = running();
    let is_meant = |name: &&String| {
        *name == job || name.split('-').nth(1).is_some_and(|pid| !pid.is_empty() && pid == job)
    };
    let Some(stream) = names.iter().find(is_meant).and_then(|name| connect(name)) else {
        let own: Vec<&String> = names.iter().filter(|name| connect(name).is_some()).collect();
        let list = own.iter().map(|name| format!("\n  {name}")).collect::<String>();
        match own.len() {
            0 => bail!("inspect {job:?}: you run no job on this machine"),
            _ => bail!("inspect {job:?}: you run no such job on this machine, but{list}"),
        }
    };
    let deadline = Instant::now() + PATIENCE;
    stream.send_fds(b"ask\n", &[], deadline)?;
    let answer = read(stream, deadline).context("wait for the answer of that gasrun")?;
    let mut out = io::stdout();
    match out.write_all(&answer).and_then(|()| out.flush()) {
        // Whoever closes the pipe has read enough.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("write standard output"),
        _ => Ok(()),
    }
}

/// The names of all jobs of this machine, whoever runs them.
fn running() -> Vec<String> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let begin = format!("@{}", gasworks::inspect::address(""));
    let names = sockets.lines().filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix(&begin));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    // A connection has the name of its listener.
    names.dedup();
    names
}

/// A connection to the `gasrun` of a job, if that is this user's.
fn connect(name: &str) -> Option<Stream> {
    let stream = unix::connect(&gasworks::inspect::address(name), Instant::now()).ok()?;
    let user = stream.peer().ok()?.uid;
    (user == process::user() || process::user() == 0).then_some(stream)
}

fn read(stream: Stream, deadline: Instant) -> Result<Vec<u8>> {
    let (set, mut answer, mut buffer) = (Set::new()?, Vec::new(), vec![0; 64 << 10]);
    let sock = set.adopt(0, stream.into_fd())?;
    loop {
        let most = buffer.len();
        sock.post_read(buffer, 1, most, None)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(mut event) = set.wait(Some(left))? else {
            bail!("nothing came for {} s", PATIENCE.as_secs());
        };
        answer.extend_from_slice(event.data());
        match event.error.take() {
            None => buffer = event.take_buffer(),
            Some(e) if e.class() == Class::ConnClosed => return Ok(answer),
            Some(e) => return Err(e.into()),
        }
    }
}
