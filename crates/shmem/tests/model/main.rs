//! Sequences of calls against plain models. What is generic over the thread mode is run in each.
#![cfg(not(gasworks_loom))]

mod blocks;
mod board;
mod credit;
#[allow(unsafe_code)]
mod inbox;
mod queues;

use gasworks_shmem::inbox::{Control, Full, Inbox, Slot};
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::racy;
use proptest::prelude::ProptestConfig;

/// How many calls are made in a row.
const CALLS: usize = if cfg!(miri) { 15 } else { 100 };

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 2 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

struct Ring {
    control: Control,
    slots: Box<[Slot]>,
}

impl Ring {
    fn new(slots: usize) -> Self {
        Self { control: Control::new(), slots: (0..slots).map(|_| Slot::new()).collect() }
    }
    fn view(&self) -> Inbox<'_> {
        Inbox::new(&self.control, &self.slots).expect("a power of two")
    }
}

/// The bytes that came with a message in its slot.
fn bytes_of((words, len): (&[AtomicU64], usize)) -> Vec<u8> {
    let mut bytes = vec![0; len];
    racy::load_words(words, &mut bytes);
    bytes
}

/// The room in a queue, in plain numbers.
struct Room {
    slots: u64,
    /// How many messages were claimed and not cancelled, and how many were taken.
    claimed: u64,
    taken: u64,
    /// The claims that one sender has at hand, and how many it makes at a time.
    left: u32,
    batch: u32,
}

impl Room {
    fn new(slots: usize, batch: u32) -> Self {
        Self { slots: slots as u64, claimed: 0, taken: 0, left: 0, batch }
    }

    /// How many of the messages taken senders know of: the receiver tells them in quarters of the ring.
    fn consumed(&self) -> u64 {
        let quarter = (self.slots / 4).max(1);
        self.taken / quarter * quarter
    }

    fn reserve(&mut self, wanted: u32) -> Result<u32, Full> {
        let used = self.claimed - self.consumed();
        if used == self.slots {
            return Err(Full);
        }
        let leaves_half = used + u64::from(wanted) <= self.slots / 2;
        let granted = if leaves_half { wanted.max(1) } else { 1 };
        self.claimed += u64::from(granted);
        Ok(granted)
    }

    /// What [`Claims::take`](gasworks_shmem::inbox::Claims::take) should do.
    fn claim(&mut self) -> Result<(), Full> {
        self.left = match self.left {
            0 => self.reserve(self.batch)?,
            left => left,
        } - 1;
        Ok(())
    }
}
