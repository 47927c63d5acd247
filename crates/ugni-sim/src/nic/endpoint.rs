//! Endpoints, and what is posted to them.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use parking_lot::Mutex;

use super::collective::Attributes;
use super::datagram::{Outcome, Session};
use super::flight::{Flight, Origin, Registered};
use super::requests::{Purpose, Request};
use super::smsg::Connection;
use super::strict::Guard;
use super::{Cq, Nic};
use crate::handle::{Flags, Handle};
use crate::post::{Action, Post, Way, Wishes};
use crate::station::{Station, Want};

/// How many events an endpoint's client is still to take.
#[derive(Debug)]
pub(super) struct Outstanding(AtomicU32);

impl Outstanding {
    pub(super) fn none() -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(0)))
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    pub(super) fn more(&self, events: u32) {
        self.0.fetch_add(events, Relaxed);
    }

    pub(super) fn less(&self, events: u32) {
        self.0.fetch_sub(events, Relaxed);
    }
}

/// An endpoint: where transactions to one other NIC are posted.
pub struct Endpoint {
    pub(super) nic: Nic,
    pub(super) queue: Option<Arc<Cq>>,
    pub(super) outstanding: Arc<Outstanding>,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) peer: Option<Peer>,
    /// For short messages.
    pub(super) mailboxes: Option<Arc<Connection>>,
    /// The values of events here and there, where the client has chosen them.
    values: Option<(u32, u32)>,
    /// What it has posted, until its outcome is known to the client.
    datagram: Option<Arc<Session>>,
    /// Its place in a tree of collective engines.
    pub(super) attributes: Option<Attributes>,
}

#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: u32,
    pub(super) instance: u32,
    /// Looked for when it is first needed, and again while it is not there.
    pub(super) station: Option<Arc<dyn Station>>,
}

impl Peer {
    pub(super) fn station(&mut self, nic: &Nic) -> Option<Arc<dyn Station>> {
        if self.station.as_ref().is_none_or(|station| station.is_gone()) {
            self.station = nic.0.fabric.find(self.address, self.instance);
        }
        self.station.clone()
    }
}

/// What a transaction that is posted now takes from its endpoint.
pub(super) struct Route {
    /// The value of its events here.
    pub(super) here: u32,
    /// The value of its event there.
    pub(super) there: u32,
    pub(super) target: Option<Arc<dyn Station>>,
    /// Its address and instance.
    pub(super) to: (u32, u32),
}

impl Endpoint {
    pub(super) fn new(nic: Nic, queue: Option<Arc<Cq>>) -> Self {
        Self { nic, queue, outstanding: Outstanding::none(), state: Mutex::default() }
    }

    /// Binds it to an instance at an address (`GNI_EpBind`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is bound.
    pub fn bind(&self, address: u32, instance: u32) -> Result<(), gni_return_t> {
        let peer = &mut self.state.lock().peer;
        match peer {
            Some(_) => Err(GNI_RC_INVALID_PARAM),
            None => {
                *peer = Some(Peer { address, instance, station: None });
                Ok(())
            }
        }
    }

    /// To whom it is bound, and what events there say of later posts; `None`: to nobody.
    pub fn aim(&self) -> Option<((u32, u32), u32)> {
        let state = self.state.lock();
        let peer = state.peer.as_ref()?;
        let value = state.values.map_or(self.nic.instance(), |(_, there)| there);
        Some(((peer.address, peer.instance), value))
    }

    /// Ends that, and what mailboxes it has (`GNI_EpUnbind`).
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE` while there are events to be taken.
    pub fn unbind(&self) -> Result<(), gni_return_t> {
        self.idle()?;
        let mut state = self.state.lock();
        (state.peer, state.mailboxes) = (None, None);
        Ok(())
    }

    /// Whether [`unbind`](Self::unbind) would work (`GNI_EpIdle`).
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE` while there are events to be taken.
    pub fn idle(&self) -> Result<(), gni_return_t> {
        let posted = self.state.lock().datagram.is_some();
        if self.outstanding.is_none() && !posted { Ok(()) } else { Err(GNI_RC_NOT_DONE) }
    }

    /// Posts a datagram, to its peer or, if it has none, to whoever comes (`GNI_EpPostData`, `GNI_EpPostDataWId`).
    ///
    /// # Errors
    /// `GNI_RC_SIZE_ERROR`: it is too long. `GNI_RC_ERROR_RESOURCE`: there is one already. `GNI_RC_INVALID_PARAM`: to
    /// whoever comes it needs a name.
    pub fn post_datagram(&self, data: &[u8], id: Option<u64>) -> Result<(), gni_return_t> {
        let mut state = self.state.lock();
        let peer = state.peer.as_ref().map(|peer| (peer.address, peer.instance));
        if peer.is_none() && id.is_none() {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let session = Session::new(peer, id, data)?;
        if state.datagram.is_some() {
            return Err(GNI_RC_ERROR_RESOURCE);
        }
        self.nic.post_datagram(&session)?;
        state.datagram = Some(session);
        Ok(())
    }

    /// What becomes of the datagram of this name (`GNI_EpPostDataTest`). One that is over is forgotten then, unless there
    /// are fewer than `room` bytes for the peer's.
    ///
    /// # Errors
    /// `GNI_RC_NO_MATCH`: there is none. `GNI_RC_SIZE_ERROR`: the peer's is longer.
    pub fn test_datagram(&self, id: Option<u64>, room: usize) -> Result<Outcome, gni_return_t> {
        self.nic.serve_letters();
        let mut state = self.state.lock();
        let outcome = state.datagram.as_ref().ok_or(GNI_RC_NO_MATCH)?.outcome();
        if outcome.id != id {
            return Err(GNI_RC_NO_MATCH);
        }
        if outcome.data.len() > room {
            return Err(GNI_RC_SIZE_ERROR);
        }
        if outcome.state != GNI_POST_PENDING {
            state.datagram = None;
        }
        Ok(outcome)
    }

    /// Ends the datagram of this name (`GNI_EpPostDataCancel`); it is told of as one that was.
    ///
    /// # Errors
    /// `GNI_RC_NO_MATCH`: there is none, or it is over.
    pub fn cancel_datagram(&self, id: Option<u64>) -> Result<(), gni_return_t> {
        let state = self.state.lock();
        let session = state.datagram.as_ref().filter(|session| session.outcome().id == id);
        session.ok_or(GNI_RC_NO_MATCH)?.cancel()
    }

    /// Chooses the values of events of later posts, here and at the peer (`GNI_EpSetEventData`).
    pub fn set_values(&self, here: u32, there: u32) {
        self.state.lock().values = Some((here, there));
    }

    /// Posts a descriptor that the client knows by `token`; `source` gets its events instead of the endpoint's queue.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`, `GNI_RC_ALIGNMENT_ERROR`, `GNI_RC_ILLEGAL_OP` and `GNI_RC_PERMISSION_ERROR`: it breaks a
    /// rule. `GNI_RC_ERROR_RESOURCE`: the client has to take events first.
    pub fn post(
        &self,
        descriptor: &gni_post_descriptor_t,
        way: Way,
        token: u64,
        source: Option<&Arc<Cq>>,
    ) -> Result<(), gni_return_t> {
        self.check_sources();
        let post = Post::read(descriptor, way, &self.nic.0.rules);
        let post = post.map_err(|code| self.nic.refused(code, descriptor))?;
        let registered = self.check_memory(&post)?;
        let route = self.route()?;
        if let Action::Reduce { id, part } = post.action {
            return self
                .reduce(&post, (id, part), route, |here| self.origin(&post, token, (here, None), source));
        }
        let watched = self.nic.watch_source(&post);
        let origin = self.origin(&post, token, (route.here, watched), source)?;
        self.nic.take_on(Flight::new(self.nic.clone(), post, registered, route, origin));
        Ok(())
    }

    /// Compares the sources of what is under way here, where the client is to leave them alone.
    pub(super) fn check_sources(&self) {
        if let Some(queue) = &self.queue {
            queue.check_sources();
        }
    }

    /// The address and instance of its peer, if it has one and is of this NIC.
    pub(super) fn leads_to(&self, nic: &Nic) -> Option<(u32, u32)> {
        let state = self.state.lock();
        state.peer.as_ref().filter(|_| self.nic.is(nic)).map(|peer| (peer.address, peer.instance))
    }

    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is not bound.
    pub(super) fn route(&self) -> Result<Route, gni_return_t> {
        let mut state = self.state.lock();
        let values = state.values;
        let peer = state.peer.as_mut().ok_or(GNI_RC_INVALID_PARAM)?;
        // What the interface's header says of the value of a GLOBAL event is not what the library does.
        let (here, there) = values.unwrap_or((peer.instance, self.nic.instance()));
        let to = (peer.address, peer.instance);
        Ok(Route { here, there, target: peer.station(&self.nic), to })
    }

    /// What is to be known before a transaction is begun: that the memory here is registered, where it has to be, and that
    /// there may be written. For what the memory here must be registered, and with whom it is.
    pub(super) fn check_memory(&self, post: &Post) -> Result<Option<Registered>, gni_return_t> {
        let writes_here = match post.action {
            Action::Get | Action::GetWithFlag { .. } | Action::Reduce { .. } => true,
            Action::Atomic { command, .. } => command.fetches,
            Action::Put | Action::PutWithFlag { .. } | Action::CqWrite { .. } => false,
        };
        let bytes = (post.local_address, post.length);
        let registered = match (writes_here, post.way) {
            (true, _) => Some(Want::Write),
            (false, Way::Bte) => Some(Want::Read),
            // The processor reads what it puts: any memory will do.
            (false, Way::Fma | Way::CqWrite | Way::Smsg) => None,
        };
        let registered = match registered {
            Some(want) => Some(Registered { want, kin: self.nic.holder(&post.local_handle, bytes, want)? }),
            None => None,
        };
        let writes_there =
            matches!(post.action, Action::Put | Action::PutWithFlag { .. } | Action::Atomic { .. });
        if let Action::Reduce { .. } = post.action {
            return Ok(registered);
        }
        let read_only = |named: Handle| named.flags.has(Flags::READ_ONLY);
        match post.remote_handle {
            Ok(named) if writes_there && read_only(named) => Err(GNI_RC_PERMISSION_ERROR),
            _ => Ok(registered),
        }
    }

    /// Begins a transaction, if its poster wants to hear of it.
    pub(super) fn origin(
        &self,
        post: &Post,
        token: u64,
        (value, watched): (u32, Option<Box<Guard>>),
        source: Option<&Arc<Cq>>,
    ) -> Result<Option<Origin>, gni_return_t> {
        let awaited = Wishes { remote: false, ..post.wishes };
        if awaited.here() == 0 {
            return Ok(None);
        }
        let queue = source.or(self.queue.as_ref()).ok_or(GNI_RC_INVALID_PARAM)?;
        queue.become_source()?;
        let request = Request::new(Purpose::Post { token, id: post.id }, value, awaited, &self.outstanding);
        let transaction = queue.begin(request.watching(watched)).ok_or(GNI_RC_ERROR_RESOURCE)?;
        Ok(Some(Origin { queue: Arc::clone(queue), transaction, chain: None }))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Transactions for other queues than its own are forgotten when their events are taken.
        if let Some(queue) = &self.queue {
            queue.cancel(&self.outstanding);
        }
    }
}
