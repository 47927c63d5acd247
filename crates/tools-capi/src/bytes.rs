//! Sums and counts over bytes.
//!
//! # Invariants
//! - bytes.1: the caller's bytes are there, for so many as it says, and nobody writes them meanwhile.
//! - bytes.2: what is copied goes to memory of the caller's own that does not overlap.

use std::ffi::{c_int, c_void};
use std::slice;

/// FNV-1a, going on from `sum`.
fn fnv(sum: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// Over the bytes and their number, so that zeros count.
pub fn checksum(bytes: &[u8]) -> u64 {
    fnv(fnv(START, bytes), &(bytes.len() as u64).to_le_bytes())
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// How many of the bytes are zero.
pub fn zeros(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == 0).count()
}

/// The caller's bytes.
///
/// # Safety
/// bytes.1, for `'a`.
unsafe fn view<'a>(bytes: *const c_void, count: usize) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: bytes.1: the caller promises `count` bytes at `bytes`, which nobody writes for `'a`. There are some, so it is not null.
    unsafe { slice::from_raw_parts(bytes.cast(), count) }
}

/// A number that tells runs of bytes apart.
///
/// # Safety
/// bytes.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_checksum(bytes: *const c_void, count: c_int) -> u64 {
    // SAFETY: bytes.1: the caller promises `count` bytes at `bytes`, unwritten during this call, which is as long as the slice lives.
    checksum(unsafe { view(bytes, usize::try_from(count).unwrap_or(0)) })
}

/// How many of the bytes are zero.
///
/// # Safety
/// bytes.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s(bytes: *const c_void, count: usize) -> usize {
    // SAFETY: bytes.1: the caller promises `count` bytes at `bytes`; the slice is gone when they are counted.
    zeros(unsafe { view(bytes, count) })
}

/// Copies bytes, and says how many of them are zero.
///
/// # Safety
/// bytes.1 and bytes.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s_copy(to: *mut c_void, from: *const c_void, count: usize) -> usize {
    if count > 0 {
        // SAFETY: bytes.1: `from` has `count` bytes that nobody writes. bytes.2: `to` has room for as many, and the two do not overlap.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.cast(), count) };
    }
    // SAFETY: bytes.1: the copy has left `from` as it was: `count` bytes, which the caller keeps until this returns.
    unsafe { gasnett_count0s(from, count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_changes_the_sum() {
        let mut bytes = [0u8; 64];
        let mut seen = std::collections::BTreeSet::from([checksum(&bytes)]);
        for at in 0..bytes.len() {
            bytes[at] = 1;
            assert!(seen.insert(checksum(&bytes)));
            assert!(seen.insert(checksum(&bytes[..at])));
        }
        // A published value.
        assert_eq!(fnv(START, b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn zeros_are_counted_and_copied() {
        let from: Vec<u8> = (0..100).map(|n| n % 3).collect();
        let mut to = vec![9u8; 101];
        // SAFETY: bytes.1: `from` has 100 bytes and lives on. bytes.2: `to`, another vector, has room for 101.
        let zeros = unsafe { gasnett_count0s_copy(to.as_mut_ptr().cast(), from.as_ptr().cast(), 100) };
        assert_eq!(zeros, 34);
        assert_eq!((&to[..100], to[100]), (&from[..], 9));
        // SAFETY: bytes.1: no byte is read of a null pointer with a count of zero.
        assert_eq!(unsafe { gasnett_count0s(std::ptr::null(), 0) }, 0);
    }
}
