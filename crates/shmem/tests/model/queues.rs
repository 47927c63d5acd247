//! [`Claims`] and [`Queues`] against plain numbers and lists, in every thread mode.

use crate::{CALLS, Ring, Room, bytes_of, config};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Claims, Cursor, MAX_HEAD, MAX_INLINE, Message, Payload};
use gasworks_shmem::queues::{NoLine, Queue, Queues, Seat};
use gasworks_shmem::ranks::Ranks;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_sync::{Mode, Par, ParSync, Seq};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Claim {
    Take,
    /// What is done with a claim: it goes back, or a message is sent.
    Cancel,
    Send,
    /// The receiver takes a message.
    Receive,
}

fn claims_are_counted<M: Mode>(size: u32, batch: u32, calls: &[Claim]) -> Result<(), TestCaseError> {
    let (ring, claims) = (Ring::new(1 << size), Claims::<M>::new(batch));
    let (mut cursor, mut message) = (Cursor::default(), Message::new());
    let (mut room, mut held, mut queued) = (Room::new(1 << size, batch), 0, 0);
    for call in calls {
        match call {
            Claim::Take => {
                let taken = claims.take(ring.view());
                prop_assert_eq!(taken, room.claim());
                held += u32::from(taken.is_ok());
            }
            Claim::Cancel if held > 0 => {
                ring.view().cancel(1);
                (held, room.claimed) = (held - 1, room.claimed - 1);
            }
            Claim::Send if held > 0 => {
                prop_assert!(!ring.view().send(0, &[1; 8], Payload::NONE));
                (held, queued) = (held - 1, queued + 1);
            }
            Claim::Receive if queued > 0 => {
                prop_assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
                (room.taken, queued) = (room.taken + 1, queued - 1);
            }
            _ => {}
        }
        let [claimed, placed, consumed] = ring.view().indices().map(|index| index.load(Relaxed));
        prop_assert_eq!((claimed, consumed), (room.claimed, room.consumed()));
        prop_assert_eq!(
            u64::from(room.left) + u64::from(held) + placed,
            claimed,
            "claims at hand, used, and sent"
        );
    }
    Ok(())
}

/// What there is of each rank.
struct Desk {
    requests: Ring,
    replies: Ring,
    bell: Doorbell,
}

impl Desk {
    fn new(size: usize) -> Self {
        Self { requests: Ring::new(size), replies: Ring::new(size), bell: Doorbell::new() }
    }
    fn seat(&self) -> Seat<'_> {
        Seat { requests: self.requests.view(), replies: self.replies.view(), bell: &self.bell }
    }
}

fn queues<M: Mode>(desks: &[Desk], me: u32, batch: u32) -> Queues<'_, M> {
    let ranks = Ranks::new(&(0..desks.len() as u32).collect::<Vec<_>>()).expect("they rise");
    Queues::new(me, ranks, desks.iter().map(Desk::seat), batch).expect("a rank")
}

#[derive(Clone, Debug)]
struct Sent {
    word: u64,
    rest: Vec<u8>,
    payload: Vec<u8>,
}

impl Sent {
    fn head(&self) -> Vec<u8> {
        [&self.word.to_le_bytes()[..], &self.rest].concat()
    }
    fn fits_a_line(&self) -> bool {
        1 + self.rest.len().div_ceil(8) + self.payload.len().div_ceil(8) <= 7
    }
}

#[derive(Clone, Debug)]
enum Call {
    Post(Queue, Sent),
    Claim,
    Cancel,
    /// With a claim if it is a request; `parts`: the head's word is given apart.
    Send {
        queue: Queue,
        sent: Sent,
        parts: bool,
    },
    Take,
    TakeLine,
    Arm,
}

/// A rank with a queue each of requests and replies, and another that sends to it.
struct World {
    room: Room,
    held: u32,
    requests: VecDeque<Sent>,
    replies: VecDeque<Sent>,
    /// Whether the receiver has asked to be woken by the next of each.
    armed: [bool; 2],
}

impl World {
    /// Enters a message that was sent; whether the receiver must be woken.
    fn enter(&mut self, queue: Queue, sent: Sent) -> bool {
        match queue {
            Queue::Requests => self.requests.push_back(sent),
            Queue::Replies => self.replies.push_back(sent),
        }
        std::mem::take(&mut self.armed[queue as usize])
    }

    /// Where the next message is.
    fn next(&mut self) -> Option<(Queue, &mut VecDeque<Sent>)> {
        if !self.replies.is_empty() {
            Some((Queue::Replies, &mut self.replies))
        } else if !self.requests.is_empty() {
            Some((Queue::Requests, &mut self.requests))
        } else {
            None
        }
    }

    fn take(&mut self) -> Option<(Queue, Sent)> {
        let (queue, list) = self.next()?;
        let sent = list.pop_front()?;
        self.room.taken += u64::from(queue == Queue::Requests);
        Some((queue, sent))
    }
}

fn queues_follow_their_lists<M: Mode>(size: usize, batch: u32, calls: &[Call]) -> Result<(), TestCaseError> {
    let desks = [Desk::new(size), Desk::new(size)];
    let (receiver, sender) = (queues::<M>(&desks, 0, batch), queues::<M>(&desks, 1, batch));
    let room = Room::new(size, batch);
    let (requests, replies) = (VecDeque::new(), VecDeque::new());
    let mut world = World { room, held: 0, requests, replies, armed: [false; 2] };
    let mut message = Message::new();
    for call in calls {
        match call.clone() {
            // A reply has room by the request that it answers.
            Call::Post(Queue::Replies, _) | Call::Send { queue: Queue::Replies, .. }
                if world.replies.len() == size => {}
            Call::Post(queue, sent) => {
                let room = if queue == Queue::Requests { world.room.claim() } else { Ok(()) };
                let posted = sender.post(0, queue, sent.word, &sent.rest, &sent.payload);
                prop_assert_eq!(posted, room.map(|()| world.enter(queue, sent)));
            }
            Call::Claim => {
                let claimed = sender.claim(0);
                prop_assert_eq!(claimed, world.room.claim());
                world.held += u32::from(claimed.is_ok());
            }
            Call::Cancel if world.held > 0 => {
                sender.cancel(0);
                (world.held, world.room.claimed) = (world.held - 1, world.room.claimed - 1);
            }
            Call::Send { queue, sent, parts } if queue == Queue::Replies || world.held > 0 => {
                world.held -= u32::from(queue == Queue::Requests);
                let payload = Payload::Bytes(&sent.payload);
                let wakes = match parts {
                    true => sender.send_words(0, queue, [sent.word], &sent.rest, payload),
                    false => sender.send(0, queue, &sent.head(), payload),
                };
                prop_assert_eq!(wakes, world.enter(queue, sent));
            }
            Call::Take => {
                let expected = world.take();
                let taken = receiver.take(&mut message);
                prop_assert_eq!(taken, Ok(expected.as_ref().map(|&(queue, _)| queue)));
                if let Some((_, sent)) = expected {
                    prop_assert_eq!(message.from, 1);
                    prop_assert_eq!(message.head().to_vec(), sent.head());
                    prop_assert_eq!(bytes_of(message.inline()), sent.payload);
                }
            }
            Call::TakeLine => {
                let fits = world.next().is_none_or(|(_, list)| list[0].fits_a_line());
                let taken = receiver.take_line();
                prop_assert_eq!(taken.as_ref().err(), (!fits).then_some(&NoLine));
                if let Ok(line) = taken {
                    let expected = world.take();
                    prop_assert_eq!(line.is_some(), expected.is_some());
                    if let Some((mut line, (_, sent))) = line.zip(expected) {
                        prop_assert_eq!(line.from, 1);
                        let (head, payload) = line.parts();
                        prop_assert_eq!((head.to_vec(), payload.to_vec()), (sent.head(), sent.payload));
                    }
                }
            }
            Call::Arm => {
                prop_assert_eq!(receiver.arm(), world.next().is_none());
                world.armed = [true; 2];
            }
            _ => {}
        }
        prop_assert_eq!(receiver.is_idle(), world.next().is_none());
        prop_assert!(sender.is_idle(), "what is for another rank");
        let [claimed, _, consumed] = desks[0].requests.view().indices().map(|index| index.load(Relaxed));
        prop_assert_eq!((claimed, consumed), (world.room.claimed, world.room.consumed()));
    }
    Ok(())
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let bytes = |most: usize| prop::collection::vec(any::<u8>(), 0..=most);
    let sent = |rest, payload| {
        (any::<u64>(), bytes(rest), bytes(payload)).prop_map(|(word, rest, payload)| Sent {
            word,
            rest,
            payload,
        })
    };
    let sent = prop_oneof![3 => sent(24, 24), 1 => sent(MAX_HEAD - 8, MAX_INLINE)].boxed();
    let queue = || prop_oneof![Just(Queue::Requests), Just(Queue::Replies)];
    let call = prop_oneof![
        4 => (queue(), sent.clone()).prop_map(|(queue, sent)| Call::Post(queue, sent)),
        1 => Just(Call::Claim),
        1 => Just(Call::Cancel),
        2 => (queue(), sent, any::<bool>()).prop_map(|(queue, sent, parts)| Call::Send { queue, sent, parts }),
        2 => Just(Call::Take),
        3 => Just(Call::TakeLine),
        1 => Just(Call::Arm),
    ];
    prop::collection::vec(call, 0..CALLS)
}

fn claim_calls() -> impl Strategy<Value = Vec<Claim>> {
    let call = prop_oneof![
        4 => Just(Claim::Take),
        1 => Just(Claim::Cancel),
        3 => Just(Claim::Send),
        2 => Just(Claim::Receive),
    ];
    prop::collection::vec(call, 0..2 * CALLS)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn claims(size in 0u32..6, batch in 0u32..9, calls in claim_calls()) {
        claims_are_counted::<Seq>(size, batch, &calls)?;
        claims_are_counted::<ParSync>(size, batch, &calls)?;
        claims_are_counted::<Par>(size, batch, &calls)?;
    }

    #[test]
    fn queues_of_two_ranks(size in 0u32..5, batch in 1u32..5, calls in calls()) {
        queues_follow_their_lists::<Seq>(1 << size, batch, &calls)?;
        queues_follow_their_lists::<ParSync>(1 << size, batch, &calls)?;
        queues_follow_their_lists::<Par>(1 << size, batch, &calls)?;
    }
}

/// Whether there are queues for rank `me` among these, with so many seats.
fn are_queues(me: u32, ranks: &[u32], seats: usize) -> bool {
    let desk = Desk::new(1);
    let ranks = Ranks::new(ranks).expect("they rise");
    Queues::<Seq>::new(me, ranks, (0..seats).map(|_| desk.seat()), 1).is_some()
}

#[test]
fn queues_are_those_of_all_ranks_to_one_of_them() {
    for (me, are) in [(3, false), (4, true), (5, true), (6, false), (u32::MAX, false)] {
        assert_eq!(are_queues(me, &[4, 5], 2), are, "rank {me}");
    }
    for (seats, are) in [(0, false), (1, false), (2, true), (3, false)] {
        assert_eq!(are_queues(4, &[4, 5], seats), are, "{seats} seats");
    }
}

#[test]
fn queues_are_of_as_many_ranks_as_a_message_can_name() {
    if cfg!(miri) {
        return;
    }
    let all: Vec<u32> = (0..=1 << 16).collect();
    assert!(are_queues(0, &all[..1 << 16], 1 << 16));
    assert!(!are_queues(0, &all, (1 << 16) + 1));
}
