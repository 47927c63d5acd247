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
#![deny(missing_docs, unsafe_code)]

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
pub mod poll;
pub mod queue;
#[allow(unsafe_code)]
pub mod raw;
mod set;
mod settings;
pub mod sleeper;
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
pub use sleeper::Sleeper;
pub use sock::{Direction, Progress, Sock};
