//! Shared-memory transport between the ranks of a host.
//!
//! Each rank makes one anonymous file that holds its queues (`layout`) and its segment, sealed against a change of
//! size and committed page by page as it is touched. Each gives its file to all others as the ranks of the host gather
//! (`announce`), and maps everybody's (`region`). Nothing has a name in any directory, so neither a full temporary directory
//! nor a missing `/dev/shm` matters, and nothing is left when ranks die.
//!
//! - [`open`]: collective; from a bootstrap to a transport, a table of peers and a barrier. [`join`] is that for a job that has ranks
//!   elsewhere, too.
//! - [`Pshm`]: the transport, which implements [`gasworks_core::Wire`].
//! - [`ShmBarrier`]: the barrier, which implements [`gasworks_core::SharedBarrier`].
#![deny(missing_docs, unsafe_code)]

mod announce;
mod barrier;
mod error;
mod grow;
mod layout;
mod memory;
mod open;
mod prepare;
#[allow(unsafe_code)]
mod region;
mod settings;
#[allow(unsafe_code)]
mod stage;
#[cfg(test)]
mod tests;
mod wire;

pub use barrier::ShmBarrier;
pub use error::PshmError;
pub use grow::Segments;
pub use memory::{HugePages, Memory, Pages};
pub use open::{Beside, Config, Joined, Opened, join, open};
pub use settings::{SETTINGS, limits_segments, most_together};
pub use wire::{FLOW, MAX_MEDIUM, Pshm};
