//! The table of memory that peers may name.
//!
//! - [`PeerTable`]: where each peer's segment is mapped in this process, if it is; the one place where a rank, an offset and a length
//!   from a caller or a peer become an address.
//! - [`AuxPlan`]: how the subsystems share one auxiliary segment, so that registrations stay few.
//! - [`atomic`]: atomic operations on words, and how the processor does them.
#![deny(missing_docs)]

pub mod atomic;
mod aux;
mod error;
#[allow(unsafe_code)]
mod peers;

pub use aux::{AuxPart, AuxPlan};
pub use error::MemoryError;
pub use peers::{Access, Grows, Growth, Largest, OwnRows, Peer, PeerFlags, PeerTable, Row, Rows, Watch};
