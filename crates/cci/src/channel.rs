//! The memory of a connection: for each direction a ring that only its two parties map.
//!
//! Each party makes a *half*: the ring in which it receives, and the blocks from which it sends what does not fit a slot of the ring. It passes the half's file to the peer, which maps it,
//! writes messages into the ring, reads blocks, and frees those that messages came in. Blocks of RMA fragments are freed by who has filled them, when they were acknowledged.
//!
//! A half is one page, and 64 KiB behind it for each block, of which no page takes memory before it is used.
//!
//! Everything in a half may be written by the peer: what is read there is copied once, checked, then used.
//!
//! # Invariants
//! - channel.1: the places of a half lie in its mapping, which is there as long as the half, and stays where it is when the half is moved.

use crate::header::{HEADER_LEN, Header, HeaderType};
use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::eventcount::EventCount;
use gasworks_shmem::flag::Flag;
use gasworks_shmem::inbox::{self, Block, Control, Cursor, Damage, Inbox, Line, Slot};
use gasworks_shmem::view::{self, Place, Shared};
use gasworks_sync::atomic::AtomicU32;
use gasworks_sync::{VolatileSlice, kill_point};
use std::os::fd::{AsFd, OwnedFd};
use thiserror::Error;

/// Messages that a ring holds.
pub const SLOTS: usize = 8;
/// Blocks of a half.
pub const BLOCKS: u32 = 8;
/// Bytes of a block, and of the longest message.
pub const MAX_SEND: usize = 64 << 10;
/// The longest payload that travels in a slot.
pub const MAX_INLINE: usize = 128;

/// Where in a half are, behind the ring's control words: the blocks' flags, the word by which its maker says that it has closed the connection, the count of its acknowledgements, and the
/// slots; and where the blocks begin.
const FLAGS: usize = size_of::<Control>();
const CLOSED: usize = FLAGS + 64;
const ACKNOWLEDGED: usize = FLAGS + 128;
const RING: usize = FLAGS.next_multiple_of(256) + 256;
const PAGE: usize = 4096;
const LEN: usize = PAGE + BLOCKS as usize * MAX_SEND;
const _: () = assert!(RING + SLOTS * size_of::<Slot>() <= PAGE && FLAGS + 4 * BLOCKS as usize <= CLOSED);

/// Why a peer's half cannot be used.
#[derive(Debug, Error)]
pub enum HalfError {
    /// Its size can change, or is another one: a peer could end this process by cutting the file.
    #[error("the peer's memory is no file of {LEN} bytes whose size is fixed")]
    Shape,
    /// The system refuses.
    #[error(transparent)]
    System(#[from] gasworks_os::OsError),
}

/// One party's memory.
#[derive(Debug)]
pub struct Half {
    control: Place<Control>,
    slots: Place<Slot>,
    flags: Place<AtomicU32>,
    closed: Place<Flag>,
    acknowledged: Place<EventCount>,
    mapping: Mapping,
}

impl Half {
    /// Makes this party's half; and its file, for the peer.
    ///
    /// # Errors
    /// The system has no memory or no descriptor left.
    pub fn create() -> Result<(Self, MemFd), HalfError> {
        let file = memfd::create("gasworks-cci", LEN)?;
        Ok((Self::of(file.map()?)?, file))
    }

    /// Maps the half that a peer has passed.
    ///
    /// # Errors
    /// [`HalfError`].
    pub fn map(file: &OwnedFd) -> Result<Self, HalfError> {
        let is_right = memfd::is_sealed(file.as_fd()) && memfd::size_of_file(file.as_fd())? == LEN as u64;
        match is_right {
            true => Self::of(memfd::map(file.as_fd(), LEN)?),
            false => Err(HalfError::Shape),
        }
    }

    fn of(mapping: Mapping) -> Result<Self, HalfError> {
        fn place<T: Shared>(mapping: &Mapping, at: usize, count: usize) -> Result<Place<T>, HalfError> {
            view::slice(mapping.bytes(), at, count).map(Place::of).ok_or(HalfError::Shape)
        }
        Ok(Self {
            control: place(&mapping, 0, 1)?,
            slots: place(&mapping, RING, SLOTS)?,
            flags: place(&mapping, FLAGS, BLOCKS as usize)?,
            closed: place(&mapping, CLOSED, 1)?,
            acknowledged: place(&mapping, ACKNOWLEDGED, 1)?,
            mapping,
        })
    }

    #[inline]
    fn inbox(&self) -> Option<Inbox<'_>> {
        // SAFETY: channel.1: the ring's words lie in the mapping, which is borrowed with this half.
        let (control, slots) = unsafe { (self.control.get(), self.slots.get()) };
        Inbox::new(control.first()?, slots.first_chunk::<SLOTS>()?)
    }

    #[inline]
    fn blocks(&self) -> Blocks<'_> {
        // SAFETY: channel.1: the flags lie in the mapping, which is borrowed with this half.
        Blocks::new(unsafe { self.flags.get() })
    }

    #[inline]
    fn closed(&self) -> Option<&Flag> {
        // SAFETY: channel.1: the word lies in the mapping, which is borrowed with this half.
        unsafe { self.closed.get() }.first()
    }

    #[inline]
    fn acknowledged(&self) -> Option<&EventCount> {
        // SAFETY: channel.1: the count lies in the mapping, which is borrowed with this half.
        unsafe { self.acknowledged.get() }.first()
    }

    /// The first bytes of a block; `None` if there is no such block, or none so long.
    fn block(&self, Block { index, len }: Block) -> Option<VolatileSlice<'_>> {
        let fits = index < BLOCKS && len as usize <= MAX_SEND;
        fits.then(|| self.mapping.bytes().slice(PAGE + index as usize * MAX_SEND, len as usize))?
    }
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The peer has not taken what was sent before.
    #[error("the peer's ring, or this side's send buffer, is full")]
    Full,
    /// The message is longer than any.
    #[error("a message of {len} bytes; the longest has {MAX_SEND}")]
    TooLong {
        /// How long it is.
        len: usize,
    },
}

/// What the peer has done wrong with the memory that it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PeerError {
    /// A slot of the ring.
    #[error(transparent)]
    Ring(#[from] Damage),
    /// What lies in a slot is no message.
    #[error("a slot of the ring holds no header, or a block that there is not")]
    Content,
}

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number among those of this direction, from 0.
    pub number: u64,
    /// Whether the peer has asked to be told of it.
    pub wakes: bool,
}

/// Room for what is taken out of a ring: one for all rings that a thread receives from.
#[derive(Debug, Default)]
pub struct Scratch {
    line: Option<Line>,
    message: inbox::Message,
    bytes: [u64; MAX_INLINE / 8],
}

/// The payload of a message that has come.
#[derive(Debug)]
pub enum Payload<'a> {
    /// It lay in the slot, and this is a copy.
    Copy(&'a [u8]),
    /// It lies in a block of the peer's, which may change it meanwhile.
    Block {
        /// The number of the block.
        index: u32,
        /// Its bytes.
        bytes: VolatileSlice<'a>,
    },
    /// It lies in a file of the peer's: no ring has such.
    File {
        /// Where, in cache lines.
        offset: u16,
        /// How many bytes it has.
        len: usize,
    },
}

/// The memory of a connection: what one party sends and receives by.
#[derive(Debug)]
pub struct Channel {
    own: Half,
    peer: Half,
    cursor: Cursor,
    /// How many messages were sent, and how many of them the peer is known to have taken.
    sent: u64,
    taken: u64,
    /// How many of the peer's it was last told to be taken, and told so by the count that it can look at.
    told: u64,
    counted: u64,
}

impl Channel {
    /// The connection's memory, of the halves of both.
    pub fn new(own: Half, peer: Half) -> Self {
        Self { own, peer, cursor: Cursor::default(), sent: 0, taken: 0, told: 0, counted: 0 }
    }

    /// Whether there is room in the peer's ring for one more message.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        self.sent - self.taken < SLOTS as u64 || {
            self.look_what_is_taken();
            self.sent - self.taken < SLOTS as u64
        }
    }

    /// Learns from the peer's half what it has taken. Only the peer says so, of its own ring: one that lies harms itself.
    #[cold]
    fn look_what_is_taken(&mut self) {
        if let Some(inbox) = self.peer.inbox() {
            self.taken = self.taken.max(inbox.taken_of_one_sender().min(self.sent));
        }
    }

    /// Sends a message, whose parts follow each other.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent.
    #[inline]
    pub fn send(&mut self, header: Header, parts: &[&[u8]]) -> Result<Sent, SendError> {
        match parts {
            [bytes] if bytes.len() <= MAX_INLINE => self.put(header, inbox::Payload::Bytes(bytes)),
            parts => self.send_parts(header, parts),
        }
    }

    fn send_parts(&mut self, header: Header, parts: &[&[u8]]) -> Result<Sent, SendError> {
        let len = parts.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        if len > MAX_SEND {
            return Err(SendError::TooLong { len });
        }
        if len <= MAX_INLINE {
            let mut bytes = [0; MAX_INLINE];
            let mut at = 0;
            for part in parts {
                bytes[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            return self.put(header, inbox::Payload::Bytes(&bytes[..len]));
        }
        if !self.has_room() {
            return Err(SendError::Full);
        }
        let index = self.claim().ok_or(SendError::Full)?;
        let (room, mut at) = (self.own_block(index, len), 0);
        for part in parts {
            room.slice(at, part.len()).unwrap_or(VolatileSlice::EMPTY).write_away(part);
            at += part.len();
        }
        self.send_block(header, index, len)
    }

    #[inline]
    fn put(&mut self, header: Header, payload: inbox::Payload<'_>) -> Result<Sent, SendError> {
        if !self.has_room() {
            return Err(SendError::Full);
        }
        // This side is the only sender, so what it counts is the place, and the room is its claim (inbox.5).
        let Some(inbox) = self.peer.inbox() else { return Err(SendError::Full) };
        // A message tells beside what was taken, so that in a conversation no other line is needed for that.
        let header = match header.of {
            HeaderType::Send => {
                self.told = self.cursor.next();
                Header { offset: self.told as u16, ..header }
            }
            _ => header,
        };
        let wakes = inbox.send_words(0, [u64::from_le_bytes(header.encode())], &[], payload);
        self.sent += 1;
        Ok(Sent { number: self.sent - 1, wakes })
    }

    /// Claims one of this side's blocks. It is freed by the peer if a message is sent in it, else by [`free_own`](Self::free_own).
    pub fn claim(&self) -> Option<u32> {
        self.own.blocks().claim_alone(0, BLOCKS)
    }

    /// The bytes of one of this side's blocks.
    pub fn own_block(&self, index: u32, len: usize) -> VolatileSlice<'_> {
        self.own.block(Block { index, len: len as u32 }).unwrap_or(VolatileSlice::EMPTY)
    }

    /// The bytes of one of the peer's blocks, which the peer may change meanwhile.
    pub fn peer_block(&self, index: u32, len: usize) -> VolatileSlice<'_> {
        self.peer.block(Block { index, len: len as u32 }).unwrap_or(VolatileSlice::EMPTY)
    }

    /// Frees one of this side's blocks.
    pub fn free_own(&self, index: u32) {
        if index < BLOCKS {
            self.own.blocks().free(index);
        }
    }

    /// Sends the first bytes of a block that was claimed and filled.
    ///
    /// # Errors
    /// There is no room in the ring.
    pub fn send_block(&mut self, header: Header, index: u32, len: usize) -> Result<Sent, SendError> {
        self.put(header, inbox::Payload::Block(Block { index, len: len as u32 }))
    }

    /// How many messages the peer has taken, as far as is known without a look at its memory.
    #[inline]
    pub fn known_taken(&self) -> u64 {
        self.taken
    }

    /// How many messages the peer has taken, by its own account.
    pub fn taken(&mut self) -> u64 {
        if self.taken < self.sent {
            self.look_what_is_taken();
        }
        self.taken
    }

    /// Takes the next message, if one has come.
    ///
    /// # Errors
    /// [`PeerError`].
    #[inline]
    pub fn receive<'a>(
        &'a mut self,
        scratch: &'a mut Scratch,
    ) -> Result<Option<(Header, Payload<'a>)>, PeerError> {
        let inbox = self.own.inbox().ok_or(PeerError::Content)?;
        if !inbox.waits(&self.cursor) {
            return Ok(None);
        }
        scratch.line = inbox.take_line(&mut self.cursor, 1);
        let (head, block, bytes) = if let Some(line) = &mut scratch.line {
            let block = line.names_block.then(|| line.block());
            let (head, bytes) = line.parts();
            (head, block, &*bytes)
        } else {
            if !inbox.take(&mut self.cursor, &mut scratch.message)? {
                return Ok(None);
            }
            let (words, len) = scratch.message.inline();
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch.bytes);
            let bytes = &mut bytes[..len.min(MAX_INLINE)];
            VolatileSlice::from_words(words)
                .slice(0, bytes.len())
                .unwrap_or(VolatileSlice::EMPTY)
                .read(bytes);
            (scratch.message.head(), scratch.message.block, &*bytes)
        };
        let head: [u8; HEADER_LEN] = head.try_into().map_err(|_| PeerError::Content)?;
        let header = Header::decode(head).ok_or(PeerError::Content)?;
        if header.of == HeaderType::Send {
            let more = u64::from(header.offset.wrapping_sub(self.taken as u16));
            // More than was sent is no honest peer's.
            self.taken += if more <= self.sent - self.taken { more } else { 0 };
        }
        let payload = match block {
            None => Payload::Copy(bytes),
            Some(block) => Payload::Block {
                index: block.index,
                bytes: self.peer.block(block).ok_or(PeerError::Content)?,
            },
        };
        Ok(Some((header, payload)))
    }

    /// Returns a block to the peer, which may send another message in it.
    pub fn free(&self, index: u32) {
        if index < BLOCKS {
            self.peer.blocks().free(index);
        }
    }

    /// Tells the peer which messages were taken, if it does not know; whether it has asked to be woken then.
    #[inline]
    pub fn acknowledge(&mut self) -> bool {
        self.told != self.cursor.next() && self.acknowledge_now()
    }

    /// As [`acknowledge`](Self::acknowledge), also where a message has told it: the peer may not have read that.
    pub fn acknowledge_surely(&mut self) -> bool {
        self.counted != self.cursor.next() && self.acknowledge_now()
    }

    fn acknowledge_now(&mut self) -> bool {
        (self.told, self.counted) = (self.cursor.next(), self.cursor.next());
        let Some((inbox, count)) = self.own.inbox().zip(self.own.acknowledged()) else { return false };
        inbox.publish(&mut self.cursor);
        kill_point!("cci.acknowledge.published");
        let wakes = count.count().wanted;
        if wakes {
            count.disarm();
        }
        wakes
    }

    /// Whether a message has come.
    #[inline]
    pub fn waits(&self) -> bool {
        self.own.inbox().is_some_and(|inbox| inbox.waits(&self.cursor))
    }

    /// Asks the peer to say when it sends; whether nothing has come, so that this party need not look.
    pub fn arm(&self) -> bool {
        self.own.inbox().is_none_or(|inbox| inbox.arm(&self.cursor))
    }

    /// Asks the peer to say when it takes what was sent. To be asked before [`taken`](Self::taken), and a look there decides whether this party may sleep.
    pub fn arm_acknowledgement(&self) {
        if let Some(count) = self.peer.acknowledged() {
            let _ = count.arm();
        }
    }

    /// Says that this side sends no more, and receives no more.
    pub fn close(&self) {
        if let Some(closed) = self.own.closed() {
            closed.set();
        }
    }

    /// Whether the peer has closed the connection. What it sent before is there.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.peer.closed().is_none_or(|closed| closed.is_set())
    }

    /// Whether the peer has closed the connection and all that it sent was taken.
    pub fn is_over(&self) -> bool {
        // In this order: what it sent before it closed the connection is there only for who has found that it has.
        self.is_closed() && !self.waits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{ConnectionId, HeaderType};
    use gasworks_sync::atomic::Ordering::Relaxed;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn pair() -> [Channel; 2] {
        let [(one, first), (other, second)] = [(); 2].map(|()| Half::create().expect("memory"));
        let map = |file: MemFd| Half::map(&file.into_fd()).expect("a half");
        [Channel::new(one, map(second)), Channel::new(other, map(first))]
    }

    fn header(number: u16) -> Header {
        let connection = ConnectionId { index: 3, generation: 4 };
        Header { of: HeaderType::Send, connection, offset: 0, length: number.into() }
    }

    /// The bytes of a payload, and the block that they lie in.
    fn copied(payload: &Payload<'_>) -> (Vec<u8>, Option<u32>) {
        match payload {
            Payload::Copy(bytes) => (bytes.to_vec(), None),
            Payload::Block { index, bytes } => {
                let mut copy = vec![0; bytes.len()];
                bytes.read(&mut copy);
                (copy, Some(*index))
            }
            Payload::File { .. } => panic!("a ring has no files"),
        }
    }

    /// What has come, whose block is returned.
    fn take(channel: &mut Channel) -> Option<(u16, Vec<u8>)> {
        let mut scratch = Scratch::default();
        let Some((header, payload)) = channel.receive(&mut scratch).expect("the peer is honest") else {
            channel.acknowledge();
            return None;
        };
        let (bytes, block) = copied(&payload);
        block.inspect(|index| channel.free(*index));
        Some((header.length as u16, bytes))
    }

    fn made(number: u16, len: usize) -> Vec<u8> {
        (0..len).map(|at| (at as u16).wrapping_mul(7).wrapping_add(number.wrapping_mul(31)) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Against two queues: whatever the order, each message comes once and whole, and a full ring says so.
        #[test]
        fn messages_come_in_order_both_ways(
            steps in prop::collection::vec((0usize..2, any::<bool>(), prop::sample::select(vec![0, 1, 8, 127, 128, 129, 5000, MAX_SEND])), 1..200),
        ) {
            let mut channels = pair();
            let mut queues = [VecDeque::new(), VecDeque::new()];
            let mut numbers = [0u16; 2];
            for (side, sends, len) in steps {
                if sends {
                    let bytes = made(numbers[side], len);
                    let (first, second) = bytes.split_at(len / 3);
                    match channels[side].send(header(numbers[side]), &[first, second]) {
                        Ok(sent) => {
                            prop_assert_eq!(sent.number, u64::from(numbers[side]));
                            queues[side].push_back((numbers[side], bytes));
                            numbers[side] += 1;
                        }
                        Err(error) => {
                            prop_assert_eq!(error, SendError::Full);
                            prop_assert!(queues[side].len() >= SLOTS / 2, "full with {} messages", queues[side].len());
                        }
                    }
                } else {
                    let found = take(&mut channels[1 - side]);
                    prop_assert_eq!(found, queues[side].pop_front());
                }
            }
            for side in [0, 1] {
                while let Some(wanted) = queues[side].pop_front() {
                    prop_assert_eq!(take(&mut channels[1 - side]), Some(wanted));
                }
                prop_assert_eq!(take(&mut channels[1 - side]), None);
            }
            // A message may tell of it, so that it is known when all have been taken.
            for side in [0, 1] {
                prop_assert_eq!(channels[side].taken(), u64::from(numbers[side]), "the sender knows of all");
            }
        }
    }

    /// Whatever a peer writes to all that it can map, nothing but errors and messages comes of it.
    #[test]
    fn a_hostile_peer_is_an_error_at_worst() {
        use gasworks_sync::atomic::AtomicU64;
        let mut state = 0x2545_F491_4F6C_DD1Du64;
        let mut random = move |below: u64| {
            state = (state ^ state << 13) ^ (state ^ state << 13) >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        let [mut inline, mut blocks, mut damaged, mut strange, mut refused] = [0; 5];
        for _ in 0..400 {
            let [mut victim, peer] = pair();
            let mut scratch = Scratch::default();
            for half in [&peer.peer, &peer.own] {
                let page = half.mapping.bytes().slice(0, PAGE).expect("a page");
                let words: &[AtomicU64] = view::slice(page, 0, PAGE / 8).expect("aligned");
                for word in words {
                    word.store(if random(4) == 0 { 0 } else { random(u64::MAX) }, Relaxed);
                }
                // Slots that are nearly right: flag, header, and the name of a block, or bytes.
                for slot in words[RING / 8..].chunks_exact(size_of::<Slot>() / 8).take(SLOTS) {
                    let lap = if random(8) == 0 { random(1 << 32) } else { 1 };
                    let head = if random(6) == 0 { random(128) } else { HEADER_LEN as u64 };
                    let (block, len) =
                        (random(2) << 15, if random(4) == 0 { random(256) } else { random(60) });
                    slot[0].store(lap << 32 | head << 8 | block | len, Relaxed);
                    slot[1].store(random(1 << 60) << 4 | random(10), Relaxed);
                    slot[2].store(random(BLOCKS as u64 + 2) << 32 | random(MAX_SEND as u64 + 1000), Relaxed);
                }
            }
            for _ in 0..3 * SLOTS {
                let found =
                    victim.receive(&mut scratch).map(|found| found.map(|(_, payload)| copied(&payload)));
                match found {
                    Ok(None) => {}
                    Ok(Some((bytes, None))) => {
                        assert!(bytes.len() <= MAX_INLINE);
                        inline += 1;
                    }
                    Ok(Some((bytes, Some(index)))) => {
                        assert!(bytes.len() <= MAX_SEND);
                        victim.free(index);
                        blocks += 1;
                    }
                    Err(PeerError::Ring(_)) => damaged += 1,
                    Err(PeerError::Content) => strange += 1,
                }
                refused += u32::from(victim.send(header(0), &[&[7; 300]]).is_err());
                let _ = (victim.taken(), victim.waits(), victim.acknowledge(), victim.is_closed());
            }
        }
        let counts = [inline, blocks, damaged, strange, refused];
        assert!(counts.iter().all(|count| *count > 50), "not all was tried: {counts:?}");
    }

    #[test]
    fn what_is_too_long_or_no_half_is_refused() {
        let [mut one, _other] = pair();
        let long = vec![0; MAX_SEND + 1];
        assert_eq!(one.send(header(0), &[&long]), Err(SendError::TooLong { len: MAX_SEND + 1 }));
        let short: OwnedFd = memfd::create("short", LEN - 1).expect("memory").into_fd();
        assert!(matches!(Half::map(&short), Err(HalfError::Shape)));
        let unsealed: OwnedFd = tempfile::tempfile().expect("a file").into();
        assert!(matches!(Half::map(&unsealed), Err(HalfError::Shape)));
    }

    /// In a conversation each message tells what was taken, also where the numbers have gone round; and more than was sent is not believed.
    #[test]
    fn a_message_tells_what_was_taken() {
        let [mut one, mut other] = pair();
        for number in 0..70_000u32 {
            one.send(header(number as u16), &[b"x"]).expect("room");
            assert_eq!(one.known_taken(), number.into());
            assert!(take(&mut other).is_some());
            other.send(header(0), &[b"y"]).expect("room");
            assert!(take(&mut one).is_some());
            assert_eq!(one.known_taken(), u64::from(number) + 1);
            assert!(!other.acknowledge(), "it has told");
        }
        let inbox = other.peer.inbox().expect("a ring");
        let lie = Header { offset: 5, ..header(0) };
        let _ = inbox.send(0, &lie.encode(), inbox::Payload::NONE);
        assert!(take(&mut one).is_some());
        assert_eq!(one.known_taken(), 70_000);
    }

    /// Who sleeps until what it sent was taken is woken, once; and knows then.
    #[test]
    fn who_waits_for_an_acknowledgement_is_woken() {
        let [mut one, mut other] = pair();
        one.send(header(0), &[b"x"]).expect("room");
        one.arm_acknowledgement();
        assert!(!other.acknowledge(), "nothing was taken");
        assert!(take(&mut other).is_some() && other.acknowledge());
        assert!(one.taken() == 1 && !other.acknowledge());
        one.send(header(1), &[b"y"]).expect("room");
        assert!(take(&mut other).is_some() && !other.acknowledge(), "nobody has asked");
    }

    #[test]
    fn a_party_that_closes_is_seen_behind_what_it_sent() {
        let [mut one, mut other] = pair();
        one.send(header(0), &[b"x"]).expect("room");
        assert!(!other.is_closed());
        one.close();
        assert!(other.is_closed() && !one.is_closed() && !other.is_over());
        assert!(take(&mut other).is_some() && other.is_over());
    }

    /// A party that is going to sleep is told of by the next message, once.
    #[test]
    fn who_asks_to_be_woken_is_woken() {
        let [mut one, mut other] = pair();
        assert!(!one.send(header(0), &[b"x"]).expect("room").wakes, "nobody has asked");
        assert!(!other.arm(), "a message has come");
        assert!(take(&mut other).is_some() && other.arm());
        assert!(one.send(header(1), &[b"y"]).expect("room").wakes);
        assert!(!one.send(header(2), &[b"z"]).expect("room").wakes, "it was told before");
    }
}
