//! Where agents connect to the process that started them.
//!
//! Whoever connects shows the job's cookie before anything else is read: a fixed number of bytes, within [`PATIENCE`].
//! Who shows something else, or nothing, is dropped and counted.

use std::time::{Duration, Instant};

use anyhow::Context;
use gasworks_sock::{Event, Op, Set, Sock};

use super::plan::{SECRET, same_secret};
use crate::visitors::Visitors;

/// How long one who has connected may take to show the cookie.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be at it.
const MOST_VISITORS: usize = 256;
const MAGIC: &[u8; 8] = b"gasrun1\n";
const SHOWN: usize = MAGIC.len() + SECRET + 4;

/// What an agent shows.
pub(crate) fn greeting(cookie: &str, node: u32) -> Vec<u8> {
    [MAGIC, cookie.as_bytes(), &node.to_le_bytes()].concat()
}

#[derive(Debug)]
pub(crate) struct Gate {
    listener: Sock,
    pub(crate) port: u16,
    cookie: String,
    pub(crate) visitors: Visitors<Sock>,
}

/// What an event at the gate led to.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// One that knows the cookie calls itself this node.
    Agent { node: u32, sock: Sock },
    /// Somebody was dropped, and why.
    Stranger { why: String },
}

impl Gate {
    /// Listens on all interfaces. Its socks have user words from `base` on.
    pub(crate) fn open(set: &Set, cookie: &str, base: u64) -> anyhow::Result<Self> {
        let (listener, port) = set.listen_everywhere(base).context("listen for agents")?;
        let visitors = Visitors::new(base + 1, MOST_VISITORS, PATIENCE);
        Ok(Self { listener, port, cookie: cookie.to_owned(), visitors })
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.visitors.deadline()
    }

    fn refuse(&mut self, token: u64, why: &str) -> Option<Arrival> {
        self.visitors.refuse(token).map(|sock| drop_one(&sock, why))
    }

    /// One of its socks has something to tell.
    pub(crate) fn event(&mut self, set: &Set, event: &Event) -> Option<Arrival> {
        if event.op == Op::Accept {
            let token = self.visitors.next_token();
            // What is gone again was not there.
            let sock = set.accept(&self.listener, token).ok()?;
            let posted = sock.post_read(vec![0; SHOWN], SHOWN, SHOWN, None);
            let crowded = self.visitors.come(token, sock);
            let crowded = crowded.map(|sock| drop_one(&sock, "it took long, and others came"));
            return match posted {
                Ok(()) => crowded,
                Err(e) => self.refuse(token, &e.to_string()),
            };
        }
        if event.op != Op::Read {
            return None;
        }
        if event.error.is_some() {
            return self.refuse(event.user, "it went without the job's cookie");
        }
        let shown = event.data();
        let (magic, rest) = shown.split_at(MAGIC.len().min(shown.len()));
        let (cookie, node) = rest.split_at(SECRET.min(rest.len()));
        let known = same_secret(magic, MAGIC) & same_secret(cookie, self.cookie.as_bytes());
        match <[u8; 4]>::try_from(node) {
            Ok(node) if known => {
                let sock = self.visitors.admit(event.user)?;
                Some(Arrival::Agent { node: u32::from_le_bytes(node), sock })
            }
            _ => self.refuse(event.user, "it does not know the job's cookie"),
        }
    }

    /// Drops one that has used up its time.
    pub(crate) fn late(&mut self) -> Option<Arrival> {
        let why = format!("it showed no cookie within {} s", PATIENCE.as_secs());
        self.visitors.late().map(|sock| drop_one(&sock, &why))
    }
}

fn drop_one(sock: &Sock, why: &str) -> Arrival {
    // One that was reset has come to its end already.
    let _ = sock.post_close();
    Arrival::Stranger { why: why.to_owned() }
}
