//! An agent stays on its thread, in either thread mode.
use gasworks::{Agent, Par};

fn hand_over(agent: Agent<'_, Par>) {
    std::thread::scope(|scope| {
        scope.spawn(move || agent.rank());
    });
}

fn main() {}
