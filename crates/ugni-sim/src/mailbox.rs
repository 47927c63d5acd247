//! Mailboxes of short messages (SMSG): memory of the receiver, registered, into which one peer puts its messages.
//!
//! # Protocol
//! - mailbox.1: zeroed memory is an empty mailbox. Its owner zeroes it before it tells anybody of it, and never after: the first
//!   message may be there before the owner itself has begun.
//! - mailbox.2: a mailbox is the word of credit, a word for each message that may be in it, and their bytes. Messages are numbered
//!   from 1; number n has the word (n - 1) mod credits, which says the lower 32 bits of n, the length and the tag. The word
//!   is the flag of the put that brings the bytes: who sees it sees them. So messages may overtake each other, and are
//!   still read in order.
//! - mailbox.3: where the bytes of a message lie follows from the lengths of those before it. Both sides compute it by `Ring`;
//!   nothing in the mailbox says it.
//! - mailbox.4: a message is put only where none lies that its receiver may still read: a word is free, and so are the bytes, as far
//!   as the sender has been told. So a message stays as it is from when its word is seen until it is released.
//! - mailbox.5: the word of credit in the mailbox of each side says how many of that side's messages the peer has released in all. It
//!   is put again only when the last put of it is over, so it never falls.
//!
//! What a peer has written is copied once and checked, and then the copy is used.

use std::collections::VecDeque;

use gasworks_gni_sys::*;

use crate::chip::LINE;

/// The bytes of messages begin at multiples of this.
const ALIGNMENT: u64 = 16;
const WORD: u64 = size_of::<u64>() as u64;
/// How much longer a message may be by its header than the longest that its client has asked for. What the genuine library allows is
/// not public; libfabric sends data of up to that length with headers besides, and its own tests want them to go.
const HEADER: u64 = LINE;

/// Where the parts of a mailbox are, and how much goes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The address of the word of credit; those of messages follow.
    pub credit: u64,
    /// How many messages there may be at a time.
    pub credits: u64,
    /// The address of the bytes of messages.
    pub bytes: u64,
    /// How many there are.
    pub room: u64,
    /// The longest message, but for what its header adds.
    longest: u64,
    /// The longest with that.
    whole: u64,
}

/// The most bytes of words and of what alignment costs.
fn overhead(credits: u64) -> u64 {
    (ALIGNMENT - 1 + WORD + WORD * credits).next_multiple_of(ALIGNMENT) + ALIGNMENT - 1
}

/// What attributes say of the number and length of messages, if it can be.
fn limits(attributes: &gni_smsg_attr_t) -> Option<(u64, u64)> {
    let known = matches!(attributes.msg_type, GNI_SMSG_TYPE_MBOX | GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT);
    let (credits, longest) = (attributes.mbox_maxcredit, attributes.msg_maxsize);
    let sound = known && credits > 0 && (1..=GNI_SMSG_MAX_SIZE).contains(&longest);
    sound.then_some((credits.into(), longest.into()))
}

/// The longest message with its header, of those whose data are so long at most.
fn whole(longest: u64) -> u64 {
    (longest + HEADER).min(GNI_SMSG_MAX_SIZE.into())
}

/// How large a mailbox is to be (`GNI_SmsgBufferSizeNeeded`): it has room for the longest message, and a line for each other.
///
/// # Errors
/// `GNI_RC_INVALID_PARAM`: there is no such type, there is no credit, or messages are of no length or too long.
pub fn size_needed(attributes: &gni_smsg_attr_t) -> Result<u32, gni_return_t> {
    let (credits, longest) = limits(attributes).ok_or(GNI_RC_INVALID_PARAM)?;
    let (whole, longest) = (whole(longest).next_multiple_of(ALIGNMENT), longest.next_multiple_of(ALIGNMENT));
    let size = overhead(credits) + whole + (credits - 1) * longest.min(LINE);
    u32::try_from(size).map_err(|_| GNI_RC_INVALID_PARAM)
}

impl Layout {
    /// The mailbox of these attributes; `None` if there cannot be such a one. It may be smaller than is needed, as long as
    /// the longest message goes into it.
    pub fn of(attributes: &gni_smsg_attr_t) -> Option<Self> {
        let (credits, longest) = limits(attributes)?;
        let (first, len) = Layout::place(attributes);
        let end = first.checked_add(len)?;
        let credit = first.checked_next_multiple_of(WORD)?;
        let bytes = credit.checked_add(WORD + WORD * credits)?.checked_next_multiple_of(ALIGNMENT)?;
        let room = end.checked_sub(bytes)? / ALIGNMENT * ALIGNMENT;
        (longest.next_multiple_of(ALIGNMENT) <= room).then_some(Self {
            credit,
            credits,
            bytes,
            room,
            longest,
            whole: whole(longest).min(room),
        })
    }

    /// The same, but that headers count as much as data.
    pub fn strictly(self) -> Self {
        Self { whole: self.longest, ..self }
    }

    /// The longest message, header and all.
    pub fn most(&self) -> u64 {
        self.whole
    }

    /// Whether a message may be sent, of so many bytes of header and of data.
    pub fn takes(&self, header: u64, data: u64) -> bool {
        header.max(data) <= self.longest && header + data <= self.whole
    }

    /// The first address and the length of all of it.
    pub fn place(attributes: &gni_smsg_attr_t) -> (u64, u64) {
        let first = (attributes.msg_buffer.addr() as u64).wrapping_add(attributes.mbox_offset.into());
        (first, attributes.buff_size.into())
    }

    /// The address of the word of a message (mailbox.2).
    pub fn word(&self, number: u64) -> u64 {
        self.credit + WORD + (number - 1) % self.credits * WORD
    }
}

/// What the word of a message says (mailbox.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The lower bits of its number.
    pub number: u32,
    /// How many bytes it has.
    pub length: u16,
    /// Its tag.
    pub tag: u8,
}

impl Word {
    /// As it stands in memory.
    pub fn encode(self) -> u64 {
        u64::from(self.number) | u64::from(self.length) << 32 | u64::from(self.tag) << 48
    }

    /// `None`: it is no sender's.
    pub fn decode(word: u64) -> Option<Self> {
        let known = Self { number: word as u32, length: (word >> 32) as u16, tag: (word >> 48) as u8 };
        (known.encode() == word).then_some(known)
    }
}

/// Where the next message goes (mailbox.3): behind the last, or to the beginning if there is no room for all of it.
#[derive(Clone, Copy, Debug)]
struct Ring {
    room: u64,
    next: u64,
}

/// A place in a ring: its beginning, its length, and how much before it is left out.
#[derive(Debug)]
struct Place {
    start: u64,
    size: u64,
    skipped: u64,
}

impl Ring {
    fn place(&self, length: u64) -> Place {
        let size = length.next_multiple_of(ALIGNMENT);
        if self.next + size <= self.room {
            Place { start: self.next, size, skipped: 0 }
        } else {
            Place { start: 0, size, skipped: self.room - self.next }
        }
    }
}

/// Where a message may be put.
#[derive(Debug)]
pub struct Slot {
    /// Its number.
    pub number: u64,
    /// Where its bytes go.
    pub address: u64,
    place: Place,
    /// How much of the ring it takes.
    takes: u64,
}

/// The peer has written what no peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// What a sender knows of its peer's mailbox.
#[derive(Debug)]
pub struct Sender {
    layout: Layout,
    ring: Ring,
    sent: u64,
    released: u64,
    /// What each message that was not released takes of the ring, and all of them.
    taken: VecDeque<u64>,
    all: u64,
}

impl Sender {
    /// Nothing was sent.
    pub fn new(layout: Layout) -> Self {
        let ring = Ring { room: layout.room, next: 0 };
        Self { layout, ring, sent: 0, released: 0, taken: VecDeque::new(), all: 0 }
    }

    /// Where a message of this length may go now; `None`: there is no room (mailbox.4).
    pub fn find(&self, length: u64) -> Option<Slot> {
        let place = self.ring.place(length);
        // In an empty ring nothing is lost by what is left out.
        let takes = if self.all == 0 { place.size } else { place.size + place.skipped };
        let room = self.sent - self.released < self.layout.credits && self.all + takes <= self.layout.room;
        let (number, address) = (self.sent + 1, self.layout.bytes + place.start);
        room.then_some(Slot { number, address, place, takes })
    }

    /// A message goes there.
    pub fn put(&mut self, slot: Slot) {
        self.ring.next = slot.place.start + slot.place.size;
        self.taken.push_back(slot.takes);
        self.all += slot.takes;
        self.sent = slot.number;
    }

    /// What the word of credit says (mailbox.5).
    ///
    /// # Errors
    /// [`Broken`].
    pub fn see_credit(&mut self, released: u64) -> Result<(), Broken> {
        if !(self.released..=self.sent).contains(&released) {
            return Err(Broken);
        }
        let now = (released - self.released) as usize;
        self.all -= self.taken.drain(..now).sum::<u64>();
        self.released = released;
        Ok(())
    }
}

/// What a receiver knows of its own mailbox.
#[derive(Debug)]
pub struct Receiver {
    layout: Layout,
    ring: Ring,
    released: u64,
    current: Option<Arrival>,
}

/// A message that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where its bytes are.
    pub address: u64,
    /// How many.
    pub length: u64,
    /// Its tag.
    pub tag: u8,
}

impl Receiver {
    /// Nothing has come.
    pub fn new(layout: Layout) -> Self {
        Self { layout, ring: Ring { room: layout.room, next: 0 }, released: 0, current: None }
    }

    /// How many messages were released.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// The message that is being read.
    pub fn current(&self) -> Option<Arrival> {
        self.current
    }

    /// The address of the word of the next message.
    pub fn next_word(&self) -> u64 {
        self.layout.word(self.released + 1)
    }

    /// What the word of the next message says, when none is being read: the message, or nothing yet.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn see(&mut self, word: u64) -> Result<Option<Arrival>, Broken> {
        let number = self.released + 1;
        let said = Word::decode(word).ok_or(Broken)?;
        if said.number != number as u32 {
            // What was there before: the message one lap ago, or zeros.
            let before = number.checked_sub(self.layout.credits).filter(|before| *before > 0);
            let same = before.map_or(word == 0, |before| said.number == before as u32);
            return if same { Ok(None) } else { Err(Broken) };
        }
        let length = u64::from(said.length);
        if length > self.layout.whole {
            return Err(Broken);
        }
        let place = self.ring.place(length);
        self.ring.next = place.start + place.size;
        let message = Arrival { address: self.layout.bytes + place.start, length, tag: said.tag };
        self.current = Some(message);
        Ok(self.current)
    }

    /// The message that is being read is not needed any more; which it was, if there is one.
    pub fn release(&mut self) -> Option<Arrival> {
        let released = self.current.take();
        self.released += u64::from(released.is_some());
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attributes(credits: u16, longest: u32, first: u64) -> gni_smsg_attr_t {
        let sized = gni_smsg_attr_t {
            msg_type: GNI_SMSG_TYPE_MBOX,
            mbox_maxcredit: credits,
            msg_maxsize: longest,
            msg_buffer: std::ptr::without_provenance_mut(first as usize),
            ..Default::default()
        };
        gni_smsg_attr_t { buff_size: size_needed(&sized).expect("sound"), ..sized }
    }

    fn put(sender: &mut Sender, length: u64) {
        let slot = sender.find(length).expect("room");
        sender.put(slot);
    }

    #[test]
    fn what_is_needed_is_enough_wherever_it_is() {
        // What takes Miri long shows it nothing new.
        const MANY: u16 = if cfg!(miri) { 64 } else { u16::MAX };
        for (credits, longest) in [(1, 1), (1, 65_535), (MANY, 1), (MANY, 65_535), (64, 16_384), (3, 17)] {
            for first in 4096..4096 + ALIGNMENT {
                let attributes = attributes(credits, longest, first);
                let layout = Layout::of(&attributes).expect("it is enough");
                let end = first + u64::from(attributes.buff_size);
                assert!(layout.credit >= first && layout.credit.is_multiple_of(8));
                assert!(layout.word(u64::from(credits)) + 8 <= layout.bytes);
                assert!(layout.bytes + layout.room <= end && layout.room >= u64::from(longest));
                let mut sender = Sender::new(layout);
                for _ in 0..credits {
                    let slot = sender.find(u64::from(longest).min(LINE));
                    sender.put(slot.expect("a line for each"));
                }
            }
        }
    }

    #[test]
    fn a_mailbox_takes_no_message_for_which_it_never_has_room() {
        let like = attributes(1, 64, 4096);
        let exact = Layout::of(&like).expect("sound").bytes + 64 - 4096;
        let layout = Layout::of(&gni_smsg_attr_t { buff_size: exact as u32, ..like }).expect("room for data");
        assert_eq!((layout.most(), layout.room), (64, 64));
        assert!(layout.takes(4, 60) && !layout.takes(4, 64));
        let whole = Layout::of(&like).expect("sound");
        assert!(whole.takes(64, 64) && !whole.takes(0, 65) && !whole.strictly().takes(4, 64));
    }

    #[test]
    fn attributes_that_cannot_be_are_refused() {
        let good = attributes(4, 64, 4096);
        for bad in [
            gni_smsg_attr_t { msg_type: GNI_SMSG_TYPE_INVALID, ..good },
            gni_smsg_attr_t { msg_type: 3, ..good },
            gni_smsg_attr_t { mbox_maxcredit: 0, ..good },
            gni_smsg_attr_t { msg_maxsize: 0, ..good },
            gni_smsg_attr_t { msg_maxsize: GNI_SMSG_MAX_SIZE + 1, ..good },
        ] {
            assert_eq!((size_needed(&bad), Layout::of(&bad)), (Err(GNI_RC_INVALID_PARAM), None));
        }
        let far = std::ptr::without_provenance_mut(usize::MAX - 8);
        assert_eq!(Layout::of(&gni_smsg_attr_t { msg_buffer: far, ..good }), None);
        // The words, and the longest message.
        let least = 8 + 4 * 8 + 8 + 64;
        assert_eq!(Layout::of(&gni_smsg_attr_t { buff_size: least - 1, ..good }), None);
        assert!(Layout::of(&gni_smsg_attr_t { buff_size: least, ..good }).is_some());
    }

    /// Numbers go on beyond what a word can say of them, and beyond the laps.
    #[test]
    fn a_word_is_of_its_lap() {
        for start in [0, 1, 3, 4, 5, (1 << 32) - 6, (1 << 32) - 5, (1 << 32) - 1, 1 << 32, (1 << 33) + 2] {
            let layout = Layout::of(&attributes(4, 64, 4096)).expect("sound");
            let mut receiver = Receiver { released: start, ..Receiver::new(layout) };
            let mut words = [0; 4];
            for number in (start + 1).saturating_sub(4).max(1)..=start {
                words[(number - 1) as usize % 4] = Word { number: number as u32, length: 1, tag: 0 }.encode();
            }
            for number in start + 1..start + 12 {
                let place = (number - 1) as usize % 4;
                assert_eq!(receiver.next_word(), layout.credit + 8 + 8 * place as u64);
                assert_eq!(receiver.see(words[place]), Ok(None), "{number}");
                words[place] = Word { number: number as u32, length: 3, tag: 9 }.encode();
                assert!(receiver.see(words[place]).expect("sound").is_some_and(|message| message.tag == 9));
                assert!(receiver.release().is_some() && receiver.release().is_none());
            }
        }
    }

    #[test]
    fn a_word_that_lies_breaks_the_mailbox() {
        let layout = Layout::of(&attributes(4, 64, 4096)).expect("sound");
        let good = Word { number: 1, length: 64, tag: 255 };
        assert!(Receiver::new(layout).see(good.encode()).expect("sound").is_some());
        let bad = [
            Word { length: 129, ..good }.encode(),
            Word { number: 2, ..good }.encode(),
            Word { number: 5, ..good }.encode(),
            Word { number: u32::MAX, ..good }.encode(),
            // The number of no message, but not zeros either.
            Word { number: 0, ..good }.encode(),
            good.encode() | 1 << 56,
            u64::MAX,
        ];
        for word in bad {
            assert_eq!(Receiver::new(layout).see(word), Err(Broken), "{word:#x}");
        }
        // Of the last word of the first lap as well.
        let mut last = Receiver { released: 3, ..Receiver::new(layout) };
        assert_eq!(last.see(0), Ok(None));
        assert_eq!(last.see(Word { number: 0, ..good }.encode()), Err(Broken));
    }

    #[test]
    fn credit_that_cannot_be_breaks_the_mailbox() {
        let layout = Layout::of(&attributes(4, 64, 4096)).expect("sound");
        let mut sender = Sender::new(layout);
        (0..3).for_each(|_| put(&mut sender, 8));
        assert_eq!(sender.see_credit(4), Err(Broken), "more than was sent");
        assert_eq!(sender.see_credit(2), Ok(()));
        assert_eq!(sender.see_credit(2), Ok(()));
        assert_eq!(sender.see_credit(1), Err(Broken), "less than before");
        assert_eq!(sender.see_credit(u64::MAX), Err(Broken));
    }

    /// In an empty mailbox there is room for the longest message wherever the last one ended.
    #[test]
    fn an_empty_mailbox_has_room_for_the_longest_message() {
        let layout = Layout { room: 96, ..Layout::of(&attributes(4, 96, 4096)).expect("sound") };
        for before in 0..=96 {
            let mut sender = Sender::new(layout);
            put(&mut sender, before);
            assert_eq!(sender.find(96).is_some(), before == 0);
            sender.see_credit(1).expect("sound");
            put(&mut sender, 96);
            assert!(sender.find(1).is_none() && sender.find(0).is_some());
            sender.see_credit(2).expect("sound");
            assert_eq!(sender.all, 0);
        }
    }

    proptest! {
        #![proptest_config(crate::trials())]
        /// The receiver finds each message where it was put, and none lies on another or outside.
        #[test]
        fn both_sides_agree_and_nothing_overlaps(
            (credits, longest, spare) in (1..6u16, 1..200u32, 0..100u32),
            steps in prop::collection::vec((any::<bool>(), 0..200u64), 0..200),
        ) {
            let mut attributes = attributes(credits, longest, 4096 + u64::from(spare));
            attributes.buff_size = 64 + 8 * u32::from(credits) + longest + spare;
            let layout = Layout::of(&attributes).expect("sound");
            let (mut sender, mut receiver) = (Sender::new(layout), Receiver::new(layout));
            let mut inside: VecDeque<(u64, u64, u64)> = VecDeque::new();
            for (send, length) in steps {
                let length = length % u64::from(longest + 1);
                if let Some(slot) = sender.find(length).filter(|_| send) {
                    let (number, address) = (slot.number, slot.address);
                    sender.put(slot);
                    prop_assert!(inside.len() < usize::from(credits));
                    prop_assert!(address >= layout.bytes && address + length <= layout.bytes + layout.room);
                    // One without bytes may lie anywhere.
                    for (_, other, len) in inside.iter().filter(|(_, _, len)| *len > 0 && length > 0) {
                        prop_assert!(address + length <= *other || other + len <= address);
                    }
                    inside.push_back((number, address, length));
                } else if let Some((number, address, length)) = inside.pop_front() {
                    let word = Word { number: number as u32, length: length as u16, tag: 1 };
                    prop_assert_eq!(receiver.see(word.encode()), Ok(Some(Arrival { address, length, tag: 1 })));
                    prop_assert!(receiver.release().is_some());
                    prop_assert_eq!(sender.see_credit(receiver.released()), Ok(()));
                }
                prop_assert!(!inside.is_empty() || sender.find(longest.into()).is_some(), "never stuck");
            }
        }

        #[test]
        fn any_word_is_a_message_inside_or_none(word: u64, released in 0..20u64) {
            let layout = Layout::of(&attributes(4, 64, 4096)).expect("sound");
            let mut receiver = Receiver { released, ..Receiver::new(layout) };
            if let Ok(Some(message)) = receiver.see(word) {
                prop_assert!(message.address >= layout.bytes && message.address <= layout.bytes + layout.room - 64);
            }
        }
    }
}
