//! Which bytes other NICs have written here lately, in memory that processes share: noted where the owner wants to know,
//! so that it can tell what its client has changed from what has come from afar.
//!
//! # Protocol
//! - writes.1: who is about to write takes a number, and claims the number's place, unless somebody is at that or has noted a later write
//!   there. Then it notes the bytes, and says whose they are by the number after it. So a place that says another number is
//!   being written, or was written again, or never was: what was to be there is not known.
//! - writes.2: it is noted before it is done: whoever sees the bytes sees that there is a note.
//! - writes.3: who dies at a place keeps it: what is to be noted there is not known any more.

use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_sync::{fence, ord};

/// How many are remembered. The checker looks at places that are used again.
const PLACES: usize = if cfg!(gasworks_loom) { 1 } else { 128 };
/// Stands for a number where somebody is at a place.
const CLAIMED: u64 = u64::MAX;

/// The notes. Zero bytes are none, and nobody who wants any.
#[repr(C)]
#[derive(Debug)]
pub struct Writes {
    wanted: AtomicU64,
    count: AtomicU64,
    places: [Noted; PLACES],
}

#[repr(C)]
#[derive(Debug)]
struct Noted {
    /// One more than the number of the write.
    number: AtomicU64,
    address: AtomicU64,
    len: AtomicU64,
}

impl Default for Writes {
    fn default() -> Self {
        Self::new()
    }
}

impl Writes {
    /// None, and nobody who wants any.
    pub fn new() -> Self {
        let word = || AtomicU64::new(0);
        let places = core::array::from_fn(|_| Noted { number: word(), address: word(), len: word() });
        Self { wanted: word(), count: word(), places }
    }

    /// From now on others note what they write. For the owner.
    pub fn want(&self) {
        self.wanted.store(1, Relaxed);
    }

    /// Another NIC is about to write so many bytes to an address.
    pub fn note(&self, address: u64, len: u64) {
        if self.wanted.load(Relaxed) == 0 {
            return;
        }
        let number = self.count.fetch_add(1, Relaxed);
        let place = self.place(number);
        let before = place.number.load(Relaxed);
        // What was noted there before is overwritten, and not the other way round.
        let claim = ord!("writes.claim", Acquire);
        let claims = || place.number.compare_exchange(before, CLAIMED, claim, Relaxed).is_ok();
        if before > number || !claims() {
            return;
        }
        // After the claim: who sees these sees that.
        place.address.store(address, ord!("writes.address", Release));
        place.len.store(len, ord!("writes.len", Release));
        place.number.store(number.wrapping_add(1), ord!("writes.publish", Release));
    }

    fn place(&self, number: u64) -> &Noted {
        &self.places[(number % PLACES as u64) as usize]
    }

    /// How many there were so far.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// What was written since there were so many: addresses and lengths; `None` if that is not known of all of it.
    pub fn since(&self, count: u64) -> Option<Vec<(u64, u64)>> {
        let now = self.count();
        if now.wrapping_sub(count) > PLACES as u64 {
            return None;
        }
        (count..now)
            .map(|number| {
                let place = self.place(number);
                let is_there = place.number.load(ord!("writes.see", Acquire)) == number.wrapping_add(1);
                let bytes = (place.address.load(Relaxed), place.len.load(Relaxed));
                // Whoever has claimed it before these could be seen is seen now.
                fence(ord!("writes.fence", Acquire));
                (is_there && place.number.load(Relaxed) == number.wrapping_add(1)).then_some(bytes)
            })
            .collect()
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_for_a_while() {
        let writes = Writes::new();
        writes.note(1, 1);
        assert_eq!(writes.count(), 0, "nobody wanted to know");
        writes.want();
        writes.note(100, 8);
        let mark = writes.count();
        assert_eq!(writes.since(mark), Some(vec![]));
        for at in 0..PLACES as u64 {
            writes.note(at, 2);
        }
        let expected: Vec<_> = (0..PLACES as u64).map(|at| (at, 2)).collect();
        assert_eq!(writes.since(mark), Some(expected));
        assert_eq!(writes.since(mark - 1), None, "too long ago");
        assert_eq!(writes.since(mark + 100).map(|all| all.len()), Some(28));
    }

    /// One that was begun and not finished, by whoever died, hides what it is about.
    #[test]
    fn what_is_half_noted_is_not_known() {
        let writes = Writes::new();
        writes.want();
        writes.count.fetch_add(1, Relaxed);
        assert_eq!(writes.since(0), None);
        writes.note(5, 1);
        assert_eq!(writes.since(1), Some(vec![(5, 1)]));
        // One that died at its place keeps it.
        writes.places[2].number.store(CLAIMED, Relaxed);
        (2..2 * PLACES as u64).for_each(|at| writes.note(at, 1));
        let mark = writes.count();
        writes.note(7, 1);
        assert_eq!(writes.since(mark), Some(vec![(7, 1)]));
        writes.note(8, 1);
        writes.note(9, 1);
        assert_eq!(writes.since(mark), None);
    }

    /// One that was kept from it until others have noted as many writes as there are places leaves their notes as they are.
    #[test]
    fn who_is_late_notes_nothing() {
        let writes = Writes::new();
        writes.want();
        let mark = PLACES as u64;
        (0..=mark).for_each(|at| writes.note(at, 1));
        writes.count.store(0, Relaxed);
        writes.note(1000, 1);
        writes.count.store(mark + 1, Relaxed);
        assert_eq!(writes.since(mark), Some(vec![(mark, 1)]));
    }
}
