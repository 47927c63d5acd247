//! The variables of the environment, as they stand.
//!
//! # Invariants
//! - variable.1: the environment is written while no other thread reads it, as callers of what writes it promise, as everywhere in C; so what
//!   was read stays while a call lasts.

use crate::text;
use std::ffi::CStr;

/// The value of a variable.
pub fn value(name: &CStr) -> Option<String> {
    // SAFETY: variable.1: `getenv` gives null or a text that nobody changes while `read` copies it; `name` ends with a zero byte, by its
    // type.
    unsafe { text::read(libc::getenv(name.as_ptr())) }
}
