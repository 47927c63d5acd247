//! Transport over Cray's Gemini and Aries networks, through uGNI.
//!
//! - [`Plan`]: what a job needs; its [`open`](Plan::open) is collective: from a bootstrap to a transport and a NIC.
//! - [`GniWire`]: active messages, which implements [`gasworks_core::Wire`].
//! - [`GniBarrier`]: all ranks meet by puts, or by the NIC's collective engines.
//! - [`GniNic`]: the port below the engine of puts and gets, which implements [`gasworks_rdma::Nic`].
//! - [`Memory`]: what messages take of it.
//!
//! Below them, `messages` says how messages go by puts and notifications (`letter`, `region`, `mailboxes`, `talk`), and how the `phases` of a
//! barrier do; `domain` alone calls the library; `udreg` is the library's own cache of registrations, where a job asks for it; `handle` and
//! `kept` are memory that was registered, and memory that others write to. Segments come from outside, where some of them may be mapped.
#![deny(missing_docs)]

mod atomics;
mod barrier;
#[allow(unsafe_code)]
mod domain;
mod error;
mod handle;
#[allow(unsafe_code)]
mod kept;
mod letter;
mod levels;
#[allow(unsafe_code)]
mod mailboxes;
mod memory;
#[allow(unsafe_code)]
mod messages;
#[allow(unsafe_code)]
mod open;
mod phases;
mod pinned;
mod region;
mod settings;
mod talk;
#[allow(unsafe_code)]
mod udreg;
#[allow(unsafe_code)]
mod wire;
mod words;

pub use barrier::GniBarrier;
pub use domain::Chip;
pub use error::GniError;
pub use memory::Memory;
#[cfg(feature = "play")]
pub use messages::play::suffer as play;
pub use open::{Opened, Plan, Segments, find_library};
pub use settings::{SETTINGS, max_medium};
pub use wire::{GniNic, GniWire};
