//! Whole jobs: how long they take to start and end, and what memory they keep.

use crate::handlers::counted;
use crate::session::{PerfMode, Plan, Session, Who};
use anyhow::{Context, Result, ensure};
use gasworks_os::affinity;
use gasworks_os::memory_use::{self, MemoryUse};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The segment of an empty job.
pub const SEGMENT: u64 = 64 << 20;

/// What a launcher tells its ranks: a job started from within one gets its own.
const OF_THE_LAUNCHER: &[&str] = &["PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_SPAWNED"];

/// The program `gasrun` that started this rank, or the one beside this program.
fn launcher() -> Result<PathBuf> {
    let parent = std::os::unix::process::parent_id();
    let of_parent = std::fs::read_link(format!("/proc/{parent}/exe"));
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name == "gasrun");
    let beside = std::env::current_exe().context("looking for this program")?.with_file_name("gasrun");
    of_parent.ok().filter(is_it).or(Some(beside).filter(|path| path.is_file())).context(
        "no gasrun: the parent of this rank is none, and there is none beside this program; start it by gasrun",
    )
}

/// Runs a job and returns how long it took in nanoseconds.
fn job(launcher: &PathBuf, ranks: u32, words: &[&str]) -> Result<f64> {
    let mut command = Command::new(launcher);
    command.args(["-n", &ranks.to_string(), "--timeout", "60", "--"]).args(words);
    OF_THE_LAUNCHER.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let ended = command.output().with_context(|| format!("starting {}", launcher.display()))?;
    let took = begin.elapsed().as_nanos() as f64;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "a job of {ranks} ranks ended with {}: {}", ended.status, said.trim());
    Ok(took)
}

/// The processors that a process may use; all numbers below 1,024 if that is unknown.
fn allowed_to(pid: u32) -> Vec<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let listed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    listed.and_then(gasworks_os::numa::parse_list).unwrap_or_else(|| (0..1024).collect())
}

/// From the start of `gasrun` to its end, by rank 0; the others sleep in a barrier meanwhile.
pub fn startup<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    if session.rank() == 0 {
        let (launcher, own) = (launcher()?, std::env::current_exe().context("looking for this program")?);
        let own = own.to_str().context("the path of this program is not text")?;
        // The jobs may use what gasrun may, not only the processor of this rank.
        let bound = affinity::allowed()?;
        affinity::bind_any(&allowed_to(std::os::unix::process::parent_id()))?;
        let runs = session
            .options
            .iters
            .map_or(session.options.blocks, |n| n.min(u64::from(session.options.blocks)) as u32);
        let mode = M::NAME;
        for (variant, words) in
            [("empty job", &[own, "startup", "--empty", "--mode", mode][..]), ("true", &["true"][..])]
        {
            if session.wants(variant) {
                let plan = Plan { who: Who::First, ..Plan::new("startup", variant, 0) };
                job(&launcher, session.ranks(), words)?;
                let times: Result<Vec<f64>> =
                    (0..runs).map(|_| job(&launcher, session.ranks(), words)).collect();
                session.print(&session.row(&plan, "ns", times?));
            }
        }
        affinity::bind_any(&bound)?;
    }
    Ok(session.agent.barrier()?)
}

type Kind = (&'static str, fn(&MemoryUse) -> u64);

/// The kinds of memory that a process has, in bytes.
const KINDS: &[Kind] = &[
    ("private-dirty", |used| used.private_dirty),
    ("shared-dirty", |used| used.shared_dirty),
    ("private-and-shared-dirty", MemoryUse::private_and_shared_dirty),
    ("page-tables", |used| used.page_tables),
    ("resident", |used| used.resident),
    ("proportional", |used| used.proportional),
];

/// Barriers of the bench `scale`.
const BARRIERS: u32 = 100;

/// What every job of many ranks does, once: barriers, a message from each rank to the next and its reply, and what memory each keeps then.
pub fn scale<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let (agent, lane) = (&session.agent, &session.state.lanes[0]);
    let begin = Instant::now();
    for _ in 0..BARRIERS {
        agent.barrier()?;
    }
    let each = begin.elapsed().as_nanos() as f64 / f64::from(BARRIERS);
    let begin = Instant::now();
    agent.request_short((session.rank() + 1) % session.ranks(), session.handlers.ping, 0)?;
    agent.wait_until(|| counted(&lane.replies) == 1 && counted(&lane.requests) == 1)?;
    agent.barrier()?;
    let all = begin.elapsed().as_nanos() as f64;
    if session.rank() == 0 {
        for (variant, took) in [("barrier", each), ("neighbours", all)] {
            let plan = Plan { who: Who::First, ..Plan::new("scale", variant, 0) };
            session.print(&session.row(&plan, "ns", vec![took]));
        }
    }
    memory(session)
}

/// What each rank's process keeps; when nobody has spoken but at the barrier, if it is measured by itself.
pub fn memory<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let found = session.job.alloc::<u64>(u64::from(session.ranks()) * KINDS.len() as u64)?;
    session.agent.barrier()?;
    let used = memory_use::own()?;
    let mine: Vec<u64> = KINDS.iter().map(|(_, of)| of(&used)).collect();
    session.agent.put(found.on(0).add(u64::from(session.rank()) * KINDS.len() as u64)?, &mine)?;
    session.agent.barrier()?;
    if session.rank() == 0 {
        let all = session.agent.local(found, session.ranks() as usize * KINDS.len())?;
        for (kind, &(variant, _)) in KINDS.iter().enumerate().filter(|(_, kind)| session.wants(kind.0)) {
            let of_rank = |rank: usize| all.get(rank * KINDS.len() + kind) as f64;
            let plan = Plan { who: Who::First, ..Plan::new("memory", variant, 0) };
            let figures = (0..session.ranks() as usize).map(of_rank).collect();
            session.print(&session.row(&plan, "B", figures));
        }
    }
    Ok(session.agent.barrier()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_that_a_process_may_use_are_known() {
        assert_eq!(allowed_to(u32::MAX).len(), 1024, "there is no such process");
        let own = affinity::allowed().expect("this thread has some");
        assert_eq!(allowed_to(std::process::id()), own);
    }
}
