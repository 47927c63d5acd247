//! Opening the transport: announce, check, meet, map.
//!
//! A rank that cannot go on says so in its announcement, so that all ranks end with the same cause instead of waiting
//! for it.

use crate::announce::{self, Announcement, FAILED};
use crate::barrier::ShmBarrier;
use crate::error::PshmError;
use crate::grow::Segments;
use crate::layout::Card;
use crate::memory::{Memory, Pages};
use crate::prepare::{Prepared, prepare};
use crate::region::Host;
use crate::wire::Pshm;
use gasworks_bootstrap::Bootstrap;
use gasworks_core::observe::Witness;
use gasworks_memory::{Largest, Peer, PeerFlags, PeerTable};
use gasworks_os::memfd::{self, Mapping};
use gasworks_sync::{Mode, RawBytes, kill_point};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What the transport is to provide for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// This rank's segment, and where its memory comes from.
    pub memory: Memory,
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
    pub barrier: ShmBarrier<M>,
    /// What sees where this rank is in it.
    pub witness: Arc<dyn Witness>,
    /// What this rank's memory lies in.
    pub pages: Pages,
}

/// Collective: opens the transport between all ranks of the job.
///
/// # Errors
/// See [`PshmError`]; on every rank, within the time that `GASWORKS_ATTACH_TIMEOUT` allows.
pub fn open<M: Mode>(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Opened<M>, PshmError> {
    let (me, ranks) = (bootstrap.rank(), bootstrap.size());
    let (host, hosts) = (bootstrap.host()?, bootstrap.hosts()?);
    if let Some(rank) = (0..ranks).find(|&rank| hosts.of(rank) != hosts.of(0)) {
        return Err(PshmError::Elsewhere { hosts: hosts.count(), rank });
    }
    let prepared = prepare(bootstrap, host.leads(), config);
    kill_point!("pshm.open.prepared");
    // The leader's second descriptor is that of the cards.
    let (mine, fds, allowed) = match &prepared {
        Ok(Prepared { file, cards, announcement, allowed, .. }) => (
            announcement.encode(),
            [file].into_iter().chain(cards).map(AsFd::as_fd).collect(),
            Some(*allowed),
        ),
        Err(error) => ([&FAILED[..], error.to_string().as_bytes()].concat(), Vec::new(), None),
    };
    let gathered = host.all_gather(&mine, &fds, allowed);
    kill_point!("pshm.open.gathered");
    let Prepared { file, mapping, pages, announcement, limit, allowed, .. } = prepared?;
    let gathered = gathered.map_err(|cause| PshmError::Apart { cause, seconds: allowed.as_secs_f64() })?;
    let all = announce::read_all(&gathered)?;
    announce::check_memory(&all)?;
    let leader = host.leader();
    let (mut files, mut cards) = (Vec::with_capacity(all.len()), None);
    for (rank, parcel) in (0..).zip(gathered) {
        let count = parcel.fds.len();
        let mut fds = parcel.fds.into_iter();
        let wanted = if rank == leader { 2 } else { 1 };
        let (Some(file), true) = (fds.next(), count == wanted) else {
            let what = format!("{count} descriptors came with it, where {wanted} belong");
            return Err(PshmError::Descriptor { rank, what });
        };
        files.push(file);
        cards = cards.or(fds.next());
    }
    let cards = cards.ok_or_else(|| PshmError::Descriptor { rank: leader, what: "no cards came".into() })?;
    let cards = map_cards(leader, cards.as_fd(), ranks)?;

    let mut mine = Some(mapping);
    let mut mapped = Vec::with_capacity(all.len());
    for (rank, (fd, theirs)) in (0..).zip(files.iter().zip(&all)) {
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
        mapped.push((mapping, layout));
    }
    drop(files);
    let radix = all.get(leader as usize).map_or(0, |leader| leader.radix) as usize;
    let host = Arc::new(Host::new(me, bootstrap.job(), radix, cards, mapped)?);
    kill_point!("pshm.open.mapped");
    let peers = (0..).zip(&all).map(|(rank, theirs)| peer(&host, rank, theirs)).collect();
    let largest = Largest {
        local: announcement.largest,
        global: all.iter().map(|rank| rank.largest).min().unwrap_or(announcement.largest),
    };
    let own = (pages, file.into_fd());
    let segments = Segments::new(host.clone(), announcement.segment, config.memory, limit, own, largest);
    segments.populate_all()?;
    kill_point!("pshm.open.populated");
    let peers = PeerTable::growing(peers, Arc::new(segments));
    tracing::debug!(me, ranks, segment = announcement.segment, ?pages, "shared-memory transport open");
    let wire = Pshm::new(host.clone(), all.iter().map(|rank| rank.shape.room).max().unwrap_or(0))?;
    Ok(Opened { wire, peers, witness: host.clone(), barrier: ShmBarrier::new(host), pages })
}

fn map_cards(leader: u32, fd: BorrowedFd<'_>, ranks: u32) -> Result<Mapping, PshmError> {
    let wrong =
        |what: String| PshmError::Descriptor { rank: leader, what: format!("the file of cards: {what}") };
    if !memfd::is_sealed(fd) {
        return Err(wrong("its size is not sealed".into()));
    }
    memfd::map(fd, Card::file_len(ranks)).map_err(|e| wrong(e.to_string()))
}

fn peer(host: &Host, rank: u32, theirs: &Announcement) -> Peer {
    let region = &host.ranks[rank as usize];
    let mapped = region.bytes.slice(region.layout.segment, region.layout.room);
    let own = if rank == host.me { PeerFlags::SELF } else { PeerFlags::empty() };
    Peer {
        mapped: mapped.unwrap_or(RawBytes::EMPTY),
        len: theirs.segment,
        remote_base: theirs.base,
        key: Vec::new(),
        flags: PeerFlags::MAPPED | own,
    }
}
