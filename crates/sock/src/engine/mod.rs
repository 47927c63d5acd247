//! The engine itself.

mod address;
mod connect;
mod core;
mod drive;
mod error;
mod event;
pub mod host;
mod listen;
mod memory;
mod options;
#[allow(unsafe_code)]
pub mod raw;
mod set;
mod settings;
mod sock;
#[allow(unsafe_code)]
mod sys;
mod table;

pub use address::Address;
pub use core::Counts;
pub use error::{Class, Error};
pub use event::{Buffers, Event, Op, SetId, SockId};
pub use host::HostDescription;
pub use memory::MOST_PARTS;
pub use options::Options;
pub use set::Set;
pub use settings::SETTINGS;
pub use sock::{Direction, Progress, Sock};
