//! A bounded queue of short messages with many senders and one receiver, built for latency.
//!
//! A message is a head of up to [`MAX_HEAD`] bytes and either up to [`MAX_INLINE`] bytes of payload in the slot
//! itself, or a block elsewhere named by index and length ([`blocks`](crate::blocks)). Flag and first 56 bytes share
//! one cache line, so that a short message costs the passage of one line.
//!
//! A slot is published by storing its flag word, which holds the number of the lap: a receiver knows a new message
//! from last lap's without ever writing to a slot. Only senders write slots; the receiver's index is its own, and
//! what it publishes of it moves once in a quarter of the ring.
//!
//! # Protocol
//! - inbox.1: `claimed` counts messages for which a sender has room, `tail` those that have a place: `tail <= claimed <=
//!   consumed + slots`. So a place, once taken, is free to be written.
//! - inbox.2: from taking a place (`tail`) to publishing it (`flag`), the slot is its sender's alone. A sender that dies in
//!   between leaves a hole: the receiver sees nothing more, but never half a message.
//! - inbox.3: from publishing until `consumed` has passed it, the slot is not written.
//! - inbox.4: claims are made in batches and kept by the process ([`Claims`]); together they never hold more than half of a
//!   queue that others may want.
//! - inbox.5: a queue whose senders hold credits for at most `slots` unread messages needs no claims ([`Inbox::send`]
//!   without [`Inbox::reserve`]): the credit is the claim.

use crate::eventcount::{Counted, EventCount};
use core::marker::PhantomData;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
#[cfg(gasworks_loom)]
use gasworks_sync::cell::UnsafeCell;
use gasworks_sync::{Mode, kill_point, ord, prefetch_for_write, racy};
use thiserror::Error;

/// The most bytes in a head.
pub const MAX_HEAD: usize = 88;
/// The most bytes of payload in a slot, whatever the length of the head.
pub const MAX_INLINE: usize = (WORDS - 1) * 8 - MAX_HEAD;
const WORDS: usize = 32;
/// Words of a head that share the flag's cache line.
const LINE: usize = 7;
/// Lap 0 is what zeroed memory says.
const FIRST_LAP: u32 = 1;
/// How often a sender tries to claim room while the number of claims changes.
const MAX_TRIES: u32 = 1 << 10;
/// How many slots ahead of the one it writes a sender asks for: about as many messages as leave while a line travels.
const AHEAD: usize = 8;
/// And how many when it asks once more: a receiver that has caught up looks at the next slot, and so takes its line back.
const AGAIN: usize = 2;

/// A place for one message. Zero bytes are an empty slot.
#[repr(C, align(256))]
#[derive(Debug)]
pub struct Slot {
    /// The flag, then the body.
    words: [AtomicU64; WORDS],
    /// Lets loom see an access that is not ordered with another: words are atomic, so it would not mind.
    #[cfg(gasworks_loom)]
    witness: UnsafeCell<()>,
}

impl Slot {
    /// An empty slot.
    pub fn new() -> Self {
        Self {
            words: core::array::from_fn(|_| AtomicU64::new(0)),
            #[cfg(gasworks_loom)]
            witness: UnsafeCell::new(()),
        }
    }

    /// The raw words, for tests that play a hostile peer.
    pub fn words(&self) -> &[AtomicU64] {
        &self.words
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// The senders' line and the receiver's line. Zero bytes are an empty queue.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Control {
    claimed: AtomicU64,
    tail: EventCount,
    apart: [AtomicU64; 14],
    consumed: AtomicU64,
    rest: [AtomicU64; 15],
}

impl Control {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            claimed: AtomicU64::new(0),
            tail: EventCount::new(),
            apart: core::array::from_fn(|_| AtomicU64::new(0)),
            consumed: AtomicU64::new(0),
            rest: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// No room: too many messages are claimed and not consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the queue is full")]
pub struct Full;

/// A slot, or what is counted beside the slots, holds what no well-behaved rank writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// The lap is neither this one nor the last.
    #[error("slot {slot} is of lap {found}, and the queue is in lap {expected}")]
    Lap {
        /// Which slot.
        slot: usize,
        /// What it says.
        found: u32,
        /// What it should say.
        expected: u32,
    },
    /// The lengths are larger than a slot.
    #[error(
        "slot {slot} claims a head of {head} and a payload of {inline} bytes; it holds {MAX_HEAD} and {MAX_INLINE}"
    )]
    Length {
        /// Which slot.
        slot: usize,
        /// The length of the head.
        head: usize,
        /// The length of the payload.
        inline: usize,
    },
    /// The counts are further apart than there are slots, or in another order.
    #[error(
        "of {slots} slots {claimed} are claimed, {placed} placed, {consumed} consumed, and {next} were taken"
    )]
    Counts {
        /// How many slots there are.
        slots: usize,
        /// For how many messages there is room.
        claimed: u64,
        /// How many have a place.
        placed: u64,
        /// How many the receiver says it has taken.
        consumed: u64,
        /// How many it has taken.
        next: u64,
    },
}

/// A payload outside the slot: which block of whom, and how much of it. Both come from a peer; who uses them checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the block.
    pub index: u32,
    /// The bytes used.
    pub len: u32,
}

impl Block {
    /// The bytes of its name, which travels where another payload would.
    const NAME: u8 = 8;

    /// The word that names it.
    #[inline]
    fn name(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.len)
    }

    #[inline]
    fn named(word: u64) -> Self {
        Self { index: (word >> 32) as u32, len: word as u32 }
    }
}

/// The payload of a message to send.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// The first `len` bytes of some words; they travel in the slot. At most [`MAX_INLINE`].
    Inline {
        /// Where the bytes are.
        words: &'a [AtomicU64],
        /// How many.
        len: usize,
    },
    /// Some bytes; they travel in the slot. At most [`MAX_INLINE`].
    Bytes(&'a [u8]),
    /// A block that has been filled.
    Block(Block),
}

impl Payload<'_> {
    /// No bytes.
    pub const NONE: Payload<'static> = Payload::Inline { words: &[], len: 0 };

    /// How many bytes travel in the slot; more than any slot has if they are not there.
    #[inline(always)]
    fn inline(&self) -> usize {
        match *self {
            Payload::Inline { words, len } if len.div_ceil(8) <= words.len() => len,
            Payload::Inline { .. } => usize::MAX,
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Block(_) => Block::NAME.into(),
        }
    }
}

/// A message as it was taken out: a private copy.
#[derive(Debug)]
pub struct Message {
    /// The number of who sent it, by its own account.
    pub from: u16,
    /// The payload, if it is not inline.
    pub block: Option<Block>,
    head_len: u8,
    inline_len: u8,
    head: [u64; MAX_HEAD / 8],
    inline: [AtomicU64; MAX_INLINE / 8],
}

impl Message {
    /// Room for a message.
    pub fn new() -> Self {
        let inline = core::array::from_fn(|_| AtomicU64::new(0));
        Self { from: 0, block: None, head_len: 0, inline_len: 0, head: [0; MAX_HEAD / 8], inline }
    }

    /// The head.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.head)[..self.head_len as usize]
    }

    /// The payload that was in the slot, as words and the number of bytes.
    #[inline]
    pub fn inline(&self) -> (&[AtomicU64], usize) {
        let len = self.inline_len as usize;
        (&self.inline[..words_of(len)], len)
    }
}

impl Default for Message {
    fn default() -> Self {
        Self::new()
    }
}

/// A message that lies in its flag's line, taken out: a private copy.
#[derive(Debug)]
pub struct Line {
    /// The number of who sent it, by its own account.
    pub from: u16,
    head_len: u8,
    payload_len: u8,
    /// Whether the payload lies in a block: its name is here in its place.
    pub names_block: bool,
    words: [u64; LINE],
}

impl Line {
    /// The block that it names, if it [does](Self::names_block); one that there is not where its name is missing.
    #[inline]
    pub fn block(&self) -> Block {
        Block::named(self.words.get(words_of(self.head_len.into())).copied().unwrap_or(u64::MAX))
    }

    /// The head, and the payload.
    #[inline(always)]
    pub fn parts(&mut self) -> (&[u8], &mut [u8]) {
        let head_len = usize::from(self.head_len);
        let (head, payload) = self.words.split_at_mut(words_of(head_len));
        let (head, payload): (&[u8], &mut [u8]) =
            (bytemuck::cast_slice(head), bytemuck::cast_slice_mut(payload));
        (&head[..head_len], &mut payload[..usize::from(self.payload_len)])
    }
}

/// How many words so many bytes take, which are not nearly as many as there are numbers.
#[inline(always)]
const fn words_of(bytes: usize) -> usize {
    (bytes + 7) >> 3
}

#[inline]
fn copy_words(target: &[AtomicU64], source: &[AtomicU64]) {
    for (target, source) in target.iter().zip(source) {
        target.store(source.load(Relaxed), Relaxed);
    }
}

#[inline(always)]
fn copy_out(target: &mut [u64], source: &[AtomicU64]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = source.load(Relaxed);
    }
}

/// The flag word: lap, sender, lengths, and whether a block follows the head.
#[derive(Clone, Copy)]
struct Flag {
    lap: u32,
    from: u16,
    head: u8,
    inline: u8,
    block: bool,
}

const BLOCK_BIT: u64 = 0x80 << 8;

impl Flag {
    #[inline]
    fn encode(self) -> u64 {
        let block = if self.block { BLOCK_BIT } else { 0 };
        u64::from(self.lap) << 32
            | u64::from(self.from) << 16
            | u64::from(self.head) << 8
            | block
            | u64::from(self.inline)
    }

    #[inline]
    fn decode(word: u64) -> Self {
        Self {
            lap: (word >> 32) as u32,
            from: (word >> 16) as u16,
            head: (word >> 8) as u8 & 0x7f,
            inline: word as u8,
            block: word & BLOCK_BIT != 0,
        }
    }
}

/// The claims that one process holds for one queue and has not used: with them, most reservations touch nothing that
/// is shared. In `Par` any thread of the process may use them, in `Seq` one does.
#[derive(Debug)]
pub struct Claims<M: Mode> {
    left: AtomicU32,
    batch: u32,
    mode: PhantomData<M::Lock<()>>,
}

impl<M: Mode> Claims<M> {
    /// None yet; they are claimed `batch` at a time.
    pub fn new(batch: u32) -> Self {
        Self { left: AtomicU32::new(0), batch, mode: PhantomData }
    }

    /// Takes one, of those at hand or from the queue. One that is not used after all goes back to the queue
    /// ([`Inbox::cancel`]), or the processes together could come to hold more than its half.
    ///
    /// # Errors
    /// There is none now.
    #[inline]
    pub fn take(&self, inbox: Inbox<'_>) -> Result<(), Full> {
        // Acquire: a slot that the claiming thread saw free is free for the thread that uses the claim.
        let order = ord!("claims.take", Acquire);
        let at_hand = if M::PARALLEL {
            self.left.fetch_update(order, Relaxed, |left| left.checked_sub(1)).is_ok()
        } else {
            let left = self.left.load(Relaxed);
            self.left.store(left.saturating_sub(1), Relaxed);
            left > 0
        };
        if !at_hand {
            let more = inbox.reserve(self.batch)? - 1;
            self.keep(more);
        }
        Ok(())
    }

    #[inline]
    fn keep(&self, count: u32) {
        if !M::PARALLEL {
            self.left.store(self.left.load(Relaxed) + count, Relaxed);
        } else if count > 0 {
            // Release: see `take`.
            self.left.fetch_add(count, ord!("claims.keep", Release));
        }
        kill_point!("claims.keep.kept");
    }
}

/// A view of a queue: the senders' methods, and the receiver's [`take`](Self::take) with its private cursor.
#[derive(Clone, Copy, Debug)]
pub struct Inbox<'a> {
    control: &'a Control,
    slots: &'a [Slot],
}

/// The receiver's place in a queue, which nobody else knows.
#[derive(Debug)]
pub struct Cursor {
    /// The number of the next message, and where that is: its slot, and which time round.
    next: u64,
    at: u32,
    lap: u32,
    /// How many were passed since the senders were told.
    unpublished: u32,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { next: 0, at: 0, lap: FIRST_LAP, unpublished: 0 }
    }
}

impl Cursor {
    /// The number of the next message.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Where the next message will be, and what stands in its flag until then: for [`Inbox::is_empty`].
    #[inline]
    pub fn mark(&self) -> u64 {
        u64::from(self.lap.wrapping_sub(1)) << 32 | u64::from(self.at)
    }
}

impl<'a> Inbox<'a> {
    /// A view; `None` unless the number of slots is a power of two that a lap number can count.
    pub fn new(control: &'a Control, slots: &'a [Slot]) -> Option<Self> {
        let fits = slots.len().is_power_of_two() && slots.len() <= 1 << 20;
        fits.then_some(Self { control, slots })
    }

    /// The indices that senders share (claimed, placed) and the receiver's (consumed), for tests that play a hostile
    /// peer.
    pub fn indices(&self) -> [&'a AtomicU64; 3] {
        [&self.control.claimed, self.control.tail.word(), &self.control.consumed]
    }

    /// The slots, for tests that play a hostile peer.
    pub fn slots(&self) -> &'a [Slot] {
        self.slots
    }

    #[inline]
    fn place(&self, index: u64) -> (usize, u32) {
        let slots = self.slots.len() as u64;
        ((index & (slots - 1)) as usize, ((index >> slots.trailing_zeros()) as u32).wrapping_add(FIRST_LAP))
    }

    /// Claims room for a message, to be [sent](Self::send) or [cancelled](Self::cancel): for `wanted` of them where
    /// that leaves half of the queue to others, else for one. Returns for how many.
    ///
    /// # Errors
    /// There is none now.
    #[inline]
    pub fn reserve(&self, wanted: u32) -> Result<u32, Full> {
        let slots = self.slots.len() as u64;
        let mut claimed = self.control.claimed.load(Relaxed);
        // Others who claim as well may be faster often, but not always; and who writes nonsense holds nobody here.
        for _ in 0..MAX_TRIES {
            // Acquire: the receiver's reading of the slots that it has passed is over before we write them. The line
            // changes once in a quarter of the ring, so this is mostly a hit.
            let consumed = self.control.consumed.load(ord!("inbox.room", Acquire));
            let used = claimed.wrapping_sub(consumed);
            if used >= slots {
                // A number of claims from before the receiver moved on looks like a huge one: read it again once.
                let again = self.control.claimed.load(Relaxed);
                if again == claimed {
                    return Err(Full);
                }
                claimed = again;
                continue;
            }
            let granted = if used + u64::from(wanted) <= slots / 2 { wanted.max(1) } else { 1 };
            let next = claimed.wrapping_add(granted.into());
            match self.control.claimed.compare_exchange_weak(claimed, next, Relaxed, Relaxed) {
                Ok(_) => {
                    kill_point!("inbox.reserve.claimed");
                    return Ok(granted);
                }
                Err(now) => claimed = now,
            }
        }
        Err(Full)
    }

    /// How many messages the receiver has taken, as far as it has published that, for a queue with a single sender, which counts what it sends: the slots of these are its again.
    #[inline]
    pub fn taken_of_one_sender(&self) -> u64 {
        // Acquire: as in `reserve`.
        self.control.consumed.load(ord!("inbox.taken_of_one", Acquire))
    }

    /// Gives claims back.
    #[inline]
    pub fn cancel(&self, count: u32) {
        self.control.claimed.fetch_sub(count.into(), Relaxed);
    }

    /// Sends a message for which there is room: a claim (inbox.1), or a credit (inbox.5). Whether the receiver may be asleep: then
    /// its bell must ring.
    ///
    /// # Panics
    /// If the head or the payload is longer than a slot admits, or than the words that it is in; nothing was sent then.
    #[inline]
    #[must_use = "the receiver may be asleep"]
    pub fn send(&self, from: u16, head: &[u8], payload: Payload<'_>) -> bool {
        self.send_words(from, [], head, payload)
    }

    /// As [`send`](Self::send), with a head of some words and some bytes.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    #[inline(always)]
    #[must_use = "the receiver may be asleep"]
    pub fn send_words<const N: usize>(
        &self,
        from: u16,
        words: [u64; N],
        rest: &[u8],
        payload: Payload<'_>,
    ) -> bool {
        let head = 8 * N + rest.len();
        assert!(head <= MAX_HEAD, "a head of {head} bytes");
        // Before a place is taken: one that nobody fills stops all behind it.
        let inline = payload.inline();
        assert!(inline <= MAX_INLINE, "{inline} bytes in a slot");
        // The place need not be the one whose room was checked by this sender: of the claims behind this and all
        // earlier places the latest saw the slot free, and counting makes that known from place to place.
        let Counted { index, wanted } = self.control.tail.count();
        kill_point!("inbox.send.placed");
        let (at, lap) = self.place(index);
        // Counting waits until the line of the message before is ours again, unless it was asked for in time.
        for ahead in [AHEAD, AGAIN] {
            prefetch_for_write(&self.slots[(at + ahead) & (self.slots.len() - 1)]);
        }
        let slot = &self.slots[at];
        #[cfg(gasworks_loom)]
        slot.witness.with_mut(|_| ());
        let mut flag = Flag { lap, from, head: head as u8, inline: 0, block: false };
        for (place, word) in slot.words[1..].iter().zip(words) {
            place.store(word.to_le(), Relaxed);
        }
        racy::store_words(&slot.words[1 + N..], rest);
        let after = 1 + words_of(head);
        match payload {
            Payload::Inline { words, len } => {
                flag.inline = len as u8;
                copy_words(&slot.words[after..], &words[..words_of(len)]);
            }
            Payload::Bytes(bytes) => {
                flag.inline = bytes.len() as u8;
                racy::store_words(&slot.words[after..], bytes);
            }
            Payload::Block(block) => {
                (flag.inline, flag.block) = (Block::NAME, true);
                slot.words[after].store(block.name(), Relaxed);
            }
        }
        kill_point!("inbox.send.filled");
        // Release: head, payload and the block's contents are there for whoever sees the flag.
        slot.words[0].store(flag.encode(), ord!("inbox.publish", Release));
        kill_point!("inbox.send.published");
        if wanted {
            self.control.tail.disarm();
        }
        wanted
    }

    /// Whether the message at a cursor's [`mark`](Cursor::mark) has not come, by a look at one word. An old mark, of a message that was
    /// taken long ago, may say that it has come.
    ///
    /// # Safety
    /// The mark is of a cursor by which this queue alone was read.
    #[inline]
    pub unsafe fn is_empty(&self, mark: u64) -> bool {
        let at = (mark & u64::from(u32::MAX)) as usize;
        debug_assert!(at < self.slots.len(), "place {at} of {}", self.slots.len());
        // SAFETY: `pass` keeps the place of this queue's cursor below the number of slots.
        let flag = unsafe { self.slots.get_unchecked(at) }.words[0].load(Relaxed);
        (flag ^ mark) >> 32 == 0
    }

    /// Whether a message, or something damaged, waits at `cursor`: what the receiver itself asks before it takes.
    #[inline]
    pub fn waits(&self, cursor: &Cursor) -> bool {
        Flag::decode(self.slots[cursor.at as usize].words[0].load(Relaxed)).lap != cursor.lap.wrapping_sub(1)
    }

    /// Asks senders to wake the receiver; whether it may sleep, for no message is here or on its way.
    #[cold]
    pub fn arm(&self, cursor: &Cursor) -> bool {
        self.control.tail.arm() == cursor.next
    }

    /// Whether what is counted beside the slots can be: a queue where it cannot delivers nothing any more, and nobody would
    /// know why. With `claims` senders claim room in it (inbox.1). Who calls is as for [`take`](Self::take).
    ///
    /// # Errors
    /// It cannot.
    #[cold]
    pub fn check(&self, cursor: &Cursor, claims: bool) -> Result<(), Damage> {
        // In this order: what was taken was placed before, which its flag has told, and what is placed was claimed before.
        let placed = self.control.tail.events();
        let claimed = self.control.claimed.load(Relaxed);
        let consumed = self.control.consumed.load(Relaxed);
        let slots = self.slots.len();
        let fits = |count: u64, from: u64| count.wrapping_sub(from) <= slots as u64;
        let told = cursor.next - u64::from(cursor.unpublished);
        let claims_fit = !claims || (fits(claimed, placed) && fits(claimed, told));
        let sound = fits(placed, cursor.next) && claims_fit && consumed == told;
        let damage = Damage::Counts { slots, claimed, placed, consumed, next: cursor.next };
        if sound { Ok(()) } else { Err(damage) }
    }

    /// The slot at `cursor` and its flag; what the sender stored before the flag is there.
    #[inline(always)]
    fn look(&self, cursor: &Cursor) -> (&'a Slot, Flag) {
        let slot = &self.slots[cursor.at as usize];
        (slot, Flag::decode(slot.words[0].load(ord!("inbox.arrive", Acquire))))
    }

    /// Takes the next message if there is one, its sender is below `senders`, and all of it lies in its flag's line, or all but a payload
    /// in a block. Anything else, a damaged slot too, is left to [`take`](Self::take). Who calls is as there.
    #[inline(always)]
    pub fn take_line(&self, cursor: &mut Cursor, senders: usize) -> Option<Line> {
        let (slot, flag) = self.look(cursor);
        let words = words_of(flag.head.into()) + words_of(flag.inline.into());
        let fits = flag.lap == cursor.lap && words <= LINE;
        if !fits || usize::from(flag.from) >= senders {
            return None;
        }
        #[cfg(gasworks_loom)]
        slot.witness.with(|_| ());
        let words = core::array::from_fn(|at| slot.words[1 + at].load(Relaxed));
        let Flag { from, head, inline, block, .. } = flag;
        let line = Line { from, head_len: head, payload_len: inline, names_block: block, words };
        self.pass(cursor);
        Some(line)
    }

    /// Takes the next message, if there is one. One thread of one process at a time, always with the same cursor.
    ///
    /// # Errors
    /// The slot is damaged. It is passed over.
    #[inline(always)]
    pub fn take(&self, cursor: &mut Cursor, message: &mut Message) -> Result<bool, Damage> {
        let (at, lap) = (cursor.at as usize, cursor.lap);
        let (slot, flag) = self.look(cursor);
        if flag.lap != lap {
            if flag.lap == lap.wrapping_sub(1) {
                return Ok(false);
            }
            self.pass(cursor);
            return Err(Damage::Lap { slot: at, found: flag.lap, expected: lap });
        }
        let (head, inline) = (flag.head as usize, flag.inline as usize);
        if head > MAX_HEAD || inline > MAX_INLINE {
            self.pass(cursor);
            return Err(Damage::Length { slot: at, head, inline });
        }
        #[cfg(gasworks_loom)]
        slot.witness.with(|_| ());
        message.from = flag.from;
        message.head_len = flag.head;
        message.inline_len = if flag.block { 0 } else { flag.inline };
        // What shares the flag's line is here, needed or not; more is fetched only for a long head.
        copy_out(&mut message.head[..LINE], &slot.words[1..=LINE]);
        if head > 8 * LINE {
            copy_out(&mut message.head[LINE..], &slot.words[1 + LINE..]);
        }
        let after = 1 + words_of(head);
        message.block = None;
        if flag.block {
            let block = slot.words[after].load(Relaxed);
            message.block = Some(Block::named(block));
        } else if inline > 0 {
            copy_words(message.inline().0, &slot.words[after..]);
        }
        self.pass(cursor);
        Ok(true)
    }

    /// How many messages the receiver has taken, as far as it has published that. A number, and no more: who uses the room of these asks
    /// [`reserve`](Self::reserve).
    pub fn consumed(&self) -> u64 {
        self.control.consumed.load(Relaxed)
    }

    /// Publishes how many messages were taken, where more were than the senders know of. For a receiver that has found no more, and
    /// whose senders want to know when a message is taken.
    pub fn publish(&self, cursor: &mut Cursor) {
        if cursor.unpublished > 0 {
            self.publish_consumed(cursor);
        }
    }

    #[inline]
    fn publish_consumed(&self, cursor: &mut Cursor) {
        // Release: our reading of these slots is over before a sender writes them.
        self.control.consumed.store(cursor.next, ord!("inbox.consumed", Release));
        kill_point!("inbox.take.consumed");
        cursor.unpublished = 0;
    }

    /// Passes a slot, and publishes that once in a quarter of the ring.
    #[inline]
    fn pass(&self, cursor: &mut Cursor) {
        let slots = self.slots.len() as u32;
        (cursor.next, cursor.at) = (cursor.next + 1, cursor.at + 1);
        if cursor.at == slots {
            (cursor.at, cursor.lap) = (0, cursor.lap.wrapping_add(1));
        }
        cursor.unpublished += 1;
        if cursor.unpublished * 4 >= slots {
            self.publish_consumed(cursor);
        }
    }
}
