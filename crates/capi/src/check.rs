//! What is looked at before a call: some of it in all builds, and some only where the program is compiled for debugging, for its headers ask.
//!
//! # Invariants
//! As in the crate, and place.1 of [`crate::place`].

use crate::face::{FaceMode, fail};
use crate::layout::{Kind, Local, Object, When};
use crate::{negotiated, place, query};
use gasworks_core::{Engine, hsl, message_in_hand};
use gasworks_os::process;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::ffi::{c_char, c_int, c_void};
use std::fmt::Display;

/// `gasworks_talks_at`: a call begins that communicates, or may.
///
/// # Safety
/// place.1.
pub unsafe fn talks<M: FaceMode>(file: *const c_char, line: c_int, name: *const c_char) {
    // SAFETY: place.1: the header's macro has made `file` and `name`, literals.
    unsafe { place::begin(file, line, name) };
    if M::IS_SEQ {
        // SAFETY: place.1: `name` is a literal, which the header's macro makes of the call's name.
        only_thread(&unsafe { place::text_of(name) });
    }
    if let Some(why) = silenced_by::<M>() {
        // SAFETY: place.1: the header's macro has made `name`, a literal, of the call that is refused here.
        fail(&unsafe { place::text_of(name) }, why);
    }
}

/// The thread that communicates in `SEQ`: the first that does.
static ONLY: AtomicU32 = AtomicU32::new(0);

/// In `SEQ`: whether no other thread has communicated, or ends the job.
fn only_thread(call: &str) {
    let own = process::thread();
    // Relaxed: it is about nothing but the number.
    match ONLY.compare_exchange(0, own, Relaxed, Relaxed) {
        Err(first) if first != own => {
            let what = format!(
                "thread {own} communicates, and thread {first} has before: in SEQ one thread does (compile with GASNET_PAR, \
                 or with GASNET_PARSYNC where they take turns)"
            );
            fail(call, what)
        }
        _ => {}
    }
}

/// Whether this thread may communicate, or ends the job.
pub(crate) fn may_talk<M: FaceMode>(call: &str) {
    if let Some(why) = silenced_by::<M>() {
        fail(call, why);
    }
}

/// Why this thread may not communicate now.
fn silenced_by<M: FaceMode>() -> Option<&'static str> {
    if Engine::<M>::in_handler() {
        Some("not allowed while a handler runs on this thread")
    } else if hsl::any_held() {
        Some("not allowed while this thread holds a handler-safe lock")
    } else if negotiated::is_under_way() {
        Some("not allowed between a prepare and its commit or cancel")
    } else {
        None
    }
}

/// `gasworks_check_object`: whether a handle leads to an object that is what it should be, for a call of this name.
///
/// # Safety
/// capi.1: it leads to some object, if it is aligned as one and not null; place.1.
pub unsafe fn object(handle: *const c_void, wanted: u32, call: *const c_char) {
    let object = handle.cast::<Object>();
    let wanted_kind = Kind::of(wanted).map_or("object".to_owned(), |kind| kind.to_string());
    // SAFETY: place.1: the header passes the name of its own function (`__func__`), which stays as a literal does.
    let call = &unsafe { place::text_of(call) };
    if object.is_null() {
        fail(call, format!("the {wanted_kind} is null, which is GEX_*_INVALID"));
    }
    if !object.is_aligned() {
        fail(call, format!("{handle:p} is no {wanted_kind}"));
    }
    // SAFETY: capi.1: `object` is aligned and not null, so it leads to some object, which stays and begins as all of them do.
    let word = unsafe { (*object).kind };
    if word != wanted {
        match Kind::of(word) {
            Some(kind) => fail(call, format!("{handle:p} is no {wanted_kind}, but a {kind}")),
            None => fail(call, format!("{handle:p} is no {wanted_kind}")),
        }
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

/// An argument cannot be used of a call that returns a code, which is returned. Why is said unless C wants to see to codes itself;
/// and a program that is compiled for debugging ends then.
#[cold]
pub(crate) fn refused(call: &str, what: impl Display, code: c_int) -> c_int {
    if query::is_verbose() != 0 && place::is_known() {
        fail(call, what);
    }
    query::say(format!("{call}: {what}"));
    code
}

/// Whether a handler has ended what it began, or ends the job.
pub(crate) fn ended_whole(handler: u8) {
    if hsl::any_held() {
        fail("an active message", format!("handler {handler} has ended with a handler-safe lock held"));
    }
    if negotiated::is_under_way() {
        let what = "has ended with a reply prepared, and neither committed nor cancelled";
        fail("an active message", format!("handler {handler} {what}"));
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
