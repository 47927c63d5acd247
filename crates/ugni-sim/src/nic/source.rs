//! A completion queue in its client's hands.

use std::sync::{Arc, Weak};

use gasworks_gni_sys::*;
use gasworks_sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use parking_lot::{Mutex, MutexGuard};

use super::Nic;
use super::flight::Flight;
use super::requests::{Purpose, Request, Requests};
use super::smsg::{Connection, Errand};
use crate::entry::{Body, Entry, Source, Status, Tells, transactions};
use crate::queue::Queue;
use crate::reduction;
use crate::station::Shown;

/// What a queue is for: found out when it is first used.
const UNDECIDED: u32 = 0;
const SOURCE: u32 = 1;
const DESTINATION: u32 = 2;

/// A completion queue: of endpoints, or of registered memory, never both.
pub struct Cq {
    nic: Nic,
    number: u16,
    entries: u32,
    role: AtomicU32,
    requests: Mutex<Requests>,
    /// Mailboxes that wait for a free request.
    waiting: Mutex<Vec<Weak<Connection>>>,
    has_waiting: AtomicBool,
}

/// What an event tells of.
enum Seen {
    /// A post: the value of the event, the client's token and name.
    Post(u32, (u64, u64)),
    /// Something of mailboxes, which is over.
    Over(Errand),
    /// Something of mailboxes that failed and is tried again.
    Again(Box<Flight>),
    /// What nobody is to hear of.
    Nothing,
}

/// What was taken from a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The word that the client sees.
    pub word: u64,
    /// Events were lost before it (`GNI_RC_ERROR_RESOURCE`).
    pub overrun: bool,
    /// Of what it tells.
    pub kind: Kind,
    /// How the transaction, or whatever it tells of, ended.
    pub status: Status,
    /// Of a queue of endpoints: by what the client knows the descriptor, and what it called the transaction.
    pub transaction: Option<(u64, u64)>,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The source of a transaction may be used again.
    Local,
    /// A transaction is over.
    Global,
    /// Another NIC has reached memory here.
    Remote,
    /// Another NIC has written a value into the queue.
    CqWrite,
    /// A message has arrived at its receiver.
    Message,
    /// An engine has failed.
    Engine,
}

impl Kind {
    /// All, in the order of their numbers.
    pub const ALL: [Kind; 6] =
        [Kind::Local, Kind::Global, Kind::Remote, Kind::CqWrite, Kind::Message, Kind::Engine];

    fn of_own(source: Source) -> Self {
        if source == Source::Engine { Kind::Local } else { Kind::Global }
    }
}

/// What a look at a queue gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Event),
    /// Nothing now (`GNI_RC_NOT_DONE`).
    Nothing,
}

impl Cq {
    pub(super) fn new(nic: Nic, number: u16, entries: u32) -> Self {
        // With two events for a transaction there is room for half as many.
        let dual = nic.0.rules.modes & GNI_CDM_MODE_DUAL_EVENTS != 0;
        let most = if dual { (entries / 2).max(1) } else { entries };
        let most = most.min(transactions(nic.0.rules.chip));
        let (role, requests) = (AtomicU32::new(UNDECIDED), Mutex::new(Requests::new(most)));
        Self {
            nic,
            number,
            entries,
            role,
            requests,
            waiting: Mutex::default(),
            has_waiting: AtomicBool::new(false),
        }
    }

    pub(super) fn nic(&self) -> &Nic {
        &self.nic
    }

    pub(super) fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock()
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }

    fn become_a(&self, role: u32) -> Result<(), gni_return_t> {
        match self.role.compare_exchange(UNDECIDED, role, Relaxed, Relaxed) {
            Err(other) if other != role => Err(GNI_RC_INVALID_PARAM),
            _ => Ok(()),
        }
    }

    pub(super) fn become_source(&self) -> Result<(), gni_return_t> {
        self.become_a(SOURCE)
    }

    pub(super) fn become_destination(&self) -> Result<(), gni_return_t> {
        self.become_a(DESTINATION)
    }

    fn places(&self) -> Option<Queue<'_>> {
        self.nic.0.home.window().queue(self.number)
    }

    /// The number of a new transaction; `None`: the table is full.
    pub(super) fn begin(&self, request: Request) -> Option<u32> {
        let awaited = request.awaited.here();
        let outstanding = Arc::clone(&request.outstanding);
        let number = self.requests.lock().add(request)?;
        outstanding.more(awaited);
        Some(number)
    }

    /// An event of a transaction of this NIC.
    pub(super) fn tell(&self, transaction: u32, source: Source, status: Status, remote_overrun: bool) {
        let body = Body::Local { kind: GNI_CQ_EVENT_TYPE_POST as u8, instance: 0, transaction };
        let entry = Entry { overrun: false, remote_overrun, status: status as u8, source, body };
        if let Some(places) = self.places() {
            // Who is refused is counted, and the client is told with the next event.
            match self.nic.0.faults.due("queue") {
                Some(_) => places.lose(),
                None => drop(places.push(entry.encode(self.nic.0.rules.chip))),
            }
        }
    }

    /// An event of one of this NIC's engines.
    pub(super) fn tell_of_reduction(&self, engine: u8, id: u64, status: Status) {
        let (overrun, remote_overrun, status) = (false, false, status as u8);
        let body = Body::Remote(Tells::Engine.mark(reduction::told(engine, id)));
        let entry = Entry { overrun, remote_overrun, status, source: Source::Remote, body };
        if let Some(places) = self.places() {
            let _ = places.push(entry.encode(self.nic.0.rules.chip));
        }
    }

    pub(super) fn is_of(&self, nic: &Nic) -> bool {
        self.nic.is(nic)
    }

    pub(super) fn cancel(&self, outstanding: &Arc<super::endpoint::Outstanding>) {
        self.requests.lock().cancel(outstanding);
    }

    /// Mailboxes have credit to give back when there is a free request again.
    pub(super) fn wait_for_room(&self, connection: &Arc<Connection>) {
        let (mut waiting, connection) = (self.waiting.lock(), Arc::downgrade(connection));
        self.has_waiting.store(true, Relaxed);
        if !waiting.iter().any(|other| other.ptr_eq(&connection)) {
            waiting.push(connection);
        }
    }

    fn serve_waiting(&self) {
        if !self.has_waiting.load(Relaxed) {
            return;
        }
        self.has_waiting.store(false, Relaxed);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.iter().filter_map(Weak::upgrade).for_each(|connection| connection.tell_credit());
    }

    /// Whether there is an event (`GNI_CqTestEvent`). It moves nothing on.
    pub fn holds_event(&self) -> bool {
        self.check_sources();
        self.places().is_some_and(|places| places.holds_event())
    }

    /// Takes the next event (`GNI_CqGetEvent`).
    pub fn next(&self) -> Next {
        self.check_sources();
        self.nic.progress();
        self.serve_waiting();
        let chip = self.nic.0.rules.chip;
        let Some(places) = self.places() else { return Next::Nothing };
        loop {
            let Some(word) = places.pop() else { return Next::Nothing };
            let Some(mut entry) = Entry::decode(word, chip) else { continue };
            let lost = places.overrun() > 0;
            entry.overrun |= lost;
            // Of a number that no status has, nothing can be said but that it is none of success.
            let status = Status::of(entry.status.into()).unwrap_or(Status::Lost);
            let (overrun, mut transaction) = (entry.overrun, None);
            let mut kind = Kind::of_own(entry.source);
            if let Body::Remote(data) = &mut entry.body {
                let (tells, bare) = Tells::open(*data);
                *data = bare;
                kind = match tells {
                    Tells::Memory => Kind::Remote,
                    Tells::Value => Kind::CqWrite,
                    Tells::Engine => Kind::Engine,
                };
            }
            if let Body::Local { transaction: number, instance, .. } = &mut entry.body {
                let heard = match self.seen(*number, entry.source, status) {
                    Seen::Post(value, found) => {
                        (*instance, transaction) = (value, Some(found));
                        true
                    }
                    Seen::Over(errand) => errand.over(status).is_some_and(|(events, id)| {
                        entry.body = Body::Message { kind: events as u8, id };
                        kind = Kind::Message;
                        true
                    }),
                    Seen::Again(flight) => {
                        self.nic.count(GNI_STAT_SMSG_RETRANS_COUNT);
                        self.nic.take_on(*flight);
                        false
                    }
                    Seen::Nothing => false,
                };
                if !heard && !lost {
                    continue;
                }
            }
            return Next::Event(Event { word: entry.encode(chip), overrun, kind, status, transaction });
        }
    }

    /// An event of a transaction was taken.
    fn seen(&self, number: u32, source: Source, status: Status) -> Seen {
        let mut requests = self.requests.lock();
        let Some(request) = requests.get(number) else { return Seen::Nothing };
        if let Purpose::Smsg(errand) = &mut request.purpose
            && !request.cancelled
            && let Some(flight) = errand.retry(number, status)
        {
            return Seen::Again(Box::new(flight));
        }
        let before = request.awaited.here();
        match source {
            // After a failure there is nothing more to come.
            _ if status != Status::Ok => (request.awaited.local, request.awaited.global) = (false, false),
            Source::Engine => request.awaited.local = false,
            _ => request.awaited.global = false,
        }
        let left = request.awaited.here();
        request.outstanding.less(before - left);
        // The first event of a put frees its source, whichever it is.
        if let Some(source) = request.source.take()
            && status == Status::Ok
            && !request.cancelled
        {
            self.nic.check_source(&source, &request.whose());
        }
        request.status = status;
        request.unclaimed += 1;
        if request.cancelled {
            if left == 0 {
                requests.remove(number);
            }
            return Seen::Nothing;
        }
        if let Purpose::Post { token, id } = request.purpose {
            return Seen::Post(request.value, (token, id));
        }
        match requests.remove(number).map(|request| request.purpose) {
            Some(Purpose::Smsg(errand)) => Seen::Over(errand),
            _ => Seen::Nothing,
        }
    }

    /// The client's token of the transaction that an event tells of, and how that ended so far (`GNI_GetCompleted`). With
    /// the last of its events the transaction is forgotten.
    ///
    /// # Errors
    /// `GNI_RC_DESCRIPTOR_ERROR`: the event is of another type. `GNI_RC_INVALID_PARAM`: of no transaction of this queue.
    pub fn completed(&self, word: u64) -> Result<(u64, Status), gni_return_t> {
        let entry = Entry::decode(word, self.nic.0.rules.chip).ok_or(GNI_RC_DESCRIPTOR_ERROR)?;
        let Body::Local { kind, transaction, .. } = entry.body else { return Err(GNI_RC_DESCRIPTOR_ERROR) };
        if u64::from(kind) != GNI_CQ_EVENT_TYPE_POST {
            return Err(GNI_RC_DESCRIPTOR_ERROR);
        }
        let mut requests = self.requests.lock();
        let request =
            requests.get(transaction).filter(|request| request.unclaimed > 0).ok_or(GNI_RC_INVALID_PARAM)?;
        let Purpose::Post { token, .. } = request.purpose else { return Err(GNI_RC_INVALID_PARAM) };
        request.unclaimed -= 1;
        let told = (token, request.status);
        if request.unclaimed == 0 && request.awaited.here() == 0 {
            requests.remove(transaction);
        }
        Ok(told)
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        self.nic.0.home.leave_queue(self.number, self.entries);
    }
}
