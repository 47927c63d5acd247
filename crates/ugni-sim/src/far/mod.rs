//! The NICs of other hosts: what is posted to them goes over a connection to the process whose they are, which carries it out.
//!
//! # Protocol
//! - far.1: each process has a gate: one port, and a thread that serves all its connections. Ranks tell each other where their gates are
//!   when they meet, and a secret of the job.
//! - far.2: a NIC that looks for another of an address asks the gates of that address, one after the other. A connection belongs to
//!   one NIC that asks and one that is asked; its end says that the other is gone.
//! - far.3: the first frame shows the secret and names the NIC that is wanted. Each later one asks for something, and is answered
//!   under its own number. Who asks waits; who answers waits for nobody, so nobody waits in a circle.
//! - far.4: of a large transfer each frame has a piece. What the whole names is checked with each.
//! - far.5: a number that says what cannot be, a frame that is too long, or an answer that nobody waits for ends the connection.

mod frame;
mod gate;
mod line;
mod peer;

pub use frame::{Ask, MOST_FRAME, PIECE};
pub use gate::Gate;

use std::sync::Arc;

/// Makes a NIC's engine look what has come, or who has gone.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;
