//! `libpmi` and `libpmi2`: PMI-1, PMI-2 and Cray's extensions, over whatever launcher has started the process.
//!
//! All of it is one library with one state, so a program may use both versions, as GASNet does. What clients may rely on is
//! said in `include/pmi.h` and its companions; how it comes about:
//!
//! - [`job`]: a rank and its job: collective operations and pairs, over the port `Bootstrap`.
//! - [`pairs`]: keys and values: each rank holds all of them, and learns those of the others when all meet.
//! - [`board`]: attributes of a host, which need no meeting.
//! - [`nic`]: what the job's ranks need to use the NIC, which ALPS would leave in the environment.
//! - [`state`]: the one state of the process.
//! - [`args`]: what C gives, checked; [`pmi1`], [`pmi2`], [`cray`]: the calls.

#[allow(unsafe_code)]
pub mod args;
pub mod board;
#[allow(unsafe_code)]
pub mod cray;
pub mod job;
#[allow(unsafe_code)]
pub mod nic;
pub mod pairs;
#[allow(unsafe_code)]
pub mod pmi1;
#[allow(unsafe_code)]
pub mod pmi2;
pub mod state;

use std::ffi::c_int;

/// What a call gives, or one of PMI's codes.
pub type Done<T = ()> = Result<T, c_int>;

/// The end of every call.
fn code(done: Done) -> c_int {
    done.err().unwrap_or(gasworks_gni_sys::pmi::PMI_SUCCESS)
}
