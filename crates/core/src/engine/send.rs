//! Sending: requests, which wait for credits, and replies, which never do.

use super::credit::shortage;
use super::own::{REPLY, REQUEST};
use super::{Engine, Outgoing, thread};
use crate::error::Stop;
use crate::message::{Encoded, Head, Landing, MAX_ARGS, Returned, first_word, long_words};
use crate::view::View;
use crate::wire::{Class, WireError, ring};
use crate::{Category, CoreMode, Error, Rank, Reservation};
use gasworks_memory::Rights;
use gasworks_shmem::inbox::{Full, MAX_INLINE, Payload};
use gasworks_shmem::queues::Queues;
use gasworks_sync::VolatileSlice;

/// How a message's payload travels.
pub(super) enum Way<'a> {
    /// In the message.
    Packet,
    /// It is stored to the target's mapped segment first.
    Mapped(VolatileSlice<'a>),
    /// It is copied to the target's process first.
    Process,
    /// It is put by the NIC first.
    Nic,
}

impl<M: CoreMode> Engine<M> {
    /// Sends a request, polling while credits or room are short. One to this rank itself has been handled when this returns, and its reply;
    /// what a handler says went wrong the next poll tells.
    ///
    /// # Errors
    /// The message is not one that can be sent, the peer is gone, or a poll finds something wrong.
    #[inline]
    pub fn request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        // A copy for the rare way, so that on the usual one the message need not lie in memory.
        self.start(to, message).or_else(|stop| self.request_patiently(to, *message, stop))
    }

    /// Sends a request to a member of a team, as [`request`](Self::request) does to a rank.
    ///
    /// # Errors
    /// There is no such member; and those of [`request`](Self::request), which say which member it is.
    #[inline(always)]
    pub fn request_in(&self, view: &View<'_>, member: u32, message: &Outgoing<'_>) -> Result<(), Error> {
        if !view.is_direct(member) {
            return self.request_member(*view, member, *message);
        }
        self.start_known(member, message).or_else(|stop| self.request_patiently(member, *message, stop))
    }

    #[cold]
    fn request_member(&self, view: View<'_>, member: u32, message: Outgoing<'_>) -> Result<(), Error> {
        let rank = view.rank_of(member)?;
        self.request(rank, &message).map_err(|error| view.explain(member, error))
    }

    #[cold]
    fn request_patiently(&self, to: Rank, message: Outgoing<'_>, mut stop: Stop) -> Result<(), Error> {
        let mut sleeper = self.sleeper();
        loop {
            if let Some(error) = stop.error() {
                return Err(error);
            }
            self.turn(&mut sleeper)?;
            match self.start(to, &message) {
                Ok(()) => return Ok(()),
                Err(again) => stop = again,
            }
        }
    }

    /// Sends a request, or says that it must wait. A Long that goes by the NIC waits until its payload has landed.
    ///
    /// # Errors
    /// [`Error::is_busy`] if a credit or room is short, and those of [`request`](Self::request).
    #[inline]
    pub fn try_request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        self.start(to, message).map_err(|stop| stop.error().unwrap_or_else(|| self.busy(to, *message)))
    }

    /// Sends a request to a member of a team, or says that it must wait, as [`try_request`](Self::try_request) does to a rank.
    ///
    /// # Errors
    /// There is no such member; and those of [`try_request`](Self::try_request), which say which member it is.
    #[inline(always)]
    pub fn try_request_in(&self, view: &View<'_>, member: u32, message: &Outgoing<'_>) -> Result<(), Error> {
        if !view.is_direct(member) {
            return self.try_request_member(*view, member, *message);
        }
        let started = self.start_known(member, message);
        started.map_err(|stop| stop.error().unwrap_or_else(|| self.busy(member, *message)))
    }

    #[cold]
    fn try_request_member(&self, view: View<'_>, member: u32, message: Outgoing<'_>) -> Result<(), Error> {
        let rank = view.rank_of(member)?;
        self.try_request(rank, &message).map_err(|error| view.explain(member, error))
    }

    /// Why a message must wait, as things stand now.
    #[cold]
    fn busy(&self, to: Rank, message: Outgoing<'_>) -> Error {
        match self.account.left().lacks(to, message.payload.len() as u32) {
            Some(short) => Error::Busy { to, what: shortage(short) },
            None => Error::Wire(WireError::Busy { to }),
        }
    }

    /// Inlined where the category and the number of arguments are known.
    #[inline(always)]
    fn start(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Stop> {
        self.peer_exists("active message request", to)?;
        self.start_known(to, message)
    }

    /// To a rank that exists.
    #[inline(always)]
    fn start_known(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Stop> {
        thread::may_communicate("active message request")?;
        if to == self.rank {
            return Ok(self.to_itself::<REQUEST>(message)?);
        }
        if message.category == Category::Long {
            return self.start_long(to, *message);
        }
        self.check_packet(to, message)?;
        let bytes = message.payload.len() as u32;
        self.account.left().take(to, bytes).map_err(|_| Stop::BUSY)?;
        let sent = self.send_packet(to, Class::Request, message, Returned::default());
        if sent.is_err() {
            self.give_back(to, bytes);
        }
        sent
    }

    #[inline(never)]
    fn start_long(&self, to: Rank, message: Outgoing<'_>) -> Result<(), Stop> {
        let Some((queues, target)) = self.mapped_landing(to, &message) else {
            return Ok(self.try_request_long(to, message)?);
        };
        self.account.left().take(to, 0).map_err(|_| Stop::BUSY)?;
        if queues.claim(to).is_err() {
            self.give_back(to, 0);
            return Err(Stop::BUSY);
        }
        self.send_landed(queues, to, Class::Request, &message, target, Returned::default());
        Ok(())
    }

    /// The queues of a rank and where the payload of a Long lands there, if both are mapped and the message can be sent. All others go by
    /// calls, or are refused there.
    #[inline]
    fn mapped_landing(
        &self,
        to: Rank,
        message: &Outgoing<'_>,
    ) -> Option<(&Queues<'_, M>, VolatileSlice<'_>)> {
        let &Outgoing { args, payload, landing, .. } = message;
        let fits = args.len() <= 4 * MAX_ARGS
            && args.len().is_multiple_of(4)
            && payload.len() as u64 <= self.least.max_long
            && !payload.is_empty();
        let queues = self.router.queues_to(to).filter(|_| fits)?;
        Some((queues, self.peers.open(to, landing, payload.len())?))
    }

    /// Sends a Long for which there is room: its payload first, then its header, by the queues of its target.
    #[inline(always)]
    fn send_landed(
        &self,
        queues: &Queues<'_, M>,
        to: Rank,
        class: Class,
        message: &Outgoing<'_>,
        target: VolatileSlice<'_>,
        own: Returned,
    ) {
        let &Outgoing { handler, args, payload, landing, .. } = message;
        target.write(payload);
        let returned = self.account.with_owed(to, own);
        let landing = Landing { offset: landing, len: payload.len() as u64, in_packet: false };
        let words = long_words(class == Class::Reply, handler, args.len() / 4, landing, returned);
        // The store that publishes the header comes after those of the payload, so its handler sees it.
        if queues.send_words(to, class.queue(), words, args, Payload::NONE) {
            ring(queues.bell(to));
        }
    }

    fn try_request_long(&self, to: Rank, message: Outgoing<'_>) -> Result<(), Error> {
        let message = &message;
        let way = self.check(to, message)?;
        if matches!(way, Way::Nic) && !self.has_network() {
            return self.request_by_messages(to, message);
        }
        let packet = if matches!(way, Way::Packet) { message.payload } else { &[] };
        self.take_credit(to, packet.len() as u32)?;
        let sent = match way {
            Way::Nic => self.put_then_request(to, message),
            _ => self.transmit(to, Class::Request, message, way, packet, Returned::default()),
        };
        if sent.is_err() {
            self.give_back(to, packet.len() as u32);
        }
        sent
    }

    /// Sends the reply to a request of `to` that carried `request_bytes` in its packet. Inlined as [`start`](Self::start).
    #[inline(always)]
    pub(super) fn reply(&self, to: Rank, message: &Outgoing<'_>, request_bytes: u32) -> Result<(), Stop> {
        if to == self.rank {
            return Ok(self.to_itself::<REPLY>(message)?);
        }
        let own = Returned { count: 1, bytes: request_bytes };
        if message.category == Category::Long {
            return Ok(self.reply_long(to, *message, own)?);
        }
        self.check_packet(to, message)?;
        self.send_packet(to, Class::Reply, message, own)
    }

    fn reply_long(&self, to: Rank, message: Outgoing<'_>, own: Returned) -> Result<(), Error> {
        let message = &message;
        if let Some((queues, target)) = self.mapped_landing(to, message) {
            self.send_landed(queues, to, Class::Reply, message, target, own);
            return Ok(());
        }
        match self.check(to, message)? {
            // A reply waits for nobody, and messages with its payload would wait for credits.
            Way::Nic if !self.has_network() => Err(Error::PayloadTooLarge {
                category: message.category,
                to,
                len: message.payload.len(),
                max: self.limits_to(to).max_medium as u64,
            }),
            Way::Nic => self.put_then_reply(to, message, own),
            way => {
                let packet = if matches!(way, Way::Packet) { message.payload } else { &[] };
                self.transmit(to, Class::Reply, message, way, packet, own)
            }
        }
    }

    /// Whether a message that is no Long can be sent at all.
    #[inline]
    fn check_packet(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Stop> {
        let &Outgoing { category, args, payload, .. } = message;
        let max = if category == Category::Short { 0 } else { self.least.max_medium };
        if payload.len() <= max && args.len() <= 4 * MAX_ARGS && args.len().is_multiple_of(4) {
            return Ok(());
        }
        self.refuse(to, *message)
    }

    /// Whether a message can be sent that not every transport carries.
    #[cold]
    fn refuse(&self, to: Rank, message: Outgoing<'_>) -> Result<(), Stop> {
        Ok(self.check(to, &message).map(drop)?)
    }

    /// Sends a message that is no Long, with what credits are owed to its target.
    #[inline(always)]
    fn send_packet(&self, to: Rank, class: Class, message: &Outgoing<'_>, own: Returned) -> Result<(), Stop> {
        let &Outgoing { category, handler, args, payload, .. } = message;
        let returned = self.account.with_owed(to, own);
        let word = first_word(category, class == Class::Reply, handler, args.len() / 4, returned);
        if payload.len() <= MAX_INLINE
            && let Some(queues) = self.router.queues_to(to)
        {
            return match queues.post(to, class.queue(), word, args, payload) {
                Ok(wanted) => {
                    if wanted {
                        ring(queues.bell(to));
                    }
                    Ok(())
                }
                Err(Full) => {
                    self.account.owe_again(to, returned, own);
                    Err(Stop::BUSY)
                }
            };
        }
        let sent = self.send_by_call(to, class, word, args, payload);
        Ok(sent.inspect_err(|_| self.account.owe_again(to, returned, own))?)
    }

    /// Whether the message can be sent at all, as far as its sizes go.
    pub(super) fn fits(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        let &Outgoing { category, args, payload, .. } = message;
        if args.len() > 4 * MAX_ARGS || !args.len().is_multiple_of(4) {
            return Err(Error::Arguments { bytes: args.len() });
        }
        let max = self.limits_to(to).max_payload(category);
        if payload.len() as u64 > max {
            return Err(Error::PayloadTooLarge { category, to, len: payload.len(), max });
        }
        Ok(())
    }

    /// Whether the message can be sent at all, and how.
    pub(super) fn check(&self, to: Rank, message: &Outgoing<'_>) -> Result<Way<'_>, Error> {
        let &Outgoing { category, payload, landing, .. } = message;
        self.fits(to, message)?;
        if category != Category::Long || payload.is_empty() {
            return Ok(Way::Packet); // a Long of no bytes still delivers its address, and needs no segment
        }
        let mapped = self.peers.reach(to, landing, payload.len(), Rights::WRITE);
        let (mapped, limits) = (mapped.map_err(Error::memory("long message"))?, self.limits_to(to));
        Ok(match mapped {
            Some(target) => Way::Mapped(target),
            None if payload.len() <= limits.packed_long => Way::Packet,
            None if !self.has_network() && payload.len() <= limits.max_medium => Way::Packet,
            None if self.reaches_process(to, landing) => Way::Process,
            None if self.rdma_to(landing).is_some() => Way::Nic,
            None => return Err(Error::Unreachable { during: "long message", rank: to }),
        })
    }

    pub(super) fn encode(&self, message: &Outgoing<'_>, reply: bool, in_packet: bool) -> Encoded {
        let landing = (message.category == Category::Long).then_some(Landing {
            offset: message.landing,
            len: message.payload.len() as u64,
            in_packet,
        });
        let head = Head::Message { category: message.category, reply, handler: message.handler, landing };
        Encoded::new(head, Returned::default(), message.args)
    }

    /// Puts a Long on its wire, with what credits are owed to its target.
    pub(super) fn transmit(
        &self,
        to: Rank,
        class: Class,
        message: &Outgoing<'_>,
        way: Way<'_>,
        packet: &[u8],
        own: Returned,
    ) -> Result<(), Error> {
        let in_packet = matches!(way, Way::Packet);
        // The room first: nothing is stored at the target for a message that must wait. The commit publishes the header after the store,
        // so the handler sees the payload.
        let reservation = self.reserve(to, class, packet.len())?;
        match way {
            Way::Mapped(target) => target.write(message.payload),
            Way::Process => {
                if let Err(error) = self.land_by_process(to, message.landing, message.payload) {
                    self.cancel(reservation);
                    return Err(error);
                }
            }
            Way::Packet | Way::Nic => reservation.payload().write(packet),
        }
        let mut head = self.encode(message, class == Class::Reply, in_packet);
        Ok(self.send_reserved(reservation, &mut head, own)?)
    }

    /// Sends an encoded head whose payload has landed already.
    pub(super) fn transmit_head(
        &self,
        to: Rank,
        class: Class,
        head: &mut Encoded,
        own: Returned,
    ) -> Result<(), WireError> {
        let reservation = self.reserve(to, class, 0)?;
        self.send_reserved(reservation, head, own)
    }

    /// Sends a message whose payload is in place, with what credits are owed to its target.
    pub(super) fn send_reserved(
        &self,
        reservation: Reservation<'_>,
        head: &mut Encoded,
        own: Returned,
    ) -> Result<(), WireError> {
        let to = reservation.to;
        let returned = self.account.with_owed(to, own);
        head.set_returned(returned);
        let sent = self.commit(reservation, head.as_bytes());
        sent.inspect_err(|_| self.account.owe_again(to, returned, own))
    }
}
