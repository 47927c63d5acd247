//! Segments that grow in place.
//!
//! The file has room for the largest segments from the beginning: a file's bytes cost nothing until they are touched,
//! and neither do the addresses that all ranks map and nobody can use yet. How much of it is segment stands in a word on the owner's
//! card. To grow is to see that there is memory and to write that word; who finds a range beyond the length that it knows reads
//! the word again, and has so much of the mapping be used from then on. So nobody waits for anybody, and a rank that dies on the way leaves the old length or the new one.

use crate::error::PshmError;
use crate::layout::in_pages;
use crate::memory::{Memory, Pages};
use crate::region::Host;
use crate::settings::ROOM_NAME;
use crate::sizes;
use gasworks_core::Rank;
use gasworks_memory::{Growth, Largest, MemoryError, Peer};
use gasworks_os::descriptor::Descriptor;
use gasworks_os::limits::Limit;
use gasworks_os::memfd;
use gasworks_os::populate::populate;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_sync::{Lock, Mode, Par, VolatileSlice, kill_point};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is told how far the population of memory has come.
const TELL: Duration = Duration::from_secs(2);

/// The segments of the ranks that share memory: it keeps them mapped, and has this rank's own grow.
#[derive(Debug)]
pub struct Segments {
    host: Arc<Host>,
    /// How long this rank's own segment is. Its card says the same, but others can write there.
    own: <Par as Mode>::Lock<u64>,
    memory: Memory,
    pages: Pages,
    /// The file, to which huge pages have to be promised for what is new.
    file: Arc<Descriptor>,
    bounds: Bounds,
}

/// What segments may grow to.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The setting's limit.
    pub limit: Option<Limit>,
    /// What was promised to a segment that gets its length later, and so is not held against what there is then.
    pub promised: Option<Limit>,
    /// What could have been had at the start.
    pub largest: Largest,
}

impl Segments {
    /// Announces the length that this rank's segment begins with.
    pub(crate) fn new(
        host: Arc<Host>,
        len: u64,
        memory: Memory,
        (pages, file): (Pages, Arc<Descriptor>),
        bounds: Bounds,
    ) -> Self {
        host.length(host.me).inspect(|length| length.store(len, Relaxed));
        Self { host, own: Lock::new(len), memory, pages, file, bounds }
    }

    /// The ranks that share memory, this one among them, in rising order, and where their segments are mapped here.
    pub fn peers(&self) -> impl ExactSizeIterator<Item = (Rank, Peer)> {
        self.host.peers()
    }

    /// Backs all of the segment with memory, if that is wanted.
    pub(crate) fn populate_all(&self) -> Result<(), PshmError> {
        self.own.with(|&mut len| self.populate(0, len)).map_err(PshmError::Populate)
    }

    fn populate(&self, from: u64, to: u64) -> Result<(), gasworks_os::OsError> {
        let new = self.segment_part(from, to).filter(|new| self.memory.populate && !new.is_empty());
        let Some(new) = new else { return Ok(()) };
        let mut told = Instant::now();
        populate(new, |done| {
            if told.elapsed() >= TELL {
                told = Instant::now();
                let (me, done, all) = (self.host.me, done >> 20, new.len() >> 20);
                gasworks_os::say(&format!(
                    "gasworks: rank {me}: {done} of {all} MiB of its segment are backed with memory so far"
                ));
            }
        })
    }

    /// A part of the own segment that has been shown.
    fn segment_part(&self, from: u64, to: u64) -> Option<VolatileSlice<'_>> {
        self.host.own()?.slice(from as usize, usize::try_from(to.checked_sub(from)?).ok()?)
    }

    /// Sees that there is memory for `from..to` of the own segment; the cause where there is not.
    fn provide(&self, from: u64, to: u64) -> Result<(), String> {
        let room = self.host.mine().segment.len() as u64;
        if to > room {
            return Err(match &self.bounds.promised {
                Some(Limit { bytes, who }) if *bytes == room => format!("{who} allows {bytes} bytes"),
                _ => format!(
                    "it has room for {room} bytes; reserve more by Config::segment_max or {ROOM_NAME} when the job starts"
                ),
            });
        }
        if let Some(Limit { bytes, who }) = &self.bounds.limit
            && to > *bytes
        {
            return Err(format!("{who} allows {bytes} bytes"));
        }
        if self.bounds.promised.is_none() {
            fits(self.pages, to - from)?;
        }
        self.host.show(self.host.me, to).map_err(|error| error.to_string())?;
        if matches!(self.pages, Pages::Huge(_)) {
            let (first, page) = (self.host.offset, self.host.page);
            let (start, end) = (in_pages(from, page), in_pages(to, page));
            if end > start {
                promise(&self.file, first + start..first + end, page)?;
            }
        }
        self.populate(from, to).map_err(|error| error.to_string())
    }
}

/// Has the kernel keep huge pages of that size for a part of the file; the cause where there are not enough.
pub(crate) fn promise(file: &Descriptor, part: Range<usize>, page: usize) -> Result<(), String> {
    memfd::promise(file.as_fd(), part.start, part.end).map_err(|error| {
        let pages = part.len() / page;
        format!("the pool has no {pages} huge pages left ({error}); add some by sysctl vm.nr_hugepages")
    })
}

/// Whether such pages for `more` bytes are left, as far as can be said before they are asked for; the cause where not.
pub(crate) fn fits(pages: Pages, more: u64) -> Result<(), String> {
    let Limit { bytes, who } = sizes::available(matches!(pages, Pages::Huge(_)));
    if more > bytes { Err(format!("{who} leaves {bytes} bytes")) } else { Ok(()) }
}

impl Growth for Segments {
    fn length(&self, rank: u32) -> u64 {
        // Relaxed: nothing but the number itself is handed over; the bytes are there, and zero, from the beginning.
        // What was announced in the beginning may stand there a little later.
        let said = self.host.of(rank).zip(self.host.length(rank));
        let length = said.map_or(0, |(region, length)| length.load(Relaxed).max(region.announced));
        // Nobody is told of what cannot be shown.
        match self.host.show(rank, length) {
            Ok(()) => length,
            Err(error) => {
                tracing::warn!(rank, %error, "a segment cannot be used");
                0
            }
        }
    }

    fn grow(&self, len: u64) -> Result<u64, MemoryError> {
        self.own.with(|own| {
            let (rank, from) = (self.host.me, *own);
            if len <= from {
                return Ok(from);
            }
            let refused = |cause| MemoryError::CannotGrow { rank, from, to: len, cause };
            let page = memfd::page_size() as u64;
            let to = len
                .checked_next_multiple_of(page)
                .ok_or_else(|| refused("no address space is as large".into()))?;
            self.provide(from, to).map_err(refused)?;
            kill_point!("pshm.grow.provided");
            self.host.length(rank).inspect(|length| length.store(to, Relaxed));
            kill_point!("pshm.grow.announced");
            *own = to;
            Ok(to)
        })
    }

    fn largest(&self) -> Largest {
        self.bounds.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_of_huge_pages_is_not_what_the_machine_has_available() {
        for pages in [Pages::Base, Pages::Transparent] {
            assert!(fits(pages, u64::MAX / 2).is_err_and(|cause| cause.contains("leaves")), "{pages:?}");
        }
        assert_eq!(fits(Pages::Huge(2 << 20), u64::MAX / 2), Ok(()));
    }
}
