//! The file with the memory of all: made by the rank that leads the host, after what all have announced, and given to those that
//! share it.

use crate::announce::{self, Announcement, FAILED};
use crate::error::PshmError;
use crate::layout::{FileLayout, in_pages};
use crate::prepare;
use gasworks_bootstrap::host::Parcel;
use gasworks_core::Rank;
use gasworks_os::huge;
use gasworks_os::memfd::{self, MemFd};
use gasworks_sync::kill_point;
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
    all: &[Vec<u8>],
    failed: &mut Option<PshmError>,
) -> Vec<(usize, Parcel)> {
    let groups = || ranks.chunks(most.max(1));
    let announced = announce::read_all(ranks, all).and_then(|all| announce::check_memory(&all).map(|()| all));
    let Ok(announced) = announced else {
        return groups().map(|group| Given::to(group.len(), Given::NOTHING, None)).collect();
    };
    let make = |(group, announced): (&[Rank], &[Announcement])| {
        let Ok(layout) = announce::lay_out(group, announced) else {
            return Ok(Given::to(group.len(), Given::NOTHING, None));
        };
        let from_pool = announce::from_pool(group, announced)?;
        let mut made = None;
        if from_pool || !announced.iter().any(|rank| rank.pooled) {
            let name = format!("gasworks job {job}");
            made = prepare::patiently(tries, || make(&name, &layout, announced, from_pool))?;
            kill_point!("pshm.open.created");
        }
        Ok(Given::to(group.len(), if made.is_some() { Given::FILE } else { Given::NO_POOL }, made))
    };
    let made: Result<Vec<_>, PshmError> = groups().zip(announced.chunks(most.max(1))).map(make).collect();
    match made {
        // All ranks of the host find their sizes again, or none.
        Ok(made) if made.iter().any(|(_, given)| given.bytes == Given::NO_POOL) => {
            vec![Given::to(ranks.len(), Given::NO_POOL, None)]
        }
        Ok(made) => made,
        Err(error) => {
            let told = [&FAILED[..], error.to_string().as_bytes()].concat();
            *failed = Some(error);
            vec![Given::to(ranks.len(), &told, None)]
        }
    }
}

/// The file of ranks that share memory, by the rank that leads. Pages of the pool are promised to queues and segments, not to the room
/// beyond; `None` where the pool has not so many, and nobody requires them.
fn make(
    name: &str,
    layout: &FileLayout,
    ranks: &[Announcement],
    from_pool: bool,
) -> Result<Option<MemFd>, PshmError> {
    if !from_pool {
        return Ok(Some(memfd::create(name, layout.len)?));
    }
    let segments = layout
        .places
        .iter()
        .zip(ranks)
        .map(|(place, rank)| place.segment..place.segment + in_pages(rank.segment, layout.page));
    let parts = std::iter::once(0..layout.segments).chain(segments).filter(|part| !part.is_empty());
    let needed = parts.clone().map(|part| part.len() / layout.page).sum::<usize>() as u64;
    let made = memfd::create_huge(name, layout.len).and_then(|file| {
        parts.clone().try_for_each(|part| file.promise(part.start, part.end)).map(|()| file)
    });
    match made {
        Ok(file) => Ok(Some(file)),
        Err(cause) if ranks.iter().any(|rank| rank.required) => Err(prepare::lacking(
            needed,
            huge::pool_now().unwrap_or(huge::Pool { page: layout.page, free: 0 }),
            1,
            Some(cause),
        )),
        Err(error) => {
            tracing::debug!(%error, "no huge pages from the pool");
            Ok(None)
        }
    }
}
