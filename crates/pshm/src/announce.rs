//! What a rank tells all others before they meet, and what follows from what all have told.

use crate::error::PshmError;
use crate::layout::Shape;
use gasworks_bootstrap::host::Parcel;

/// The first bytes of an announcement; the digit is the version of the layout.
const MAGIC: &[u8; 8] = b"gwpshm4\n";
/// How a rank that cannot go on begins its announcement; the cause follows.
pub(crate) const FAILED: &[u8; 8] = b"gwfail1\n";

/// A rank's announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub shape: Shape,
    /// The length of the segment, which may grow to the room that the shape has for it.
    pub segment: u64,
    /// Where the segment is mapped in that rank.
    pub base: u64,
    /// The largest segment that this rank could have had.
    pub largest: u64,
    /// How many bytes of addresses that rank can still map.
    pub space: u64,
    /// The least of what the machine and the control groups leave, as that rank sees it, and who says so; `u64::MAX` where
    /// its segment takes nothing of that.
    pub available: u64,
    pub who: String,
    /// How many meet at each count of the barrier; the leader's is taken.
    pub radix: u64,
}

impl Announcement {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Shape { depth, total, volume, room, page } = self.shape;
        let mut bytes = MAGIC.to_vec();
        let own = [self.segment, self.base, self.largest, self.space, self.available, self.radix];
        for number in [depth.into(), total.into(), volume, room, page].into_iter().chain(own) {
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
        let shape = Shape { depth, total, volume: number()?, room: number()?, page: number()? };
        let segment = number().filter(|&segment| segment <= shape.room)?;
        let (base, largest, space) = (number()?, number()?, number()?);
        let (available, radix) = (number()?, number()?);
        let who = std::str::from_utf8(rest).ok()?.into();
        Some(Self { shape, segment, base, largest, space, available, who, radix })
    }
}

/// Reads what these ranks have announced.
pub(crate) fn read_all(ranks: &[u32], all: &[Parcel]) -> Result<Vec<Announcement>, PshmError> {
    let read = |(&rank, parcel): (&u32, &Parcel)| {
        if let Some(cause) = parcel.bytes.strip_prefix(FAILED) {
            return Err(PshmError::Peer { rank, cause: String::from_utf8_lossy(cause).into_owned() });
        }
        Announcement::decode(&parcel.bytes)
            .ok_or(PshmError::Announcement { rank, what: "another version, or not an announcement" })
    };
    ranks.iter().zip(all).map(read).collect()
}

/// All segments of the host together, but for those in the kernel's pool of huge pages, against the least that any rank was told: the
/// same sum on every rank, so that all come to the same answer.
pub(crate) fn check_memory(all: &[Announcement]) -> Result<(), PshmError> {
    let held: Vec<_> = all.iter().filter(|rank| rank.available < u64::MAX).collect();
    let asked = held.iter().fold(0u64, |sum, rank| sum.saturating_add(rank.segment));
    if let Some(least) = held.iter().min_by_key(|rank| rank.available)
        && asked > least.available
    {
        let (ranks, who) = (held.len() as u32, least.who.clone());
        return Err(PshmError::Memory { ranks, asked, have: least.available, who });
    }
    Ok(())
}

/// The files of the ranks that share memory against the fewest addresses that any of them has: the same on each of them.
pub(crate) fn check_addresses(named: &[u32], all: &[Announcement]) -> Result<(), PshmError> {
    let ranks = all.len() as u32;
    let file = |rank: &Announcement| rank.shape.lay_out().map_or(u64::MAX, |layout| layout.len as u64);
    let asked = all.iter().fold(0u64, |sum, rank| sum.saturating_add(file(rank)));
    match named.iter().zip(all).min_by_key(|(_, theirs)| theirs.space) {
        Some((&rank, least)) if asked > least.space => {
            Err(PshmError::AddressSpace { rank, ranks, asked, have: least.space })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(segment: u64, available: u64) -> Announcement {
        let shape = Shape { depth: 12, total: 64, volume: 1 << 20, room: 2 * segment, page: 65536 };
        let who = "the machine".into();
        let (largest, space) = (1 << 40, 1 << 47);
        Announcement { shape, segment, base: 0x7000_0000, largest, space, available, who, radix: 8 }
    }

    #[test]
    fn announcements_survive_the_way_and_nothing_else_does() {
        let sent = announcement(4096, 1 << 40);
        let bytes = sent.encode();
        for cut in 0..bytes.len() - sent.who.len() {
            assert_eq!(Announcement::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Announcement::decode(&bytes), Some(sent.clone()));
        let longer = Announcement { segment: sent.shape.room + 1, ..sent };
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
        let file = all[0].shape.lay_out().expect("it fits").len as u64;
        all[1].space = 2 * file;
        assert!(check_addresses(&[3, 7], &all).is_ok());
        all[1].space -= 1;
        let text = check_addresses(&[3, 7], &all).expect_err("too much").to_string();
        assert!(
            text.contains("ulimit -v") && text.contains("rank 7") && text.contains(&(2 * file).to_string()),
            "{text}"
        );
    }
}
