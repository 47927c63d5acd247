//! Active messages with credit-based flow control.
#![deny(missing_docs)]

pub mod wire;

pub use wire::{Arrived, Class, Limits, Reservation, SharedBarrier, Wire, WireError};

/// The number of a process in a job.
pub type Rank = u32;
