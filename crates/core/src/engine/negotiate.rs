//! Negotiated payload: room for a message is agreed on first, filled in place, and then committed or given back. The
//! specification's `gex_AM_Prepare*`, `_Commit*` and `_Cancel*`.
//!
//! The room lies where the payload travels: in the message's own place in the transport, or, for a Long to a mapped
//! peer whose landing is known, in that peer's segment. So a payload that is made in place is copied nowhere. Where it lands being unknown, a Long
//! that no message carries is made in memory of the library's own; so is a Medium of a rank to itself.

use super::own::{REPLY, REQUEST};
use super::send::Way;
use super::{Engine, Incoming, Outgoing, Received, thread};
use crate::message::{Encoded, Head, Landing, MAX_ARGS, Returned};
use crate::wire::Class;
use crate::{Category, CoreMode, Error, Rank, Reservation};
use gasworks_memory::Rights;
use gasworks_sync::{Room as Memory, VolatileSlice};
use std::cell::Cell;

/// What room is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The category: Medium or Long.
    pub category: Category,
    /// The fewest bytes that will do.
    pub least: usize,
    /// The most that are of use; may be more than any message carries.
    pub most: usize,
    /// For a Long: where the payload will land, if it is known already.
    pub landing: Option<u64>,
    /// How long the client's own buffer is, from which the payload is taken at the commit. Without one the library gives room.
    pub source: Option<usize>,
}

/// Where the payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Into the packet.
    Packet,
    /// To its place in the peer's segment, which is mapped.
    Landing,
    /// There is none: the payload is the client's, and goes by the way that its landing asks for.
    Client,
    /// Into memory of the library's own, from where it goes as a client's.
    Memory,
}

/// Room that was agreed on. Dropped without a commit, it is given back.
#[must_use = "room is held until it is committed or cancelled"]
pub struct Prepared<'e, M: CoreMode> {
    engine: &'e Engine<M>,
    to: Rank,
    class: Class,
    ask: Ask,
    granted: usize,
    room: Room,
    reservation: Option<Reservation<'e>>,
    /// The room in the peer's segment.
    landed: Option<VolatileSlice<'e>>,
    memory: Option<Memory>,
    /// What was taken of the peer's volume, for a request.
    charged: u32,
    /// The credit that goes with a reply.
    own: Returned,
}

/// What a message is besides its payload, known at the commit.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// The index of the handler at the target.
    pub handler: u8,
    /// The arguments: at most 64 bytes, a multiple of 4.
    pub args: &'a [u8],
    /// The bytes of payload, at most those that were granted.
    pub len: usize,
    /// For a Long, where the payload lands. It is what was asked for, if that was known.
    pub landing: u64,
    /// The client's own buffer, where it was asked for room with one: its first `len` bytes are the payload.
    pub source: Option<&'a [u8]>,
}

impl<M: CoreMode> Engine<M> {
    /// Agrees on room for a request, polling while credits or room are short: for the most that is asked for, or the
    /// most that a message carries and the segment has at a known landing.
    ///
    /// # Errors
    /// What is asked for is more than any message carries or outside the segment, there is no such rank, or a poll
    /// finds something wrong.
    pub fn prepare(&self, to: Rank, ask: &Ask) -> Result<Prepared<'_, M>, Error> {
        let plan = self.plan(to, ask)?;
        let mut sleeper = self.sleeper();
        loop {
            match self.take_room(to, ask, plan) {
                Err(e) if e.is_busy() => self.turn(&mut sleeper)?,
                other => return other,
            }
        }
    }

    /// Agrees on room for a request, perhaps on no more than the least, or says that it must wait: the specification's
    /// IMMEDIATE.
    ///
    /// # Errors
    /// [`Error::is_busy`] if a credit or room is short, and those of [`prepare`](Self::prepare).
    pub fn try_prepare(&self, to: Rank, ask: &Ask) -> Result<Prepared<'_, M>, Error> {
        let plan = self.plan(to, ask)?;
        match self.take_room(to, ask, plan) {
            // Less may do, where it is volume or a large block that is short.
            Err(e) if e.is_busy() && plan.granted > ask.least => {
                self.take_room(to, ask, Plan { granted: ask.least, ..plan })
            }
            other => other,
        }
    }

    fn take_room(&self, to: Rank, ask: &Ask, plan: Plan) -> Result<Prepared<'_, M>, Error> {
        let charged = if plan.room == Room::Packet { plan.granted as u32 } else { 0 };
        self.take_credit(to, charged)?;
        let reserved = self.reserve_room(to, Class::Request, ask, plan, Returned::default());
        reserved.inspect_err(|_| self.give_back(to, charged))
    }

    /// Agrees on room for the reply to a request of `to` that carried `request_bytes` in its packet.
    pub(super) fn prepare_reply(
        &self,
        to: Rank,
        ask: &Ask,
        request_bytes: u32,
    ) -> Result<Prepared<'_, M>, Error> {
        let plan = self.plan_room(to, ask)?;
        self.reserve_room(to, Class::Reply, ask, plan, Returned { count: 1, bytes: request_bytes })
    }

    fn reserve_room(
        &self,
        to: Rank,
        class: Class,
        ask: &Ask,
        plan: Plan,
        own: Returned,
    ) -> Result<Prepared<'_, M>, Error> {
        let Plan { granted, room } = plan;
        // Whatever may be refused comes before the reservation, which would be lost.
        let memory = match room {
            Room::Memory => Some(Memory::zeroed(granted).ok_or(Error::NoMemory { len: granted })?),
            _ => None,
        };
        let landed = match (room, ask.landing) {
            (Room::Landing, Some(landing)) => self.landing(to, landing, granted)?,
            _ => None,
        };
        let reservation = match room {
            _ if to == self.rank => None,
            Room::Packet => Some(self.reserve(to, class, granted)?),
            Room::Landing => Some(self.reserve(to, class, 0)?),
            Room::Client | Room::Memory => None,
        };
        let charged = if class == Class::Request && room == Room::Packet { granted as u32 } else { 0 };
        let ask = *ask;
        Ok(Prepared {
            engine: self,
            to,
            class,
            ask,
            granted,
            room,
            reservation,
            landed,
            memory,
            charged,
            own,
        })
    }

    /// How much can be granted for a request, and where it goes.
    fn plan(&self, to: Rank, ask: &Ask) -> Result<Plan, Error> {
        thread::may_communicate("prepare an active message request")?;
        self.peer_exists("prepare an active message request", to)?;
        self.plan_room(to, ask)
    }

    fn plan_room(&self, to: Rank, ask: &Ask) -> Result<Plan, Error> {
        let category = ask.category;
        let (mapped, limits) = (self.peers.reaches_at(to, ask.landing.unwrap_or(0)), self.limits_to(to));
        let room = match category {
            Category::Long if mapped && (ask.landing.is_some() || ask.source.is_some()) => Room::Landing,
            Category::Long if ask.least <= limits.max_medium && to != self.rank => Room::Packet,
            Category::Medium if to != self.rank => Room::Packet,
            _ if ask.source.is_some() => Room::Client,
            _ => Room::Memory,
        };
        if matches!(room, Room::Client | Room::Memory)
            && !mapped
            && self.rdma_to(ask.landing.unwrap_or(0)).is_none()
        {
            return Err(Error::Unreachable { during: "prepare a long message", rank: to });
        }
        let max = match room {
            Room::Packet => limits.max_medium as u64,
            _ => limits.max_payload(category),
        };
        let source = ask.source.map_or(u64::MAX, |len| len as u64);
        let mut granted = (ask.most as u64).min(max).min(source);
        if ask.least > ask.most || (ask.least as u64) > max.min(source) {
            let max = max.min(source).min(ask.most as u64);
            return Err(Error::PayloadTooLarge { category, to, len: ask.least, max });
        }
        if let Some(landing) = ask.landing
            && self.landing(to, landing, granted as usize).is_err()
        {
            // The most need not fit: what is left of the segment or region will do, if that is not less than the least.
            let left = self.peers.left(to, landing);
            granted = granted.min(left.max(ask.least as u64));
            self.landing(to, landing, granted as usize)?;
        }
        Ok(Plan { granted: granted as usize, room })
    }

    /// Where a Long lands, if it is mapped. One of no bytes lands nowhere: its address is only delivered.
    pub(super) fn landing(
        &self,
        to: Rank,
        landing: u64,
        len: usize,
    ) -> Result<Option<VolatileSlice<'_>>, Error> {
        if len == 0 {
            return Ok(None);
        }
        self.peers.reach(to, landing, len, Rights::WRITE).map_err(Error::memory("long message"))
    }
}

#[derive(Clone, Copy)]
struct Plan {
    granted: usize,
    room: Room,
}

impl<M: CoreMode> Prepared<'_, M> {
    /// How many bytes of payload were granted: between the least and the most that was asked for.
    pub fn granted(&self) -> usize {
        self.granted
    }

    /// The library's room, as long as was granted; none where the client brings its own buffer. Nobody reads it before
    /// the commit, but for a Long to a mapped peer, whose segment this is. It is not used after the commit.
    pub fn room(&self) -> VolatileSlice<'_> {
        let room = match (&self.memory, &self.reservation) {
            _ if self.ask.source.is_some() => None,
            (Some(memory), _) => Some(memory.bytes(self.granted)),
            (None, Some(reservation)) if self.room == Room::Packet => Some(reservation.payload()),
            _ => self.landed,
        };
        room.unwrap_or(VolatileSlice::EMPTY)
    }

    /// Sends the message. What it says must fit what was asked for, or nothing is sent and the room is given back.
    ///
    /// # Errors
    /// It is longer than was granted, lands elsewhere than was asked, or has too many arguments; the peer is gone.
    pub fn commit(mut self, commit: &Commit<'_>) -> Result<(), Error> {
        let &Commit { handler, args, len, landing, .. } = commit;
        let (engine, to, category) = (self.engine, self.to, self.ask.category);
        if args.len() > 4 * MAX_ARGS || !args.len().is_multiple_of(4) {
            return Err(Error::Arguments { bytes: args.len() });
        }
        if len > self.granted {
            return Err(Error::PayloadTooLarge { category, to, len, max: self.granted as u64 });
        }
        let target = match category {
            Category::Long => {
                if let Some(asked) = self.ask.landing.filter(|&asked| asked != landing) {
                    return Err(Error::Landing { to, asked, landing });
                }
                engine.landing(to, landing, len)?
            }
            _ => None,
        };
        let source = self.source_of(commit)?;
        let Some(mut reservation) = self.reservation.take() else { return self.commit_whole(commit, source) };
        if self.room == Room::Landing && len > 0 && target.is_none() {
            // To a place that was not known before, which is not mapped as the segment is.
            engine.cancel(reservation);
            return self.commit_whole(commit, source);
        }
        match self.room {
            Room::Packet => {
                reservation.shorten(len);
                source.into_iter().for_each(|source| reservation.payload().write(source));
            }
            _ => source.zip(target).into_iter().for_each(|(source, target)| target.write(source)),
        }
        let in_packet = self.room == Room::Packet && category == Category::Long;
        let landing =
            (category == Category::Long).then_some(Landing { offset: landing, len: len as u64, in_packet });
        let head = Head::Message { category, reply: self.class == Class::Reply, handler, landing };
        let unused = if self.charged > 0 { u64::from(self.charged) - len as u64 } else { 0 };
        if unused > 0 {
            // The receiver returns what arrives; the rest was taken here and is given back here, which cannot fail.
            let _ = engine.account.left().give(to, 0, unused);
        }
        let class = std::mem::replace(&mut self.class, Class::Credit); // from here on the drop gives nothing back
        let sent =
            engine.send_reserved(reservation, &mut Encoded::new(head, Returned::default(), args), self.own);
        if sent.is_err() && class == Class::Request {
            engine.give_back(to, self.charged.min(len as u32));
        }
        Ok(sent?)
    }

    /// The payload, where it is the client's own.
    fn source_of<'a>(&self, commit: &Commit<'a>) -> Result<Option<&'a [u8]>, Error> {
        if self.ask.source.is_none() {
            return Ok(None);
        }
        let (source, len) = (commit.source.unwrap_or_default(), commit.len);
        let missing = Error::PayloadTooLarge {
            category: self.ask.category,
            to: self.to,
            len,
            max: source.len() as u64,
        };
        source.get(..len).map(Some).ok_or(missing)
    }

    /// A message for which no place is kept: what is the client's or in memory, and any of a rank to itself.
    fn commit_whole(mut self, commit: &Commit<'_>, source: Option<&[u8]>) -> Result<(), Error> {
        let (engine, to, class, category) = (self.engine, self.to, self.class, self.ask.category);
        let &Commit { handler, args, len, landing, .. } = commit;
        let mut memory = self.memory.take();
        let payload = memory.as_mut().map(|memory| memory.filled(len)).or(source);
        let message = Outgoing { category, handler, args, payload: payload.unwrap_or(&[]), landing };
        if class == Class::Reply || to == engine.rank {
            self.class = Class::Credit; // from here on the drop gives nothing back
            return match (payload, category) {
                // It was made where it lands.
                (None, _) => {
                    let received = Received::Landed { offset: landing, len: len as u64 };
                    let handled = match class {
                        Class::Reply => engine.handle_own::<REPLY>(&message, received),
                        _ => engine.handle_own::<REQUEST>(&message, received),
                    };
                    handled.map_err(|error| *error)
                }
                _ if class == Class::Reply => {
                    engine.reply(to, &message, self.own.bytes).map_err(|stop| stop.or_full(to))
                }
                _ => engine.to_itself::<REQUEST>(&message).map_err(|error| *error),
            };
        }
        let is_apart = !matches!(engine.check(to, &message)?, Way::Mapped(_)) && !message.payload.is_empty();
        if is_apart && !engine.has_network() {
            // By messages, each of which takes credits of its own.
            self.class = Class::Credit; // from here on the drop gives nothing back
            engine.give_back(to, 0);
            return engine.request(to, &message);
        }
        let mut sleeper = engine.sleeper();
        loop {
            match engine.send_whole(to, &message) {
                Err(e) if e.is_busy() => engine.turn(&mut sleeper)?,
                Ok(()) => {
                    self.class = Class::Credit;
                    return Ok(());
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Gives the room back unused, as dropping it does.
    pub fn cancel(self) {}
}

impl<M: CoreMode> Drop for Prepared<'_, M> {
    fn drop(&mut self) {
        if self.class == Class::Credit {
            return;
        }
        if let Some(reservation) = self.reservation.take() {
            self.engine.cancel(reservation);
        }
        if self.class == Class::Request {
            self.engine.give_back(self.to, self.charged);
        }
    }
}

impl<M: CoreMode> Engine<M> {
    /// Sends a Long request that has its credit, whatever way it takes; its payload travels apart from it.
    fn send_whole(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        match self.check(to, message)? {
            way @ Way::Mapped(_) => self.transmit(to, Class::Request, message, way, &[], Returned::default()),
            _ if message.payload.is_empty() => {
                self.send_header(to, Class::Request, self.encode(message, false, false), Returned::default());
                Ok(())
            }
            _ => self.put_then_request(to, message),
        }
    }
}

impl<'a, M: CoreMode> Incoming<'a, M> {
    /// Agrees on room for the reply, fills it in `fill`, and sends what that returns; nothing if it returns `None`.
    ///
    /// # Errors
    /// This is a reply itself or was replied to, the room cannot be had or the message cannot be sent, or the peer is gone.
    pub fn reply_prepared<'m>(
        &self,
        ask: &Ask,
        fill: impl FnOnce(&Prepared<'a, M>) -> Option<Commit<'m>>,
    ) -> Result<(), Error> {
        let (bytes, replied) = self.may_reply()?;
        let prepared = self.engine.prepare_reply(self.source, ask, bytes)?;
        if let Some(commit) = fill(&prepared) {
            prepared.commit(&commit)?;
            replied.set(true);
        }
        Ok(())
    }

    /// Agrees on room for the reply, which is sent by [`PreparedReply::commit`]. Dropped instead, it is none, and another may be
    /// agreed on.
    ///
    /// # Errors
    /// This is a reply itself or was replied to, or the room cannot be had.
    pub fn prepare_reply(&self, ask: &Ask) -> Result<PreparedReply<'a, M>, Error> {
        let (bytes, replied) = self.may_reply()?;
        Ok(PreparedReply { prepared: self.engine.prepare_reply(self.source, ask, bytes)?, replied })
    }
}

/// Room for a reply.
#[must_use = "room is held until it is committed or dropped"]
pub struct PreparedReply<'a, M: CoreMode> {
    prepared: Prepared<'a, M>,
    replied: &'a Cell<bool>,
}

impl<'a, M: CoreMode> PreparedReply<'a, M> {
    /// What was agreed on.
    pub fn prepared(&self) -> &Prepared<'a, M> {
        &self.prepared
    }

    /// Sends the reply.
    ///
    /// # Errors
    /// Those of [`Prepared::commit`].
    pub fn commit(self, commit: &Commit<'_>) -> Result<(), Error> {
        self.prepared.commit(commit)?;
        self.replied.set(true);
        Ok(())
    }
}
