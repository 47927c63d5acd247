//! The port [`Nic`], and the engine that drives any NIC.
#![deny(missing_docs)]

pub mod nic;

pub use nic::{Abilities, Completion, Direction, Key, Nic, NicError, Post};
