//! Memory for regions that are created while the job runs: further parts of the file that the ranks share.
//!
//! The file is longer than what is laid out in the beginning, by room that takes neither memory nor addresses. All ranks create and withdraw
//! the same regions in the same order, so all know which part of that room is free, and nobody asks anybody. Each maps the part of all
//! ranks in one piece; so nothing is passed from rank to rank, and nothing is left when one of them is killed.
//!
//! # Invariants
//! - regions.1: a mapping that was made here stays until the [`RegionFile`] is dropped; one whose region is unmapped is detached from the
//!   file, and moves to those that are kept. Nobody has references to its bytes.

use crate::error::PshmError;
use crate::grow::{fits, promise};
use crate::layout::in_pages;
use crate::memory::Pages;
use crate::region::Host;
use gasworks_memory::{Asked, MemoryError, Peer, PeerFlags, RegionId, RegionMemory};
use gasworks_os::descriptor::Descriptor;
use gasworks_os::jobs::Guard;
use gasworks_os::memfd::{self, Mapping};
use gasworks_os::populate::populate;
use gasworks_os::{faults, huge};
use gasworks_sync::{Lock, Mode, Par, RawSlice, kill_point};
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Where the memory of regions lies: the end of the file that the ranks share.
#[derive(Debug)]
pub struct RegionFile {
    host: Arc<Host>,
    file: Arc<Descriptor>,
    pages: Pages,
    /// Whether regions are backed with memory when they are created.
    populated: bool,
    /// The part of the file that is for regions.
    room: Range<usize>,
    state: <Par as Mode>::Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By where they begin in the file.
    used: BTreeMap<usize, Used>,
    /// Mapped where regions were; kept for whoever still has bytes of them.
    detached: Vec<Mapping>,
}

/// A part of the file that a region of all ranks takes.
#[derive(Debug)]
struct Used {
    id: RegionId,
    end: usize,
    /// This rank's own part.
    own: Range<usize>,
    /// All of it, mapped, under a name for the report of a fault.
    mapped: Option<(Guard, Mapping)>,
}

impl RegionFile {
    /// Of ranks whose file has room from `start` on.
    pub(crate) fn new(
        host: Arc<Host>,
        (pages, file): (Pages, Arc<Descriptor>),
        start: usize,
        populated: bool,
    ) -> Result<Self, PshmError> {
        let end = usize::try_from(memfd::size_of_file(file.as_fd())?).unwrap_or(usize::MAX);
        Ok(Self { host, file, pages, populated, room: start..end, state: Lock::new(State::default()) })
    }

    /// Where each rank's region begins, of those that share the file, and how many bytes they take; `None` if no file is so long.
    fn lay_out(&self, asked: &[Asked]) -> Option<(Vec<usize>, usize)> {
        let mut at = 0usize;
        let starts = self.host.ranks.iter().map(|rank| {
            let start = at;
            let len = usize::try_from(asked.get(rank as usize)?.len).ok()?;
            at = at.checked_add(len)?.checked_next_multiple_of(self.host.page)?;
            Some(start)
        });
        Some((starts.collect::<Option<_>>()?, at))
    }

    /// The first part of the room that is free and so long.
    fn find(&self, state: &State, len: usize) -> Option<usize> {
        let mut free = self.room.start;
        for (&start, used) in &state.used {
            if start - free >= len {
                break;
            }
            free = used.end;
        }
        (self.room.end.checked_sub(free)? >= len).then_some(free)
    }

    /// Maps a part of the file, of which this rank's own part gets memory; the cause where that fails.
    fn map(
        &self,
        id: RegionId,
        start: usize,
        len: usize,
        own: &Range<usize>,
    ) -> Result<(Guard, Mapping), String> {
        fits(self.pages, len as u64)?;
        let said = |error: gasworks_os::OsError| error.to_string();
        let mapping = memfd::map_hidden(self.file.as_fd(), start, len).map_err(said)?;
        mapping.show(0, len).map_err(said)?;
        let inside = own.start - start..own.end - start;
        match self.pages {
            Pages::Huge(_) if !own.is_empty() => promise(&self.file, own.clone(), self.host.page)?,
            Pages::Transparent if !own.is_empty() => huge::advise(&mapping, inside.clone()).map_err(said)?,
            _ => {}
        }
        if let Some(bytes) = mapping.bytes().slice(inside.start, inside.len()).filter(|_| self.populated) {
            populate(bytes, |_| ()).map_err(said)?;
        }
        let name = faults::name_range(mapping.raw(), &format!("region {id}")).map_err(said)?;
        Ok((name, mapping))
    }
}

#[cfg(test)]
impl RegionFile {
    /// How many bytes of the file each region takes.
    pub(crate) fn parts(&self) -> BTreeMap<RegionId, usize> {
        self.state.with(|state| state.used.iter().map(|(start, used)| (used.id, used.end - start)).collect())
    }

    /// Where each region begins in the file.
    pub(crate) fn starts(&self) -> BTreeMap<RegionId, usize> {
        self.state.with(|state| state.used.iter().map(|(&start, used)| (used.id, start)).collect())
    }

    /// How many units of memory the whole file takes.
    pub(crate) fn memory(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let file = self.file.as_fd().try_clone_to_owned().expect("a descriptor");
        std::fs::File::from(file).metadata().expect("a file").blocks()
    }
}

// SAFETY: table.1 of gasworks_memory: what `create` returns lies in mappings, which are readable and writable and stay until this value is
// dropped (regions.1).
unsafe impl RegionMemory for RegionFile {
    fn create(&self, id: RegionId, asked: &[Asked]) -> Result<Vec<Peer>, MemoryError> {
        let refused = |cause: String| MemoryError::CannotCreate { cause };
        let (starts, len) = self.lay_out(asked).ok_or_else(|| refused("no file is as long".into()))?;
        let me = self.host.ranks.number(self.host.me);
        let all = self.state.with(|state| {
            if len == 0 {
                return Ok(RawSlice::EMPTY);
            }
            let start = self.find(state, len).ok_or_else(|| {
                refused(format!("the ranks' file has no {len} bytes in one piece for it; see ulimit -f"))
            })?;
            let own = starts.get(me).zip(asked.get(self.host.me as usize));
            let own = own.map_or(start..start, |(at, asked)| {
                start + at..start + at + in_pages(asked.len, self.host.page)
            });
            let mapped = self.map(id, start, len, &own).map_err(|cause| {
                // What has got memory already gives it back; the cause is what there is to say.
                if !own.is_empty() {
                    let _ = memfd::punch(self.file.as_fd(), own.start, own.end);
                }
                refused(cause)
            })?;
            kill_point!("pshm.region.mapped");
            let raw = mapped.1.raw();
            state.used.insert(start, Used { id, end: start + len, own, mapped: Some(mapped) });
            Ok(raw)
        })?;
        let peer = |(rank, asked): (u32, &Asked)| {
            let here = self.host.of(rank).and_then(|_| starts.get(self.host.ranks.number(rank)));
            let mapped = here.and_then(|&at| all.slice(at, in_pages(asked.len, self.host.page)));
            let mut flags = PeerFlags::empty();
            flags.set(PeerFlags::SELF, rank == self.host.me);
            flags.set(PeerFlags::MAPPED, mapped.is_some());
            Peer {
                mapped: mapped.unwrap_or(RawSlice::EMPTY),
                len: asked.len,
                remote_base: 0,
                key: Vec::new(),
                flags,
            }
        };
        Ok((0..).zip(asked).map(peer).collect())
    }

    fn unmap(&self, id: RegionId) -> Result<(), MemoryError> {
        self.state.with(|state| {
            let mapped =
                state.used.values_mut().find(|used| used.id == id).and_then(|used| used.mapped.take());
            if let Some((_, mapping)) = mapped {
                mapping.detach();
                state.detached.push(mapping);
            }
        });
        kill_point!("pshm.region.unmapped");
        Ok(())
    }

    fn free(&self, id: RegionId) -> Result<(), MemoryError> {
        self.state.with(|state| {
            let found = state.used.iter().find(|(_, used)| used.id == id && used.mapped.is_none());
            let Some(&start) = found.map(|(start, _)| start) else { return Ok(()) };
            // In any case: all ranks have to agree on what is free.
            let own = state.used.remove(&start).map_or(0..0, |used| used.own);
            if own.is_empty() {
                return Ok(());
            }
            let freed = memfd::punch(self.file.as_fd(), own.start, own.end);
            freed.map_err(|error| MemoryError::CannotFree { cause: error.to_string() })
        })
    }
}
