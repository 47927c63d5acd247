//! Memory that the caller only lends for an operation.

/// Memory of the caller.
#[derive(Debug)]
pub struct Lent {
    at: *mut u8,
    len: usize,
}

// SAFETY: raw.1: the memory is valid in every thread. raw.2: the one that transfers has the lock of the sock, and alone touches it.
unsafe impl Send for Lent {}

impl Lent {
    /// So many bytes at `at`.
    ///
    /// # Safety
    /// raw.1, for the operation that it is posted with. `at` may be null if `len` is 0.
    pub unsafe fn new(at: *mut u8, len: usize) -> Self {
        Self { at, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: raw.1: `at` is valid for `len` bytes until the operation has ended. raw.2: nothing else is transferred to them meanwhile.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: raw.1: what is posted for reading is valid for writes of `len` bytes until the operation has ended. raw.2: nothing else
        // refers to them meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}
