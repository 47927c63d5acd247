//! The file with the memory of all: made by the rank that leads the host, after what all have announced, and given to those that
//! share it.

use crate::announce::{self, Announcement, FAILED};
use crate::error::PshmError;
use crate::layout::{FileLayout, in_pages};
use crate::prepare;
use gasworks_bootstrap::host::{Parcel, Parts};
use gasworks_core::Rank;
use gasworks_os::OsError;
use gasworks_os::limits::{file_size, total_memory};
use gasworks_os::memfd::{self, MemFd};
use gasworks_sync::kill_point;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// What the rank that leads a host gives those that share memory.
pub(crate) enum Given {
    /// The file with the memory of all.
    File(OwnedFd),
    /// None yet: the pool of huge pages has not enough for all, so that each finds its sizes again, without it.
    NoPool,
}

impl Given {
    const FILE: &[u8] = b"file";
    const NO_POOL: &[u8] = b"pool";
    const NOTHING: &[u8] = b"none";

    /// To so many ranks.
    fn to(ranks: usize, what: &[u8], file: Option<MemFd>) -> (usize, Parcel) {
        (ranks, Parcel { bytes: what.to_vec(), fds: file.into_iter().map(MemFd::into_fd).collect() })
    }

    /// What `leader` gave; the pool is asked once.
    pub(crate) fn read(leader: Rank, given: Parcel, pool: bool) -> Result<Self, PshmError> {
        if let Some(cause) = given.bytes.strip_prefix(FAILED) {
            return Err(PshmError::Peer { rank: leader, cause: String::from_utf8_lossy(cause).into_owned() });
        }
        let mut fds = given.fds.into_iter();
        match (&given.bytes[..], fds.next(), fds.next()) {
            (Self::FILE, Some(file), None) => Ok(Self::File(file)),
            (Self::NO_POOL, None, None) if pool => Ok(Self::NoPool),
            _ => Err(PshmError::Descriptor { rank: leader, what: "it gave something else".into() }),
        }
    }
}

/// At the rank that leads the host: makes the file of each `most` of its ranks, after what all have announced. An error there is told to
/// all, and kept here in `failed`; what all find out by themselves is left to them.
pub(crate) fn give(
    job: &str,
    ranks: &[Rank],
    most: usize,
    tries: u32,
    all: &Parts,
    failed: &mut Option<PshmError>,
) -> Vec<(usize, Parcel)> {
    let to_all = |what| vec![Given::to(ranks.len(), what, None)];
    let Ok((announced, layouts)) = announce::read_all(ranks, all).and_then(|all| {
        announce::check_memory(&all)?;
        let layouts = announce::lay_all_out(ranks, &all, most)?;
        Ok((all, layouts))
    }) else {
        return to_all(Given::NOTHING);
    };
    let make = || {
        let from_pool = announce::from_pool(ranks, &announced)?;
        if !from_pool && announced.iter().any(|rank| rank.pooled) {
            return Ok(None);
        }
        let name = format!("gasworks job {job}");
        let parts = layouts.iter().zip(announced.chunks(most.max(1)));
        let parts: Vec<_> = parts.map(|(layout, ranks)| promised(layout, ranks)).collect();
        let make = |(layout, parts)| make(&name, layout, from_pool.then_some(parts));
        let made = || layouts.iter().zip(&parts).map(make).collect::<Result<Vec<_>, _>>();
        let files = prepare::patiently(tries, || match made() {
            Err(cause) if from_pool && announced.iter().any(|rank| rank.required) => {
                let pages = layouts.iter().zip(&parts).map(|(layout, parts)| pages_of(parts, layout.page));
                Err(prepare::lacking(pages.sum(), None, Some(cause)))
            }
            Err(error) if from_pool => {
                tracing::debug!(%error, "no huge pages from the pool");
                Ok(None)
            }
            made => Ok(Some(made?)),
        })?;
        kill_point!("pshm.open.created");
        Ok(files)
    };
    match make() {
        Ok(Some(files)) => {
            let groups = ranks.chunks(most.max(1)).zip(files);
            groups.map(|(group, file)| Given::to(group.len(), Given::FILE, Some(file))).collect()
        }
        Ok(None) => to_all(Given::NO_POOL),
        Err(error) => {
            let told = [&FAILED[..], PshmError::to_string(&error).as_bytes()].concat();
            *failed = Some(error);
            to_all(&told)
        }
    }
}

/// The parts of a file to which pages of the pool are promised: queues and segments, not the room beyond.
fn promised(layout: &FileLayout, ranks: &[Announcement]) -> Vec<Range<usize>> {
    let segments = layout.places.iter().zip(ranks);
    let segments =
        segments.map(|(place, rank)| place.segment..place.segment + in_pages(rank.segment, layout.page));
    std::iter::once(0..layout.segments).chain(segments).filter(|part| !part.is_empty()).collect()
}

fn pages_of(parts: &[Range<usize>], page: usize) -> u64 {
    parts.iter().map(|part| part.len() / page).sum::<usize>() as u64
}

/// How many times the machine's memory the file has room for that nothing is laid out in, for the regions that are created later. More than
/// once, so that free parts of it need not lie side by side. It takes neither memory nor addresses.
const ROOM: u64 = 4;

/// How long a file is, with as much room for regions as the limit on files leaves.
fn with_regions(layout: &FileLayout) -> usize {
    let most = file_size().map_or(u64::MAX, |limit| limit.bytes).min(i64::MAX as u64);
    let room = total_memory().bytes.saturating_mul(ROOM).min(most.saturating_sub(layout.len as u64));
    layout.len + room as usize / layout.page * layout.page
}

/// A file, of the pool's pages if some are to be promised to it.
fn make(name: &str, layout: &FileLayout, promised: Option<&Vec<Range<usize>>>) -> Result<MemFd, OsError> {
    let len = with_regions(layout);
    let Some(promised) = promised else { return memfd::create(name, len) };
    let file = memfd::create_huge(name, len)?;
    promised.iter().try_for_each(|part| file.promise(part.start, part.end))?;
    Ok(file)
}
