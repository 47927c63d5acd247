//! The table of memory that peers may name.
//!
//! - [`RegionTable`]: where each peer's segment and regions are mapped in this process, if they are; the one place where a rank, an offset and
//!   a length from a caller or a peer become an address.
//! - [`AuxPlan`]: how the subsystems share one auxiliary segment, so that registrations stay few.
//! - [`atomic`]: atomic operations on words, and how the processor does them.
#![deny(missing_docs)]

pub mod atomic;
mod aux;
mod error;
#[allow(unsafe_code)]
mod given;
mod handle;
#[allow(unsafe_code)]
mod table;

pub use aux::{AuxPart, AuxPlan};
pub use error::MemoryError;
pub use given::Given;
pub use handle::{RegionHandle, RegionId, Rights};
pub use table::{
    Access, Asked, Generations, Grows, Growth, Largest, OwnRows, Peer, PeerFlags, RegionMemory, RegionTable,
    Row, Rows, Watch,
};
