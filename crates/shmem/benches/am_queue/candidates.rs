//! The candidates, each as a sender's and a receiver's end over one shared layout.
//!
//! All publish with one release store and then look whether the receiver sleeps, behind the fence which that needs.
//!
//! # Invariants
//! - candidates.1: the room of the layouts is a mapping that is never unmapped, and is touched through atomics only.

use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Control, Cursor, Inbox, Message, Payload, Slot};
use gasworks_shmem::view::{self, Shared};
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use gasworks_sync::{fence, racy};
use std::hint::black_box;

/// One rank's end of a candidate.
pub trait Queue {
    /// Its name in the table.
    const NAME: &'static str;
    /// Sends a head to a rank; false if there is no room.
    fn send(&mut self, to: usize, head: &[u8]) -> bool;
    /// Hands over what has arrived, up to a burst; returns how many.
    fn poll(&mut self, sink: &mut impl FnMut(usize, &[u8])) -> usize;
}

const BURST: usize = 16;

/// Cuts structures from shared memory.
pub struct Room {
    bytes: VolatileSlice<'static>,
    at: usize,
}

impl Room {
    pub fn new(bytes: VolatileSlice<'static>) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn take<T: Shared>(&mut self, count: usize) -> &'static [T] {
        let start = self.at.next_multiple_of(4096);
        self.at = start + count * size_of::<T>();
        view::slice(self.bytes, start, count).expect("enough shared memory")
    }
}

fn ring(bell: &Doorbell) {
    // Nobody sleeps here; what is measured is the look, which must not come before the message can be seen.
    gasworks_sync::fence(SeqCst);
    black_box(bell.ring());
}

// ---- One inbox for all senders: the library's.

/// The library's queue; claims are taken `HOARD` at a time. A sender learns from its place whether the receiver sleeps;
/// with `FENCE` it looks at a bell besides, as a queue without that bit must.
pub struct Inboxes<'a, const HOARD: u32, const FENCE: bool> {
    me: usize,
    queues: Vec<Inbox<'a>>,
    bells: &'a [Doorbell],
    claims: Vec<u32>,
    cursor: Cursor,
    message: Message,
}

/// Where its parts lie.
pub struct InboxLayout {
    controls: &'static [Control],
    slots: &'static [Slot],
    bells: &'static [Doorbell],
}

const SLOTS: usize = 512;

impl Inboxes<'static, 1, true> {
    pub fn lay_out(room: &mut Room, ranks: usize) -> InboxLayout {
        let (controls, bells) = (room.take(ranks), room.take(ranks));
        InboxLayout { controls, bells, slots: room.take(ranks * SLOTS) }
    }
}

impl InboxLayout {
    pub fn open<const HOARD: u32, const FENCE: bool>(self, me: usize) -> Inboxes<'static, HOARD, FENCE> {
        let view = |(control, slots)| Inbox::new(control, slots).expect("a power of two");
        let queues: Vec<_> = self.controls.iter().zip(self.slots.chunks(SLOTS)).map(view).collect();
        let claims = vec![0; queues.len()];
        Inboxes { me, queues, bells: self.bells, claims, cursor: Cursor::default(), message: Message::new() }
    }
}

impl<const HOARD: u32, const FENCE: bool> Queue for Inboxes<'_, HOARD, FENCE> {
    const NAME: &'static str = match (HOARD, FENCE) {
        (1, _) => "1 one inbox, fence",
        (_, true) => "1a claims in batches, fence",
        (_, false) => "1b claims in batches",
    };

    #[inline]
    fn send(&mut self, to: usize, head: &[u8]) -> bool {
        let queue = self.queues[to];
        if self.claims[to] == 0 {
            let Ok(granted) = queue.reserve(HOARD) else { return false };
            self.claims[to] = granted;
        }
        self.claims[to] -= 1;
        black_box(queue.send(self.me as u16, head, Payload::NONE));
        if FENCE {
            ring(&self.bells[to]);
        }
        true
    }

    #[inline]
    fn poll(&mut self, sink: &mut impl FnMut(usize, &[u8])) -> usize {
        let mut taken = 0;
        while taken < BURST
            && self.queues[self.me].take(&mut self.cursor, &mut self.message).expect("no damage")
        {
            sink(self.message.from.into(), self.message.head());
            taken += 1;
        }
        taken
    }
}

// ---- Slots of a pair, shared by the next two.

/// Writes a head and publishes it under the number of the message.
#[inline]
fn put(words: &[AtomicU64], number: u64, head: &[u8]) {
    racy::store_words(&words[1..], head);
    words[0].store((number + 1) << 8 | head.len() as u64, Release);
}

/// Reads message `number` if it is there.
#[inline]
fn get<'b>(words: &[AtomicU64], number: u64, buffer: &'b mut [u8; 96]) -> Option<&'b [u8]> {
    let flag = words[0].load(Acquire);
    if flag >> 8 != number + 1 {
        return None;
    }
    let head = &mut buffer[..(flag as u8 as usize).min(96)];
    racy::load_words(&words[1..], head);
    Some(head)
}

/// A number on a line of its own.
#[repr(C, align(128))]
pub struct Index(AtomicU64);
/// Which senders the receiver must look at; up to 128.
#[repr(C, align(128))]
pub struct Mask([AtomicU64; 2]);
/// A slot of one line.
#[repr(C, align(64))]
pub struct Line([AtomicU64; 8]);
// SAFETY: view.1: repr(C), one atomic; the padding up to 128 bytes is never read.
unsafe impl Shared for Index {}
// SAFETY: view.1: repr(C), two atomics; the padding up to 128 bytes is never read.
unsafe impl Shared for Mask {}
// SAFETY: view.1: repr(C), eight atomics of 8 bytes, which are all of its 64.
unsafe impl Shared for Line {}

impl Mask {
    /// After publishing: makes sure that the receiver will look. The caller's fence comes before.
    #[inline]
    fn raise(&self, from: usize) {
        if self.0[from / 64].load(Relaxed) & 1 << (from % 64) == 0 {
            self.0[from / 64].fetch_or(1 << (from % 64), Release);
        }
    }

    #[inline]
    fn lower(&self, from: usize) {
        self.0[from / 64].fetch_and(!(1 << (from % 64)), SeqCst);
        fence(SeqCst);
    }
}

/// What a receiver knows of one sender.
#[derive(Clone, Default)]
struct Peer {
    next: u64,
    published: u64,
    idle: u32,
}

/// After so many looks for nothing a sender's bit is cleared.
const PATIENCE: u32 = 1000;

/// Looks at the senders whose bits are up; `slot` gives the words of a sender's next message.
#[inline]
fn poll_pairs<'a>(
    mask: &Mask,
    peers: &mut [Peer],
    period: u64,
    consumed: impl Fn(usize) -> &'a AtomicU64,
    slot: impl Fn(usize, u64) -> &'a [AtomicU64],
    sink: &mut impl FnMut(usize, &[u8]),
) -> usize {
    let mut taken = 0;
    let mut buffer = [0; 96];
    for half in 0..2 {
        let mut bits = mask.0[half].load(Acquire);
        while bits != 0 {
            let from = half * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let peer = &mut peers[from];
            let before = taken;
            while taken < BURST {
                let Some(head) = get(slot(from, peer.next), peer.next, &mut buffer) else { break };
                sink(from, head);
                taken += 1;
                peer.next += 1;
                if peer.next - peer.published >= period {
                    consumed(from).store(peer.next, Release);
                    peer.published = peer.next;
                }
            }
            if taken > before {
                peer.idle = 0;
                continue;
            }
            peer.idle += 1;
            if peer.idle >= PATIENCE {
                peer.idle = 0;
                mask.lower(from);
                if slot(from, peer.next)[0].load(Acquire) >> 8 == peer.next + 1 {
                    mask.raise(from);
                }
            }
        }
    }
    taken
}

// ---- A ring for each pair, with a ready mask.

const DEPTH: u64 = 64;

/// A ring for each pair of ranks.
pub struct Pairs<'a> {
    me: usize,
    ranks: usize,
    slots: &'a [Slot],
    consumed: &'a [Index],
    masks: &'a [Mask],
    bells: &'a [Doorbell],
    sent: Vec<u64>,
    peers: Vec<Peer>,
}

impl Pairs<'static> {
    /// Only the two ranks that talk get rings; the others are silent.
    pub fn lay_out(room: &mut Room, ranks: usize) -> Self {
        let slots = room.take(2 * ranks * DEPTH as usize);
        let (consumed, masks, bells) = (room.take(2 * ranks), room.take(2), room.take(2));
        Self {
            me: 0,
            ranks,
            slots,
            consumed,
            masks,
            bells,
            sent: vec![0; ranks],
            peers: vec![Peer::default(); ranks],
        }
    }

    pub fn open(self, me: usize) -> Self {
        Self { me, ..self }
    }
}

impl Queue for Pairs<'_> {
    const NAME: &'static str = "2 ring per pair, ready mask";

    #[inline]
    fn send(&mut self, to: usize, head: &[u8]) -> bool {
        let pair = to * self.ranks + self.me;
        let number = self.sent[to];
        if number - self.consumed[pair].0.load(Acquire) >= DEPTH {
            return false;
        }
        put(self.slots[pair * DEPTH as usize + (number % DEPTH) as usize].words(), number, head);
        self.sent[to] += 1;
        ring(&self.bells[to]); // its fence serves the mask too
        self.masks[to].raise(self.me);
        true
    }

    #[inline]
    fn poll(&mut self, sink: &mut impl FnMut(usize, &[u8])) -> usize {
        let base = self.me * self.ranks;
        let (slots, consumed) = (self.slots, self.consumed);
        let slot = |from: usize, number: u64| {
            slots[(base + from) * DEPTH as usize + (number % DEPTH) as usize].words()
        };
        poll_pairs(
            &self.masks[self.me],
            &mut self.peers,
            DEPTH / 4,
            |from| &consumed[base + from].0,
            slot,
            sink,
        )
    }
}

// ---- Small slots for each pair, and a queue for the rest.

const FEW: u64 = 4;
const SHORT: usize = 56;

/// A few one-line slots for each pair, and the library's inbox for what does not fit.
pub struct Slotted<'a> {
    me: usize,
    ranks: usize,
    lines: &'a [Line],
    consumed: &'a [Index],
    masks: &'a [Mask],
    sent: Vec<u64>,
    peers: Vec<Peer>,
    rest: Inboxes<'a, 1, true>,
}

/// Where its parts lie.
pub struct SlottedLayout {
    ranks: usize,
    lines: &'static [Line],
    consumed: &'static [Index],
    masks: &'static [Mask],
    rest: InboxLayout,
}

impl Slotted<'static> {
    pub fn lay_out(room: &mut Room, ranks: usize) -> SlottedLayout {
        let lines = room.take(2 * ranks * FEW as usize);
        let (consumed, masks) = (room.take(2 * ranks), room.take(2));
        SlottedLayout { ranks, lines, consumed, masks, rest: Inboxes::lay_out(room, 2) }
    }
}

impl SlottedLayout {
    pub fn open(self, me: usize) -> Slotted<'static> {
        let Self { ranks, lines, consumed, masks, rest } = self;
        let (sent, peers) = (vec![0; ranks], vec![Peer::default(); ranks]);
        Slotted { me, ranks, lines, consumed, masks, sent, peers, rest: rest.open(me) }
    }
}

impl Queue for Slotted<'_> {
    const NAME: &'static str = "3 slots per pair, queue for the rest";

    #[inline]
    fn send(&mut self, to: usize, head: &[u8]) -> bool {
        let pair = to * self.ranks + self.me;
        let number = self.sent[to];
        if head.len() > SHORT || number - self.consumed[pair].0.load(Acquire) >= FEW {
            return self.rest.send(to, head);
        }
        put(&self.lines[pair * FEW as usize + (number % FEW) as usize].0, number, head);
        self.sent[to] += 1;
        ring(&self.rest.bells[to]);
        self.masks[to].raise(self.me);
        true
    }

    #[inline]
    fn poll(&mut self, sink: &mut impl FnMut(usize, &[u8])) -> usize {
        let base = self.me * self.ranks;
        let (lines, consumed) = (self.lines, self.consumed);
        let slot =
            |from: usize, number: u64| &lines[(base + from) * FEW as usize + (number % FEW) as usize].0[..];
        let mask = &self.masks[self.me];
        poll_pairs(mask, &mut self.peers, (FEW / 4).max(1), |from| &consumed[base + from].0, slot, sink)
            + self.rest.poll(sink)
    }
}
