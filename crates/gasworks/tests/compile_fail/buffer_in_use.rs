//! A buffer that a scope's get is filling is not read before the scope ends.
use gasworks::{Agent, Error, GlobalPtr, Seq};

fn peek(agent: &Agent<'_, Seq>, place: GlobalPtr<u64>) -> Result<u64, Error> {
    let mut buffer = [0u64; 8];
    agent.scope(|scope| {
        scope.get(place, &mut buffer)?;
        Ok(buffer[0])
    })
}

fn main() {}
