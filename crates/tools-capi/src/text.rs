//! Texts that come from C, and that go there.
//!
//! # Invariants
//! TX1. A text from C ends with a zero byte, and stays as it is while the call lasts, as C's callers of anything promise.
//! TX2. A buffer from C has the bytes that go with it, for this call alone.

use std::ffi::{CStr, c_char};

/// A text from C, if there is one. Bytes that are no UTF-8 are replaced: texts are for people, or are compared with ASCII.
///
/// # Safety
/// It is null, or TX1 holds.
pub unsafe fn read(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: TX1, by the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Writes as much as there is room for, and a zero byte.
///
/// # Safety
/// `buffer` has `size` bytes (TX2).
pub unsafe fn write(text: &str, buffer: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1) else { return };
    let len = text.len().min(room);
    // SAFETY: TX2: `len` and the zero byte fit in `size`.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
        buffer.add(len).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut buffer = [b'x' as c_char; 6];
        // SAFETY: TX2: a buffer of its own.
        unsafe { write("abcdef", buffer.as_mut_ptr(), 5) };
        // SAFETY: TX1: it was just written.
        assert_eq!(unsafe { read(buffer.as_ptr()) }.as_deref(), Some("abcd"));
        assert_eq!(buffer[5], b'x' as c_char);
        // SAFETY: TX2: no byte is written.
        unsafe { write("abc", std::ptr::null_mut(), 0) };
        // SAFETY: it is null, as the caller may have it.
        assert_eq!(unsafe { read(std::ptr::null()) }, None);
    }
}
