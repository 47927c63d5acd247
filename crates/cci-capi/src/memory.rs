//! Memory that C programs pass.
//!
//! # Invariants
//! - memory.1: a pointer that the caller gives for a value is null, which is refused, or valid for one read, or one write of a result, of its type, aligned to nothing.
//! - memory.2: a text that the caller gives is null, which is refused, or ends with a zero byte, and stays as it is during the call.
//! - memory.3: memory that the caller gives with a length is valid for it, and stays as it is, during the call. Null with a length other than 0 is refused.

use crate::abi::{EINVAL, EMSGSIZE};
use libc::iovec;
use std::ffi::{CStr, c_char, c_int, c_void};

/// So many parts of a message need no allocation.
const FEW_PARTS: usize = 8;

/// Writes a result.
pub fn put<T>(to: *mut T, value: T) -> Result<(), c_int> {
    if to.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: memory.1: `to` is not null, so it is valid for one write of a `T`.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads a value.
pub fn get<T: Copy>(from: *const T) -> Result<T, c_int> {
    if from.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: memory.1: `from` is not null, so it is valid for one read of a `T`.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads a text.
pub fn text<'a>(from: *const c_char) -> Result<&'a str, c_int> {
    if from.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: memory.2: `from` is not null, so it ends with a zero byte; the text is used before the call returns.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| EINVAL)
}

/// Some bytes.
pub fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8], c_int> {
    if len == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(EINVAL);
    }
    if isize::try_from(len).is_err() {
        return Err(EMSGSIZE);
    }
    // SAFETY: memory.3: `at` is not null, so it is valid for `len` bytes, which stay as they are; they are used before the call returns.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

/// Calls `f` with the parts of a message.
pub fn with_parts<R>(iov: *const iovec, count: usize, f: impl FnOnce(&[&[u8]]) -> R) -> Result<R, c_int> {
    if iov.is_null() && count > 0 {
        return Err(EINVAL);
    }
    let part = |at: usize| {
        let iovec { iov_base, iov_len } = get(iov.wrapping_add(at))?;
        bytes(iov_base, iov_len)
    };
    let is_too_long = |parts: &[&[u8]]| {
        let total = parts.iter().try_fold(0usize, |total, part| total.checked_add(part.len()));
        total.is_none_or(|total| isize::try_from(total).is_err())
    };
    if count <= FEW_PARTS {
        let mut few: [&[u8]; FEW_PARTS] = [&[]; FEW_PARTS];
        for (at, to) in few.iter_mut().enumerate().take(count) {
            *to = part(at)?;
        }
        let parts = &few[..count];
        if is_too_long(parts) { Err(EMSGSIZE) } else { Ok(f(parts)) }
    } else {
        let parts = (0..count).map(part).collect::<Result<Vec<_>, _>>()?;
        if is_too_long(&parts) { Err(EMSGSIZE) } else { Ok(f(&parts)) }
    }
}

/// A copy of a text that the program frees.
pub fn copy_for_program(text: &CStr) -> Option<*mut c_char> {
    // SAFETY: memory.2: `text` ends with a zero byte and is borrowed during the call.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    (!copy.is_null()).then_some(copy)
}
