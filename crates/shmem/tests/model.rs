//! Sequences of calls against plain models.
#![cfg(not(gasworks_loom))]

use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::credit::{Credits, Exhausted, MAX_RETURN, OverReturned, Owed};
use gasworks_shmem::inbox::{
    Block, Control, Cursor, Damage, Inbox, MAX_HEAD, MAX_INLINE, Message, Payload, Slot,
};
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, Seq, racy};
use proptest::prelude::*;
use std::collections::VecDeque;

const PEERS: u32 = 3;
/// How many calls are made in a row.
const CALLS: usize = if cfg!(miri) { 15 } else { 100 };

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 2 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// What [`Credits`] should do, in plain numbers.
struct Ledger {
    out: Vec<(u32, u64)>,
    limits: (u32, u32, u64),
}

impl Ledger {
    fn total(&self) -> u32 {
        self.out.iter().map(|out| out.0).sum()
    }
    fn take(&mut self, peer: u32, bytes: u32) -> Result<(), Exhausted> {
        let (depth, total, volume) = self.limits;
        let all = self.total();
        let (count, weight) = &mut self.out[peer as usize];
        // A total that all peers together cannot exceed is none.
        if all >= total && total < PEERS * depth {
            Err(Exhausted::Total)
        } else if *count >= depth {
            Err(Exhausted::Peer)
        } else if *weight + u64::from(bytes) > volume {
            Err(Exhausted::Volume)
        } else {
            *count += 1;
            *weight += u64::from(bytes);
            Ok(())
        }
    }
    fn give(&mut self, peer: u32, count: u32, bytes: u64) -> Result<(), OverReturned> {
        let (out_count, out_bytes) = self.out[peer as usize];
        if count > out_count || bytes > out_bytes {
            return Err(OverReturned { peer, count, bytes, out_count, out_bytes });
        }
        self.out[peer as usize] = (out_count - count, out_bytes - bytes);
        Ok(())
    }
}

fn credits_follow_the_ledger<M: Mode>(
    limits: (u32, u32, u64),
    calls: &[(bool, u32, u32, u64)],
) -> Result<(), TestCaseError> {
    let credits = Credits::<M>::for_mode(PEERS, limits.0, limits.1, limits.2);
    let mut ledger = Ledger { out: vec![(0, 0); PEERS as usize], limits };
    for &(take, peer, number, bytes) in calls {
        if take {
            prop_assert_eq!(credits.take(peer, bytes as u32), ledger.take(peer, bytes as u32));
        } else {
            prop_assert_eq!(credits.give(peer, number, bytes), ledger.give(peer, number, bytes));
        }
        prop_assert_eq!(credits.total_out(), ledger.total());
        prop_assert!((0..PEERS).all(|peer| credits.out(peer) == ledger.out[peer as usize]));
    }
    Ok(())
}

#[derive(Clone, Debug)]
enum Call {
    Reserve(u32),
    Cancel,
    Send { from: u16, head: usize, payload: usize, block: bool },
    Take,
    TakeLine(usize),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        (0u32..5).prop_map(Call::Reserve),
        Just(Call::Cancel),
        (any::<u16>(), 0..=MAX_HEAD, 0..=MAX_INLINE, any::<bool>())
            .prop_map(|(from, head, payload, block)| Call::Send { from, head, payload, block }),
        Just(Call::Take),
        (0..=1usize << 16).prop_map(Call::TakeLine),
        Just(Call::TakeLine(1 << 16)),
    ];
    prop::collection::vec(call, 0..2 * CALLS)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn credits(
        limits in (1u32..5, 1u32..14, 1u64..300),
        calls in prop::collection::vec((any::<bool>(), 0..PEERS, 0u32..4, 0u64..120), 0..CALLS),
    ) {
        credits_follow_the_ledger::<Seq>(limits, &calls)?;
        credits_follow_the_ledger::<Par>(limits, &calls)?;
    }

    #[test]
    fn owed_loses_nothing(calls in prop::collection::vec((any::<bool>(), 0..PEERS, 0u32..400), 0..2 * CALLS)) {
        let owed = Owed::new(PEERS);
        let mut model = vec![(0u32, 0u64); PEERS as usize];
        for (owe, peer, number) in calls {
            let (count, bytes) = &mut model[peer as usize];
            if owe {
                *count += 1;
                *bytes += u64::from(number);
                prop_assert_eq!(owed.owe(peer, number), (*count, *bytes));
            } else {
                let (taken, weight) = owed.collect(peer, number);
                prop_assert_eq!(taken, (*count).min(number).min(MAX_RETURN));
                prop_assert_eq!(weight, if taken == 0 { 0 } else { *bytes });
                *count -= taken;
                *bytes -= weight;
            }
            for from in 0..PEERS {
                let next = (0..PEERS).map(|step| (from + step) % PEERS).find(|&peer| model[peer as usize].0 > 0);
                prop_assert_eq!(owed.next_owing(from), next);
            }
        }
    }

    #[test]
    fn blocks(alone in any::<bool>(), calls in prop::collection::vec((any::<bool>(), 0u32..6), 0..CALLS)) {
        let flags: Vec<_> = (0..6).map(|_| AtomicU32::new(0)).collect();
        let blocks = Blocks::new(&flags);
        let mut model = [false; 6];
        for (claim, number) in calls {
            if claim {
                let free = (number..6).find(|&index| !model[index as usize]);
                let claimed = if alone { blocks.claim_alone(number, 6) } else { blocks.claim(number, 6) };
                prop_assert_eq!(claimed, free);
                free.into_iter().for_each(|index| model[index as usize] = true);
            } else {
                blocks.free(number);
                model[number as usize] = false;
            }
            prop_assert_eq!(blocks.claimed(), model.iter().filter(|&&claimed| claimed).count());
        }
        prop_assert_eq!((blocks.claim(3, 7), blocks.claim_alone(3, 7)), (None, None));
    }

    #[test]
    fn inbox(size in 0u32..5, calls in calls()) {
        let slots: Vec<_> = (0..1 << size).map(|_| Slot::new()).collect();
        let control = Control::new();
        let inbox = Inbox::new(&control, &slots).expect("a power of two");
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        let (mut claims, mut queued, mut taken) = (0, VecDeque::new(), 0usize);
        let words: Vec<_> = (0..MAX_INLINE / 8).map(|_| AtomicU64::new(0)).collect();
        for call in calls {
            match call {
                Call::Reserve(wanted) => {
                    // The receiver publishes what it has taken in quarters of the ring.
                    let published = taken / (slots.len() / 4).max(1) * (slots.len() / 4).max(1);
                    let used = claims as usize + queued.len() + taken - published;
                    match inbox.reserve(wanted) {
                        Ok(granted) => {
                            let half = used + wanted as usize <= slots.len() / 2;
                            prop_assert_eq!(granted, if half { wanted.max(1) } else { 1 });
                            claims += granted;
                            prop_assert!(used + granted as usize <= slots.len());
                        }
                        Err(_) => prop_assert_eq!(used, slots.len()),
                    }
                }
                Call::Cancel if claims > 0 => {
                    inbox.cancel(1);
                    claims -= 1;
                }
                Call::Send { from, head, payload, block } if claims > 0 => {
                    claims -= 1;
                    let head: Vec<u8> = (0..head).map(|at| at as u8 ^ from as u8).collect();
                    let bytes: Vec<u8> = (0..payload).map(|at| at as u8 ^ !from as u8).collect();
                    racy::store_words(&words, &bytes);
                    let block = block.then_some(Block { index: from.into(), len: payload as u32 });
                    let inline = Payload::Inline { words: &words, len: payload };
                    let _ = inbox.send(from, &head, block.map_or(inline, Payload::Block));
                    queued.push_back((from, head, if block.is_some() { Vec::new() } else { bytes }, block));
                }
                Call::Take => {
                    prop_assert_eq!(inbox.is_empty(cursor.next()), queued.is_empty());
                    let got = inbox.take(&mut cursor, &mut message).expect("no damage");
                    let expected = queued.pop_front();
                    prop_assert_eq!(got, expected.is_some());
                    if let Some((from, head, bytes, block)) = expected {
                        taken += 1;
                        let (inline, len) = message.inline();
                        let mut found = vec![0; len];
                        racy::load_words(inline, &mut found);
                        prop_assert_eq!((message.from, message.head()), (from, &head[..]));
                        prop_assert_eq!((found, message.block), (bytes, block));
                    }
                }
                Call::TakeLine(senders) => {
                    let fits = |(from, head, bytes, block): &(u16, Vec<u8>, Vec<u8>, Option<Block>)| {
                        let words = head.len().div_ceil(8) + bytes.len().div_ceil(8);
                        block.is_none() && words <= 7 && usize::from(*from) < senders
                    };
                    let expected = queued.pop_front_if(|message| fits(message));
                    let got = inbox.take_line(&mut cursor, senders);
                    prop_assert_eq!(got.is_some(), expected.is_some());
                    if let Some((mut line, (from, head, bytes, _))) = got.zip(expected) {
                        taken += 1;
                        prop_assert_eq!(line.from, from);
                        let (found, payload) = line.parts();
                        prop_assert_eq!((found, &*payload), (&head[..], &bytes[..]));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whatever a peer writes into a slot, the receiver gets an error, nothing, or a message within bounds, and
    /// comes to the messages behind it.
    #[test]
    fn inbox_survives_any_slot(garbage in prop::collection::vec(any::<u64>(), 32), first in any::<u64>()) {
        let slots: Vec<_> = (0..2).map(|_| Slot::new()).collect();
        let control = Control::new();
        let inbox = Inbox::new(&control, &slots).expect("a power of two");
        for flag in [first, first & 0xffff_ffff, first & 0xffff_ffff | 1 << 32, first & 0xffff_ffff | 2 << 32] {
            slots[0].words().iter().zip(&garbage).for_each(|(word, &value)| word.store(value, Relaxed));
            slots[0].words()[0].store(flag, Relaxed);
            let (mut cursor, mut message) = (Cursor::default(), Message::new());
            if let Some(mut line) = inbox.take_line(&mut Cursor::default(), 9) {
                prop_assert!(flag >> 32 == 1 && line.from < 9);
                let (head, payload) = line.parts();
                prop_assert!(head.len() + payload.len() <= 56);
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
fn over_return_says_how_much_was_out() {
    let credits = Credits::new(2, 4, 4, 100);
    credits.take(1, 40).expect("the first");
    let error = credits.give(1, 2, 40).expect_err("too many");
    assert_eq!(error.to_string(), "rank 1 returned 2 credits and 40 bytes, but only 1 and 40 are out");
    assert_eq!(credits.out(1), (1, 40));
}
