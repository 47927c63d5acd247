//! A segment is never a slice.
use gasworks::{Agent, Error, Seq};

fn slice<'a>(agent: &'a Agent<'_, Seq>) -> Result<&'a [u8], Error> {
    Ok(agent.segment(0)?.as_slice())
}

fn main() {}
