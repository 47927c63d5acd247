//! The ports, implemented: [`GniWire`] moves active messages, [`GniNic`] bytes.
//!
//! Both use one domain, behind one lock: none where one thread communicates. Where several do, one that polls does not wait
//! for it if nothing is under way and nothing has arrived.

use crate::atomics;
use crate::domain::{Bell, Chip, Domain, Kind, Network, Owner, Post, Refused};
use crate::error::code_name;
use crate::handle::Handle;
use crate::kept::{Closed, Kept};
use crate::levels::Levels;
use crate::messages::{Messages, NAME, Room, Taken};
use crate::pinned::patiently;
use crate::talk::Granules;
use crate::udreg::Use;
use gasworks_core::message::MAX_HEAD;
use gasworks_core::wire::head_of;
use gasworks_core::{
    Arrived, Attributes, Class, CoreMode, Name, Rank, Reservation, Wait, Wire, WireError, WordOp,
    WordReduction,
};
use gasworks_gni_sys::{
    GNI_MEM_READ_ONLY, GNI_RC_ALIGNMENT_ERROR, GNI_RC_INVALID_PARAM, GNI_RC_PERMISSION_ERROR, gni_return_t,
};
use gasworks_os::descriptor::Descriptor;
use gasworks_os::ending::{AtEnd, EndStep};
use gasworks_rdma::{Abilities, Completion, Direction, Key, Nic, NicError, Post as Transfer, Way};
use gasworks_sync::atomic::{AtomicBool, Ordering};
use gasworks_sync::{Lock, RawSlice, SpinLock, kill_point};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time in which nobody looks whether something has arrived of which no event tells.
const NAP: Duration = Duration::from_micros(100);
/// The longest time that posts have to come to their end when the process does.
const LAST_POSTS: Duration = Duration::from_millis(200);
/// The most that one post moves by the NIC itself: what 32 bits can say, in whole pages of 4 MiB.
const LARGEST: usize = 0xffc0_0000;
/// The most that the processor hands over in one post.
const SHORT: usize = 64 << 10;

/// The lock around the domain.
pub(crate) enum Guard<M: CoreMode, T = Messages> {
    /// A lock wherever threads may change: what shares it moves from thread to thread together in `ParSync`, which the compiler cannot
    /// know of what is counted.
    Usual(M::HandlerLock<T>),
    /// One whose waiters spin.
    Spin(Box<SpinLock<T>>),
}

impl<M: CoreMode, T> Guard<M, T> {
    pub fn new(guarded: T, spins: bool) -> Self {
        if spins && M::PARALLEL {
            Self::Spin(Box::new(SpinLock::new(guarded)))
        } else {
            Self::Usual(M::HandlerLock::new(guarded))
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        match self {
            Self::Usual(lock) => lock.with(f),
            Self::Spin(lock) => lock.with(f),
        }
    }

    fn seems_taken(&self) -> bool {
        match self {
            Self::Usual(lock) => lock.seems_taken(),
            Self::Spin(lock) => lock.seems_taken(),
        }
    }
}

/// What both ports use.
pub(crate) struct Shared<M: CoreMode> {
    pub messages: Guard<M>,
    /// The barrier, where it has two levels, and whether a phase is under way.
    pub levels: Option<M::HandlerLock<Levels<M::Barrier>>>,
    pub meeting: AtomicBool,
    /// Whether a phase was begun whose end nobody has been told yet.
    pub awaited: AtomicBool,
    /// Looks without the lock.
    pub bell: Bell,
    /// Readable when something has arrived after the domain was armed; another descriptor of the same, so that it stays open.
    pub channel: Option<Descriptor>,
    /// What [`Messages::is_still`] has said last, where several threads poll.
    pub still: AtomicBool,
    pub me: Rank,
    /// Whether the barrier goes by collective engines.
    pub by_engines: bool,
    /// The number of ranks with a second engine, for reductions of words: all that meet over the network, or none.
    pub participants: u32,
    pub chip: Chip,
    pub attributes: Attributes,
    pub abilities: Abilities,
    /// `GNI_MEM_*` for memory of the engine's.
    pub flags: u32,
    /// What was registered beforehand, for the engine as well.
    pub auxiliary: (RawSlice, Handle),
    /// Nobody writes here any more.
    pub closed: Closed,
    /// It keeps the auxiliary segment mapped (open.1 of the module `open`); after the domain, which is in `messages`.
    pub _memory: Kept,
}

impl<M: CoreMode> Shared<M> {
    /// Does something with the domain.
    pub fn with<R>(&self, f: impl FnOnce(&mut Messages) -> R) -> R {
        self.messages.with(|messages| {
            let done = f(messages);
            if M::PARALLEL {
                let is_still = messages.is_still() && !self.closed.is_set();
                if self.still.load(Ordering::Relaxed) != is_still {
                    self.still.store(is_still, Ordering::Relaxed);
                }
            }
            done
        })
    }

    /// Goes on with the barrier of two levels.
    pub fn turn_levels(&self) -> Option<Name> {
        let begin = |name| self.with(|messages| messages.begin_barrier(name));
        let agreed = || self.with(|messages| messages.barrier_done());
        self.levels.as_ref()?.with(|levels| {
            let name = levels.turn(begin, agreed)?;
            self.meeting.store(false, Ordering::Relaxed);
            Some(name)
        })
    }

    /// Whether a poll would wait for another thread and then find nothing, as far as can be told without the lock. What that one
    /// begins meanwhile the next poll finds. Where the lock is free it is sooner taken than looked beside.
    fn is_vain(&self) -> bool {
        M::PARALLEL
            && self.messages.seems_taken()
            && self.still.load(Ordering::Relaxed)
            // SAFETY: domain.1: the domain is dropped with `self`.
            && unsafe { self.bell.is_silent() }
    }
}

/// The process ends, and the job with it: what is under way comes to its end, if it does so soon; then the domain is given up.
impl<M: CoreMode> AtEnd for Shared<M> {
    fn end(&self, step: EndStep) {
        match step {
            EndStep::Settle => {
                let begun = Instant::now();
                let settles = || self.with(|messages| messages.settle_posts());
                while !settles() && begun.elapsed() < LAST_POSTS {
                    std::thread::yield_now();
                }
            }
            EndStep::GiveUp => {
                // Nobody looks without the lock any more.
                self.still.store(false, Ordering::Relaxed);
                self.closed.set();
                self.messages.with(|messages| messages.domain.give_up());
            }
        }
    }
}

/// The transport.
pub struct GniWire<M: CoreMode>(pub(crate) Arc<Shared<M>>);

/// The network interface, by one domain. All register with the first, whose handles are good for the others' posts.
pub struct GniNic<M: CoreMode> {
    /// Its domain, which the first NIC shares with messages. It is given up before the memory that all use.
    further: Option<Guard<M, Domain>>,
    shared: Arc<Shared<M>>,
}

fn ticket_of(room: Room) -> [u64; 2] {
    match room {
        Room::Reply { number, ends: None } => [0, number.into()],
        Room::Reply { number, ends: Some((ended, slot)) } => {
            [2 | u64::from(slot) << 8 | u64::from(number) << 32, ended]
        }
        Room::Request { ticket, slot, granules, beside } => {
            let Granules { first, count } = granules.unwrap_or_default();
            let flags = 1 | u64::from(beside) << 1;
            [
                flags | u64::from(first) << 8 | u64::from(count) << 16,
                u64::from(ticket) | u64::from(slot) << 32,
            ]
        }
    }
}

fn room_of(ticket: [u64; 2]) -> Room {
    let [flags, rest] = ticket;
    match flags & 3 {
        0 => return Room::Reply { number: rest as u32, ends: None },
        2 => return Room::Reply { number: (flags >> 32) as u32, ends: Some((rest, (flags >> 8) as u16)) },
        _ => {}
    }
    let granules = Granules { first: (flags >> 8) as u32 & 0xff, count: (flags >> 16) as u32 & 0xff };
    let granules = (granules.count > 0).then_some(granules);
    Room::Request { ticket: rest as u32, slot: (rest >> 32) as u16, granules, beside: flags & 2 != 0 }
}

/// By engines of Aries.
impl<M: CoreMode> WordReduction for GniWire<M> {
    fn participants(&self) -> u32 {
        self.0.participants
    }

    fn contribute(&self, number: u64, op: WordOp, word: u64) {
        self.0.with(|messages| messages.begin_words(number, op, word));
    }

    fn result(&self) -> Option<u64> {
        self.0.with(|messages| messages.words_result())
    }
}

impl<M: CoreMode> Wire<M> for GniWire<M> {
    fn attributes(&self) -> Attributes {
        self.0.attributes
    }

    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        let (room, payload) = self.0.with(|messages| messages.reserve(to, class, payload, MAX_HEAD))?;
        Ok(Reservation::new(to, class, payload, ticket_of(room)))
    }

    fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let (to, room) = (reservation.to, room_of(reservation.ticket));
        self.0.with(|messages| messages.commit(to, room, reservation.payload().len(), head))
    }

    fn send(&self, to: Rank, class: Class, word: u64, args: &[u8], payload: &[u8]) -> Result<(), WireError> {
        let (head, len) = head_of(word, args);
        self.0.with(|messages| {
            let (room, place) = messages.reserve(to, class, payload.len(), len)?;
            place.write(payload);
            messages.commit(to, room, payload.len(), &head[..len])
        })
    }

    fn beside(&self, reservation: &mut Reservation<'_>) -> Option<u32> {
        let mut room = room_of(reservation.ticket);
        let call = self.0.with(|messages| messages.beside(reservation.to, &mut room));
        reservation.ticket = ticket_of(room);
        call
    }

    fn cancel(&self, reservation: Reservation<'_>) {
        self.0.with(|messages| messages.cancel(reservation.to, room_of(reservation.ticket)));
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        if self.0.meeting.load(Ordering::Relaxed) {
            // Others may wait for this rank to meet the other leaders.
            self.0.turn_levels();
        }
        if self.0.is_vain() {
            return Ok(0);
        }
        let mut used: Option<Taken> = None;
        for handed in 0..burst {
            let next = self.0.with(|messages| {
                used.take().map_or(Ok(()), |taken| messages.give_back(taken))?;
                if handed == 0 {
                    messages.begin_poll();
                }
                messages.next()
            })?;
            let Some(taken) = next else { return Ok(handed) };
            // No lock is held: a handler replies from in there.
            sink(Arrived { from: taken.from, head: taken.head(), payload: taken.payload });
            used = Some(taken);
        }
        self.0.with(|messages| used.map_or(Ok(()), |taken| messages.give_back(taken)))?;
        Ok(burst)
    }

    fn wait(&self) -> Wait<'_> {
        self.0.channel.as_ref().map_or(Wait::Nothing, |channel| Wait::Descriptor(channel.as_fd()))
    }

    fn arm(&self) -> Result<Duration, WireError> {
        // Of a step of the barrier no event tells, and one that a poll has taken is not asked about yet.
        let meets = self.0.awaited.load(Ordering::Relaxed) || self.0.channel.is_none();
        Ok(self.0.with(|messages| {
            let longest = match () {
                () if messages.is_restless() => return Duration::ZERO,
                () if meets || !messages.is_still() => NAP,
                () => Duration::MAX,
            };
            // For a nap as well: a channel that has told stays readable until it is asked, and nobody could sleep beside it.
            match messages.domain.arm() {
                Some(true) => longest,
                Some(false) => Duration::ZERO,
                None => NAP,
            }
        }))
    }

    fn reduction(&self) -> Option<&dyn WordReduction> {
        (self.0.participants > 0).then_some(self)
    }

    fn is_settled(&self) -> bool {
        self.0.with(|messages| messages.reap_some() == 0 && messages.is_settled())
    }

    fn closed(&self) {
        kill_point!("gni.closed");
        self.0.closed.set();
    }
}

/// A key: the handle. Where what it is of begins whoever posts to it says.
pub(crate) const KEY: usize = 16;
/// A key of what is kept: behind that, which use it is.
const KEPT: usize = 24;

fn encode(handle: Handle) -> Key {
    Key(handle.words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn decode(key: &Key) -> Option<Handle> {
    let word = |at: usize| Some(u64::from_le_bytes(key.0.get(8 * at..8 * at + 8)?.try_into().ok()?));
    [KEY, KEPT].contains(&key.0.len()).then_some(Handle { words: [word(0)?, word(1)?] })
}

fn unregistered(bytes: RawSlice, code: gni_return_t) -> NicError {
    NicError::Registration { len: bytes.len(), why: code_name(code) }
}

/// Which use of something kept a key stands for, if it stands for one.
fn use_of(key: &Key) -> Option<Use> {
    let (_, number) = key.0.split_at_checked(KEY)?;
    number.try_into().ok().map(|number| Use(u64::from_le_bytes(number)))
}

impl<M: CoreMode> GniNic<M> {
    /// That of the domain which messages use.
    pub(crate) fn first(shared: Arc<Shared<M>>) -> Self {
        Self { further: None, shared }
    }

    /// That of a further domain, which has met the others.
    pub(crate) fn further(shared: Arc<Shared<M>>, domain: Domain, spins: bool) -> Self {
        Self { further: Some(Guard::new(domain, spins)), shared }
    }

    /// A transfer that has come so far, the `first` of a poll or another.
    fn next(&self, first: bool) -> Option<Completion> {
        let Some(domain) = &self.further else {
            return self.shared.with(|messages| messages.next_transfer(first));
        };
        let next = |domain: &mut Domain| if domain.under_way() > 0 { domain.next_done() } else { None };
        let (next, is_lost) = domain.with(|domain| (next(domain), domain.is_lost()));
        if is_lost {
            // Whoever waits for what it had under way hears of it by the next message that is looked for.
            self.shared.with(|messages| messages.domain.lose());
        }
        let done = next?;
        done.unheard.into_iter().for_each(|call| self.shared.with(|messages| messages.call(done.peer, call)));
        done.completion()
    }

    /// Registers memory with the first domain, if the NIC has room now.
    ///
    /// # Safety
    /// As [`Network::register`].
    unsafe fn register_once(&self, bytes: RawSlice, calls: bool, flags: u32) -> Result<Handle, gni_return_t> {
        // SAFETY: the caller promises that the bytes stay mapped until the registration is ended, or until the domain's end.
        self.shared.with(|messages| unsafe { messages.domain.register(bytes, calls, flags) })
    }

    /// The handle of what was registered beforehand, if it holds these bytes.
    fn beforehand(&self, bytes: RawSlice) -> Option<Handle> {
        let (auxiliary, handle) = self.shared.auxiliary;
        let offset = bytes.as_ptr().addr().checked_sub(auxiliary.as_ptr().addr())?;
        auxiliary.slice(offset, bytes.len()).map(|_| handle)
    }
}

impl<M: CoreMode> Nic for GniNic<M> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn abilities(&self) -> Abilities {
        self.shared.abilities
    }

    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        if let Some(handle) = self.beforehand(bytes) {
            return Ok(encode(handle));
        }
        // Gets are rounded up. The bytes begin at such a multiple, so that these few more are of the same page.
        let bytes = RawSlice::new(bytes.as_ptr(), bytes.len().next_multiple_of(GET_ALIGNMENT));
        // The job cannot do without.
        // SAFETY: the caller promises that the bytes are mapped, and stay so while a post names them, here or in a peer; so are the few more,
        // for a page is mapped as a whole.
        patiently(|| unsafe { self.register_once(bytes, true, self.shared.flags) })
            .map_err(|code| unregistered(bytes, code))
            .map(encode)
    }

    unsafe fn register_local(&self, bytes: RawSlice) -> Result<Key, NicError> {
        let taken = self.shared.with(|messages| {
            // SAFETY: the caller promises that the bytes are mapped, and stay so while a transfer names them.
            messages.domain.kept.as_mut().map(|kept| unsafe { kept.take(bytes) })
        });
        match taken {
            Some(Ok((handle, Use(number)))) => {
                let mut key = encode(handle);
                key.0.extend(number.to_le_bytes());
                Ok(key)
            }
            Some(Err(why)) => Err(NicError::Registration { len: bytes.len(), why }),
            None => {
                // SAFETY: the caller promises that the bytes are mapped, and stay so while its transfer names them.
                let handle = unsafe { self.register_once(bytes, true, self.shared.flags) };
                handle.map_err(|code| unregistered(bytes, code)).map(encode)
            }
        }
    }

    unsafe fn register_source(&self, bytes: RawSlice) -> Result<Key, NicError> {
        let flags = self.shared.flags | GNI_MEM_READ_ONLY;
        // SAFETY: the caller promises that the bytes are mapped, and stay so while its put reads them.
        let handle = unsafe { self.register_once(bytes, false, flags) };
        handle.map_err(|code| unregistered(bytes, code)).map(encode)
    }

    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        let bad = NicError::BadKey { peer: self.shared.me };
        if let Some(number) = use_of(key) {
            let was_used = self
                .shared
                .messages
                .with(|messages| messages.domain.kept.as_mut().is_some_and(|kept| kept.give(number)));
            return if was_used { Ok(()) } else { Err(bad) };
        }
        let handle = decode(key).ok_or(bad)?;
        if handle == self.shared.auxiliary.1
            || self.shared.with(|messages| messages.domain.deregister(handle))
        {
            return Ok(());
        }
        Err(bad)
    }

    unsafe fn post(&self, post: &Transfer<'_>) -> Result<(), NicError> {
        let bad = NicError::BadKey { peer: post.peer };
        let remote_handle = decode(post.remote_key).ok_or(bad)?;
        let remote = post.remote_base.checked_add(post.remote_offset).ok_or(bad)?;
        // A short put needs none.
        let local_handle = decode(post.local_key).unwrap_or_default();
        let kind = match (post.direction, post.way) {
            (Direction::Put, Way::Short) => Kind::Put,
            (Direction::Put, Way::Bulk) => Kind::BulkPut { apart: post.source_apart },
            (Direction::Get, Way::Short) => Kind::Get,
            (Direction::Get, Way::Bulk) => Kind::BulkGet,
            (Direction::Update(update), _) => {
                let shape = NicError::BadShape { len: update.width(), offset: post.remote_offset };
                Kind::Atomic(atomics::command(self.shared.chip, &update).ok_or(shape)?)
            }
        };
        let token = post.token;
        let owner = match kind {
            Kind::Atomic(_) => Owner::Update { token },
            _ => Owner::Transfer { token },
        };
        let own = Post {
            kind,
            peer: post.peer,
            local: post.local,
            local_handle,
            remote,
            remote_handle,
            call: post.tells,
            owner,
        };
        let posted = match &self.further {
            // SAFETY: domain.5: `own.local` is `post.local`, which the caller keeps, and leaves alone, until the completion was polled.
            None => self.shared.with(|messages| unsafe { messages.domain.post(&own) }),
            // SAFETY: domain.5: the caller keeps `post.local` until `next` has handed out the completion from this domain.
            Some(domain) => domain.with(|domain| unsafe { domain.post(&own) }),
        };
        posted.map_err(|refused| match refused {
            Refused::Busy => NicError::Busy,
            Refused::Code(GNI_RC_ALIGNMENT_ERROR) => {
                NicError::BadShape { len: post.local.len(), offset: post.remote_offset }
            }
            Refused::Code(GNI_RC_INVALID_PARAM | GNI_RC_PERMISSION_ERROR) => bad,
            Refused::Code(code) => NicError::Unreachable { peer: post.peer, why: code_name(code) },
        })
    }

    fn tell(&self, peer: u32, number: u32, landed: bool) {
        // What will not come leaves its message where it is: the peer could not be reached.
        if landed {
            self.shared.with(|messages| messages.call(peer, number));
        }
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        if self.further.is_none() && self.shared.is_vain() {
            return 0;
        }
        for handed in 0..burst {
            // One at a time: what is done then may need the lock.
            let Some(completion) = self.next(handed == 0) else { return handed };
            sink(completion);
        }
        burst
    }
}

/// Gets are of whole words of so many bytes.
const GET_ALIGNMENT: usize = 4;

/// What a NIC of one of the two chips can do.
pub(crate) fn abilities(chip: Chip, posts: u32, burst: u32, keeps_registrations: bool) -> Abilities {
    Abilities {
        largest: LARGEST,
        get_alignment: GET_ALIGNMENT,
        put_alignment: 1,
        local_alignment: if chip == Chip::Aries { 1 } else { 4 },
        short: SHORT,
        registers_local: true,
        tells_source: true,
        keeps_registrations,
        depth: posts as usize,
        burst: burst as usize,
        atomics: atomics::of(chip),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_and_keys_come_back() {
        let granules = Some(Granules { first: 63, count: 1 });
        let rooms = [
            Room::Request { ticket: 63, slot: u16::MAX, granules, beside: true },
            Room::Request { ticket: 0, slot: 0, granules: None, beside: false },
            Room::Reply { number: 7, ends: None },
            Room::Reply { number: u32::MAX, ends: Some((1 << 63, u16::MAX)) },
        ];
        for room in rooms {
            assert_eq!(room_of(ticket_of(room)), room);
        }
        let handle = Handle { words: [1, u64::MAX] };
        assert_eq!((decode(&encode(handle)), use_of(&encode(handle))), (Some(handle), None));
        assert_eq!(decode(&Key(vec![0; 15])), None);
        let mut kept = encode(handle);
        kept.0.extend(9u64.to_le_bytes());
        assert_eq!((decode(&kept), use_of(&kept)), (Some(handle), Some(Use(9))));
    }
}
