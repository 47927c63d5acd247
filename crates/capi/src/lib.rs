//! GASNet-EX for programs in C: what `include/gasnetex.h` declares, for each thread mode.
//!
//! A program in C is in one job at a time, and its calls name none: the job and all that C sees of it is a [`Face`], to which each library has
//! one [`Slot`]. [`face!`] makes the functions of one library; those of a mode differ in the type of their job alone. What they do is in
//! modules by area, and the layout of what the headers look at themselves in [`layout`].
//!
//! An error has no way to C but a code, and most calls have none: it is told, and ends the job.
//!
//! # Invariants
//! - capi.1: pointers that C hands over are what its specification says: valid for as many bytes as it says, for as long as it says.
//! - capi.2: a face is made once, by the call that begins the job, and stays until the process ends.
//! - capi.3: in a mode, C's threads call as that mode says: in `Seq` one thread alone, in `ParSync` one at a time. A [`Face`] is shared on
//!   that promise.
//! - capi.4: a token is an [`Incoming`](gasworks_core::Incoming) on the stack of the handler's thread. The thread knows whose handler it
//!   runs, so no other token is used.
//! - capi.5: a handler's pointer is to a function that can be called for the messages that are sent to it.
#![deny(missing_docs)]

#[allow(unsafe_code)]
pub mod am;
#[allow(unsafe_code)]
pub mod atomic;
#[allow(unsafe_code)]
pub mod barrier;
#[allow(unsafe_code)]
pub mod check;
pub mod codes;
#[allow(unsafe_code)]
pub mod collective;
#[allow(unsafe_code)]
pub mod endpoint;
#[allow(unsafe_code)]
pub mod event;
mod exports;
#[allow(unsafe_code)]
pub mod face;
#[allow(unsafe_code)]
pub mod handlers;
#[allow(unsafe_code)]
pub mod hsl;
#[allow(unsafe_code)]
pub mod images;
#[allow(unsafe_code)]
pub mod job;
#[allow(unsafe_code)]
pub mod kind;
#[allow(unsafe_code)]
mod known;
#[allow(unsafe_code)]
pub mod layout;
#[allow(unsafe_code)]
pub mod legacy;
mod meeting;
#[allow(unsafe_code)]
pub mod negotiated;
#[allow(unsafe_code)]
pub mod place;
#[allow(unsafe_code)]
pub mod query;
#[allow(unsafe_code)]
pub mod rma;
#[allow(unsafe_code)]
pub mod scattered;
#[allow(unsafe_code)]
pub mod spread;
#[allow(unsafe_code)]
pub mod talk;
#[allow(unsafe_code)]
pub mod teams;

pub use face::{Face, FaceMode, Slot};
