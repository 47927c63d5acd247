//! Opening the transport: announce, check, meet, map.
//!
//! A rank that cannot go on says so in its announcement, so that all ranks end with the same cause instead of waiting
//! for it.

use crate::barrier::ShmBarrier;
use crate::error::PshmError;
use crate::layout::{Card, PAGE, Shape};
use crate::meet::{self, LEADER, Lead, Nonce};
use crate::region::Host;
use crate::settings;
use crate::wire::Pshm;
use gasworks_bootstrap::Bootstrap;
use gasworks_memory::{Peer, PeerFlags, PeerTable};
use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_os::{limits, random};
use gasworks_sync::{Mode, RawBytes, kill_point};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// What the transport is to provide for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of this rank's segment in bytes.
    pub segment: u64,
    /// How many requests may be out to one peer; the queue of requests is sized by it.
    pub depth: u32,
    /// How many requests may be out to all peers; the room for replies is sized by it, and `core` must keep to it.
    pub total: u32,
    /// How many bytes of payload may be out to one peer; the number of large blocks follows from it.
    pub volume: u64,
}

/// An open transport.
#[derive(Debug)]
pub struct Opened<M: Mode> {
    /// It moves active messages.
    pub wire: Pshm<M>,
    /// Where everybody's segment is mapped here.
    pub peers: PeerTable,
    /// The barrier of the ranks.
    pub barrier: ShmBarrier,
}

/// The first bytes of an announcement; the digit is the version of the layout.
const MAGIC: &[u8; 8] = b"gwpshm2\n";

/// What a rank tells all others before they meet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Announcement {
    nonce: Nonce,
    shape: Shape,
    /// Where the segment is mapped in that rank.
    base: u64,
    /// The least of what the machine and the control groups leave, as that rank sees it, and who says so.
    available: u64,
    who: String,
    /// How many meet at each count of the barrier; the leader's is taken.
    radix: u64,
    /// What two processes have in common only if they can share memory and meet.
    place: String,
}

impl Announcement {
    fn encode(&self) -> Vec<u8> {
        let Shape { depth, total, volume, segment } = self.shape;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.nonce);
        for number in [depth.into(), total.into(), volume, segment, self.base, self.available, self.radix] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(format!("{}\0{}", self.who, self.place).into_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (nonce, mut rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<16>()?;
        let mut number = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let (depth, total) = (u32::try_from(number()?).ok()?, u32::try_from(number()?).ok()?);
        let shape = Shape { depth, total, volume: number()?, segment: number()? };
        let (base, available, radix) = (number()?, number()?, number()?);
        let (who, place) = std::str::from_utf8(rest).ok()?.split_once('\0')?;
        let (who, place) = (who.into(), place.into());
        Some(Self { nonce: *nonce, shape, base, available, who, radix, place })
    }
}

/// How a rank that cannot go on begins its announcement; the cause follows.
const FAILED: &[u8; 8] = b"gwfail1\n";

/// What a rank has ready when it announces itself.
struct Prepared {
    file: MemFd,
    mapping: Mapping,
    lead: Option<Lead>,
    announcement: Announcement,
    allowed: Duration,
}

/// Collective: opens the transport between all ranks of the job.
///
/// # Errors
/// See [`PshmError`]; on every rank, within the time that `GASWORKS_ATTACH_TIMEOUT` allows.
pub fn open<M: Mode>(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Opened<M>, PshmError> {
    let (me, ranks) = (bootstrap.rank(), bootstrap.size());
    let prepared = prepare(bootstrap, config);
    kill_point!("pshm.open.prepared");
    let mine = match &prepared {
        Ok(prepared) => prepared.announcement.encode(),
        Err(error) => [&FAILED[..], error.to_string().as_bytes()].concat(),
    };
    let all = bootstrap.exchange("pshm", &mine)?;
    kill_point!("pshm.open.exchanged");
    let Prepared { file, mapping, lead, announcement, allowed } = prepared?;
    let all = read_all(&all, me, ranks, &announcement)?;
    check_memory(&all)?;
    let nonces: Vec<Nonce> = all.iter().map(|rank| rank.nonce).collect();
    let met = meet::exchange(me, &file, &nonces, lead, allowed)?;
    let cards = map_cards(met.cards.as_fd(), ranks)?;

    let mut mine = Some(mapping);
    let mut mapped = Vec::with_capacity(all.len());
    for (rank, (fd, theirs)) in (0..).zip(met.files.iter().zip(&all)) {
        let wrong = |what: String| PshmError::Descriptor { rank, what };
        let layout =
            theirs.shape.lay_out().ok_or_else(|| wrong("its sizes are beyond any address space".into()))?;
        if !memfd::is_sealed(fd.as_fd()) {
            return Err(wrong("its size is not sealed".into()));
        }
        let mapping = match mine.take_if(|_| rank == me) {
            Some(mapping) => mapping,
            None => memfd::map(fd.as_fd(), layout.len).map_err(|e| wrong(e.to_string()))?,
        };
        mapped.push((mapping, layout, theirs.shape.segment));
    }
    drop(met);
    let radix = all.get(LEADER as usize).map_or(0, |leader| leader.radix) as usize;
    let host = Arc::new(Host::new(me, bootstrap.job(), radix, cards, mapped)?);
    kill_point!("pshm.open.mapped");
    let peers = (0..).zip(&all).map(|(rank, theirs)| peer(&host, rank, theirs)).collect();
    let peers = PeerTable::new(peers, host.clone());
    tracing::debug!(me, ranks, segment = announcement.shape.segment, "shared-memory transport open");
    let wire = Pshm::new(host.clone(), all.iter().map(|rank| rank.shape.segment).max().unwrap_or(0));
    Ok(Opened { wire, peers, barrier: ShmBarrier::new(host) })
}

fn map_cards(fd: BorrowedFd<'_>, ranks: u32) -> Result<Mapping, PshmError> {
    let wrong =
        |what: String| PshmError::Descriptor { rank: LEADER, what: format!("the file of cards: {what}") };
    if !memfd::is_sealed(fd) {
        return Err(wrong("its size is not sealed".into()));
    }
    memfd::map(fd, Card::file_len(ranks)).map_err(|e| wrong(e.to_string()))
}

fn peer(host: &Host, rank: u32, theirs: &Announcement) -> Peer {
    let region = &host.ranks[rank as usize];
    let len = theirs.shape.segment;
    let mapped = region.bytes.slice(region.layout.segment, len as usize).filter(|bytes| !bytes.is_empty());
    let own = if rank == host.me { PeerFlags::SELF } else { PeerFlags::empty() };
    Peer {
        mapped: mapped.unwrap_or(RawBytes::EMPTY),
        len,
        remote_base: theirs.base,
        key: Vec::new(),
        flags: PeerFlags::MAPPED | own,
    }
}

/// Everything that can fail without the others.
fn prepare(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Prepared, PshmError> {
    let (me, ranks) = (bootstrap.rank(), bootstrap.size());
    let allowed = settings::attach_timeout()?;
    let max = u32::from(u16::MAX);
    if ranks > max {
        return Err(PshmError::TooManyRanks { ranks, max });
    }
    let limits::Limit { bytes: available, who } = limits::available_memory();
    let too_large =
        || PshmError::Memory { ranks: 1, asked: config.segment, have: available, who: who.clone() };
    if config.segment > available {
        return Err(too_large());
    }
    let page = memfd::page_size() as u64;
    let Config { depth, total, volume, .. } = *config;
    let segment = config.segment.checked_next_multiple_of(page).ok_or_else(too_large)?;
    let shape = Shape { depth, total, volume, segment };
    let layout = shape.lay_out().ok_or_else(too_large)?;
    let file = memfd::create(&format!("gasworks job {} rank {me}", bootstrap.job()), layout.len)?;
    let mapping = file.map()?;
    kill_point!("pshm.open.created");
    let base = mapping.as_ptr() as u64 + layout.segment as u64;
    let nonce = random::nonce()?;
    let lead = match me {
        LEADER => Some(Lead {
            listener: if ranks > 1 { Some(meet::listen(&nonce)?) } else { None },
            cards: memfd::create(&format!("gasworks job {} cards", bootstrap.job()), Card::file_len(ranks))?,
        }),
        _ => None,
    };
    let place = place();
    let announcement =
        Announcement { nonce, shape, base, available, who, radix: settings::barrier_radix(ranks)?, place };
    Ok(Prepared { file, mapping, lead, announcement, allowed })
}

/// Names what processes must have in common: the boot of a kernel and a network name space.
fn place() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let net = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), net.display())
}

fn read_all(
    all: &[Vec<u8>],
    me: u32,
    ranks: u32,
    mine: &Announcement,
) -> Result<Vec<Announcement>, PshmError> {
    if all.len() != ranks as usize {
        return Err(PshmError::Announcement {
            rank: me,
            what: "the exchange did not return one from each rank",
        });
    }
    let read = |(rank, bytes): (u32, &Vec<u8>)| {
        if let Some(cause) = bytes.strip_prefix(FAILED) {
            return Err(PshmError::Peer { rank, cause: String::from_utf8_lossy(cause).into_owned() });
        }
        let theirs = Announcement::decode(bytes)
            .ok_or(PshmError::Announcement { rank, what: "another version, or not an announcement" })?;
        if theirs.place != mine.place {
            return Err(PshmError::Elsewhere { rank, me });
        }
        Ok(theirs)
    };
    (0..).zip(all).map(read).collect()
}

/// All segments of the host together against the least that any rank was told: the same sum on every rank, so that
/// all come to the same answer.
fn check_memory(all: &[Announcement]) -> Result<(), PshmError> {
    let asked = all.iter().fold(0u64, |sum, rank| sum.saturating_add(rank.shape.segment));
    match all.iter().min_by_key(|rank| rank.available) {
        Some(least) if asked > least.available => Err(PshmError::Memory {
            ranks: all.len() as u32,
            asked,
            have: least.available,
            who: least.who.clone(),
        }),
        _ => Ok(()),
    }
}

/// Keeps the alignment that a layout promises in step with what the system maps.
const _: () = assert!(PAGE.is_multiple_of(4096));

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(segment: u64, available: u64) -> Announcement {
        let shape = Shape { depth: 12, total: 64, volume: 1 << 20, segment };
        let (who, place) = ("the machine".into(), "here".into());
        Announcement { nonce: [7; 16], shape, base: 0x7000_0000, available, who, radix: 8, place }
    }

    #[test]
    fn announcements_survive_the_way_and_nothing_else_does() {
        let sent = announcement(4096, 1 << 40);
        let bytes = sent.encode();
        assert_eq!(Announcement::decode(&bytes), Some(sent));
        for cut in 0..bytes.len() - "here".len() - 1 {
            assert_eq!(Announcement::decode(&bytes[..cut]), None, "cut at {cut}");
        }
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
    }
}
