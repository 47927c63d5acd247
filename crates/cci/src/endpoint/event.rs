//! What an endpoint tells its program, and why calls and operations fail.

use crate::channel::MAX_SEND;
use crate::datagram::{Attribute, MAX_DATA};
use crate::directory::DirectoryError;
use crate::header::ConnectionId;
use crate::uri::{Uri, UriError};
use bitflags::bitflags;
use gasworks_os::OsError;
use std::ops::Deref;
use thiserror::Error;

/// Why there is no endpoint.
#[derive(Debug, Error)]
pub enum CreateError {
    /// Its directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The system has no descriptors or memory left, or refuses.
    #[error(transparent)]
    System(#[from] OsError),
    /// The longest message is none.
    #[error("messages of up to {len} bytes; at least 1 and at most {MAX_SEND} are possible")]
    MaxSend {
        /// What was asked for.
        len: usize,
    },
}

/// Why a call did nothing.
#[derive(Debug, Error)]
pub enum CallError {
    /// The connection is none of this endpoint's, or not any more.
    #[error("there is no such connection of this endpoint")]
    NoConnection,
    /// The peer has ended, or has closed the connection.
    #[error("the peer has ended or has closed the connection")]
    Disconnected,
    /// The request was answered before, or is none of this endpoint's.
    #[error("there is no such request for a connection, or it was answered before")]
    NoRequest,
    /// More is under way than the endpoint admits.
    #[error(
        "as many messages and transfers as the endpoint admits are under way: take events, and try again"
    )]
    NoRoom,
    /// The program holds all messages that it may.
    #[error("the program holds as many messages as the endpoint admits: give some back")]
    NoBuffers,
    /// The endpoint has as many connections as it can name.
    #[error("the endpoint has as many connections as it can name, or had until a moment ago")]
    NoIds,
    /// The message is too long for the connection.
    #[error("a message of {len} bytes; the longest of this connection has {most}")]
    TooLong {
        /// How long it is.
        len: usize,
        /// How long one may be.
        most: usize,
    },
    /// The data of a connect request are too long.
    #[error("{len} bytes of data with a connect request; at most {MAX_DATA} are possible")]
    TooMuchData {
        /// How many there are.
        len: usize,
    },
    /// The peer's address is none.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The socket at the peer's address is another user's.
    #[error("the endpoint at {uri} is another user's")]
    Foreign {
        /// The address.
        uri: String,
    },
    /// The call wants a reliable connection.
    #[error("transfers, and messages whose completion is silent, want a reliable connection")]
    Unreliable,
    /// A handle is none of this endpoint's, was deregistered, or is none of the peer's.
    #[error("the handle of {whose} memory is no registration of the endpoint whose it should be")]
    Handle {
        /// Whose.
        whose: &'static str,
    },
    /// The memory does not admit that.
    #[error("bytes {offset} to {offset}+{len} of {whose} memory: {why}")]
    Operation {
        /// Whose memory.
        whose: &'static str,
        /// Where in it.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// Why not.
        why: &'static str,
    },
    /// The memory to register is none.
    #[error("cannot register {len} bytes: {why}")]
    Memory {
        /// How many.
        len: u64,
        /// Why not.
        why: &'static str,
    },
    /// The system has no descriptors or memory left, or refuses.
    #[error(transparent)]
    System(#[from] OsError),
}

/// Why something that was begun came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// The peer has ended, or one side has closed the connection.
    #[error("the peer has ended, or the connection was closed")]
    Disconnected,
    /// It took longer than the program wants to wait.
    #[error("no answer came in time")]
    TimedOut,
    /// There is nobody at that address, or the program there has rejected the request.
    #[error("there is nobody at that address, or the request was rejected")]
    Refused,
    /// The target does not know the handle any more.
    #[error("the target does not know the handle")]
    Handle,
    /// The target's memory does not admit that.
    #[error("the target's memory has no such bytes, or does not admit that")]
    Operation,
}

bitflags! {
    /// How a message or a transfer is told of.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SendFlags: u32 {
        /// Success is not told. A later message of a reliable ordered connection that completes tells of it.
        const SILENT = 1;
        /// How it ends is no event, but [kept](super::Endpoint::outcome) until it is asked for.
        const AWAITED = 2;
        /// Transfers of this connection that were begun before are complete before this one begins.
        const FENCE = 4;
    }
}

/// A message or a transfer that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u64);

/// A client's request, which is to be accepted or rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(crate) ConnectionId);

/// The bytes of a message, aligned to 8.
#[derive(Debug, Default)]
pub struct Buffer {
    words: Vec<u64>,
    len: usize,
}

impl Buffer {
    /// A buffer of so many bytes, in words that were used before if they are enough.
    #[inline]
    pub(crate) fn of(mut words: Vec<u64>, len: usize) -> Self {
        let count = len.div_ceil(8);
        if words.len() < count {
            words.resize(count, 0);
        }
        Self { words, len }
    }

    /// The bytes, to be written.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }

    /// What it is made of, to be used again.
    #[inline]
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

/// A message that has come. It counts as held until it is [given back](super::Endpoint::give_back).
#[derive(Debug)]
pub struct Message {
    /// The connection that it came by.
    pub connection: ConnectionId,
    /// Its bytes.
    pub bytes: Buffer,
}

/// A client's request.
#[derive(Debug)]
pub struct Request {
    /// Its name, by which it is accepted or rejected.
    pub id: RequestId,
    /// How messages are to be delivered.
    pub attribute: Attribute,
    /// What the client sends with it.
    pub data: Buffer,
    /// The client's address.
    pub uri: Uri,
    /// The client's process, as the kernel says.
    pub pid: i32,
}

/// What an endpoint tells its program.
#[derive(Debug)]
pub enum Event {
    /// A message was delivered, or could not be; a transfer is complete, or failed.
    Sent {
        /// Which.
        operation: OperationId,
        /// Of which connection.
        connection: ConnectionId,
        /// What the program gave with it.
        context: u64,
        /// How it ended.
        result: Result<(), Failure>,
    },
    /// A message has come.
    Received(Message),
    /// A connection that this program asked for is there, or will not be.
    Connected {
        /// Which.
        connection: ConnectionId,
        /// What the program gave with it.
        context: u64,
        /// How it ended.
        result: Result<(), Failure>,
    },
    /// A client wants to connect.
    Requested(Box<Request>),
    /// A connection that this program accepted is there, or will not be.
    Accepted {
        /// Which.
        connection: ConnectionId,
        /// What the program gave with it.
        context: u64,
        /// How it ended.
        result: Result<(), Failure>,
    },
    /// Nothing was heard of a peer for as long as the connection's keepalive time. It is told once, until the time is set again.
    Silent {
        /// By which connection.
        connection: ConnectionId,
    },
    /// A peer has ended or has closed a connection. What it sent before was delivered; what is sent from now on fails.
    Closed {
        /// Which connection.
        connection: ConnectionId,
    },
}
