//! The mapped files of all ranks, as typed views.
//!
//! # Invariants
//! G1. A [`Host`] owns the mappings that its views point into; the views are private to this crate, are never handed
//!     out as references that could outlive the host (the queues are lent as long as their transport, which keeps the
//!     host), and have no destructor that touches memory. They are `'static` because a structure cannot borrow from itself.
//! G2. Mapped bytes are touched only through those views and through racy copies.
//! G3. The queues are shown from the beginning, and so much of each segment as anybody is told of here.

use crate::error::PshmError;
use crate::layout::{Card, Layout};
use gasworks_os::jobs::Guard;
use gasworks_os::memfd::Mapping;
use gasworks_os::{OsError, faults};
use gasworks_shmem::barrier::{Barrier, Meeting};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::inbox::Inbox;
use gasworks_shmem::queues::Seat;
use gasworks_shmem::ranks::Ranks;
use gasworks_shmem::view;
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::{Lock, Mode, Par, RawBytes};

/// One rank's card and file, mapped here.
#[derive(Debug)]
pub(crate) struct Region {
    /// Its bell and its queues.
    pub seat: Seat<'static>,
    pub meeting: &'static Meeting,
    /// How many bytes of its segment may be used.
    pub length: &'static AtomicU64,
    /// Blocks that carry requests from this rank.
    pub request_blocks: Blocks<'static>,
    /// Blocks that carry replies to this rank.
    pub reply_blocks: Blocks<'static>,
    pub layout: Layout,
    /// The whole file.
    pub bytes: RawBytes,
}

/// The ranks that share memory, as seen by one of them.
#[derive(Debug)]
pub(crate) struct Host {
    pub me: u32,
    /// Which ranks of the job they are.
    pub ranks: Ranks,
    /// What there is of each.
    pub regions: Box<[Region]>,
    pub barrier: Barrier<'static>,
    /// Names for the report of a fault; taken back before the mappings go.
    _names: Vec<Guard>,
    mappings: Vec<Mapping>,
    /// How many bytes of each rank's segment are shown here.
    shown: Box<[<Par as Mode>::Lock<u64>]>,
    _cards: Mapping,
}

impl Host {
    /// Takes the radix of the barrier, the file of cards and the ranks' own in their order, each with its layout and how many bytes of
    /// the segment are shown.
    pub(crate) fn new(
        me: u32,
        job: &str,
        ranks: Ranks,
        radix: usize,
        cards: Mapping,
        mapped: Vec<(Mapping, Layout, u64)>,
    ) -> Result<Self, PshmError> {
        // SAFETY: the mapping moves into the host, which outlives all its views (G1).
        let lines = unsafe { cards.bytes() };
        let mut regions = Vec::with_capacity(mapped.len());
        let mut names = Vec::with_capacity(2 * mapped.len());
        for ((number, rank), (mapping, layout, _)) in (0..).zip(ranks.iter()).zip(&mapped) {
            let fails = || PshmError::Descriptor { rank, what: "its layout is inconsistent".into() };
            // SAFETY: the mapping moves into the host, which outlives all its views (G1).
            let bytes = unsafe { mapping.bytes() };
            let region = Region::new(lines, Card::of(number), bytes, *layout).ok_or_else(fails)?;
            let queues = bytes.slice(0, layout.segment).ok_or_else(fails)?;
            names.push(faults::name_range(queues, &format!("message queues of rank {rank} (job {job})"))?);
            if layout.room > 0 {
                let segment = bytes.slice(layout.segment, layout.room).ok_or_else(fails)?;
                names.push(faults::name_range(segment, &format!("segment of rank {rank} (job {job})"))?);
            }
            regions.push(region);
        }
        let barrier = Barrier::new(regions.iter().map(|rank| rank.meeting), ranks.number(me), radix)
            .filter(|_| regions.len() == ranks.count())
            .ok_or(PshmError::Announcement { rank: me, what: "it is not among the ranks of its own host" })?;
        let (mappings, shown): (_, Vec<_>) =
            mapped.into_iter().map(|(mapping, _, shown)| (mapping, Lock::new(shown))).unzip();
        Ok(Self {
            me,
            ranks,
            regions: regions.into(),
            barrier,
            _names: names,
            mappings,
            shown: shown.into(),
            _cards: cards,
        })
    }

    /// This rank's own region.
    #[inline]
    pub(crate) fn mine(&self) -> &Region {
        &self.regions[self.ranks.number(self.me)]
    }

    /// Has the first `len` bytes of a rank's segment, or as many as there is room for, be used here (G3).
    pub(crate) fn show(&self, rank: u32, len: u64) -> Result<(), OsError> {
        let number = self.ranks.number(rank);
        let (Some(region), Some(mapping), Some(shown)) =
            (self.regions.get(number), self.mappings.get(number), self.shown.get(number))
        else {
            return Ok(());
        };
        let layout = &region.layout;
        let len = len.min(layout.room as u64);
        shown.with(|shown| {
            if len > *shown {
                mapping.show(layout.segment, layout.promised(len).unwrap_or(layout.len))?;
                *shown = len;
            }
            Ok(())
        })
    }

    /// What there is of a rank, if it is one of those that share memory.
    #[inline]
    pub(crate) fn of(&self, rank: u32) -> Option<&Region> {
        self.regions.get(self.ranks.number(rank))
    }
}

impl Region {
    /// Views of one card and one file, whose mappings must outlive them (G1): private to this module for that reason.
    fn new(cards: RawBytes, card: Card, bytes: RawBytes, layout: Layout) -> Option<Self> {
        // SAFETY: for all views: mapped as long as they are used (G1), touched in no other way (G2). `slice` checks
        // that they lie inside and are aligned.
        let (bells, meetings, lengths, controls, flags, slots) = unsafe {
            (
                view::slice(cards, card.bell, 1)?,
                view::slice(cards, card.meeting, 1)?,
                view::slice(cards, card.length, 1)?,
                [
                    view::slice(bytes, layout.request_control, 1)?,
                    view::slice(bytes, layout.reply_control, 1)?,
                ],
                [
                    view::slice(bytes, layout.request_flags, layout.request_count() as usize)?,
                    view::slice(bytes, layout.reply_flags, layout.reply_count as usize)?,
                ],
                [
                    view::slice(bytes, layout.request_slots, layout.requests)?,
                    view::slice(bytes, layout.reply_slots, layout.replies)?,
                ],
            )
        };
        Some(Self {
            seat: Seat {
                requests: Inbox::new(controls[0].first()?, slots[0])?,
                replies: Inbox::new(controls[1].first()?, slots[1])?,
                bell: bells.first()?,
            },
            meeting: meetings.first()?,
            length: lengths.first()?,
            request_blocks: Blocks::new(flags[0]),
            reply_blocks: Blocks::new(flags[1]),
            layout,
            bytes,
        })
    }

    /// The first `len` bytes of a block that carries a request from this rank; `None` if there is no such block or
    /// it is smaller.
    #[inline]
    pub(crate) fn request_bytes(&self, index: u32, len: usize) -> Option<RawBytes> {
        let (offset, size) = self.layout.request_block(index)?;
        (len <= size).then(|| self.bytes.slice(self.layout.request_blocks + offset, len))?
    }

    /// The first `len` bytes of a block that carries a reply to this rank; `None` as above.
    #[inline]
    pub(crate) fn reply_bytes(&self, index: u32, len: usize) -> Option<RawBytes> {
        let fits = index < self.layout.reply_count && len <= crate::MAX_MEDIUM;
        fits.then(|| self.bytes.slice(self.layout.reply_blocks + index as usize * crate::MAX_MEDIUM, len))?
    }
}
