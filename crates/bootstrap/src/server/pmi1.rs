//! PMI-1: a command a line, pairs between blanks; and one command of many lines.
//!
//! Every answer says `rc`, as Slurm's do, for clients look for it in different ones. Words of a message hang together by
//! underscores. A line has at most [`MAX_LINE`] bytes both ways, for clients have buffers of that size; what is
//! announced as the longest value is what still fits a line with the longest key.

use crate::wire::{self, MAX_KEY, MAX_LINE, Message, WireError, quote};

use super::{NameCommand, Output, Refusal, Server, refusal};

/// The longest name of a key-value space, as every server announces it.
const MAX_NAME: usize = 256;
/// The most lines of one command.
const MOST_LINES: usize = 4096;

/// A command to start processes, of which some lines have come. It is refused, but must be heard to its end.
#[derive(Debug, Default)]
pub(super) struct Spawn {
    lines: usize,
    /// How many such commands make one request, and which of them this is.
    total: Option<i64>,
    so_far: Option<i64>,
}

/// The longest value that still fits a line.
fn longest_value(job: &str) -> usize {
    let put = "cmd=put kvsname= key= value=\n".len() + job.len() + MAX_KEY;
    let got = "cmd=get_result rc=0 msg=success value=\n".len();
    MAX_LINE.saturating_sub(put.max(got))
}

/// Takes one command from the front of what has come, if all of it is there.
pub(super) fn take(spawn: &mut Option<Spawn>, inbox: &mut Vec<u8>) -> Result<Option<Message>, WireError> {
    const MANY: &[u8] = b"mcmd=";
    if spawn.is_none() {
        let begun = inbox.len().min(MANY.len());
        if inbox[..begun] != MANY[..begun] {
            return wire::take_line(inbox);
        }
        if inbox.len() < MANY.len() {
            return Ok(None);
        }
        *spawn = Some(Spawn::default());
    }
    let Some(state) = spawn else { return Ok(None) };
    let mut used = 0;
    let ended = loop {
        let rest = &inbox[used..];
        let Some(end) = rest.iter().position(|&b| b == b'\n') else {
            if rest.len() > MAX_LINE {
                let line = quote(rest);
                return Err(WireError(format!("the line {line} does not end within {MAX_LINE} bytes")));
            }
            break false;
        };
        let line = &rest[..end];
        if end > MAX_LINE {
            return Err(WireError(format!("the line {} is longer than {MAX_LINE} bytes", quote(line))));
        }
        state.lines += 1;
        if state.lines > MOST_LINES {
            return Err(WireError(format!("a command has more than {MOST_LINES} lines")));
        }
        used += end + 1;
        if line == b"endcmd" {
            break true;
        }
        if state.lines == 1 && line != b"mcmd=spawn" {
            return Err(WireError(format!("{} is no command that has many lines", quote(line))));
        }
        let number = |key: &str| {
            let value = line.strip_prefix(key.as_bytes())?;
            std::str::from_utf8(value).ok()?.trim().parse::<i64>().ok()
        };
        state.total = number("totspawns=").or(state.total);
        state.so_far = number("spawnssofar=").or(state.so_far);
    };
    inbox.drain(..used);
    if !ended {
        return Ok(None);
    }
    let Spawn { total, so_far, .. } = spawn.take().unwrap_or_default();
    // Of several that make one request the last is answered.
    let last = total.zip(so_far).is_none_or(|(total, so_far)| so_far >= total);
    Ok(Some(Message::new(if last { "spawn" } else { "spawn-part" })))
}

fn line(answer: Message) -> Vec<u8> {
    answer.encode_line()
}

/// What lets a rank go on after a barrier.
pub(super) fn released() -> Vec<u8> {
    line(Message::new("barrier_out").with("rc", 0))
}

fn settled(command: &str, outcome: Result<(), Refusal>) -> Message {
    let answer = Message::new(command);
    match outcome {
        Ok(()) => answer.with("rc", 0).with("msg", "success"),
        Err(Refusal { why, .. }) => {
            answer.with("rc", refusal::FAIL).with("msg", why.replace(", ", "_").replace(' ', "_"))
        }
    }
}

/// The answer to a command about names.
pub(super) fn name_answer(command: &NameCommand, outcome: Result<Option<&str>, Refusal>) -> Vec<u8> {
    let name = match command {
        NameCommand::Publish { .. } => "publish_result",
        NameCommand::Unpublish { .. } => "unpublish_result",
        NameCommand::Lookup { .. } => "lookup_result",
    };
    let answer = settled(name, outcome.map(drop));
    fitting(match outcome {
        Ok(Some(port)) => answer.with("port", port),
        _ => answer,
    })
}

/// The answer as a line; if what is in it cannot stand in a line (a rank that speaks PMI-2 has put it), a refusal.
fn fitting(answer: Message) -> Vec<u8> {
    let torn = answer.pairs.iter().any(|(_, value)| value.contains([' ', '\n', '\r']));
    let command = answer.command.clone();
    let bytes = answer.encode_line();
    if torn || bytes.len() > MAX_LINE {
        return line(
            Message::new(&command).with("rc", refusal::FAIL).with("msg", "the_value_does_not_fit_a_line"),
        );
    }
    bytes
}

/// Carries out a command of a rank that has joined.
pub(super) fn serve(
    server: &mut Server,
    rank: u32,
    question: &Message,
    out: &mut Vec<Output>,
) -> Result<(), String> {
    let need = |key| question.need(key).map_err(|e| e.to_string());
    let own_space = |job: &str| match question.get("kvsname") {
        Some(name) if name == job => Ok(()),
        _ => Err(refusal::OTHER_SPACE),
    };
    let good = |command| Message::new(command).with("rc", 0);
    let bytes = match question.command.as_str() {
        "get_maxes" => {
            let longest = longest_value(&server.job);
            let maxes = good("maxes").with("kvsname_max", MAX_NAME).with("keylen_max", MAX_KEY);
            line(maxes.with("vallen_max", longest))
        }
        "get_appnum" => line(good("appnum").with("appnum", 0)),
        "get_universe_size" => line(good("universe_size").with("size", server.size)),
        "get_my_kvsname" => line(good("my_kvsname").with("kvsname", &server.job)),
        "put" => {
            let (key, value) = (need("key")?, need("value")?);
            let outcome = own_space(&server.job).and_then(|()| server.put(rank, key, value));
            line(settled("put_result", outcome))
        }
        "get" => {
            let key = need("key")?;
            let attribute = server.job_attribute(key);
            match own_space(&server.job).map(|()| attribute.as_deref().or(server.store.get(key))) {
                Ok(Some(value)) => fitting(settled("get_result", Ok(())).with("value", value)),
                Ok(None) => {
                    let absent = Message::new("get_result").with("rc", refusal::FAIL);
                    fitting(absent.with("msg", format!("key_{key}_not_found")).with("value", "unknown"))
                }
                Err(refusal) => line(settled("get_result", Err(refusal))),
            }
        }
        "getbyidx" => {
            let number = question.number("idx").map_err(|e| e.to_string())?;
            let pair = own_space(&server.job)
                .map(|()| usize::try_from(number).ok().and_then(|number| server.store.at(number)));
            match pair {
                Ok(Some((key, value))) => {
                    let answer = good("getbyidx_results").with("nextidx", number.saturating_add(1));
                    fitting(answer.with("key", key).with("val", value))
                }
                Ok(None) => {
                    let none = Message::new("getbyidx_results").with("rc", refusal::FAIL);
                    line(none.with("reason", "no_more_keyvals"))
                }
                Err(refusal) => line(settled("getbyidx_results", Err(refusal))),
            }
        }
        "create_kvs" => line(settled("newkvs", Err(refusal::ONE_JOB))),
        "destroy_kvs" => line(settled("kvs_destroyed", Err(refusal::ONE_JOB))),
        "barrier_in" => {
            server.enter_fence(rank, None, out);
            return Ok(());
        }
        "publish_name" => {
            let (name, port) = (need("service")?.to_owned(), need("port")?.to_owned());
            server.ask_for_name(rank, None, NameCommand::Publish { name, port }, out);
            return Ok(());
        }
        "unpublish_name" => {
            let name = need("service")?.to_owned();
            server.ask_for_name(rank, None, NameCommand::Unpublish { name }, out);
            return Ok(());
        }
        "lookup_name" => {
            let name = need("service")?.to_owned();
            server.ask_for_name(rank, None, NameCommand::Lookup { name }, out);
            return Ok(());
        }
        "spawn-part" => return Ok(()),
        "spawn" => line(settled("spawn_result", Err(refusal::ONE_JOB))),
        "abort" => {
            let code = question.number("exitcode").ok().and_then(|code| i32::try_from(code).ok());
            let message = question.get("message").or(question.get("msg")).unwrap_or_default().to_owned();
            out.push(Output::Abort { rank, code, message });
            return Ok(());
        }
        "finalize" => {
            out.push(Output::Send { rank, bytes: line(good("finalize_ack")) });
            server.finalize(rank, out);
            return Ok(());
        }
        // The protocol has no answer that every client would take for a refusal of what it does not know.
        other => return Err(format!("it sent {}, which PMI-1 does not have", quote(other.as_bytes()))),
    };
    out.push(Output::Send { rank, bytes });
    Ok(())
}
