//! Active messages by puts and notifications.
//!
//! A request goes into the mailbox that its receiver has given this rank: one post puts the message there, writes its letter behind it, and
//! calls the receiver. Before it has given one, or where there are none, the message stays in a slot here, its letter alone is put there, and
//! the receiver fetches it: that takes no memory of a rank that does not talk. A reply goes into the slot of a request that it ends.
//!
//! Each message begins with the set of the tickets that it ends: requests that its sender has taken, and will not answer any more. With
//! a ticket go its slot and its granules, so no other message is needed to give them back.
//!
//! A call may come before the letter it tells of, or before another one's that was written first. So a rank looks at all letters of who
//! has called, and comes back for those that it was told of and has not found. A call that finds no room is made again, by whoever learns
//! of that first: its sender does it once more; its receiver looks at all of everybody's letters in turn from then on.
//!
//! Whatever is read here others may have written: it is copied once, then checked, then used.

use crate::barrier::{Next, Phases, Seen};
use crate::domain::{Arrival, Domain, Done, Handle, Kind, Owner, Post, Refused};
use crate::letter::{Call, Letter};
use crate::mailboxes::Mailboxes;
use crate::region::{Layout, Region, message_len, read_grant};
use crate::talk::{Granules, Talk, Ticket};
use gasworks_core::wire::{self, MAX_HEAD};
use gasworks_core::{Class, Name, Rank, WireError};
use gasworks_rdma::{Completion, NicError};
use gasworks_sync::{RawBytes, kill_point};
use std::collections::VecDeque;
use std::sync::Arc;

/// What the transport is called.
pub(crate) const NAME: &str = "gni";
/// Bytes before a message: what it ends.
const ENDED: usize = 8;
/// How often a post is tried that the network has no room for.
const TRIES: u32 = 1 << 16;
/// The longest message that the processor fetches.
const SHORT: usize = 4096;
/// How many ranks and slots are looked at in a poll once calls were lost.
const LOOKS: u32 = 64;

/// Where a rank's region is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Home {
    pub address: u64,
    pub handle: Handle,
}

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
    /// Its receiver is done with it.
    ended: bool,
    /// The library is.
    sent: bool,
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
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    Request { ticket: u32, slot: u16, granules: Option<Granules> },
    Reply { number: u32 },
}

/// A message that was taken: the payload, then the head.
pub(crate) struct Taken {
    pub from: Rank,
    pub head: usize,
    pub payload: usize,
    pub bytes: Box<[u8]>,
}

enum Found {
    Message(Taken),
    /// One that is being fetched.
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

/// The domain, and what is under way in it.
pub(crate) struct Messages {
    // The domain is dropped before the memory that it has registered.
    pub domain: Domain,
    me: Rank,
    layout: Layout,
    region: Region,
    homes: Box<[Home]>,
    talks: Vec<Option<Box<Talk>>>,
    mailboxes: Mailboxes,
    bursts: Bursts,
    slots: Vec<Slot>,
    free_slots: Vec<u16>,
    free_replies: Vec<u32>,
    free_fetches: Vec<u32>,
    /// By the number of the place that it is fetched to.
    fetching: Vec<Option<Fetching>>,
    to_fetch: VecDeque<Fetching>,
    fetched: VecDeque<u32>,
    /// Ranks that have been given a mailbox and do not know.
    to_grant: VecDeque<Rank>,
    /// Who has not heard that something is there for it, and what it was to be called with.
    to_call: VecDeque<(Rank, u32)>,
    /// Who has called, and left nothing that can be seen.
    early: Vec<Rank>,
    early_slots: Vec<u16>,
    /// Calls were lost: from now on everybody is looked at, these next.
    lossy: Option<(Rank, u16)>,
    spare: Vec<Box<[u8]>>,
    /// Transfers of the engine's that have come so far.
    pub transfers: VecDeque<Completion>,
    barrier: Phases,
    /// A rank that cannot be reached any more.
    gone: Option<Rank>,
}

impl Messages {
    pub fn new(
        domain: Domain,
        me: Rank,
        (layout, region): (Layout, Region),
        homes: Box<[Home]>,
        mailboxes: Mailboxes,
        bursts: Bursts,
    ) -> Self {
        let shape = layout.shape;
        let slots = u16::try_from(shape.slots).unwrap_or(u16::MAX);
        Self {
            domain,
            me,
            layout,
            region,
            homes,
            talks: (0..shape.ranks).map(|_| None).collect(),
            mailboxes,
            bursts,
            slots: vec![Slot::default(); slots.into()],
            free_slots: (0..slots).rev().collect(),
            free_replies: (0..shape.replies).rev().collect(),
            free_fetches: (0..shape.fetches).rev().collect(),
            fetching: vec![None; shape.fetches as usize],
            to_fetch: VecDeque::new(),
            fetched: VecDeque::new(),
            to_grant: VecDeque::new(),
            to_call: VecDeque::new(),
            early: Vec::new(),
            early_slots: Vec::new(),
            lossy: None,
            spare: Vec::new(),
            transfers: VecDeque::new(),
            barrier: Phases::new(me, shape.ranks),
            gone: None,
        }
    }

    fn talk(&mut self, peer: Rank) -> &mut Talk {
        self.talks[peer as usize].get_or_insert_default()
    }

    fn corrupt(&self, from: Rank, what: &str) -> WireError {
        WireError::Corrupt { transport: NAME, at: self.me, what: format!("rank {from} {what}") }
    }

    fn whole(&self) -> Result<(), WireError> {
        if self.domain.lost {
            let what = "events of its own posts were lost: the completion queue was overrun".to_owned();
            return Err(WireError::Corrupt { transport: NAME, at: self.me, what });
        }
        self.gone.map_or(Ok(()), |rank| Err(WireError::PeerGone { rank }))
    }

    /// Bytes of memory for messages, registered ones.
    pub fn memory(&self) -> usize {
        self.layout.len + self.mailboxes.memory()
    }

    // What was posted.

    /// Takes up to `burst` events of what was posted; returns how many.
    pub fn reap(&mut self, burst: u32) -> u32 {
        for taken in 0..burst {
            let Some(Done { owner, peer, stage, failed, unheard }) = self.domain.next_done() else {
                return taken;
            };
            self.to_call.extend(unheard.map(|call| (peer, call)));
            if failed && !matches!(owner, Owner::Transfer { .. }) {
                self.gone.get_or_insert(peer);
            }
            match owner {
                Owner::Transfer { token } => {
                    let result = if failed { Err(NicError::PeerGone { peer }) } else { Ok(()) };
                    self.transfers.push_back(Completion { token, stage, result });
                }
                Owner::Request { slot } => {
                    self.slots[usize::from(slot)].send(slot, &mut self.free_slots);
                }
                Owner::Reply { number } => self.free_replies.push(number),
                Owner::Fetch { number } if !failed => self.fetched.push_back(number),
                Owner::Fetch { .. } | Owner::Word => {}
            }
        }
        burst
    }

    /// A few of them.
    pub fn reap_some(&mut self) -> u32 {
        if self.domain.under_way() == 0 { 0 } else { self.reap(self.bursts.done) }
    }

    /// Posts, as often as it takes.
    fn hand_over(&mut self, post: &Post) -> Result<(), WireError> {
        for _ in 0..TRIES {
            // SAFETY: U5: the local bytes are the region's, which the post's owner has until it is over.
            match unsafe { self.domain.post(post) } {
                Ok(()) => {
                    kill_point!("gni.post.posted");
                    return Ok(());
                }
                Err(Refused::Busy) => {
                    if self.reap(self.bursts.done) == 0 {
                        std::thread::yield_now();
                    }
                }
                Err(Refused::Code(code)) => {
                    tracing::debug!(code, peer = post.peer, "a message could not be posted");
                    self.whole()?;
                    self.gone.get_or_insert(post.peer);
                    return Err(WireError::PeerGone { rank: post.peer });
                }
            }
        }
        Err(WireError::Starved { transport: NAME, to: post.peer, times: TRIES })
    }

    // Sending.

    /// Room for a message of so many bytes, with a head of at most `head`, and the part of it where the payload goes.
    pub fn reserve(
        &mut self,
        to: Rank,
        class: Class,
        payload: usize,
        head: usize,
    ) -> Result<(Room, RawBytes), WireError> {
        self.whole()?;
        if to >= self.layout.shape.ranks {
            return Err(WireError::PeerGone { rank: to });
        }
        let max = self.layout.shape.max_medium;
        if payload > max {
            return Err(WireError::TooLarge { transport: NAME, len: payload, max });
        }
        let (room, at) = match class {
            Class::Request => {
                let (room, slot) = self.request_room(to, ENDED + message_len(head, payload))?;
                (room, self.layout.slot(slot))
            }
            Class::Reply | Class::Credit => {
                let number = self.reply_room(to)?;
                (Room::Reply { number }, self.layout.reply(number))
            }
        };
        Ok((room, self.region.part(at + ENDED, payload)))
    }

    fn request_room(&mut self, to: Rank, len: usize) -> Result<(Room, u16), WireError> {
        if self.free_slots.is_empty() {
            self.reap_some();
        }
        let busy = WireError::Busy { to };
        let slot = *self.free_slots.last().ok_or_else(|| busy.clone())?;
        let (region, offset) = (self.region, self.layout.grant(to));
        let (most, mailbox) = (self.layout.shape.tickets, self.mailboxes.shape);
        let sending = &mut self.talk(to).sending;
        if sending.mailbox.is_none() {
            sending.mailbox = read_grant(&region, offset);
        }
        let ticket = sending.take(most).ok_or_else(|| busy.clone())?;
        let granules = match sending.mailbox.map(|_| sending.take_granules(mailbox.count(len))) {
            Some(None) => {
                sending.untake(ticket);
                return Err(busy);
            }
            Some(granules) => granules,
            None => None,
        };
        self.free_slots.pop();
        self.slots[usize::from(slot)] = Slot { in_use: true, peer: to, ended: false, sent: false };
        Ok((Room::Request { ticket, slot, granules }, slot))
    }

    /// Waits for one at need: what is under way comes to its end without anybody's help.
    fn reply_room(&mut self, to: Rank) -> Result<u32, WireError> {
        for _ in 0..TRIES {
            if let Some(number) = self.free_replies.pop() {
                return Ok(number);
            }
            if self.reap(self.bursts.done) == 0 {
                self.whole()?;
                std::thread::yield_now();
            }
        }
        Err(WireError::Starved { transport: NAME, to, times: TRIES })
    }

    /// Sends what lies in its room: the payload, of which so many bytes are there, and this head.
    pub fn commit(&mut self, to: Rank, room: Room, payload: usize, head: &[u8]) -> Result<(), WireError> {
        let at = match room {
            Room::Request { slot, .. } => self.layout.slot(slot),
            Room::Reply { number } => self.layout.reply(number),
        };
        let len = ENDED + message_len(head.len(), payload);
        let ends = wire::ended(head);
        let settled = match ends {
            0 => Some((0, 0)),
            count => self.talk(to).receiving.settle(count),
        };
        let Some((ended, answered)) = settled else {
            self.cancel(to, room);
            return Err(
                self.corrupt(to, &format!("is to be told the end of {ends} requests, which it has not sent"))
            );
        };
        self.region.set(at, ended);
        self.region.part(at + ENDED + payload.next_multiple_of(8), head.len()).write(head);
        let local = self.region.part(at, len);
        let home = self.homes[to as usize];
        let local_handle = self.homes[self.me as usize].handle;
        let letter = Letter { fetch: false, slot: 0, granule: 0, head: head.len(), payload };
        let post = Post {
            kind: Kind::Put,
            peer: to,
            local,
            local_handle,
            remote: 0,
            remote_handle: home.handle,
            call: None,
            owner: Owner::Word,
        };
        let layout = self.layout;
        let post = match room {
            Room::Reply { .. } if ends == 0 => {
                self.cancel(to, room);
                return Err(self.corrupt(to, "is to have a reply that ends no request"));
            }
            Room::Reply { number } => Post {
                kind: Kind::PutFlagged {
                    at: home.address + layout.answer(answered) as u64,
                    value: letter.encode(),
                },
                remote: home.address + layout.slot(answered) as u64,
                call: Some(Call::Reply(answered).encode()),
                owner: Owner::Reply { number },
                ..post
            },
            Room::Request { ticket, slot, granules } => {
                let (mailbox, shape) = (self.talk(to).sending.mailbox, self.mailboxes.shape);
                let sending = &mut self.talk(to).sending;
                let granules = granules.map(|granules| sending.trim(granules, shape.count(len)));
                sending.enter(ticket, Ticket { slot, granules: granules.unwrap_or_default() });
                let call = Some(Call::Request(self.me).encode());
                let owner = Owner::Request { slot };
                match (granules, mailbox) {
                    (Some(granules), Some((address, handle))) => {
                        let letter = Letter { slot, granule: granules.first as u8, ..letter };
                        let at = address + shape.letter(ticket) as u64;
                        Post {
                            kind: Kind::PutFlagged { at, value: letter.encode() },
                            remote: address + shape.granule(granules.first) as u64,
                            remote_handle: handle,
                            call,
                            owner,
                            ..post
                        }
                    }
                    _ => {
                        let letter = Letter { fetch: true, slot, ..letter };
                        let remote = home.address + layout.letter(self.me, ticket) as u64;
                        Post { kind: Kind::PutWord(letter.encode()), remote, call, owner, ..post }
                    }
                }
            }
        };
        self.hand_over(&post).inspect_err(|_| self.cancel(to, room))
    }

    /// Gives room back.
    pub fn cancel(&mut self, to: Rank, room: Room) {
        match room {
            Room::Reply { number } => self.free_replies.push(number),
            Room::Request { ticket, slot, granules } => {
                let sending = &mut self.talk(to).sending;
                sending.untake(ticket);
                granules.into_iter().for_each(|granules| sending.give_granules(granules));
                self.slots[usize::from(slot)] = Slot::default();
                self.free_slots.push(slot);
            }
        }
    }

    // Receiving.

    /// A buffer for a message. It is to come back by [`give_back`](Self::give_back).
    fn buffer(&mut self) -> Box<[u8]> {
        self.spare.pop().unwrap_or_else(|| vec![0; self.layout.slot_len].into())
    }

    /// A buffer is not needed any more.
    pub fn give_back(&mut self, buffer: Box<[u8]>) {
        self.spare.push(buffer);
    }

    /// The next message that has arrived.
    pub fn next(&mut self) -> Result<Option<Taken>, WireError> {
        self.reap_some();
        self.whole()?;
        self.go_on()?;
        self.turn_barrier()?;
        if let Some(number) = self.fetched.pop_front() {
            return self.take_fetched(number);
        }
        if let Some(taken) = self.take_early()? {
            return Ok(Some(taken));
        }
        for _ in 0..self.bursts.arrivals {
            let found = match self.domain.next_arrival() {
                Arrival::Nothing => break,
                Arrival::Overrun => {
                    self.lossy.get_or_insert((0, 0));
                    continue;
                }
                Arrival::Call(value) => self.answer_call(Call::decode(value))?,
            };
            if let Found::Message(taken) = found {
                return Ok(Some(taken));
            }
        }
        self.look_around()
    }

    /// Looks for what a call tells of, and remembers it if it is not there.
    fn answer_call(&mut self, call: Call) -> Result<Found, WireError> {
        let found = match call {
            Call::Request(rank) if rank < self.layout.shape.ranks => self.take_request(rank)?,
            Call::Reply(slot) if u32::from(slot) < self.layout.shape.slots => self.take_reply(slot)?,
            _ => return Ok(Found::Nothing),
        };
        if matches!(found, Found::Nothing) && self.lossy.is_none() {
            match call {
                Call::Request(rank) => {
                    let early = &mut self.talk(rank).receiving.early;
                    *early += 1;
                    if *early == 1 {
                        self.early.push(rank);
                    }
                }
                Call::Reply(slot) => self.early_slots.push(slot),
            }
        }
        Ok(found)
    }

    /// Looks once more for what was told of too early.
    fn take_early(&mut self) -> Result<Option<Taken>, WireError> {
        for at in (0..self.early.len()).rev() {
            let rank = self.early[at];
            loop {
                let found = self.take_request(rank)?;
                if matches!(found, Found::Nothing) {
                    break;
                }
                let early = &mut self.talk(rank).receiving.early;
                *early = early.saturating_sub(1);
                let is_last = *early == 0;
                if is_last {
                    self.early.swap_remove(at);
                }
                if let Found::Message(taken) = found {
                    return Ok(Some(taken));
                }
                if is_last {
                    break;
                }
            }
        }
        for at in (0..self.early_slots.len()).rev() {
            if let Found::Message(taken) = self.take_reply(self.early_slots[at])? {
                self.early_slots.swap_remove(at);
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Looks at some ranks and slots that nobody has told of, where calls were lost.
    fn look_around(&mut self) -> Result<Option<Taken>, WireError> {
        let Some((mut rank, mut slot)) = self.lossy else { return Ok(None) };
        let (ranks, slots) = (self.layout.shape.ranks, self.slots.len() as u16);
        for _ in 0..LOOKS {
            let found = self.take_request(rank)?;
            rank = (rank + 1) % ranks;
            let found = match found {
                Found::Nothing if self.slots[usize::from(slot)].in_use => self.take_reply(slot)?,
                found => found,
            };
            slot = (slot + 1) % slots;
            self.lossy = Some((rank, slot));
            if let Found::Message(taken) = found {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// A request of this rank, if there is one.
    fn take_request(&mut self, from: Rank) -> Result<Found, WireError> {
        let tickets = self.layout.shape.tickets;
        let (next, mailbox) = match &self.talks[from as usize] {
            Some(talk) => (talk.receiving.next, talk.receiving.mailbox),
            None => (0, None),
        };
        let turn = |i| (next + i) % tickets;
        let shape = self.mailboxes.shape;
        if let Some(mailbox) = mailbox.and_then(|number| self.mailboxes.get(number)) {
            let look =
                |ticket| Some((ticket, mailbox.look(shape.letter(ticket)))).filter(|(_, word)| *word != 0);
            if let Some((ticket, word)) = (0..tickets).map(turn).find_map(look) {
                mailbox.set(shape.letter(ticket), 0);
                let letter = self.read_letter(from, ticket, word, false)?;
                let at = shape.granule(letter.granule.into());
                let len = ENDED + message_len(letter.head, letter.payload);
                if at + len > shape.len() {
                    return Err(self.corrupt(from, "has sent a letter of a message beyond its mailbox"));
                }
                return self.take_message(from, &mailbox, at, letter).map(Found::Message);
            }
        }
        let (region, layout) = (self.region, self.layout);
        let look =
            |ticket| Some((ticket, region.look(layout.letter(from, ticket)))).filter(|(_, word)| *word != 0);
        let Some((ticket, word)) = (0..tickets).map(turn).find_map(look) else { return Ok(Found::Nothing) };
        region.set(layout.letter(from, ticket), 0);
        let letter = self.read_letter(from, ticket, word, true)?;
        self.to_fetch.push_back(Fetching { peer: from, ticket, letter });
        if self.talk(from).receiving.mailbox.is_none() {
            let number = self.mailboxes.give(&mut self.domain);
            self.talk(from).receiving.mailbox = number;
            if number.is_some() {
                self.to_grant.push_back(from);
            }
        }
        self.go_on()?;
        Ok(Found::Begun)
    }

    /// What a letter says, if a rank may say so.
    fn read_letter(&mut self, from: Rank, ticket: u32, word: u64, fetch: bool) -> Result<Letter, WireError> {
        let shape = self.layout.shape;
        let letter = Letter::decode(word).filter(|letter| {
            letter.fetch == fetch
                && u32::from(letter.slot) < shape.slots
                && letter.payload <= shape.max_medium
                && (1..=MAX_HEAD).contains(&letter.head)
        });
        let Some(letter) = letter else {
            return Err(self.corrupt(from, &format!("has sent {word:#018x}, which is no letter")));
        };
        let receiving = &mut self.talk(from).receiving;
        if receiving.has(ticket) {
            return Err(self.corrupt(from, &format!("has used ticket {ticket} twice")));
        }
        receiving.next = (ticket + 1) % shape.tickets;
        // From here on it may be replied to.
        if !fetch {
            receiving.owe(ticket, letter.slot);
        }
        Ok(letter)
    }

    /// Copies a message out, and does what it says it ends.
    fn take_message(
        &mut self,
        from: Rank,
        region: &Region,
        at: usize,
        letter: Letter,
    ) -> Result<Taken, WireError> {
        let mut bytes = self.buffer();
        let len = message_len(letter.head, letter.payload);
        region.part(at + ENDED, len).read(&mut bytes[..len]);
        kill_point!("gni.take.copied");
        let ended = region.look(at);
        if ended != 0 {
            let Self { talks, slots, free_slots, .. } = self;
            let known = talks[from as usize].as_mut().and_then(|talk| {
                talk.sending.end(ended, |number| slots[usize::from(number)].end(number, free_slots))
            });
            if known.is_none() {
                self.give_back(bytes);
                return Err(self.corrupt(from, "has ended a request that is not out"));
            }
        }
        Ok(Taken { from, head: letter.head, payload: letter.payload, bytes })
    }

    /// The reply in a slot, if there is one.
    fn take_reply(&mut self, slot: u16) -> Result<Found, WireError> {
        let answer = self.layout.answer(slot);
        let word = self.region.look(answer);
        if word == 0 {
            return Ok(Found::Nothing);
        }
        self.region.set(answer, 0);
        let Slot { in_use, peer, .. } = self.slots[usize::from(slot)];
        let max = self.layout.shape.max_medium;
        let letter = Letter::decode(word)
            .filter(|letter| in_use && letter.payload <= max && (1..=MAX_HEAD).contains(&letter.head));
        let Some(letter) = letter else {
            return Err(self.corrupt(peer, &format!("has answered slot {slot} with {word:#018x}")));
        };
        let region = self.region;
        self.take_message(peer, &region, self.layout.slot(slot), letter).map(Found::Message)
    }

    /// A message that has been fetched.
    fn take_fetched(&mut self, number: u32) -> Result<Option<Taken>, WireError> {
        let Some(Fetching { peer, ticket, letter }) = self.fetching[number as usize].take() else {
            return Ok(None);
        };
        self.talk(peer).receiving.owe(ticket, letter.slot);
        let region = self.region;
        let taken = self.take_message(peer, &region, self.layout.fetched(number), letter);
        self.free_fetches.push(number);
        taken.map(Some)
    }

    /// Fetches what is to be fetched, calls once more who has not heard, and tells who has been given a mailbox, as far as there is
    /// room.
    fn go_on(&mut self) -> Result<(), WireError> {
        while let (Some(&fetching), Some(&number)) = (self.to_fetch.front(), self.free_fetches.last()) {
            if !self.domain.has_room() {
                return Ok(());
            }
            let Fetching { peer, letter, .. } = fetching;
            let len = ENDED + message_len(letter.head, letter.payload);
            let home = self.homes[peer as usize];
            let post = Post {
                kind: if len <= SHORT { Kind::Get } else { Kind::BulkGet },
                peer,
                local: self.region.part(self.layout.fetched(number), len),
                local_handle: self.homes[self.me as usize].handle,
                remote: home.address + self.layout.slot(letter.slot) as u64,
                remote_handle: home.handle,
                call: None,
                owner: Owner::Fetch { number },
            };
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
            let home = self.homes[peer as usize];
            // Of no bytes: it calls, and that is all.
            let post = Post {
                kind: Kind::Put,
                peer,
                local: RawBytes::EMPTY,
                local_handle: Handle::default(),
                remote: home.address,
                remote_handle: home.handle,
                call: Some(call),
                owner: Owner::Word,
            };
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
            let home = self.homes[peer as usize];
            let remote = home.address + self.layout.grant(self.me) as u64;
            let post = Post {
                kind: Kind::PutFlagged { at: remote + 24, value: 1 },
                peer,
                local: self.region.part(at, 24),
                local_handle: self.homes[self.me as usize].handle,
                remote,
                remote_handle: home.handle,
                call: None,
                owner: Owner::Reply { number },
            };
            self.hand_over(&post)?;
            kill_point!("gni.grant.given");
        }
        Ok(())
    }

    // Meeting.

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
                Next::Tell { to, place, word } => {
                    let home = self.homes[to as usize];
                    let post = Post {
                        kind: Kind::PutWord(word),
                        peer: to,
                        local: RawBytes::EMPTY,
                        local_handle: Handle::default(),
                        remote: home.address + self.layout.barrier(place) as u64,
                        remote_handle: home.handle,
                        call: None,
                        owner: Owner::Word,
                    };
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
            }
        }
    }

    /// Whether all that this rank has posted has arrived, and nothing is to be posted that others wait for.
    pub fn is_settled(&self) -> bool {
        self.domain.under_way() == 0
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

    /// Starts a transfer of the engine's.
    ///
    /// # Safety
    /// U5, for the local bytes of `post`.
    pub unsafe fn transfer(&mut self, post: &Post) -> Result<(), Refused> {
        // SAFETY: the caller's promise.
        unsafe { self.domain.post(post) }
    }

    /// A transfer that has come so far.
    pub fn next_transfer(&mut self) -> Option<Completion> {
        if self.transfers.is_empty() {
            self.reap_some();
        }
        self.transfers.pop_front()
    }
}
