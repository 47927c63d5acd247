//! The dialogue at a `PMI_PORT`: who connects says which rank it is, and is told what a descriptor's owner knows.
//!
//! Whoever reaches the port may connect, so each expected rank is let in once, and everybody else is sent away with a
//! reason for the launcher's log. A number is all that the protocol has to tell a rank from a stranger: the port is to
//! be one that only this host's processes reach.

use std::collections::HashMap;

use crate::wire::{self, Message, quote};

/// The ranks that are to come, each once.
#[derive(Debug, Default)]
pub struct Door {
    size: u32,
    /// By rank: whether it has come.
    expected: HashMap<u32, bool>,
}

/// What is to be done about one who has connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// What has come is the beginning of an introduction.
    Wait,
    /// It is this rank; the bytes are the answer to it. What else has come from it belongs to the
    /// [`Server`](super::Server).
    Admit {
        /// Who.
        rank: u32,
        /// The answer.
        answer: Vec<u8>,
    },
    /// It is no rank that is still to come, and is to be sent away.
    Refuse {
        /// Why, with the offending text.
        why: String,
    },
}

impl Door {
    /// For some ranks of a job of `size` ranks.
    pub fn new(size: u32, ranks: impl IntoIterator<Item = u32>) -> Self {
        Self { size, expected: ranks.into_iter().map(|rank| (rank, false)).collect() }
    }

    /// Judges what has come from one who has connected; an introduction is taken out of `inbox`.
    pub fn judge(&mut self, inbox: &mut Vec<u8>) -> Admission {
        let line = match wire::take_line(inbox) {
            Ok(None) => return Admission::Wait,
            Ok(Some(line)) => line,
            Err(e) => return Admission::Refuse { why: e.to_string() },
        };
        let refuse = |why: String| Admission::Refuse { why };
        if line.command != "initack" {
            return refuse(format!("it began with {} instead of initack", quote(line.command.as_bytes())));
        }
        let id = match line.number("pmiid") {
            Ok(id) => id,
            Err(e) => return refuse(e.to_string()),
        };
        let Some((rank, come)) =
            u32::try_from(id).ok().and_then(|rank| Some((rank, self.expected.get_mut(&rank)?)))
        else {
            return refuse(format!("it calls itself rank {id}, which is not expected here"));
        };
        if std::mem::replace(come, true) {
            return refuse(format!("it calls itself rank {rank}, which has come already"));
        }
        let set = |key, value| Message::new("set").with(key, value).encode_line();
        let hello = Message::new("initack").with("rc", 0).encode_line();
        let answer = [hello, set("size", self.size), set("rank", rank), set("debug", 0)].concat();
        Admission::Admit { rank, answer }
    }
}
