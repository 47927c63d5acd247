//! Interior mutability without a check: `UnsafeCell` with loom's closure interface.
//!
//! # Invariants
//! - cell.1: between `with_mut` and its return no other access to the same cell takes place; the caller's protocol
//!   (an index it owns, a lock it holds) says why. loom verifies it.

/// A cell whose content is reached through raw pointers.
#[derive(Debug, Default)]
pub struct UnsafeCell<T> {
    #[cfg(not(gasworks_loom))]
    inner: core::cell::UnsafeCell<T>,
    #[cfg(gasworks_loom)]
    inner: loom::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        #[cfg(not(gasworks_loom))]
        return Self { inner: core::cell::UnsafeCell::new(value) };
        #[cfg(gasworks_loom)]
        return Self { inner: loom::cell::UnsafeCell::new(value) };
    }

    /// Reads through a pointer that is valid during the call.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        #[cfg(not(gasworks_loom))]
        return f(self.inner.get());
        #[cfg(gasworks_loom)]
        return self.inner.with(f);
    }

    /// Reads or writes through a pointer that is valid during the call.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(not(gasworks_loom))]
        return f(self.inner.get());
        #[cfg(gasworks_loom)]
        return self.inner.with_mut(f);
    }
}
