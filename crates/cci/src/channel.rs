//! The memory of a connection: for each direction a ring that only its two parties map.
//!
//! Each party makes a *half*: the ring in which it receives, and the blocks from which it sends what does not fit a slot of the ring. It passes the half's file to the peer, which maps it,
//! writes messages into the ring, and reads blocks and frees them.
//!
//! A half is one page, and 64 KiB behind it for each block, of which no page takes memory before it is used.
//!
//! Everything in a half may be written by the peer: what is read there is copied once, checked, then used.

use crate::header::{HEADER_LEN, Header};
use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::inbox::{Block, Control, Cursor, Damage, Inbox, Message, Payload, Slot};
use gasworks_shmem::view;
use gasworks_sync::VolatileSlice;
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

/// Where the blocks' flags and the slots are in a half, behind the ring's control words; and where the blocks begin.
const FLAGS: usize = size_of::<Control>();
const RING: usize = FLAGS.next_multiple_of(256) + 256;
const PAGE: usize = 4096;
const LEN: usize = PAGE + BLOCKS as usize * MAX_SEND;
const _: () = assert!(RING + SLOTS * size_of::<Slot>() <= PAGE && FLAGS + 4 * BLOCKS as usize <= RING);

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
struct Half {
    mapping: Mapping,
}

impl Half {
    fn inbox(&self) -> Option<Inbox<'_>> {
        let bytes = self.mapping.bytes();
        Inbox::new(view::slice::<Control>(bytes, 0, 1)?.first()?, view::slice::<Slot>(bytes, RING, SLOTS)?)
    }

    fn blocks(&self) -> Option<Blocks<'_>> {
        view::slice(self.mapping.bytes(), FLAGS, BLOCKS as usize).map(Blocks::new)
    }

    /// The first bytes of a block; `None` if there is no such block, or none so long.
    fn block(&self, Block { index, len }: Block) -> Option<VolatileSlice<'_>> {
        let fits = index < BLOCKS && len as usize <= MAX_SEND;
        fits.then(|| self.mapping.bytes().slice(PAGE + index as usize * MAX_SEND, len as usize))?
    }
}

/// This party's half, before the peer's is known.
#[derive(Debug)]
pub struct OwnHalf {
    half: Half,
    file: MemFd,
}

impl OwnHalf {
    /// Makes a half.
    ///
    /// # Errors
    /// The system has no memory or no descriptor left.
    pub fn create() -> Result<Self, HalfError> {
        let file = memfd::create("gasworks-cci", LEN)?;
        Ok(Self { half: Half { mapping: file.map()? }, file })
    }

    /// The file, which the peer is given.
    pub fn file(&self) -> &MemFd {
        &self.file
    }

    /// The connection's memory, with the half that the peer has passed.
    ///
    /// # Errors
    /// [`HalfError`].
    pub fn join(self, peer: &OwnedFd) -> Result<Channel, HalfError> {
        let is_right = memfd::is_sealed(peer.as_fd()) && memfd::size_of_file(peer.as_fd())? == LEN as u64;
        if !is_right {
            return Err(HalfError::Shape);
        }
        let peer = Half { mapping: memfd::map(peer.as_fd(), LEN)? };
        let (cursor, message) = (Cursor::default(), Message::new());
        Ok(Channel { own: self.half, peer, cursor, message, sent: 0 })
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
    /// Whether the peer may be asleep: then its doorbell is to be rung.
    pub wakes: bool,
}

/// A block of the peer's that a message lies in, until it is [returned](Channel::free).
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    index: u32,
}

/// A message that has come.
#[derive(Debug)]
pub struct Incoming {
    /// Its header.
    pub header: Header,
    /// The payload, if it lay in the slot.
    pub inline: Vec<u8>,
    /// The block that it lies in, with its length, if it did not.
    pub block: Option<(Held, u32)>,
}

/// The memory of a connection: what one party sends and receives by.
#[derive(Debug)]
pub struct Channel {
    own: Half,
    peer: Half,
    cursor: Cursor,
    message: Message,
    sent: u64,
}

impl Channel {
    /// Sends a message, whose parts follow each other.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent.
    pub fn send(&mut self, header: Header, parts: &[&[u8]]) -> Result<Sent, SendError> {
        let len = parts.iter().map(|part| part.len()).sum();
        if len > MAX_SEND {
            return Err(SendError::TooLong { len });
        }
        let (inbox, blocks) = self.peer.inbox().zip(self.own.blocks()).ok_or(SendError::Full)?;
        inbox.reserve(1).map_err(|_| SendError::Full)?;
        let head = header.encode();
        let wakes = if len <= MAX_INLINE {
            let mut bytes = [0; MAX_INLINE];
            let mut at = 0;
            for part in parts {
                bytes[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            inbox.send(0, &head, Payload::Bytes(&bytes[..len]))
        } else {
            let Some(index) = blocks.claim_alone(0, BLOCKS) else {
                inbox.cancel(1);
                return Err(SendError::Full);
            };
            let block = Block { index, len: len as u32 };
            let (room, mut at) = (self.own.block(block).unwrap_or(VolatileSlice::EMPTY), 0);
            for part in parts {
                room.slice(at, part.len()).unwrap_or(VolatileSlice::EMPTY).write(part);
                at += part.len();
            }
            inbox.send(0, &head, Payload::Block(block))
        };
        let number = self.sent;
        self.sent += 1;
        Ok(Sent { number, wakes })
    }

    /// How many messages the peer has taken, by its own account.
    pub fn taken(&self) -> u64 {
        self.peer.inbox().map_or(0, |inbox| inbox.consumed().min(self.sent))
    }

    /// The next message, if one has come.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn receive(&mut self) -> Result<Option<Incoming>, PeerError> {
        let inbox = self.own.inbox().ok_or(PeerError::Content)?;
        if !inbox.take(&mut self.cursor, &mut self.message)? {
            // So the sender knows of the last ones, too.
            inbox.publish(&mut self.cursor);
            return Ok(None);
        }
        let head: [u8; HEADER_LEN] = self.message.head().try_into().map_err(|_| PeerError::Content)?;
        let header = Header::decode(head).ok_or(PeerError::Content)?;
        let block = match self.message.block {
            None => None,
            Some(block) => {
                self.peer.block(block).ok_or(PeerError::Content)?;
                Some((Held { index: block.index }, block.len))
            }
        };
        let (words, len) = self.message.inline();
        let mut inline = vec![0; len];
        VolatileSlice::from_words(words).slice(0, len).unwrap_or(VolatileSlice::EMPTY).read(&mut inline);
        Ok(Some(Incoming { header, inline, block }))
    }

    /// The bytes of a message in a block, which the peer may change meanwhile.
    pub fn bytes(&self, held: &Held, len: u32) -> VolatileSlice<'_> {
        self.peer.block(Block { index: held.index, len }).unwrap_or(VolatileSlice::EMPTY)
    }

    /// Returns a block to the peer, which may send another message in it.
    pub fn free(&self, held: Held) {
        if let Some(blocks) = self.peer.blocks() {
            blocks.free(held.index);
        }
    }

    /// Whether a message has come.
    pub fn waits(&self) -> bool {
        self.own.inbox().is_some_and(|inbox| inbox.waits(&self.cursor))
    }

    /// Asks the peer to say when it sends; whether nothing has come, so that this party may sleep.
    pub fn arm(&self) -> bool {
        self.own.inbox().is_none_or(|inbox| inbox.arm(&self.cursor))
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
        let (one, other) = (OwnHalf::create().expect("memory"), OwnHalf::create().expect("memory"));
        let pass = |half: &OwnHalf| half.file().as_fd().try_clone_to_owned().expect("a descriptor");
        let files = [pass(&one), pass(&other)];
        [one.join(&files[1]).expect("the other's"), other.join(&files[0]).expect("the other's")]
    }

    fn header(offset: u16) -> Header {
        let connection = ConnectionId { index: 3, generation: 4 };
        Header { of: HeaderType::Send, connection, offset, length: 0 }
    }

    /// What has come, whose block is returned.
    fn take(channel: &mut Channel) -> Option<(u16, Vec<u8>)> {
        let Incoming { header, mut inline, block } = channel.receive().expect("the peer is honest")?;
        if let Some((held, len)) = block {
            inline = vec![0; len as usize];
            channel.bytes(&held, len).read(&mut inline);
            channel.free(held);
        }
        Some((header.offset, inline))
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
                match victim.receive() {
                    Ok(None) => {}
                    Ok(Some(Incoming { block: None, inline: bytes, .. })) => {
                        assert!(bytes.len() <= MAX_INLINE + 100);
                        inline += 1;
                    }
                    Ok(Some(Incoming { block: Some((held, len)), .. })) => {
                        assert_eq!(victim.bytes(&held, len).len(), len as usize);
                        victim.free(held);
                        blocks += 1;
                    }
                    Err(PeerError::Ring(_)) => damaged += 1,
                    Err(PeerError::Content) => strange += 1,
                }
                refused += u32::from(victim.send(header(0), &[&[7; 300]]).is_err());
                let _ = (victim.taken(), victim.waits());
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
        let half = || OwnHalf::create().expect("memory");
        let short: OwnedFd = memfd::create("short", LEN - 1).expect("memory").into_fd();
        assert!(matches!(half().join(&short), Err(HalfError::Shape)));
        let unsealed: OwnedFd = tempfile::tempfile().expect("a file").into();
        assert!(matches!(half().join(&unsealed), Err(HalfError::Shape)));
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
