//! A thin set of descriptors with tokens and a buffered channel: what `gasrun` used before there was the engine.

mod channel;
mod set;

pub use channel::{Channel, Filled};
pub use set::{Event, Interest, Set, SockError, Waker};
