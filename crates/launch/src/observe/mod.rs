//! Watching a job: what its ranks count and record, gathered at the end.
//!
//! Each rank records in a memory file that is made here, so whatever it did until its end is there, however it ended.
//!
//! On several hosts each agent does that, and sends what is in the files up the tree when its ranks have ended.
//!
//! - `stats`: the counts, as tables or JSON; `trace`: the events of all ranks on one timeline.
//! - `pieces`: recordings on their way; `clock`: how the clocks of hosts go with each other.

mod clock;
mod pieces;
mod stats;
mod trace;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gasworks_core::observe::{self, Recording, ranks};
use gasworks_os::memfd::MemFd;

use crate::options::Options;
use crate::remote::plan::Plan;
use crate::report;

pub(crate) use clock::Clock;
pub(crate) use pieces::Piece;
use pieces::{Receiver, Sender};

/// What is wanted of a job's recordings, and the files that the ranks here record in.
#[derive(Debug)]
pub(crate) struct Observation {
    files: BTreeMap<u32, MemFd>,
    /// What has come from other hosts.
    others: Receiver,
    /// How the clocks of other hosts go, by node.
    clocks: BTreeMap<u32, Clock>,
    /// Whether tables are printed.
    table: bool,
    stats: Option<(PathBuf, File)>,
    trace: Option<(PathBuf, File)>,
}

/// What is known of a rank's recording besides what it holds.
#[derive(Debug, Default)]
struct Origin {
    /// The rank's host, in a job over several.
    host: Option<String>,
    /// How that one's clock goes, if that is known.
    clock: Option<Clock>,
    /// Whether the recording is whole.
    is_whole: bool,
}

/// How many events each rank is to keep; `None`: the options do not ask for anything to be recorded.
pub(crate) fn events(options: &Options) -> Result<Option<u32>> {
    Ok(match (&options.trace, &options.stats) {
        (Some(_), _) => report::TRACE_EVENTS.number()?.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        (None, Some(_)) => Some(0),
        (None, None) => None,
    })
}

impl Observation {
    /// Makes what the options ask for, for the ranks that are `here`; `None` where they ask for nothing. Files that cannot be written
    /// are found now.
    pub(crate) fn new(options: &Options, here: &[u32]) -> Result<Option<Self>> {
        let table = options.stats == Some(None);
        let stats = options.stats.as_ref().and_then(Option::as_deref).map(open).transpose()?;
        let trace = options.trace.as_deref().map(open).transpose()?;
        let Some(events) = events(options)? else { return Ok(None) };
        Ok(Some(Self { table, stats, trace, ..Self::of_agent(events, here)? }))
    }

    /// For the ranks that are `here`, where what they record goes up the tree.
    pub(crate) fn of_agent(events: u32, here: &[u32]) -> Result<Self> {
        let create = |&rank: &u32| Ok((rank, observe::create(events)?));
        let files = here.iter().map(create).collect::<Result<_>>()?;
        let others = Receiver::new(events);
        Ok(Self { files, others, clocks: BTreeMap::new(), table: false, stats: None, trace: None })
    }

    /// Where a rank records.
    pub(crate) fn file(&self, rank: u32) -> Option<&MemFd> {
        self.files.get(&rank)
    }

    /// What the ranks here have recorded, all of which have ended.
    pub(crate) fn sender(&self) -> Result<Sender> {
        Sender::new(&self.files)
    }

    /// A piece of what a rank elsewhere has recorded has come.
    pub(crate) fn take(&mut self, piece: Piece) -> Result<(), String> {
        self.others.take(piece)
    }

    /// How the clock of a node goes.
    pub(crate) fn clock(&mut self, node: u32, clock: Clock) {
        self.clocks.insert(node, clock);
    }

    /// Reads what the ranks have recorded, all of which have ended, here or on the hosts of a plan, and writes what is wanted of it. What
    /// is to be printed is added to `said`, a line each.
    pub(crate) fn finish(mut self, plan: Option<&Plan>, said: &mut Vec<String>) -> Result<()> {
        let (recordings, origins) = self.gather(plan)?;
        let lost = lost(&origins);
        if !lost.is_empty() {
            said.push(format!("gasrun: what {} recorded is lost, or a part of it", ranks(&lost)));
        } else if recordings.iter().all(|rank| rank.pid == 0) {
            said.push("gasrun: nothing was recorded: no rank opened a job of this library".into());
        }
        if let Some((path, file)) = self.stats {
            write(&path, file, |out| stats::json(&recordings, &origins, out))?;
        }
        if let Some((path, file)) = self.trace {
            write(&path, file, |out| trace::write(&recordings, &origins, out))?;
            for (rank, lost) in recordings.iter().enumerate().filter(|(_, rank)| rank.overwritten > 0) {
                let (lost, name) = (lost.overwritten, report::TRACE_EVENTS.name);
                said.push(format!("gasrun: the trace lacks the first {lost} events of rank {rank} ({name})"));
            }
        }
        if self.table {
            said.extend(stats::table(&recordings).lines().map(str::to_owned));
        }
        Ok(())
    }

    fn gather(&mut self, plan: Option<&Plan>) -> Result<(Vec<Recording>, Vec<Origin>)> {
        let Some(plan) = plan else {
            let read = |file| Recording::read(file).context("read what the ranks recorded");
            let recordings: Vec<Recording> = self.files.values().map(read).collect::<Result<_>>()?;
            let here = || Origin { host: None, clock: Some(Clock::default()), is_whole: true };
            let origins = recordings.iter().map(|_| here()).collect();
            return Ok((recordings, origins));
        };
        let mut all: BTreeMap<u32, (Recording, Origin)> = BTreeMap::new();
        for (node, host) in (1..).zip(&plan.hosts) {
            for &rank in &host.ranks {
                let (recording, is_whole) = self.others.of(rank);
                let (host, clock) = (Some(host.name.clone()), self.clocks.get(&node).copied());
                all.insert(rank, (recording, Origin { host, clock, is_whole }));
            }
        }
        Ok(all.into_values().unzip())
    }
}

/// The ranks whose recordings are not whole.
fn lost(origins: &[Origin]) -> Vec<u32> {
    (0..).zip(origins).filter(|(_, origin)| !origin.is_whole).map(|(rank, _)| rank).collect()
}

fn open(path: &Path) -> Result<(PathBuf, File)> {
    let file = File::create(path).with_context(|| format!("write {}", path.display()))?;
    Ok((path.to_owned(), file))
}

fn write(path: &Path, file: File, body: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(file);
    body(&mut out).and_then(|()| out.flush()).with_context(|| format!("write {}", path.display()))
}
