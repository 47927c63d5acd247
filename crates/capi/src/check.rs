//! What is looked at of what a call is given: some of it in all builds, and some only where the program is compiled for debugging, for its
//! headers ask.
//!
//! # Invariants
//! As in the crate, and place.1 of [`crate::place`].

use crate::face::fail;
use crate::layout::{Kind, Local, Object, When};
use crate::place;
use gasworks_core::message_in_hand;
use std::ffi::{c_char, c_void};

/// `gasworks_check_object`: whether a handle leads to an object that is what it should be, for a call of this name.
///
/// # Safety
/// capi.1: it leads to some object, if it is aligned as one and not null; place.1.
pub unsafe fn object(handle: *const c_void, wanted: u32, call: *const c_char) {
    // SAFETY: capi.1: the caller says so of `handle`.
    if let Err(wrong) = unsafe { is_object(handle, wanted) } {
        // SAFETY: place.1: the header passes the name of its own function (`__func__`), which stays as a literal does.
        fail(&unsafe { place::text_of(call) }, wrong);
    }
}

/// Whether a handle leads to an object of this kind.
///
/// # Safety
/// capi.1: it leads to some object, if it is aligned as one and not null.
///
/// # Errors
/// What is wrong with it.
#[inline]
pub(crate) unsafe fn is_object(handle: *const c_void, wanted: u32) -> Result<(), String> {
    let object = handle.cast::<Object>();
    let word = if object.is_null() || !object.is_aligned() {
        0
    } else {
        // SAFETY: capi.1: `object` is aligned and not null, so it leads to some object, which stays and begins as all of them do.
        unsafe { (*object).kind }
    };
    if word == wanted { Ok(()) } else { Err(no_object(handle, word, wanted)) }
}

#[cold]
fn no_object(handle: *const c_void, word: u32, wanted: u32) -> String {
    let wanted = Kind::of(wanted).map_or("object".to_owned(), |kind| kind.to_string());
    match Kind::of(word) {
        _ if handle.is_null() => format!("the {wanted} is null, which is GEX_*_INVALID"),
        Some(kind) => format!("{handle:p} is no {wanted}, but a {kind}"),
        None => format!("{handle:p} is no {wanted}"),
    }
}

/// `gasworks_check_value`: whether so many bytes are a value.
pub fn value(len: usize) {
    if !(1..=size_of::<u64>()).contains(&len) {
        fail(&place::name(), format!("a value of {len} bytes: 1 to 8 are one"));
    }
}

/// What an lc_opt says that is not to be null, and has an event's place if it is one.
#[inline]
pub(crate) fn when(call: &str, local: Local) -> When {
    match When::of(local) {
        Some(When::At(place)) if !place.is_aligned() => {
            fail(call, format!("lc_opt is {place:p}, where no event can be"))
        }
        Some(when) => when,
        None => fail(call, "lc_opt is null"),
    }
}

/// Whether a token is that of the handler that runs on this thread, or ends the job.
#[inline]
pub(crate) fn token(call: &str, token: *mut c_void) {
    if token.is_null() {
        fail(call, "the token is null: tokens are for handlers, while they run");
    }
    if token.addr() != message_in_hand() {
        fail(call, format!("{token:p} is not the token of a handler that runs on this thread"));
    }
}
