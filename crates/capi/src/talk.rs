//! Whether a thread may communicate: not in a handler, not with a handler-safe lock, and not between a prepare and its commit or cancel; and
//! in `SEQ` one thread alone. Programs that are compiled for debugging ask before each call that communicates.
//!
//! # Invariants
//! As in the crate, and place.1 of [`crate::place`].

use crate::face::{FaceMode, fail};
use crate::{negotiated, place};
use gasworks_core::{Engine, hsl};
use gasworks_os::process;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::ffi::{c_char, c_int};

/// `gasworks_talks_at`: a call begins that communicates, or may.
///
/// # Safety
/// place.1.
pub unsafe fn begin<M: FaceMode>(file: *const c_char, line: c_int, name: *const c_char) {
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
