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
use crate::layout::{Cards, FileLayout, Layout, MAX_MEDIUM, in_pages};
use crate::slots::Slots;
use gasworks_core::Members;
use gasworks_memory::{Peer, PeerFlags};
use gasworks_os::jobs::Guard;
use gasworks_os::memfd::{self, Mapping, Reserved};
use gasworks_os::{OsError, faults};
use gasworks_shmem::barrier::{Barrier, Meeting};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::board::{Board, Cell};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::Inbox;
use gasworks_shmem::queues::Seat;
use gasworks_shmem::ranks::Ranks;
use gasworks_shmem::view::{self, Shared};
use gasworks_sync::atomic::{AtomicU32, AtomicU64};
use gasworks_sync::{Lock, Mode, Par, RawSlice, VolatileSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// One rank's queues and segment, mapped here: little, for there may be many.
#[derive(Debug)]
pub(crate) struct Region {
    pub layout: Arc<Layout>,
    queues: VolatileSlice<'static>,
    /// Its segment, with the room that it has to grow.
    pub segment: RawSlice,
    /// Where that begins in its own process.
    pub base: u64,
    /// How many bytes of it that rank has announced in the beginning.
    pub announced: u64,
    /// How many bytes of it are shown here.
    shown: <Par as Mode>::Lock<u64>,
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
    /// This rank's number among them.
    number: usize,
    /// Which ranks of the job they are.
    pub ranks: Ranks,
    /// What there is of each.
    pub regions: Box<[Region]>,
    pub barrier: Barrier<'static>,
    /// How many ranks meet at each count of a barrier; 0 for all.
    pub radix: usize,
    /// What teams have.
    pub slots: Slots,
    /// The board of all ranks, if they have come to have one.
    pub board: OnceLock<Board<'static>>,
    /// The size of the pages in which segments are shown.
    pub page: usize,
    /// Where this rank's own segment begins in the file.
    pub offset: usize,
    /// Names for the report of a fault; taken back before the mappings go.
    names: <Par as Mode>::Lock<Vec<Guard>>,
    /// The cards of all, and their queues.
    pub(crate) all: VolatileSlice<'static>,
    mapped: Mapped,
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
        let cards = Cards { ranks: announced.len() };
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
            let shown = if rank == me { announced.segment } else { 0 };
            let region = Region {
                layout: place.layout.clone(),
                queues,
                segment,
                base: announced.base,
                announced: announced.segment,
                shown: Lock::new(shown),
            };
            // All that is cut from it later lies inside.
            let is_sound = card(all, cards.bell(number)).and_then(|bell| region.seat(bell)).is_some()
                && card::<AtomicU64>(all, cards.length(number)).is_some()
                && region.is_sound();
            if !is_sound {
                return Err(fails());
            }
            regions.push(region);
        }
        let meetings = view::slice::<Meeting>(all, cards.meeting(0), regions.len());
        let barrier = meetings
            .and_then(|meetings| Barrier::new(meetings, ranks.number(me), radix))
            .filter(|_| regions.len() == ranks.count())
            .ok_or(PshmError::Announcement { rank: me, what: "it is not among the ranks of its own host" })?;
        let mut names = vec![faults::name_range(all.raw(), &format!("message queues (job {job})"))?];
        if let Some(own) = own {
            names.push(faults::name_range(own, &segment_name(me, job))?);
        }
        Ok(Self {
            me,
            barrier,
            radix,
            slots: Slots::new(),
            board: OnceLock::new(),
            regions: regions.into(),
            page: shown_page(layout, announced),
            number: ranks.number(me),
            offset: layout.places.get(ranks.number(me)).map_or(0, |own| own.segment),
            names: Lock::new(names),
            all,
            mapped,
            ranks,
            job: job.into(),
        })
    }

    pub(crate) fn cards(&self) -> Cards {
        Cards { ranks: self.regions.len() }
    }

    /// What the ranks' queues are seen by, in their order.
    pub(crate) fn seats(&self) -> impl Iterator<Item = Seat<'static>> {
        self.bells().zip(&self.regions).filter_map(|(bell, region)| region.seat(bell))
    }

    /// The bells of the ranks, in their order.
    pub(crate) fn bells(&self) -> impl Iterator<Item = &'static Doorbell> {
        let cards = self.cards();
        (0..self.regions.len()).filter_map(move |number| card(self.all, cards.bell(number)))
    }

    /// The bell of a rank, if it is one of those that share memory.
    pub(crate) fn bell(&self, rank: u32) -> Option<&'static Doorbell> {
        let number = Some(self.ranks.number(rank)).filter(|&number| number < self.regions.len());
        card(self.all, self.cards().bell(number?))
    }

    /// A rank's meeting for a team that has its slot of this number, if it is one of those that share memory.
    pub(crate) fn team_meeting(&self, slot: u32, rank: u32) -> Option<&'static Meeting> {
        let number = Some(self.ranks.number(rank)).filter(|&number| number < self.regions.len());
        card(self.all, self.cards().team_meeting(slot, number?))
    }

    /// Whether something holds of the barrier of all ranks, and of those of all teams that this rank is in.
    pub(crate) fn all_barriers(&self, mut holds: impl FnMut(&Barrier<'static>) -> bool) -> bool {
        holds(&self.barrier) && self.slots.all(|team| holds(&team.barrier))
    }

    /// The same of the boards.
    pub(crate) fn all_boards(&self, mut holds: impl FnMut(&Board<'static>) -> bool) -> bool {
        self.board.get().is_none_or(&mut holds) && self.slots.all(|team| holds(&team.board))
    }

    /// A rank's cell in the board of that number and its buffers, if it is one of those that share memory.
    pub(crate) fn cell(&self, board: u32, rank: u32) -> Option<(&'static Cell, VolatileSlice<'static>)> {
        let Region { layout, queues, .. } = self.of(rank)?;
        let board = board as usize;
        let cell = view::slice(*queues, layout.cells + board * size_of::<Cell>(), 1)?.first()?;
        Some((cell, queues.slice(layout.buffers + board * Board::ROOM, Board::ROOM)?))
    }

    /// The board of that number of these members.
    pub(crate) fn board_of(&self, board: u32, members: &Members) -> Option<Board<'static>> {
        let cells: Option<Vec<_>> = members.iter().map(|rank| self.cell(board, rank)).collect();
        Board::new(cells?, members.member_of(self.me)? as usize)
    }

    /// How many bytes of a rank's segment may be used, as it says.
    pub(crate) fn length(&self, rank: u32) -> Option<&'static AtomicU64> {
        let number = self.ranks.number(rank);
        self.regions.get(number)?;
        card(self.all, self.cards().length(number))
    }

    /// The ranks, this one among them, and where their segments are mapped here.
    pub(crate) fn peers(&self) -> impl ExactSizeIterator<Item = (u32, Peer)> {
        self.ranks.iter().zip(&self.regions).map(|(rank, region)| {
            let own = if rank == self.me { PeerFlags::SELF } else { PeerFlags::empty() };
            let peer = Peer {
                mapped: region.segment,
                len: region.announced,
                remote_base: region.base,
                key: Vec::new(),
                flags: PeerFlags::MAPPED | own,
            };
            (rank, peer)
        })
    }

    /// This rank's own region.
    #[inline]
    pub(crate) fn mine(&self) -> &Region {
        &self.regions[self.number]
    }

    /// This rank's own segment, as far as it is shown, to the end of a page.
    pub(crate) fn own(&self) -> Option<VolatileSlice<'_>> {
        self.mapped.own.as_ref().map(Mapping::bytes)
    }

    /// Has the first `len` bytes of a rank's segment, or as many as there is room for, be used here (region.2).
    pub(crate) fn show(&self, rank: u32, len: u64) -> Result<(), OsError> {
        let number = self.ranks.number(rank);
        let Some(region) = self.regions.get(number) else { return Ok(()) };
        let mapping = if rank == self.me { &self.mapped.own } else { &self.mapped.segments };
        let (Some(mapping), len) = (mapping, len.min(region.segment.len() as u64)) else { return Ok(()) };
        region.shown.with(|shown| {
            if len > *shown {
                let at = region.segment.as_ptr().addr() - mapping.raw().as_ptr().addr();
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

/// A structure of a card.
fn card<T: Shared>(cards: VolatileSlice<'static>, at: usize) -> Option<&'static T> {
    view::slice(cards, at, 1)?.first()
}

impl Region {
    /// Its bell and its queues; `None` if they do not lie inside.
    fn seat(&self, bell: &'static Doorbell) -> Option<Seat<'static>> {
        let layout = &*self.layout;
        let inbox = |control: usize, slots: usize, count: usize| {
            let control = view::slice(self.queues, control, 1)?.first()?;
            Inbox::new(control, view::slice(self.queues, slots, count)?)
        };
        Some(Seat {
            requests: inbox(layout.request_control, layout.request_slots, layout.requests)?,
            replies: inbox(layout.reply_control, layout.reply_slots, layout.replies)?,
            bell,
        })
    }

    /// Whether the flags of all blocks lie inside.
    fn is_sound(&self) -> bool {
        let layout = &*self.layout;
        let fits = |at, count| view::slice::<AtomicU32>(self.queues, at, count).is_some();
        fits(layout.request_flags, layout.request_count() as usize)
            && fits(layout.reply_flags, layout.reply_count as usize)
    }

    fn flags(&self, at: usize, count: u32) -> Blocks<'static> {
        Blocks::new(view::slice(self.queues, at, count as usize).unwrap_or_default())
    }

    /// Blocks that carry requests from this rank.
    #[inline]
    pub(crate) fn request_blocks(&self) -> Blocks<'static> {
        self.flags(self.layout.request_flags, self.layout.request_count())
    }

    /// Blocks that carry replies to this rank.
    #[inline]
    pub(crate) fn reply_blocks(&self) -> Blocks<'static> {
        self.flags(self.layout.reply_flags, self.layout.reply_count)
    }

    /// The first `len` bytes of a block that carries a request from this rank; `None` if there is no such block or
    /// it is smaller.
    #[inline]
    pub(crate) fn request_bytes(&self, index: u32, len: usize) -> Option<VolatileSlice<'_>> {
        let (offset, size) = self.layout.request_block(index)?;
        (len <= size).then(|| self.queues.slice(self.layout.request_blocks + offset, len))?
    }

    /// The first `len` bytes of a block that carries a reply to this rank; `None` as above.
    #[inline]
    pub(crate) fn reply_bytes(&self, index: u32, len: usize) -> Option<VolatileSlice<'_>> {
        let fits = index < self.layout.reply_count && len <= MAX_MEDIUM;
        fits.then(|| self.queues.slice(self.layout.reply_blocks + index as usize * MAX_MEDIUM, len))?
    }
}
