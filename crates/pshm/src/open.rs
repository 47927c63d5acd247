//! Opening the transport: announce, check, meet, map.
//!
//! A rank that cannot go on says so in its announcement, so that all ranks end with the same cause instead of waiting
//! for it.

use crate::announce::{self, Announcement, FAILED};
use crate::barrier::ShmBarrier;
use crate::error::PshmError;
use crate::grow::{Bounds, Segments};
use crate::layout::Card;
use crate::memory::{Memory, Pages};
use crate::prepare::{self, Company, Prepared};
use crate::region::{Host, Region};
use crate::settings;
use crate::wire::Pshm;
use gasworks_bootstrap::Bootstrap;
use gasworks_core::Rank;
use gasworks_core::observe::Witness;
use gasworks_memory::{Largest, Peer, PeerFlags, PeerTable};
use gasworks_os::limits::{Limit, more_descriptors};
use gasworks_os::memfd::{self, Mapping};
use gasworks_shmem::ranks::Ranks;
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

/// What is to be known of the network where there is one besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// How many ranks of a host share memory at most: those that follow each other; 0: all.
    pub most: u32,
    /// How large a segment the network bears.
    pub limit: Limit,
    /// Whether the largest segment that can be mapped is searched for.
    pub search: bool,
    /// Whether memory that was given back may not be there at once: then it is asked for again, and not before all ranks of the host have
    /// given theirs back. The work-around of GASNet's bug 3480.
    pub again: bool,
}

/// An open transport, of a job whose ranks are all here.
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

/// An open transport between some of a job's ranks.
#[derive(Debug)]
pub struct Joined<M: Mode> {
    /// It moves active messages.
    pub wire: Pshm<M>,
    /// The ranks that it reaches, this one among them, in rising order, and where their segments are mapped here.
    pub near: Vec<(Rank, Peer)>,
    /// It keeps these mapped, and has this rank's own grow.
    pub segments: Arc<Segments>,
    /// Their barrier.
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
    let hosts = bootstrap.hosts()?;
    if let Some(rank) = (0..bootstrap.size()).find(|&rank| hosts.of(rank) != hosts.of(0)) {
        return Err(PshmError::Elsewhere { hosts: hosts.count(), rank });
    }
    let Joined { mut wire, near, segments, barrier, witness, pages } = join(bootstrap, config, None)?;
    // No Long is larger than the largest segment.
    wire.max_long = near.iter().map(|(_, peer)| peer.mapped.len() as u64).max().unwrap_or(0);
    let peers = PeerTable::growing(near.into_iter().map(|(_, peer)| peer).collect(), segments);
    Ok(Opened { wire, peers, barrier, witness, pages })
}

/// Collective: opens the transport between ranks of this host: all of them, if there is no network besides that says otherwise.
///
/// # Errors
/// As [`open`].
pub fn join<M: Mode>(
    bootstrap: &dyn Bootstrap,
    config: &Config,
    beside: Option<&Beside>,
) -> Result<Joined<M>, PshmError> {
    let (me, host) = (bootstrap.rank(), bootstrap.host()?);
    let all = host.ranks();
    let most = beside.map_or(0, |beside| beside.most as usize);
    let most = if most == 0 { all.len() } else { most };
    // The parcels of the ranks that share memory, of those of all.
    let first = all.partition_point(|&rank| rank < me) / most * most;
    let group = first..all.len().min(first + most);
    let ranks = &all[group.clone()];
    let leader = ranks.first().copied().unwrap_or(me);
    let company = Company { here: all.len() as u32, together: ranks.len() as u32 };
    let network = beside.map(|beside| prepare::search(bootstrap, company.here, config, beside)).transpose();
    let again = beside.is_some_and(|beside| beside.again);
    if again {
        let allowed = settings::attach_timeout().ok();
        host.all_gather(&[], &[], allowed)?;
    }
    // One for each comes at once; as many again are those of the rank that leads for as long as it hands them out.
    let _room = more_descriptors(2 * all.len() as u64 + 64);
    let prepared = network.and_then(|network| {
        prepare::prepare(bootstrap, company, me == leader, config, (network.as_ref(), again))
    });
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
    let Prepared { file, mapping, pages, announcement, limit, promised, allowed, .. } = prepared?;
    let mut gathered =
        gathered.map_err(|cause| PshmError::Apart { cause, seconds: allowed.as_secs_f64() })?;
    let announced = announce::read_all(all, &gathered)?;
    announce::check_memory(&announced)?;
    let announced = &announced[group.clone()];
    announce::check_addresses(ranks, announced)?;
    let (mut files, mut cards) = (Vec::with_capacity(ranks.len()), None);
    for (&rank, parcel) in ranks.iter().zip(gathered.drain(group)) {
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
    let cards = map_cards(leader, cards.as_fd(), ranks.len() as u32)?;

    let mut mine = Some(mapping);
    let mut mapped = Vec::with_capacity(ranks.len());
    for (&rank, (fd, theirs)) in ranks.iter().zip(files.iter().zip(announced)) {
        let wrong = |what: String| PshmError::Descriptor { rank, what };
        let layout =
            theirs.shape.lay_out().ok_or_else(|| wrong("its sizes are beyond any address space".into()))?;
        if !memfd::is_sealed(fd.as_fd()) {
            return Err(wrong("its size is not sealed".into()));
        }
        let mapping = match mine.take_if(|_| rank == me) {
            Some(mapping) => mapping,
            None => {
                let shown = layout.promised(theirs.segment).unwrap_or(layout.len);
                memfd::map_hidden(fd.as_fd(), layout.len, shown).map_err(|e| wrong(e.to_string()))?
            }
        };
        mapped.push((mapping, layout, theirs.segment));
    }
    drop(files);
    let radix = announced.first().map_or(0, |leader| leader.radix) as usize;
    let named =
        Ranks::new(ranks).ok_or(PshmError::Announcement { rank: me, what: "its host has no order" })?;
    let host = Arc::new(Host::new(me, bootstrap.job(), named, radix, cards, mapped)?);
    kill_point!("pshm.open.mapped");
    let near = ranks.iter().zip(&host.regions).zip(announced);
    let near = near.map(|((&rank, region), theirs)| (rank, peer(region, rank == me, theirs))).collect();
    let largest = Largest {
        local: announcement.largest,
        global: announced.iter().map(|rank| rank.largest).min().unwrap_or(announcement.largest),
    };
    let own = (pages, file.into_fd());
    let bounds = Bounds { limit, promised, largest };
    let segments = Segments::new(host.clone(), announcement.segment, config.memory, own, bounds);
    segments.populate_all()?;
    kill_point!("pshm.open.populated");
    tracing::debug!(me, ?ranks, segment = announcement.segment, ?pages, "shared-memory transport open");
    let wire = Pshm::new(host.clone())?;
    let barrier = ShmBarrier::new(host.clone());
    Ok(Joined { wire, near, segments: Arc::new(segments), witness: host, barrier, pages })
}

fn map_cards(leader: u32, fd: BorrowedFd<'_>, ranks: u32) -> Result<Mapping, PshmError> {
    let wrong =
        |what: String| PshmError::Descriptor { rank: leader, what: format!("the file of cards: {what}") };
    if !memfd::is_sealed(fd) {
        return Err(wrong("its size is not sealed".into()));
    }
    memfd::map(fd, Card::file_len(ranks)).map_err(|e| wrong(e.to_string()))
}

fn peer(region: &Region, own: bool, theirs: &Announcement) -> Peer {
    let mapped = region.bytes.slice(region.layout.segment, region.layout.room);
    let own = if own { PeerFlags::SELF } else { PeerFlags::empty() };
    Peer {
        mapped: mapped.unwrap_or(RawBytes::EMPTY),
        len: theirs.segment,
        remote_base: theirs.base,
        key: Vec::new(),
        flags: PeerFlags::MAPPED | own,
    }
}
