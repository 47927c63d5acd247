//! Shared libraries that are opened at run time (`dlopen`), for what may or may not be on a machine.
//!
//! # Invariants
//! - library.1: a library is never closed: what was found in it stays where it is as long as the process lives.
//! - library.2: names are C strings that live through the call, and a message of `dlerror` is copied before the next call of
//!   this thread.
//! - library.3: a pointer to a function of C fits a type of the same size; that it has this type the caller vouches for.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use crate::{OsError, Result};

/// An open library.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

// SAFETY: library.1: the handle is a token that stays valid, and any thread may use it to look for a name.
unsafe impl Send for Library {}
// SAFETY: library.1: a shared handle is only given to `dlsym`, which several threads may call at once.
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
            // SAFETY: library.2: `name` is a C string that lives through the call; what runs as it is loaded belongs to a library that this
            // machine has by that name.
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
        // SAFETY: library.1: the handle is of a library that is still open. library.2: `name` is a borrowed C string.
        let address = NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })?;
        // SAFETY: library.3: `address` is as large as `F`, as is asserted; the caller promises that `F` is the function's type.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }
}

fn refusal() -> String {
    // SAFETY: library.2: it is given nothing; what it gives is used before this thread calls the linker again.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason is given".to_owned();
    }
    // SAFETY: library.2: `text` is not null, so it is a C string, which is copied before this thread calls the linker again.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_named() {
        let library = Library::open(&["libnothing-of-ours.so", "libc.so.6"]).expect("the C library");
        // SAFETY: C's `abs` is given an `int` and gives one, as this type says.
        let abs: unsafe extern "C" fn(i32) -> i32 = unsafe { library.function(c"abs") }.expect("there");
        // SAFETY: `abs` is C's, which is given a number that has an absolute value.
        assert_eq!(unsafe { abs(-3) }, 3);
        // SAFETY: the library has no function of that name, so none is found, or called by the wrong type.
        assert!(unsafe { library.function::<unsafe extern "C" fn()>(c"no_such_function_of_ours") }.is_none());
        let refused = Library::open(&["libnothing-of-ours.so"]).expect_err("no library").to_string();
        assert!(refused.starts_with("open the library libnothing-of-ours.so: "), "{refused}");
        assert!(refused.contains("No such file"), "{refused}");
        assert!(Library::open(&["a\0b"]).is_err());
    }
}
