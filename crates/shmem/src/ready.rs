//! Which of many queues of one receiver may have something: a bit for each, and a bit for each word of these.
//!
//! A receiver with thousands of queues finds those that have something by looking at the summary, which is two lines of cache whatever the number of queues. It looks at the few
//! that it has heard of lately directly, and asks the senders of the others to set their bits ([`EventCount`](crate::eventcount::EventCount)). So a sender whose queue
//! is looked at touches nothing here.
//!
//! # Protocol
//! - ready.1: a sender makes its message visible, sets its queue's bit, then the bit of the word that it is in. The receiver takes words in the other order,
//!   summary first, and looks at a queue after it has taken its bit. So a message is found after its bit was taken, or the bit is set again.
//! - ready.2: who sets a bit rings the receiver's bell afterwards. A receiver that wants to sleep takes a ticket first and asks [`Ready::may_sleep`] last (eventcount.1). Of the two,
//!   each behind a fence, one comes first: the sender finds the ticket, or the receiver the bit. The sender may have been asked long before that ticket.
//! - ready.3: bits are hints. Any of them may be set, and one that a hostile sender has taken away delays a message until the receiver looks without a hint.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::atomic::{fence, fence_behind_rmw};
use gasworks_sync::{kill_point, ord};

/// Bits of a word.
const BITS: usize = 64;

/// A view of the bits of a receiver's queues. Zero words are queues of which none has anything.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a> {
    summary: &'a [AtomicU64],
    words: &'a [AtomicU64],
}

impl<'a> Ready<'a> {
    /// Words of the summary for so many queues.
    pub const fn summary_words(queues: usize) -> usize {
        queues.div_ceil(BITS * BITS)
    }

    /// Words of bits for so many queues.
    pub const fn words(queues: usize) -> usize {
        queues.div_ceil(BITS)
    }

    /// A view; `None` if the summary has not a bit for each word.
    pub fn new(summary: &'a [AtomicU64], words: &'a [AtomicU64]) -> Option<Self> {
        (summary.len() * BITS >= words.len()).then_some(Self { summary, words })
    }

    /// Says that a queue may have something; nothing if there is no such queue. The bell must ring afterwards (ready.2).
    pub fn set(&self, queue: usize) {
        let word = queue / BITS;
        let (Some(bits), Some(summary)) = (self.words.get(word), self.summary.get(word / BITS)) else {
            return;
        };
        // Release: the message is there for whoever takes the bit.
        bits.fetch_or(1 << (queue % BITS), ord!("ready.set", Release));
        kill_point!("ready.set.bit");
        // Release: the bit is there for whoever takes the summary's.
        summary.fetch_or(1 << (word % BITS), ord!("ready.summary", Release));
        kill_point!("ready.set.summary");
        // SeqCst: see `may_sleep`.
        fence_behind_rmw(ord!("ready.set_fence", SeqCst));
    }

    /// Whether some queue may have something.
    #[inline]
    pub fn is_any(&self) -> bool {
        // Relaxed: who takes the bits acquires what they say.
        self.summary.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Whether the receiver, which has taken a ticket of its bell, may sleep: no queue may have anything, or the bell rings for it.
    #[cold]
    pub fn may_sleep(&self) -> bool {
        // SeqCst: the ticket comes before this fence, and a sender's bit before its own. If the sender's comes first, the bit is found here; else the sender finds the ticket.
        fence(ord!("ready.sleep_fence", SeqCst));
        !self.is_any()
    }

    /// Takes the bits that are set of one word, the next from `from` on, round and round: the number of the word and its bits. To be called until it finds none; the
    /// receiver alone does.
    pub fn take(&self, from: usize) -> Option<(usize, u64)> {
        let count = self.summary.len();
        for at in 0..=count {
            let index = (from / BITS + at) % count;
            let mut found = self.summary[index].load(Relaxed);
            if at == 0 {
                found &= u64::MAX << (from % BITS);
            }
            while found != 0 {
                let bit = found & found.wrapping_neg();
                found ^= bit;
                // Acquire: the bits that were set before the summary's are there.
                self.summary[index].fetch_and(!bit, ord!("ready.take", Acquire));
                kill_point!("ready.take.summary");
                let word = index * BITS + bit.trailing_zeros() as usize;
                // Where the bits were taken with an earlier bit of the summary, their line is not written for nothing.
                let Some(bits) = self.words.get(word).filter(|bits| bits.load(Relaxed) != 0) else {
                    continue;
                };
                // Acquire: the messages that came before the bits are there.
                let bits = bits.swap(0, ord!("ready.take.bits", Acquire));
                if bits != 0 {
                    return Some((word, bits));
                }
            }
        }
        None
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn zeroes(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn a_summary_has_a_bit_for_each_word() {
        for (summary, words, fits) in [(1, 64, true), (1, 65, false), (2, 65, true), (0, 1, false)] {
            assert_eq!(Ready::new(&zeroes(summary), &zeroes(words)).is_some(), fits, "{summary} for {words}");
        }
        assert_eq!((Ready::words(1 << 16), Ready::summary_words(1 << 16)), (1024, 16));
        assert_eq!((Ready::words(65), Ready::summary_words(4097)), (2, 2));
    }

    fn config() -> ProptestConfig {
        let cases = if cfg!(miri) { 2 } else { 256 };
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(config())]
        /// Against a set: what was set is taken once, wherever the receiver begins to look.
        #[test]
        fn what_is_set_is_taken_once(steps in prop::collection::vec((any::<bool>(), 0usize..9000), 0..120)) {
            let (summary, words) = (zeroes(Ready::summary_words(8192)), zeroes(Ready::words(8192)));
            let ready = Ready::new(&summary, &words).expect("enough");
            let mut wanted = BTreeSet::new();
            for (sets, number) in steps {
                if sets {
                    ready.set(number);
                    // Beyond the last there is nothing to set.
                    wanted.extend((number < 8192).then_some(number));
                } else {
                    match ready.take(number / BITS) {
                        None => prop_assert!(wanted.is_empty()),
                        Some((word, bits)) => {
                            for bit in (0..BITS).filter(|bit| bits >> bit & 1 == 1) {
                                prop_assert!(wanted.remove(&(word * BITS + bit)), "{word} {bits:#x}");
                            }
                            prop_assert!(wanted.iter().all(|queue| queue / BITS != word), "of a word all are taken");
                        }
                    }
                }
                prop_assert_eq!(ready.is_any(), !wanted.is_empty());
            }
        }
    }
}
