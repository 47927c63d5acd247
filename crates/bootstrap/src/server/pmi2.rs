//! PMI-2: a length, a command, pairs that end in semicolons.

use crate::wire::{Message, quote};

use super::{NameCommand, Output, Phase, Refusal, Server, Waiting, refusal};

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
        let refused =
            Message::new(&format!("{command}-response")).with("rc", refusal::FAIL).with("errmsg", e);
        refused.encode().unwrap_or_default()
    })
}

impl Exchange<'_> {
    fn answer(&mut self, pairs: &[(&str, &str)]) {
        let bytes = answer_bytes(&self.question.command, self.question.get("thrid"), 0, pairs);
        self.out.push(Output::Send { rank: self.rank, bytes });
    }

    fn refuse(&mut self, Refusal { code, why }: Refusal) {
        let thread = self.question.get("thrid");
        let bytes = answer_bytes(&self.question.command, thread, code, &[("errmsg", why)]);
        self.out.push(Output::Send { rank: self.rank, bytes });
    }

    fn settle(&mut self, outcome: Result<(), Refusal>) {
        match outcome {
            Ok(()) => self.answer(&[]),
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn found(&mut self, found: Option<&str>) {
        match found {
            Some(value) => self.answer(&[("found", "TRUE"), ("value", value)]),
            None => self.answer(&[("found", "FALSE")]),
        }
    }
}

/// What lets a rank go on after a fence.
pub(super) fn released(thread: Option<&str>) -> Vec<u8> {
    answer_bytes("kvs-fence", thread, 0, &[])
}

/// The answer to a command about names.
pub(super) fn name_answer(
    command: &str,
    thread: Option<&str>,
    outcome: Result<Option<&str>, Refusal>,
) -> Vec<u8> {
    match outcome {
        Ok(None) => answer_bytes(command, thread, 0, &[]),
        Ok(Some(port)) => {
            answer_bytes(command, thread, 0, &[("port", port), ("value", port), ("found", "TRUE")])
        }
        Err(Refusal { code, why }) => answer_bytes(command, thread, code, &[("errmsg", why)]),
    }
}

/// Carries out a command of a rank that has greeted.
pub(super) fn serve(
    server: &mut Server,
    rank: u32,
    question: &Message,
    out: &mut Vec<Output>,
) -> Result<(), String> {
    let mut exchange = Exchange { rank, question, out };
    let need = |key| question.need(key).map_err(|e| e.to_string());
    let thread = || question.get("thrid").map(str::to_owned);
    match question.command.as_str() {
        "fullinit" => return join(server, &mut exchange),
        "finalize" => {
            exchange.answer(&[]);
            server.finalize(rank, exchange.out);
        }
        "abort" => {
            let message = question.get("msg").unwrap_or_default().to_owned();
            exchange.out.push(Output::Abort { rank, code: None, message });
        }
        "gasworks-exit" => {
            let code = question.number("code").map_err(|e| e.to_string())?;
            let code = i32::try_from(code).ok().filter(|code| (1..=255).contains(code));
            let code = code.ok_or("it ends the job with a code that is none")?;
            let told = question.get("told") == Some("1");
            exchange.out.push(Output::Exits { rank, code, told });
        }
        "job-getid" => exchange.answer(&[("jobid", &server.job)]),
        "kvs-put" => {
            let outcome = server.put(rank, need("key")?, need("value")?);
            exchange.settle(outcome);
        }
        "kvs-get" => exchange.found(server.store.get(need("key")?)),
        "kvs-fence" => server.enter_fence(rank, thread(), exchange.out),
        "info-putnodeattr" => {
            let (key, value) = (need("key")?, need("value")?);
            let outcome = server.book(rank, key, value);
            exchange.settle(outcome);
            if outcome.is_ok() {
                put_node(server, key, value, exchange.out);
            }
        }
        "info-getnodeattr" => {
            let key = need("key")?;
            let wait = question.get("wait").is_some_and(|wait| wait.eq_ignore_ascii_case("true"));
            match server.store.node_attribute(key) {
                None if wait => {
                    server.waiting.push(Waiting { rank, key: key.to_owned(), thread: thread() });
                }
                found => exchange.found(found),
            }
        }
        "info-getjobattr" => exchange.found(server.job_attribute(need("key")?).as_deref()),
        "name-publish" => {
            let (name, port) = (need("name")?.to_owned(), need("port")?.to_owned());
            server.ask_for_name(rank, thread(), NameCommand::Publish { name, port }, exchange.out);
        }
        "name-unpublish" => {
            let name = need("name")?.to_owned();
            server.ask_for_name(rank, thread(), NameCommand::Unpublish { name }, exchange.out);
        }
        "name-lookup" => {
            let name = need("name")?.to_owned();
            server.ask_for_name(rank, thread(), NameCommand::Lookup { name }, exchange.out);
        }
        "spawn" | "job-connect" | "job-disconnect" | "ring" => exchange.refuse(refusal::ONE_JOB),
        _ => exchange.refuse(refusal::UNKNOWN),
    }
    Ok(())
}

fn join(server: &mut Server, exchange: &mut Exchange<'_>) -> Result<(), String> {
    let (rank, question) = (exchange.rank, exchange.question);
    let claimed = question.number("pmirank").map_err(|e| e.to_string())?;
    if claimed != i64::from(rank) {
        return Err(format!("it calls itself rank {claimed}"));
    }
    if let Some(job) = question.get("pmijobid").filter(|&job| job != server.job) {
        return Err(format!("it belongs to the job {}, not to {}", quote(job.as_bytes()), server.job));
    }
    let (rank_text, size) = (rank.to_string(), server.size.to_string());
    let (version, subversion) = (("pmi-version", "2"), ("pmi-subversion", "0"));
    let identity = [version, subversion, ("rank", &rank_text), ("size", &size), ("appnum", "0")];
    let quiet = [("debugged", "FALSE"), ("pmiverbose", "FALSE"), ("launcher", "gasrun")];
    exchange.answer(&[identity.as_slice(), &quiet].concat());
    exchange.out.push(Output::Joined { rank });
    if let Some(client) = server.client(rank) {
        client.phase = Phase::Joined;
    }
    Ok(())
}

/// Keeps an attribute of the node, and tells those who wait for it.
fn put_node(server: &mut Server, key: &str, value: &str, out: &mut Vec<Output>) {
    server.waiting.retain(|waiting| {
        if waiting.key != key {
            return true;
        }
        let found = [("found", "TRUE"), ("value", value)];
        let bytes = answer_bytes("info-getnodeattr", waiting.thread.as_deref(), 0, &found);
        out.push(Output::Send { rank: waiting.rank, bytes });
        false
    });
    server.store.put_node_attribute(key, value);
}
