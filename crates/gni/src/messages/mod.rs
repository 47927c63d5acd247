//! Active messages by puts and notifications: what is under way, and what it waits for; [`send`] and [`take`] are the two sides.
//!
//! A request goes into the mailbox that its receiver has given this rank: one post puts the message there, writes its letter behind it, and
//! calls the receiver. Before it has given one, or where there are none, the message stays in a slot here, its letter alone is put there, and
//! the receiver fetches it: that takes no memory of a rank that does not talk. A reply goes into the slot of a request that it ends.
//!
//! A reply ends the request in whose slot it comes. What else a message ends, requests that its sender has taken and will not answer any
//! more, is a set of tickets at its start, which is there only if its letter says so. With a ticket go its slot and its granules, so no
//! other message is needed to give them back.
//!
//! A payload is read where it lies: in the mailbox, in the slot of the request, or where it was fetched to. A message that ends a request
//! whose payload a handler is reading is posted when that handler is done, for its sender writes to the same place then.
//!
//! A call may come before the letter it tells of, or before another one's that was written first. So a rank looks at all letters of who
//! has called, and comes back for those that it was told of and has not found. A call that finds no room is made again, by whoever learns
//! of that first: its sender does it once more; its receiver looks at all of everybody's letters in turn from then on.
//!
//! The payload of a Long goes into the segment by a put of its own, which calls, too; its message goes beside it, and is not taken before. Either
//! may come first.
//!
//! Whatever is read here others may have written: it is copied once, then checked, then used. Of payloads nothing is checked here.

#[cfg(any(test, feature = "play"))]
pub(crate) mod play;
mod send;
mod take;
#[cfg(test)]
mod tests;

use crate::domain::{Domain, Done, EngineOf, FIRST, Kind, Network, Owner, Post, RESULT, Refused};
use crate::error::code_name;
use crate::letter::Letter;
use crate::mailboxes::Mailboxes;
use crate::phases::{MOST_STEPS, Next, Phases, Seen};
use crate::region::{Home, Layout, Region, message_len};
use crate::talk::{Granules, Talk, Talks};
use crate::words::{Step, Words};
use gasworks_core::message::MAX_HEAD;
use gasworks_core::{Name, Rank, WireError, WordOp};
use gasworks_gni_sys::{GNI_RC_TRANSACTION_ERROR, gni_return_t};
use gasworks_rdma::Completion;
use gasworks_sync::{RawSlice, VolatileSlice, kill_point};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What the transport is called.
pub(crate) const NAME: &str = "gni";
/// Bytes before a message that says what it ends.
const ENDED: usize = 8;
/// How often a post is tried that the network has no room for, one try behind the other; and then, a millisecond apart: networks may be
/// slow.
const TRIES: u32 = 1 << 16;
const SLOW_TRIES: u32 = 30_000;
/// The longest message that the processor fetches.
const SHORT: usize = 4096;
/// How many ranks and slots are looked at in a poll once calls were lost.
const LOOKS: u32 = 64;

/// How many events are taken at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// Of what was posted here.
    pub done: u32,
    /// Notifications.
    pub arrivals: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    in_use: bool,
    peer: u32,
    /// The ticket of the request in it.
    ticket: u8,
    /// Its receiver is done with it.
    ended: bool,
    /// The library is.
    sent: bool,
    /// The payload beside the reply in it has landed.
    landed: bool,
    /// A reply that waits for that.
    held: Option<Letter>,
}

impl Slot {
    /// Its receiver is done with it.
    fn end(&mut self, number: u16, free: &mut Vec<u16>) {
        self.ended = true;
        self.settle(number, free);
    }

    /// The library is.
    fn send(&mut self, number: u16, free: &mut Vec<u16>) {
        self.sent = true;
        self.settle(number, free);
    }

    /// Frees it if nobody needs it any more.
    fn settle(&mut self, number: u16, free: &mut Vec<u16>) {
        if self.ended && self.sent {
            *self = Self::default();
            free.push(number);
        }
    }
}

/// Room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Request {
        ticket: u32,
        slot: u16,
        granules: Option<Granules>,
        beside: bool,
    },
    /// With the ticket and the slot of a request that it will end, where the payload beside it had to know.
    Reply {
        number: u32,
        ends: Option<(u64, u16)>,
    },
}

/// A message that was taken. It is to come back by [`Messages::give_back`].
pub(crate) struct Taken {
    pub from: Rank,
    head: [u8; MAX_HEAD],
    head_len: usize,
    /// Where it lies; its sender may write to it meanwhile if it is hostile.
    pub payload: VolatileSlice<'static>,
    place: Place,
}

impl Taken {
    /// Its head: a private copy.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }
}

/// Where a payload lies that is being read.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// There is none.
    Nowhere,
    /// In the mailbox of its sender, until the request with this ticket is ended.
    Mailbox { ticket: u8 },
    /// In a slot of this rank's, which is free when its ticket is ended.
    Slot { ticket: u8 },
    /// Where it was fetched to.
    Fetched { number: u32 },
}

/// A message that is posted when nobody reads the payloads of the requests any more that it ends.
struct Postponed {
    post: Post,
    ended: u64,
}

/// Bytes of the whole message that a letter tells of.
fn whole_len(letter: Letter) -> usize {
    (if letter.ends { ENDED } else { 0 }) + message_len(letter.head, letter.payload)
}

/// Where it begins in the place that its sender had for it: a set that is not sent is left out.
fn start_of(letter: Letter) -> usize {
    if letter.ends { 0 } else { ENDED }
}

enum Found {
    Message(Taken),
    /// One that is being fetched, or waits for its payload.
    Begun,
    Nothing,
}

/// A message that is being fetched.
#[derive(Clone, Copy, Debug)]
struct Fetching {
    peer: u32,
    ticket: u32,
    letter: Letter,
}

/// A request that was copied out, and waits for the payload beside it.
struct Held {
    ticket: u32,
    slot: u16,
    taken: Taken,
}

/// Bytes of what messages keep for each rank beside the region, before it talks.
pub(crate) const EACH: usize = size_of::<Home>();

/// The domain, and what is under way in it.
pub(crate) struct Messages<N = Domain> {
    // The domain is dropped before the memory that it has registered.
    pub domain: N,
    me: Rank,
    layout: Layout,
    region: Region,
    homes: Box<[Home]>,
    talks: Talks,
    mailboxes: Mailboxes,
    bursts: Bursts,
    /// Notifications that the poll may still take.
    left: u32,
    /// The last poll has looked at what was posted here: the one of transfers that follows it does not.
    reaped: bool,
    /// Longs whose payloads may go beside them, to one rank.
    longs: u32,
    slots: Vec<Slot>,
    free_slots: Vec<u16>,
    free_replies: Vec<u32>,
    free_fetches: Vec<u32>,
    /// By the number of the place that it is fetched to.
    fetching: Vec<Option<Fetching>>,
    to_fetch: VecDeque<Fetching>,
    fetched: VecDeque<u32>,
    held: Vec<Held>,
    /// Ranks that have been given a mailbox and do not know.
    to_grant: VecDeque<Rank>,
    /// Who has not heard that something is there for it, and what it was to be called with.
    to_call: VecDeque<(Rank, u32)>,
    /// Who has called, and left nothing that can be seen.
    early: Vec<Rank>,
    early_slots: Vec<u16>,
    /// Calls were lost: from now on everybody is looked at, these next.
    lossy: Option<(Rank, u16)>,
    postponed: Vec<Postponed>,
    /// Transfers of the engine's that have come so far.
    pub transfers: VecDeque<Completion>,
    barrier: Phases,
    words: Words,
    /// Whom this rank tells in each step of it, where it goes by puts.
    partners: Box<[Rank]>,
    /// A rank that cannot be reached any more, and why.
    gone: Option<(Rank, &'static str)>,
    /// The code of a reduction that failed, with whomever.
    failed: Option<gni_return_t>,
}

impl<N: Network> Messages<N> {
    pub fn new(
        domain: N,
        me: Rank,
        (layout, region): (Layout, Region),
        homes: Box<[Home]>,
        mailboxes: Mailboxes,
        (bursts, longs): (Bursts, u32),
        (leaders, by_engines): (&[Rank], bool),
    ) -> Self {
        let shape = layout.shape;
        let barrier = match leaders.iter().position(|leader| *leader == me) {
            Some(number) => Phases::new(number as u32, leaders.len() as u32, by_engines),
            // It never comes to this one.
            None => Phases::new(0, 1, false),
        };
        let slots = u16::try_from(shape.slots).unwrap_or(u16::MAX);
        Self {
            domain,
            me,
            layout,
            region,
            homes,
            talks: Talks::new(shape.ranks),
            mailboxes,
            bursts,
            left: 0,
            reaped: false,
            longs,
            slots: vec![Slot::default(); slots.into()],
            free_slots: (0..slots).rev().collect(),
            free_replies: (0..shape.replies).rev().collect(),
            free_fetches: (0..shape.fetches).rev().collect(),
            fetching: vec![None; shape.fetches as usize],
            to_fetch: VecDeque::new(),
            fetched: VecDeque::new(),
            held: Vec::new(),
            to_grant: VecDeque::new(),
            to_call: VecDeque::new(),
            early: Vec::new(),
            early_slots: Vec::new(),
            lossy: None,
            postponed: Vec::new(),
            transfers: VecDeque::new(),
            partners: barrier.steps().map(|step| leaders[barrier.partner(step) as usize]).collect(),
            barrier,
            words: Words::default(),
            gone: None,
            failed: None,
        }
    }

    fn talk(&mut self, peer: Rank) -> &mut Talk {
        self.talks.with(peer)
    }

    fn corrupt(&self, from: Rank, what: &str) -> WireError {
        WireError::Corrupt { transport: NAME, at: self.me, what: format!("rank {from} {what}") }
    }

    fn whole(&self) -> Result<(), WireError> {
        if self.domain.is_lost() {
            let what = "events of its own posts were lost: the completion queue was overrun".to_owned();
            return Err(WireError::Corrupt { transport: NAME, at: self.me, what });
        }
        if let Some(code) = self.failed {
            let code = code_name(code);
            let what = format!(
                "the collective engines have no result of a barrier or a reduction ({code}): a rank has ended, or the network has failed"
            );
            return Err(WireError::Failed { transport: NAME, at: self.me, what });
        }
        self.gone.map_or(Ok(()), |(rank, why)| Err(WireError::Unreachable { rank, why }))
    }

    /// Takes up to `burst` events of what was posted; returns how many.
    pub fn reap(&mut self, burst: u32) -> u32 {
        for taken in 0..burst {
            let Some(done) = self.domain.next_done() else { return taken };
            let Done { owner, peer, failed, unheard, .. } = done;
            self.to_call.extend(unheard.map(|call| (peer, call)));
            match owner {
                Owner::Transfer { .. } | Owner::Update { .. } => {}
                Owner::Given if failed.is_some() => {
                    self.failed.get_or_insert(GNI_RC_TRANSACTION_ERROR);
                }
                _ => self.gone = self.gone.or(failed.map(|why| (peer, why))),
            }
            match owner {
                Owner::Transfer { .. } | Owner::Update { .. } => self.transfers.extend(done.completion()),
                Owner::Request { slot } => {
                    self.slots[usize::from(slot)].send(slot, &mut self.free_slots);
                }
                Owner::Reply { number } => self.free_replies.push(number),
                Owner::Fetch { number } if failed.is_none() => self.fetched.push_back(number),
                Owner::Fetch { .. } | Owner::Word | Owner::Given => {}
            }
        }
        burst
    }

    /// Takes events until nothing is with the library; whether that is so.
    pub fn settle_posts(&mut self) -> bool {
        self.reap(self.bursts.done);
        self.domain.under_way() == 0
    }

    /// A few of them.
    pub fn reap_some(&mut self) -> u32 {
        if self.domain.under_way() == 0 { 0 } else { self.reap(self.bursts.done) }
    }

    /// Between two tries, of which this was one: takes what has come so far, or lets time pass.
    fn wait(&mut self, tried: u32) {
        if self.reap(self.bursts.done) > 0 {
            return;
        }
        if tried < TRIES {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A post to a rank's region, from the own one: of nothing, to its start.
    fn post_to(&self, peer: Rank, kind: Kind, owner: Owner) -> Post {
        let (home, own) = (self.homes[peer as usize], self.homes[self.me as usize]);
        Post {
            kind,
            peer,
            local: RawSlice::EMPTY,
            local_handle: own.handle,
            remote: home.address,
            remote_handle: home.handle,
            call: None,
            owner,
        }
    }

    /// Posts, as often as it takes.
    fn hand_over(&mut self, post: &Post) -> Result<(), WireError> {
        for tried in 0..TRIES + SLOW_TRIES {
            // SAFETY: domain.5: the local bytes, if any, lie in the region, which outlives the domain; they are the post's until its end.
            match unsafe { self.domain.post(post) } {
                Ok(()) => {
                    kill_point!("gni.post.posted");
                    return Ok(());
                }
                Err(Refused::Busy) => self.wait(tried),
                Err(Refused::Code(code)) => {
                    tracing::debug!(code, peer = post.peer, "a message could not be posted");
                    self.gone.get_or_insert((post.peer, code_name(code)));
                    return self.whole();
                }
            }
        }
        Err(WireError::Starved { transport: NAME, to: post.peer, times: TRIES + SLOW_TRIES })
    }

    /// Fetches what is to be fetched, calls once more who has not heard, and tells who has been given a mailbox, as far as there is
    /// room.
    fn go_on(&mut self) -> Result<(), WireError> {
        while let (Some(&fetching), Some(&number)) = (self.to_fetch.front(), self.free_fetches.last()) {
            if !self.domain.has_room() {
                return Ok(());
            }
            let Fetching { peer, letter, .. } = fetching;
            let len = whole_len(letter);
            let kind = if len <= SHORT { Kind::Get } else { Kind::BulkGet };
            let mut post = self.post_to(peer, kind, Owner::Fetch { number });
            post.local = self.region.part(self.layout.fetched(number), len).raw();
            post.remote = self.homes[peer as usize].at(self.layout.slot(letter.slot) + start_of(letter));
            self.to_fetch.pop_front();
            self.free_fetches.pop();
            self.fetching[number as usize] = Some(fetching);
            self.hand_over(&post)?;
            kill_point!("gni.fetch.begun");
        }
        while let Some(&(peer, call)) = self.to_call.front() {
            if !self.domain.has_room() {
                return Ok(());
            }
            self.to_call.pop_front();
            // Of no bytes: it calls, and that is all.
            let post = Post { call: Some(call), ..self.post_to(peer, Kind::Put, Owner::Word) };
            self.hand_over(&post)?;
        }
        while let (Some(&peer), Some(&number)) = (self.to_grant.front(), self.free_replies.last()) {
            if !self.domain.has_room() {
                return Ok(());
            }
            self.to_grant.pop_front();
            let given = self.talk(peer).receiving.mailbox.and_then(|number| self.mailboxes.told(number));
            let Some((address, handle)) = given else { continue };
            self.free_replies.pop();
            let at = self.layout.reply(number);
            for (place, word) in [address, handle.words[0], handle.words[1]].into_iter().enumerate() {
                self.region.set(at + 8 * place, word);
            }
            let (home, grant) = (self.homes[peer as usize], self.layout.grant(self.me));
            let kind = Kind::PutFlagged { at: home.at(grant + 24), value: 1 };
            let local = self.region.part(at, 24).raw();
            let post =
                Post { local, remote: home.at(grant), ..self.post_to(peer, kind, Owner::Reply { number }) };
            self.hand_over(&post)?;
            kill_point!("gni.grant.given");
        }
        Ok(())
    }

    /// What sees how far this rank is in the barrier.
    pub fn seen(&self) -> Arc<Seen> {
        self.barrier.seen()
    }

    /// This rank has come to the barrier, by this name.
    pub fn begin_barrier(&mut self, name: Name) {
        self.barrier.begin(name);
        // The next poll says what is wrong.
        let _ = self.turn_barrier();
    }

    /// What all agree on, once all have come.
    pub fn barrier_done(&mut self) -> Option<Name> {
        let _ = self.turn_barrier();
        self.barrier.agreed()
    }

    /// Takes as many steps as can be taken.
    fn turn_barrier(&mut self) -> Result<(), WireError> {
        loop {
            match self.barrier.next() {
                Next::Nothing => return Ok(()),
                Next::Tell { step, place, word } => {
                    let to = self.partners[step as usize];
                    let mut post = self.post_to(to, Kind::PutWord(word), Owner::Word);
                    post.remote = self.homes[to as usize].at(self.layout.barrier(place));
                    self.hand_over(&post)?;
                    self.barrier.tell();
                    kill_point!("gni.barrier.told");
                }
                Next::Hear { place } => {
                    let at = self.layout.barrier(place);
                    let word = self.region.look(at);
                    if word == 0 {
                        return Ok(());
                    }
                    self.region.set(at, 0);
                    self.barrier.hear(word);
                }
                Next::Give { number, word } => {
                    self.give(Kind::Give { to: EngineOf::Barrier, op: WordOp::And, number, word })?;
                    self.barrier.tell();
                    kill_point!("gni.barrier.given");
                }
                Next::Gather => {
                    let Some(word) = self.gathered(EngineOf::Barrier)? else { return Ok(()) };
                    self.barrier.gather(word);
                }
            }
        }
    }

    /// Where an engine's result lies.
    fn result_of(&self, engine: EngineOf) -> usize {
        match engine {
            EngineOf::Barrier => self.layout.barrier(0),
            EngineOf::Words => self.layout.barrier(MOST_STEPS),
        }
    }

    /// Gives an engine a word.
    fn give(&mut self, kind: Kind) -> Result<(), WireError> {
        let Kind::Give { to, .. } = kind else { return Ok(()) };
        let at = self.result_of(to);
        self.region.set(at, 0);
        let local = self.region.part(at, RESULT).raw();
        self.hand_over(&Post { local, ..self.post_to(self.me, kind, Owner::Given) })
    }

    /// What an engine has combined, once it is there.
    fn gathered(&mut self, engine: EngineOf) -> Result<Option<u64>, WireError> {
        let at = self.result_of(engine);
        match self.domain.gathered(self.region.part(at, RESULT)) {
            None => Ok(None),
            Some(Ok(())) => Ok(Some(self.region.look(at + FIRST))),
            Some(Err(code)) => {
                self.failed.get_or_insert(code);
                self.whole().map(|()| None)
            }
        }
    }

    /// A reduction of words begins, by this rank's.
    pub fn begin_words(&mut self, number: u64, op: WordOp, word: u64) {
        self.words.begin(number, op, word);
        // The next poll says what is wrong.
        let _ = self.turn_words();
    }

    /// What came of it, once all have given theirs.
    pub fn words_result(&mut self) -> Option<u64> {
        let _ = self.turn_words();
        self.words.result()
    }

    /// Takes as many steps of the reduction as can be taken.
    fn turn_words(&mut self) -> Result<(), WireError> {
        if let Step::Give { number, op, word } = self.words.next() {
            self.give(Kind::Give { to: EngineOf::Words, op, number, word })?;
            self.words.give();
            kill_point!("gni.words.given");
        }
        if self.words.next() == Step::Gather
            && let Some(word) = self.gathered(EngineOf::Words)?
        {
            self.words.gather(word);
        }
        Ok(())
    }

    /// Whether all that this rank has posted has arrived, and nothing is to be posted that others wait for.
    pub fn is_settled(&self) -> bool {
        self.domain.under_way() == 0
            && self.postponed.is_empty()
            && self.to_fetch.is_empty()
            && self.to_grant.is_empty()
            && self.to_call.is_empty()
    }

    /// Whether a message may have arrived, as far as can be told without looking for it.
    pub fn is_restless(&self) -> bool {
        self.domain.under_way() > 0
            || !self.early.is_empty()
            || !self.early_slots.is_empty()
            || self.lossy.is_some()
    }

    /// A rank is called, when there is room for it.
    pub fn call(&mut self, peer: Rank, call: u32) {
        self.to_call.push_back((peer, call));
    }

    /// Whether a poll has nothing to do unless something arrives of which an event tells.
    pub fn is_still(&self) -> bool {
        self.is_settled()
            && !self.is_restless()
            && self.fetched.is_empty()
            && self.transfers.is_empty()
            && self.barrier.next() == Next::Nothing
            && self.words.next() == Step::Nothing
            && self.whole().is_ok()
    }

    /// A transfer that has come so far, the `first` of a poll or another.
    pub fn next_transfer(&mut self, first: bool) -> Option<Completion> {
        if first && !std::mem::take(&mut self.reaped) {
            self.reap_some();
        }
        self.transfers.pop_front()
    }
}
