//! The NIC: copies between registered memory of threads, when chance says that a transfer completes.
//!
//! # Invariants
//! - nic.1: a registration's bytes stay mapped until it ends (the promise of `register`), and a copy touches them only
//!   under the read lock of the registrations, which ending one takes for writing.
//! - nic.2: a post's local bytes stay mapped, unchanged for a put and nobody else's for a get, until its completion is
//!   polled (the promise of `post`), and a copy happens just before that.

use super::SimRank;
use super::dice::Choice;
use super::net::{Flight, Registration};
use gasworks_rdma::{Abilities, Completion, Direction, Key, Nic, NicError, Post, Stage, Way};
use gasworks_sync::{RawSlice, racy};

/// A rank's network interface.
#[derive(Clone)]
pub struct SimNic(pub(super) SimRank);

/// A key says whose registration it is, which one, and which use of that place.
fn encode(rank: u32, index: u32, generation: u32) -> Key {
    Key([rank, index, generation].iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn decode(key: &Key) -> Option<(u32, u32, u32)> {
    let word = |i: usize| Some(u32::from_le_bytes(key.0.get(4 * i..4 * i + 4)?.try_into().ok()?));
    (key.0.len() == 12).then_some((word(0)?, word(1)?, word(2)?))
}

impl SimNic {
    fn find(&self, rank: u32, index: u32, generation: u32) -> Option<RawSlice> {
        let registrations = self.0.net.registrations.read();
        let place = registrations.get(rank as usize)?.get(index as usize)?;
        place.bytes.filter(|_| place.generation == generation)
    }

    /// Whether the registration `key` of this rank holds `local`.
    fn holds(&self, key: &Key, local: RawSlice) -> bool {
        let Some((rank, index, generation)) = decode(key) else { return false };
        let Some(bytes) = self.find(rank, index, generation) else { return false };
        let (start, end) = (bytes.as_ptr().addr(), bytes.as_ptr().addr() + bytes.len());
        rank == self.0.rank && start <= local.as_ptr().addr() && local.as_ptr().addr() + local.len() <= end
    }

    /// The bytes of a registration that a transfer of `len` reaches: of a get that is rounded up beyond its end, fewer.
    fn reached(&self, bytes: RawSlice, offset: usize, len: usize, is_get: bool) -> Option<RawSlice> {
        let there = bytes.len().saturating_sub(offset);
        let unit = self.0.net.config.nic.get_alignment.max(1);
        let is_rounded =
            is_get && there > 0 && offset.checked_add(len)? <= bytes.len().next_multiple_of(unit);
        bytes.slice(offset, if is_rounded { len.min(there) } else { len })
    }

    /// Carries a transfer out.
    fn land(&self, flight: &Flight) -> Result<(), NicError> {
        let (faults, dice) = (self.0.net.config.faults, self.0.dice());
        if dice.chance(Choice::NicFault, flight.number, faults.nic_error) {
            return Err(NicError::PeerGone { peer: flight.peer });
        }
        let registrations = self.0.net.registrations.read();
        let (index, generation) = flight.registration;
        let place = registrations[flight.peer as usize].get(index as usize);
        let bytes = place.filter(|r| r.generation == generation).and_then(|r| r.bytes);
        let is_get = !flight.put && flight.update.is_none();
        let remote = bytes.and_then(|bytes| self.reached(bytes, flight.offset, flight.local.len(), is_get));
        let remote = remote.ok_or(NicError::BadKey { peer: flight.peer })?;
        // SAFETY: nic.1: the read lock `registrations` is held until this returns, so these bytes of a registration stay mapped.
        let remote = unsafe { remote.borrow() };
        let (own, len) = (flight.local.as_ptr(), flight.local.len());
        let local = flight.kept.as_ref().map_or(own.cast_const(), |kept| kept.as_ptr());
        // SAFETY: nic.1: the lock is held, so `remote` is mapped. nic.2: the post is not over, so `own` is; `kept`, if any, is of the
        // flight. All have `len` bytes, but for a get the remote side may have fewer.
        unsafe {
            if let Some(update) = flight.update {
                let was = update.at(remote).map_err(|_| NicError::BadKey { peer: flight.peer })?;
                if update.fetches {
                    racy::copy_in(own, was.to_le_bytes().as_ptr(), len);
                }
            } else if flight.put {
                racy::copy_in(remote.as_ptr(), local, len);
            } else {
                racy::copy_out(own, remote.as_ptr(), remote.len());
            }
        }
        if dice.chance(Choice::NicFault, flight.number, faults.corrupt) {
            let target = if flight.put { remote.raw() } else { flight.local };
            // SAFETY: nic.1: `remote` is mapped, since the lock is held. nic.2: the local bytes of a get are, and are nobody else's. There
            // is one byte at least.
            unsafe { flip(target.as_ptr()) };
        }
        Ok(())
    }
}

/// Flips a bit of a byte.
///
/// # Safety
/// The byte is mapped, and no reference to it exists.
unsafe fn flip(byte: *mut u8) {
    let mut value = [0u8];
    // SAFETY: the caller promises that the byte is mapped and that there is no reference to it; `value` is of this function.
    unsafe {
        racy::copy_out(value.as_mut_ptr(), byte, 1);
        value[0] ^= 0x10;
        racy::copy_in(byte, value.as_ptr(), 1);
    }
}

impl Nic for SimNic {
    fn name(&self) -> &'static str {
        "simnic"
    }

    fn abilities(&self) -> Abilities {
        self.0.net.config.nic
    }

    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        if self.0.net.config.faults.refuse_registration == Some(self.0.rank) {
            return Err(NicError::Registration { len: bytes.len(), why: "as configured" });
        }
        let mut registrations = self.0.net.registrations.write();
        let mine = &mut registrations[self.0.rank as usize];
        let index = mine.iter().position(|place| place.bytes.is_none()).unwrap_or(mine.len());
        if index == mine.len() {
            mine.push(Registration::default());
        }
        mine[index].generation += 1;
        mine[index].bytes = Some(bytes);
        Ok(encode(self.0.rank, index as u32, mine[index].generation))
    }

    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        let bad = NicError::BadKey { peer: self.0.rank };
        let (rank, index, generation) = decode(key).filter(|k| k.0 == self.0.rank).ok_or(bad)?;
        let mut registrations = self.0.net.registrations.write();
        let place = registrations[rank as usize].get_mut(index as usize).ok_or(bad)?;
        if place.generation != generation || place.bytes.take().is_none() {
            return Err(bad);
        }
        Ok(())
    }

    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        let config = &self.0.net.config;
        let (len, offset) = (post.local.len(), post.remote_offset);
        let put = post.direction == Direction::Put;
        let update = match post.direction {
            Direction::Update(update) => Some(update),
            _ => None,
        };
        let alignment = match post.direction {
            Direction::Put => config.nic.put_alignment.max(1),
            Direction::Get => config.nic.get_alignment.max(1),
            Direction::Update(update) => update.width(),
        };
        let is_short = post.way == Way::Short;
        let here = if put { 1 } else { config.nic.local_alignment.max(1) };
        let aligned = len.is_multiple_of(alignment)
            && offset.is_multiple_of(alignment as u64)
            && post.local.as_ptr().addr().is_multiple_of(here);
        let longest = match update {
            Some(update) => update.width(),
            None if is_short => config.nic.short,
            None => config.nic.largest,
        };
        let is_offered = update.is_none_or(|u| config.nic.atomics.on(u.of).contains(u.bit()));
        if !is_offered || len == 0 || len > longest || !aligned {
            return Err(NicError::BadShape { len, offset });
        }
        let needs_key = config.nic.registers_local && !(put && is_short);
        if needs_key && !self.holds(post.local_key, post.local) {
            return Err(NicError::BadKey { peer: self.0.rank });
        }
        let bad = NicError::BadKey { peer: post.peer };
        let (rank, index, generation) = decode(post.remote_key).filter(|k| k.0 == post.peer).ok_or(bad)?;
        let bytes = self.find(rank, index, generation).ok_or(bad)?;
        let offset = usize::try_from(offset).map_err(|_| bad)?;
        self.reached(bytes, offset, len, post.direction == Direction::Get).ok_or(bad)?;
        if let Some(broken) = self.0.net.broken() {
            return Err(NicError::PeerGone { peer: broken.rank });
        }
        let mut side = self.0.seat().nic.lock();
        side.posts += 1;
        let (number, dice) = (side.posts, self.0.dice());
        if side.flights.len() >= config.nic.depth || dice.chance(Choice::NicBusy, number, config.nic_busy) {
            return Err(NicError::Busy);
        }
        let when = (
            side.polls + dice.up_to(Choice::NicDelay, number, config.nic_delay),
            dice.number(Choice::NicOrder, number),
        );
        let registration = (index, generation);
        let Post { local, peer, token, .. } = *post;
        let (tells, kept) = (post.source_apart && !is_short && config.nic.tells_source, None);
        side.flights.push(Flight {
            put,
            update,
            local,
            tells,
            told: post.tells,
            kept,
            peer,
            registration,
            offset,
            token,
            number,
            when,
        });
        Ok(())
    }

    fn tell(&self, peer: u32, number: u32, landed: bool) {
        let seat = &self.0.net.seats[peer as usize];
        seat.inbox.lock().told.insert((self.0.rank, number), landed);
        seat.arrival.ring();
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        let mut handed = 0;
        let now = {
            let mut side = self.0.seat().nic.lock();
            side.polls += 1;
            side.polls
        };
        while handed < burst {
            // Of those that are not due yet, some have been read.
            let read = {
                let mut side = self.0.seat().nic.lock();
                let early = side.flights.iter_mut().find(|f| f.tells && f.number.is_multiple_of(2));
                early.map(|flight| {
                    let mut bytes = vec![0; flight.local.len()];
                    // SAFETY: nic.2: no completion of this put was given out, so its `local` bytes are mapped and unchanged; `bytes` has as
                    // many.
                    unsafe { racy::copy_out(bytes.as_mut_ptr(), flight.local.as_ptr(), bytes.len()) };
                    (flight.tells, flight.kept) = (false, Some(bytes));
                    flight.token
                })
            };
            if let Some(token) = read {
                sink(Completion { token, stage: Stage::Source, result: Ok(()) });
                handed += 1;
                continue;
            }
            let flight = {
                let mut side = self.0.seat().nic.lock();
                let due = side.flights.iter().enumerate().filter(|(_, f)| f.when.0 <= now);
                let first = due.min_by_key(|(_, f)| f.when).map(|(i, _)| i);
                first.map(|i| side.flights.swap_remove(i))
            };
            let Some(flight) = flight else { break };
            let result = self.land(&flight);
            flight.told.into_iter().for_each(|number| self.tell(flight.peer, number, result.is_ok()));
            sink(Completion { token: flight.token, stage: Stage::Whole, result });
            handed += 1;
        }
        handed
    }
}
