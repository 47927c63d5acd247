//! Communication for PGAS programs: active messages, one-sided put and get, atomic operations, over shared memory between the ranks of
//! a host.
//!
//! A program is started as several *ranks*. Each owns a *segment* of memory that all others read and write by
//! [`Agent::get`] and [`Agent::put`], and each has a table of *handlers* that the others call by active messages.
//!
//! ```
//! use gasworks::{Config, Job, Request, Seq, Table};
//! use std::{cell::Cell, rc::Rc};
//!
//! # fn main() -> Result<(), gasworks::Error> {
//! let answer = Rc::new(Cell::new(0));
//! let mut table = Table::<Seq>::new();
//! let pong = table.short_reply("pong", { let answer = answer.clone(); move |_, x: u64| answer.set(x) })?;
//! let ping = table.short_request("ping", move |request: Request<'_, Seq>, x: u64| request.reply_short(pong, x + 1))?;
//!
//! let job = Job::open(Config::from_env()?, table)?;
//! let agent = job.agent()?;
//! agent.request_short((agent.rank() + 1) % agent.ranks(), ping, 41)?;
//! agent.wait_until(|| answer.get() == 42)?;
//! job.close()
//! # }
//! ```
//!
//! Values of a program's own travel if they are plain data, whose every byte may be anything:
//!
//! ```
//! use gasworks::{Pod, Zeroable, bytemuck};
//!
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[bytemuck(crate = "gasworks::bytemuck")]
//! #[repr(C)]
//! struct Particle {
//!     place: [f64; 3],
//!     charge: f64,
//! }
//! # let bytes: &[u8] = bytemuck::bytes_of(&Particle { place: [0.0; 3], charge: 1.0 });
//! # assert_eq!(bytes.len(), 32);
//! ```
//!
//! Run alone, such a program is a job of one rank; `gasrun -n 4 ./program` makes it a job of four.
#![deny(missing_docs)]

mod agent;
#[allow(unsafe_code)]
mod atomic;
#[allow(unsafe_code)]
mod begun;
mod collective;
mod config;
mod error;
mod event;
mod exit;
mod handler;
#[allow(unsafe_code)]
mod implicit;
mod index;
#[allow(unsafe_code)]
pub mod inspect;
#[allow(unsafe_code)]
mod job;
mod mode;
mod network;
mod observe;
#[allow(unsafe_code)]
mod part;
mod places;
mod pointer;
mod progress;
mod region;
#[allow(unsafe_code)]
mod scattered;
#[allow(unsafe_code)]
mod scope;
mod segment;
pub mod settings;
mod table;
mod team;
mod transport;

pub use agent::{Agent, Phase, PreparedLong, PreparedMedium};
pub use atomic::{Atomic, AtomicOp, Atomics};
pub use bytemuck::{self, Pod, Zeroable};
pub use config::{Config, HugePages};
pub use error::Error;
pub use event::Event;
pub use exit::exit;
pub use gasworks_core::{Categories, Category, HandlerLock, Name, Rank, Token, WaitMode};
pub use gasworks_extended::atomic::{By, Favor};
pub use gasworks_extended::rma::Local as LocalCompletion;
pub use gasworks_memory::atomic::Ops as AtomicOps;
pub use gasworks_memory::{RegionHandle, RegionId, Rights};
pub use gasworks_sync::{Par, ParSync, Seq};
pub use handler::{Landed, Outcome, Payload, Reply, Request, Room};
pub use implicit::Implicit;
pub use index::{Args, LongReply, LongRequest, MediumReply, MediumRequest, ShortReply, ShortRequest};
pub use job::Job;
pub use mode::ThreadMode;
pub use network::{Network, Networks};
pub use part::Part;
pub use places::Places;
pub use pointer::GlobalPtr;
pub use progress::ProgressThread;
pub use region::Region;
pub use scattered::{Strided, Vector};
pub use scope::Scope;
pub use segment::{Local, Segment};
pub use table::{Handler, Table};
pub use team::Team;
pub use transport::Transport;
