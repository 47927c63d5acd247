//! Objects that C programs hold pointers to.
//!
//! A slab's objects stay where they are until the process ends, so that an address can be looked up without following it: a pointer is an object's if it points to the beginning of one.
//! What of an object is in use its owner knows. Released objects wait in a queue before they are used again, so that a pointer to one is recognised as old for a while.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// Objects of the first chunk. Each further chunk has twice as many as the one before.
const FIRST: usize = 64;
/// More than programs have memory for.
const CHUNKS: usize = 24;
/// How many released objects wait at least.
const WAITING: usize = 64;

/// Objects of one type.
pub struct Slab<T: 'static> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Free {
    /// How many objects were taken for the first time.
    made: u32,
    /// The released ones, oldest first.
    waiting: VecDeque<u32>,
}

impl<T: Default> Slab<T> {
    /// A slab without objects.
    pub const fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { made: 0, waiting: VecDeque::new() }),
        }
    }

    /// Takes an object that nobody uses.
    pub fn take(&'static self) -> u32 {
        let mut free = self.free.lock();
        if free.waiting.len() > WAITING
            && let Some(index) = free.waiting.pop_front()
        {
            return index;
        }
        let index = free.made;
        let (chunk, at) = place(index);
        if at == 0 {
            let made = (0..FIRST << chunk).map(|_| T::default()).collect();
            assert!(self.chunks[chunk].set(made).is_ok(), "chunks are made in order, under the lock");
        }
        free.made += 1;
        index
    }

    /// Gives an object back.
    pub fn release(&self, index: u32) {
        self.free.lock().waiting.push_back(index);
    }

    /// An object that was taken at some time.
    pub fn get(&'static self, index: u32) -> &'static T {
        let (chunk, at) = place(index);
        let chunk = self.chunks[chunk].get().expect("an index is of an object that was taken");
        &chunk[at]
    }

    /// The address of an object.
    pub fn address(&'static self, index: u32) -> usize {
        std::ptr::from_ref(self.get(index)).expose_provenance()
    }

    /// The object at an address, if there is one.
    #[inline]
    pub fn find(&'static self, address: usize) -> Option<&'static T> {
        for chunk in &self.chunks {
            let chunk = chunk.get()?;
            let offset = address.wrapping_sub(chunk.as_ptr().addr());
            if offset < size_of_val::<[T]>(chunk) {
                return offset.is_multiple_of(size_of::<T>()).then(|| &chunk[offset / size_of::<T>()]);
            }
        }
        None
    }

    /// How many objects were taken, in all.
    pub fn made(&self) -> u32 {
        self.free.lock().made
    }
}

/// Whose an object is: the number of an endpoint, and a number of the endpoint's. The endpoint's lock guards it: who finds the same owner before and after locking that endpoint has
/// the owner's object.
#[derive(Debug, Default)]
pub struct Owner(AtomicU64);

/// Bits of a number of the endpoint's.
const NUMBER_BITS: u32 = 40;

impl Owner {
    /// Makes the object this endpoint's.
    pub fn set(&self, endpoint: u32, number: u64) {
        self.0.store((u64::from(endpoint) + 1) << NUMBER_BITS | number, Relaxed);
    }

    /// Makes it nobody's.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Whose it is.
    #[inline]
    pub fn get(&self) -> Option<(u32, u64)> {
        let word = self.0.load(Relaxed);
        let endpoint = (word >> NUMBER_BITS).checked_sub(1)?;
        Some((endpoint as u32, word & ((1 << NUMBER_BITS) - 1)))
    }
}

/// The chunk of an object and its place in it.
fn place(index: u32) -> (usize, usize) {
    let nth = index as usize / FIRST + 1;
    let chunk = nth.ilog2() as usize;
    (chunk, index as usize - FIRST * ((1 << chunk) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Object([u64; 3]);

    #[test]
    fn objects_are_found_by_their_address_and_nothing_else_is() {
        let slab: &'static Slab<Object> = Box::leak(Box::new(Slab::new()));
        assert!(slab.find(0).is_none() && slab.find(usize::MAX).is_none());
        let count = FIRST as u32 * 7 + 3;
        let taken: Vec<u32> = (0..count).map(|_| slab.take()).collect();
        assert_eq!(taken, (0..count).collect::<Vec<_>>());
        for index in taken {
            let address = slab.address(index);
            let found = slab.find(address).expect("it was taken");
            assert!(std::ptr::eq(found, slab.get(index)), "{index}");
            assert_eq!(found.0, [0; 3]);
            for inside in 1..size_of::<Object>() {
                assert!(slab.find(address + inside).is_none());
            }
        }
    }

    #[test]
    fn a_released_object_waits_before_it_is_used_again() {
        let slab: &'static Slab<Object> = Box::leak(Box::new(Slab::new()));
        let first = slab.take();
        slab.release(first);
        let mut taken = 0;
        while slab.take() != first {
            taken += 1;
            slab.release(taken);
        }
        assert!(taken as usize >= WAITING, "{taken}");
        assert!(slab.made() as usize <= WAITING + 2, "{}", slab.made());
    }

    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
