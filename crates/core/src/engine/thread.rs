//! What a thread may do just now.
//!
//! While a handler runs on it, a thread dispatches nothing else and sends nothing but its reply. While it holds a
//! handler-safe lock it does not even reply.

use crate::Error;
use std::cell::Cell;

thread_local! {
    /// How many handler-safe locks this thread holds, and [`HANDLING`] if a handler runs on it.
    static STATE: Cell<u32> = const { Cell::new(0) };
}

const HANDLING: u32 = 1 << 31;

/// A number of this thread's own, never zero.
pub(crate) fn this_thread() -> usize {
    STATE.with(|state| std::ptr::from_ref(state).addr())
}

/// Whether this thread may communicate.
///
/// # Errors
/// It may not, and why.
#[inline]
pub(crate) fn may_communicate(what: &'static str) -> Result<(), Error> {
    match STATE.with(Cell::get) {
        0 => Ok(()),
        state => Err(refuse(state, what)),
    }
}

#[cold]
fn refuse(state: u32, what: &'static str) -> Error {
    if state & HANDLING != 0 { Error::InHandler(what) } else { Error::LockHeld(what) }
}

/// Whether a handler runs on this thread.
pub(crate) fn is_handling() -> bool {
    STATE.with(Cell::get) & HANDLING != 0
}

/// Marks this thread as running a handler, until dropped.
pub(super) struct Handling;

impl Handling {
    #[inline]
    pub(super) fn begin() -> Self {
        STATE.with(|state| state.set(HANDLING));
        Handling
    }
}

impl Drop for Handling {
    #[inline]
    fn drop(&mut self) {
        STATE.with(|state| state.set(0));
    }
}

/// Marks this thread as holding one more handler-safe lock, until dropped.
pub(crate) struct Held;

impl Held {
    pub(crate) fn begin() -> Self {
        STATE.with(|state| state.set(state.get() + 1));
        Held
    }

    /// Whether this thread holds one.
    #[inline]
    pub(crate) fn any() -> bool {
        STATE.with(Cell::get) & !HANDLING != 0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        STATE.with(|state| state.set(state.get() - 1));
    }
}
