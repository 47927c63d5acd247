//! What a thread may do just now.
//!
//! While a handler runs on it, a thread dispatches nothing else and sends nothing but its reply. While it holds a
//! handler-safe lock it does not even reply.

use crate::Error;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// How many handler-safe locks this thread holds, and [`HANDLING`] if a handler runs on it.
    static STATE: Cell<u32> = const { Cell::new(0) };
    /// Its number, once it has one.
    static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
    /// Polls since it last had to see to everything.
    static POLLS: Cell<u32> = const { Cell::new(0) };
}

/// How many threads have a number.
static NUMBERED: Mutex<u32> = Mutex::new(0);

/// The number of this thread among those of the process that communicate, in the order in which they first did.
#[inline]
pub(super) fn number() -> u32 {
    NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            let own = enroll();
            number.set(Some(own));
            own
        })
    })
}

#[cold]
fn enroll() -> u32 {
    let mut numbered = NUMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    *numbered += 1;
    *numbered - 1
}

/// This thread serves the others: it is among the first, whenever it came, and nobody's number changes for it.
pub(super) fn serve() {
    NUMBER.with(|number| number.set(Some(0)));
}

/// Counts a poll of this thread; says how many there were before.
#[inline]
pub(super) fn count_poll() -> u32 {
    POLLS.with(|polls| {
        let before = polls.get();
        polls.set(before.wrapping_add(1));
        before
    })
}

/// The next one is the first.
pub(super) fn count_polls_anew() {
    POLLS.with(|polls| polls.set(0));
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
