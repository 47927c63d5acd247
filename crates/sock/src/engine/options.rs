//! What the sockets of a set are like.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How a set makes its sockets. TCP sockets never delay small messages, and no descriptor survives `exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The local ports that TCP listeners and connectors may have; `None`: the system chooses.
    pub ports: Option<RangeInclusive<u16>>,
    /// The size of each socket's send and receive buffer in bytes; `None`: the system's default.
    pub buffer: Option<usize>,
    /// Whether the system asks silent peers from time to time if they are still there.
    pub keepalive: bool,
    /// How long sent bytes may stay unacknowledged before the connection fails (`TCP_USER_TIMEOUT`); `None`: the
    /// system's default.
    pub unacknowledged: Option<Duration>,
    /// Whether a close throws away what is still to be sent and resets the connection. Otherwise the system sends it in
    /// the background. A close never waits.
    pub reset: bool,
    /// How many connections a listener lets wait.
    pub backlog: i32,
    /// How long one address of a host may take to answer before it counts as failed.
    pub connect_limit: Duration,
    /// How long one address of a host is given before the next is tried beside it.
    pub connect_stagger: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ports: None,
            buffer: None,
            keepalive: true,
            unacknowledged: None,
            reset: false,
            backlog: 1024,
            connect_limit: Duration::from_secs(30),
            connect_stagger: Duration::from_millis(250),
        }
    }
}
