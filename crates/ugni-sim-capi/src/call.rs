//! In which call of the library a thread is, for those who watch: nobody does as a rule, and then nothing is noted.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::{strict, witness};

/// A call that is under way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    /// The function.
    pub(crate) name: &'static str,
    /// The last handle that it was given.
    pub(crate) handle: usize,
    /// The descriptor, or what the client calls the message; 0 without one.
    pub(crate) concern: u64,
}

/// What a client calls a message.
#[derive(Clone, Copy)]
pub(crate) struct MessageId(pub(crate) u32);

thread_local! {
    static CALL: Cell<Call> = const { Cell::new(Call { name: "", handle: 0, concern: 0 }) };
}

/// Whether anybody watches.
fn is_watched() -> bool {
    static WATCHED: OnceLock<bool> = OnceLock::new();
    *WATCHED.get_or_init(|| [witness::is_wanted(), strict::is_on()].contains(&true))
}

/// A function is called.
pub(crate) fn begin(name: &'static str) {
    if is_watched() {
        CALL.set(Call { name, ..Call::default() });
    }
}

/// It is given a handle.
pub(crate) fn names(handle: usize) {
    if is_watched() {
        CALL.set(Call { handle, ..CALL.get() });
    }
}

/// It is given a descriptor, or a message.
pub(crate) fn concerns(concern: u64) {
    if is_watched() {
        CALL.set(Call { concern, ..CALL.get() });
    }
}

/// The call that this thread is in, or was in last.
pub(crate) fn now() -> Call {
    CALL.get()
}
