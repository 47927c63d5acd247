//! Watching a job: what its ranks count and record, gathered at the end.
//!
//! Each rank records in a memory file that is made here, so whatever it did until its end is there, however it ended.
//!
//! - `stats`: the counts, as tables or JSON; `trace`: the events of all ranks on one timeline.

mod stats;
mod trace;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gasworks_core::observe::{self, Recording};
use gasworks_os::memfd::MemFd;

use crate::options::Options;
use crate::report;

/// What is wanted of a job's recordings, and the files that the ranks record in.
#[derive(Debug)]
pub(crate) struct Observation {
    files: Vec<MemFd>,
    /// Whether tables are printed.
    table: bool,
    stats: Option<(PathBuf, File)>,
    trace: Option<(PathBuf, File)>,
}

impl Observation {
    /// Makes what the options ask for; `None` where they ask for nothing. Files that cannot be written are found now.
    pub(crate) fn new(options: &Options) -> Result<Option<Self>> {
        let table = options.stats == Some(None);
        let stats = options.stats.as_ref().and_then(Option::as_deref).map(open).transpose()?;
        let trace = options.trace.as_deref().map(open).transpose()?;
        let events = match &trace {
            Some(_) => report::TRACE_EVENTS.number()?.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            None => 0,
        };
        if !table && stats.is_none() && trace.is_none() {
            return Ok(None);
        }
        let files =
            (0..options.ranks).map(|_| observe::create(events)).collect::<gasworks_os::Result<_>>()?;
        Ok(Some(Self { files, table, stats, trace }))
    }

    /// Where a rank records.
    pub(crate) fn file(&self, rank: u32) -> Option<&MemFd> {
        self.files.get(rank as usize)
    }

    /// Reads what the ranks have recorded, all of which have ended, and writes what is wanted of it. What is to be printed
    /// is added to `said`, a line each.
    pub(crate) fn finish(self, said: &mut Vec<String>) -> Result<()> {
        let read = |file| Recording::read(file).context("read what the ranks recorded");
        let ranks: Vec<Recording> = self.files.iter().map(read).collect::<Result<_>>()?;
        if ranks.iter().all(|rank| rank.pid == 0) {
            said.push("gasrun: nothing was recorded: no rank opened a job of this library".into());
        }
        if let Some((path, file)) = self.stats {
            write(&path, file, |out| stats::json(&ranks, out))?;
        }
        if let Some((path, file)) = self.trace {
            write(&path, file, |out| trace::write(&ranks, out))?;
            for (rank, lost) in ranks.iter().enumerate().filter(|(_, rank)| rank.overwritten > 0) {
                let (lost, name) = (lost.overwritten, report::TRACE_EVENTS.name);
                said.push(format!("gasrun: the trace lacks the first {lost} events of rank {rank} ({name})"));
            }
        }
        if self.table {
            said.extend(stats::table(&ranks).lines().map(str::to_owned));
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<(PathBuf, File)> {
    let file = File::create(path).with_context(|| format!("write {}", path.display()))?;
    Ok((path.to_owned(), file))
}

fn write(path: &Path, file: File, body: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(file);
    body(&mut out).and_then(|()| out.flush()).with_context(|| format!("write {}", path.display()))
}
