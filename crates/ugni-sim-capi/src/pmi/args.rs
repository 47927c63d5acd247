//! What C gives, checked.
//!
//! # Invariants
//! - args.1: a pointer that a caller gives for a result is null, which is refused, or valid for one write of its type.
//! - args.2: a text that a caller gives is null, which is refused, or ends with a zero byte; it stays as it is during the call.
//! - args.3: an array that a caller gives with a length is null, which is refused unless it is empty, or valid for so many
//!   elements; nobody else uses it during the call.

use std::ffi::{CStr, c_char, c_int};

use gasworks_gni_sys::pmi::*;

use super::Done;

/// Puts a result where the caller wants it.
///
/// # Errors
/// There is no place for it.
///
/// # Safety
/// args.1.
pub unsafe fn put<T>(to: *mut T, value: T) -> Done {
    if to.is_null() {
        return Err(PMI_ERR_INVALID_ARG);
    }
    // SAFETY: args.1: `to` is not null, so the caller has given it for one write of a `T`.
    unsafe { to.write(value) };
    Ok(())
}

/// A text of the caller's.
///
/// # Errors
/// There is none.
///
/// # Safety
/// args.2, until the text is not used any more.
pub unsafe fn text<'a>(from: *const c_char) -> Done<&'a [u8]> {
    if from.is_null() {
        return Err(PMI_ERR_INVALID_ARG);
    }
    // SAFETY: args.2: `from` is not null, so it ends with a zero byte; the caller leaves it as it is while the text is used.
    Ok(unsafe { CStr::from_ptr(from) }.to_bytes())
}

/// As much of a text as there is room for, and a zero byte; whether that is all of it.
///
/// # Errors
/// There is no room at all.
///
/// # Safety
/// args.3.
pub unsafe fn put_cut(to: *mut c_char, room: c_int, text: &[u8]) -> Done<bool> {
    let room = length(room)?;
    if to.is_null() {
        return Err(PMI_ERR_INVALID_ARG);
    }
    let len = text.len().min(room.checked_sub(1).ok_or(PMI_ERR_INVALID_LENGTH)?);
    // SAFETY: args.3: `to` has `room` bytes, of which `len` + 1 are written at most; nobody else uses them, so `text` lies elsewhere.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        to.add(len).write(0);
    }
    Ok(len == text.len())
}

/// A text with a zero byte at its end.
///
/// # Errors
/// There is not room enough; nothing was written.
///
/// # Safety
/// args.3.
pub unsafe fn put_text(to: *mut c_char, room: c_int, text: &[u8]) -> Done {
    if !to.is_null() && length(room)? <= text.len() {
        return Err(PMI_ERR_INVALID_LENGTH);
    }
    // SAFETY: args.3: `to` is null, which is refused, or has the `room` bytes that the caller of this function promises.
    unsafe { put_cut(to, room, text) }.map(drop)
}

/// A length of the caller's.
///
/// # Errors
/// It is negative.
pub fn length(len: c_int) -> Done<usize> {
    usize::try_from(len).map_err(|_| PMI_ERR_INVALID_LENGTH)
}

/// The elements of an array of the caller's.
///
/// # Errors
/// There is none.
///
/// # Safety
/// args.3.
pub unsafe fn read<T: Copy>(from: *const T, len: usize) -> Done<Vec<T>> {
    match (from.is_null(), len) {
        (_, 0) => Ok(Vec::new()),
        (true, _) => Err(PMI_ERR_INVALID_ARG),
        // SAFETY: args.3: `from` is not null, so `len` elements are there, which nobody changes while they are copied.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(from, len) }.to_vec()),
    }
}

/// Fills the beginning of an array of the caller's.
///
/// # Errors
/// There is none.
///
/// # Safety
/// args.3, for so many elements as there are to write.
pub unsafe fn write<T: Copy>(to: *mut T, elements: &[T]) -> Done {
    match (to.is_null(), elements.len()) {
        (_, 0) => Ok(()),
        (true, _) => Err(PMI_ERR_INVALID_ARG),
        (false, len) => {
            // SAFETY: args.3: `to` is not null and has room for `len` elements; nobody else uses them, so `elements` lie elsewhere.
            unsafe { to.copy_from_nonoverlapping(elements.as_ptr(), len) };
            Ok(())
        }
    }
}
