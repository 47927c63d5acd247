//! Opening the transport: attach, register, meet.

use crate::barrier::GniBarrier;
use crate::domain::{Chip, Domain, Handle, Network, Wanted};
use crate::error::{GniError, code_name};
use crate::letter::MOST_RANKS;
use crate::mailboxes::{self, Mailboxes};
use crate::messages::{Bursts, Messages};
use crate::region::{Closed, Home, Kept, Layout, MOST_TICKETS, Region, Shape};
use crate::settings::{Credentials, MESSAGE_FLAGS, Settings};
use crate::wire::{GniNic, GniWire, Guard, KEY, Shared, abilities};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::observe::Witness;
use gasworks_core::wire::MAX_HEAD;
use gasworks_core::{CoreMode, Flow, Limits, Rdma};
use gasworks_gni_sys::Ugni;
use gasworks_memory::{AuxPlan, Peer, PeerFlags, PeerTable};
use gasworks_os::limits;
use gasworks_os::memfd::{self, Mapping};
use gasworks_os::settings::Share;
use gasworks_rdma::{Abilities, EngineError, NicError, Tuning};
use gasworks_sync::atomic::{AtomicBool, AtomicU32};
use gasworks_sync::{RawBytes, kill_point};
use std::sync::Arc;

/// Replies that may be out at once.
const REPLIES: u32 = 32;
/// Posts beside those for which something else is counted.
const SPARE_POSTS: u32 = 16;
/// The largest Long: the engine cuts it into what the NIC moves at once.
const MOST_LONG: u64 = 1 << 40;
/// An open transport.
pub struct Opened<M: CoreMode> {
    /// It moves active messages.
    pub wire: GniWire<M>,
    /// It moves bytes, and has the segment.
    pub rdma: Rdma<M, M::Nic>,
    /// Where everybody's segment is: this rank's own is mapped.
    pub peers: PeerTable,
    /// The barrier of the ranks.
    pub barrier: GniBarrier<M>,
    /// What sees where this rank is in it.
    pub witness: Arc<dyn Witness>,
    /// How much may be under way.
    pub flow: Flow,
}

/// Collective: opens the transport between all ranks of the job, each with a segment of so many bytes;
/// `boxed` makes of the NIC what an engine drives.
///
/// # Errors
/// See [`GniError`].
pub fn open<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    segment: Share,
    boxed: impl FnOnce(GniNic<M>) -> Box<M::Nic>,
) -> Result<Opened<M>, GniError> {
    let (me, ranks) = (bootstrap.rank(), bootstrap.size());
    let settings = Settings::read()?;
    if ranks > MOST_RANKS {
        return Err(GniError::TooLarge {
            what: format!("a job of {ranks} ranks: events tell {MOST_RANKS} apart"),
        });
    }
    let ugni = Ugni::open(settings.library.as_deref()).map_err(GniError::Library)?;
    let chip = Chip::of(&ugni)?;
    let flow = flow(chip, settings.max_medium)?;
    let shape = Shape {
        ranks,
        tickets: flow.depth,
        slots: flow.total,
        max_medium: settings.max_medium,
        replies: REPLIES,
        fetches: settings.fetches,
    };
    let too_large = || GniError::TooLarge { what: format!("{shape:?} is beyond any memory") };
    let layout = Layout::new(shape).ok_or_else(too_large)?;
    let usual = if chip == Chip::Aries { Tuning::ARIES } else { Tuning::GEMINI };
    let tuning = Tuning::from_settings(usual, memfd::page_size(), settings.max_medium + MAX_HEAD)?;
    let posts = u32::try_from(tuning.descriptors).map_err(|_| too_large())?;
    let Credentials { device, tag, cookie } = Credentials::read()?;
    let here = bootstrap.host()?.ranks().len() as u32;
    let closed = Closed::default();
    let mut domain = Domain::open(
        ugni,
        Wanted {
            rank: me,
            ranks,
            device,
            tag,
            cookie,
            modes: settings.modes(here),
            posts: posts + shape.slots + shape.replies + shape.fetches + SPARE_POSTS,
            arrivals: arrivals(&shape).min(settings.most_arrivals),
            delivery: settings.delivery(chip)?,
        },
        closed.clone(),
    )?;
    if let Some((udreg, entries)) = settings.udreg(tuning.registrations)? {
        domain.keep(udreg, settings.memory_flags(), entries)?;
    }
    let (mapping, [messages, transfers]) = auxiliary(&layout, &tuning)?;
    let limits = Limits { max_medium: shape.max_medium, max_long: MOST_LONG };
    let facts = (limits, abilities(chip, posts, domain.kept.is_some()), closed.clone());
    let shared = meet(bootstrap, domain, &settings, (layout, flow), (mapping, messages), facts)?;
    let rdma = Rdma::new(boxed(GniNic(shared.clone())), transfers, &tuning)?;
    let peers = attach(bootstrap, segment.for_each(limits::total_memory().bytes, here), &rdma, closed)?;
    let (barrier, witness) = (GniBarrier(shared.clone()), shared.with(|messages| messages.seen()));
    Ok(Opened { wire: GniWire(shared), rdma, peers, barrier, witness, flow })
}

/// Makes this rank's segment, and tells everybody of it.
fn attach<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    len: u64,
    rdma: &Rdma<M, M::Nic>,
    closed: Closed,
) -> Result<PeerTable, GniError> {
    let available = limits::available_memory();
    let too_large = || GniError::TooLarge {
        what: format!("a segment of {len} bytes: there are {}, by {}", available.bytes, available.who),
    };
    let pages =
        usize::try_from(len).ok().and_then(|len| len.max(1).checked_next_multiple_of(memfd::page_size()));
    let pages = pages.filter(|_| len <= available.bytes).ok_or_else(too_large)?;
    let mapping = memfd::create("gasworks-segment", pages)?.map()?;
    // SAFETY: R1: the table of peers keeps the mapping, and whoever uses the engine keeps that.
    let bytes = unsafe { mapping.bytes() };
    // SAFETY: as above.
    let key = unsafe { rdma.register(bytes) }.map_err(|cause| match cause {
        EngineError::Registration(NicError::Registration { len, why }) => {
            GniError::Register { len, code: why }
        }
        cause => cause.into(),
    })?;
    let card = [&(bytes.len() as u64).to_le_bytes(), &key.0[..]].concat();
    let cards = bootstrap.exchange("gni.segments", &card)?;
    kill_point!("gni.open.attached");
    let peers = (0..).zip(cards).map(|(rank, theirs)| {
        let mine = rank == bootstrap.rank();
        let Some((len, key)) = theirs.split_first_chunk().filter(|(_, key)| key.len() == KEY) else {
            return Err(GniError::Differs { rank, what: "has sent no card of a segment".into() });
        };
        Ok(Peer {
            mapped: if mine { bytes } else { RawBytes::EMPTY },
            len: u64::from_le_bytes(*len),
            remote_base: 0,
            key: key.to_vec(),
            flags: if mine { PeerFlags::SELF | PeerFlags::MAPPED } else { PeerFlags::empty() },
        })
    });
    Ok(PeerTable::new(peers.collect::<Result<_, _>>()?, Arc::new(Kept::new(mapping, closed))))
}

/// What core may have under way: no more than there are tickets for. Where nothing is set it is what GASNet took on the chip.
fn flow(chip: Chip, max_medium: usize) -> Result<Flow, GniError> {
    let usual = match chip {
        Chip::Gemini => Flow::SEED,
        Chip::Aries => Flow { depth: 64, total: 64, volume: 4 * max_medium as u64 },
    };
    let flow = Flow::from_settings(max_medium, usual)?;
    let total = flow.total.min(u16::MAX.into());
    Ok(Flow { depth: flow.depth.min(MOST_TICKETS).min(total), total, ..flow })
}

/// Room for every notification that there can be.
fn arrivals(shape: &Shape) -> u32 {
    shape.ranks.saturating_mul(shape.tickets).saturating_add(shape.slots).saturating_add(64)
}

/// The memory of all subsystems, in one piece.
fn auxiliary(layout: &Layout, tuning: &Tuning) -> Result<(Mapping, [RawBytes; 2]), GniError> {
    let mut plan = AuxPlan::new();
    let (least, wanted) = tuning.memory();
    let asked = [plan.ask(layout.len as u64, layout.len as u64), plan.ask(least as u64, wanted as u64)];
    let too_large =
        || GniError::TooLarge { what: format!("{} bytes for messages and transfers", plan.wanted()) };
    let parts = plan.lay_out(plan.wanted()).ok_or_else(too_large)?;
    let len = usize::try_from(plan.wanted()).map_err(|_| too_large())?;
    let mapping = memfd::create("gasworks-auxiliary", len)?.map()?;
    // SAFETY: R1: whoever uses the parts keeps the mapping.
    let all = unsafe { mapping.bytes() };
    let part = |number: usize| {
        let part = parts[number];
        all.slice(part.offset as usize, part.len as usize).unwrap_or(RawBytes::EMPTY)
    };
    Ok((mapping, asked.map(part)))
}

/// Registers the memory and tells the others where it is.
fn meet<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    mut domain: Domain,
    settings: &Settings,
    (layout, flow): (Layout, Flow),
    (mapping, messages): (Mapping, RawBytes),
    (limits, abilities, closed): (Limits, Abilities, Closed),
) -> Result<Arc<Shared<M>>, GniError> {
    let shape = layout.shape;
    let boxes = mailboxes::Shape::new(shape.tickets, flow.volume, layout.slot_len);
    let given = settings.mailboxes(shape.ranks);
    if settings.report && bootstrap.rank() == 0 {
        let (all, each, ranks) = (layout.len, layout.each(), shape.ranks);
        gasworks_os::say(&format!(
            "gasworks: messages over uGNI take {all} bytes of each rank, {each} of these for each of {ranks} ranks; and {} more for each \
             that talks, up to {given} ranks",
            boxes.len()
        ));
    }
    // SAFETY: R1: the mapping lives longer than the domain.
    let all = unsafe { mapping.bytes() };
    // SAFETY: as above.
    let handle = unsafe { domain.register(all, true, MESSAGE_FLAGS) }
        .map_err(|code| GniError::Register { len: all.len(), code: code_name(code) })?;
    kill_point!("gni.open.registered");
    let region = Region::new(messages);
    let alike = alike(&layout, &boxes);
    let mine = [domain.address().into(), region.address(0), handle.words[0], handle.words[1]];
    let mine: Vec<u8> = mine.iter().chain(&alike).flat_map(|word| word.to_le_bytes()).collect();
    let cards = bootstrap.exchange("gni.cards", &mine)?;
    let mut homes = Vec::with_capacity(cards.len());
    let mut addresses = Vec::with_capacity(cards.len());
    for (rank, theirs) in (0..).zip(&cards) {
        let differs = |what: &str| GniError::Differs { rank, what: what.into() };
        let (words, rest) = theirs.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (&[nic, address, first, second, ref theirs @ ..], true) = (words.as_slice(), rest.is_empty())
        else {
            return Err(differs("has sent a card of another length"));
        };
        if theirs != alike {
            return Err(differs(
                "lays its messages out otherwise: GASNET_NETWORKDEPTH, GASNET_NETWORKDEPTH_TOTAL, GASNET_NETWORKDEPTH_SPACE, \
                 GASNET_GNI_MAX_MEDIUM and GASNET_GNI_AM_RVOUS_BUFFERS are the same in all ranks",
            ));
        }
        addresses.push(u32::try_from(nic).map_err(|_| differs("has a NIC at an address that is none"))?);
        homes.push(Home { address, handle: Handle { words: [first, second] } });
    }
    domain.meet(addresses.into());
    kill_point!("gni.open.met");
    let mailboxes = Mailboxes::new(boxes, given, MESSAGE_FLAGS, closed.clone());
    let bursts = Bursts { done: settings.done, arrivals: settings.arrivals };
    let bell = domain.bell();
    let messages = Messages::new(domain, bootstrap.rank(), (layout, region), homes.into(), mailboxes, bursts);
    Ok(Arc::new(Shared {
        messages: Guard::new(messages, settings.spins),
        bell,
        still: AtomicBool::new(false),
        limits,
        abilities,
        flags: settings.memory_flags(),
        me: bootstrap.rank(),
        auxiliary: (all, handle),
        wakes: AtomicU32::new(0),
        closed: closed.clone(),
        _memory: Kept::new(mapping, closed),
    }))
}

/// What has to be the same in all ranks.
fn alike(layout: &Layout, boxes: &mailboxes::Shape) -> [u64; 4] {
    [layout.len, layout.shape.tickets as usize, layout.shape.slots as usize, boxes.len()].map(|n| n as u64)
}
