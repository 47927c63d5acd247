//! Only types without padding, valid for any bit pattern, travel.
use gasworks::{Agent, Error, GlobalPtr, Seq};

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u64,
}

fn put(agent: &Agent<'_, Seq>, place: GlobalPtr<Padded>) -> Result<(), Error> {
    agent.put(place, &[Padded { small: 1, large: 2 }])
}

fn main() {}
