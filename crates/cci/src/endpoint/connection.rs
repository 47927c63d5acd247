//! A connection, as one of its endpoints keeps it.

use super::operation::{Fragment, Pending, Transfer};
use super::peer::Peer;
use crate::channel::BLOCKS;
use crate::datagram::{Attribute, ConnectRequest, Nonce};
use crate::handshake::ConnectionState;
use crate::header::{ConnectionId, Header};
use crate::link::{Link, OwnHalf, PeerHalf};
use gasworks_os::memfd::MemFd;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a connection has only until both sides are ready.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// This side's memory, until the peer's is known.
    pub(super) half: Option<OwnHalf>,
    /// Its file, until the peer has it.
    pub(super) file: Option<MemFd>,
    /// The peer's memory, until the program has accepted.
    pub(super) peer_half: Option<PeerHalf>,
    /// The peer's socket.
    pub(super) socket: PathBuf,
    /// What a client asks for.
    pub(super) request: Option<ConnectRequest>,
    /// When a datagram is sent again, and after how long once more.
    pub(super) again: u64,
    pub(super) interval: u64,
    /// When no answer is waited for any more.
    pub(super) deadline: Option<u64>,
    /// Headers of a server that has accepted, and whose reply has not come yet.
    pub(super) early: Vec<Header>,
}

/// What waits until there is room in the peer's ring.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A message.
    Message(Vec<u8>, Pending),
    /// A transfer by fragments.
    Transfer(Transfer),
}

/// What is under way on a connection, from this side.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Messages in the peer's ring, by their numbers, the first first.
    pub(super) sent: VecDeque<(u64, Pending)>,
    /// What comes behind them.
    pub(super) waiting: VecDeque<Waiting>,
    /// Answers to the peer's fragments and signs of life, which go before those.
    pub(super) answers: VecDeque<Header>,
    /// Transfers whose fragments were all sent, and not all acknowledged.
    pub(super) transfers: Vec<Transfer>,
    /// For each of this side's blocks, the fragment of RMA in it.
    pub(super) fragments: Option<Box<[Option<Fragment>; BLOCKS as usize]>>,
    /// Whether some of it counts as lost at a time.
    pub(super) has_deadlines: bool,
    /// Whether the endpoint looks after this.
    pub(super) is_listed: bool,
    /// How many messages the peer had taken when it was last looked at whether it is alive.
    pub(super) progress: u64,
}

impl Outgoing {
    /// Whether nothing is left to look after.
    pub(super) fn is_idle(&self) -> bool {
        self.sent.is_empty() && !self.has_more()
    }

    /// Whether something is left that needs more than the peer's taking what is in its ring.
    pub(super) fn has_more(&self) -> bool {
        !(self.waiting.is_empty() && self.answers.is_empty() && self.transfers.is_empty())
    }
}

/// When something was last heard of the peer, for connections whose program wants to know.
#[derive(Debug)]
pub(super) struct Keepalive {
    pub(super) time: Duration,
    /// When it is looked at next.
    pub(super) next: u64,
    /// Whether something has come since, and how often nothing had.
    pub(super) heard: bool,
    pub(super) missed: u32,
}

/// How often in a keepalive time it is looked whether something has come.
pub(super) const KEEPALIVE_LOOKS: u32 = 4;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) state: ConnectionState,
    pub(super) is_client: bool,
    pub(super) attribute: Attribute,
    pub(super) nonce: Nonce,
    /// What the program gave when it connected or accepted.
    pub(super) context: u64,
    /// The peer's name of the connection.
    pub(super) peer_id: ConnectionId,
    pub(super) peer: Option<Arc<Peer>>,
    pub(super) channel: Option<Link>,
    /// The longest message.
    pub(super) max_send: usize,
    pub(super) opening: Option<Box<Opening>>,
    pub(super) out: Outgoing,
    pub(super) send_timeout: Option<Duration>,
    pub(super) keepalive: Option<Box<Keepalive>>,
    /// Whether its ring is looked at directly, and whether it is to be looked at once more.
    pub(super) is_watched: bool,
    pub(super) is_next: bool,
    /// When a timer runs out; nothing is in the list of timers for it that is earlier.
    pub(super) due: u64,
}

impl Connection {
    pub(super) fn new(
        state: ConnectionState,
        attribute: Attribute,
        nonce: Nonce,
        opening: Opening,
        send_timeout: Option<Duration>,
    ) -> Self {
        Self {
            state,
            is_client: state == ConnectionState::Requested,
            attribute,
            nonce,
            context: 0,
            peer_id: ConnectionId { index: 0, generation: 0 },
            peer: None,
            channel: None,
            max_send: 0,
            opening: Some(Box::new(opening)),
            out: Outgoing::default(),
            send_timeout,
            keepalive: None,
            is_watched: false,
            is_next: false,
            due: u64::MAX,
        }
    }

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, ConnectionState::Ready | ConnectionState::Accepting) && self.channel.is_some()
    }
}
