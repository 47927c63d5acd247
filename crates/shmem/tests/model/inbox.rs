//! [`Inbox`] against a list of messages, and its limits exactly.

use crate::{CALLS, Ring, Room, bytes_of, config};
use gasworks_shmem::inbox::{
    Block, Control, Cursor, Damage, Inbox, MAX_HEAD, MAX_INLINE, Message, Payload, Slot,
};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::racy;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Where the payload to send lies.
#[derive(Clone, Copy, Debug)]
enum Source {
    Words,
    Bytes,
    Block,
}

#[derive(Clone, Debug)]
enum Call {
    Reserve(u32),
    Cancel,
    /// `word`: the head begins with one that is given apart from the rest.
    Send {
        from: u16,
        word: Option<u64>,
        rest: usize,
        payload: usize,
        source: Source,
    },
    Take,
    TakeLine(usize),
    Arm,
}

/// A message that was sent.
#[derive(Debug, PartialEq)]
struct Sent {
    from: u16,
    head: Vec<u8>,
    inline: Vec<u8>,
    block: Option<Block>,
}

impl Sent {
    fn fits_a_line(&self, senders: usize) -> bool {
        let payload = if self.block.is_some() { 1 } else { self.inline.len().div_ceil(8) };
        self.head.len().div_ceil(8) + payload <= 7 && usize::from(self.from) < senders
    }
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let send = (
        any::<u16>(),
        any::<Option<u64>>(),
        0..=MAX_HEAD - 8,
        0..=MAX_INLINE,
        prop_oneof![Just(Source::Words), Just(Source::Bytes), Just(Source::Block)],
    );
    let send = send.prop_map(|(from, word, rest, payload, source)| {
        let rest = if word.is_some() { rest } else { rest + 8 };
        Call::Send { from, word, rest, payload, source }
    });
    // Many of the heads and payloads that lie in one line, and around its end.
    let short = (any::<u16>(), any::<Option<u64>>(), 0..=40usize, 0..=24usize, any::<bool>());
    let short = short.prop_map(|(from, word, rest, payload, bytes)| {
        let source = if bytes { Source::Bytes } else { Source::Words };
        Call::Send { from, word, rest, payload, source }
    });
    let call = prop_oneof![
        (0u32..5).prop_map(Call::Reserve),
        Just(Call::Cancel),
        send,
        short,
        Just(Call::Take),
        (0..=1usize << 16).prop_map(Call::TakeLine),
        Just(Call::TakeLine(1 << 16)),
        Just(Call::Arm),
    ];
    prop::collection::vec(call, 0..2 * CALLS)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn inbox(size in 0u32..5, calls in calls()) {
        let ring = Ring::new(1 << size);
        let inbox = ring.view();
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        let (mut room, mut claims, mut queued) = (Room::new(1 << size, 0), 0, VecDeque::new());
        let mut armed = false;
        let words: Vec<_> = (0..MAX_INLINE / 8).map(|_| AtomicU64::new(0)).collect();
        for call in calls {
            match call {
                Call::Reserve(wanted) => {
                    let granted = inbox.reserve(wanted);
                    prop_assert_eq!(granted, room.reserve(wanted));
                    claims += granted.unwrap_or(0);
                }
                Call::Cancel if claims > 0 => {
                    inbox.cancel(1);
                    (claims, room.claimed) = (claims - 1, room.claimed - 1);
                }
                Call::Send { from, word, rest, payload, source } if claims > 0 => {
                    claims -= 1;
                    let rest: Vec<u8> = (0..rest).map(|at| at as u8 ^ from as u8).collect();
                    let bytes: Vec<u8> = (0..payload).map(|at| at as u8 ^ !from as u8).collect();
                    racy::store_words(&words, &bytes);
                    let block = Block { index: from.into(), len: !(payload as u32) };
                    let payload = match source {
                        Source::Words => Payload::Inline { words: &words, len: payload },
                        Source::Bytes => Payload::Bytes(&bytes),
                        Source::Block => Payload::Block(block),
                    };
                    let wakes = match word {
                        Some(word) => inbox.send_words(from, [word], &rest, payload),
                        None => inbox.send(from, &rest, payload),
                    };
                    prop_assert_eq!(wakes, std::mem::take(&mut armed));
                    let head = word.map_or(Vec::new(), |word| word.to_le_bytes().into());
                    let (inline, block) = match source {
                        Source::Block => (Vec::new(), Some(block)),
                        _ => (bytes, None),
                    };
                    queued.push_back(Sent { from, head: [head, rest].concat(), inline, block });
                }
                Call::Take => {
                    let got = inbox.take(&mut cursor, &mut message).expect("no damage");
                    let expected = queued.pop_front();
                    prop_assert_eq!(got, expected.is_some());
                    if let Some(expected) = expected {
                        room.taken += 1;
                        let (head, inline) = (message.head().to_vec(), bytes_of(message.inline()));
                        let found = Sent { from: message.from, head, inline, block: message.block };
                        prop_assert_eq!(found, expected);
                    }
                }
                Call::TakeLine(senders) => {
                    let expected = queued.pop_front_if(|sent: &mut Sent| sent.fits_a_line(senders));
                    let got = inbox.take_line(&mut cursor, senders);
                    prop_assert_eq!(got.is_some(), expected.is_some());
                    if let Some((mut line, expected)) = got.zip(expected) {
                        room.taken += 1;
                        let (from, block) = (line.from, line.names_block.then(|| line.block()));
                        let (head, payload) = line.parts();
                        let inline = if block.is_some() { Vec::new() } else { payload.to_vec() };
                        let found = Sent { from, head: head.into(), inline, block };
                        prop_assert_eq!(found, expected);
                    }
                }
                Call::Arm => {
                    prop_assert_eq!(inbox.arm(&cursor), queued.is_empty());
                    armed = true;
                }
                _ => {}
            }
            prop_assert_eq!(cursor.next(), room.taken);
            // SAFETY: the queue is read by this cursor alone.
            prop_assert_eq!((unsafe { inbox.is_empty(cursor.mark()) }, inbox.waits(&cursor)), (queued.is_empty(), !queued.is_empty()));
            let [claimed, _, consumed] = inbox.indices().map(|index| index.load(Relaxed));
            prop_assert_eq!((claimed, consumed), (room.claimed, room.consumed()));
        }
    }

    /// Whatever a peer writes into a slot, the receiver gets an error, nothing, or a message within bounds, and
    /// comes to the messages behind it.
    #[test]
    fn inbox_survives_any_slot(garbage in prop::collection::vec(any::<u64>(), 32), first in any::<u64>()) {
        let ring = Ring::new(2);
        let inbox = ring.view();
        for flag in [first, first & 0xffff_ffff, first & 0xffff_ffff | 1 << 32, first & 0xffff_ffff | 2 << 32] {
            ring.slots[0].words().iter().zip(&garbage).for_each(|(word, &value)| word.store(value, Relaxed));
            ring.slots[0].words()[0].store(flag, Relaxed);
            let (mut cursor, mut message) = (Cursor::default(), Message::new());
            if let Some(mut line) = inbox.take_line(&mut Cursor::default(), 9) {
                prop_assert!(flag >> 32 == 1 && line.from < 9);
                let named = line.block();
                let (head, payload) = line.parts();
                prop_assert!(head.len() + payload.len() <= 56);
                if head.len() > 48 {
                    prop_assert_eq!(named, Block { index: u32::MAX, len: u32::MAX });
                }
            }
            match inbox.take(&mut cursor, &mut message) {
                Ok(true) => {
                    prop_assert_eq!(flag >> 32, 1);
                    prop_assert!(message.head().len() <= MAX_HEAD && message.inline().1 <= MAX_INLINE);
                }
                Ok(false) => prop_assert_eq!(flag >> 32, 0),
                Err(Damage::Lap { slot: 0, found, expected: 1 }) => prop_assert_eq!(u64::from(found), flag >> 32),
                Err(Damage::Length { slot: 0, head, inline }) => {
                    prop_assert!(head > MAX_HEAD || inline > MAX_INLINE);
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}

#[test]
fn a_ring_is_a_power_of_two() {
    let (control, slots) = (Control::new(), [(); 4].map(|()| Slot::new()));
    for (count, fits) in [(0, false), (1, true), (2, true), (3, false), (4, true)] {
        let inbox = Inbox::new(&control, &slots[..count]);
        assert_eq!(inbox.map(|inbox| inbox.slots().len()), fits.then_some(count));
    }
    let inbox = Inbox::new(&control, &slots[..2]).expect("a power of two");
    assert!(std::ptr::eq(inbox.slots(), &raw const slots[..2]));
}

#[test]
fn a_message_takes_little_more_than_its_slot() {
    assert_eq!((size_of::<Slot>(), MAX_HEAD + MAX_INLINE), (256, 248));
    assert!(size_of::<Message>() <= size_of::<Slot>() + 16);
}

/// The greatest lengths fit beside each other, and one byte more is refused.
#[test]
fn lengths_are_exact_for_who_sends() {
    let ring = Ring::new(1);
    let (head, payload) = ([1; MAX_HEAD + 1], [2; MAX_INLINE + 1]);
    let words = [(); MAX_INLINE / 8 + 1].map(|()| AtomicU64::new(0x0202_0202_0202_0202));
    let refused = |send: &dyn Fn(Inbox<'_>) -> bool| {
        catch_unwind(AssertUnwindSafe(|| send(ring.view()))).expect_err("it is too long")
    };
    refused(&|inbox| inbox.send(0, &head, Payload::NONE));
    refused(&|inbox| inbox.send_words(0, [1], &head[..MAX_HEAD - 7], Payload::NONE));
    let (mut cursor, mut message) = (Cursor::default(), Message::new());
    for payload in
        [Payload::Bytes(&payload[..MAX_INLINE]), Payload::Inline { words: &words, len: MAX_INLINE }]
    {
        assert!(!ring.view().send(9, &head[..MAX_HEAD], payload));
        assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
        assert_eq!((message.head(), bytes_of(message.inline())), (&head[..MAX_HEAD], vec![2; MAX_INLINE]));
        assert!(!ring.view().send_words(9, [u64::from_le_bytes([1; 8])], &head[..MAX_HEAD - 8], payload));
        assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
        assert_eq!((message.head(), bytes_of(message.inline())), (&head[..MAX_HEAD], vec![2; MAX_INLINE]));
    }
    refused(&|inbox| inbox.send(0, &[], Payload::Bytes(&payload)));
    refused(&|inbox| inbox.send(0, &[], Payload::Inline { words: &words, len: MAX_INLINE + 1 }));
    refused(&|inbox| inbox.send(0, &[], Payload::Inline { words: &words[..2], len: 17 }));
    // Nothing was sent by those, and nobody waits for it.
    assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(false));
    assert!(!ring.view().send(9, b"goes on", Payload::NONE));
    assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
    assert_eq!(message.head(), b"goes on");
}

/// What the flag says of a message: its lap, sender, lengths, and whether a block follows the head.
fn flag(from: u16, head: u8, inline: u8, block: bool) -> u64 {
    1 << 32 | u64::from(from) << 16 | u64::from(block) << 15 | u64::from(head) << 8 | u64::from(inline)
}

/// Takes the message with this flag, from the first slot of two.
fn take_flagged(flag: u64) -> Result<Message, Damage> {
    let ring = Ring::new(2);
    ring.slots[0].words()[0].store(flag, Relaxed);
    let (mut cursor, mut message) = (Cursor::default(), Message::new());
    let taken = ring.view().take(&mut cursor, &mut message);
    assert_eq!(cursor.next(), 1, "it was passed over, damaged or not");
    taken.map(|taken| {
        assert!(taken);
        message
    })
}

#[test]
fn lengths_are_exact_for_who_takes() {
    let (most_head, most_inline) = (MAX_HEAD as u8, MAX_INLINE as u8);
    let message = take_flagged(flag(u16::MAX, most_head, most_inline, false)).expect("no damage");
    assert_eq!((message.from, message.head().len()), (u16::MAX, MAX_HEAD));
    assert_eq!((message.inline().0.len(), message.inline().1), (MAX_INLINE / 8, MAX_INLINE));
    assert_eq!(message.block, None);
    let message = take_flagged(flag(7, most_head, most_inline, true)).expect("no damage");
    assert_eq!((message.block, message.inline().1), (Some(Block { index: 0, len: 0 }), 0));
    for (head, inline) in [(most_head + 1, 0), (0x7f, most_inline), (0, most_inline + 1), (most_head, 0xff)] {
        let damage = Damage::Length { slot: 0, head: head.into(), inline: inline.into() };
        assert_eq!(take_flagged(flag(0, head, inline, false)).err(), Some(damage));
    }
    for lap in [2, 3, u32::MAX] {
        let damage = Damage::Lap { slot: 0, found: lap, expected: 1 };
        assert_eq!(take_flagged(u64::from(lap) << 32).err(), Some(damage));
    }
}

#[test]
fn a_line_is_taken_up_to_its_last_word() {
    for (head, payload, fits) in [
        (56, 0, true),
        (57, 0, false),
        (48, 8, true),
        (49, 8, false),
        (48, 9, false),
        (0, 56, true),
        (1, 49, false),
    ] {
        let ring = Ring::new(1);
        assert!(!ring.view().send(4, &[1; MAX_HEAD][..head], Payload::Bytes(&[2; MAX_INLINE][..payload])));
        assert!(ring.view().take_line(&mut Cursor::default(), 4).is_none(), "its sender is no rank");
        let line = ring.view().take_line(&mut Cursor::default(), 5);
        let parts = line.map(|mut line| {
            let (head, payload) = line.parts();
            (head.to_vec(), payload.to_vec())
        });
        assert_eq!(parts, fits.then(|| (vec![1; head], vec![2; payload])), "{head} {payload}");
    }
    for (head, fits) in [(0, true), (48, true), (49, false)] {
        let (ring, block) = (Ring::new(1), Block { index: 1, len: 2 });
        assert!(!ring.view().send(4, &[1; MAX_HEAD][..head], Payload::Block(block)));
        let line = ring.view().take_line(&mut Cursor::default(), 5);
        let named = line.map(|mut line| (line.names_block, line.block(), line.parts().0.to_vec()));
        assert_eq!(named, fits.then(|| (true, block, vec![1; head])), "{head}");
    }
}
