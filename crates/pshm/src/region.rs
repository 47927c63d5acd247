//! The file of the ranks that share memory, mapped, and typed views of what each has in it.
//!
//! # Invariants
//! - region.1: a [`Host`] owns the mappings that its views point into; the views are private to this crate, are never handed
//!   out as references that could outlive the host (the queues are lent as long as their transport, which keeps the
//!   host), and have no destructor that touches memory. They are `'static` because a structure cannot borrow from itself.
//! - region.2: queues are shown from the beginning; of a segment so much as anybody is told of here, the own in the beginning, another
//!   rank's when it is first asked how long that is.

use crate::announce::Announcement;
use crate::error::PshmError;
use crate::layout::{Card, FileLayout, Place, in_pages};
use gasworks_os::jobs::Guard;
use gasworks_os::memfd::{self, Mapping, Reserved};
use gasworks_os::{OsError, faults};
use gasworks_shmem::barrier::{Barrier, Meeting};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::inbox::Inbox;
use gasworks_shmem::queues::Seat;
use gasworks_shmem::ranks::Ranks;
use gasworks_shmem::view;
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::{Lock, Mode, Par, RawSlice, VolatileSlice};
use std::os::fd::{AsFd, OwnedFd};

/// One rank's card, queues and segment, mapped here.
#[derive(Debug)]
pub(crate) struct Region {
    /// Its bell and its queues.
    pub seat: Seat<'static>,
    pub meeting: &'static Meeting,
    /// How many bytes of its segment may be used, as it says.
    pub length: &'static AtomicU64,
    /// How many it has announced in the beginning.
    pub announced: u64,
    /// Blocks that carry requests from this rank.
    pub request_blocks: Blocks<'static>,
    /// Blocks that carry replies to this rank.
    pub reply_blocks: Blocks<'static>,
    /// Where all that lies.
    pub place: Place,
    queues: VolatileSlice<'static>,
    /// Its segment, with the room that it has to grow.
    pub segment: RawSlice,
}

/// The file of the ranks that share memory, as one of them maps it: at a cost that does not depend on how many they are.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The cards and queues of all.
    pub queues: Mapping,
    /// The segments of all, if there are others; the own is not shown there.
    segments: Option<Mapping>,
    /// The own segment, where it was announced to be, and the page behind it.
    pub own: Option<Mapping>,
}

impl Mapped {
    /// Of rank number `number`, whose segment gets the addresses that were reserved for it; `leader` gave the file.
    pub(crate) fn new(
        leader: u32,
        file: &OwnedFd,
        layout: &FileLayout,
        number: usize,
        reserved: Option<Reserved>,
        announced: &[Announcement],
    ) -> Result<Self, PshmError> {
        let wrong = |what: String| PshmError::Descriptor { rank: leader, what };
        if !memfd::is_sealed(file.as_fd()) {
            return Err(wrong("its size is not sealed".into()));
        }
        let size = memfd::size_of_file(file.as_fd())?;
        if size < layout.len as u64 {
            return Err(wrong(format!("it has only {size} bytes, not {}", layout.len)));
        }
        let queues = memfd::map(file.as_fd(), layout.segments)?;
        let len = layout.len - layout.segments;
        let segments = (announced.len() > 1 && len > 0)
            .then(|| memfd::map_hidden(file.as_fd(), layout.segments, len))
            .transpose()?;
        let own = layout.places.get(number).zip(reserved);
        let own = own.map(|(own, reserved)| reserved.map(file.as_fd(), own.segment)).transpose()?;
        if let (Some(own), Some(mine)) = (&own, announced.get(number)) {
            own.show(0, in_pages(mine.segment, shown_page(layout, announced)))?;
        }
        Ok(Self { queues, segments, own })
    }
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
    /// The size of the pages in which segments are shown, and where the first begins in the file.
    pub page: usize,
    segments: usize,
    /// Names for the report of a fault; taken back before the mappings go.
    names: <Par as Mode>::Lock<Vec<Guard>>,
    mapped: Mapped,
    /// How many bytes of each rank's segment are shown here.
    shown: Box<[<Par as Mode>::Lock<u64>]>,
    job: Box<str>,
}

impl Host {
    /// Takes the radix of the barrier, and what the ranks have announced in their order.
    pub(crate) fn new(
        me: u32,
        job: &str,
        ranks: Ranks,
        radix: usize,
        layout: &FileLayout,
        mapped: Mapped,
        announced: &[Announcement],
    ) -> Result<Self, PshmError> {
        // SAFETY: region.1: the mapping moves into the host, which outlives all its views; region.2: all of it was shown.
        let all = unsafe { mapped.queues.bytes().raw().borrow::<'static>() };
        let segments = mapped.segments.as_ref().map(Mapping::raw);
        let own = mapped.own.as_ref().map(Mapping::raw);
        let mut regions = Vec::with_capacity(announced.len());
        for (((number, rank), place), announced) in (0..).zip(ranks.iter()).zip(&layout.places).zip(announced)
        {
            let fails = || PshmError::Descriptor { rank, what: "its layout is inconsistent".into() };
            let queues = all.slice(place.queues, place.layout.len).ok_or_else(fails)?;
            let segment = match (place.room, rank == me) {
                (0, _) => Some(RawSlice::EMPTY),
                (room, true) => own.and_then(|own| own.slice(0, room)),
                (room, false) => segments.and_then(|all| all.slice(place.segment - layout.segments, room)),
            };
            let segment = segment.ok_or_else(fails)?;
            let region = Region::new(all, Card::of(number), queues, segment, *place, announced.segment);
            regions.push(region.ok_or_else(fails)?);
        }
        let barrier = Barrier::new(regions.iter().map(|rank| rank.meeting), ranks.number(me), radix)
            .filter(|_| regions.len() == ranks.count())
            .ok_or(PshmError::Announcement { rank: me, what: "it is not among the ranks of its own host" })?;
        let number = ranks.number(me);
        let shown = announced
            .iter()
            .enumerate()
            .map(|(other, theirs)| Lock::new(if other == number { theirs.segment } else { 0 }));
        let mut names = vec![faults::name_range(all.raw(), &format!("message queues (job {job})"))?];
        if let Some(own) = own {
            names.push(faults::name_range(own, &segment_name(me, job))?);
        }
        Ok(Self {
            me,
            barrier,
            regions: regions.into(),
            page: shown_page(layout, announced),
            segments: layout.segments,
            names: Lock::new(names),
            shown: shown.collect(),
            mapped,
            ranks,
            job: job.into(),
        })
    }

    /// This rank's own region.
    #[inline]
    pub(crate) fn mine(&self) -> &Region {
        &self.regions[self.ranks.number(self.me)]
    }

    /// This rank's own segment, as far as it is shown, to the end of a page.
    pub(crate) fn own(&self) -> Option<VolatileSlice<'_>> {
        self.mapped.own.as_ref().map(Mapping::bytes)
    }

    /// Has the first `len` bytes of a rank's segment, or as many as there is room for, be used here (region.2).
    pub(crate) fn show(&self, rank: u32, len: u64) -> Result<(), OsError> {
        let number = self.ranks.number(rank);
        let (Some(region), Some(shown)) = (self.regions.get(number), self.shown.get(number)) else {
            return Ok(());
        };
        let (mapping, at) = match rank == self.me {
            true => (&self.mapped.own, 0),
            false => (&self.mapped.segments, region.place.segment - self.segments),
        };
        let (Some(mapping), len) = (mapping, len.min(region.place.room as u64)) else { return Ok(()) };
        shown.with(|shown| {
            if len > *shown {
                mapping.show(at, at + in_pages(len, self.page))?;
                if *shown == 0 && rank != self.me {
                    let name = faults::name_range(region.segment, &segment_name(rank, &self.job))?;
                    self.names.with(|names| names.push(name));
                }
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

/// Segments are shown in the pages of which the file consists, so that who writes beyond the end of one is stopped there.
fn shown_page(layout: &FileLayout, announced: &[Announcement]) -> usize {
    if announced.iter().all(|rank| rank.pooled) { layout.page } else { memfd::page_size() }
}

fn segment_name(rank: u32, job: &str) -> String {
    format!("segment of rank {rank} (job {job})")
}

impl Region {
    /// Views of a card and of queues.
    fn new(
        cards: VolatileSlice<'static>,
        card: Card,
        bytes: VolatileSlice<'static>,
        segment: RawSlice,
        place: Place,
        announced: u64,
    ) -> Option<Self> {
        let layout = &place.layout;
        let bells = view::slice(cards, card.bell, 1)?;
        let meetings = view::slice(cards, card.meeting, 1)?;
        let lengths = view::slice(cards, card.length, 1)?;
        let controls =
            [view::slice(bytes, layout.request_control, 1)?, view::slice(bytes, layout.reply_control, 1)?];
        let flags = [
            view::slice(bytes, layout.request_flags, layout.request_count() as usize)?,
            view::slice(bytes, layout.reply_flags, layout.reply_count as usize)?,
        ];
        let slots = [
            view::slice(bytes, layout.request_slots, layout.requests)?,
            view::slice(bytes, layout.reply_slots, layout.replies)?,
        ];
        Some(Self {
            seat: Seat {
                requests: Inbox::new(controls[0].first()?, slots[0])?,
                replies: Inbox::new(controls[1].first()?, slots[1])?,
                bell: bells.first()?,
            },
            meeting: meetings.first()?,
            length: lengths.first()?,
            announced,
            request_blocks: Blocks::new(flags[0]),
            reply_blocks: Blocks::new(flags[1]),
            place,
            queues: bytes,
            segment,
        })
    }

    /// The first `len` bytes of a block that carries a request from this rank; `None` if there is no such block or
    /// it is smaller.
    #[inline]
    pub(crate) fn request_bytes(&self, index: u32, len: usize) -> Option<VolatileSlice<'_>> {
        let (offset, size) = self.place.layout.request_block(index)?;
        (len <= size).then(|| self.queues.slice(self.place.layout.request_blocks + offset, len))?
    }

    /// The first `len` bytes of a block that carries a reply to this rank; `None` as above.
    #[inline]
    pub(crate) fn reply_bytes(&self, index: u32, len: usize) -> Option<VolatileSlice<'_>> {
        let fits = index < self.place.layout.reply_count && len <= crate::MAX_MEDIUM;
        fits.then(|| {
            self.queues.slice(self.place.layout.reply_blocks + index as usize * crate::MAX_MEDIUM, len)
        })?
    }
}
