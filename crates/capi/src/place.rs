//! Where the call of C's stands that a thread is in. Programs that are compiled for debugging say it: file, line and name before a call, and
//! afterwards that it has ended. A call whose arguments are made by calls, or during which a handler makes some, is the latest again
//! when those have ended. Where a call does not end, because an exception or a jump leaves it, the next one is the latest.
//!
//! A thread that is in no such call has no place: those of the library, and those of programs that are not compiled so.
//!
//! # Invariants
//! As in the crate, and:
//! - place.1: file and name are literals of the program, which stay.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::{self, Display, Formatter};
use std::ptr::null;

/// So many calls of a thread are remembered: more are hardly ever in one another.
const KEPT: usize = 16;

#[derive(Clone, Copy)]
struct Place {
    file: *const c_char,
    line: c_int,
    name: *const c_char,
}

/// The calls that a thread is in.
struct Calls {
    count: Cell<usize>,
    /// The latest, each where its number says.
    places: [Cell<Place>; KEPT],
}

const NOWHERE: Place = Place { file: null(), line: 0, name: null() };

thread_local! {
    static CALLS: Calls = const { Calls { count: Cell::new(0), places: [const { Cell::new(NOWHERE) }; KEPT] } };
}

/// `gasworks_at`: a call begins.
///
/// # Safety
/// place.1.
pub unsafe fn begin(file: *const c_char, line: c_int, name: *const c_char) {
    CALLS.with(|calls| {
        let count = calls.count.get();
        calls.places[count % KEPT].set(Place { file, line, name });
        calls.count.set(count + 1);
    });
}

/// `gasworks_left`: the latest has ended.
pub fn end() {
    CALLS.with(|calls| calls.count.set(calls.count.get().saturating_sub(1)));
}

/// The call that this thread is in.
fn latest() -> Option<Place> {
    let latest = |calls: &Calls| Some(calls.places[calls.count.get().checked_sub(1)? % KEPT].get());
    CALLS.try_with(latest).ok().flatten()
}

/// Whether this thread is in a call whose place is known: the program is compiled for debugging.
pub(crate) fn is_known() -> bool {
    latest().is_some()
}

/// What the call that this thread is in is called.
pub(crate) fn name() -> String {
    // SAFETY: place.1: the program has given `begin` a literal for the name of its latest call.
    latest().map_or_else(|| "a call".to_owned(), |latest| unsafe { text_of(latest.name) }.into_owned())
}

/// What comes before what is said of a call: its place, and what the program calls it if that is something else.
pub(crate) struct Before<'a>(pub &'a str);

impl Display for Before<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(Place { file, line, name }) = latest() else { return Ok(()) };
        // SAFETY: place.1: file and name of the latest call are literals that the program has given to `begin`.
        let [file, name] = [file, name].map(|text| unsafe { text_of(text) });
        write!(f, "{file}:{line}: ")?;
        // A name may say the number of arguments, too.
        if name.starts_with(self.0) { Ok(()) } else { write!(f, "{name}: ") }
    }
}

/// What a literal says.
///
/// # Safety
/// place.1.
pub(crate) unsafe fn text_of<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "?".into();
    }
    // SAFETY: place.1: `text` is not null here, and the caller promises a literal, which ends with a zero and stays.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(call: &str) -> String {
        Before(call).to_string()
    }

    #[test]
    fn the_latest_call_is_the_one_that_has_not_ended() {
        assert_eq!(before("gex_A"), "");
        // SAFETY: place.1: both are literals.
        unsafe { begin(c"a.c".as_ptr(), 7, c"gex_A3".as_ptr()) };
        assert_eq!(before("gex_A"), "a.c:7: ");
        // SAFETY: place.1: both are literals.
        unsafe { begin(c"b.c".as_ptr(), 8, c"gasnet_b".as_ptr()) };
        assert_eq!(before("gex_A"), "b.c:8: gasnet_b: ");
        assert!(std::thread::spawn(|| !is_known()).join().expect("it has not panicked"));
        end();
        assert_eq!(before("gex_A"), "a.c:7: ");
        end();
        assert!(!is_known());
        end();
        assert!(!is_known(), "one too many changes nothing");
    }

    #[test]
    fn calls_that_never_end_do_no_harm() {
        for line in 0..100 {
            // SAFETY: place.1: both are literals.
            unsafe { begin(c"a.c".as_ptr(), line, c"gex_A".as_ptr()) };
        }
        assert_eq!(before("gex_A"), "a.c:99: ");
        end();
        assert_eq!(before("gex_A"), "a.c:98: ");
    }
}
