//! A Medium's handler is not called by a Short.
use gasworks::{Agent, Error, MediumRequest, Seq};

fn call(agent: &Agent<'_, Seq>, handler: MediumRequest<u32>) -> Result<(), Error> {
    agent.request_short(0, handler, 7u32)
}

fn main() {}
