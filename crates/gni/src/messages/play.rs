//! A rank that others write to, over a network that is played: what a hostile one may do to it, for tests and fuzzers.

use super::*;
use crate::domain::Arrival;
use crate::handle::Handle;
use crate::kept::Closed;
use crate::letter::Call;
use crate::mailboxes;
use crate::region::Shape;
use gasworks_core::Class;
use gasworks_gni_sys::gni_return_t;
use gasworks_rdma::Stage;

pub(super) const ME: Rank = 0;
pub(super) const HOSTILE: Rank = 1;
pub(super) const HONEST: Rank = 2;
pub(super) const SHAPE: Shape =
    Shape { ranks: 3, tickets: 4, slots: 8, max_medium: 512, replies: 4, fetches: 2 };
/// Bytes of a head without arguments.
pub(super) const HEAD: usize = 24;
/// What any letter here may say.
pub(super) const LETTER: Letter =
    Letter { fetch: true, beside: false, ends: false, slot: 1, granule: 0, head: HEAD, payload: 16 };

/// Where a rank's region is: it is never followed.
pub(super) fn home(rank: Rank) -> u64 {
    u64::from(rank + 1) << 40
}

/// A domain on which all that is posted is over at once.
pub(super) struct Play {
    pub arrivals: VecDeque<Arrival>,
    pub done: VecDeque<Done>,
    pub posts: Vec<Post>,
    /// It says nothing of what is over.
    pub holds: bool,
    /// What is in the regions of all ranks.
    pub theirs: Vec<Vec<u8>>,
    /// What its collective engines say.
    pub gathered: Option<Result<(), gni_return_t>>,
}

impl Network for Play {
    unsafe fn register(&mut self, _: RawSlice, _: bool, _: u32) -> Result<Handle, gni_return_t> {
        Ok(Handle { words: [1, 2] })
    }

    unsafe fn post(&mut self, post: &Post) -> Result<(), Refused> {
        if matches!(post.kind, Kind::Get | Kind::BulkGet) {
            // Nobody is made to fetch what is not in that region.
            let from = (post.remote - home(post.peer)) as usize;
            // SAFETY: the caller promises that the local bytes of a get are mapped, and nobody else's until it is over.
            unsafe { post.local.borrow() }
                .write(&self.theirs[post.peer as usize][from..][..post.local.len()]);
        }
        self.posts.push(*post);
        let Post { owner, peer, .. } = *post;
        self.done.push_back(Done { owner, peer, stage: Stage::Whole, failed: None, unheard: None });
        Ok(())
    }

    fn next_done(&mut self) -> Option<Done> {
        if self.holds { None } else { self.done.pop_front() }
    }

    fn next_arrival(&mut self) -> Arrival {
        self.arrivals.pop_front().unwrap_or(Arrival::Nothing)
    }

    fn under_way(&self) -> usize {
        self.done.len()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn gathered(&mut self, _: VolatileSlice<'_>) -> Option<Result<(), gni_return_t>> {
        self.gathered
    }
}

/// A message as it was taken: from whom, its payload.
pub(super) type Heard = (Rank, Vec<u8>);

/// The rank that others write to.
pub(super) struct Victim {
    pub messages: Messages<Play>,
    pub layout: Layout,
    pub region: Region,
    memory: *mut [u64],
    /// How many messages of the honest rank there were.
    honest: u8,
}

impl Victim {
    /// It gives so many mailboxes.
    pub fn new(mailboxes: u32) -> Self {
        let layout = Layout::new(SHAPE).expect("it is small");
        let memory = Box::into_raw(vec![0u64; layout.len.div_ceil(8)].into_boxed_slice());
        // SAFETY: the words are freed by `drop` alone, when nobody uses the region any more; they are reached through it alone.
        let region = Region::new(unsafe { RawSlice::new(memory.cast(), layout.len).borrow() });
        let homes = (0..SHAPE.ranks).map(|rank| Home { address: home(rank), handle: Handle::default() });
        let play = Play {
            arrivals: VecDeque::new(),
            done: VecDeque::new(),
            posts: Vec::new(),
            holds: false,
            theirs: vec![vec![0; layout.len]; SHAPE.ranks as usize],
            gathered: None,
        };
        let boxes = mailboxes::Shape::new(SHAPE.tickets, 4096, layout.slot_len);
        let mailboxes = Mailboxes::new(boxes, mailboxes, 0, Closed::default());
        let bursts = Bursts { done: 10, arrivals: 20 };
        let messages = Messages::new(
            play,
            ME,
            (layout, region),
            homes.collect(),
            mailboxes,
            (bursts, 64),
            (&(0..SHAPE.ranks).collect::<Vec<_>>(), false),
        );
        Self { messages, layout, region, memory, honest: 0 }
    }

    pub fn call(&mut self, call: Call) {
        self.messages.domain.arrivals.push_back(Arrival::Call(call.encode().into()));
    }

    /// A rank's request is to be fetched, and says this.
    pub fn letter(&mut self, from: Rank, ticket: u32, word: u64) {
        self.region.set(self.layout.letter(from, ticket), word);
        self.call(Call::Request(from));
    }

    /// The mailbox that a rank has been given.
    pub fn mailbox(&self, of: Rank) -> Region {
        let talk = self.messages.talks.get(of).expect("it has talked");
        let number = talk.receiving.mailbox.expect("it has been given one");
        self.messages.mailboxes.get(number).expect("there is one")
    }

    /// A slot is answered so, by a message that begins with this word.
    pub fn answer(&mut self, slot: u16, word: u64, first: u64) {
        self.region.set(self.layout.slot(slot), first);
        self.region.set(self.layout.answer(slot), word);
        self.call(Call::Reply(slot));
    }

    /// Sends a request of one word; its ticket and its slot.
    pub fn request(&mut self, to: Rank) -> Result<(u32, u16), WireError> {
        let (room, place) = self.messages.reserve(to, Class::Request, 8, HEAD)?;
        place.write(&[7; 8]);
        let Room::Request { ticket, slot, .. } = room else { panic!("room of another kind") };
        self.messages.commit(to, room, 8, &[0; HEAD]).map(|()| (ticket, slot))
    }

    /// All that arrives, and what is wrong, until nothing comes any more.
    pub fn hear(&mut self) -> (Vec<Heard>, Vec<String>) {
        let (mut heard, mut wrong, mut nothing) = (Vec::new(), Vec::new(), 0);
        while nothing < 3 || !self.messages.domain.arrivals.is_empty() {
            self.messages.begin_poll();
            match self.messages.next() {
                Ok(Some(taken)) => {
                    let mut bytes = vec![0; taken.payload.len()];
                    taken.payload.read(&mut bytes);
                    assert!(!taken.head().is_empty() && bytes.len() <= SHAPE.max_medium);
                    heard.push((taken.from, bytes));
                    self.messages.give_back(taken).expect("it is posted");
                    nothing = 0;
                }
                Ok(None) => nothing += 1,
                Err(WireError::Corrupt { at: ME, what, .. }) => {
                    wrong.push(what);
                    nothing = 0;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(heard.len() + wrong.len() < 1000, "there is no end");
        }
        (heard, wrong)
    }

    /// The next message of the honest rank, with this payload.
    pub fn honest_word(&mut self) -> Heard {
        let (ticket, payload) = (u32::from(self.honest), [self.honest + 1; 16]);
        self.honest += 1;
        let slot = self.layout.slot(ticket as u16);
        self.messages.domain.theirs[HONEST as usize][slot + ENDED..][..16].copy_from_slice(&payload);
        self.letter(HONEST, ticket, Letter { slot: ticket as u16, ..LETTER }.encode());
        (HONEST, payload.to_vec())
    }

    /// Every place is somebody's or free.
    pub fn is_whole(&self) {
        let messages = &self.messages;
        let slots: std::collections::BTreeSet<u16> = messages.free_slots.iter().copied().collect();
        assert_eq!(slots.len(), messages.free_slots.len(), "a slot is free twice");
        for (number, slot) in (0..).zip(&messages.slots) {
            assert_eq!(slot.in_use, !slots.contains(&number), "slot {number}");
        }
        assert_eq!(messages.free_replies.len(), SHAPE.replies as usize);
        assert_eq!(messages.free_fetches.len(), SHAPE.fetches as usize);
        assert!(messages.fetching.iter().all(Option::is_none) && messages.to_fetch.is_empty());
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, and dropped once; what is dropped behind it does not use the region.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

/// What is left of some bytes; zeros when there are no more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self, len: usize) -> u64 {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// One of so many.
    fn below(&mut self, count: u64) -> u64 {
        self.number(2) % count
    }

    /// A letter, right or nearly, or any word.
    fn word(&mut self) -> u64 {
        match self.below(4) {
            0 => self.number(8),
            1 => 1 << self.below(64),
            kind => {
                let (slot, granule) = (self.below(u64::from(SHAPE.slots) + 2) as u16, self.number(1) as u8);
                let (head, payload) = (self.below(100) as usize, self.below(600) as usize);
                let flags = self.below(8);
                let (beside, ends) = (flags & 3 == 0, flags & 4 != 0);
                // A message beside its payload has none in it, as a rule.
                let payload = if beside && self.below(4) > 0 { 0 } else { payload };
                Letter { fetch: kind == 2, beside, ends, slot, granule, head, payload }.encode()
            }
        }
    }
}

/// Has a hostile rank do what the bytes say, while another one sends, and the victim sends, meets and looks. Whatever it does, what the
/// honest one sends arrives as it was sent, once, and no place is lost.
///
/// # Panics
/// If that is not so.
pub fn suffer(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut victim = Victim::new(bytes.below(3) as u32);
    let (mut sent, mut heard) = (Vec::new(), Vec::new());
    while !bytes.0.is_empty() {
        let has_mailbox =
            victim.messages.talks.get(HOSTILE).is_some_and(|talk| talk.receiving.mailbox.is_some());
        let ticket = bytes.below(SHAPE.tickets.into()) as u32;
        match bytes.below(16) {
            0 => victim.letter(HOSTILE, ticket, bytes.word()),
            1 => victim.region.set(victim.layout.letter(HOSTILE, ticket), bytes.word()),
            2 if has_mailbox => {
                victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(ticket), bytes.word());
                victim.call(Call::Request(HOSTILE));
            }
            3 if has_mailbox => {
                let words = victim.messages.mailboxes.shape.len() as u64 / 8;
                victim.mailbox(HOSTILE).set(8 * bytes.below(words) as usize, bytes.word());
            }
            4 => {
                let slot = bytes.below(SHAPE.slots.into()) as u16;
                let (word, ended) = (bytes.word(), bytes.number(1));
                victim.answer(slot, word, ended);
            }
            5 => victim.messages.domain.arrivals.push_back(Arrival::Call(bytes.number(3))),
            6 => {
                let at = victim.layout.grant(HOSTILE);
                (0..4).for_each(|word| victim.region.set(at + 8 * word, bytes.number(8)));
            }
            7 => victim.region.set(victim.layout.barrier(bytes.below(64) as u32), bytes.number(8)),
            8 => victim.messages.domain.theirs[HOSTILE as usize].fill(bytes.number(1) as u8),
            9 => match victim.request(HOSTILE) {
                Ok(_) | Err(WireError::Busy { .. }) => {}
                Err(other) => panic!("{other}"),
            },
            10 if victim.messages.barrier_done().is_some() => victim.messages.begin_barrier(Name::Any),
            11 => heard.extend(victim.hear().0),
            12 if u32::from(victim.honest) < SHAPE.tickets => sent.push(victim.honest_word()),
            13 => victim.messages.domain.arrivals.push_back(Arrival::Overrun(None)),
            14 => victim.call(Call::RequestLanded(HOSTILE as u16, ticket as u8)),
            15 => victim.call(Call::ReplyLanded(bytes.below(SHAPE.slots.into()) as u16)),
            _ => {}
        }
    }
    heard.extend(victim.hear().0);
    heard.retain(|(from, _)| *from == HONEST);
    heard.sort();
    assert_eq!(heard, sent, "of the honest rank");
    victim.is_whole();
}
