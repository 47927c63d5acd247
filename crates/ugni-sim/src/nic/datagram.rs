//! Datagrams: both sides post one, and each gets the other's.
//!
//! # Protocol
//! - datagram.1: who posts to one peer sends an offer. Who posts to whoever comes sends nothing until an offer is there, and then answers
//!   it.
//! - datagram.2: an offer is for a post to its sender, if there is one; else for the oldest post to whoever comes; else it is kept until
//!   one of these is made. An answer is for a post to its sender alone: it is dropped if that was cancelled.
//! - datagram.3: a post to one peer is over when an offer or an answer of that peer has come and its own was sent: then both have
//!   both. An offer that was kept is answered, for its sender has a post that waits.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use super::Nic;
use super::collective::Direction;
use crate::letter::{Body, Letter, MOST};
use crate::reduction::Share;
use crate::station::Station;

/// Offers that are kept for posts to come, far more than peers; beyond these they are lost.
const KEPT: usize = 1 << 16;
/// The longest time between two attempts to send an offer.
const SLOWEST: Duration = Duration::from_secs(1);

/// The address and instance of a peer.
pub(super) type Who = (u32, u32);

/// What an endpoint has posted.
pub(super) struct Session {
    peer: Option<Who>,
    /// By what the client knows it.
    id: Option<u64>,
    data: Vec<u8>,
    state: Mutex<State>,
}

struct State {
    progress: Progress,
    /// Attempts to send the offer, and when the next one is due.
    attempts: u32,
    due: Instant,
    /// To which NIC the offer went.
    sent_to: Option<Arc<dyn Station>>,
}

enum Progress {
    /// The offer was not sent yet.
    Unsent,
    /// The other's datagram is awaited.
    Waiting,
    /// It is there.
    Done(Who, Vec<u8>),
    /// The peer has gone.
    TimedOut,
    /// The client does not want it any more.
    Cancelled,
}

/// What becomes of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `GNI_POST_PENDING` and its like.
    pub state: gni_post_state_t,
    /// The peer's address and instance, as far as they are known.
    pub peer: Option<(u32, u32)>,
    /// The client's own name for it.
    pub id: Option<u64>,
    /// The peer's datagram, once it is there.
    pub data: Vec<u8>,
}

/// The datagrams of a NIC.
#[derive(Default)]
pub(super) struct Desk {
    sessions: Vec<Weak<Session>>,
    kept: VecDeque<Datagram>,
}

/// One that has come.
struct Datagram {
    from: Who,
    /// It answers one of ours.
    answer: bool,
    data: Vec<u8>,
}

impl Session {
    /// # Errors
    /// `GNI_RC_SIZE_ERROR`: it is too long.
    pub(super) fn new(peer: Option<Who>, id: Option<u64>, data: &[u8]) -> Result<Arc<Self>, gni_return_t> {
        if data.len() > MOST {
            return Err(GNI_RC_SIZE_ERROR);
        }
        let progress = if peer.is_some() { Progress::Unsent } else { Progress::Waiting };
        let state = State { progress, attempts: 0, due: Instant::now(), sent_to: None };
        Ok(Arc::new(Self { peer, id, data: data.to_vec(), state: Mutex::new(state) }))
    }

    pub(super) fn outcome(&self) -> Outcome {
        let (state, peer, data) = match &self.state.lock().progress {
            Progress::Unsent | Progress::Waiting => (GNI_POST_PENDING, self.peer, Vec::new()),
            Progress::Done(who, data) => (GNI_POST_COMPLETED, Some(*who), data.clone()),
            Progress::TimedOut => (GNI_POST_TIMEOUT, self.peer, Vec::new()),
            Progress::Cancelled => (GNI_POST_TERMINATED, self.peer, Vec::new()),
        };
        Outcome { state, peer, id: self.id, data }
    }

    fn is_pending(&self) -> bool {
        matches!(self.state.lock().progress, Progress::Unsent | Progress::Waiting)
    }

    /// Ends it, if it is not over.
    ///
    /// # Errors
    /// `GNI_RC_NO_MATCH`: it is.
    pub(super) fn cancel(&self) -> Result<(), gni_return_t> {
        let progress = &mut self.state.lock().progress;
        match progress {
            Progress::Unsent | Progress::Waiting => {
                *progress = Progress::Cancelled;
                Ok(())
            }
            _ => Err(GNI_RC_NO_MATCH),
        }
    }
}

impl Desk {
    fn pending(&self) -> impl Iterator<Item = Arc<Session>> {
        self.sessions.iter().filter_map(Weak::upgrade).filter(|session| session.is_pending())
    }

    /// datagram.2: the session that a datagram is for.
    fn match_of(&self, datagram: &Datagram) -> Option<Arc<Session>> {
        let named = self.pending().find(|session| session.peer == Some(datagram.from));
        named.or_else(|| self.pending().find(|session| session.peer.is_none() && !datagram.answer))
    }
}

impl Nic {
    /// Takes on what an endpoint posts.
    ///
    /// # Errors
    /// `GNI_RC_ERROR_RESOURCE`: there is one to that peer already.
    pub(super) fn post_datagram(&self, session: &Arc<Session>) -> Result<(), gni_return_t> {
        let mut desk = self.0.desk.lock();
        desk.sessions.retain(|other| other.strong_count() > 0);
        if session.peer.is_some() && desk.pending().any(|other| other.peer == session.peer) {
            return Err(GNI_RC_ERROR_RESOURCE);
        }
        desk.sessions.push(Arc::downgrade(session));
        match self.0.faults.due("datagram") {
            Some("timeout") => session.state.lock().progress = Progress::TimedOut,
            Some(_) => session.state.lock().progress = Progress::Cancelled,
            None => {}
        }
        if !session.is_pending() {
            return Ok(());
        }
        let fits = |datagram: &Datagram| session.peer.is_none_or(|peer| peer == datagram.from);
        let kept = desk.kept.iter().position(fits).and_then(|at| desk.kept.remove(at));
        if let Some(datagram) = kept {
            self.take_datagram(session, datagram);
        }
        drop(desk);
        self.serve_letters();
        Ok(())
    }

    /// datagram.3: a datagram for a session.
    fn take_datagram(&self, session: &Session, Datagram { from, answer, data }: Datagram) {
        let mut state = session.state.lock();
        let unsent = session.peer.is_none() || matches!(state.progress, Progress::Unsent);
        if unsent && !answer && self.send(from, session, true).is_none() {
            // Its sender has gone since: whoever comes is awaited further.
            return;
        }
        state.progress = Progress::Done(from, data);
    }

    /// The NIC to which it went, if it did.
    fn send(&self, (address, instance): Who, session: &Session, answer: bool) -> Option<Arc<dyn Station>> {
        let target = self.0.fabric.find(address, instance)?;
        let data = session.data.clone();
        let letter = self.letter(if answer { Body::Answer(data) } else { Body::Offer(data) });
        target.deliver(&letter).then_some(target)
    }

    /// A letter of its own.
    pub(super) fn letter(&self, body: Body) -> Letter {
        Letter { address: self.address(), instance: self.instance(), body }
    }

    /// Reads what has come, and sends what is to be sent; whether some of that has to wait. Each look at a datagram does this
    /// too.
    pub fn serve_letters(&self) -> bool {
        let _serving = self.0.serving.lock();
        loop {
            let shares = self.serve_datagrams();
            let waits = self.serve_engines(shares);
            // An engine's share may be for another of the same NIC.
            if !self.0.home.holds_letters() {
                return waits;
            }
        }
    }

    /// The datagrams of what has come; gives the rest.
    fn serve_datagrams(&self) -> Vec<(Who, Direction, Share)> {
        let mut desk = self.0.desk.lock();
        let mut shares = Vec::new();
        for Letter { address, instance, body } in self.0.home.take_letters() {
            let from = (address, instance);
            let (answer, data) = match body {
                Body::Offer(data) => (false, data),
                Body::Answer(data) => (true, data),
                Body::Up(share) => {
                    shares.push((from, Direction::Up, share));
                    continue;
                }
                Body::Down(share) => {
                    shares.push((from, Direction::Down, share));
                    continue;
                }
            };
            let datagram = Datagram { from, answer, data };
            match desk.match_of(&datagram) {
                Some(session) => self.take_datagram(&session, datagram),
                None if !answer && desk.kept.len() < KEPT => desk.kept.push_back(datagram),
                None => {}
            }
        }
        let now = Instant::now();
        for session in desk.pending() {
            let Some(peer) = session.peer else { continue };
            let mut state = session.state.lock();
            let lost = state.sent_to.as_ref().is_some_and(|station| station.is_gone());
            let unsent = matches!(state.progress, Progress::Unsent) && state.due <= now;
            if !lost && !unsent {
                continue;
            }
            // Where the peer has gone, another may have come under its name.
            state.sent_to = self.send(peer, &session, false);
            if state.sent_to.is_some() {
                state.progress = Progress::Waiting;
            } else if lost {
                state.progress = Progress::TimedOut;
            } else {
                state.attempts += 1;
                // Slower each time.
                let pause = Duration::from_millis(u64::from(state.attempts).pow(2)).min(SLOWEST);
                state.due = now + pause;
            }
        }
        shares
    }

    /// A datagram that is over and was not asked about yet; with `named`, of those that their client has named, else of the others
    /// (`GNI_PostDataProbe`, `GNI_PostDataProbeById`).
    pub fn probe_datagrams(&self, named: bool) -> Option<Outcome> {
        self.serve_letters();
        let desk = self.0.desk.lock();
        let mut over = desk.sessions.iter().filter_map(Weak::upgrade).filter(|session| !session.is_pending());
        over.find(|session| session.id.is_some() == named).map(|session| session.outcome())
    }
}
