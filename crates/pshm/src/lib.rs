//! Shared-memory transport between the ranks of a host.
//!
//! One anonymous file holds the queues of all and their segments (`layout`), sealed against a change of size and committed page by page
//! as it is touched. The ranks of the host gather what each needs (`sizes`, `prepare`, `announce`); the one that leads makes the file (`file`)
//! and gives it to all, who map it (`region`). Nothing has a name in any directory, so neither a full temporary directory
//! nor a missing `/dev/shm` matters, and nothing is left when ranks die. Regions that are created later are further parts of that file (`regions`).
//!
//! - [`open`]: collective; from a bootstrap to a transport, a table of peers and a barrier. [`join`] is that for a job that has ranks
//!   elsewhere, too.
//! - [`Pshm`]: the transport, which implements [`gasworks_core::Wire`].
//! - [`ShmBarrier`]: the barrier, which implements [`gasworks_core::SharedBarrier`]. [`ShmTeams`]: those of teams (`slots`), which implements
//!   [`gasworks_core::TeamBarriers`].
#![deny(missing_docs)]

mod announce;
mod barrier;
mod config;
mod error;
mod file;
mod grow;
mod layout;
mod memory;
#[allow(unsafe_code)]
mod open;
mod prepare;
#[allow(unsafe_code)]
mod region;
#[allow(unsafe_code)]
mod regions;
mod settings;
mod sizes;
mod slots;
mod stage;
#[cfg(test)]
mod tests;
mod wire;

pub use barrier::{ShmBarrier, ShmTeams};
pub use config::{Beside, Config};
pub use error::PshmError;
pub use grow::Segments;
pub use layout::MAX_MEDIUM;
pub use memory::{HugePages, Memory, Pages};
pub use open::{Joined, Opened, join, open};
pub use regions::RegionFile;
pub use settings::{SETTINGS, limits_segments, most_together};
pub use wire::{FLOW, Pshm};
