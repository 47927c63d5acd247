//! Where everything lies: in a rank's memory file its control lines, flags, slots, blocks, and last the segment; in
//! the file that all ranks share a few lines of each ([`Card`]).
//!
//! The sizes follow from a few numbers that a rank announces; a peer computes the same layout from them and checks
//! that the file has room for it.

use gasworks_shmem::barrier::Meeting;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Control, Slot};

/// The largest huge page that a peer may announce.
const LARGEST_PAGE: u64 = 16 << 30;
/// The largest payload of a message.
pub(crate) const MAX_MEDIUM: usize = 64 << 10;
/// Reply blocks beyond one for each request that may be out: a thread gives its credit back a moment before it frees
/// the block.
pub(crate) const SLACK: u32 = 64;
/// What everything large is aligned to: a multiple of every page size that base pages have on Linux.
pub(crate) const PAGE: u64 = 64 << 10;

/// Where the lines of one rank lie in the file that all share: what even silent ranks touch of one another. So those of
/// all ranks fill a few pages, and a rank's own file costs a peer neither memory nor page tables until the two talk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    pub bell: usize,
    pub meeting: usize,
    /// How many bytes of the segment may be used.
    pub length: usize,
}

impl Card {
    /// The bytes that one takes: pairs of lines, as the hardware fetches them.
    const LEN: usize = size_of::<Doorbell>() + size_of::<Meeting>() + 128;

    pub(crate) fn of(rank: u32) -> Self {
        let bell = rank as usize * Self::LEN;
        let meeting = bell + size_of::<Doorbell>();
        Self { bell, meeting, length: meeting + size_of::<Meeting>() }
    }

    /// The length of the file that holds the cards of so many ranks.
    pub(crate) fn file_len(ranks: u32) -> usize {
        (ranks.max(1) as usize * Self::LEN).next_multiple_of(PAGE as usize)
    }
}

/// What a layout follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Requests that may be out to one peer.
    pub depth: u32,
    /// Requests that may be out to all.
    pub total: u32,
    /// Bytes of payload that may be out to one peer.
    pub volume: u64,
    /// What the segment may grow to, in whole pages.
    pub room: u64,
    /// What the segment and the whole file are aligned to: [`PAGE`], or the size of a huge page.
    pub page: u64,
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

/// Where everything lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub request_control: usize,
    pub reply_control: usize,
    pub request_flags: usize,
    pub reply_flags: usize,
    pub request_slots: usize,
    pub reply_slots: usize,
    pub request_blocks: usize,
    pub reply_blocks: usize,
    pub segment: usize,
    /// What the segment may grow to.
    pub room: usize,
    /// The length of the whole file.
    pub len: usize,
    /// What that is a multiple of.
    pub page: usize,
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
    /// Lays a rank's file out; `None` if no address space holds it.
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
        let (page, room) = (PAGE as usize, usize::try_from(self.room).ok()?);
        if !(PAGE..=LARGEST_PAGE).contains(&self.page) {
            return None;
        }
        let align = usize::try_from(self.page).ok().filter(|page| page.is_power_of_two())?;
        let layout = Layout {
            request_control: place(size_of::<Control>(), 256)?,
            reply_control: place(size_of::<Control>(), 256)?,
            request_flags: place(first as usize * 4, 256)?,
            reply_flags: place(reply_count as usize * 4, 256)?,
            request_slots: place(requests * size_of::<Slot>(), 4096)?,
            reply_slots: place(replies * size_of::<Slot>(), 4096)?,
            request_blocks: place(offset, page)?,
            reply_blocks: place(reply_count as usize * MAX_MEDIUM, page)?,
            segment: place(room, align)?,
            room,
            len: 0,
            page: align,
            requests,
            replies,
            reply_count,
            classes,
        };
        Some(Layout { len: at.checked_next_multiple_of(align)?, ..layout })
    }
}

impl Layout {
    /// The request block of that number: where it lies among the request blocks, and its size.
    #[inline]
    pub(crate) fn request_block(&self, index: u32) -> Option<(usize, usize)> {
        let class = self.classes.iter().find(|class| index < class.end)?;
        Some((class.offset + (index - class.first) as usize * class.size, class.size))
    }

    /// How many bytes of the file the queues and the first `segment` bytes of the segment take, in the file's pages; `None`
    /// beyond any address space.
    pub(crate) fn promised(&self, segment: u64) -> Option<usize> {
        let end = self.segment.checked_add(usize::try_from(segment).ok()?)?;
        end.checked_next_multiple_of(self.page)
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
        for (depth, total, volume, room) in
            [(12, 64, 768 << 10, 1), (1, 1, 0, 0), (4096, 65536, 1 << 32, 1 << 40)]
        {
            let layout = Shape { depth, total, volume, room, page: PAGE }.lay_out().expect("it fits");
            let ends = [
                layout.request_control + 256,
                layout.reply_control + 256,
                layout.request_flags + layout.request_count() as usize * 4,
                layout.reply_flags + layout.reply_count as usize * 4,
                layout.request_slots + layout.requests * 256,
                layout.reply_slots + layout.replies * 256,
            ];
            let starts = [
                layout.reply_control,
                layout.request_flags,
                layout.reply_flags,
                layout.request_slots,
                layout.reply_slots,
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
            assert_eq!(layout.segment as u64 % PAGE, 0);
            assert!(layout.len as u64 >= layout.segment as u64 + room);
        }
        let shape = Shape { depth: 1, total: 1, volume: 0, room: 5000, page: 2 << 20 };
        let layout = shape.lay_out().expect("it fits");
        assert_eq!((layout.segment % (2 << 20), layout.len % (2 << 20)), (0, 0));
        assert_eq!(layout.promised(0), Some(layout.segment));
        assert_eq!(layout.promised(1), Some(layout.len));
        assert_eq!(layout.promised(u64::MAX), None);
        for (room, page) in [(u64::MAX, PAGE), (0, 0), (0, 4096), (0, 3 << 20), (0, 1 << 40)] {
            assert!(Shape { room, page, ..shape }.lay_out().is_none(), "{room} {page}");
        }
    }
}
