//! The port [`Nic`], and the [`Engine`] that drives any NIC.
#![deny(missing_docs)]

// The checker models what threads share alone: the floors below cannot be built for it.
pub mod completion;
pub mod pool;
#[allow(unsafe_code)]
pub mod stale;

#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
mod cache;
#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
pub mod engine;
#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
pub mod nic;
#[cfg(not(gasworks_loom))]
pub mod settings;

#[cfg(not(gasworks_loom))]
pub use cache::{Registrations, Registry};
#[cfg(not(gasworks_loom))]
pub use engine::{Engine, EngineError, Progress, Source, There};
#[cfg(not(gasworks_loom))]
pub use nic::{Abilities, Atomics, Completion, Direction, Key, Nic, NicError, Post, Stage, Way};
#[cfg(not(gasworks_loom))]
pub use settings::{SETTINGS, Tuning};
