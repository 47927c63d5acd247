//! `libgasworks_sock`: the socket engine for C programs, declared by `include/gasworks_sock.h`.
//!
//! A panic inside a call ends the process: it cannot leave an `extern "C"` function.
#![deny(missing_docs)]

pub mod abi;
#[allow(unsafe_code)]
pub mod calls;
mod table;
