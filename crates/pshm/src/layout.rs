//! Where everything lies in the one file that the ranks share: a line of each ([`Cards`]), the queues of each ([`Layout`]), the
//! segments of each.
//!
//! The sizes follow from a few numbers that each rank announces; all compute the same from them, and check that the file has room
//! for it.

use gasworks_core::wire::TEAM_SLOTS;
use gasworks_shmem::barrier::Meeting;
use gasworks_shmem::board::{Board, Cell};
use gasworks_shmem::inbox::{Control, Slot};
use std::sync::Arc;

/// The largest huge page that a peer may announce.
const LARGEST_PAGE: u64 = 16 << 30;
/// The largest payload of a message.
pub const MAX_MEDIUM: usize = 64 << 10;
/// Reply blocks beyond one for each request that may be out: a thread gives its credit back a moment before it frees
/// the block.
pub(crate) const SLACK: u32 = 64;
/// What everything large is aligned to: a multiple of every page size that base pages have on Linux.
pub(crate) const PAGE: u64 = 64 << 10;

/// The boards that a rank may have a cell in: a team's in each slot, and that of all ranks.
const BOARDS: usize = TEAM_SLOTS as usize + 1;

/// What even silent ranks touch of one another: the card of each, which is a line, and the barrier's counts. So those of all ranks fill a
/// few pages, and a rank's queues and its segment cost a peer neither memory nor page tables until the two talk. Behind them lie the counts
/// of teams' barriers, which cost nothing until there are teams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cards {
    /// How many ranks there are.
    pub ranks: usize,
}

impl Cards {
    const LINE: usize = 64;

    /// Where a rank's bell is.
    pub(crate) fn bell(self, rank: usize) -> usize {
        rank * Self::LINE
    }

    /// Where it stands how many bytes of a rank's segment may be used: that changes as seldom as the bell rings.
    pub(crate) fn length(self, rank: usize) -> usize {
        self.bell(rank) + size_of::<u64>()
    }

    /// Where the count of that number is; there are as many as ranks, and the barrier uses the first few.
    pub(crate) fn meeting(self, number: usize) -> usize {
        let bells = (self.ranks * Self::LINE).next_multiple_of(align_of::<Meeting>());
        bells + number * size_of::<Meeting>()
    }

    /// Where a rank's count for the barrier of a team is that has its slot of this number.
    pub(crate) fn team_meeting(self, slot: u32, rank: usize) -> usize {
        self.meeting((slot as usize + 1) * self.ranks + rank)
    }

    /// The bytes that all take; `None` if no address space holds them.
    fn len(self) -> Option<usize> {
        let meetings = (TEAM_SLOTS as usize + 1) * size_of::<Meeting>();
        self.ranks.checked_mul(Self::LINE + meetings)?.checked_add(align_of::<Meeting>())
    }
}

/// What the layout of a rank's queues follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Requests that may be out to one peer.
    pub depth: u32,
    /// Requests that may be out to all.
    pub total: u32,
    /// Bytes of payload that may be out to one peer.
    pub volume: u64,
}

/// A size class of the blocks that carry a rank's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    /// The number of its first block.
    pub first: u32,
    /// The number after its last block.
    pub end: u32,
    /// The size of a block.
    pub size: usize,
    /// Where the first block lies, from the start of the request blocks.
    pub offset: usize,
}

/// Where everything lies in a rank's queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub request_control: usize,
    pub reply_control: usize,
    pub request_flags: usize,
    pub reply_flags: usize,
    pub request_slots: usize,
    pub reply_slots: usize,
    /// Its cells of teams' boards, and the buffers that belong to these: one of each slot, and of the team of all ranks. What no team uses
    /// costs nothing.
    pub cells: usize,
    pub buffers: usize,
    pub request_blocks: usize,
    pub reply_blocks: usize,
    /// How many bytes they are.
    pub len: usize,
    /// How many slots requests from all peers share.
    pub requests: usize,
    /// How many slots replies share: at least one for each request that may be out.
    pub replies: usize,
    /// How many reply blocks.
    pub reply_count: u32,
    /// The classes of request blocks, smallest first.
    pub classes: [Class; 3],
}

impl Shape {
    /// Lays a rank's queues out; `None` if no address space holds them.
    pub(crate) fn lay_out(&self) -> Option<Layout> {
        // Enough for two peers that use all their credits at once; more of them meet a busy wire. Not for more: a sender goes
        // through all slots, and what it has not touched before costs a page fault, and later the caches.
        let requests = (self.depth.clamp(1, 2048) as usize * 2).next_power_of_two().clamp(256, 4096);
        let replies = (self.total.clamp(1, 1 << 20) as usize).next_power_of_two();
        let reply_count = self.total.clamp(1, 1 << 20) + SLACK;
        let large = (2 * self.volume / MAX_MEDIUM as u64).clamp(16, 128) as u32;
        let mut classes = [Class { first: 0, end: 0, size: 0, offset: 0 }; 3];
        let (mut first, mut offset) = (0, 0);
        for (class, (size, count)) in classes.iter_mut().zip([(512, 128), (4096, 64), (MAX_MEDIUM, large)]) {
            *class = Class { first, end: first + count, size, offset };
            first += count;
            offset += size * count as usize;
        }

        let mut at = 0usize;
        let mut place = |size: usize, align: usize| {
            let start = at.checked_next_multiple_of(align)?;
            at = start.checked_add(size)?;
            Some(start)
        };
        let page = PAGE as usize;
        let layout = Layout {
            request_control: place(size_of::<Control>(), 256)?,
            reply_control: place(size_of::<Control>(), 256)?,
            request_flags: place(first as usize * 4, 256)?,
            reply_flags: place(reply_count as usize * 4, 256)?,
            request_slots: place(requests * size_of::<Slot>(), 4096)?,
            reply_slots: place(replies * size_of::<Slot>(), 4096)?,
            cells: place(BOARDS * size_of::<Cell>(), 4096)?,
            buffers: place(BOARDS * Board::ROOM, page)?,
            request_blocks: place(offset, page)?,
            reply_blocks: place(reply_count as usize * MAX_MEDIUM, page)?,
            len: 0,
            requests,
            replies,
            reply_count,
            classes,
        };
        Some(Layout { len: at, ..layout })
    }
}

/// What there is of one rank in the file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where its queues begin, and what is where in them, which is the same for ranks of one shape.
    pub queues: usize,
    pub layout: Arc<Layout>,
    /// Where its segment begins, and what that may grow to.
    pub segment: usize,
    pub room: usize,
}

/// Where everything lies in the file.
#[derive(Clone, Debug)]
pub(crate) struct FileLayout {
    /// In the order of the ranks.
    pub places: Box<[Place]>,
    /// What each rank's queues and segment are aligned to: [`PAGE`], or the size of a huge page.
    pub page: usize,
    /// Where the first segment begins; before it are cards and queues.
    pub segments: usize,
    /// How long the whole file is.
    pub len: usize,
}

impl FileLayout {
    /// For ranks with these queues and this room for their segments, in pages of that size; `None` if no address space holds it.
    pub(crate) fn of(ranks: &[(Shape, u64)], page: u64) -> Option<Self> {
        let page = usize::try_from(page).ok().filter(|page| page.is_power_of_two())?;
        if !(PAGE..=LARGEST_PAGE).contains(&(page as u64)) {
            return None;
        }
        let mut at = 0usize;
        let mut place = |size: usize| {
            let start = at;
            at = start.checked_add(size)?.checked_next_multiple_of(page)?;
            Some(start)
        };
        place(Cards { ranks: ranks.len() }.len()?)?;
        let mut places: Vec<Place> = Vec::with_capacity(ranks.len());
        let mut last = None;
        for (shape, room) in ranks {
            let layout = match (&last, places.last()) {
                (Some(last), Some(place)) if *last == shape => place.layout.clone(),
                _ => Arc::new(shape.lay_out()?),
            };
            last = Some(shape);
            let room = usize::try_from(*room).ok()?;
            places.push(Place { queues: place(layout.len)?, layout, segment: 0, room });
        }
        let segments = place(0)?;
        for rank in &mut places {
            // A page behind each belongs to nobody, and is never shown: who writes beyond the end of one is stopped there.
            rank.segment = place(rank.room.checked_add(if rank.room > 0 { page } else { 0 })?)?;
        }
        Some(Self { places: places.into(), page, segments, len: at })
    }
}

/// So many bytes, or a few more, in whole pages of that size.
pub(crate) fn in_pages(len: u64, page: usize) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX).checked_next_multiple_of(page).unwrap_or(usize::MAX)
}

impl Layout {
    /// The request block of that number: where it lies among the request blocks, and its size.
    #[inline]
    pub(crate) fn request_block(&self, index: u32) -> Option<(usize, usize)> {
        let class = self.classes.iter().find(|class| index < class.end)?;
        Some((class.offset + (index - class.first) as usize * class.size, class.size))
    }

    /// The number of request blocks.
    pub(crate) fn request_count(&self) -> u32 {
        self.classes[2].end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_blocks_stay_inside() {
        for (depth, total, volume) in [(12, 64, 768 << 10), (1, 1, 0), (4096, 65536, 1 << 32)] {
            let layout = Shape { depth, total, volume }.lay_out().expect("it fits");
            let ends = [
                layout.request_control + 256,
                layout.reply_control + 256,
                layout.request_flags + layout.request_count() as usize * 4,
                layout.reply_flags + layout.reply_count as usize * 4,
                layout.request_slots + layout.requests * 256,
                layout.reply_slots + layout.replies * 256,
                layout.cells + BOARDS * size_of::<Cell>(),
                layout.buffers + BOARDS * Board::ROOM,
            ];
            let starts = [
                layout.reply_control,
                layout.request_flags,
                layout.reply_flags,
                layout.request_slots,
                layout.reply_slots,
                layout.cells,
                layout.buffers,
                layout.request_blocks,
            ];
            assert!(ends.iter().zip(starts).all(|(&end, start)| end <= start), "{layout:?}");
            let mut end = 0;
            for index in 0..layout.request_count() {
                let (offset, size) = layout.request_block(index).expect("a block");
                assert_eq!(offset, end);
                end = offset + size;
            }
            assert!(layout.request_blocks + end <= layout.reply_blocks);
            assert!(layout.request_block(layout.request_count()).is_none());
            assert_eq!(layout.len, layout.reply_blocks + layout.reply_count as usize * MAX_MEDIUM);
        }
    }

    #[test]
    fn a_file_holds_the_cards_the_queues_and_the_segments_of_all() {
        let small = Shape { depth: 1, total: 1, volume: 0 };
        let large = Shape { depth: 100, total: 1000, volume: 1 << 22 };
        let ranks = [(small, 5000), (large, 0), (small, 1 << 40), (large, 2 << 20)];
        for page in [PAGE as usize, 2 << 20] {
            let file = FileLayout::of(&ranks, page as u64).expect("it fits");
            let mut at = Cards { ranks: ranks.len() }.team_meeting(TEAM_SLOTS - 1, ranks.len());
            for (place, (shape, _)) in file.places.iter().zip(ranks) {
                assert!(place.queues >= at && place.queues % page == 0);
                assert_eq!(place.layout.len, shape.lay_out().expect("it fits").len);
                at = place.queues + place.layout.len;
            }
            assert!(file.segments >= at && file.segments.is_multiple_of(page));
            at = file.segments;
            for (place, (_, room)) in file.places.iter().zip(ranks) {
                assert!(place.segment >= at && place.segment % page == 0);
                assert_eq!(place.room as u64, room);
                // As much as a page behind it is nobody's.
                at = place.segment + if room > 0 { room as usize + page } else { 0 };
            }
            assert!(file.len >= at && file.len.is_multiple_of(page));
            let lens = [0, 1, page as u64, u64::MAX];
            assert_eq!(lens.map(|len| in_pages(len, page)), [0, page, page, usize::MAX]);
        }
        for page in [0, 4096, 3 << 20, 1 << 40, u64::MAX] {
            assert!(FileLayout::of(&ranks, page).is_none(), "pages of {page}");
        }
        for room in [u64::MAX, u64::MAX / 2 + 1 - PAGE] {
            assert!(FileLayout::of(&[(small, room), (small, room)], PAGE).is_none(), "{room}");
        }
    }
}
