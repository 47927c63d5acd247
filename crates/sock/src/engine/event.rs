//! What a wait delivers.

use crate::{Error, SockId};

/// What came to its end (`MPIDU_Sock_op_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A posted read.
    Read,
    /// A posted write.
    Write,
    /// A listener has a connection to accept; the next such event comes only after [`Set::accept`](crate::Set::accept).
    Accept,
    /// A posted connect.
    Connect,
    /// A posted close: the last event of a sock. For a listener `bytes` is how many connections it had to turn away.
    Close,
    /// Somebody called [`Set::wakeup`](crate::Set::wakeup).
    Wakeup,
    /// What [`Sock::post_ready`](crate::Sock::post_ready) waited for: a read would not block.
    Readable,
    /// The same for a write.
    Writable,
}

/// The memory of a posted operation, given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// The operation had none, or it was lent through [`raw`](crate::raw).
    #[default]
    None,
    /// That of a read or write.
    One(Vec<u8>),
    /// That of a vectored one.
    Many(Vec<Vec<u8>>),
}

/// One thing that happened (`MPIDU_Sock_event_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What came to its end.
    pub op: Op,
    /// Which sock; `None` for a wake-up.
    pub sock: Option<SockId>,
    /// The sock's user word when that happened; 0 for a wake-up.
    pub user: u64,
    /// How many bytes were transferred, also if an error ended it.
    pub bytes: usize,
    /// Why it did not succeed.
    pub error: Option<Error>,
    /// The operation's memory.
    pub buffers: Buffers,
}

impl Event {
    /// The bytes of a read, in the one buffer that it had; nothing for other events.
    pub fn data(&self) -> &[u8] {
        match &self.buffers {
            Buffers::One(buffer) => buffer.get(..self.bytes).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Takes the one buffer that a read or write had; an empty one otherwise.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        match std::mem::take(&mut self.buffers) {
            Buffers::One(buffer) => buffer,
            other => {
                self.buffers = other;
                Vec::new()
            }
        }
    }

    /// Takes the buffers that a vectored read or write had.
    pub fn take_buffers(&mut self) -> Vec<Vec<u8>> {
        match std::mem::take(&mut self.buffers) {
            Buffers::Many(buffers) => buffers,
            other => {
                self.buffers = other;
                Vec::new()
            }
        }
    }
}
