//! What a thread may do just now.
//!
//! While a handler runs on it, a thread dispatches nothing else and sends nothing but its reply. While it holds a
//! handler-safe lock it does not even reply.

use crate::Error;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    /// What this thread is doing: in the bits of [`MESSAGE`] where the message lies that a handler has in its hands, or 0; above them how
    /// many handler-safe locks it holds.
    static STATE: Cell<u64> = const { Cell::new(0) };
    /// Its place among those that communicate.
    static PLACE: Place = const { Place(Cell::new(None)) };
    /// Polls since it last had to see to everything.
    static POLLS: Cell<u32> = const { Cell::new(0) };
}

/// Which numbers threads have: those below `next` that are not free.
struct Numbers {
    next: u32,
    free: BTreeSet<u32>,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { next: 0, free: BTreeSet::new() });

fn numbers() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's number, once it has one or needs none: the next that has none after it has ended is given the number.
struct Place(Cell<Option<Part>>);

#[derive(Clone, Copy)]
enum Part {
    Client(u32),
    /// It serves the others, and has no number.
    Server,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(Part::Client(number)) = self.0.get() {
            numbers().free.insert(number);
        }
    }
}

/// The number of this thread among those of the process that communicate, in the order in which they first did; one that is among them no
/// more has left its own to another.
#[inline]
pub(super) fn number() -> u32 {
    let number = PLACE.try_with(|place| match place.0.get() {
        Some(Part::Client(number)) => number,
        Some(Part::Server) => 0,
        None => enroll(place),
    });
    // While the thread ends it is nobody in particular.
    number.unwrap_or(0)
}

#[cold]
fn enroll(place: &Place) -> u32 {
    let mut numbers = numbers();
    let number = numbers.free.pop_first().unwrap_or_else(|| {
        numbers.next += 1;
        numbers.next - 1
    });
    place.0.set(Some(Part::Client(number)));
    number
}

/// This thread serves the others: it is among the first, whenever it came, and nobody's number changes for it.
pub(super) fn serve() {
    PLACE.with(|place| {
        if place.0.get().is_none() {
            place.0.set(Some(Part::Server));
        }
    });
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

/// The bits of an address on a stack.
const MESSAGE: u64 = (1 << 48) - 1;
/// One lock.
const LOCK: u64 = MESSAGE + 1;

/// A number of this thread's own, never zero.
#[inline]
pub(crate) fn this_thread() -> usize {
    STATE.with(|state| std::ptr::from_ref(state).addr())
}

/// Whether this thread runs no handler and holds no handler-safe lock.
#[inline]
pub(crate) fn is_free() -> bool {
    STATE.with(Cell::get) == 0
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
fn refuse(state: u64, what: &'static str) -> Error {
    if state & MESSAGE != 0 { Error::InHandler(what) } else { Error::LockHeld(what) }
}

/// Whether a handler runs on this thread.
pub(crate) fn is_handling() -> bool {
    message_in_hand() != 0
}

/// Where the [`Incoming`](super::Incoming) lies that the handler which runs on this thread was given; 0 if none runs.
#[inline]
pub fn message_in_hand() -> usize {
    (STATE.with(Cell::get) & MESSAGE) as usize
}

/// Marks this thread as running a handler, until dropped. What it did before it does again then: a handler that replies to its own rank has
/// the reply handled meanwhile.
pub(super) struct Handling(u64);

impl Handling {
    /// `None` on a thread that may not communicate.
    #[inline]
    pub(super) fn begin(message: usize) -> Option<Self> {
        debug_assert!((1..=MESSAGE).contains(&(message as u64)), "{message:#x} is no address");
        STATE.with(|state| {
            let is_free = state.get() == 0;
            if is_free {
                state.set(message as u64);
            }
            is_free.then(|| Handling(0))
        })
    }

    /// Within a handler, for the reply of this rank to itself.
    #[inline]
    pub(super) fn begin_within(message: usize) -> Self {
        debug_assert!((1..=MESSAGE).contains(&(message as u64)), "{message:#x} is no address");
        Handling(STATE.with(|state| state.replace(message as u64)))
    }
}

impl Drop for Handling {
    #[inline]
    fn drop(&mut self) {
        STATE.with(|state| state.set(self.0));
    }
}

/// Marks this thread as holding one more handler-safe lock, until dropped.
pub(crate) struct Held;

impl Held {
    #[inline]
    pub(crate) fn begin() -> Self {
        STATE.with(|state| state.set(state.get() + LOCK));
        Held
    }

    /// Whether this thread holds one.
    #[inline]
    pub(crate) fn any() -> bool {
        STATE.with(Cell::get) >= LOCK
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        STATE.with(|state| state.set(state.get() - LOCK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that was refused is as busy as before.
    #[test]
    fn a_thread_that_may_not_handle_is_not_set_free() {
        let outer = Handling::begin(8).expect("it is free");
        for _ in 0..2 {
            assert!(Handling::begin(16).is_none());
            assert_eq!((message_in_hand(), is_free()), (8, false));
        }
        drop(Handling::begin_within(24));
        assert_eq!(message_in_hand(), 8, "it goes on with what it did before");
        drop(outer);
        let lock = Held::begin();
        assert!(Handling::begin(16).is_none());
        assert!(Held::any() && !is_free());
        drop(lock);
        assert!(is_free());
    }

    /// No other test of this process numbers threads.
    #[test]
    fn numbers_are_given_in_turn_and_again() {
        let of = |f: fn() -> u32| std::thread::spawn(f).join().expect("it has not panicked");
        assert_eq!([number(), number()], [0, 0]);
        assert_eq!(of(number), 1);
        let (second, first) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || {
            let own = number();
            assert!(first.recv().is_err(), "it is dropped");
            own
        });
        let serves = || {
            serve();
            number()
        };
        assert_eq!(of(serves), 0);
        drop(second);
        assert_eq!(waits.join().expect("it has not panicked"), 1, "whose thread had ended");
        assert_eq!(of(of_another), 2);

        /// The number of a thread, while another one has the next.
        fn of_another() -> u32 {
            let own = number();
            assert_eq!(own, 1);
            std::thread::spawn(number).join().expect("it has not panicked")
        }
    }
}
