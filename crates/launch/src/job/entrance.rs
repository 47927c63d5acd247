//! The `PMI_PORT` of a job: ranks that connect, and strangers, who cost nothing.
//!
//! It listens on loopback alone. Whoever connects has [`PATIENCE`] to say which rank it is. At most [`MOST_VISITORS`]
//! may be doing so at a time beyond the ranks that are expected; when one more comes, the one that has taken longest
//! goes, for a rank says at once who it is.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context;
use gasworks_bootstrap::server::port::{Admission, Door};
use gasworks_sock::{Address, Event, Op, Set, Sock};

use super::{CHUNK, engine};
use crate::line::Line;

/// How long one who has connected may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be saying so, besides the ranks that are to come.
const MOST_VISITORS: usize = 32;

#[derive(Debug)]
pub(crate) struct Entrance {
    listener: Sock,
    port: u16,
    door: Door,
    visitors: HashMap<u64, (Line, Instant)>,
    most: usize,
    next: u64,
    /// How many were sent away.
    pub(crate) refused: usize,
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
        let listened = set.listen(engine::ENTRANCE, &any_port);
        let (listener, port) = listened.context("listen for ranks on 127.0.0.1")?;
        let most = ranks.len() + MOST_VISITORS;
        let door = Door::new(size, ranks.iter().copied());
        let next = engine::ENTRANCE + 1;
        Ok(Self { listener, port, door, visitors: HashMap::new(), most, next, refused: 0 })
    }

    /// What ranks find in `PMI_PORT`.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// When the next visitor has used up its time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.visitors.values().map(|(_, until)| *until).min()
    }

    fn stranger(&mut self, why: String) -> Option<Arrival> {
        self.refused += 1;
        Some(Arrival::Stranger { why })
    }

    /// One of its socks has something to tell.
    pub(crate) fn event(&mut self, set: &Set, event: Event) -> Option<Arrival> {
        if event.op == Op::Accept {
            // What is gone again was not there.
            let sock = set.accept(&self.listener, self.next).ok()?;
            let oldest = self.visitors.keys().min().copied().filter(|_| self.visitors.len() >= self.most);
            self.visitors.insert(self.next, (Line::new(sock, CHUNK), Instant::now() + PATIENCE));
            self.next += 1;
            self.visitors.remove(&oldest?)?;
            return self.stranger("it took long, and others wanted its place".to_owned());
        }
        let (mut line, until) = self.visitors.remove(&event.user)?;
        let user = event.user;
        line.event(event);
        match self.door.judge(&mut line.inbox) {
            Admission::Admit { rank, answer } => {
                line.set_user(engine::RANKS + u64::from(rank));
                line.post(&answer);
                Some(Arrival::Rank { rank, line })
            }
            Admission::Refuse { why } => self.stranger(why),
            Admission::Wait if line.ended().is_some() => self.stranger("it went without a word".to_owned()),
            Admission::Wait => {
                line.go_on();
                self.visitors.insert(user, (line, until));
                None
            }
        }
    }

    /// Sends one away that has used up its time.
    pub(crate) fn late(&mut self) -> Option<Arrival> {
        let now = Instant::now();
        let token = *self.visitors.iter().find(|(_, (_, until))| *until <= now)?.0;
        self.visitors.remove(&token);
        self.stranger(format!("it did not say who it is within {} s", PATIENCE.as_secs()))
    }
}
