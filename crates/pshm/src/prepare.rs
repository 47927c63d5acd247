//! Everything of the opening that can fail without the others: sizes, and the addresses of the own segment.

use crate::announce::Announcement;
use crate::config::{Beside, Config};
use crate::error::PshmError;
use crate::layout::{PAGE, Shape};
use crate::memory::{HugePages, Memory, Pages};
use crate::settings;
use crate::sizes::{self, Sizes};
use gasworks_bootstrap::Bootstrap;
use gasworks_os::limits::Limit;
use gasworks_os::memfd::{self, Mapping, Reserved};
use gasworks_os::settings::Share;
use gasworks_os::{OsError, affinity, huge, numa};
use std::ops::Range;
use std::time::Duration;

/// What a rank has ready when it announces itself.
pub(crate) struct Prepared {
    /// Where its segment is going to lie.
    pub reserved: Option<Reserved>,
    pub pages: Pages,
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
pub(crate) const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);

/// A rank's queues, and how many bytes they are.
fn queues(config: &Config) -> (Shape, u64) {
    let Config { depth, total, volume, .. } = *config;
    let shape = Shape { depth, total, volume };
    (shape, shape.lay_out().map_or(u64::MAX, |layout| layout.len as u64))
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
    let (_, internal) = queues(config);
    let nothing = Memory { segment: Share::bytes(0), room: None, later: false, ..config.memory };
    let sizes = sizes::sizes(&nothing, Some(&beside.limit), false, bootstrap.rank(), (here, here), internal)?;
    let maps = |len: u64| {
        let len = usize::try_from(internal.saturating_add(len)).unwrap_or(usize::MAX);
        memfd::create("gasworks search", len).and_then(|file| file.map()).is_ok()
    };
    let found = sizes::search(sizes.largest.bytes, memfd::page_size() as u64, maps);
    Ok(match found < sizes.largest.bytes {
        true => Limit { bytes: found, who: "the largest mapping that there could be".into() },
        false => beside.limit.clone(),
    })
}

/// For a rank in such company; with the network's limit on the segment, whether to ask for memory again that is not there, and whether
/// the pool of huge pages may be asked.
pub(crate) fn prepare(
    bootstrap: &dyn Bootstrap,
    company: Company,
    config: &Config,
    (network, again): (Option<&Limit>, bool),
    pool: bool,
) -> Result<Prepared, PshmError> {
    let (me, Company { here, together: ranks }) = (bootstrap.rank(), company);
    let allowed = settings::attach_timeout()?;
    let max = u32::from(u16::MAX);
    if ranks > max {
        return Err(PshmError::TooManyRanks { ranks, max });
    }
    let (memory, (shape, internal)) = (config.memory, queues(config));
    let sizes = |from_pool| sizes::sizes(&memory, network, from_pool, me, (here, ranks), internal);
    let wanted = memory.huge_pages;
    let choose = || choose((wanted, pool), internal, here, sizes);
    let (sizes, pages) = patiently(if again { TRIES } else { 1 }, choose)?;
    let Sizes { segment, room, largest, limit, available, space } = sizes;
    let page = match pages {
        Pages::Base => PAGE,
        Pages::Transparent => huge::page_size().map_or(PAGE, |page| page as u64).max(PAGE),
        Pages::Huge(page) => (page as u64).max(PAGE),
    };
    let reserved = (room > 0).then(|| reserve(room, page)).transpose()?;
    let base = reserved.as_ref().map_or(0, |reserved| reserved.as_ptr() as u64);
    let radix = settings::barrier_radix(ranks)?;
    let promised = memory.later.then(|| largest.clone());
    let (largest, Limit { bytes: available, who }) = (largest.bytes, available);
    let (pooled, required) = (matches!(pages, Pages::Huge(_)), wanted == HugePages::Require);
    let announcement = Announcement {
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
        who: who.into(),
        radix,
    };
    Ok(Prepared { reserved, pages, announcement, limit, promised, allowed })
}

/// Addresses for a segment, and for the page behind it.
fn reserve(room: u64, page: u64) -> Result<Reserved, PshmError> {
    let both = usize::try_from(room).ok().zip(usize::try_from(page).ok());
    let (room, page) = both.ok_or(PshmError::Unbounded { room })?;
    let len = room.checked_add(page).ok_or(PshmError::Unbounded { room: room as u64 })?;
    Ok(memfd::reserve(len, page)?)
}

/// Asks so often, with longer and longer pauses, as long as the system has not enough memory.
pub(crate) fn patiently<T>(
    tries: u32,
    mut ask: impl FnMut() -> Result<T, PshmError>,
) -> Result<T, PshmError> {
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

/// What memory is to lie in, and how much of it: how large a segment may be depends on whether its pages come from the kernel's pool of
/// huge ones, which `sizes` is told.
fn choose(
    (wanted, pool): (HugePages, bool),
    internal: u64,
    ranks: u32,
    sizes: impl Fn(bool) -> Result<Sizes, PshmError>,
) -> Result<(Sizes, Pages), PshmError> {
    if pool && wanted != HugePages::Off {
        let from_pool = || {
            let sizes = sizes(true)?;
            let page = enough([internal, sizes.segment], ranks)?;
            Ok((sizes, Pages::Huge(page)))
        };
        match (from_pool(), wanted) {
            (Ok(chosen), _) => return Ok(chosen),
            (Err(error), HugePages::Require) => return Err(error),
            (Err(error), _) => tracing::debug!(%error, "no huge pages from the pool"),
        }
    }
    let transparent = wanted == HugePages::Try && huge::transparent_allowed();
    Ok((sizes(false)?, if transparent { Pages::Transparent } else { Pages::Base }))
}

/// The size of the pool's pages, if it has enough for the queues and the segment of one rank.
fn enough(bytes: [u64; 2], ranks: u32) -> Result<usize, PshmError> {
    let pool = huge::pool_now().unwrap_or(NO_POOL);
    let needed = bytes.map(|bytes| bytes.div_ceil(pool.page.max(1) as u64)).iter().sum();
    match pool.page > 0 && needed <= pool.free {
        true => Ok(pool.page),
        false => Err(lacking(needed, Some(ranks), None)),
    }
}

const NO_POOL: huge::Pool = huge::Pool { page: 0, free: 0 };

/// So many huge pages are needed by one of so many ranks, or by all, and the pool has not as many.
pub(crate) fn lacking(needed: u64, ranks: Option<u32>, cause: Option<OsError>) -> PshmError {
    let huge::Pool { page, free } = huge::pool_now().unwrap_or(NO_POOL);
    // The cards of all take one more.
    let all = ranks.map_or(needed, |ranks| needed.saturating_mul(ranks.into()).saturating_add(1));
    PshmError::HugePages { needed, page, free, all, cause: cause.map(|cause| cause.cause.to_string()) }
}

/// Nothing but speed depends on it, and containers may forbid it: so a refusal is no error.
pub(crate) fn keep_near(memory: &Memory, mapping: &Mapping, part: Range<usize>) {
    if !memory.place {
        return;
    }
    let nodes = numa::nodes_of(&affinity::allowed().unwrap_or_default());
    if !nodes.is_empty()
        && let Err(error) = numa::prefer(mapping, part, &nodes)
    {
        tracing::debug!(%error, "memory is not placed");
    }
}
