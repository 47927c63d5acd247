//! Sums and counts over bytes.
//!
//! # Invariants
//! TB1. The caller's bytes are there, for so many as it says, and nobody writes them meanwhile.
//! TB2. What is copied goes to memory of the caller's own that does not overlap.

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
/// TB1, for `'a`.
unsafe fn view<'a>(bytes: *const c_void, count: usize) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: TB1, by the caller's promise.
    unsafe { slice::from_raw_parts(bytes.cast(), count) }
}

/// A number that tells runs of bytes apart.
///
/// # Safety
/// TB1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_checksum(bytes: *const c_void, count: c_int) -> u64 {
    // SAFETY: TB1, by the caller's promise.
    checksum(unsafe { view(bytes, usize::try_from(count).unwrap_or(0)) })
}

/// How many of the bytes are zero.
///
/// # Safety
/// TB1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s(bytes: *const c_void, count: usize) -> usize {
    // SAFETY: TB1, by the caller's promise.
    zeros(unsafe { view(bytes, count) })
}

/// Copies bytes, and says how many of them are zero.
///
/// # Safety
/// TB1 and TB2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s_copy(to: *mut c_void, from: *const c_void, count: usize) -> usize {
    if count > 0 {
        // SAFETY: TB1 and TB2, by the caller's promise.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.cast(), count) };
    }
    // SAFETY: TB1, by the caller's promise.
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
        // SAFETY: TB1 and TB2: two vectors.
        let zeros = unsafe { gasnett_count0s_copy(to.as_mut_ptr().cast(), from.as_ptr().cast(), 100) };
        assert_eq!(zeros, 34);
        assert_eq!((&to[..100], to[100]), (&from[..], 9));
        // SAFETY: TB1: there are none.
        assert_eq!(unsafe { gasnett_count0s(std::ptr::null(), 0) }, 0);
    }
}
