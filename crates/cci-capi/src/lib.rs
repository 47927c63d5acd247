//! `libcci`: connected endpoints for C programs, declared by `include/cci.h`.
//!
//! - [`abi`]: the structures and numbers of the header.
//! - [`config`]: the file that `CCI_CONFIG` names; [`devices`]: the devices it describes.
//! - [`slab`]: objects that C programs hold pointers to.
//! - [`state`]: what an endpoint is behind its pointer; [`events`]: its events.
//! - [`memory`]: memory that C programs pass.
//! - [`calls`]: the functions.
//!
//! A pointer to one of the library's own objects is looked up by its address and never followed. One lock for each endpoint guards all that belongs to it.
//!
//! A panic inside a call ends the process: it cannot leave an `extern "C"` function.
#![deny(missing_docs)]

pub mod abi;
#[allow(unsafe_code)]
pub mod calls;
mod config;
mod devices;
mod events;
#[allow(unsafe_code)]
mod memory;
mod slab;
mod state;
