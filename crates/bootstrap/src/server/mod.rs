//! The PMI server as a state machine: bytes from the ranks in, bytes to the ranks and facts about them out.
//!
//! It speaks PMI-1 (`pmi1`) and PMI-2 (`pmi2`), to each rank in the dialect of its first line, over one `store` and one
//! fence: ranks of both dialects may be in one job. It serves all ranks of a job, or a part of them, in a tree of
//! servers (`tree`): then a fence hands one message up and gets one down, and everything else is answered where it is
//! asked. [`port`] is the dialogue that comes first where ranks connect over `PMI_PORT`.
//!
//! It does no input or output, so a launcher, a test and a fuzzer can drive it alike. What a rank sends is not
//! trusted: a rank that breaks the protocol is reported once ([`Output::Broken`]) and not listened to any more.

mod pmi1;
mod pmi2;
pub mod port;
mod store;
mod tree;

use crate::dialect::Dialect;
use crate::wire::{self, Message, quote};

use store::Store;
use tree::Tree;

/// What a rank's bytes led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes for a rank.
    Send {
        /// To whom.
        rank: u32,
        /// What.
        bytes: Vec<u8>,
    },
    /// A message for the server above, whole, for its [`Server::from_child`].
    Up {
        /// What.
        bytes: Vec<u8>,
    },
    /// A message for a server below, whole, for its [`Server::from_parent`].
    Down {
        /// To which of the children.
        child: usize,
        /// What.
        bytes: Vec<u8>,
    },
    /// A rank has introduced itself.
    Joined {
        /// Who.
        rank: u32,
    },
    /// A rank has said that it ends in good order.
    Finalized {
        /// Who.
        rank: u32,
    },
    /// A rank wants the job to end.
    Abort {
        /// Who.
        rank: u32,
        /// With which code, if it says.
        code: Option<i32>,
        /// Why, in its words.
        message: String,
    },
    /// A rank ends the job with a code that is not zero: the job's code is its own.
    Exits {
        /// Who.
        rank: u32,
        /// The code.
        code: i32,
        /// Whether the other ranks hear of it from that one, and end by themselves.
        told: bool,
    },
    /// A rank does not keep to the protocol.
    Broken {
        /// Who.
        rank: u32,
        /// What it did.
        what: String,
    },
}

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was heard of it.
    Silent,
    /// It sent the opening line.
    Greeted,
    /// It takes part in the job.
    Joined,
    /// It waits for all others in a fence.
    InFence,
    /// It said that it ends in good order.
    Finalized,
    /// It broke the protocol.
    Broken,
}

/// Which part of which job a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The job's name.
    pub job: String,
    /// How many ranks the job has.
    pub size: u32,
    /// The ranks that this server talks to itself, in rising order.
    pub ranks: Vec<u32>,
    /// How many servers hand their messages to this one. A server without ranks must have some: it would have nothing
    /// to wait for.
    pub children: usize,
    /// Whether this one hands its messages to another.
    pub has_parent: bool,
    /// Which ranks share a host, for those who ask: the value of `PMI_process_mapping`.
    pub mapping: String,
}

#[derive(Debug)]
struct Client {
    rank: u32,
    dialect: Dialect,
    phase: Phase,
    /// The process has ended.
    gone: bool,
    /// Bytes of values it has put, as a bound on what it can make us keep.
    stored: usize,
    /// How far a command of several lines has come.
    many_lines: Option<pmi1::Spawn>,
    /// Which of its threads waits in the fence.
    fence_thread: Option<String>,
}

/// A wait for an attribute of the node that nobody has put yet.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    key: String,
    thread: Option<String>,
}

/// The server of a job, or of a part of it.
#[derive(Debug)]
pub struct Server {
    job: String,
    size: u32,
    mapping: String,
    clients: Vec<Client>,
    store: Store,
    waiting: Vec<Waiting>,
    /// How many of the ranks here wait in the fence.
    in_fence: usize,
    tree: Tree,
    /// How many ranks' processes have ended, here.
    gone: usize,
    /// A rank of another server whose process has ended.
    gone_below: Option<u32>,
}

/// The most that one rank can make the server keep.
const MOST_STORED: usize = 64 << 20;

/// Why something is refused: the protocol's code (PMI-1 has but one) and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    code: i32,
    why: &'static str,
}

mod refusal {
    use super::Refusal;
    pub(super) const FAIL: i32 = -1;
    pub(super) const KEY_LENGTH: Refusal = Refusal { code: 5, why: "a key has 1 to 64 bytes" };
    pub(super) const TWICE: Refusal = Refusal { code: 4, why: "duplicate key, the first value stays" };
    pub(super) const FULL: Refusal = Refusal { code: 2, why: "this rank has put 64 MiB already" };
    pub(super) const PUBLISHED: Refusal = Refusal { code: 3, why: "this name is published" };
    pub(super) const NOT_PUBLISHED: Refusal = Refusal { code: 3, why: "this name is not published" };
    pub(super) const ONE_JOB: Refusal =
        Refusal { code: FAIL, why: "this launcher starts one job and joins none" };
    pub(super) const UNKNOWN: Refusal = Refusal { code: 14, why: "this command is not known" };
    pub(super) const OTHER_SPACE: Refusal = Refusal { code: FAIL, why: "this kvs is not known" };
    /// All that may come from another server by its code and place in this list.
    pub(super) const OF_NAMES: [Refusal; 4] = [PUBLISHED, NOT_PUBLISHED, KEY_LENGTH, FULL];
}

/// What is done with the names that ranks publish.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NameCommand {
    Publish { name: String, port: String },
    Unpublish { name: String },
    Lookup { name: String },
}

impl Server {
    /// The only server of the job named `job`, for all its `size` ranks.
    pub fn new(size: u32, job: &str) -> Self {
        Self::of_part(Part {
            job: job.to_owned(),
            size,
            ranks: (0..size).collect(),
            children: 0,
            has_parent: false,
            mapping: format!("(vector,(0,1,{size}))"),
        })
    }

    /// The server for a part of a job.
    pub fn of_part(part: Part) -> Self {
        let client = |rank| Client {
            rank,
            dialect: Dialect::Pmi2,
            phase: Phase::Silent,
            gone: false,
            stored: 0,
            many_lines: None,
            fence_thread: None,
        };
        Self {
            job: part.job,
            size: part.size,
            mapping: part.mapping,
            clients: part.ranks.into_iter().map(client).collect(),
            store: Store::default(),
            waiting: Vec::new(),
            in_fence: 0,
            tree: Tree::new(part.children, part.has_parent),
            gone: 0,
            gone_below: None,
        }
    }

    fn place(&self, rank: u32) -> Option<usize> {
        self.clients.binary_search_by_key(&rank, |client| client.rank).ok()
    }

    /// The client of a rank that is known to be served here: what it says has come through [`feed`](Self::feed).
    fn client(&mut self, rank: u32) -> Option<&mut Client> {
        self.place(rank).map(|place| &mut self.clients[place])
    }

    /// How far a rank has come; one that is not served here counts as [`Phase::Broken`].
    pub fn phase(&self, rank: u32) -> Phase {
        self.place(rank).map_or(Phase::Broken, |place| self.clients[place].phase)
    }

    /// Uses up what has come from `rank`, as far as it is complete.
    pub fn feed(&mut self, rank: u32, inbox: &mut Vec<u8>, out: &mut Vec<Output>) {
        loop {
            let Some(client) = self.client(rank) else { return inbox.clear() };
            let taken = match (client.phase, client.dialect) {
                (Phase::Broken, _) => return inbox.clear(),
                (Phase::Silent, _) => {
                    wire::take_line(inbox).map_err(|e| format!("it does not keep to PMI: {e}"))
                }
                (_, Dialect::Pmi1) => pmi1::take(&mut client.many_lines, inbox)
                    .map_err(|e| format!("it does not keep to PMI-1: {e}")),
                (_, Dialect::Pmi2) => {
                    wire::take_message(inbox).map_err(|e| format!("it does not keep to PMI-2: {e}"))
                }
            };
            let handled = match taken {
                Ok(None) => return,
                Ok(Some(message)) => self.handle(rank, &message, out),
                Err(e) => Err(e),
            };
            if let Err(what) = handled {
                self.leave_fence(rank);
                if let Some(client) = self.client(rank) {
                    client.phase = Phase::Broken;
                }
                out.push(Output::Broken { rank, what });
            }
        }
    }

    fn handle(&mut self, rank: u32, message: &Message, out: &mut Vec<Output>) -> Result<(), String> {
        let Some(client) = self.client(rank) else { return Ok(()) };
        let (command, dialect) = (message.command.as_str(), client.dialect);
        let quoted = || quote(command.as_bytes());
        match (client.phase, command) {
            (Phase::Silent, "init") => return self.greet(rank, message, out),
            (Phase::Silent, _) => return Err(format!("it began with {} instead of init", quoted())),
            (Phase::Greeted, "fullinit") => {}
            (Phase::Greeted, _) => return Err(format!("it sent {} before fullinit", quoted())),
            (_, "init" | "fullinit") => return Err("it introduced itself a second time".to_owned()),
            (Phase::Finalized, _) => return Err(format!("it sent {} after finalize", quoted())),
            (Phase::InFence, "abort" | "gasworks-exit") => {}
            // It ends without the others: it gets its answer, and no other.
            (Phase::InFence, "finalize") => self.leave_fence(rank),
            (Phase::InFence, _) if dialect == Dialect::Pmi1 || message.get("thrid").is_none() => {
                return Err(format!("it sent {} while it waited in a fence", quoted()));
            }
            _ => {}
        }
        match dialect {
            Dialect::Pmi1 => pmi1::serve(self, rank, message, out),
            Dialect::Pmi2 => pmi2::serve(self, rank, message, out),
        }
    }

    /// The opening line, which says what the rest will be.
    fn greet(&mut self, rank: u32, message: &Message, out: &mut Vec<Output>) -> Result<(), String> {
        let version = message.number("pmi_version").map_err(|e| e.to_string())?;
        let (rc, spoken, sub) = match version {
            1 => (0, 1, 1),
            2 => (0, 2, 0),
            _ => (refusal::FAIL, 2, 0),
        };
        let answer = Message::new("response_to_init");
        let answer = answer.with("pmi_version", spoken).with("pmi_subversion", sub).with("rc", rc);
        out.push(Output::Send { rank, bytes: answer.encode_line() });
        let Some(client) = self.client(rank) else { return Ok(()) };
        match version {
            1 => {
                (client.dialect, client.phase) = (Dialect::Pmi1, Phase::Joined);
                out.push(Output::Joined { rank });
            }
            2 => client.phase = Phase::Greeted,
            _ => {
                return Err(format!("it speaks PMI version {version}; this launcher speaks PMI-1 and PMI-2"));
            }
        }
        Ok(())
    }

    /// The process of `rank` has ended; the rank may be served here or further down.
    pub fn gone(&mut self, rank: u32) {
        match self.place(rank) {
            Some(place) => {
                self.gone += usize::from(!self.clients[place].gone);
                self.clients[place].gone = true;
            }
            None if rank < self.size => self.gone_below = self.gone_below.or(Some(rank)),
            // Another server says so of a rank that there is not.
            None => {}
        }
    }

    /// A wait that can never end: a rank that waits (in a fence, or for an attribute of the node that nobody is left to
    /// put), and a rank that has ended without it. A server in a tree sees the ranks here, and those further down of
    /// whose ends it was told.
    pub fn stuck(&self) -> Option<(u32, u32)> {
        let here = || self.clients.iter().find(|c| c.gone).map(|c| c.rank);
        let gone = if self.gone > 0 { here() } else { self.gone_below }?;
        if let Some(waits) = self.waits_in_fence() {
            return Some((waits, gone));
        }
        // A node's attributes are put by its own ranks.
        let first = self.waiting.first().filter(|_| self.gone > 0)?;
        let ended = self.clients.iter().filter(|c| c.gone || c.phase == Phase::Finalized).count();
        (ended + self.waiting.len() >= self.clients.len()).then_some((first.rank, gone))
    }

    /// Some rank that waits in a fence which others have not come to.
    fn waits_in_fence(&self) -> Option<u32> {
        if self.tree.has_passed_on() {
            // All that are known here have come to it.
            return None;
        }
        let here = self.clients.iter().find(|c| self.in_fence > 0 && c.phase == Phase::InFence);
        here.map(|c| c.rank).or_else(|| self.tree.first_waiting())
    }

    fn finalize(&mut self, rank: u32, out: &mut Vec<Output>) {
        if let Some(client) = self.client(rank) {
            client.phase = Phase::Finalized;
        }
        out.push(Output::Finalized { rank });
    }

    fn put(&mut self, rank: u32, key: &str, value: &str) -> Result<(), Refusal> {
        if self.store.has(key) {
            return Err(refusal::TWICE);
        }
        self.book(rank, key, value)?;
        self.store.put(rank, key, value);
        Ok(())
    }

    /// Books what a rank wants kept, if it is not too much.
    fn book(&mut self, rank: u32, key: &str, value: &str) -> Result<(), Refusal> {
        let Some(client) = self.client(rank) else { return Ok(()) };
        if key.is_empty() || key.len() > wire::MAX_KEY {
            return Err(refusal::KEY_LENGTH);
        }
        if client.stored + key.len() + value.len() > MOST_STORED {
            return Err(refusal::FULL);
        }
        client.stored += key.len() + value.len();
        Ok(())
    }

    fn job_attribute(&self, key: &str) -> Option<String> {
        match key {
            "PMI_process_mapping" => Some(self.mapping.clone()),
            "universeSize" => Some(self.size.to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
