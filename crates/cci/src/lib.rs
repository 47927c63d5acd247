//! Connected endpoints between processes of a host that were not started together: CCI's shared-memory (`sm`) transport.
//!
//! The protocol, without input and output:
//! - [`uri`]: an endpoint's address, and the directory that it names.
//! - [`datagram`]: what two endpoints send each other over their sockets while they connect.
//! - [`handshake`]: the states of a connection, as a table of transitions.
//! - [`header`]: the eight bytes that announce a message, an acknowledgement or a transfer.
//!
//! And what it goes by:
//! - [`directory`]: an endpoint's files, and whether it is alive.
//! - [`channel`]: the memory of a connection; [`registration`]: memory that peers read and write.
//! - [`fifo`]: the other means, as CCI's design says.
//!
//! And what programs use:
//! - [`endpoint`]: endpoints, their events, messages and transfers.
//! - [`futures`]: the same for tasks.

#[allow(unsafe_code)]
pub mod channel;
pub mod datagram;
pub mod directory;
pub mod endpoint;
pub mod fifo;
pub mod futures;
pub mod handshake;
pub mod header;
mod link;
#[allow(unsafe_code)]
pub mod registration;
mod table;
pub mod uri;
#[allow(unsafe_code)]
mod wakeups;
