//! Opening the transport: announce, check, have the memory of all made, map it.
//!
//! A rank that cannot go on says so in its announcement, so that all ranks end with the same cause instead of waiting
//! for it.
//!
//! # Invariants
//! - open.1: what is mapped of the segments that [`join`] names stays so as long as its `segments`, which show as much of each as they say
//!   it has. Nobody has references to those bytes but to atomics.

use crate::announce::{self, FAILED};
use crate::barrier::{ShmBarrier, ShmTeams};
use crate::config::{Beside, Config};
use crate::error::PshmError;
use crate::file::{self, Given};
use crate::grow::{Bounds, Segments};
use crate::layout::FileLayout;
use crate::memory::{Memory, Pages};
use crate::prepare::{self, Company, Prepared};
use crate::region::{Host, Mapped};
use crate::regions::RegionFile;
use crate::settings;
use crate::wire::Pshm;
use gasworks_bootstrap::Bootstrap;
use gasworks_bootstrap::host::Parts;
use gasworks_core::Flow;
use gasworks_core::observe::Witness;
use gasworks_memory::{Grows, Largest, RegionTable};
use gasworks_os::descriptor::Descriptor;
use gasworks_os::huge;
use gasworks_os::limits::more_descriptors;
use gasworks_shmem::ranks::Ranks;
use gasworks_sync::{Mode, kill_point};
use std::sync::Arc;

/// An open transport, of a job whose ranks are all here.
#[derive(Debug)]
pub struct Opened<M: Mode> {
    /// It moves active messages.
    pub wire: Pshm<M>,
    /// Where everybody's segment is mapped here.
    pub peers: RegionTable,
    /// The barrier of the ranks.
    pub barrier: ShmBarrier<M>,
    /// Barriers of teams of them.
    pub teams: ShmTeams<M>,
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
    /// It keeps the segments of the ranks that are reached mapped, and has this rank's own grow.
    pub segments: Arc<Segments>,
    /// Where the memory of their regions comes from.
    pub regions: Arc<RegionFile>,
    /// Their barrier.
    pub barrier: ShmBarrier<M>,
    /// Barriers of teams of them.
    pub teams: ShmTeams<M>,
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
    if let Some(rank) = (0..bootstrap.size()).find(|&rank| hosts.leader(rank) != hosts.leader(0)) {
        return Err(PshmError::Elsewhere { hosts: hosts.count(), rank });
    }
    let Joined { mut wire, segments, regions, barrier, teams, witness, pages } =
        join(bootstrap, config, None)?;
    // No Long is larger than the largest segment.
    wire.max_long = segments.peers().map(|(_, peer)| peer.mapped.len() as u64).max().unwrap_or(0);
    let near = segments.clone();
    // SAFETY: open.1: `segments` keeps mapped what it says of them.
    let peers = unsafe { RegionTable::growing(near.peers().map(|(_, peer)| peer), segments, Grows::AnyTime) };
    let peers = peers.with_regions(regions);
    Ok(Opened { wire, peers, barrier, teams, witness, pages })
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
    // The ranks that share memory, of those of the host, and which of them this one is.
    let place = all.partition_point(|&rank| rank < me);
    let (first, number) = (place / most * most, place % most);
    let group = first..all.len().min(first + most);
    let ranks = &all[group.clone()];
    let company = Company { here: all.len() as u32, together: ranks.len() as u32 };
    let again = beside.is_some_and(|beside| beside.again);
    if again {
        let allowed = settings::attach_timeout().ok();
        host.all_gather(&[], &[], allowed)?;
    }
    let mut pool = true;
    let (prepared, announced, layout, file) = loop {
        let network = beside.map(|beside| prepare::search(bootstrap, company.here, config, beside));
        let prepared = network.transpose().and_then(|network| {
            prepare::prepare(bootstrap, company, config, (network.as_ref(), again), pool)
        });
        kill_point!("pshm.open.prepared");
        let (mine, allowed) = match &prepared {
            Ok(Prepared { announcement, allowed, .. }) => (announcement.encode(), Some(*allowed)),
            Err(error) => ([&FAILED[..], error.to_string().as_bytes()].concat(), None),
        };
        let mut failed = None;
        // The rank that leads has a file for each group, until it has given them.
        let _room = more_descriptors((all.len() / most) as u64 + 64);
        let tries = if again { prepare::TRIES } else { 1 };
        let give = |gathered: &Parts| file::give(bootstrap.job(), all, most, tries, gathered, &mut failed);
        let gathered = host.all_gather_with(&mine, allowed, give);
        kill_point!("pshm.open.gathered");
        let prepared = prepared?;
        if let Some(error) = failed {
            return Err(error);
        }
        let seconds = prepared.allowed.as_secs_f64();
        let (gathered, given) = gathered.map_err(|cause| PshmError::Apart { cause, seconds })?;
        let mut announced = announce::read_all(all, &gathered)?;
        drop(gathered);
        announce::check_memory(&announced)?;
        let layout = announce::lay_all_out(all, &announced, most)?.swap_remove(first / most);
        announced.truncate(group.end);
        announced.drain(..group.start);
        if announced[number] != prepared.announcement {
            let what = "it handed out something else than this rank has announced".into();
            return Err(PshmError::Descriptor { rank: host.leader(), what });
        }
        match Given::read(host.leader(), given, pool)? {
            Given::File(file) => break (prepared, announced, layout, file),
            Given::NoPool => pool = false,
        }
    };
    let Prepared { reserved, pages, announcement, limit, promised, .. } = prepared;
    let memory = Mapped::new(host.leader(), &file, &layout, number, reserved, &announced)?;
    place_memory(&config.memory, pages, &layout, number, &memory)?;
    let radix = announced.first().map_or(0, |leader| leader.radix) as usize;
    let named =
        Ranks::new(ranks).ok_or(PshmError::Announcement { rank: me, what: "its host has no order" })?;
    let host = Arc::new(Host::new(me, bootstrap.job(), named, radix, &layout, memory, &announced)?);
    kill_point!("pshm.open.mapped");
    let largest = Largest {
        local: announcement.largest,
        global: announced.iter().map(|rank| rank.largest).min().unwrap_or(announcement.largest),
    };
    // What is not needed any more goes before what every rank keeps of the others comes: there may be many.
    let beyond = layout.len;
    drop((announced, layout));
    let file = Arc::new(Descriptor::from(file));
    let regions =
        Arc::new(RegionFile::new(host.clone(), (pages, file.clone()), beyond, config.memory.populate)?);
    let own = (pages, file);
    let bounds = Bounds { limit, promised, largest };
    let segments = Segments::new(host.clone(), announcement.segment, config.memory, own, bounds);
    segments.populate_all()?;
    kill_point!("pshm.open.populated");
    tracing::debug!(me, ?ranks, segment = announcement.segment, ?pages, "shared-memory transport open");
    let Config { depth, total, volume, .. } = *config;
    let wire = Pshm::new(host.clone(), Flow { depth, total, volume })?;
    let (barrier, teams) = (ShmBarrier::new(host.clone()), ShmTeams::new(host.clone()));
    Ok(Joined { wire, segments: Arc::new(segments), regions, witness: host, barrier, teams, pages })
}

/// Has this rank's queues and segment lie in such pages, near the processors that it may run on.
fn place_memory(
    wanted: &Memory,
    pages: Pages,
    layout: &FileLayout,
    number: usize,
    memory: &Mapped,
) -> Result<(), PshmError> {
    let place = &layout.places[number];
    let queues = Some((&memory.queues, place.queues..place.queues + place.layout.len));
    let segment = memory.own.as_ref().map(|own| (own, 0..own.len()));
    for (mapping, part) in queues.into_iter().chain(segment) {
        if pages == Pages::Transparent {
            huge::advise(mapping, part.clone())?;
        }
        prepare::keep_near(wanted, mapping, part);
    }
    Ok(())
}
