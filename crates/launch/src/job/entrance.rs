//! The `PMI_PORT` of a job: ranks that connect, and strangers, who cost nothing.
//!
//! It listens on loopback alone. Whoever connects has [`PATIENCE`] to say which rank it is. At most [`MOST_VISITORS`]
//! may be doing so at a time beyond the ranks that are expected; when one more comes, the one that has taken longest
//! goes, for a rank says at once who it is.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context;
use gasworks_bootstrap::server::port::{Admission, Door};
use gasworks_sock::poll::{Channel, Filled, Interest, Set};

use super::token;

/// How long one who has connected may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be saying so, besides the ranks that are to come.
const MOST_VISITORS: usize = 32;

#[derive(Debug)]
struct Visitor {
    channel: Channel,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct Entrance {
    listener: TcpListener,
    door: Door,
    visitors: HashMap<u64, Visitor>,
    most: usize,
    next: u64,
    /// How many were sent away.
    pub(crate) refused: usize,
}

/// What an event at the entrance led to.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A rank has come; what it sent besides its introduction is in the channel's inbox.
    Rank { rank: u32, channel: Channel, answer: Vec<u8> },
    /// Somebody was sent away, and why.
    Stranger { why: String },
}

impl Entrance {
    /// Opens it for some ranks of a job of `size` ranks.
    pub(crate) fn open(size: u32, ranks: &[u32], set: &Set) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen for ranks on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        set.add(&listener, token::ENTRANCE, Interest::Read)?;
        let most = ranks.len() + MOST_VISITORS;
        let door = Door::new(size, ranks.iter().copied());
        Ok(Self { listener, door, visitors: HashMap::new(), most, next: 0, refused: 0 })
    }

    /// What ranks find in `PMI_PORT`.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        Ok(self.listener.local_addr()?.to_string())
    }

    /// When the next visitor has used up its time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.visitors.values().map(|visitor| visitor.until).min()
    }

    /// Something has come, or time may be up.
    pub(crate) fn turn(&mut self, token: Option<u64>, set: &Set) -> anyhow::Result<Vec<Arrival>> {
        let mut arrivals = Vec::new();
        match token {
            Some(token::ENTRANCE) => self.accept(set, &mut arrivals)?,
            Some(token) => self.hear(token, set, &mut arrivals)?,
            None => {}
        }
        let now = Instant::now();
        let late: Vec<u64> = self.visitors.iter().filter(|(_, v)| v.until <= now).map(|(t, _)| *t).collect();
        for token in late {
            self.visitors.remove(&token);
            let why = format!("it did not say who it is within {} s", PATIENCE.as_secs());
            arrivals.push(self.stranger(why));
        }
        Ok(arrivals)
    }

    fn stranger(&mut self, why: String) -> Arrival {
        self.refused += 1;
        Arrival::Stranger { why }
    }

    fn accept(&mut self, set: &Set, arrivals: &mut Vec<Arrival>) -> anyhow::Result<()> {
        // One that went away while it waited, or for which there is no descriptor, is as good as not come.
        while let Ok((stream, _)) = self.listener.accept() {
            if self.visitors.len() >= self.most
                && let Some(oldest) = self.visitors.keys().min().copied()
            {
                self.visitors.remove(&oldest);
                arrivals.push(self.stranger("it took long, and others wanted its place".to_owned()));
            }
            // Answers are short, and each is waited for.
            let _ = stream.set_nodelay(true);
            let channel = Channel::new(stream)?;
            let token = token::VISITORS + self.next;
            self.next += 1;
            set.add(&channel, token, Interest::Read)?;
            self.visitors.insert(token, Visitor { channel, until: Instant::now() + PATIENCE });
        }
        Ok(())
    }

    fn hear(&mut self, token: u64, set: &Set, arrivals: &mut Vec<Arrival>) -> anyhow::Result<()> {
        let Some(mut visitor) = self.visitors.remove(&token) else { return Ok(()) };
        let filled = visitor.channel.fill(4096);
        match self.door.judge(visitor.channel.inbox()) {
            Admission::Admit { rank, answer } => {
                set.remove(&visitor.channel)?;
                arrivals.push(Arrival::Rank { rank, channel: visitor.channel, answer });
            }
            Admission::Refuse { why } => arrivals.push(self.stranger(why)),
            Admission::Wait if matches!(filled, Ok(Filled::Bytes(_))) => {
                self.visitors.insert(token, visitor);
            }
            Admission::Wait => arrivals.push(self.stranger("it went without a word".to_owned())),
        }
        Ok(())
    }
}
