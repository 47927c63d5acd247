//! Short messages (SMSG): what an endpoint with mailboxes knows, and what it does of itself.
//!
//! The protocol of mailboxes is that of [`mailbox`](crate::mailbox). What is put into them are transactions like others, which
//! take requests of the endpoint's queue. The client hears of its messages alone; the library's own part, credit that goes
//! back and messages that are sent again, goes on where the client takes events. So who takes none gets no credit.

use std::sync::{Arc, Weak};

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use super::endpoint::{Endpoint, Outstanding, Peer, Route};
use super::flight::{Cargo, Flight, Origin};
use super::requests::{Purpose, Request};
use super::{Cq, Mood, Nic};
use crate::entry::Status;
use crate::handle::{Flags, Handle};
use crate::mailbox::{Arrival, Broken, Layout, Receiver, Sender, Slot, Word};
use crate::memory::{Arena, Named, copy};
use crate::post::{Action, Post, Way, Wishes};
use crate::station::Want;

/// The bits of routing that there are.
const ROUTING: u16 = 2 * GNI_DLVMODE_ORDERED_TAIL - 1;

/// What an adversary leaves of a message that was released.
const JUNK: u8 = 0xdb;

/// What a NIC's client has chosen for all its messages.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    delivery: u16,
    /// How often a message is sent again at most.
    again: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self { delivery: GNI_DLVMODE_PERFORMANCE, again: FMA_SMSG_MAX_RETRANS_DEFAULT }
    }
}

impl Nic {
    /// Chooses the routing of later messages (`GNI_SmsgSetDeliveryMode`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there is no such.
    pub fn set_smsg_delivery(&self, mode: u16) -> Result<(), gni_return_t> {
        if mode & !ROUTING != 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        self.0.smsg.lock().delivery = mode;
        Ok(())
    }

    /// Chooses how often a message is sent again at most (`GNI_SmsgSetMaxRetrans`).
    pub fn set_smsg_retransmissions(&self, most: u16) {
        self.0.smsg.lock().again = most;
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// Address and length of its first part.
    pub header: (u64, u32),
    /// The same of the second, which follows the first without a gap.
    pub data: (u64, u32),
    /// What the client calls it.
    pub id: u32,
    /// Its tag; 0 without one.
    pub tag: u8,
}

/// What happens to a message that does not get through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// It is lost.
    None,
    /// It is sent again from its sender's memory, which is to be left alone until then.
    Sender,
    /// It is sent again from a copy.
    Copy,
}

/// What the messages of a connection have in common.
pub(super) struct Kind {
    /// The type of their events.
    pub(super) events: u64,
    pub(super) care: Care,
    /// Where their requests are.
    pub(super) queue: Arc<Cq>,
    /// And those of credit that goes back.
    pub(super) credit: Arc<Cq>,
    /// Counts the events of messages that the client is still to take.
    pub(super) outstanding: Arc<Outstanding>,
    /// Counts those of credit, which no client sees.
    pub(super) returning: Arc<Outstanding>,
}

/// Two mailboxes, one here and one at the peer.
pub(super) struct Connection {
    nic: Nic,
    kind: Kind,
    /// Where the peer's word of credit is, and our messages go.
    there: Layout,
    there_handle: Handle,
    /// Where our word of credit is, and the peer's messages come.
    here: Layout,
    peer: Mutex<Peer>,
    state: Mutex<State>,
}

struct State {
    /// `Err` when the peer has written nonsense, or a message did not get through: those after it would never be read.
    sender: Result<Sender, Broken>,
    receiver: Result<Receiver, Broken>,
    /// What was last put into the peer's word of credit, and whether that is on its way.
    told: u64,
    telling: bool,
}

/// What a request is for that the library makes for mailboxes.
pub(super) struct Errand {
    connection: Weak<Connection>,
    what: What,
    /// How often it was sent again.
    again: u16,
}

enum What {
    Message {
        events: u64,
        id: u32,
        /// With it the message can be sent again.
        parcel: Option<Box<Parcel>>,
    },
    Credit(u64),
}

/// A message that may be sent again.
struct Parcel {
    post: Post,
    kept: Kept,
    value: u32,
}

/// Where its bytes are.
enum Kept {
    /// In its sender's memory.
    Pieces([(u64, u64); 2]),
    Copy(Arena),
}

impl Kept {
    /// For one more attempt.
    fn cargo(&self) -> Option<Cargo> {
        match self {
            Self::Pieces(pieces) => Some(Cargo::Pieces(*pieces)),
            Self::Copy(kept) => {
                let another = Arena::new(0, kept.len() as usize / 8);
                copy((&another, 0), (kept, 0), kept.len()).ok()?;
                Some(Cargo::Kept(another))
            }
        }
    }
}

impl Errand {
    /// The transaction that does it once more, if it failed and may be tried again.
    pub(super) fn retry(&mut self, transaction: u32, status: Status) -> Option<Flight> {
        let connection = self.connection.upgrade()?;
        if status == Status::Ok || self.again >= connection.nic.0.smsg.lock().again {
            return None;
        }
        self.again += 1;
        match &self.what {
            What::Message { parcel, .. } => {
                let Parcel { post, kept, value } = &**parcel.as_ref()?;
                Some(connection.flight(*post, kept.cargo()?, *value, (&connection.kind.queue, transaction)))
            }
            What::Credit(count) => Some(connection.credit(*count, transaction)),
        }
    }

    /// Of a client's message: the type of its event, and what the client calls it.
    pub(super) fn message(&self) -> Option<(u64, u32)> {
        match self.what {
            What::Message { events, id, .. } => Some((events, id)),
            What::Credit(_) => None,
        }
    }

    /// It is over. Of a message the client hears: what it calls it.
    pub(super) fn over(self, status: Status) -> Option<(u64, u32)> {
        let id = self.message();
        if let Some(connection) = self.connection.upgrade() {
            let mut state = connection.state.lock();
            if status != Status::Ok {
                state.sender = Err(Broken);
            } else if id.is_none() {
                state.telling = false;
                drop(state);
                connection.tell_credit();
            }
        }
        id
    }
}

impl Connection {
    /// Mailboxes in which nothing is, as far as one knows here.
    pub(super) fn new(
        nic: &Nic,
        kind: Kind,
        here: Layout,
        (there, there_handle): (Layout, Handle),
        peer: Peer,
    ) -> Self {
        let state = State {
            sender: Ok(Sender::new(there)),
            receiver: Ok(Receiver::new(here)),
            told: 0,
            telling: false,
        };
        let (peer, state) = (Mutex::new(peer), Mutex::new(state));
        Self { nic: nic.clone(), kind, there, there_handle, here, peer, state }
    }

    /// A put into the peer's mailbox.
    fn post(&self, action: Action, (remote_address, length): (u64, u64), remote: bool, id: u32) -> Post {
        Post {
            action,
            wishes: Wishes { local: false, global: true, remote },
            local_address: 0,
            local_handle: gni_mem_handle_t::zeroed(),
            remote_address,
            remote_handle: Ok(self.there_handle),
            length,
            delivery: self.nic.0.smsg.lock().delivery,
            fenced: false,
            way: Way::Smsg,
            id: id.into(),
        }
    }

    fn flight(&self, post: Post, cargo: Cargo, value: u32, (queue, transaction): (&Arc<Cq>, u32)) -> Flight {
        let mut peer = self.peer.lock();
        let (target, to) = (peer.station(&self.nic), (peer.address, peer.instance));
        drop(peer);
        let origin = Origin { queue: Arc::clone(queue), transaction, chain: None };
        let route = Route { here: 0, there: value, target, to };
        Flight::new(self.nic.clone(), post, None, route, Some(origin)).carrying(cargo)
    }

    /// The transaction that tells the peer how many of its messages were released.
    fn credit(&self, count: u64, transaction: u32) -> Flight {
        let flag = Action::PutWithFlag { address: self.there.credit, value: count };
        let post = self.post(flag, (self.there.credit, 0), false, 0);
        self.flight(post, Cargo::Client, 0, (&self.kind.credit, transaction))
    }

    fn begin(self: &Arc<Self>, what: What) -> Option<u32> {
        let (queue, source, outstanding) = match &what {
            What::Message { parcel, .. } => {
                let source = match parcel.as_ref().map(|parcel| &parcel.kept) {
                    Some(Kept::Pieces(pieces)) => self.nic.watch_message(pieces),
                    _ => None,
                };
                (&self.kind.queue, source, &self.kind.outstanding)
            }
            What::Credit(_) => (&self.kind.credit, None, &self.kind.returning),
        };
        let errand = Errand { connection: Arc::downgrade(self), what, again: 0 };
        let awaited = Wishes { global: true, ..Wishes::default() };
        let request = Request::new(Purpose::Smsg(errand), 0, awaited, outstanding);
        queue.begin(request.watching(source))
    }

    /// Where a message goes, if the peer has room for it.
    fn find_room(&self, sender: &mut Sender, length: u64) -> Result<Option<Slot>, Broken> {
        let found = sender.find(length);
        if found.is_some() {
            return Ok(found);
        }
        sender.see_credit(self.look(self.here.credit)?)?;
        Ok(sender.find(length))
    }

    /// A word of the mailbox here.
    fn look(&self, address: u64) -> Result<u64, Broken> {
        let mut word = [0; 8];
        self.nic.memory().load(address, &mut word).map_err(|_| Broken)?;
        Ok(u64::from_le_bytes(word))
    }

    /// # Errors
    /// As [`Endpoint::smsg_send`].
    pub(super) fn send(self: &Arc<Self>, message: &Message, value: u32) -> Result<(), gni_return_t> {
        let pieces = [message.header, message.data].map(|(address, len)| (address, u64::from(len)));
        let length = pieces[0].1 + pieces[1].1;
        if !self.there.takes(pieces[0].1, pieces[1].1) {
            return Err(GNI_RC_ERROR_RESOURCE);
        }
        let mut state = self.state.lock();
        let sender = state.sender.as_mut().map_err(|Broken| GNI_RC_INVALID_STATE)?;
        let slot = match self.find_room(sender, length) {
            Ok(Some(slot)) => slot,
            Ok(None) => {
                // What would do if there were no bytes lacks room for them.
                self.nic.count(match sender.find(0) {
                    Some(_) => GNI_STAT_SMSG_BUFF_CREDITS_STALL,
                    None => GNI_STAT_SMSG_MBOX_CREDITS_STALL,
                });
                return Err(GNI_RC_NOT_DONE);
            }
            Err(Broken) => {
                state.sender = Err(Broken);
                return Err(GNI_RC_INVALID_STATE);
            }
        };
        let word = Word { number: slot.number as u32, length: length as u16, tag: message.tag };
        let flag = Action::PutWithFlag { address: self.there.word(slot.number), value: word.encode() };
        let post = self.post(flag, (slot.address, length), true, message.id);
        let (cargo, kept) = match self.kind.care {
            Care::None => (Cargo::Kept(self.gather(pieces, length)?), None),
            Care::Sender => (Cargo::Pieces(pieces), Some(Kept::Pieces(pieces))),
            Care::Copy => {
                let kept = Kept::Copy(self.gather(pieces, length)?);
                (Cargo::Kept(self.gather(pieces, length)?), Some(kept))
            }
        };
        let parcel = kept.map(|kept| Box::new(Parcel { post, kept, value }));
        let begun = self.begin(What::Message { events: self.kind.events, id: message.id, parcel });
        let transaction = begun.ok_or_else(|| {
            self.nic.count(GNI_STAT_SMSG_REQ_STALL);
            GNI_RC_NOT_DONE
        })?;
        sender.put(slot);
        drop(state);
        self.nic.take_on(self.flight(post, cargo, value, (&self.kind.queue, transaction)));
        Ok(())
    }

    /// Whether its peer has gone: who comes under that name later is another, and credit comes back from nobody.
    pub(super) fn is_lost(&self) -> bool {
        let lost = self.peer.lock().station.as_ref().is_some_and(|station| station.is_gone());
        if lost {
            self.state.lock().sender = Err(Broken);
        }
        lost
    }

    /// A copy of a message, so that its sender may use its memory again.
    fn gather(&self, pieces: [(u64, u64); 2], length: u64) -> Result<Arena, gni_return_t> {
        let (kept, mut at) = (Arena::new(0, length.div_ceil(8) as usize), 0);
        let named = Named(self.nic.memory());
        for (address, len) in pieces {
            copy((&kept, at), (&named, address), len).map_err(|_| GNI_RC_INVALID_PARAM)?;
            at += len;
        }
        Ok(kept)
    }

    /// The message that can be read, if it has the wanted tag.
    ///
    /// # Errors
    /// As [`Endpoint::smsg_next`].
    pub(super) fn next(&self, wanted: u8) -> Result<Arrival, gni_return_t> {
        let mut state = self.state.lock();
        let receiver = state.receiver.as_mut().map_err(|Broken| GNI_RC_INVALID_STATE)?;
        let found = match receiver.current() {
            Some(current) => Ok(Some(current)),
            None => self.look(receiver.next_word()).and_then(|word| receiver.see(word)),
        };
        match found {
            Ok(Some(found)) if wanted == found.tag || wanted == GNI_SMSG_ANY_TAG => Ok(found),
            Ok(Some(_)) => Err(GNI_RC_NO_MATCH),
            Ok(None) => Err(GNI_RC_NOT_DONE),
            Err(Broken) => {
                state.receiver = Err(Broken);
                Err(GNI_RC_INVALID_STATE)
            }
        }
    }

    /// # Errors
    /// As [`Endpoint::smsg_release`].
    pub(super) fn release(self: &Arc<Self>) -> Result<(), gni_return_t> {
        let mut state = self.state.lock();
        let released = state.receiver.as_mut().ok().and_then(Receiver::release).ok_or(GNI_RC_NOT_DONE)?;
        if self.nic.0.mood != Mood::Plain {
            // The sender may write there soon; until it has been told, nobody else does.
            let _ = self.nic.memory().write(released.address, &vec![JUNK; released.length as usize]);
        }
        drop(state);
        self.tell_credit();
        Ok(())
    }

    /// Tells the peer of what was released (mailbox.5), if that is not being done; when the table of requests is full, later.
    pub(super) fn tell_credit(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let Ok(count) = state.receiver.as_ref().map(Receiver::released) else { return };
        if state.telling || state.told == count {
            return;
        }
        let Some(transaction) = self.begin(What::Credit(count)) else {
            self.kind.credit.wait_for_room(self);
            return;
        };
        (state.told, state.telling) = (count, true);
        drop(state);
        self.nic.take_on(self.credit(count, transaction));
    }
}

impl Endpoint {
    /// Gives it mailboxes, one here and one at its peer (`GNI_SmsgInit`). The one here was zeroed before the peer was told of
    /// it, and may hold messages already.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_STATE`: it is not bound, or has some. `GNI_RC_INVALID_PARAM`: there cannot be such mailboxes, they are
    /// of different types or not registered to be written, or the endpoint has no queue.
    pub fn smsg_init(&self, here: &gni_smsg_attr_t, there: &gni_smsg_attr_t) -> Result<(), gni_return_t> {
        let mut state = self.state.lock();
        let peer = state.peer.as_ref().filter(|_| state.mailboxes.is_none()).ok_or(GNI_RC_INVALID_STATE)?;
        let (Some(own), Some(others)) = (Layout::of(here), Layout::of(there)) else {
            return Err(GNI_RC_INVALID_PARAM);
        };
        let queue = self.queue.as_ref().ok_or(GNI_RC_INVALID_PARAM)?;
        let named = Handle::open(&there.mem_hndl).map_err(|_| GNI_RC_INVALID_PARAM)?;
        let (first, len) = Layout::place(there);
        let writable = named.covers(first, len) && !named.flags.has(Flags::READ_ONLY);
        if here.msg_type != there.msg_type || !writable {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let registered = self.nic.own(&here.mem_hndl, Layout::place(here), Want::Write);
        // A mailbox is looked at where its address says.
        if registered.map_or(true, |registered| registered.is_scattered()) {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let again = here.msg_type == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
        let kind = Kind {
            events: GNI_CQ_EVENT_TYPE_SMSG,
            care: if again { Care::Sender } else { Care::None },
            queue: Arc::clone(queue),
            credit: Arc::clone(queue),
            outstanding: Arc::clone(&self.outstanding),
            // The endpoint may be unbound while credit is on its way.
            returning: Outstanding::none(),
        };
        let connection = Connection::new(&self.nic, kind, own, (others, named), peer.clone());
        state.mailboxes = Some(Arc::new(connection));
        Ok(())
    }

    fn mailboxes(&self) -> Result<Arc<Connection>, gni_return_t> {
        self.state.lock().mailboxes.clone().ok_or(GNI_RC_INVALID_PARAM)
    }

    /// Sends a message (`GNI_SmsgSend`, `GNI_SmsgSendWTag`). Its memory may be used again at once, but with
    /// `GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT` only after its event.
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: the peer has no room, as far as one knows here, or the table of requests is full; events have to be
    /// taken. `GNI_RC_ERROR_RESOURCE`: it is too long. `GNI_RC_INVALID_PARAM`: there are no mailboxes, or its memory is not
    /// mapped. `GNI_RC_INVALID_STATE`: an earlier message did not get through, or the peer has written nonsense.
    pub fn smsg_send(&self, message: &Message) -> Result<(), gni_return_t> {
        self.check_sources();
        let connection = self.mailboxes()?;
        connection.send(message, self.route()?.there)
    }

    /// The next message, in the order in which they were sent, if its tag is the wanted one or any is
    /// (`GNI_SmsgGetNext`, `GNI_SmsgGetNextWTag`): where it is, and its tag. It is the same one until it is released.
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: there is none. `GNI_RC_NO_MATCH`: it has another tag. `GNI_RC_INVALID_PARAM`: there are no
    /// mailboxes. `GNI_RC_INVALID_STATE`: the peer has written nonsense.
    pub fn smsg_next(&self, wanted: u8) -> Result<(u64, u8), gni_return_t> {
        let connection = self.mailboxes()?;
        self.nic.progress();
        connection.next(wanted).map(|found| (found.address, found.tag))
    }

    /// Gives back the message that [`smsg_next`](Self::smsg_next) has shown (`GNI_SmsgRelease`); its sender may use the place
    /// again.
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: there is none. `GNI_RC_INVALID_PARAM`: there are no mailboxes.
    pub fn smsg_release(&self) -> Result<(), gni_return_t> {
        self.mailboxes()?.release()
    }
}
