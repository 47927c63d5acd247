//! Event-driven socket engine: [`Set`]s of descriptors that are waited for together, buffered non-blocking
//! [`Channel`]s, and the one [`Sleeper`] with which a rank waits when it has nothing to do.
#![deny(missing_docs, unsafe_code)]

mod channel;
mod set;
pub mod sleeper;

pub use channel::{Channel, Filled};
pub use set::{Event, Interest, Set, SockError, Waker};
pub use sleeper::Sleeper;
