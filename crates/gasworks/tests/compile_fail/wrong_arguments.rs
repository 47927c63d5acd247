//! A handler is called with the arguments it takes.
use gasworks::{Agent, Error, Seq, ShortRequest};

fn call(agent: &Agent<'_, Seq>, handler: ShortRequest<u64>) -> Result<(), Error> {
    agent.request_short(0, handler, 7u32)
}

fn main() {}
