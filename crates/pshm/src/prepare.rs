//! Everything of the opening that can fail without the others: sizes, the memory file, its place.

use crate::announce::Announcement;
use crate::error::PshmError;
use crate::layout::{Card, Layout, PAGE, Shape};
use crate::memory::{self, HugePages, Memory, Pages, Sizes};
use crate::open::{Beside, Config};
use crate::settings;
use gasworks_bootstrap::Bootstrap;
use gasworks_os::limits::Limit;
use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_os::settings::Share;
use gasworks_os::{OsError, affinity, huge, numa};
use gasworks_sync::kill_point;
use std::time::Duration;

/// What a rank has ready when it announces itself.
pub(crate) struct Prepared {
    pub file: MemFd,
    pub mapping: Mapping,
    pub pages: Pages,
    /// What the leader brings besides: the file with everybody's card.
    pub cards: Option<MemFd>,
    pub announcement: Announcement,
    /// The setting's limit on the segment.
    pub limit: Option<Limit>,
    /// What a segment that gets its length later is promised.
    pub promised: Option<Limit>,
    pub allowed: Duration,
}

/// How many ranks a host has, and how many of them share memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Company {
    pub here: u32,
    pub together: u32,
}

/// How often memory is asked for that may only just have been given back (GASNet's bug 3480), and how long after the first time;
/// then twice as long each time.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);

/// The queues' part of a rank's file, and its length.
fn bare(config: &Config) -> (Shape, u64) {
    let Config { depth, total, volume, .. } = *config;
    let bare = Shape { depth, total, volume, room: 0, page: PAGE };
    (bare, bare.lay_out().map_or(u64::MAX, |layout| layout.len as u64))
}

/// The network's limit on the segment; less, where not so much can be mapped.
pub(crate) fn search(
    bootstrap: &dyn Bootstrap,
    here: u32,
    config: &Config,
    beside: &Beside,
) -> Result<Limit, PshmError> {
    if !beside.search {
        return Ok(beside.limit.clone());
    }
    let (_, internal) = bare(config);
    let nothing = Memory { segment: Share::bytes(0), room: None, later: false, ..config.memory };
    let sizes = memory::sizes(&nothing, Some(&beside.limit), false, bootstrap.rank(), here, internal)?;
    let maps = |len: u64| {
        let len = usize::try_from(internal.saturating_add(len)).unwrap_or(usize::MAX);
        memfd::create("gasworks search", len).and_then(|file| file.map()).is_ok()
    };
    let found = memory::search(sizes.largest.bytes, memfd::page_size() as u64, maps);
    Ok(match found < sizes.largest.bytes {
        true => Limit { bytes: found, who: "the largest mapping that there could be".into() },
        false => beside.limit.clone(),
    })
}

/// For a rank in such company, which may be the one that `leads`; with the network's limit on the segment, and whether to ask for memory
/// again that is not there.
pub(crate) fn prepare(
    bootstrap: &dyn Bootstrap,
    company: Company,
    leads: bool,
    config: &Config,
    (network, again): (Option<&Limit>, bool),
) -> Result<Prepared, PshmError> {
    let (me, Company { here, together: ranks }) = (bootstrap.rank(), company);
    let allowed = settings::attach_timeout()?;
    let max = u32::from(u16::MAX);
    if ranks > max {
        return Err(PshmError::TooManyRanks { ranks, max });
    }
    let (memory, (bare, internal)) = (config.memory, bare(config));
    let name = format!("gasworks job {} rank {me}", bootstrap.job());
    let made = || {
        let sizes = |from_pool| memory::sizes(&memory, network, from_pool, me, here, internal);
        make(&name, memory.huge_pages, bare, here, sizes)
    };
    let (sizes, made) = patiently(if again { TRIES } else { 1 }, made)?;
    let Sizes { segment, largest, limit, available, space, .. } = sizes;
    let Made { file, pages, shape, layout } = made;
    let mapping = file.map_hidden(layout.promised(segment).unwrap_or(layout.len))?;
    if pages == Pages::Transparent {
        huge::advise(&mapping)?;
    }
    place_memory(&memory, &mapping);
    kill_point!("pshm.open.created");
    let base = mapping.as_ptr() as u64 + layout.segment as u64;
    let name = format!("gasworks job {} cards", bootstrap.job());
    let cards = leads.then(|| memfd::create(&name, Card::file_len(ranks))).transpose()?;
    let Limit { bytes: available, who } = available;
    let radix = settings::barrier_radix(ranks)?;
    let promised = memory.later.then(|| largest.clone());
    let largest = largest.bytes;
    let announcement = Announcement { shape, segment, base, largest, space, available, who, radix };
    Ok(Prepared { file, mapping, pages, cards, announcement, limit, promised, allowed })
}

/// Asks so often, with longer and longer pauses, as long as the system has not enough memory.
fn patiently<T>(tries: u32, mut ask: impl FnMut() -> Result<T, PshmError>) -> Result<T, PshmError> {
    let mut tried = 1;
    loop {
        match ask() {
            Err(PshmError::Os(_) | PshmError::HugePages { .. } | PshmError::Memory { .. })
                if tried < tries =>
            {
                std::thread::sleep(PAUSE * (1 << (tried - 1)));
                tried += 1;
            }
            made => return made,
        }
    }
}

/// A memory file, what it consists of, and its layout.
struct Made {
    file: MemFd,
    pages: Pages,
    shape: Shape,
    layout: Layout,
}

/// The pages come first: how large a segment may be depends on whether they come from the kernel's pool of huge ones, which
/// `sizes` is told.
fn make(
    name: &str,
    wanted: HugePages,
    bare: Shape,
    ranks: u32,
    sizes: impl Fn(bool) -> Result<Sizes, PshmError>,
) -> Result<(Sizes, Made), PshmError> {
    if wanted != HugePages::Off {
        let from_pool = || {
            let sizes = sizes(true)?;
            let made = make_huge(name, Shape { room: sizes.room, ..bare }, sizes.segment, ranks)?;
            Ok((sizes, made))
        };
        match (from_pool(), wanted) {
            (Ok(made), _) => return Ok(made),
            (Err(error), HugePages::Require) => return Err(error),
            (Err(error), _) => tracing::debug!(%error, "no huge pages from the pool"),
        }
    }
    let sizes = sizes(false)?;
    let unbounded = || PshmError::Unbounded { room: sizes.room };
    let transparent = wanted == HugePages::Try && huge::transparent_allowed();
    let page = if transparent { huge::page_size().map_or(PAGE, |page| page as u64) } else { PAGE };
    let shape = Shape { room: sizes.room, page: page.max(PAGE), ..bare };
    let layout = shape.lay_out().ok_or_else(unbounded)?;
    let file = memfd::create(name, layout.len)?;
    let pages = if transparent { Pages::Transparent } else { Pages::Base };
    Ok((sizes, Made { file, pages, shape, layout }))
}

/// From the kernel's pool, with pages promised to the queues and the segment, not to the room beyond.
fn make_huge(name: &str, shape: Shape, segment: u64, ranks: u32) -> Result<Made, PshmError> {
    let refused = |needed, pool: huge::Pool, cause: Option<OsError>| PshmError::HugePages {
        needed,
        page: pool.page,
        free: pool.free,
        all: needed.saturating_mul(ranks.into()),
        cause: cause.map(|cause| cause.cause.to_string()),
    };
    let pool = huge::pool_now().ok_or_else(|| refused(0, huge::Pool { page: 0, free: 0 }, None))?;
    let shape = Shape { page: (pool.page as u64).max(PAGE), ..shape };
    let layout = shape.lay_out().ok_or(PshmError::Unbounded { room: shape.room })?;
    let end = layout.promised(segment).ok_or(PshmError::Unbounded { room: shape.room })?;
    let needed = (end / pool.page) as u64;
    let failed = |cause| refused(needed, pool, Some(cause));
    let file = memfd::create_huge(name, layout.len).map_err(failed)?;
    file.promise(0, end).map_err(failed)?;
    Ok(Made { file, pages: Pages::Huge(pool.page), shape, layout })
}

/// Nothing but speed depends on it, and containers may forbid it: so a refusal is no error.
fn place_memory(memory: &Memory, mapping: &Mapping) {
    if !memory.place {
        return;
    }
    let nodes = numa::nodes_of(&affinity::allowed().unwrap_or_default());
    if !nodes.is_empty()
        && let Err(error) = numa::prefer(mapping, &nodes)
    {
        tracing::debug!(%error, "memory is not placed");
    }
}
