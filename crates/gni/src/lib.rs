//! Transport over Cray's Gemini and Aries networks, through uGNI.
//!
//! - [`open`]: collective; from a bootstrap to a transport and a NIC.
//! - [`GniWire`]: active messages, which implements [`gasworks_core::Wire`].
//! - [`GniBarrier`]: all ranks meet by puts.
//! - [`GniNic`]: the port below the engine of puts and gets, which implements [`gasworks_rdma::Nic`].
//! - [`Memory`]: what messages take of it.
//!
//! Below them, `messages` says how messages go by puts and notifications (`letter`, `region`, `mailboxes`, `talk`), and `domain` alone
//! calls the library. Everything goes over the NIC, also between ranks of one host.
#![deny(missing_docs, unsafe_code)]

mod barrier;
#[allow(unsafe_code)]
mod domain;
mod error;
mod letter;
#[allow(unsafe_code)]
mod mailboxes;
mod memory;
#[allow(unsafe_code)]
mod messages;
#[allow(unsafe_code)]
mod open;
#[allow(unsafe_code)]
mod region;
mod settings;
mod talk;
#[allow(unsafe_code)]
mod wire;

pub use barrier::GniBarrier;
pub use domain::Chip;
pub use error::GniError;
pub use memory::Memory;
pub use open::{Opened, open};
pub use settings::SETTINGS;
pub use wire::{GniNic, GniWire};
