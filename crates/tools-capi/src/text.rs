//! Texts that come from C, and that go there.
//!
//! # Invariants
//! - text.1: a text from C ends with a zero byte, and stays as it is while the call lasts, as C's callers of anything promise.
//! - text.2: a buffer from C has the bytes that go with it, for this call alone.

use std::ffi::{CStr, CString, c_char};

/// A text from C, if there is one. Bytes that are no UTF-8 are replaced: texts are for people, or are compared with ASCII.
///
/// # Safety
/// It is null, or text.1 holds.
pub unsafe fn read(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: text.1: `text` is not null, so the caller promises that it ends with a zero byte; what is kept of it is a copy.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Writes as much as there is room for, and a zero byte.
///
/// # Safety
/// `buffer` has `size` bytes (text.2).
pub unsafe fn write(text: &str, buffer: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1) else { return };
    let len = text.len().min(room);
    // SAFETY: text.2: the caller promises `size` bytes at `buffer`; `len` and the zero byte fit in, and `text`, borrowed, does not overlap
    // them.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
        buffer.add(len).write(0);
    }
}

/// A C text of ours.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("no zero byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut buffer = [b'x' as c_char; 6];
        // SAFETY: text.2: the array has the five bytes that the call is told, and one more.
        unsafe { write("abcdef", buffer.as_mut_ptr(), 5) };
        // SAFETY: text.1: the call above has written a text with its zero byte into the array.
        assert_eq!(unsafe { read(buffer.as_ptr()) }.as_deref(), Some("abcd"));
        assert_eq!(buffer[5], b'x' as c_char);
        // SAFETY: text.2: with a size of zero nothing is written, so the null pointer is not used.
        unsafe { write("abc", std::ptr::null_mut(), 0) };
        // SAFETY: the function looks for null first and reads nothing then.
        assert_eq!(unsafe { read(std::ptr::null()) }, None);
    }
}
