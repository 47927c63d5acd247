//! One-sided put and get, atomic operations, events and barriers.
//!
//! - [`rma`]: put and get between any local memory and the peers' segments: load and store where the peer is mapped,
//!   the NIC where it is not; blocking, with an [`Event`], or in an [`Implicit`] set.
//! - [`scattered`]: put and get of data that lies in many pieces: vectors, indexed blocks and strided arrays.
//! - [`atomic`]: atomic operations on words of segments, by the processor, the NIC, or the rank whose they are.
//! - [`event`]: events tested and waited for, one, all or some. [`implicit`]: sets and access regions.
//! - [`long`]: Longs whose payload may be in use for a while.
//! - [`barrier`]: the split-phase barrier, named or not: in shared memory, or by active messages.
//! - [`collective`]: what all members of a team do together. [`team`]: teams, made of others by collective calls.
#![deny(missing_docs)]

#[allow(unsafe_code)]
pub mod atomic;
pub mod barrier;
pub mod collective;
mod error;
pub mod event;
pub mod implicit;
#[allow(unsafe_code)]
pub mod long;
#[allow(unsafe_code)]
pub mod rma;
#[allow(unsafe_code)]
pub mod scattered;
pub mod team;

pub use barrier::Barrier;
pub use error::Error;
pub use event::Event;
pub use implicit::Implicit;

/// The rows of this crate in the table of settings.
pub const SETTINGS: &[gasworks_os::settings::Setting] = &[barrier::ALGORITHM];
