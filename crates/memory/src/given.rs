//! Memory that a rank gives to a region.
//!
//! # Invariants
//! - given.1: the bytes of a [`Given`] stay mapped, readable and writable as long as the table that has it, and nobody has references to them
//!   but to atomics. [`Given::owned`] owns them; of others whoever makes one promises it ([`Given::at`]).

use bytemuck::Pod;
use gasworks_sync::RawSlice;
use std::any::Any;

/// Memory of this rank that its part of a region is to be.
pub struct Given {
    bytes: RawSlice,
    /// What frees them.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

impl Given {
    /// Memory that the region owns from now on.
    pub fn owned<T: Pod + Send + Sync>(memory: Box<[T]>) -> Self {
        let len = size_of_val(&*memory);
        let values = Box::into_raw(memory);
        Self { bytes: RawSlice::new(values.cast(), len), _owner: Some(Box::new(Owned(values))) }
    }

    /// Memory that somebody else owns. What is wrong with the range is found when the region is created.
    ///
    /// # Safety
    /// given.1: the bytes stay mapped, readable and writable, and nobody has references to them but to atomics, until the table is dropped; of
    /// a region that is withdrawn, until then, if no slice of it is used afterwards.
    pub unsafe fn at(bytes: RawSlice) -> Self {
        Self { bytes, _owner: None }
    }

    /// The bytes.
    pub fn bytes(&self) -> RawSlice {
        self.bytes
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:p}", self.bytes.len(), self.bytes.as_ptr())
    }
}

/// A boxed slice to which nobody has a reference, so that its bytes may be shared.
struct Owned<T>(*mut [T]);

// SAFETY: given.1: it owns plain values, which may be freed by any thread.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: given.1: a shared one gives no access to its values.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: given.1: the pointer came from a box, whose only owner this is, and nobody uses the bytes any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
