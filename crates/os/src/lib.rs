//! Thin safe wrappers over the operating system for Gasworks: a module for each family of calls.
//!
//! Unsafe code is admitted module by module; each such module opens with its numbered invariants.
#![deny(missing_docs)]

pub mod affinity;
pub mod alarm;
pub mod clock;
mod configured;
pub mod datagram;
pub mod descriptor;
pub mod directory;
#[allow(unsafe_code)]
pub mod ending;
#[allow(unsafe_code)]
pub mod environ;
mod error;
pub mod eventfd;
#[allow(unsafe_code)]
pub mod faults;
#[allow(unsafe_code)]
pub mod fifo;
#[allow(unsafe_code)]
pub mod file;
#[allow(unsafe_code)]
pub mod futex;
mod hooks;
pub mod huge;
#[allow(unsafe_code)]
pub mod inet;
#[allow(unsafe_code)]
pub mod inherited;
#[allow(unsafe_code)]
pub mod inquiry;
pub mod jobs;
#[allow(unsafe_code)]
pub mod library;
pub mod limits;
pub mod line;
pub mod maps;
#[allow(unsafe_code)]
pub mod memfd;
#[allow(unsafe_code)]
pub mod memory_use;
pub mod numa;
pub mod populate;
#[allow(unsafe_code)]
pub mod process;
#[allow(unsafe_code)]
pub mod program;
#[allow(unsafe_code)]
pub mod random;
#[allow(unsafe_code)]
pub mod remote;
#[allow(unsafe_code)]
pub mod reserved;
mod say;
pub mod settings;
pub mod signals;
#[allow(unsafe_code)]
mod sys;
pub mod threads;
#[allow(unsafe_code)]
pub mod turns;
#[allow(unsafe_code)]
pub mod unix;
#[allow(unsafe_code)]
pub mod userfault;

pub use error::{OsError, Result};
pub use reserved::Reserved;
pub use say::say;
