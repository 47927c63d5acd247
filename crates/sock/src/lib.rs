//! Event-driven socket engine (`MPIDU_Sock`): [`Set`]s of [`Sock`]s, operations that are posted, and one wait that
//! delivers their ends as [`Event`]s. And the one [`Sleeper`] with which a rank waits when it has nothing to do.
//!
//! ```
//! use gasworks_sock::{Address, Op, Set};
//!
//! let set = Set::new()?;
//! let any_port = Address::Inet(([127, 0, 0, 1], 0).into());
//! let (listener, port) = set.listen(1, &any_port)?;
//! let client = set.post_connect_to(2, [Address::Inet(([127, 0, 0, 1], port).into())])?;
//! client.set_user(3);
//! let mut heard = Vec::new();
//! while let Some(event) = set.wait(Some(std::time::Duration::from_secs(5)))? {
//!     if let Some(error) = &event.error {
//!         panic!("{error}");
//!     }
//!     match event.op {
//!         Op::Connect => client.post_write(b"hello".to_vec(), 5, 5, None)?,
//!         Op::Accept => set.accept(&listener, 4)?.post_read(vec![0; 64], 5, 64, None)?,
//!         Op::Read => {
//!             heard = event.data().to_vec();
//!             break;
//!         }
//!         _ => {}
//!     }
//! }
//! assert_eq!(heard, b"hello");
//! set.destroy_now()?;
//! # Ok::<(), gasworks_sock::Error>(())
//! ```
#![deny(missing_docs)]

/// The span of a routine. Where nobody listens it is one look at a word.
#[cfg(not(gasworks_loom))]
macro_rules! span {
    ($routine:literal) => {
        (tracing::level_filters::LevelFilter::current() >= tracing::Level::TRACE)
            .then(|| Box::new(tracing::trace_span!($routine).entered()))
    };
}

pub mod queue;

// The checker models the queue alone: the floor below cannot be built for it.
#[cfg(not(gasworks_loom))]
mod engine;
#[cfg(not(gasworks_loom))]
pub mod sleeper;

#[cfg(not(gasworks_loom))]
pub use engine::*;
#[cfg(not(gasworks_loom))]
pub use sleeper::Sleeper;
