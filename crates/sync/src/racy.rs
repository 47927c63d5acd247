//! Copies to and from memory that a peer may be writing at the same time.
//!
//! No reference to such bytes is ever made. Natively a copy is a `memcpy` through raw pointers, and of one aligned word
//! of 4 or 8 bytes an atomic access, which is never torn; under a checker it is a loop of relaxed atomics, so that Miri,
//! loom and the thread sanitizer see a race that is allowed instead of one that is not. What has been copied out is
//! private, and is checked after the copy, never before.
//!
//! # Invariants
//! Y1. A `RawBytes` describes `len` bytes that stay mapped, readable and writable as long as it is used; who makes
//!     one from a pointer promises that.
//! Y2. Bytes under a `RawBytes` are only ever touched through this module or through atomics.

use crate::atomic::{AtomicU64, Ordering};
use crate::tally;
use core::marker::PhantomData;
#[cfg(not(any(miri, gasworks_tsan)))]
use core::sync::atomic as inner;

/// From so many bytes on the processor copies strings faster than vectors.
#[cfg(all(target_arch = "x86_64", not(any(miri, gasworks_tsan))))]
const STRING: usize = 4096;

/// A run of bytes that somebody else may be reading or writing: an address and a length, no borrow.
#[derive(Clone, Copy, Debug)]
pub struct RawBytes {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: a RawBytes gives no access by itself that is not racy by contract (Y2); moving the address between
// threads is harmless.
unsafe impl Send for RawBytes {}
// SAFETY: as above; all methods take the address by value.
unsafe impl Sync for RawBytes {}

impl RawBytes {
    /// No bytes.
    pub const EMPTY: RawBytes = RawBytes { ptr: core::ptr::NonNull::dangling().as_ptr(), len: 0 };

    /// Describes `len` bytes at `ptr`.
    ///
    /// # Safety
    /// Y1: the bytes stay mapped, readable and writable while this value or a copy of it is used. Y2: nobody holds
    /// a reference to them meanwhile, except to atomics.
    #[inline]
    pub const unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// The address.
    #[inline]
    pub const fn as_ptr(self) -> *mut u8 {
        self.ptr
    }

    /// The number of bytes.
    #[inline]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The `len` bytes from `offset`, if they lie inside.
    #[inline]
    pub const fn slice(self, offset: usize, len: usize) -> Option<Self> {
        match offset.checked_add(len) {
            // SAFETY: offset <= self.len, so the address is inside the run or one past it (Y1).
            Some(end) if end <= self.len => Some(Self { ptr: unsafe { self.ptr.add(offset) }, len }),
            _ => None,
        }
    }

    /// Copies `source` to the start of these bytes.
    ///
    /// # Panics
    /// If `source` is longer.
    #[inline]
    pub fn write(self, source: &[u8]) {
        assert!(source.len() <= self.len, "a copy of {} bytes into {}", source.len(), self.len);
        // SAFETY: Y1 for the target, a borrow for the source; a borrow never overlaps shared bytes (Y2).
        unsafe { copy_in(self.ptr, source.as_ptr(), source.len()) }
    }

    /// As [`write`](Self::write), for what another processor is to read: from a page on by the processor's own way of
    /// copying strings, by which floods of pages are a sixteenth to a ninth faster than by `memcpy`.
    ///
    /// # Panics
    /// If `source` is longer.
    #[inline]
    pub fn write_away(self, source: &[u8]) {
        #[cfg(all(target_arch = "x86_64", not(any(miri, gasworks_tsan))))]
        if source.len() >= STRING && std::arch::is_x86_feature_detected!("ermsb") {
            assert!(source.len() <= self.len, "a copy of {} bytes into {}", source.len(), self.len);
            tally::copied(source.len());
            // SAFETY: Y1 for the target, a borrow for the source, as in `write`; the direction flag is clear at every call.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rcx") source.len() => _,
                    inout("rdi") self.ptr => _,
                    inout("rsi") source.as_ptr() => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        self.write(source);
    }

    /// Has the word of 8 bytes at the start used as an atomic, also by a checker; `None` if there are fewer bytes, or it is not aligned.
    #[inline(always)]
    pub fn with_u64<R>(self, f: impl FnOnce(&core::sync::atomic::AtomicU64) -> R) -> Option<R> {
        let is_one = self.len >= 8 && self.ptr.addr().is_multiple_of(8);
        // SAFETY: Y1, Y2: it is mapped, and all references to it are to atomics.
        is_one.then(|| f(unsafe { &*self.ptr.cast::<core::sync::atomic::AtomicU64>() }))
    }

    /// As [`with_u64`](Self::with_u64), of 4 bytes.
    #[inline(always)]
    pub fn with_u32<R>(self, f: impl FnOnce(&core::sync::atomic::AtomicU32) -> R) -> Option<R> {
        let is_one = self.len >= 4 && self.ptr.addr().is_multiple_of(4);
        // SAFETY: as above.
        is_one.then(|| f(unsafe { &*self.ptr.cast::<core::sync::atomic::AtomicU32>() }))
    }

    /// Copies the first `target.len()` of these bytes out.
    ///
    /// # Panics
    /// If `target` is longer.
    #[inline]
    pub fn read(self, target: &mut [u8]) {
        assert!(target.len() <= self.len, "a copy of {} bytes out of {}", target.len(), self.len);
        // SAFETY: Y1 for the source, an exclusive borrow for the target, which never overlaps shared bytes (Y2).
        unsafe { copy_out(target.as_mut_ptr(), self.ptr, target.len()) }
    }
}

/// Bytes that are there for `'a` only, to be read: a [`RawBytes`] that cannot be kept.
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a> {
    bytes: RawBytes,
    of: PhantomData<&'a ()>,
}

impl<'a> Lent<'a> {
    /// Lends `bytes` for a lifetime that the receiver does not choose.
    #[inline]
    pub const fn new(bytes: RawBytes) -> Self {
        Self { bytes, of: PhantomData }
    }

    /// Lends bytes that nobody else can touch.
    #[inline]
    pub const fn private(bytes: &'a mut [u8]) -> Self {
        // SAFETY: there (Y1) and without another reference (Y2) as long as they are borrowed, that is, for `'a`.
        Self::new(unsafe { RawBytes::new(bytes.as_mut_ptr(), bytes.len()) })
    }

    /// The address.
    #[inline]
    pub const fn as_ptr(self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The number of bytes.
    #[inline]
    pub const fn len(self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The `len` bytes from `offset`, if they lie inside.
    #[inline]
    pub const fn slice(self, offset: usize, len: usize) -> Option<Lent<'a>> {
        match self.bytes.slice(offset, len) {
            Some(bytes) => Some(Self::new(bytes)),
            None => None,
        }
    }

    /// Copies the first `target.len()` of these bytes out.
    ///
    /// # Panics
    /// If `target` is longer.
    #[inline]
    pub fn read(self, target: &mut [u8]) {
        self.bytes.read(target);
    }
}

/// Copies `len` bytes from `source` to `target`, both of which peers may be touching.
///
/// # Safety
/// Both runs are mapped for `len` bytes (Y1), do not overlap, and are free of references to what is not atomic (Y2).
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::copy_nonoverlapping(source, target, len)
    };
    #[cfg(any(miri, gasworks_tsan))]
    for i in 0..len {
        // SAFETY: the caller's promise; a byte is aligned for a byte-wide atomic.
        unsafe { store_byte(target.add(i), load_byte(source.add(i))) };
    }
}

/// Copies `len` bytes from `source`, which is the caller's own, to `target`, which peers may be touching.
///
/// # Safety
/// As for [`copy`]; `source` is readable and nobody writes it meanwhile.
#[inline(always)]
pub unsafe fn copy_in(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller's promise; the words are aligned where they are stored as words.
    unsafe {
        match len {
            8 if target.addr().is_multiple_of(8) => {
                (*target.cast::<inner::AtomicU64>())
                    .store(source.cast::<u64>().read_unaligned(), Ordering::Relaxed);
            }
            4 if target.addr().is_multiple_of(4) => {
                (*target.cast::<inner::AtomicU32>())
                    .store(source.cast::<u32>().read_unaligned(), Ordering::Relaxed);
            }
            _ => core::ptr::copy_nonoverlapping(source, target, len),
        }
    };
    #[cfg(any(miri, gasworks_tsan))]
    for i in 0..len {
        // SAFETY: the caller's promise; a byte is aligned for a byte-wide atomic.
        unsafe { store_byte(target.add(i), *source.add(i)) };
    }
}

/// Copies `len` bytes from `source`, which peers may be touching, to `target`, which is the caller's own.
///
/// # Safety
/// As for [`copy`]; `target` is writable and nobody else uses it meanwhile.
#[inline(always)]
pub unsafe fn copy_out(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller's promise; the words are aligned where they are loaded as words.
    unsafe {
        match len {
            8 if source.addr().is_multiple_of(8) => {
                target
                    .cast::<u64>()
                    .write_unaligned((*source.cast::<inner::AtomicU64>()).load(Ordering::Relaxed));
            }
            4 if source.addr().is_multiple_of(4) => {
                target
                    .cast::<u32>()
                    .write_unaligned((*source.cast::<inner::AtomicU32>()).load(Ordering::Relaxed));
            }
            _ => core::ptr::copy_nonoverlapping(source, target, len),
        }
    };
    #[cfg(any(miri, gasworks_tsan))]
    for i in 0..len {
        // SAFETY: the caller's promise; a byte is aligned for a byte-wide atomic.
        unsafe { *target.add(i) = load_byte(source.add(i)) };
    }
}

/// # Safety
/// The byte is mapped (Y1) and free of references to what is not atomic (Y2).
#[cfg(any(miri, gasworks_tsan))]
unsafe fn load_byte(at: *const u8) -> u8 {
    // SAFETY: the caller's promise.
    unsafe { (*at.cast::<core::sync::atomic::AtomicU8>()).load(Ordering::Relaxed) }
}

/// # Safety
/// As for [`load_byte`], writable.
#[cfg(any(miri, gasworks_tsan))]
unsafe fn store_byte(at: *mut u8, byte: u8) {
    // SAFETY: the caller's promise.
    unsafe { (*at.cast::<core::sync::atomic::AtomicU8>()).store(byte, Ordering::Relaxed) }
}

/// Stores `source` into `words` from its start; the rest of the last word becomes zero.
///
/// # Panics
/// If `source` does not fit.
#[inline(always)]
pub fn store_words(words: &[AtomicU64], source: &[u8]) {
    assert!(source.len() <= words.len() * 8, "{} bytes into {} words", source.len(), words.len());
    let mut chunks = source.chunks_exact(8);
    let mut at = 0;
    for chunk in &mut chunks {
        words[at].store(u64::from_ne_bytes(chunk.try_into().unwrap_or_default()), Ordering::Relaxed);
        at += 1;
    }
    let rest = chunks.remainder();
    if let &[a, b, c, d] = rest {
        // The usual one: a copy whose length is known is no call.
        words[at].store(u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]), Ordering::Relaxed);
    } else if !rest.is_empty() {
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        words[at].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// Copies the first `target.len()` bytes of `words` out.
///
/// # Panics
/// If `target` is longer than `words`.
#[inline(always)]
pub fn load_words(words: &[AtomicU64], target: &mut [u8]) {
    assert!(target.len() <= words.len() * 8, "{} bytes out of {} words", target.len(), words.len());
    let mut chunks = target.chunks_exact_mut(8);
    let mut at = 0;
    for chunk in &mut chunks {
        chunk.copy_from_slice(&words[at].load(Ordering::Relaxed).to_ne_bytes());
        at += 1;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let bytes = words[at].load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&bytes[..rest.len()]);
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_at_every_length() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        for len in 0..=32 {
            let source: Vec<u8> = (0..len as u8).collect();
            store_words(&words, &source);
            let mut back = vec![0xAA; len];
            load_words(&words, &mut back);
            assert_eq!(back, source);
        }
    }

    #[test]
    fn slices_stay_inside() {
        let mut bytes = [0u8; 16];
        // SAFETY: the array outlives the view and is not otherwise used meanwhile (Y1, Y2).
        let raw = unsafe { RawBytes::new(bytes.as_mut_ptr(), 16) };
        assert!(raw.slice(8, 8).is_some());
        assert!(raw.slice(8, 9).is_none());
        assert!(raw.slice(usize::MAX, 2).is_none());
        raw.slice(4, 4).into_iter().for_each(|s| s.write(b"abcd"));
        let mut out = [0u8; 4];
        raw.slice(4, 4).into_iter().for_each(|s| s.read(&mut out));
        assert_eq!(&out, b"abcd");
    }

    #[test]
    fn copies_arrive_whole_on_both_sides_of_a_page() {
        let mut bytes = vec![0u8; 3 * 4096];
        // SAFETY: the vector outlives the view and is not otherwise used meanwhile (Y1, Y2).
        let raw = unsafe { RawBytes::new(bytes.as_mut_ptr(), bytes.len()) };
        for len in [0, 1, 4097, 4095, 4096, 8193].into_iter().take(if cfg!(miri) { 3 } else { 6 }) {
            let source: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
            let mut found = vec![0u8; len + 2];
            let part = raw.slice(1, len + 1).expect("inside");
            part.write(&vec![0; len + 1]);
            part.write_away(&source);
            raw.read(&mut found);
            assert_eq!((found[0], &found[1..=len], found[len + 1]), (0, &source[..], 0), "{len}");
        }
    }

    #[test]
    #[should_panic(expected = "a copy of 4097 bytes into 4096")]
    fn a_page_too_long_is_refused() {
        let mut bytes = vec![0u8; 4096];
        // SAFETY: the vector outlives the view and is not otherwise used meanwhile (Y1, Y2).
        let raw = unsafe { RawBytes::new(bytes.as_mut_ptr(), bytes.len()) };
        raw.write_away(&[1; 4097]);
    }
}
