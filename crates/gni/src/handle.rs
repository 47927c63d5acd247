//! The handle by which registered memory is named.

use gasworks_gni_sys::gni_mem_handle_t;

/// Registered memory, as it is told to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub words: [u64; 2],
}

impl Handle {
    /// As the library has it.
    pub fn raw(self) -> gni_mem_handle_t {
        gni_mem_handle_t { qword1: self.words[0], qword2: self.words[1] }
    }
}
