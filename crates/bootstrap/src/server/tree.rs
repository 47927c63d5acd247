//! The fence, and what else servers of one job tell each other.
//!
//! Servers form a tree: each serves some ranks itself, has some children, and, but for the root, a parent. At a fence a
//! server waits for its ranks and its children, and hands up one message with what all of them have put. The root lets
//! go: each child gets one message with what the *others* have put, so that data crosses each link once in each
//! direction. From then on every value is answered where it is asked for. Published names are kept at the root; a
//! question about one goes up with a ticket, and its answer comes down with the same.
//!
//! # Messages
//! The first byte is the kind; numbers are little-endian.
//!
//! - up, [`FENCE`]: a rank that waits (4 bytes); pairs: each rank (4), length of the key (1), key, length of the value
//!   (4), value.
//! - up, [`ASK`]: ticket (4), command (1), name and port, each with its length (4) in front.
//! - down, [`RELEASE`]: pairs, as above.
//! - down, [`ANSWER`]: ticket (4), 0 or 1 and a port, or 2 and the place of a refusal in the list of all.

use std::collections::HashMap;

use super::{Client, Dialect, NameCommand, Output, Phase, Refusal, Server, pmi1, pmi2, refusal};
use crate::wire::MAX_KEY;

const FENCE: u8 = 1;
const ASK: u8 = 2;
const RELEASE: u8 = 3;
const ANSWER: u8 = 4;

/// Who waits for an answer from above.
#[derive(Debug)]
enum Asker {
    Rank { rank: u32, thread: Option<String>, command: NameCommand },
    Child { child: usize, ticket: u32 },
}

/// What a child has handed up for the fence under way.
#[derive(Debug)]
struct Arrived {
    waits: u32,
    pairs: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Tree {
    children: Vec<Option<Arrived>>,
    arrived: usize,
    has_parent: bool,
    /// The fence was handed up, and its release has not come.
    passed_on: bool,
    asked: HashMap<u32, Asker>,
    next_ticket: u32,
}

impl Tree {
    pub(super) fn new(children: usize, has_parent: bool) -> Self {
        let children: Vec<_> = (0..children).map(|_| None).collect();
        let asked = HashMap::new();
        Self { children, arrived: 0, has_parent, passed_on: false, asked, next_ticket: 0 }
    }

    pub(super) fn has_passed_on(&self) -> bool {
        self.passed_on
    }

    /// A rank below that waits in the fence.
    pub(super) fn first_waiting(&self) -> Option<u32> {
        self.children.iter().flatten().map(|arrived| arrived.waits).next()
    }
}

/// What has come from another server, read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        match self.0.split_at_checked(count) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => Err(format!("a message lacks {} bytes", count - self.0.len())),
        }
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.bytes(1)?[0])
    }

    fn number(&mut self) -> Result<u32, String> {
        let mut number = [0; 4];
        number.copy_from_slice(self.bytes(4)?);
        Ok(u32::from_le_bytes(number))
    }

    fn text(&mut self, length: usize) -> Result<&'a str, String> {
        let bytes = self.bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| "a message holds what is no text".to_owned())
    }

    fn counted_text(&mut self) -> Result<&'a str, String> {
        let length = self.number()? as usize;
        self.text(length)
    }

    fn end(&self) -> Result<(), String> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("a message has {more} bytes too many")),
        }
    }
}

/// What is below 4 GiB: a key or a value that came in a message of a rank.
fn push_counted(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn push_pair(bytes: &mut Vec<u8>, rank: u32, key: &str, value: &str) {
    bytes.extend_from_slice(&rank.to_le_bytes());
    // A key has at most 64 bytes.
    bytes.push(key.len() as u8);
    bytes.extend_from_slice(key.as_bytes());
    push_counted(bytes, value);
}

/// Reads pairs to the end, and hands each to `each`.
fn read_pairs<'a>(
    mut reader: Reader<'a>,
    size: u32,
    mut each: impl FnMut(u32, &'a str, &'a str),
) -> Result<(), String> {
    while !reader.0.is_empty() {
        let rank = reader.number()?;
        let length = usize::from(reader.byte()?);
        if rank >= size || !(1..=MAX_KEY).contains(&length) {
            return Err(format!("a pair is of rank {rank} of {size}, its key has {length} bytes"));
        }
        let key = reader.text(length)?;
        each(rank, key, reader.counted_text()?);
    }
    Ok(())
}

impl NameCommand {
    fn name(&self) -> &str {
        let (Self::Publish { name, .. } | Self::Unpublish { name } | Self::Lookup { name }) = self;
        name
    }

    fn encode(&self, ticket: u32) -> Vec<u8> {
        let (kind, port) = match self {
            Self::Publish { port, .. } => (0, port.as_str()),
            Self::Unpublish { .. } => (1, ""),
            Self::Lookup { .. } => (2, ""),
        };
        let mut bytes = vec![ASK];
        bytes.extend_from_slice(&ticket.to_le_bytes());
        bytes.push(kind);
        push_counted(&mut bytes, self.name());
        push_counted(&mut bytes, port);
        bytes
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, String> {
        let kind = reader.byte()?;
        let name = reader.counted_text()?.to_owned();
        let port = reader.counted_text()?.to_owned();
        match kind {
            0 => Ok(Self::Publish { name, port }),
            1 => Ok(Self::Unpublish { name }),
            2 => Ok(Self::Lookup { name }),
            _ => Err(format!("there is no command {kind} about names")),
        }
    }
}

fn encode_answer(ticket: u32, outcome: Result<Option<&str>, Refusal>) -> Vec<u8> {
    let mut bytes = vec![ANSWER];
    bytes.extend_from_slice(&ticket.to_le_bytes());
    match outcome {
        Ok(None) => bytes.push(0),
        Ok(Some(port)) => {
            bytes.push(1);
            bytes.extend_from_slice(port.as_bytes());
        }
        Err(refusal) => {
            let place = refusal::OF_NAMES.iter().position(|known| *known == refusal).unwrap_or_default();
            bytes.extend_from_slice(&[2, place as u8]);
        }
    }
    bytes
}

fn decode_answer<'a>(reader: &mut Reader<'a>) -> Result<Result<Option<&'a str>, Refusal>, String> {
    match reader.byte()? {
        0 => Ok(Ok(None)),
        1 => reader.text(reader.0.len()).map(|port| Ok(Some(port))),
        2 => {
            let place = usize::from(reader.byte()?);
            let known = refusal::OF_NAMES.get(place).ok_or(format!("there is no refusal {place}"))?;
            Ok(Err(*known))
        }
        other => Err(format!("there is no answer {other}")),
    }
}

impl Server {
    /// A rank comes to the fence.
    pub(super) fn enter_fence(&mut self, rank: u32, thread: Option<String>, out: &mut Vec<Output>) {
        let Some(client) = self.client(rank) else { return };
        client.phase = Phase::InFence;
        client.fence_thread = thread;
        self.in_fence += 1;
        self.look_at_fence(out);
    }

    /// A rank leaves the fence, in which the others then wait in vain.
    pub(super) fn leave_fence(&mut self, rank: u32) {
        if self.phase(rank) == Phase::InFence {
            self.in_fence -= 1;
        }
    }

    /// Passes the fence on, or lets go, if all have come to it.
    fn look_at_fence(&mut self, out: &mut Vec<Output>) {
        let tree = &self.tree;
        let all = self.in_fence == self.clients.len() && tree.arrived == tree.children.len();
        if !all || tree.passed_on {
            return;
        }
        if !tree.has_parent {
            return self.release(&[], out);
        }
        let waits = self.clients.first().map(|c| c.rank).or(tree.first_waiting()).unwrap_or_default();
        let mut bytes = vec![FENCE];
        bytes.extend_from_slice(&waits.to_le_bytes());
        bytes.append(&mut self.own_pairs());
        for arrived in self.tree.children.iter().flatten() {
            bytes.extend_from_slice(&arrived.pairs);
        }
        self.tree.passed_on = true;
        out.push(Output::Up { bytes });
    }

    /// What the ranks here have put since the last fence.
    fn own_pairs(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (rank, key, value) in self.store.fresh() {
            push_pair(&mut bytes, *rank, key, value);
        }
        bytes
    }

    /// All have come to the fence; `from_above` is what was put elsewhere than here and below.
    fn release(&mut self, from_above: &[u8], out: &mut Vec<Output>) {
        let own = if self.tree.children.is_empty() { Vec::new() } else { self.own_pairs() };
        let arrived: Vec<Arrived> = self.tree.children.iter_mut().filter_map(Option::take).collect();
        (self.tree.arrived, self.tree.passed_on, self.in_fence) = (0, false, 0);
        for child in 0..arrived.len() {
            let mut bytes = vec![RELEASE];
            bytes.extend_from_slice(from_above);
            bytes.extend_from_slice(&own);
            for (other, arrived) in arrived.iter().enumerate() {
                if other != child {
                    bytes.extend_from_slice(&arrived.pairs);
                }
            }
            out.push(Output::Down { child, bytes });
        }
        self.store.pass_fence();
        let others = arrived.iter().map(|arrived| arrived.pairs.as_slice()).chain([from_above]);
        for pairs in others {
            // They were read once when they came.
            let _ = read_pairs(Reader(pairs), self.size, |rank, key, value| self.store.add(rank, key, value));
        }
        for Client { rank, dialect, phase, fence_thread, .. } in &mut self.clients {
            if *phase == Phase::InFence {
                *phase = Phase::Joined;
                let bytes = match dialect {
                    Dialect::Pmi1 => pmi1::released(),
                    Dialect::Pmi2 => pmi2::released(fence_thread.take().as_deref()),
                };
                out.push(Output::Send { rank: *rank, bytes });
            }
        }
    }

    /// A message has come from a child. After an error that child is not to be heard any more.
    pub fn from_child(&mut self, child: usize, bytes: &[u8], out: &mut Vec<Output>) -> Result<(), String> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            FENCE => {
                let waits = reader.number()?;
                if waits >= self.size {
                    return Err(format!("rank {waits} of {} is said to wait in a fence", self.size));
                }
                let pairs = reader.0.to_vec();
                read_pairs(reader, self.size, |_, _, _| ())?;
                match self.tree.children.get_mut(child) {
                    Some(place @ None) => *place = Some(Arrived { waits, pairs }),
                    _ => return Err("a fence came where none was to come".to_owned()),
                }
                self.tree.arrived += 1;
                self.look_at_fence(out);
            }
            ASK => {
                let ticket = reader.number()?;
                let command = NameCommand::decode(&mut reader)?;
                reader.end()?;
                if child >= self.tree.children.len() {
                    return Err("a question came from nowhere".to_owned());
                }
                self.carry_name(Asker::Child { child, ticket }, command, out);
            }
            kind => return Err(format!("a message of kind {kind} came from below")),
        }
        Ok(())
    }

    /// A message has come from the parent. After an error the tree is of no use any more.
    pub fn from_parent(&mut self, bytes: &[u8], out: &mut Vec<Output>) -> Result<(), String> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            RELEASE => {
                if !self.tree.passed_on {
                    return Err("a release came where none was to come".to_owned());
                }
                let pairs = reader.0;
                read_pairs(reader, self.size, |_, _, _| ())?;
                self.release(pairs, out);
            }
            ANSWER => {
                let ticket = reader.number()?;
                let outcome = decode_answer(&mut reader)?;
                reader.end()?;
                let asker =
                    self.tree.asked.remove(&ticket).ok_or(format!("nobody asked with ticket {ticket}"))?;
                self.answer_name(asker, outcome, out);
            }
            kind => return Err(format!("a message of kind {kind} came from above")),
        }
        Ok(())
    }

    /// A rank asks for something to be done with a name.
    pub(super) fn ask_for_name(
        &mut self,
        rank: u32,
        thread: Option<String>,
        command: NameCommand,
        out: &mut Vec<Output>,
    ) {
        let booked = match &command {
            NameCommand::Publish { name, port } => self.book(rank, name, port),
            _ => Ok(()),
        };
        let asker = Asker::Rank { rank, thread, command: command.clone() };
        match booked {
            Ok(()) => self.carry_name(asker, command, out),
            Err(refusal) => self.answer_name(asker, Err(refusal), out),
        }
    }

    /// Does it, at the root; elsewhere passes it on.
    fn carry_name(&mut self, asker: Asker, command: NameCommand, out: &mut Vec<Output>) {
        if self.tree.has_parent {
            let ticket = self.tree.next_ticket;
            self.tree.next_ticket = ticket.wrapping_add(1);
            let bytes = command.encode(ticket);
            self.tree.asked.insert(ticket, asker);
            out.push(Output::Up { bytes });
        } else {
            let outcome = self.store.name(command);
            let outcome = outcome.as_ref().map(Option::as_deref).map_err(|refusal| *refusal);
            self.answer_name(asker, outcome, out);
        }
    }

    fn answer_name(&mut self, asker: Asker, outcome: Result<Option<&str>, Refusal>, out: &mut Vec<Output>) {
        match asker {
            Asker::Child { child, ticket } => {
                out.push(Output::Down { child, bytes: encode_answer(ticket, outcome) });
            }
            Asker::Rank { rank, thread, command } => {
                let Some(client) = self.client(rank) else { return };
                let bytes = match (client.dialect, &command) {
                    (Dialect::Pmi1, _) => pmi1::name_answer(&command, outcome),
                    (_, NameCommand::Publish { .. }) => {
                        pmi2::name_answer("name-publish", thread.as_deref(), outcome)
                    }
                    (_, NameCommand::Unpublish { .. }) => {
                        pmi2::name_answer("name-unpublish", thread.as_deref(), outcome)
                    }
                    (_, NameCommand::Lookup { .. }) => {
                        pmi2::name_answer("name-lookup", thread.as_deref(), outcome)
                    }
                };
                out.push(Output::Send { rank, bytes });
            }
        }
    }
}
