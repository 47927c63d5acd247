//! The port [`Nic`], and the [`Engine`] that drives any NIC.
#![deny(missing_docs)]

pub mod engine;
pub mod nic;
pub mod settings;

pub use engine::{Engine, EngineError, Progress};
pub use nic::{Abilities, Completion, Direction, Key, Nic, NicError, Post};
pub use settings::SETTINGS;
