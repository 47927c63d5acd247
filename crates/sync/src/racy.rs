//! Copies to and from memory that a peer may be writing at the same time.
//!
//! No reference to such bytes is ever made. Natively a copy is a `memcpy` through raw pointers, and of one aligned word
//! of 4 or 8 bytes an atomic access, which is never torn; under a checker it is a loop of relaxed atomics, so that Miri,
//! loom and the thread sanitizer see a race that is allowed instead of one that is not. What has been copied out is
//! private, and is checked after the copy, never before.
//!
//! A [`RawSlice`] says where such bytes lie and gives no access to them, as a `RawFd` is only a number; a [`VolatileSlice`] borrows
//! whatever keeps them mapped, and reads and writes them.
//!
//! # Invariants
//! - racy.1: the bytes of a `VolatileSlice<'a>` stay mapped, readable and writable for `'a`. Whoever makes one from a [`RawSlice`]
//!   promises it.
//! - racy.2: for `'a` they are only touched through this module, through atomics, or by the kernel and the hardware; no reference to
//!   them exists but to atomics.

use crate::atomic::{AtomicU64, Ordering};
use crate::tally;
use core::marker::PhantomData;
#[cfg(not(any(miri, gasworks_tsan)))]
use core::sync::atomic as inner;

/// From so many bytes on the processor copies strings faster than vectors.
#[cfg(all(target_arch = "x86_64", not(any(miri, gasworks_tsan))))]
const STRING: usize = 4096;

/// An address and a length: it names bytes and gives no access to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSlice {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: it is an address and a length, which mean the same in any thread and give no access.
unsafe impl Send for RawSlice {}
// SAFETY: threads that share it can only read the address and the length, which nothing changes.
unsafe impl Sync for RawSlice {}

impl RawSlice {
    /// No bytes.
    pub const EMPTY: RawSlice = RawSlice { ptr: core::ptr::NonNull::dangling().as_ptr(), len: 0 };

    /// Names `len` bytes at `ptr`.
    #[inline]
    pub const fn new(ptr: *mut u8, len: usize) -> Self {
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
            Some(end) if end <= self.len => Some(Self { ptr: self.ptr.wrapping_add(offset), len }),
            _ => None,
        }
    }

    /// Borrows the bytes.
    ///
    /// # Safety
    /// racy.1: they stay mapped, readable and writable for `'a`. racy.2: nobody holds a reference to them meanwhile, except to
    /// atomics.
    #[inline]
    pub const unsafe fn borrow<'a>(self) -> VolatileSlice<'a> {
        VolatileSlice { raw: self, of: PhantomData }
    }
}

/// Bytes that somebody else may be reading or writing, borrowed from whatever keeps them mapped.
///
/// It is copied freely and never turned into a reference to plain bytes: what is read is copied out, what is written is copied in.
#[derive(Clone, Copy, Debug)]
pub struct VolatileSlice<'a> {
    raw: RawSlice,
    of: PhantomData<&'a [core::sync::atomic::AtomicU8]>,
}

impl<'a> VolatileSlice<'a> {
    /// No bytes.
    pub const EMPTY: VolatileSlice<'static> = VolatileSlice { raw: RawSlice::EMPTY, of: PhantomData };

    /// Shares bytes that nobody else can touch.
    #[inline]
    pub const fn from_mut(bytes: &'a mut [u8]) -> Self {
        // SAFETY: borrowed for `'a` (racy.1), exclusively, so that there is no other reference (racy.2).
        unsafe { RawSlice::new(bytes.as_mut_ptr(), bytes.len()).borrow() }
    }

    /// Shares words that are atomics.
    #[cfg(not(gasworks_loom))]
    #[inline]
    pub const fn from_words(words: &'a [AtomicU64]) -> Self {
        // SAFETY: borrowed for `'a` (racy.1), as atomics, so that every other reference is to atomics as well (racy.2).
        unsafe { RawSlice::new(words.as_ptr().cast_mut().cast(), size_of_val(words)).borrow() }
    }

    /// Where the bytes lie, without the borrow.
    #[inline]
    pub const fn raw(self) -> RawSlice {
        self.raw
    }

    /// The address.
    #[inline]
    pub const fn as_ptr(self) -> *mut u8 {
        self.raw.ptr
    }

    /// The number of bytes.
    #[inline]
    pub const fn len(self) -> usize {
        self.raw.len
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.raw.len == 0
    }

    /// The `len` bytes from `offset`, if they lie inside.
    #[inline]
    pub const fn slice(self, offset: usize, len: usize) -> Option<Self> {
        match self.raw.slice(offset, len) {
            Some(raw) => Some(Self { raw, of: PhantomData }),
            None => None,
        }
    }

    /// Copies `source` to the start of these bytes.
    ///
    /// # Panics
    /// If `source` is longer.
    #[inline]
    pub fn write(self, source: &[u8]) {
        assert!(source.len() <= self.len(), "a copy of {} bytes into {}", source.len(), self.len());
        // SAFETY: the target is mapped (racy.1) and the source borrowed; a borrow never overlaps shared bytes (racy.2).
        unsafe { copy_in(self.raw.ptr, source.as_ptr(), source.len()) }
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
            assert!(source.len() <= self.len(), "a copy of {} bytes into {}", source.len(), self.len());
            tally::copied(source.len());
            // SAFETY: the target is mapped (racy.1) and the source borrowed, so they do not overlap (racy.2); the direction flag is
            // clear at every call.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rcx") source.len() => _,
                    inout("rdi") self.raw.ptr => _,
                    inout("rsi") source.as_ptr() => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        self.write(source);
    }

    /// Copies the first `target.len()` of these bytes out.
    ///
    /// # Panics
    /// If `target` is longer.
    #[inline]
    pub fn read(self, target: &mut [u8]) {
        assert!(target.len() <= self.len(), "a copy of {} bytes out of {}", target.len(), self.len());
        // SAFETY: the source is mapped (racy.1) and the target borrowed exclusively, so it does not overlap shared bytes (racy.2).
        unsafe { copy_out(target.as_mut_ptr(), self.raw.ptr, target.len()) }
    }

    /// Copies all of these bytes to the start of others.
    ///
    /// # Panics
    /// If `target` is shorter, or they overlap.
    #[inline]
    pub fn copy_to(self, target: VolatileSlice<'_>) {
        assert!(self.len() <= target.len(), "a copy of {} bytes into {}", self.len(), target.len());
        let apart = self.as_ptr().addr().abs_diff(target.as_ptr().addr());
        assert!(apart >= self.len(), "a copy of {} bytes to a place {apart} bytes away", self.len());
        // SAFETY: both are mapped (racy.1) and free of plain references (racy.2), and as far apart as they are long.
        unsafe { copy(target.as_ptr(), self.as_ptr(), self.len()) }
    }

    /// Has the word of 8 bytes at the start used as an atomic, also by a checker; `None` if there are fewer bytes, or it is not aligned.
    #[inline(always)]
    pub fn with_u64<R>(self, f: impl FnOnce(&core::sync::atomic::AtomicU64) -> R) -> Option<R> {
        let is_one = self.len() >= 8 && self.as_ptr().addr().is_multiple_of(8);
        // SAFETY: 8 bytes that are mapped (racy.1), aligned, and referred to as atomics alone (racy.2).
        is_one.then(|| f(unsafe { &*self.as_ptr().cast::<core::sync::atomic::AtomicU64>() }))
    }

    /// As [`with_u64`](Self::with_u64), of 4 bytes.
    #[inline(always)]
    pub fn with_u32<R>(self, f: impl FnOnce(&core::sync::atomic::AtomicU32) -> R) -> Option<R> {
        let is_one = self.len() >= 4 && self.as_ptr().addr().is_multiple_of(4);
        // SAFETY: 4 bytes that are mapped (racy.1), aligned, and referred to as atomics alone (racy.2).
        is_one.then(|| f(unsafe { &*self.as_ptr().cast::<core::sync::atomic::AtomicU32>() }))
    }
}

/// Copies `len` bytes from `source` to `target`, both of which peers may be touching.
///
/// # Safety
/// Both runs are mapped for `len` bytes (racy.1), do not overlap, and are free of references to what is not atomic (racy.2).
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: both are mapped for `len` bytes and do not overlap, as the caller promises; a peer that writes meanwhile can only make the
    // bytes that are copied wrong.
    unsafe {
        core::ptr::copy_nonoverlapping(source, target, len)
    };
    #[cfg(any(miri, gasworks_tsan))]
    for i in 0..len {
        // SAFETY: `i` is below `len`, and the caller promises that both are mapped for `len` bytes, with references to atomics at most.
        unsafe { store_byte(target.add(i), load_byte(source.add(i))) };
    }
}

/// Whether this processor loads and stores a word by one instruction wherever it lies; where it is aligned, whole.
#[cfg(not(any(miri, gasworks_tsan)))]
const WHOLE_ANYWHERE: bool = cfg!(target_arch = "x86_64");

/// A compiler barrier: no store before it is left out, delayed or merged with one after it. A volatile store of a word that need not be aligned
/// would do that, too, but the compiler has such a word pass through the stack.
#[cfg(not(any(miri, gasworks_tsan)))]
#[inline(always)]
fn compiler_barrier() {
    // SAFETY: no instruction at all.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) }
}

/// A word that need not be aligned.
#[cfg(not(any(miri, gasworks_tsan)))]
#[repr(C, packed)]
struct Loose<T>(T);

/// Copies `len` bytes from `source`, which is the caller's own, to `target`, which peers may be touching.
///
/// # Safety
/// As for [`copy`]; `source` is readable and nobody writes it meanwhile.
#[inline(always)]
pub unsafe fn copy_in(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller promises that `target` is mapped for `len` bytes, without plain references, and `source` readable, apart from it,
    // and not written meanwhile. A word is stored as an atomic only where it is aligned.
    unsafe {
        match len {
            8 if WHOLE_ANYWHERE => {
                target.cast::<u64>().write_unaligned(source.cast::<u64>().read_unaligned());
                compiler_barrier();
            }
            4 if WHOLE_ANYWHERE => {
                target.cast::<u32>().write_unaligned(source.cast::<u32>().read_unaligned());
                compiler_barrier();
            }
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
        // SAFETY: `i` is below `len`; the caller promises so many bytes of `target`, mapped, and of `source`, readable and not written.
        unsafe { store_byte(target.add(i), *source.add(i)) };
    }
}

/// As [`copy_in`], one of many copies in any order, which the compiler may merge: whoever has made the last one calls [`all_copied_in`].
///
/// # Safety
/// As for [`copy_in`].
#[inline(always)]
pub unsafe fn copy_in_one(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller promises that `target` is mapped for `len` bytes, without plain references, and `source` readable, apart from it,
    // and not written meanwhile.
    unsafe {
        core::ptr::copy_nonoverlapping(source, target, len)
    };
    #[cfg(any(miri, gasworks_tsan))]
    for i in 0..len {
        // SAFETY: `i` is below `len`; the caller promises so many bytes of `target`, mapped, and of `source`, readable and not written.
        unsafe { store_byte(target.add(i), *source.add(i)) };
    }
}

/// No copy by [`copy_in_one`] is left out or delayed beyond this.
#[inline(always)]
pub fn all_copied_in() {
    #[cfg(not(any(miri, gasworks_tsan)))]
    compiler_barrier();
}

/// Copies `len` bytes from `source`, which peers may be touching, to `target`, which is the caller's own.
///
/// # Safety
/// As for [`copy`]; `target` is writable and nobody else uses it meanwhile.
#[inline(always)]
pub unsafe fn copy_out(target: *mut u8, source: *const u8, len: usize) {
    tally::copied(len);
    #[cfg(not(any(miri, gasworks_tsan)))]
    // SAFETY: the caller promises that `source` is mapped for `len` bytes, without plain references, and `target` writable, apart from it,
    // and nobody else's meanwhile. A word is loaded as an atomic only where it is aligned.
    unsafe {
        match len {
            8 if WHOLE_ANYWHERE => {
                target.cast::<Loose<u64>>().write(source.cast::<Loose<u64>>().read_volatile());
            }
            4 if WHOLE_ANYWHERE => {
                target.cast::<Loose<u32>>().write(source.cast::<Loose<u32>>().read_volatile());
            }
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
        // SAFETY: `i` is below `len`; the caller promises so many bytes of `source`, mapped, and of `target`, writable and its own.
        unsafe { *target.add(i) = load_byte(source.add(i)) };
    }
}

/// # Safety
/// The byte is mapped (racy.1) and free of references to what is not atomic (racy.2).
#[cfg(any(miri, gasworks_tsan))]
unsafe fn load_byte(at: *const u8) -> u8 {
    // SAFETY: the caller promises that the byte at `at` is mapped and referred to as an atomic at most; any byte is aligned for one.
    unsafe { (*at.cast::<core::sync::atomic::AtomicU8>()).load(Ordering::Relaxed) }
}

/// # Safety
/// As for [`load_byte`], writable.
#[cfg(any(miri, gasworks_tsan))]
unsafe fn store_byte(at: *mut u8, byte: u8) {
    // SAFETY: the caller promises that the byte at `at` is mapped, writable and referred to as an atomic at most; any is aligned for one.
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
    fn bytes_are_copied_to_others_that_are_apart() {
        let mut bytes = *b"abcdefgh";
        let all = VolatileSlice::from_mut(&mut bytes);
        let part = |offset, len| all.slice(offset, len).expect("inside");
        part(0, 3).copy_to(part(3, 5));
        part(7, 1).copy_to(part(0, 1));
        part(8, 0).copy_to(part(8, 0));
        assert_eq!(&bytes, b"hbcabcgh");
    }

    #[test]
    fn a_copy_that_does_not_fit_or_overlaps_is_refused() {
        let mut bytes = [0; 8];
        let all = VolatileSlice::from_mut(&mut bytes);
        let part = |offset, len| all.slice(offset, len).expect("inside");
        for (from, to) in [((0, 4), (4, 3)), ((0, 4), (3, 4)), ((3, 4), (0, 4)), ((0, 1), (0, 1))] {
            let copy = std::panic::AssertUnwindSafe(|| part(from.0, from.1).copy_to(part(to.0, to.1)));
            assert!(std::panic::catch_unwind(copy).is_err(), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn slices_stay_inside() {
        let mut bytes = [0u8; 16];
        let raw = VolatileSlice::from_mut(&mut bytes);
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
        let raw = VolatileSlice::from_mut(&mut bytes);
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
        let raw = VolatileSlice::from_mut(&mut bytes);
        raw.write_away(&[1; 4097]);
    }
}
