//! The two dialects of PMI on a wire: PMI-1, whose messages are lines, and PMI-2, whose messages announce their length.
//! They differ in their words; what is said with them is the same, and is in [`client`](crate::client).

use crate::BootstrapError;
use crate::wire::{self, Message, WireError, quote};

/// The language of a conversation after its opening line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PMI-1.
    Pmi1,
    /// PMI-2.
    Pmi2,
}

/// What a rank asks of its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// The first question after the opening line: PMI-2 says who the ranks are, PMI-1 what its limits are.
    Introduce,
    /// What the job is called.
    Name,
    Put,
    Fence,
    Get,
    Finalize,
}

impl Dialect {
    /// The version in the opening line: its number, and the one after the dot.
    pub(crate) fn version(self) -> (i64, i64) {
        match self {
            Dialect::Pmi1 => (1, 1),
            Dialect::Pmi2 => (2, 0),
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Dialect::Pmi1 => Dialect::Pmi2,
            Dialect::Pmi2 => Dialect::Pmi1,
        }
    }

    /// A question without its pairs.
    pub(crate) fn question(self, verb: Verb) -> Message {
        Message::new(self.words(verb).0)
    }

    /// The names of a question and of its answer.
    pub(crate) fn words(self, verb: Verb) -> (&'static str, &'static str) {
        match (self, verb) {
            (Dialect::Pmi1, Verb::Introduce) => ("get_maxes", "maxes"),
            (Dialect::Pmi1, Verb::Name) => ("get_my_kvsname", "my_kvsname"),
            (Dialect::Pmi1, Verb::Put) => ("put", "put_result"),
            (Dialect::Pmi1, Verb::Fence) => ("barrier_in", "barrier_out"),
            (Dialect::Pmi1, Verb::Get) => ("get", "get_result"),
            (Dialect::Pmi1, Verb::Finalize) => ("finalize", "finalize_ack"),
            (Dialect::Pmi2, Verb::Introduce) => ("fullinit", "fullinit-response"),
            (Dialect::Pmi2, Verb::Name) => ("job-getid", "job-getid-response"),
            (Dialect::Pmi2, Verb::Put) => ("kvs-put", "kvs-put-response"),
            (Dialect::Pmi2, Verb::Fence) => ("kvs-fence", "kvs-fence-response"),
            (Dialect::Pmi2, Verb::Get) => ("kvs-get", "kvs-get-response"),
            (Dialect::Pmi2, Verb::Finalize) => ("finalize", "finalize-response"),
        }
    }

    /// The key of the job's name.
    pub(crate) fn job_key(self) -> &'static str {
        match self {
            Dialect::Pmi1 => "kvsname",
            Dialect::Pmi2 => "jobid",
        }
    }

    /// The bytes of a message.
    pub(crate) fn encode(self, message: &Message) -> Result<Vec<u8>, WireError> {
        match self {
            Dialect::Pmi1 => Ok(message.encode_line()),
            Dialect::Pmi2 => message.encode(),
        }
    }

    /// Takes one message from the front of what has come, if all of it is there.
    pub(crate) fn take(self, inbox: &mut Vec<u8>) -> Result<Option<Message>, WireError> {
        match self {
            Dialect::Pmi1 => wire::take_line(inbox),
            Dialect::Pmi2 => wire::take_message(inbox),
        }
    }

    /// The order to end the job. PMI-1 gives the code, PMI-2 the reason.
    pub(crate) fn abort(self, code: i32, message: &str) -> Message {
        match self {
            Dialect::Pmi1 => Message::new("abort").with("exitcode", code),
            Dialect::Pmi2 => Message::new("abort").with("isworld", "TRUE").with("msg", message),
        }
    }

    /// Checks that an answer belongs to its question and reports success.
    pub(crate) fn check(
        self,
        during: &'static str,
        verb: Verb,
        question: &Message,
        answer: Message,
    ) -> Result<Message, BootstrapError> {
        if answer.command != self.words(verb).1 {
            let what = format!(
                "{} came where the answer to {} belongs",
                quote(answer.command.as_bytes()),
                question.command
            );
            return Err(BootstrapError::protocol(during, what));
        }
        let rc = match (self, answer.get("rc")) {
            // Some servers of PMI-1 say it only where something can go wrong.
            (Dialect::Pmi1, None) => 0,
            _ => answer.number("rc").map_err(|e| BootstrapError::protocol(during, e))?,
        };
        if rc == 0 {
            return Ok(answer);
        }
        let why = answer.get(match self {
            Dialect::Pmi1 => "msg",
            Dialect::Pmi2 => "errmsg",
        });
        let why = why.map_or_else(String::new, |why| format!(": {}", quote(why.as_bytes())));
        let on = question.get("key").map_or_else(String::new, |key| format!(" of the key {key}"));
        Err(BootstrapError::protocol(
            during,
            format!("the launcher refuses the {}{on}, rc={rc}{why}", question.command),
        ))
    }
}
