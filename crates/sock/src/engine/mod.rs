//! The engine itself. Each module names only those that come before it here:
//!
//! - `id`, `error`, `event`, `options`, `settings`, `address`, `host`: what it speaks of; `sys`: the calls that it makes;
//! - `table`, `core`: what a set is inside, whatever its socks are; `attempts`: those of a connect;
//! - `lent` in [`raw`], `memory`: that of an operation; `state`: what a sock is inside;
//! - `connect`, `listen`, `drive`: what a sock does on a change; `wait`: the threads that look for changes;
//! - `sock`, `set`: what a program has in hand; [`raw`]: operations on memory that it only lends.

mod address;
mod attempts;
mod connect;
mod core;
mod drive;
mod error;
mod event;
pub mod host;
mod id;
mod listen;
mod memory;
mod options;
pub mod raw;
mod set;
mod settings;
mod sock;
mod state;
#[allow(unsafe_code)]
mod sys;
mod table;
mod wait;

pub use address::Address;
pub use core::Counts;
pub use error::{Class, Error};
pub use event::{Buffers, Event, Op};
pub use host::HostDescription;
pub use id::{SetId, SockId};
pub use memory::MOST_PARTS;
pub use options::Options;
pub use set::Set;
pub use settings::SETTINGS;
pub use sock::Sock;
pub use state::{Direction, Progress};
