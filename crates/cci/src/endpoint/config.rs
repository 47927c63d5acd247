//! How an endpoint is set up.

use crate::channel::MAX_SEND;
use std::time::Duration;

/// By what means connections move headers and payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Rings in memory that the two parties of a connection map, passed over the socket.
    #[default]
    Rings,
    /// A FIFO for the endpoint, with files for its send buffer and its RMA buffer, as CCI's design says.
    Fifo,
}

/// By which ways RMA moves bytes. One that is allowed is used where it works, the first of them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmaWays {
    /// By plain copies, where the target's memory lies in a file that this process can map.
    pub mapped: bool,
    /// By the system's calls for another process's memory (`process_vm_writev(2)`).
    pub by_system: bool,
}

impl Default for RmaWays {
    fn default() -> Self {
        Self { mapped: true, by_system: true }
    }
}

/// How an endpoint is set up. What is left as by default is right for most.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The directory in which the directories of endpoints lie. By default one of this user's in the directory for temporary files.
    pub base: String,
    /// The endpoint's address under it, as process and number. By default this process, and a number that no other endpoint of it has.
    pub service: Option<(u32, u32)>,
    /// Whether the endpoint's descriptor becomes readable when there is something to do, each time after [`Endpoint::event`](super::Endpoint::event) has found nothing.
    /// An endpoint that is only polled has less to do without.
    pub wakes: bool,
    /// By what means connections work. The peer's has to be the same.
    pub backend: Backend,
    /// The longest message, in bytes, at most [`MAX_SEND`].
    pub max_send: usize,
    /// How many messages the program may have, or leave in the endpoint's queue, at once.
    pub receive_buffers: usize,
    /// How many messages and transfers may be under way at once.
    pub send_buffers: usize,
    /// How long a message may take until it counts as lost; `None` for ever.
    pub send_timeout: Option<Duration>,
    /// After how long without a sign of life from a peer the program is told; `None` for never. For connections that are made from now on.
    pub keepalive: Option<Duration>,
    /// How long an answer to a datagram of the handshake is waited for the first time.
    pub retransmit: Duration,
    /// By which ways RMA goes.
    pub ways: RmaWays,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            base: default_base(),
            service: None,
            wakes: false,
            backend: Backend::default(),
            max_send: MAX_SEND,
            receive_buffers: 1024,
            send_buffers: 1024,
            send_timeout: None,
            keepalive: None,
            retransmit: Duration::from_millis(50),
            ways: RmaWays::default(),
        }
    }
}

/// The base directory of endpoints for which no other is chosen.
pub fn default_base() -> String {
    let temporary = std::env::temp_dir();
    let user = nix::unistd::geteuid();
    format!("{}/cci-{user}/sm", temporary.display().to_string().trim_end_matches('/'))
}
