//! Opening the transport: attach, register, meet.
//!
//! # Invariants
//! - open.1: the auxiliary mapping outlives the domains and engines that use its parts: [`Shared`] keeps it, behind the domain of the
//!   messages, and each NIC keeps `Shared`, behind a domain of its own. A part is one engine's, or the messages'.
//! - open.2: what keeps the segments mapped becomes the table of peers', which lets go of it only once nobody writes there any more
//!   (kept.1); the engines of a job are dropped with or before the table.

use crate::barrier::{BY_ENGINES, GniBarrier};
use crate::domain::{Chip, Domain, EngineOf, Network, Place, Wanted};
use crate::error::{GniError, code_name};
use crate::handle::Handle;
use crate::kept::{Closed, Kept};
use crate::letter::MOST_RANKS;
use crate::levels::Levels;
use crate::mailboxes::{self, Mailboxes};
use crate::messages::{self, Bursts, Messages};
use crate::pinned::patiently;
use crate::region::{Home, Layout, MOST_TICKETS, Region, Shape};
use crate::settings::{self, Credentials, MESSAGE_FLAGS, Settings};
use crate::wire::{GniNic, GniWire, Guard, KEY, Shared, abilities};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::observe::Witness;
use gasworks_core::{Attributes, CoreMode, Domains, Flow, Limits, Rank, Rdma};
use gasworks_gni_sys::Ugni;
use gasworks_memory::{
    Asked, AuxPlan, Grows, Growth, Largest, MemoryError, Peer, PeerFlags, RegionId, RegionMemory, RegionTable,
};
use gasworks_os::descriptor::Descriptor;
use gasworks_os::ending::{self, AtEnd};
use gasworks_os::limits::Limit;
use gasworks_os::memfd::{self, Mapping};
use gasworks_rdma::{Abilities, EngineError, NicError, Registry, Tuning};
use gasworks_sync::atomic::AtomicBool;
use gasworks_sync::{Lock, RawSlice, VolatileSlice, kill_point};
use std::iter;
use std::sync::{Arc, Weak};

/// Replies that may be out at once.
const REPLIES: u32 = 32;
/// The part of what a rank may register that a segment leaves for transfers from and to memory outside it.
const PART_OF_TRANSFERS: u64 = 16;
/// What GASNet adds to the largest Medium for the size of a bounce buffer: 16 arguments of four bytes. No message lies in one here, but
/// `GASNET_GNI_BOUNCE_SIZE` has as many of them by it as there.
const ARGUMENTS: usize = 64;
/// Domains that there may be in a job: their numbers have 24 bits on Aries.
const MOST_INSTANCES: u32 = 1 << 24;
/// What a rank says that has taken none of the NIC's engines.
const NO_ENGINE: u64 = u64::MAX;
/// The largest Long: the engine cuts it into what the NIC moves at once.
const MOST_LONG: u64 = 1 << 40;
/// An open transport.
pub struct Opened<M: CoreMode> {
    /// It moves active messages.
    pub wire: GniWire<M>,
    /// They move bytes, and have the segment.
    pub rdma: Domains<M>,
    /// Where everybody's segment is: this rank's own is mapped.
    pub peers: RegionTable,
    /// The barrier of the ranks.
    pub barrier: GniBarrier<M>,
    /// What sees where this rank is in it.
    pub witness: Arc<dyn Witness>,
}

/// What there is of the ranks' segments before a NIC knows them.
pub struct Segments {
    /// The ranks whose segments are mapped here, this one's among them.
    pub near: Vec<(Rank, Peer)>,
    /// The largest that this rank could have had, in bytes.
    pub largest: u64,
    /// What keeps them mapped, and has this rank's grow.
    pub owner: Arc<dyn Growth>,
    /// Whether they are known to the NIC once they have been attached, and not before.
    pub later: bool,
    /// Where the memory of regions comes from that are created later.
    pub regions: Arc<dyn RegionMemory>,
}

/// Whether uGNI's library can be found, for who asks what is in the way.
///
/// # Errors
/// [`GniError::Library`]: it cannot.
pub fn find_library() -> Result<(), GniError> {
    Ugni::open(settings::library().as_deref()).map(drop).map_err(GniError::Library)
}

/// What a transport will need, before anything is taken.
#[derive(Debug)]
pub struct Plan {
    settings: Settings,
    credentials: Credentials,
    ugni: Ugni,
    chip: Chip,
    flow: Flow,
    layout: Layout,
    tuning: Tuning,
    /// How many ranks there are on this host.
    here: u32,
    /// How many domains each has.
    domains: u32,
    /// Whether the barrier goes by collective engines.
    by_engines: bool,
}

impl Plan {
    /// Reads the settings, and opens the library, in a rank whose threads may communicate at once (`parallel`) or do not, and which is to
    /// meet the others in the `way` that `GASNET_BARRIER` says.
    ///
    /// # Errors
    /// See [`GniError`].
    pub fn new(bootstrap: &dyn Bootstrap, parallel: bool, way: &str) -> Result<Self, GniError> {
        let (ranks, here) = (bootstrap.size(), bootstrap.host()?.ranks().len() as u32);
        if ranks > MOST_RANKS {
            return Err(GniError::TooLarge {
                what: format!("a job of {ranks} ranks: events tell {MOST_RANKS} apart"),
            });
        }
        let ugni = Ugni::open(settings::library().as_deref()).map_err(GniError::Library)?;
        let chip = Chip::of(&ugni)?;
        let settings = Settings::read(chip)?;
        let (shape, flow) = shape(chip, ranks, &settings)?;
        let too_large = || GniError::TooLarge { what: format!("{shape:?} is beyond any memory") };
        let layout = Layout::new(shape).ok_or_else(too_large)?;
        let usual = if chip == Chip::Aries { Tuning::ARIES } else { Tuning::GEMINI };
        let tuning = Tuning::from_settings(usual, memfd::page_size(), settings.max_medium + ARGUMENTS)?;
        let domains = settings.domains(chip, parallel)?;
        if domains > 1 && ranks > MOST_INSTANCES / domains {
            let what =
                format!("{ranks} ranks of GASNET_DOMAIN_COUNT={domains} domains: there are {MOST_INSTANCES}");
            return Err(GniError::TooLarge { what });
        }
        let credentials = Credentials::read()?;
        // Who asks in vain is told so by whoever reads that setting.
        let by_engines = way == BY_ENGINES && chip == Chip::Aries && settings.engines;
        Ok(Self { settings, credentials, ugni, chip, flow, layout, tuning, here, domains, by_engines })
    }

    /// What the NIC is.
    pub fn chip(&self) -> Chip {
        self.chip
    }

    /// How much this rank may register: what is left of that for a segment.
    pub fn largest_segment(&self) -> Limit {
        let Limit { bytes, who } = self.settings.pinned(self.here);
        let given = self.settings.mailboxes(self.layout.shape.ranks);
        let mailboxes = mailbox_shape(&self.layout, self.flow).len_of(given);
        let transfers = (self.tuning.registration_space as u64).min(bytes / PART_OF_TRANSFERS);
        let taken =
            [self.auxiliary(), mailboxes, transfers].iter().fold(0, |sum: u64, len| sum.saturating_add(*len));
        Limit { bytes: bytes.saturating_sub(taken), who }
    }

    /// Bytes for messages and transfers that are registered when the job starts.
    fn auxiliary(&self) -> u64 {
        plan(&self.layout, &self.tuning, self.domains).0.wanted()
    }

    /// Whether the largest segment that can be mapped is to be searched for.
    pub fn searches(&self) -> bool {
        self.settings.searches
    }

    /// Whether memory that was given back may take a while to be there again.
    pub fn is_patient(&self) -> bool {
        self.settings.is_patient
    }

    /// Collective: opens the transport between all ranks of the job, which put to and get from these segments of each other's, and of which those
    /// whose segments are mapped may have a barrier of their own; `boxed` makes of the NIC what an engine drives.
    ///
    /// # Errors
    /// See [`GniError`].
    pub fn open<M: CoreMode>(
        self,
        bootstrap: &dyn Bootstrap,
        segments: Segments,
        barrier: Option<Box<M::Barrier>>,
        boxed: impl Fn(GniNic<M>) -> Box<M::Nic>,
    ) -> Result<Opened<M>, GniError> {
        let (pinned, least) = (self.settings.pinned(self.here), self.auxiliary());
        if least > pinned.bytes {
            let Limit { bytes, who } = pinned;
            let what = format!("{least} bytes for messages and transfers: {who} allows a rank {bytes}");
            return Err(GniError::TooLarge { what });
        }
        let Self { settings, credentials, ugni, chip, flow, layout, tuning, here, domains, by_engines } =
            self;
        let shape = layout.shape;
        let posts = u32::try_from(tuning.descriptors)
            .map_err(|_| GniError::TooLarge { what: format!("{} post descriptors", tuning.descriptors) })?;
        let Credentials { device, tag, cookie } = credentials;
        let closed = Closed::default();
        let me = bootstrap.rank();
        let wanted = Wanted {
            instance: me,
            ranks: shape.ranks,
            device,
            tag,
            cookie,
            modes: settings.modes(chip, here.saturating_mul(domains)),
            posts,
            arrivals: arrivals(&shape, settings.longs(shape.tickets)).min(settings.most_arrivals),
            delivery: settings.delivery(chip)?,
            pinned: pinned.bytes,
        };
        let mut domain = Domain::open(ugni, wanted, closed.clone())?;
        // Nobody writes what these have registered: messages and segments are the first one's.
        let further = (1..domains).map(|number| {
            let instance = me + number * shape.ranks;
            Domain::open(ugni, Wanted { instance, arrivals: 0, ..wanted }, closed.clone())
        });
        let further = further.collect::<Result<Vec<_>, _>>()?;
        if let Some((udreg, entries)) = settings.udreg(tuning.registrations)? {
            domain.keep(udreg, settings.memory_flags(), entries)?;
        }
        let (mapping, messages, transfers) = auxiliary(&layout, &tuning, domains)?;
        let limits = Limits {
            max_medium: shape.max_medium,
            max_long: MOST_LONG,
            packed_long: settings.packed_long(chip),
        };
        let attributes = Attributes {
            name: messages::NAME,
            limits,
            flow,
            burst: settings.arrivals,
            is_of_first_domain: true,
        };
        let keeps = domain.kept.is_some();
        let facts = (chip, attributes, abilities(chip, posts, settings.done, keeps), closed.clone());
        let barrier = barrier.filter(|_| !by_engines || settings.engines_beside_memory);
        // The first of those that meet there leads them.
        let leader = match (&barrier, segments.near.first()) {
            (Some(_), Some((first, _))) => *first,
            _ => me,
        };
        let levels = barrier.map(|barrier| Levels::new(barrier, leader == me));
        let seen = levels.as_ref().map(Levels::seen);
        let levels = (leader, levels, by_engines);
        let shared = meet(bootstrap, domain, &settings, (layout, flow), (mapping, messages), facts, levels)?;
        let addresses = shared.with(|messages| messages.domain.addresses());
        let further = further.into_iter().map(|mut domain| {
            domain.meet(addresses.clone());
            GniNic::further(shared.clone(), domain, settings.spins)
        });
        let nics = iter::once(GniNic::first(shared.clone())).chain(further);
        // Of several, none registers what another has registered.
        let registry = (domains > 1).then(|| Registry::new(&tuning, keeps));
        let engines = nics.zip(transfers).map(|(nic, memory)| match &registry {
            // SAFETY: open.1: the NIC keeps the mapping, of which `memory` is this engine's own part.
            Some(registry) => unsafe { Rdma::sharing(boxed(nic), memory, &tuning, registry) },
            // SAFETY: open.1: the NIC keeps the mapping, of which `memory` is all that the messages do not have.
            None => unsafe { Rdma::new(boxed(nic), memory, &tuning) },
        });
        let engines = engines.collect::<Result<Vec<_>, _>>()?;
        let rdma = Domains::several(engines, settings.threads, settings.poll_mask);
        let peers = attach(bootstrap, segments, &rdma, closed)?;
        let witness = seen.unwrap_or_else(|| shared.with(|messages| messages.seen()));
        let barrier = GniBarrier(shared.clone());
        let ends: Weak<dyn AtEnd> = Arc::<Shared<M>>::downgrade(&shared);
        ending::at_end(ends)?;
        Ok(Opened { wire: GniWire(shared), rdma, peers, barrier, witness })
    }
}

/// Registers this rank's segment, unless it is for later, and tells everybody of it.
fn attach<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    segments: Segments,
    rdma: &Domains<M>,
    closed: Closed,
) -> Result<RegionTable, GniError> {
    let Segments { near, largest, owner, later, regions } = segments;
    let me = bootstrap.rank();
    let own = near.iter().find(|(rank, _)| *rank == me).map(|(_, own)| own);
    let known = own.filter(|_| !later).and_then(|own| own.mapped.slice(0, own.len as usize));
    let bytes = known.unwrap_or(RawSlice::EMPTY);
    // SAFETY: open.2: the table of peers keeps what it is in, and whoever uses the engines keeps that.
    let key = unsafe { rdma.register(bytes) }.map_err(unregistered)?;
    let base = own.map_or(0, |own| own.mapped.as_ptr().addr() as u64);
    let words = [bytes.len() as u64, largest, base];
    let card: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain(key.0).collect();
    let cards = bootstrap.exchange("gni.segments", &card)?;
    kill_point!("gni.open.attached");
    let mut near = near.into_iter().peekable();
    let mut least = largest;
    let peers = (0..).zip(cards.iter()).map(|(rank, theirs)| {
        let ([len, largest, remote_base], key) = read_card(theirs)
            .ok_or_else(|| GniError::Differs { rank, what: "has sent no card of a segment".into() })?;
        least = least.min(largest);
        Ok(match near.next_if(|(other, _)| *other == rank) {
            Some((_, near)) => Peer { key, remote_base, ..near },
            None => {
                let (mapped, flags) = (RawSlice::EMPTY, PeerFlags::empty());
                Peer { mapped, len, remote_base, key, flags }
            }
        })
    });
    let peers = peers.collect::<Result<Vec<_>, GniError>>()?;
    let largest = Largest { local: largest, global: least };
    let regions = Arc::new(Kept::new(regions, closed.clone()));
    let kept = Arc::new(Kept::new(owner, closed));
    let grows = if later { Grows::Once } else { Grows::Never };
    // SAFETY: open.2: `kept` keeps the segments of `near` mapped, becomes the table's, and says how long those of others are.
    let table = unsafe { RegionTable::growing(peers, kept, grows) };
    Ok(table.with_largest(largest).with_regions(regions))
}

// SAFETY: table.1 of gasworks_memory: what it keeps says the same of what it creates, and is dropped with this value or not at all.
unsafe impl RegionMemory for Kept<Arc<dyn RegionMemory>> {
    fn create(&self, id: RegionId, asked: &[Asked]) -> Result<Vec<Peer>, MemoryError> {
        self.get().create(id, asked)
    }
    fn unmap(&self, id: RegionId) -> Result<(), MemoryError> {
        self.get().unmap(id)
    }
    fn free(&self, id: RegionId) -> Result<(), MemoryError> {
        self.get().free(id)
    }
}

impl Growth for Kept<Arc<dyn Growth>> {
    fn length(&self, rank: Rank) -> u64 {
        self.get().length(rank)
    }
    fn grow(&self, len: u64) -> Result<u64, MemoryError> {
        self.get().grow(len)
    }
    fn largest(&self) -> Largest {
        self.get().largest()
    }
}

/// The length of a segment, of the largest that its rank could have had, its address there, and its key.
fn read_card(card: &[u8]) -> Option<([u64; 3], Vec<u8>)> {
    let (words, key) = card.split_at_checked(24)?;
    let word = |at: usize| Some(u64::from_le_bytes(words.get(at..at + 8)?.try_into().ok()?));
    let words = [word(0)?, word(8)?, word(16)?];
    let wanted = if words[0] > 0 { KEY } else { 0 };
    (key.len() == wanted).then(|| (words, key.to_vec()))
}

fn unregistered(cause: EngineError) -> GniError {
    match cause {
        EngineError::Registration(NicError::Registration { len, why }) => {
            GniError::Register { len, code: why }
        }
        cause => cause.into(),
    }
}

/// What layouts follow from in a job of so many ranks, and how much may be under way.
pub(crate) fn shape(chip: Chip, ranks: u32, settings: &Settings) -> Result<(Shape, Flow), GniError> {
    let flow = flow(chip, settings.max_medium)?;
    let shape = Shape {
        ranks,
        tickets: flow.depth,
        slots: flow.total,
        max_medium: settings.max_medium,
        replies: REPLIES,
        fetches: settings.fetches,
    };
    Ok((shape, flow))
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

/// Notifications for which there is room in any job, beside those of replies.
const ARRIVALS: u32 = 1024;
/// And for each rank that may send some.
const ARRIVALS_EACH: u32 = 48;

/// Room for notifications: of replies, and of the payloads beside them, all that there can be. Of requests there may be more, if all ranks send
/// all that they may to one that does not look: they call again then, which is dear and loses nothing, where room for all would be of no
/// use but then.
pub(crate) fn arrivals(shape: &Shape, longs: u32) -> u32 {
    let each = shape.tickets.saturating_add(longs).min(ARRIVALS_EACH);
    let requests = shape.ranks.saturating_mul(each).saturating_add(ARRIVALS);
    requests.saturating_add(shape.slots.saturating_mul(2))
}

fn mailbox_shape(layout: &Layout, flow: Flow) -> mailboxes::Shape {
    mailboxes::Shape::new(layout.shape.tickets, flow.volume, layout.slot_len)
}

/// What subsystems ask of the auxiliary segment: messages, and transfers by each domain.
fn plan(layout: &Layout, tuning: &Tuning, domains: u32) -> (AuxPlan, usize, Vec<usize>) {
    let mut plan = AuxPlan::new();
    let (least, wanted) = tuning.memory();
    let messages = plan.ask(layout.len as u64, layout.len as u64);
    let transfers = (0..domains).map(|_| plan.ask(least as u64, wanted as u64)).collect();
    (plan, messages, transfers)
}

/// The memory of all subsystems, in one piece.
fn auxiliary(
    layout: &Layout,
    tuning: &Tuning,
    domains: u32,
) -> Result<(Mapping, VolatileSlice<'static>, Vec<RawSlice>), GniError> {
    let (plan, messages, transfers) = plan(layout, tuning, domains);
    let too_large =
        || GniError::TooLarge { what: format!("{} bytes for messages and transfers", plan.wanted()) };
    let parts = plan.lay_out(plan.wanted()).ok_or_else(too_large)?;
    let len = usize::try_from(plan.wanted()).map_err(|_| too_large())?;
    let mapping = memfd::create("gasworks-auxiliary", len)?.map()?;
    // SAFETY: open.1: `mapping` is returned with the parts, and kept by what uses them; nobody refers to its bytes otherwise.
    let all = unsafe { mapping.bytes().raw().borrow::<'static>() };
    let part = |number: usize| {
        let part = parts[number];
        all.slice(part.offset as usize, part.len as usize).unwrap_or(VolatileSlice::EMPTY)
    };
    let transfers = transfers.into_iter().map(|number| part(number).raw()).collect();
    let messages = part(messages);
    Ok((mapping, messages, transfers))
}

/// Registers the memory and tells the others where it is.
fn meet<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    mut domain: Domain,
    settings: &Settings,
    (layout, flow): (Layout, Flow),
    (mapping, messages): (Mapping, VolatileSlice<'static>),
    (chip, attributes, abilities, closed): (Chip, Attributes, Abilities, Closed),
    (leader, levels, by_engines): (Rank, Option<Levels<M::Barrier>>, bool),
) -> Result<Arc<Shared<M>>, GniError> {
    let (me, shape) = (bootstrap.rank(), layout.shape);
    let boxes = mailbox_shape(&layout, flow);
    let given = settings.mailboxes(shape.ranks);
    if settings.report && bootstrap.rank() == 0 {
        let (all, each, ranks) = (layout.len, layout.each(), shape.ranks);
        gasworks_os::say(&format!(
            "gasworks: messages over uGNI take {all} bytes of each rank, {each} of these for each of {ranks} ranks; and {} more for each \
             that talks, up to {given} ranks",
            boxes.len()
        ));
    }
    // From here on it stays mapped if something fails, for others may be writing to it by then.
    let memory = Kept::new(mapping, closed.clone());
    let all = memory.get().raw();
    // SAFETY: open.1: the mapping stays, and goes after the domain where all goes well.
    let handle = patiently(|| unsafe { domain.register(all, true, MESSAGE_FLAGS) })
        .map_err(|code| GniError::Register { len: all.len(), code: code_name(code) })?;
    kill_point!("gni.open.registered");
    let region = Region::new(messages);
    let (mut engine, mut further) = (NO_ENGINE, NO_ENGINE);
    if by_engines && leader == me {
        engine = domain.take_engine(EngineOf::Barrier)?.into();
        // The barrier does without it, where the NIC has no other: then nobody uses one.
        further = domain.take_engine(EngineOf::Words).map_or(NO_ENGINE, u64::from);
    }
    let alike = alike(&layout, &boxes, settings.engines_below);
    let (job, nic) = (domain.job(), domain.address().into());
    let mine =
        [job, nic, leader.into(), region.address(0), handle.words[0], handle.words[1], engine, further];
    let mine: Vec<u8> = mine.iter().chain(&alike).flat_map(|word| word.to_le_bytes()).collect();
    let cards = bootstrap.exchange("gni.cards", &mine)?;
    let ranks = bootstrap.size() as usize;
    let (mut homes, mut addresses) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks));
    let (mut leaders, mut further_engines) = (Vec::new(), Vec::new());
    for (rank, theirs) in (0..).zip(cards.iter()) {
        let differs = |what: &str| GniError::Differs { rank, what: what.into() };
        let (words, rest) = theirs.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (&[of, nic, leads, address, first, second, engine, further, ref theirs @ ..], true) =
            (words.as_slice(), rest.is_empty())
        else {
            return Err(differs("has sent a card of another length"));
        };
        if of != job {
            return Err(differs(
                "is of another job for the NIC: PMI_GNI_PTAG and PMI_GNI_COOKIE are the same in all ranks",
            ));
        }
        if theirs != alike {
            return Err(differs(
                "lays its messages out otherwise: GASNET_NETWORKDEPTH, GASNET_NETWORKDEPTH_TOTAL, GASNET_NETWORKDEPTH_SPACE, \
                 GASNET_GNI_MAX_MEDIUM, GASNET_GNI_AM_RVOUS_BUFFERS and GASNET_GNI_CE_RADIX are the same in all ranks",
            ));
        }
        if leads == u64::from(rank) {
            if by_engines != (engine != NO_ENGINE) {
                return Err(differs(
                    "meets otherwise: GASNET_BARRIER, GASNET_USE_CE and GASNET_USE_CE_PSHM are the same in all ranks",
                ));
            }
            leaders.push((rank, engine as u32));
            further_engines.push((rank, further));
        } else if leads > u64::from(rank)
            || leaders.binary_search_by_key(&leads, |(rank, _)| u64::from(*rank)).is_err()
        {
            return Err(differs("meets with a rank that leads nobody"));
        }
        addresses.push(u32::try_from(nic).map_err(|_| differs("has a NIC at an address that is none"))?);
        homes.push(Home { address, handle: Handle { words: [first, second] } });
    }
    domain.meet(addresses.into());
    // One rank that leads all others has nobody to combine its words with.
    let have_further = by_engines
        && (leaders.len() > 1 || ranks == 1)
        && further_engines.iter().all(|(_, engine)| *engine != NO_ENGINE);
    if !have_further {
        domain.give_back_engine(EngineOf::Words);
    }
    if let Some(me) = leaders.iter().position(|(rank, _)| by_engines && *rank == me) {
        // All have done so before any gives something: they tell each other of their segments in between.
        let radix = settings.engines_below as usize;
        domain.join_tree(EngineOf::Barrier, &Place { ranks: &leaders, me, radix })?;
        if have_further {
            let ranks: Vec<_> = further_engines.iter().map(|&(rank, engine)| (rank, engine as u32)).collect();
            domain.join_tree(EngineOf::Words, &Place { ranks: &ranks, me, radix })?;
        }
    }
    kill_point!("gni.open.met");
    let mailboxes = Mailboxes::new(boxes, given, MESSAGE_FLAGS, closed.clone());
    let bursts = Bursts { done: settings.done, arrivals: settings.arrivals };
    let bell = domain.bell();
    let channel = domain.open_channel().map(Descriptor::from);
    let messages = Messages::new(
        domain,
        me,
        (layout, region),
        homes.into(),
        mailboxes,
        (bursts, settings.longs(shape.tickets)),
        (&leaders.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), by_engines),
    );
    Ok(Arc::new(Shared {
        messages: Guard::new(messages, settings.spins),
        levels: levels.map(M::HandlerLock::new),
        meeting: AtomicBool::new(false),
        awaited: AtomicBool::new(false),
        bell,
        channel,
        still: AtomicBool::new(false),
        chip,
        attributes,
        abilities,
        flags: settings.memory_flags(),
        me,
        by_engines,
        participants: if have_further { leaders.len() as u32 } else { 0 },
        auxiliary: (all, handle),
        closed,
        _memory: memory,
    }))
}

/// What has to be the same in all ranks.
fn alike(layout: &Layout, boxes: &mailboxes::Shape, radix: u32) -> [u64; 5] {
    let Shape { tickets, slots, .. } = layout.shape;
    [layout.len as u64, tickets.into(), slots.into(), boxes.len() as u64, radix.into()]
}
