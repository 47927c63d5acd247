//! The table of segments and regions, and the port for kinds of memory.
//!
//! - [`SegmentTable`]: every piece of memory that communication may touch, by {index, generation}; the one place
//!   where an offset and a length from a caller or a peer become an address.
//! - [`PeerTable`]: where each peer's segment is mapped in this process, if it is.
//! - [`AuxPlan`]: how the subsystems share one auxiliary segment, so that registrations stay few.
//! - [`atomic`]: atomic operations on words, and how the processor does them.
//! - [`Kind`]: a kind of memory (host, device).
#![deny(missing_docs)]

pub mod atomic;
mod aux;
mod kind;
mod peers;
mod table;

pub use aux::{AuxPart, AuxPlan};
pub use kind::{Host, Kind, KindTag};
pub use peers::{Access, Grows, Growth, Largest, Peer, PeerFlags, PeerTable, Row, Rows, Watch};
pub use table::{MemoryError, Rights, SegmentId, SegmentTable, View};
