//! What a rank tells all others before they meet, and what follows from what all have told.

use crate::error::PshmError;
use crate::layout::{FileLayout, Shape, in_pages};
use gasworks_bootstrap::host::Parts;
use std::sync::Arc;

/// The first bytes of an announcement; the digit is the version of the layout.
const MAGIC: &[u8; 8] = b"gwpshm6\n";
/// How a rank that cannot go on begins its announcement; the cause follows.
pub(crate) const FAILED: &[u8; 8] = b"gwfail1\n";

/// A rank's announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub shape: Shape,
    /// The length of the segment.
    pub segment: u64,
    /// What that may grow to, in whole pages.
    pub room: u64,
    /// What it is to be aligned to.
    pub page: u64,
    /// Whether its memory is to come from the kernel's pool of huge pages, which are as large, and from nowhere else.
    pub pooled: bool,
    pub required: bool,
    /// Where the segment is going to be mapped in that rank.
    pub base: u64,
    /// The largest segment that this rank could have had.
    pub largest: u64,
    /// How many bytes of addresses that rank can still map.
    pub space: u64,
    /// The least of what the machine and the control groups leave, as that rank sees it, and who says so; `u64::MAX` where
    /// its segment takes nothing of that.
    pub available: u64,
    pub who: Arc<str>,
    /// How many meet at each count of the barrier; the leader's is taken.
    pub radix: u32,
}

impl Announcement {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Shape { depth, total, volume } = self.shape;
        let mut bytes = MAGIC.to_vec();
        let memory = [self.segment, self.room, self.page, self.pooled.into(), self.required.into()];
        let own = [self.base, self.largest, self.space, self.available, self.radix.into()];
        for number in [depth.into(), total.into(), volume].into_iter().chain(memory).chain(own) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.who.as_bytes());
        bytes
    }

    /// `None` for what is no announcement, or one of a segment larger than its room.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut number = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let (depth, total) = (u32::try_from(number()?).ok()?, u32::try_from(number()?).ok()?);
        let shape = Shape { depth, total, volume: number()? };
        let (segment, room, page) = (number()?, number()?, number()?);
        let (pooled, required) = (number()? > 0, number()? > 0);
        let (base, largest, space) = (number()?, number()?, number()?);
        let (available, radix) = (number()?, u32::try_from(number()?).ok()?);
        let who = std::str::from_utf8(rest).ok()?.into();
        let read = Self {
            shape,
            segment,
            room,
            page,
            pooled,
            required,
            base,
            largest,
            space,
            available,
            who,
            radix,
        };
        (segment <= room).then_some(read)
    }
}

/// Reads what these ranks have announced.
pub(crate) fn read_all(ranks: &[u32], all: &Parts) -> Result<Vec<Announcement>, PshmError> {
    let mut read: Vec<Announcement> = Vec::with_capacity(ranks.len());
    for (&rank, bytes) in ranks.iter().zip(all.iter()) {
        if let Some(cause) = bytes.strip_prefix(FAILED) {
            return Err(PshmError::Peer { rank, cause: String::from_utf8_lossy(cause).into_owned() });
        }
        let mut announced = Announcement::decode(bytes)
            .ok_or(PshmError::Announcement { rank, what: "another version, or not an announcement" })?;
        // Most are told the same by the same: there may be many ranks, and each keeps all this for a while.
        if let Some(last) = read.last().filter(|last| last.who == announced.who) {
            announced.who = last.who.clone();
        }
        read.push(announced);
    }
    Ok(read)
}

/// All segments of the host together, but for those in the kernel's pool of huge pages, against the least that any rank was told: the
/// same sum on every rank, so that all come to the same answer.
pub(crate) fn check_memory(all: &[Announcement]) -> Result<(), PshmError> {
    let held: Vec<_> = all.iter().filter(|rank| rank.available < u64::MAX).collect();
    let asked = held.iter().fold(0u64, |sum, rank| sum.saturating_add(rank.segment));
    if let Some(least) = held.iter().min_by_key(|rank| rank.available)
        && asked > least.available
    {
        let (ranks, who) = (held.len() as u32, least.who.to_string());
        return Err(PshmError::Memory { ranks, asked, have: least.available, who });
    }
    Ok(())
}

/// Where everything lies in the file of ranks that share memory; an error where it takes more addresses than one of them has. The same
/// on each of them.
pub(crate) fn lay_out(named: &[u32], all: &[Announcement]) -> Result<FileLayout, PshmError> {
    let shapes: Vec<_> = all.iter().map(|rank| (rank.shape, rank.room)).collect();
    let page = all.iter().map(|rank| rank.page).max().unwrap_or(0);
    let file = FileLayout::of(&shapes, page);
    // Each has its own segment once more, where all know it to be, if there are others; with a page behind it.
    let again = |rank: &Announcement| match rank.room {
        room if room > 0 && all.len() > 1 => {
            in_pages(room.saturating_add(rank.page), usize::try_from(rank.page).unwrap_or(1).max(1)) as u64
        }
        _ => 0,
    };
    let len = file.as_ref().map_or(u64::MAX, |file| file.len as u64);
    let asked = |rank| len.saturating_add(again(rank));
    let wanting = named.iter().zip(all).find(|(_, theirs)| asked(theirs) > theirs.space);
    match (wanting, file) {
        (None, Some(file)) => Ok(file),
        (Some((&rank, theirs)), _) => {
            let (ranks, asked, have) = (all.len() as u32, asked(theirs), theirs.space);
            Err(PshmError::AddressSpace { rank, ranks, asked, have })
        }
        (None, None) => {
            Err(PshmError::Unbounded { room: all.iter().map(|rank| rank.room).max().unwrap_or(0) })
        }
    }
}

/// Where everything lies in each file of a host's ranks, of which `most` at a time have one. The same on each of them.
pub(crate) fn lay_all_out(
    named: &[u32],
    all: &[Announcement],
    most: usize,
) -> Result<Vec<FileLayout>, PshmError> {
    named.chunks(most.max(1)).zip(all.chunks(most.max(1))).map(|(named, all)| lay_out(named, all)).collect()
}

/// Whether all want huge pages of the kernel's pool; an error where some do without, and others cannot.
pub(crate) fn from_pool(named: &[u32], all: &[Announcement]) -> Result<bool, PshmError> {
    let mut ranks = named.iter().zip(all);
    let Some((&other, _)) = ranks.clone().find(|(_, theirs)| !theirs.pooled) else { return Ok(true) };
    match ranks.find(|(_, theirs)| theirs.pooled && theirs.required) {
        Some((&rank, _)) => Err(PshmError::Mixed { rank, other }),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(segment: u64, available: u64) -> Announcement {
        let shape = Shape { depth: 12, total: 64, volume: 1 << 20 };
        let who = "the machine".into();
        let (largest, space, room) = (1 << 40, 1 << 47, 2 * segment);
        let base = 0x7000_0000;
        let (page, pooled, required) = (65536, true, false);
        Announcement {
            shape,
            segment,
            room,
            page,
            pooled,
            required,
            base,
            largest,
            space,
            available,
            who,
            radix: 8,
        }
    }

    #[test]
    fn announcements_survive_the_way_and_nothing_else_does() {
        let sent = announcement(4096, 1 << 40);
        let bytes = sent.encode();
        for cut in 0..bytes.len() - sent.who.len() {
            assert_eq!(Announcement::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Announcement::decode(&bytes), Some(sent.clone()));
        let longer = Announcement { segment: sent.room + 1, ..sent };
        assert_eq!(Announcement::decode(&longer.encode()), None, "a segment beyond its room");
    }

    #[test]
    fn the_sum_of_segments_is_held_against_the_least_limit() {
        assert!(check_memory(&[announcement(600, 1201), announcement(600, 1200)]).is_ok());
        let refused =
            check_memory(&[announcement(600, 5000), announcement(601, 1200)]).expect_err("too much");
        let text = refused.to_string();
        assert!(
            text.contains("GASWORKS_SEGMENT_SIZE") && text.contains("1201") && text.contains("1200"),
            "{text}"
        );
        // One whose pages come from the pool neither takes of that nor leaves any.
        let pooled = announcement(600, u64::MAX);
        assert!(check_memory(&[pooled.clone(), announcement(1200, 1200)]).is_ok());
        let refused = check_memory(&[pooled, announcement(1201, 1200)]).expect_err("too much");
        assert!(matches!(refused, PshmError::Memory { ranks: 1, asked: 1201, have: 1200, .. }), "{refused}");
    }

    #[test]
    fn the_sum_of_files_is_held_against_the_fewest_addresses() {
        let mut all = [announcement(600, 5000), announcement(600, 5000)];
        let file = lay_out(&[3, 7], &all).expect("it fits").len as u64;
        // In pages of 64 KiB, with one behind it.
        all[1].space = file + 2 * 65536;
        assert!(lay_out(&[3, 7], &all).is_ok());
        all[1].space -= 1;
        let text = lay_out(&[3, 7], &all).expect_err("too much").to_string();
        let asked = (file + 2 * 65536).to_string();
        assert!(text.contains("ulimit -v") && text.contains("rank 7") && text.contains(&asked), "{text}");
        // Who is alone has its segment once.
        let mut alone = [announcement(600, 5000)];
        alone[0].space = lay_out(&[3], &alone).expect("it fits").len as u64;
        assert!(lay_out(&[3], &alone).is_ok());
        all[0].room = u64::MAX;
        assert!(matches!(lay_out(&[3, 7], &all), Err(PshmError::AddressSpace { rank: 3, .. })));
    }

    #[test]
    fn pages_come_from_the_pool_for_all_or_for_none() {
        let rank = |(pooled, required)| Announcement { pooled, required, ..announcement(600, 5000) };
        let (none, wish, must) = (rank((false, false)), rank((true, false)), rank((true, true)));
        for (all, wanted) in [
            ([&wish, &must], Ok(true)),
            ([&none, &none], Ok(false)),
            ([&none, &wish], Ok(false)),
            ([&wish, &none], Ok(false)),
            ([&none, &must], Err("rank 7 requires huge pages, and rank 3 does not use them")),
            ([&must, &none], Err("rank 3 requires huge pages, and rank 7 does not use them")),
        ] {
            let found = from_pool(&[3, 7], &all.map(Clone::clone)).map_err(|error| error.to_string());
            match wanted {
                Ok(wanted) => assert_eq!(found, Ok(wanted)),
                Err(cause) => assert!(found.as_ref().is_err_and(|found| found.contains(cause)), "{found:?}"),
            }
        }
    }
}
