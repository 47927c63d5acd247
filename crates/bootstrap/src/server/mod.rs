//! The PMI-2 server as a state machine: bytes from the ranks in, bytes to the ranks and facts about them out.
//!
//! It does no input or output, so a launcher, a test and a fuzzer can drive it alike. What a rank sends is not
//! trusted: a rank that breaks the protocol is reported once ([`Output::Broken`]) and not listened to any more.

use std::collections::HashMap;

use crate::wire::{self, Message, quote};

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
        /// Why, in its words.
        message: String,
    },
    /// A rank ends the job with a code that is not zero: the job's code is its own.
    Exits {
        /// Who.
        rank: u32,
        /// The code.
        code: i32,
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

#[derive(Debug)]
struct Client {
    phase: Phase,
    /// The process has ended.
    gone: bool,
    /// Bytes of values it has put, as a bound on what it can make us keep.
    stored: usize,
}

/// A wait for an attribute of the node that nobody has put yet.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    key: String,
    thread: Option<String>,
}

/// The server of one job.
#[derive(Debug)]
pub struct Server {
    job: String,
    clients: Vec<Client>,
    values: HashMap<String, String>,
    /// What was put since the last fence.
    fresh: Vec<(String, String)>,
    node: HashMap<String, String>,
    names: HashMap<String, String>,
    waiting: Vec<Waiting>,
    in_fence: usize,
    /// How many ranks' processes have ended.
    gone: usize,
}

/// The most that one rank can make the server keep.
const MOST_STORED: usize = 64 << 20;

/// The protocol's codes for what is refused.
mod rc {
    pub(super) const FAIL: i32 = -1;
    pub(super) const NO_MEMORY: i32 = 2;
    pub(super) const INVALID_ARGUMENT: i32 = 3;
    pub(super) const OTHER: i32 = 14;
}

/// An answer under way: what came, so that what goes back fits it.
struct Exchange<'a> {
    rank: u32,
    question: &'a Message,
    out: &'a mut Vec<Output>,
}

fn answer_bytes(command: &str, thread: Option<&str>, rc: i32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut answer = Message::new(&format!("{command}-response"));
    if let Some(thread) = thread {
        answer = answer.with("thrid", thread);
    }
    answer = answer.with("rc", rc);
    for (key, value) in pairs {
        answer = answer.with(key, value);
    }
    // A value that came in fits a message; with the fields of an answer it may be a little too long.
    answer.encode().unwrap_or_else(|e| {
        let refused = Message::new(&format!("{command}-response")).with("rc", rc::FAIL).with("errmsg", e);
        refused.encode().unwrap_or_default()
    })
}

impl Exchange<'_> {
    fn answer(&mut self, rc: i32, pairs: &[(&str, &str)]) {
        let bytes = answer_bytes(&self.question.command, self.question.get("thrid"), rc, pairs);
        self.out.push(Output::Send { rank: self.rank, bytes });
    }

    fn refuse(&mut self, rc: i32, why: &str) {
        self.answer(rc, &[("errmsg", why)]);
    }
}

impl Server {
    /// A server for `size` ranks of the job named `job`.
    pub fn new(size: u32, job: &str) -> Self {
        let clients = (0..size).map(|_| Client { phase: Phase::Silent, gone: false, stored: 0 }).collect();
        Self {
            job: job.to_owned(),
            clients,
            values: HashMap::new(),
            fresh: Vec::new(),
            node: HashMap::new(),
            names: HashMap::new(),
            waiting: Vec::new(),
            in_fence: 0,
            gone: 0,
        }
    }

    /// How far a rank has come.
    pub fn phase(&self, rank: u32) -> Phase {
        self.clients.get(rank as usize).map_or(Phase::Broken, |client| client.phase)
    }

    /// Uses up what has come from `rank`, as far as it is complete.
    pub fn feed(&mut self, rank: u32, inbox: &mut Vec<u8>, out: &mut Vec<Output>) {
        loop {
            let taken = match self.phase(rank) {
                Phase::Broken => {
                    inbox.clear();
                    return;
                }
                Phase::Silent => wire::take_line(inbox),
                _ => wire::take_message(inbox),
            };
            let handled = match taken {
                Ok(None) => return,
                Ok(Some(message)) => self.handle(rank, &message, out),
                Err(e) => Err(format!("it does not keep to PMI-2: {e}")),
            };
            if let Err(what) = handled {
                self.clients[rank as usize].phase = Phase::Broken;
                out.push(Output::Broken { rank, what });
            }
        }
    }

    /// The process of `rank` has ended.
    pub fn gone(&mut self, rank: u32) {
        if let Some(client) = self.clients.get_mut(rank as usize) {
            self.gone += usize::from(!client.gone);
            client.gone = true;
        }
    }

    /// A wait that can never end: the rank that waits (in a fence, or for an attribute of the node that nobody is left
    /// to put), and the rank that has ended without it.
    pub fn stuck(&self) -> Option<(u32, u32)> {
        if self.gone == 0 || (self.in_fence == 0 && self.waiting.is_empty()) {
            return None;
        }
        let find = |test: &dyn Fn(&Client) -> bool| self.clients.iter().position(test).map(|i| i as u32);
        let gone = find(&|c| c.gone)?;
        if self.in_fence > 0 {
            return Some((find(&|c| c.phase == Phase::InFence)?, gone));
        }
        let ended = self.clients.iter().filter(|c| c.gone || c.phase == Phase::Finalized).count();
        (ended + self.waiting.len() >= self.clients.len())
            .then(|| Some((self.waiting.first()?.rank, gone)))
            .flatten()
    }

    fn handle(&mut self, rank: u32, message: &Message, out: &mut Vec<Output>) -> Result<(), String> {
        let mut exchange = Exchange { rank, question: message, out };
        let command = message.command.as_str();
        match (self.phase(rank), command) {
            (Phase::Silent, "init") => self.greet(&mut exchange),
            (Phase::Silent, _) => Err(format!("it began with {} instead of init", quote(command.as_bytes()))),
            (Phase::Greeted, "fullinit") => self.join(&mut exchange),
            (Phase::Greeted, _) => Err(format!("it sent {} before fullinit", quote(command.as_bytes()))),
            (_, "init" | "fullinit") => Err("it introduced itself a second time".to_owned()),
            (Phase::Finalized, _) => Err(format!("it sent {} after finalize", quote(command.as_bytes()))),
            (Phase::InFence, "abort") => self.abort(&mut exchange),
            (Phase::InFence, "gasworks-exit" | "finalize") => {
                if command == "finalize" {
                    // It ends without the others: it gets its answer, and no other.
                    self.in_fence -= 1;
                }
                self.serve(&mut exchange)
            }
            (Phase::InFence, _) if message.get("thrid").is_none() => {
                Err(format!("it sent {} while it waited in a fence", quote(command.as_bytes())))
            }
            _ => self.serve(&mut exchange),
        }
    }

    fn greet(&mut self, exchange: &mut Exchange<'_>) -> Result<(), String> {
        let version = exchange.question.number("pmi_version").map_err(|e| e.to_string())?;
        let rc = if version == 2 { 0 } else { rc::FAIL };
        let answer =
            Message::new("response_to_init").with("rc", rc).with("pmi_version", 2).with("pmi_subversion", 0);
        exchange.out.push(Output::Send { rank: exchange.rank, bytes: answer.encode_line() });
        if version != 2 {
            return Err(format!("it speaks PMI version {version}; this launcher speaks PMI-2 only"));
        }
        self.clients[exchange.rank as usize].phase = Phase::Greeted;
        Ok(())
    }

    fn join(&mut self, exchange: &mut Exchange<'_>) -> Result<(), String> {
        let (rank, question) = (exchange.rank, exchange.question);
        let claimed = question.number("pmirank").map_err(|e| e.to_string())?;
        if claimed != i64::from(rank) {
            return Err(format!("it calls itself rank {claimed}"));
        }
        if let Some(job) = question.get("pmijobid").filter(|&job| job != self.job) {
            return Err(format!("it belongs to the job {}, not to {}", quote(job.as_bytes()), self.job));
        }
        let size = self.clients.len().to_string();
        let (version, subversion) = (("pmi-version", "2"), ("pmi-subversion", "0"));
        let identity = [version, subversion, ("rank", &rank.to_string()), ("size", &size), ("appnum", "0")];
        let quiet = [("debugged", "FALSE"), ("pmiverbose", "FALSE"), ("launcher", "gasrun")];
        exchange.answer(0, &[identity.as_slice(), &quiet].concat());
        exchange.out.push(Output::Joined { rank });
        self.clients[rank as usize].phase = Phase::Joined;
        Ok(())
    }

    fn abort(&mut self, exchange: &mut Exchange<'_>) -> Result<(), String> {
        let message = exchange.question.get("msg").unwrap_or_default().to_owned();
        exchange.out.push(Output::Abort { rank: exchange.rank, message });
        Ok(())
    }

    /// A command of a rank that has joined.
    fn serve(&mut self, exchange: &mut Exchange<'_>) -> Result<(), String> {
        let (rank, question) = (exchange.rank, exchange.question);
        let need = |key| question.need(key).map_err(|e| e.to_string());
        match question.command.as_str() {
            "finalize" => {
                self.clients[rank as usize].phase = Phase::Finalized;
                exchange.answer(0, &[]);
                exchange.out.push(Output::Finalized { rank });
            }
            "abort" => self.abort(exchange)?,
            "gasworks-exit" => {
                let code = question.number("code").map_err(|e| e.to_string())?;
                let code = i32::try_from(code).ok().filter(|code| (1..=255).contains(code));
                let code = code.ok_or("it ends the job with a code that is none")?;
                exchange.out.push(Output::Exits { rank, code });
            }
            "job-getid" => exchange.answer(0, &[("jobid", &self.job)]),
            "kvs-put" => {
                let (key, value) = (need("key")?.to_owned(), need("value")?.to_owned());
                if self.may_keep(exchange, &key, &value) {
                    self.fresh.push((key, value));
                    exchange.answer(0, &[]);
                }
            }
            "kvs-get" => {
                let found = self.values.get(need("key")?);
                answer_found(exchange, found);
            }
            "kvs-fence" => self.fence(exchange),
            "info-putnodeattr" => {
                let (key, value) = (need("key")?.to_owned(), need("value")?.to_owned());
                if self.may_keep(exchange, &key, &value) {
                    exchange.answer(0, &[]);
                    self.put_node(key, value, exchange.out);
                }
            }
            "info-getnodeattr" => {
                let key = need("key")?;
                let wait = question.get("wait").is_some_and(|wait| wait.eq_ignore_ascii_case("true"));
                match self.node.get(key) {
                    None if wait => {
                        let thread = question.get("thrid").map(str::to_owned);
                        self.waiting.push(Waiting { rank, key: key.to_owned(), thread });
                    }
                    found => answer_found(exchange, found),
                }
            }
            "info-getjobattr" => {
                let size = self.clients.len();
                let known = match need("key")? {
                    "PMI_process_mapping" => Some(format!("(vector,(0,1,{size}))")),
                    "universeSize" => Some(size.to_string()),
                    _ => None,
                };
                answer_found(exchange, known.as_ref());
            }
            "name-publish" => {
                let (name, port) = (need("name")?.to_owned(), need("port")?.to_owned());
                if self.names.contains_key(&name) {
                    exchange.refuse(rc::INVALID_ARGUMENT, "this name is published");
                } else if self.may_keep(exchange, &name, &port) {
                    self.names.insert(name, port);
                    exchange.answer(0, &[]);
                }
            }
            "name-unpublish" => match self.names.remove(need("name")?) {
                Some(_) => exchange.answer(0, &[]),
                None => exchange.refuse(rc::INVALID_ARGUMENT, "this name is not published"),
            },
            "name-lookup" => match self.names.get(need("name")?) {
                Some(port) => exchange.answer(0, &[("port", port), ("value", port), ("found", "TRUE")]),
                None => exchange.refuse(rc::INVALID_ARGUMENT, "this name is not published"),
            },
            "spawn" | "job-connect" | "job-disconnect" | "ring" => {
                exchange.refuse(rc::FAIL, "this launcher starts one job and joins none");
            }
            _ => exchange.refuse(rc::OTHER, "this command is not known"),
        }
        Ok(())
    }

    /// Books what a rank wants kept; refuses, in an answer, what is too much.
    fn may_keep(&mut self, exchange: &mut Exchange<'_>, key: &str, value: &str) -> bool {
        let stored = &mut self.clients[exchange.rank as usize].stored;
        if key.is_empty() || key.len() > wire::MAX_KEY {
            exchange.refuse(rc::INVALID_ARGUMENT, "a key has 1 to 64 bytes");
            return false;
        }
        if *stored + key.len() + value.len() > MOST_STORED {
            exchange.refuse(rc::NO_MEMORY, "this rank has put 64 MiB already");
            return false;
        }
        *stored += key.len() + value.len();
        true
    }

    fn fence(&mut self, exchange: &mut Exchange<'_>) {
        self.clients[exchange.rank as usize].phase = Phase::InFence;
        self.in_fence += 1;
        if self.in_fence < self.clients.len() {
            return;
        }
        self.in_fence = 0;
        self.values.extend(self.fresh.drain(..));
        for (rank, client) in (0u32..).zip(&mut self.clients) {
            client.phase = Phase::Joined;
            exchange.out.push(Output::Send { rank, bytes: answer_bytes("kvs-fence", None, 0, &[]) });
        }
    }

    fn put_node(&mut self, key: String, value: String, out: &mut Vec<Output>) {
        self.waiting.retain(|waiting| {
            if waiting.key != key {
                return true;
            }
            let found = [("found", "TRUE"), ("value", value.as_str())];
            let bytes = answer_bytes("info-getnodeattr", waiting.thread.as_deref(), 0, &found);
            out.push(Output::Send { rank: waiting.rank, bytes });
            false
        });
        self.node.insert(key, value);
    }
}

fn answer_found(exchange: &mut Exchange<'_>, found: Option<&String>) {
    match found {
        Some(value) => exchange.answer(0, &[("found", "TRUE"), ("value", value)]),
        None => exchange.answer(0, &[("found", "FALSE")]),
    }
}

#[cfg(test)]
mod tests;
