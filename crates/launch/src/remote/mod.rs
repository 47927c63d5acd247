//! Jobs over several hosts: `gasrun` starts an agent on each host, which is this program too, through a remote command;
//! agents start further agents, in a tree. Each agent starts the ranks of its host and stays with them.
//!
//! - `plan`: what an agent is told; `gate`: how it shows that it belongs; `link`: the connection; `message`: what is said
//!   over it; `rsh`: the remote command; `agent`: how an agent begins; [`heard`]: what comes, for the fuzzer.
//!
//! What is done with what is said is in the job's own loop: an agent runs the same one as `gasrun` itself.

pub(crate) mod agent;
mod codec;
pub(crate) mod gate;
pub mod heard;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod plan;
pub(crate) mod rsh;
