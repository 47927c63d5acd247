//! The `PMI_PORT` of a job: ranks that connect, and strangers, who cost nothing.
//!
//! It listens on loopback alone. Whoever connects has [`PATIENCE`] to say which rank it is. At most [`MOST_VISITORS`]
//! may be doing so at a time beyond the ranks that are expected.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context;
use gasworks_bootstrap::server::port::{Admission, Door};
use gasworks_sock::{Address, Event, Op, Set, Sock};

use super::CHUNK;
use crate::line::Line;
use crate::token;
use crate::visitors::Visitors;

/// How long one who has connected may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be saying so, besides the ranks that are to come.
const MOST_VISITORS: usize = 32;

#[derive(Debug)]
pub(crate) struct Entrance {
    listener: Sock,
    port: u16,
    door: Door,
    pub(crate) visitors: Visitors<Line>,
}

/// What an event at the entrance led to.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A rank has come; what it sent besides its introduction is in the line's inbox.
    Rank { rank: u32, line: Line },
    /// Somebody was sent away, and why.
    Stranger { why: String },
}

impl Entrance {
    /// Opens it for some ranks of a job of `size` ranks.
    pub(crate) fn open(size: u32, ranks: &[u32], set: &Set) -> anyhow::Result<Self> {
        let any_port = Address::Inet((Ipv4Addr::LOCALHOST, 0).into());
        let listened = set.listen(token::ENTRANCE, &any_port);
        let (listener, port) = listened.context("listen for ranks on 127.0.0.1")?;
        let door = Door::new(size, ranks.iter().copied());
        let visitors = Visitors::new(token::ENTRANCE + 1, ranks.len() + MOST_VISITORS, PATIENCE);
        Ok(Self { listener, port, door, visitors })
    }

    /// What ranks find in `PMI_PORT`.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// When the next visitor has used up its time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.visitors.deadline()
    }

    fn refuse(&mut self, token: u64, why: &str) -> Option<Arrival> {
        self.visitors.refuse(token).map(|_| Arrival::Stranger { why: why.to_owned() })
    }

    /// One of its socks has something to tell.
    pub(crate) fn event(&mut self, set: &Set, event: Event) -> Option<Arrival> {
        if event.op == Op::Accept {
            let token = self.visitors.next_token();
            // What is gone again was not there.
            let sock = set.accept(&self.listener, token).ok()?;
            self.visitors.come(token, Line::new(sock, CHUNK))?;
            return Some(Arrival::Stranger { why: "it took long, and others wanted its place".to_owned() });
        }
        let token = event.user;
        let line = self.visitors.get(token)?;
        line.event(event);
        match self.door.judge(&mut line.inbox) {
            Admission::Admit { rank, answer } => {
                let mut line = self.visitors.admit(token)?;
                line.set_user(token::of_rank(rank));
                line.post(&answer);
                Some(Arrival::Rank { rank, line })
            }
            Admission::Refuse { why } => self.refuse(token, &why),
            Admission::Wait if line.ended().is_some() => self.refuse(token, "it went without a word"),
            Admission::Wait => {
                line.go_on();
                None
            }
        }
    }

    /// Sends one away that has used up its time.
    pub(crate) fn late(&mut self) -> Option<Arrival> {
        let why = || format!("it did not say who it is within {} s", PATIENCE.as_secs());
        self.visitors.late().map(|_| Arrival::Stranger { why: why() })
    }
}
