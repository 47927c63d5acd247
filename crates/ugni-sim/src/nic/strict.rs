//! What a client may not do, where it asks to be held to it: a breach is told to a judge, who ends the job.
//!
//! The source of a put is compared when its client takes the event that frees it, with a copy that was made when it was posted.
//! What other NICs have written there meanwhile is no doing of the client's, and is left out: their answers may well come to where
//! the question lay.
//!
//! A client may know that its bytes have arrived before it takes the event: their receiver has answered. So nothing is said of a
//! source once its bytes have arrived and anything has come to the process after that ([`Inbound`]). Until then a short source is
//! compared in calls about the queue that its event goes to.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use gasworks_gni_sys::*;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;

use super::requests::Request;
use super::{Cq, Endpoint, Home, Nic};
use crate::atomics::Command;
use crate::chip::{Chip, RESULT_ALIGNMENT};
use crate::entry::Status;
use crate::handle::Corrupt;
use crate::post::{Action, Post, Way};
use crate::station::Shown;

/// A rule that a client may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The source of a put stays as it is until its event.
    Source,
    /// What is begun is ended: registrations, and requests, by taking their events.
    Leak,
    /// What was ended is not used.
    Stale,
    /// Operands are aligned.
    Alignment,
    /// Memory that is used is mapped.
    Unmapped,
    /// Memory that is used lies in its registration, which allows it.
    Bounds,
}

impl Rule {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Rule::Source => "touched the source too early",
            Rule::Leak => "left something behind",
            Rule::Stale => "used what was ended",
            Rule::Alignment => "misaligned",
            Rule::Unmapped => "used memory that is not mapped",
            Rule::Bounds => "reached beyond a registration",
        }
    }

    /// What to do instead.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::Source => "leave it as it is until its event was taken, or put from a copy",
            Rule::Leak => {
                "deregister all memory, and take all events with GNI_CqGetEvent and GNI_GetCompleted, before that"
            }
            Rule::Stale => {
                "forget a handle when what it names is ended, and end it after the last use, by peers too"
            }
            Rule::Alignment => "align it, or move the bytes around it with another transaction",
            Rule::Unmapped => "unmap memory after the last transaction that uses it",
            Rule::Bounds => "register all of it, for what is done there",
        }
    }
}

/// How a client broke a rule.
#[derive(Clone, Debug)]
pub struct Breach {
    /// Which.
    pub rule: Rule,
    /// What happened, and where.
    pub what: String,
}

/// What has come to a process: the bytes that other NICs have written to its own, the events of theirs that its client has taken, and
/// what others have told it by other means.
#[derive(Default)]
pub struct Inbound {
    told: AtomicU64,
    nics: Mutex<Vec<OwnNic>>,
}

/// A NIC of the process, or what it has counted if it is gone.
struct OwnNic {
    /// Its address and instance.
    name: (u32, u32),
    home: Weak<Home>,
    writes: u64,
}

impl Inbound {
    /// The process was told something.
    pub fn note(&self) {
        self.told.fetch_add(1, Relaxed);
    }

    fn count(&self) -> u64 {
        let mut all = self.told.load(Relaxed);
        for nic in self.nics.lock().iter_mut() {
            if let Some(home) = nic.home.upgrade()
                && let Some(writes) = home.window().writes()
            {
                nic.writes = writes.count();
            }
            all += nic.writes;
        }
        all
    }

    fn has(&self, name: (u32, u32)) -> bool {
        self.nics.lock().iter().any(|nic| nic.name == name)
    }

    fn enter(&self, name: (u32, u32), home: &Arc<Home>) {
        self.nics.lock().push(OwnNic { name, home: Arc::downgrade(home), writes: 0 });
    }
}

/// Who hears of a breach.
pub type Judge = Box<dyn Fn(&Breach) + Send + Sync>;

/// What a NIC knows that is strict.
pub(super) struct Strict {
    judge: Judge,
    inbound: Arc<Inbound>,
    /// The handles of registrations that have ended, and are not used again.
    ended: Mutex<BTreeSet<(u64, u64)>>,
}

/// The longest part of a source that is watched.
const MOST_WATCHED: u64 = 1 << 20;
/// The longest source that is compared before its event is taken.
const MOST_COMPARED: usize = 1 << 12;

/// The source of a put, as it was when it was posted.
pub(super) struct Guard {
    pieces: Vec<(u64, Vec<u8>)>,
    /// How much others had written by then.
    writes: u64,
    /// The puts whose bytes have not arrived.
    under_way: usize,
    /// What had come to the process when the last of them arrived.
    inbound: u64,
    /// Calls about its queue since then.
    calls: u64,
}

/// Whose a source is, in the client's words.
struct Whose<'a>(&'a Request);

impl std::fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.whose())
    }
}

fn bits(handle: &gni_mem_handle_t) -> (u64, u64) {
    (handle.qword1, handle.qword2)
}

fn show(handle: &gni_mem_handle_t) -> String {
    format!("memory handle {:#x}:{:#x}", handle.qword1, handle.qword2)
}

impl Nic {
    /// Whether its client is held to the rules.
    pub(super) fn is_strict(&self) -> bool {
        self.0.strict.get().is_some()
    }

    /// From now on it is. Once. `inbound` is that of its process.
    pub fn be_strict(&self, judge: Judge, inbound: &Arc<Inbound>) {
        if let Some(writes) = self.0.home.window().writes() {
            writes.want();
        }
        inbound.enter((self.address(), self.instance()), &self.0.home);
        // A second judge would hear the same.
        let inbound = Arc::clone(inbound);
        let _ = self.0.strict.set(Strict { judge, inbound, ended: Mutex::default() });
    }

    /// What has come to the process so far.
    pub(super) fn inbound(&self) -> u64 {
        self.0.strict.get().map_or(0, |strict| strict.inbound.count())
    }

    /// Bytes or a flag of a put to a NIC have arrived; `before` had come to the process before that.
    pub(super) fn arrived(&self, guard: &mut Guard, to: (u32, u32), before: u64, is_flag: bool) {
        let Some(strict) = self.0.strict.get() else { return };
        // To the process itself its own bytes are no answer.
        let own = strict.inbound.has(to);
        if !is_flag || own {
            guard.inbound = if own { strict.inbound.count() } else { before };
        }
        guard.under_way = guard.under_way.saturating_sub(usize::from(!is_flag));
    }

    /// Whether the client may know that its bytes have arrived.
    fn may_know(&self, guard: &Guard) -> bool {
        guard.under_way == 0 && self.inbound() > guard.inbound
    }

    fn blame(&self, rule: Rule, what: String) {
        if let Some(strict) = self.0.strict.get() {
            (strict.judge)(&Breach { rule, what });
        }
    }

    /// A post was refused; the code that it gives.
    pub(super) fn refused(&self, code: gni_return_t, descriptor: &gni_post_descriptor_t) -> gni_return_t {
        if code == GNI_RC_ALIGNMENT_ERROR && self.0.strict.get().is_some() {
            self.blame(Rule::Alignment, misaligned(descriptor, self.0.rules.chip));
        }
        code
    }

    /// Memory here was not reached by a handle.
    pub(super) fn misused(&self, handle: &gni_mem_handle_t) {
        if let Some(strict) = self.0.strict.get()
            && strict.ended.lock().contains(&bits(handle))
        {
            self.blame(Rule::Stale, format!("the registration of {} has ended", show(handle)));
        }
    }

    /// Memory was registered: a handle may be that of one before.
    pub(super) fn begun(&self, handle: &gni_mem_handle_t) {
        if let Some(strict) = self.0.strict.get() {
            strict.ended.lock().remove(&bits(handle));
        }
    }

    /// A registration has ended.
    pub(super) fn ended(&self, handle: &gni_mem_handle_t) {
        if let Some(strict) = self.0.strict.get() {
            strict.ended.lock().insert(bits(handle));
        }
    }

    /// A transaction has failed, by its poster's fault unless that may have been injected.
    pub(super) fn failed(&self, post: &Post, status: Status) {
        // Of the credit that mailboxes give back clients know nothing, nor when it comes.
        let is_credit = post.way == Way::Smsg && !post.wishes.remote;
        if self.0.strict.get().is_none() || is_credit || self.0.faults.may("transaction", &status.name()) {
            return;
        }
        let Post { local_address, remote_address, length, remote_handle, .. } = *post;
        let there = format!("{length} bytes at {remote_address:#x} of the target");
        let (rule, what) = match status {
            Status::Descriptor => {
                let of = remote_handle.map_or_else(
                    |Corrupt| "the remote memory handle is none".to_owned(),
                    |named| format!("the remote {}", show(&named.seal())),
                );
                (Rule::Stale, format!("{there}: {of} is of no registration, or not any more"))
            }
            Status::Translation if self.lacks(post) => {
                (Rule::Unmapped, format!("{length} bytes here, from {local_address:#x} on"))
            }
            Status::Translation => (Rule::Unmapped, there),
            Status::Alignment => {
                (Rule::Alignment, "sync_flag_addr, of a word at the target, is no multiple of 8".to_owned())
            }
            Status::Bounds => (Rule::Bounds, format!("{there} are not all in it")),
            Status::Permission => (Rule::Bounds, format!("{there} are registered to be read only")),
            _ => return,
        };
        self.blame(rule, what);
    }

    /// Whether it is the memory here that a transaction lacks, as its ends tell.
    fn lacks(&self, post: &Post) -> bool {
        let is_mapped = |address| self.memory().read(address, &mut [0]).is_ok();
        let last = post.local_address.saturating_add(post.length.saturating_sub(1));
        post.length > 0 && !(is_mapped(post.local_address) && is_mapped(last))
    }

    /// Watches the source of a put, if the client is to be held to it.
    pub(super) fn watch_source(&self, post: &Post) -> Option<Box<Guard>> {
        let has_source = matches!(post.action, Action::Put | Action::PutWithFlag { .. });
        self.0.strict.get().filter(|_| has_source)?;
        Some(self.watch_pieces(&[(post.local_address, post.length)]))
    }

    /// The same of one in pieces.
    pub(super) fn watch_message(&self, pieces: &[(u64, u64)]) -> Option<Box<Guard>> {
        self.0.strict.get()?;
        Some(self.watch_pieces(pieces))
    }

    fn watch_pieces(&self, pieces: &[(u64, u64)]) -> Box<Guard> {
        // Before the copy: of what comes meanwhile it is not known whether it is in it.
        let writes = self.0.home.window().writes().map_or(0, |writes| writes.count());
        let copy = |(address, len): &(u64, u64)| {
            let mut bytes = vec![0; usize::try_from(*len.min(&MOST_WATCHED)).unwrap_or(0)];
            // What is not mapped makes the transaction fail, which is told then.
            self.memory().read(*address, &mut bytes).ok().map(|()| (*address, bytes))
        };
        let pieces = pieces.iter().filter_map(copy).collect();
        Box::new(Guard { pieces, writes, under_way: 1, inbound: 0, calls: 0 })
    }

    /// Sees whether a source is as it was, as long as the client must leave it alone.
    pub(super) fn check_source(&self, guard: &Guard, whose: &dyn std::fmt::Display) {
        if self.may_know(guard) {
            return;
        }
        for (address, before) in &guard.pieces {
            let mut now = vec![0; before.len()];
            if self.memory().read(*address, &mut now).is_err() {
                let what = format!("the source of {whose}, from {address:#x} on, before its event was taken");
                return self.blame(Rule::Unmapped, what);
            }
            let writes = self.0.home.window().writes().map(|writes| writes.since(guard.writes));
            // Unless it is known of all writes where they went, nothing can be said.
            let Some(Some(writes)) = writes else { return };
            let from_afar = |at: u64| writes.iter().any(|(first, len)| at.wrapping_sub(*first) < *len);
            let changed = (*address..).zip(before.iter().zip(&now)).filter(|(_, (then, now))| then != now);
            let mut changed = changed.map(|(at, _)| at).filter(|at| !from_afar(*at));
            if let Some(first) = changed.next() {
                // The answer may have come while this looked.
                if self.may_know(guard) {
                    return;
                }
                let all = 1 + changed.count();
                let len = before.len();
                let what = format!(
                    "{all} of the {len} bytes at {address:#x}, from {first:#x} on, which {whose} puts, were \
                     changed before the event that frees them was taken"
                );
                return self.blame(Rule::Source, what);
            }
        }
    }

    /// The client is done with the NIC: what is still registered is left behind.
    pub fn check_registrations(&self) {
        let descriptors = self.0.descriptors.lock();
        let mut live = descriptors.live();
        if let Some((place, handle)) = live.next() {
            let (all, handle) = (1 + live.count(), show(handle));
            let (first, len) = (place.first, place.len);
            self.blame(
                Rule::Leak,
                format!("registered memory: {all} in all, the first {len} bytes at {first:#x}, {handle}"),
            );
        }
    }
}

impl Cq {
    /// Compares the short sources of what is under way: each in the first, second, fourth call about the queue since it was posted, and
    /// so on.
    pub(super) fn check_sources(&self) {
        if !self.nic().is_strict() {
            return;
        }
        for request in self.requests().watched() {
            let due = request.source.as_mut().is_some_and(|guard| {
                let len: usize = guard.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
                guard.calls += 1;
                guard.calls.is_power_of_two() && len <= MOST_COMPARED
            });
            if let Some(guard) = request.source.as_deref().filter(|_| due) {
                self.nic().check_source(guard, &Whose(request));
            }
        }
    }

    /// The client is done with the queue: what it did not hear of to the end is left behind.
    pub fn check_requests(&self) {
        self.check_these(|_| true);
    }

    fn check_these(&self, which: impl Fn(&Request) -> bool) {
        let requests = self.requests();
        let mut open = requests.open().filter(|request| which(request));
        if let Some(first) = open.next() {
            let (all, what) = (1 + open.count(), first.whose());
            let why = if first.awaited.here() > 0 {
                "has events that nobody took"
            } else {
                "was not answered with GNI_GetCompleted"
            };
            self.nic().blame(Rule::Leak, format!("requests: {all} in all; the first, {what}, {why}"));
        }
    }
}

impl Endpoint {
    /// The client is done with the endpoint. What is on its way may be cancelled so; what the client has heard of is to be
    /// answered.
    pub fn check_answers(&self) {
        if let Some(queue) = &self.queue {
            queue.check_these(|request| {
                request.awaited.here() == 0 && Arc::ptr_eq(&request.outstanding, &self.outstanding)
            });
        }
    }
}

/// Which operand of a descriptor is not aligned.
fn misaligned(descriptor: &gni_post_descriptor_t, chip: Chip) -> String {
    let (to, local) = match descriptor.r#type {
        GNI_POST_AMO | GNI_POST_AMO_W_FLAG => {
            (Command::decode(descriptor.amo_cmd).map_or(1, |command| command.width() as u64), 1)
        }
        GNI_POST_CE => (1, RESULT_ALIGNMENT),
        _ => (4, chip.local_alignment()),
    };
    let operands = [
        ("remote_addr", descriptor.remote_addr, to),
        ("length", descriptor.length, to),
        ("local_addr", descriptor.local_addr, local),
    ];
    match operands.into_iter().find(|(_, value, to)| !value.is_multiple_of(*to)) {
        Some((name, value, to)) => format!("{name} {value:#x} is no multiple of {to}"),
        None => format!(
            "local_addr {:#x} and sync_flag_addr {:#x} are not in one line of 64 bytes",
            descriptor.local_addr, descriptor.sync_flag_addr
        ),
    }
}

/// The sources of a chain.
pub(super) fn joined(guards: impl Iterator<Item = Option<Box<Guard>>>) -> Option<Box<Guard>> {
    guards.flatten().reduce(|mut all, guard| {
        all.pieces.extend(guard.pieces);
        all.under_way += guard.under_way;
        all
    })
}
