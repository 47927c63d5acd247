//! What a rank finds when it joins a job through [`gasworks_bootstrap`]: who it is, and that whatever the ranks tell each
//! other arrives as it was sent. The program `gasworks-whereabouts` is such a rank, for any launcher to start.

use gasworks_bootstrap::{Bootstrap, BootstrapError, connect};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// Lengths of values, around where they are cut into pieces.
const SIZES: [usize; 6] = [0, 1, 511, 512, 513, 5000];

/// How long the last rank lets the others wait.
const LATE: Duration = Duration::from_millis(60);

/// How long the ranks of a host wait for each other.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a rank that waits for its end does so.
const FOR_EVER: Duration = Duration::from_secs(60);

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All finalize.
    Well,
    /// This rank is killed, the others wait for it.
    Killed(u32),
    /// This rank aborts the job with this code, once this file is there.
    Aborted(u32, i32, Option<PathBuf>),
    /// This rank ends with code 0, having said nothing, and the others wait for it.
    Deserted(u32),
    /// All end the job with code 0, but for these ranks, which are ended when their time is up.
    Lingering(Vec<u32>),
    /// All stay until somebody ends them: every second one waits for the launcher, the others do not hear of it.
    Awaited,
}

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhereaboutsError {
    /// The launcher or the connection to it failed.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// A value came otherwise than it was sent.
    #[error("rank {rank} gave {wanted} bytes as {key}, and {found} came{at}")]
    Value {
        /// Who gave it.
        rank: u32,
        /// Under which key.
        key: String,
        /// How many bytes.
        wanted: usize,
        /// How many came.
        found: usize,
        /// Where the first wrong one is, in words, if they are as many.
        at: String,
    },
    /// The map of hosts and the ranks that this one found on its own do not agree.
    #[error("rank {rank} has found the ranks {found:?} on its host; the map of hosts says {mapped:?}")]
    Map {
        /// This rank.
        rank: u32,
        /// Whom it has attached to.
        found: Vec<u32>,
        /// What the map says.
        mapped: Vec<u32>,
    },
    /// A rank left before all had come.
    #[error("a rank left the {what} {early:?} before the last came")]
    NotHeld {
        /// What was to hold it.
        what: &'static str,
        /// By how much.
        early: Duration,
    },
    /// The job went on without the rank that it lost.
    #[error("rank {0} is gone, and the others met without it")]
    Lost(u32),
    /// Nobody has ended the job.
    #[error("nobody has ended this rank within {FOR_EVER:?}")]
    Left,
    /// Memory could not be made or shared.
    #[error(transparent)]
    Memory(#[from] gasworks_os::OsError),
    /// The system refused something.
    #[error("{during}: {cause}")]
    Io {
        /// What was being done.
        during: &'static str,
        /// The cause.
        cause: std::io::Error,
    },
}

/// `size` bytes that tell ranks and lengths apart; every value of a byte is among them if they are enough.
fn bytes(rank: u32, size: usize) -> Vec<u8> {
    (0..size).map(|i| (i.wrapping_mul(7) ^ (rank as usize).wrapping_mul(31) ^ size) as u8).collect()
}

fn check(rank: u32, key: &str, wanted: &[u8], found: &[u8]) -> Result<(), WhereaboutsError> {
    if wanted == found {
        return Ok(());
    }
    let differs = wanted.iter().zip(found).position(|(a, b)| a != b).filter(|_| wanted.len() == found.len());
    let at = differs.map_or(String::new(), |at| format!(", the first wrong one at {at}"));
    Err(WhereaboutsError::Value { rank, key: key.into(), wanted: wanted.len(), found: found.len(), at })
}

/// Values of all sizes from everybody to everybody, and from everybody to the next but one.
fn talk(job: &dyn Bootstrap) -> Result<(), WhereaboutsError> {
    let (rank, ranks) = (job.rank(), job.size());
    for size in SIZES {
        let label = format!("all-{size}");
        let all = job.exchange(&label, &bytes(rank, size))?;
        let found = all.iter().count();
        if found != ranks as usize {
            return Err(WhereaboutsError::Value {
                rank: ranks,
                key: label,
                wanted: ranks as usize,
                found,
                at: " (values of ranks)".into(),
            });
        }
        for (other, found) in (0..).zip(all.iter()) {
            check(other, &label, &bytes(other, size), found)?;
        }
    }
    let key = |size: usize| format!("value-{size}");
    for size in SIZES {
        job.put(&key(size), &bytes(rank, size + 1))?;
    }
    job.fence()?;
    let other = (rank + 2) % ranks;
    for size in SIZES {
        check(other, &key(size), &bytes(other, size + 1), &job.get(other, &key(size))?)?;
    }
    Ok(job.barrier()?)
}

/// Nobody leaves a fence or a barrier before the last has come. The clocks of the hosts must agree.
fn hold(job: &dyn Bootstrap) -> Result<(), WhereaboutsError> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    for what in ["fence", "barrier"] {
        if job.rank() == job.size() - 1 {
            std::thread::sleep(LATE);
        }
        let came = now();
        if what == "fence" {
            job.fence()?
        } else {
            job.barrier()?
        }
        let times = job.exchange(what, &[came.to_le_bytes(), now().to_le_bytes()].concat())?;
        let read =
            |bytes: Option<&[u8]>| bytes.and_then(|b| b.try_into().ok()).map_or(0, u128::from_le_bytes);
        let last = times.iter().map(|both| read(both.get(..16))).max().unwrap_or(0);
        let first = times.iter().map(|both| read(both.get(16..))).min().unwrap_or(0);
        let early = Duration::from_nanos_u128(last.saturating_sub(first));
        if early > LATE / 2 {
            return Err(WhereaboutsError::NotHeld { what, early });
        }
    }
    Ok(())
}

fn io(during: &'static str) -> impl Fn(std::io::Error) -> WhereaboutsError {
    move |cause| WhereaboutsError::Io { during, cause }
}

/// The ranks with which this one shares memory: each has left its mark in a file that the leader of their host made.
fn companions(job: &dyn Bootstrap) -> Result<Vec<u32>, WhereaboutsError> {
    let (host, me, bytes) = (job.host()?, job.rank(), job.size() as usize);
    let mine = host.leads().then(|| gasworks_os::memfd::create("whereabouts", bytes)).transpose()?;
    let mine = mine.map(|memory| memory.into_fd());
    let fds: Vec<_> = mine.iter().map(OwnedFd::as_fd).collect();
    let given = host.all_gather(&[], &fds, Some(PATIENCE))?;
    let fd = given.into_iter().flat_map(|parcel| parcel.fds).next();
    let nothing = || io("taking the leader's memory")(std::io::ErrorKind::NotFound.into());
    let memory = File::from(fd.ok_or_else(nothing)?);
    memory.write_all_at(&[1], u64::from(me)).map_err(io("marking the leader's memory"))?;
    host.all_gather(&[], &[], Some(PATIENCE))?;
    let mut marks = vec![0; bytes];
    memory.read_exact_at(&mut marks, 0).map_err(io("reading the leader's memory"))?;
    let found: Vec<u32> = (0..).zip(&marks).filter(|(_, mark)| **mark == 1).map(|(rank, _)| rank).collect();
    let hosts = job.hosts()?;
    let mapped: Vec<u32> = hosts.ranks(hosts.leader(me)).collect();
    if found != mapped || found != host.ranks() {
        return Err(WhereaboutsError::Map { rank: me, found, mapped });
    }
    Ok(found)
}

/// Joins a job and, when that is over, another; talks with all, prints `rank R of N on HOST beside A,B: passed`, A and B
/// being the ranks with which it shares memory, itself among them, and ends the second so.
pub fn run(end: End) -> Result<(), WhereaboutsError> {
    let first = connect()?;
    talk(&*first)?;
    first.finalize()?;
    let job = connect()?;
    talk(&*job)?;
    hold(&*job)?;
    let beside: Vec<_> = companions(&*job)?.iter().map(u32::to_string).collect();
    let host =
        std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(io("reading this host's name"))?;
    println!("rank {} of {} on {} beside {}: passed", job.rank(), job.size(), host.trim(), beside.join(","));
    // Whoever dies below has been heard before.
    job.barrier()?;
    job.started();
    match &end {
        End::Well => return Ok(job.finalize()?),
        End::Killed(rank) if *rank == job.rank() => {
            let killed = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
            killed.map_err(|e| io("killing this rank")(e.into()))?;
            std::thread::sleep(FOR_EVER);
        }
        End::Aborted(rank, code, when) if *rank == job.rank() => {
            while when.as_ref().is_some_and(|file| !file.exists()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            job.abort(*code, "asked to")
        }
        End::Deserted(rank) if *rank == job.rank() => gasworks_os::process::exit_now(0),
        End::Lingering(ranks) if !ranks.contains(&job.rank()) => gasworks_bootstrap::exit(0),
        End::Awaited if job.rank() % 2 == 1 => job.barrier()?,
        End::Aborted(..) | End::Lingering(_) | End::Awaited => std::thread::sleep(FOR_EVER),
        End::Killed(_) | End::Deserted(_) => job.barrier()?,
    }
    match end {
        End::Well => Ok(()),
        End::Awaited => Err(WhereaboutsError::Left),
        End::Killed(rank) | End::Aborted(rank, ..) | End::Deserted(rank) => Err(WhereaboutsError::Lost(rank)),
        End::Lingering(ranks) => Err(WhereaboutsError::Lost(ranks.into_iter().next().unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_one_is_served_too() {
        let alone = gasworks_bootstrap::Single::new().expect("a job of one");
        talk(&alone).expect("values come back");
        hold(&alone).expect("nobody is late");
        assert_eq!(companions(&alone).expect("memory"), [0]);
    }

    #[test]
    fn values_tell_ranks_and_sizes_apart_and_hold_every_byte() {
        let long = bytes(3, 5000);
        assert!((0..=255u8).all(|b| long.contains(&b)));
        assert!(bytes(0, 513) != bytes(1, 513) && bytes(0, 512)[..] != bytes(0, 513)[..512]);
    }

    #[test]
    fn a_wrong_value_is_told() {
        let said =
            |found: &[u8]| check(1, "k", b"abc", found).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(said(b"abc"), "");
        assert_eq!(said(b"abd"), "rank 1 gave 3 bytes as k, and 3 came, the first wrong one at 2");
        assert_eq!(said(b"ab"), "rank 1 gave 3 bytes as k, and 2 came");
    }
}
