//! What may come from another node of a job, read as the job reads it. Nobody but the fuzzer needs this face.
//!
//! Each function refuses its bytes, or has understood them and gives what would be sent to say the same.

use super::codec;
use super::message::{Down, Up};
use super::plan::{Plan, Ticket};

/// A message of an agent to its parent.
pub fn from_agent(bytes: &[u8]) -> Option<Vec<u8>> {
    Up::decode(bytes).ok().map(|message| message.encode())
}

/// A message of a parent to its agent.
pub fn from_parent(bytes: &[u8]) -> Option<Vec<u8>> {
    Down::decode(bytes).ok().map(|message| message.encode())
}

/// What an agent is told to do by somebody who must know `answer`.
pub fn plan(bytes: &[u8], answer: &str) -> Option<Vec<u8>> {
    Plan::decode(bytes, answer).ok().map(|plan| plan.encode())
}

/// What stands on an agent's standard input.
pub fn ticket(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    Ticket::read(text).ok().map(|ticket| ticket.write().into_bytes())
}

/// The messages in what comes in these pieces; the flag: in the end one announces more than there may be.
pub fn messages<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let (mut inbox, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            match codec::frame(&inbox) {
                Ok(Some((message, rest))) => {
                    found.push(message.to_vec());
                    inbox = rest.to_vec();
                }
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}
