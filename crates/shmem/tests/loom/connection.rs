//! What connected endpoints are made of, put together as `crates/cci` does: rings with one sender each, whose receiver is asleep or finds them by their bits; acknowledgements; a
//! flag behind the last message; a table that its owner alone can write.

use super::{Ring, message, model, sleeps_on, take};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::entry;
use gasworks_shmem::eventcount::EventCount;
use gasworks_shmem::flag::Flag;
use gasworks_shmem::inbox::{Cursor, Message, Payload};
use gasworks_shmem::ready::Ready;
use gasworks_sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use gasworks_sync::spin;
use loom::sync::Arc;
use loom::thread;

/// A receiver of two queues, whose bits are in one word.
struct Receiver {
    bell: Doorbell,
    summary: [AtomicU64; 1],
    words: [AtomicU64; 1],
    rings: [Ring; 2],
}

impl Receiver {
    fn new() -> Self {
        let [summary, words] = [(); 2].map(|()| [AtomicU64::new(0)]);
        Self { bell: Doorbell::new(), summary, words, rings: [Ring::of(1), Ring::of(1)] }
    }

    fn ready(&self) -> Ready<'_> {
        Ready::new(&self.summary, &self.words).expect("a bit for the word")
    }

    /// What a sender does: `Channel::send` and `Wakeups::signal`.
    fn send(&self, queue: usize) {
        if self.rings[queue].view().send(0, &message(1), Payload::NONE) {
            self.ready().set(queue);
            let _ = self.bell.ring();
        }
    }

    /// Takes all bits that are set; each has its message behind it. How many there were.
    fn take(&self, cursors: &mut [Cursor; 2], taken: &mut Message) -> usize {
        let mut count = 0;
        while let Some((0, bits)) = self.ready().take(0) {
            for queue in (0..2).filter(|queue| bits >> queue & 1 == 1) {
                let found = self.rings[queue].view().take(&mut cursors[queue], taken);
                assert_eq!(found, Ok(true), "the bit was there before its message");
                count += 1;
            }
        }
        count
    }
}

/// The sender was asked long before the receiver goes to sleep, so that nothing but the bits and the bell is between them.
#[test]
fn ready_receiver_does_not_sleep_through_a_bit() {
    model(|| {
        let shared = Arc::new(Receiver::new());
        assert!(shared.rings[0].view().arm(&Cursor::default()));
        let other = shared.clone();
        let sender = thread::spawn(move || other.send(0));
        let ticket = shared.bell.ticket();
        let asleep = shared.ready().may_sleep().then_some(ticket);
        sender.join().expect("the sender");
        assert!(!sleeps_on(&shared.bell, asleep), "a bit is set, and it sleeps on");
        assert_eq!(shared.take(&mut Default::default(), &mut Message::new()), 1);
    });
}

/// The receiver arms a queue that it has looked at directly until now, and sleeps: `Endpoint::prepare_to_sleep`.
#[test]
fn ready_receiver_does_not_sleep_through_a_message() {
    model(|| {
        let shared = Arc::new(Receiver::new());
        let senders = [0, 1].map(|queue| {
            let shared = shared.clone();
            thread::spawn(move || shared.send(queue))
        });
        let mut cursors = <[Cursor; 2]>::default();
        let ticket = shared.bell.ticket();
        let is_idle = [0, 1].map(|queue| shared.rings[queue].view().arm(&cursors[queue]));
        let asleep = (is_idle == [true, true] && shared.ready().may_sleep()).then_some(ticket);
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
        assert!(!sleeps_on(&shared.bell, asleep), "messages came, and it sleeps on");
        // Whose message came before it was asked is known to have one, and the others say so.
        let announced = shared.take(&mut cursors, &mut Message::new());
        assert_eq!(announced, is_idle.iter().filter(|is_idle| **is_idle).count());
    });
}

/// Two senders set bits of one word while the receiver takes them: each message is found by a bit.
#[test]
fn ready_bits_of_one_word_are_not_lost() {
    model(|| {
        let shared = Arc::new(Receiver::new());
        let mut cursors = <[Cursor; 2]>::default();
        for queue in [0, 1] {
            assert!(shared.rings[queue].view().arm(&cursors[queue]));
        }
        let senders = [0, 1].map(|queue| {
            let shared = shared.clone();
            thread::spawn(move || shared.send(queue))
        });
        let mut taken = Message::new();
        let early = shared.take(&mut cursors, &mut taken);
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
        assert_eq!(early + shared.take(&mut cursors, &mut taken), 2, "a message lies there unseen");
        assert!(shared.ready().may_sleep());
    });
}

/// As `Channel::acknowledge` and `Channel::arm_acknowledgement`: the receiver publishes what it has taken and counts that, the sender asks and looks at what was taken.
#[test]
fn eventcount_nobody_sleeps_through_an_acknowledgement() {
    model(|| {
        let shared = Arc::new((Receiver::new(), EventCount::new()));
        shared.0.send(0);
        let other = shared.clone();
        let taker = thread::spawn(move || {
            let (Receiver { rings: [ring, _], bell, .. }, taken) = &*other;
            let mut cursor = Cursor::default();
            assert_eq!(ring.view().take(&mut cursor, &mut Message::new()), Ok(true));
            ring.view().publish(&mut cursor);
            if taken.count().wanted {
                taken.disarm();
                let _ = bell.ring();
            }
        });
        let (receiver, taken) = &*shared;
        let ticket = receiver.bell.ticket();
        let _ = taken.arm();
        let asleep = (receiver.rings[0].view().consumed() == 0).then_some(ticket);
        taker.join().expect("the taker");
        assert!(!sleeps_on(&receiver.bell, asleep), "it was acknowledged, and the sender sleeps on");
    });
}

/// A sender that counts its messages itself writes a slot only when the last message was copied out of it: `Channel::has_room`.
#[test]
fn inbox_slots_that_were_taken_are_written_again() {
    model(|| {
        let ring = Ring::new(1);
        let other = ring.clone();
        let sender = thread::spawn(move || {
            for sent in [0, 1] {
                while other.view().taken_of_one_sender() < sent {
                    spin();
                }
                let _ = other.view().send(0, &message(sent as u8), Payload::NONE);
            }
        });
        let (mut cursor, mut taken) = (Cursor::default(), Message::new());
        assert_eq!([0, 1].map(|_| take(ring.view(), &mut cursor, &mut taken)), [0, 1]);
        sender.join().expect("the sender");
    });
}

/// Who finds that the peer has closed the connection, and then no message, has had them all: `Channel::is_over`.
#[test]
fn flag_comes_behind_the_last_message() {
    model(|| {
        let shared = Arc::new((Ring::of(1), Flag::new()));
        let other = shared.clone();
        let sender = thread::spawn(move || {
            let _ = other.0.view().send(0, &message(1), Payload::NONE);
            other.1.set();
        });
        if shared.1.is_set() {
            assert!(shared.0.view().waits(&Cursor::default()), "a message was lost");
        }
        sender.join().expect("the sender");
        assert!(shared.1.is_set());
    });
}

/// A reader of a table finds an entry as it was published, or none, also where its place is used again.
#[test]
fn entry_is_read_whole() {
    model(|| {
        let entry = Arc::new([0; 3].map(AtomicU64::new));
        entry::publish(&entry, 1, [10, 100]);
        let owner = entry.clone();
        let owning = thread::spawn(move || {
            entry::withdraw(&owner);
            entry::publish(&owner, 2, [20, 200]);
        });
        let found = entry::read(|at| entry.get(at).map(|word| word.load(Acquire)));
        assert!(matches!(found, None | Some((1, [10, 100]) | (2, [20, 200]))), "{found:?}");
        owning.join().expect("the owner");
        assert_eq!(entry::read(|at| Some(entry[at].load(Relaxed))), Some((2, [20, 200])));
    });
}
