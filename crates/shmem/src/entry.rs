//! An entry of a table that its owner publishes, takes back and publishes again, while others, which cannot write there, read it.
//!
//! # Protocol
//! - entry.1: an entry is a state and some words. Its owner stores the words while the state is zero, then the state, and zero before it changes the words again. It uses no state twice.
//! - entry.2: a reader reads the state, the words, and the state once more. If both times it finds the same, which is not zero, the words belong to it.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

/// Publishes an entry, which is taken back or was never published; the first word is the state, which is not zero.
pub fn publish([state, places @ ..]: &[AtomicU64; 3], new: u64, words: [u64; 2]) {
    for (place, word) in places.iter().zip(words) {
        // Release: who reads this word finds that the state was zero, or is the new one.
        place.store(word, ord!("entry.word", Release));
        kill_point!("entry.publish.word");
    }
    // Release: the words are there for whoever finds the state.
    state.store(new, ord!("entry.publish", Release));
    kill_point!("entry.publish.done");
}

/// Takes an entry back. Who has read it before may use it yet.
pub fn withdraw([state, ..]: &[AtomicU64; 3]) {
    // Relaxed: the words that are published next are ordered behind it.
    state.store(0, Relaxed);
    kill_point!("entry.withdraw.done");
}

/// The state and the words of an entry, by three loads that acquire, and one more; `None` if it is not published, or changes.
pub fn read(load: impl Fn(usize) -> Option<u64>) -> Option<(u64, [u64; 2])> {
    let (state, words) = (load(0)?, [load(1)?, load(2)?]);
    // The words' loads acquire, so that the state is not older than they are.
    (state != 0 && load(0)? == state).then_some((state, words))
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_there_until_it_is_taken_back() {
        let entry = [const { AtomicU64::new(0) }; 3];
        let found = || read(|at| entry.get(at).map(|word| word.load(Relaxed)));
        assert_eq!(found(), None);
        for state in [1, 2] {
            publish(&entry, state, [10 * state, 20 * state]);
            assert_eq!(found(), Some((state, [10 * state, 20 * state])));
            withdraw(&entry);
            assert_eq!(found(), None);
        }
        // A table that is too short has nothing.
        assert_eq!(read(|at| (at < 2).then_some(7)), None);
        // One that changes while it is read is none.
        let reads = core::cell::Cell::new(0);
        assert_eq!(
            read(|at| {
                reads.set(reads.get() + 1);
                Some(if at == 0 { reads.get() } else { 5 })
            }),
            None
        );
    }
}
