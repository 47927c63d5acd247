//! Shared libraries that are opened at run time (`dlopen`), for what may or may not be on a machine.
//!
//! # Invariants
//! Y1. A library is never closed: what was found in it stays where it is as long as the process lives.
//! Y2. Names are C strings that live through the call, and a message of `dlerror` is copied before the next call of
//!     this thread.
//! Y3. A pointer to a function of C fits a type of the same size; that it has this type the caller vouches for.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use crate::{OsError, Result};

/// An open library.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

// SAFETY: Y1; the handle is a token that any thread may use to look for a name.
unsafe impl Send for Library {}
// SAFETY: Y1; as above, and several may at once.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the first of these libraries that is there, by the system's rules for the search. Its symbols are visible to
    /// libraries that are opened later: launchers' libraries load parts of their own, which rely on that.
    pub fn open(names: &[&str]) -> Result<Self> {
        const OPERATION: &str = "open the library";
        let mut refusals = Vec::new();
        for name in names {
            let name = CString::new(*name)
                .map_err(|e| OsError::other(OPERATION, name, format!("its name is none: {e}")))?;
            // SAFETY: Y2.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if let Some(handle) = NonNull::new(handle) {
                return Ok(Self(handle));
            }
            refusals.push(refusal());
        }
        Err(OsError::other(OPERATION, names.join(" or "), refusals.join("; ")))
    }

    /// The function called `name`, if the library has it.
    ///
    /// # Safety
    /// `F` is the type of a function pointer, and of this very function.
    pub unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function pointer is asked for") };
        // SAFETY: Y1 and Y2.
        let address = NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })?;
        // SAFETY: Y3.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }
}

fn refusal() -> String {
    // SAFETY: Y2.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason is given".to_owned();
    }
    // SAFETY: Y2; it is a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_named() {
        let library = Library::open(&["libnothing-of-ours.so", "libc.so.6"]).expect("the C library");
        // SAFETY: the type of C's `abs`.
        let abs: unsafe extern "C" fn(i32) -> i32 = unsafe { library.function(c"abs") }.expect("there");
        // SAFETY: it takes a number.
        assert_eq!(unsafe { abs(-3) }, 3);
        // SAFETY: nothing is called.
        assert!(unsafe { library.function::<unsafe extern "C" fn()>(c"no_such_function_of_ours") }.is_none());
        let refused = Library::open(&["libnothing-of-ours.so"]).expect_err("no library").to_string();
        assert!(refused.starts_with("open the library libnothing-of-ours.so: "), "{refused}");
        assert!(refused.contains("No such file"), "{refused}");
        assert!(Library::open(&["a\0b"]).is_err());
    }
}
