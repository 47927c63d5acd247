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

    /// A fence that can never end: the rank that waits there, and the rank that has ended without it.
    pub fn stuck(&self) -> Option<(u32, u32)> {
        let find = |test: &dyn Fn(&Client) -> bool| self.clients.iter().position(test).map(|i| i as u32);
        (self.in_fence > 0)
            .then(|| Some((find(&|c| c.phase == Phase::InFence)?, find(&|c| c.gone)?)))
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
        let quiet = [("debugged", "FALSE"), ("pmiverbose", "FALSE")];
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends one message; gives what came of it.
    fn say(server: &mut Server, rank: u32, message: Message) -> Vec<Output> {
        feed(server, rank, &message.encode().expect("encoded"))
    }

    fn feed(server: &mut Server, rank: u32, bytes: &[u8]) -> Vec<Output> {
        let mut out = Vec::new();
        server.feed(rank, &mut bytes.to_vec(), &mut out);
        out
    }

    fn joined(size: u32) -> Server {
        let mut server = Server::new(size, "job.1");
        for rank in 0..size {
            feed(&mut server, rank, b"cmd=init pmi_version=2 pmi_subversion=0\n");
            say(&mut server, rank, Message::new("fullinit").with("pmirank", rank).with("threaded", "FALSE"));
            assert_eq!(server.phase(rank), Phase::Joined);
        }
        server
    }

    fn sent(outputs: &[Output]) -> Vec<(u32, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[6..]).into_owned();
        outputs
            .iter()
            .filter_map(|o| match o {
                Output::Send { rank, bytes } => Some((*rank, text(bytes))),
                _ => None,
            })
            .collect()
    }

    fn broken(outputs: &[Output]) -> &str {
        match outputs.last() {
            Some(Output::Broken { what, .. }) => what,
            other => panic!("expected a broken rank, got {other:?}"),
        }
    }

    #[test]
    fn values_appear_after_the_fence() {
        let mut server = joined(2);
        let put = Message::new("kvs-put").with("key", "k0").with("value", "v;0");
        assert_eq!(sent(&say(&mut server, 0, put)), [(0, "cmd=kvs-put-response;rc=0;".to_owned())]);
        let get = || Message::new("kvs-get").with("jobid", "job.1").with("srcid", 0).with("key", "k0");
        assert_eq!(sent(&say(&mut server, 1, get()))[0].1, "cmd=kvs-get-response;rc=0;found=FALSE;");
        assert!(say(&mut server, 0, Message::new("kvs-fence")).is_empty());
        assert_eq!(server.stuck(), None);
        let released = sent(&say(&mut server, 1, Message::new("kvs-fence")));
        assert_eq!(released.len(), 2);
        assert_eq!(
            sent(&say(&mut server, 1, get()))[0].1,
            "cmd=kvs-get-response;rc=0;found=TRUE;value=v;;0;"
        );
        let end = say(&mut server, 1, Message::new("finalize"));
        assert!(end.contains(&Output::Finalized { rank: 1 }));
        assert!(say(&mut server, 0, Message::new("kvs-fence")).is_empty());
        server.gone(1);
        assert_eq!(server.stuck(), Some((0, 1)));
    }

    #[test]
    fn node_attributes_are_waited_for() {
        let mut server = joined(3);
        let get =
            |wait| Message::new("info-getnodeattr").with("key", "seg").with("wait", wait).with("thrid", 7);
        assert!(say(&mut server, 1, get("TRUE")).is_empty());
        assert_eq!(
            sent(&say(&mut server, 2, get("FALSE")))[0].1,
            "cmd=info-getnodeattr-response;thrid=7;rc=0;found=FALSE;"
        );
        let put = Message::new("info-putnodeattr").with("key", "seg").with("value", "x");
        let got = sent(&say(&mut server, 0, put));
        assert_eq!(got[1], (1, "cmd=info-getnodeattr-response;thrid=7;rc=0;found=TRUE;value=x;".to_owned()));
    }

    #[test]
    fn attributes_names_and_the_rest() {
        let mut server = joined(2);
        let mut ask = |message: Message| sent(&say(&mut server, 0, message))[0].1.clone();
        let attribute = |key| Message::new("info-getjobattr").with("key", key);
        assert!(ask(attribute("PMI_process_mapping")).ends_with("value=(vector,(0,1,2));"));
        assert!(ask(attribute("universeSize")).ends_with("value=2;"));
        assert!(ask(attribute("nosuch")).ends_with("found=FALSE;"));
        assert_eq!(ask(Message::new("job-getid")), "cmd=job-getid-response;rc=0;jobid=job.1;");
        assert!(ask(Message::new("name-lookup").with("name", "n")).contains("rc=3;errmsg="));
        assert!(ask(Message::new("name-publish").with("name", "n").with("port", "p")).ends_with("rc=0;"));
        assert!(ask(Message::new("name-publish").with("name", "n").with("port", "p")).contains("rc=3"));
        assert!(ask(Message::new("name-lookup").with("name", "n")).contains("port=p;"));
        assert!(ask(Message::new("name-unpublish").with("name", "n")).ends_with("rc=0;"));
        assert!(ask(Message::new("spawn")).contains("rc=-1;errmsg="));
        assert!(ask(Message::new("nonsense")).contains("rc=14;errmsg="));
        let abort = say(&mut server, 1, Message::new("abort").with("isworld", "TRUE").with("msg", "no more"));
        assert_eq!(abort, [Output::Abort { rank: 1, message: "no more".into() }]);
    }

    #[test]
    fn a_hostile_rank_is_reported_once() {
        for (bytes, wanted) in [
            (b"    14cmd=job-getid;\n".as_slice(), "does not keep to PMI-2"),
            (b"cmd=init pmi_version=1 pmi_subversion=1\n", "PMI version 1"),
            (b"cmd=hello\n", "\"hello\" instead of init"),
            (b"cmd=init pmi_version=2\n    14cmd=job-getid;", "\"job-getid\" before fullinit"),
            (b"cmd=init pmi_version=2\n    25cmd=fullinit;pmirank=1000", "has no ';'"),
            (b"cmd=init pmi_version=2\n    23cmd=fullinit;pmirank=1;", "calls itself rank 1"),
            (b"cmd=init pmi_version=2\n999999cmd=", "announces 999999 bytes"),
            (b"cmd=init pmi_version=2\n    34cmd=fullinit;pmijobid=X;pmirank=0;", "belongs to the job \"X\""),
        ] {
            let mut server = Server::new(2, "job.1");
            let out = feed(&mut server, 0, bytes);
            assert!(broken(&out).contains(wanted), "{out:?} should say {wanted}");
            assert!(feed(&mut server, 0, b"anything").is_empty());
        }
        let again = |server: &mut Server, m| broken(&say(server, 0, m)).to_owned();
        let introduce = || Message::new("fullinit").with("pmirank", 0);
        assert!(again(&mut joined(2), introduce()).contains("a second time"));
        let mut server = joined(2);
        say(&mut server, 0, Message::new("kvs-fence"));
        assert!(again(&mut server, Message::new("kvs-fence")).contains("while it waited in a fence"));
        let mut server = joined(2);
        say(&mut server, 0, Message::new("finalize"));
        assert!(again(&mut server, Message::new("kvs-fence")).contains("after finalize"));
        assert!(again(&mut joined(2), Message::new("kvs-put").with("key", "k")).contains("without value"));
    }

    #[test]
    fn a_rank_cannot_fill_the_launcher() {
        let mut server = joined(1);
        let value = "x".repeat(60_000);
        let refused = (0..2_000).any(|i| {
            let put = Message::new("kvs-put").with("key", format!("k{i}")).with("value", &value);
            sent(&say(&mut server, 0, put))[0].1.contains("rc=2;errmsg=")
        });
        assert!(refused);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            chunks in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..40),
                    "cmd=(init|x) pmi_version=[12]\n".prop_map(String::into_bytes),
                    ("(fullinit|finalize|kvs-put|kvs-get|kvs-fence|abort|job-getid|info-getnodeattr|name-lookup)",
                     proptest::collection::vec(("(key|value|pmirank|wait|name|thrid)", "[0-9a-z;]{0,9}"), 0..3))
                        .prop_map(|(command, pairs)| Message { command, pairs }.encode().unwrap_or_default()),
                ],
                0..20,
            ),
        ) {
            let mut server = Server::new(2, "job.1");
            let (mut inbox, mut out) = (Vec::new(), Vec::new());
            for chunk in chunks {
                inbox.extend_from_slice(&chunk);
                server.feed(0, &mut inbox, &mut out);
            }
            let reports = out.iter().filter(|o| matches!(o, Output::Broken { .. })).count();
            prop_assert!(reports <= 1);
            let empty = out.iter().any(|o| matches!(o, Output::Send { bytes, .. } if bytes.is_empty()));
            prop_assert!(!empty);
        }
    }
}
