//! Active messages with credit-based flow control.
//!
//! This crate is the waist of the building. Below it stand the ports: a transport of messages ([`Wire`]), a NIC
//! (`gasworks_rdma::Nic`), the table of memory. Above it stand put, get and barriers, and the facade. It holds what
//! every transport would otherwise repeat:
//!
//! - [`message`]: the head of a message, encoded and decoded, nothing else.
//! - [`handlers`]: the handler table: fixed and "don't care" indices, and its fingerprint.
//! - [`engine`]: sending, credits, dispatch, replies, polling and waiting.
//! - [`ops`]: what is done when operations on the NIC complete.
//! - [`flow`]: the settings of flow control and of waiting.
//! - [`hsl`]: locks that a handler may take too.
//! - [`team`]: ordered views of the ranks; [`view`]: what calls on them are made with.
//! - [`wire`]: the port; [`sleep`]: how a rank sleeps on its transports; [`observe`]: what goes through it, counted and recorded.
//!
//! While a handler runs, its thread dispatches nothing else, and its reply uses room that was reserved together with
//! the request. So a payload is handled in place and then freed, and the stack stays bounded.
#![deny(missing_docs)]

pub mod engine;
mod error;
pub mod flow;
pub mod handlers;
pub mod hsl;
pub mod message;
pub mod observe;
#[allow(unsafe_code)]
pub mod ops;
#[allow(unsafe_code)]
mod router;
pub mod sleep;
pub mod team;
pub mod view;
pub mod wire;

pub use engine::Peek;
pub use engine::{
    Ask, Commit, Domains, Engine, Incoming, Machine, Outgoing, Parts, Prepared, PreparedReply, Received,
    Token, Transfer, Turned, counts_of, message_in_hand,
};
pub use error::Error;
pub use flow::{Flow, Patience, WaitMode};
pub use gasworks_rdma::Engine as Rdma;
pub use gasworks_rdma::completion::{Categories, OpId};
pub use gasworks_shmem::barrier::Name;
pub use gasworks_shmem::board::{self, Board};
pub use gasworks_sock::sleeper::{Policy, Sleeper};
pub use handlers::{Also, Entry, Handlers, Signature};
pub use hsl::HandlerLock;
pub use message::Category;
pub use sleep::WaitSet;
pub use team::{Members, TeamError};
pub use view::{RemoteAddr, TeamRows, View};
pub use wire::{
    Arrived, Attributes, Bell, Class, Limits, Reservation, SharedBarrier, SharedTeam, TeamBarriers, Wait,
    Wire, WireError, WordOp, WordReduction,
};

use gasworks_sync::{Mode, Par, ParSync, Seq};
use std::sync::Arc;

/// The number of a process in a job.
pub type Rank = u32;

/// A handler of the library's own.
pub type Handle<M> = for<'a> fn(&Incoming<'a, M>) -> Result<(), Box<Error>>;

/// A thread mode, with what it makes of the ports: in [`Par`] everything is shared between threads, in [`ParSync`] it may
/// change threads.
pub trait CoreMode: Mode + Sized {
    /// A transport.
    type Wire: Wire<Self> + ?Sized;
    /// A network interface.
    type Nic: gasworks_rdma::Nic + ?Sized;
    /// A barrier in shared memory.
    type Barrier: SharedBarrier + ?Sized;
    /// What a handler table holds.
    type Function: for<'a> Fn(&Incoming<'a, Self>) -> Result<(), Box<Error>> + ?Sized;
    /// What an operation keeps alive until it completes.
    type Keep: ?Sized;
    /// What a handler-safe lock is made of: none in `Seq`.
    type HandlerLock<T>: gasworks_sync::Lock<T>;
    /// What holds an engine, which only `Par` shares between threads.
    type Shared<T>: std::ops::Deref<Target = T>;
    /// Puts a value where it can be shared.
    fn share<T>(value: T) -> Self::Shared<T>;
    /// Boxes a function for a handler table.
    fn box_function(function: Handle<Self>) -> Box<Self::Function>;
    /// Boxes a network interface.
    fn box_nic<N: gasworks_rdma::Nic + Send + Sync + 'static>(nic: N) -> Box<Self::Nic>;
    /// Boxes something to be kept.
    fn keep<T: std::any::Any + Send + Sync>(value: T) -> Box<Self::Keep>;
    /// Takes it out again, if it is a `T`.
    fn unkeep<T: std::any::Any + Send + Sync>(kept: Box<Self::Keep>) -> Option<T>;
}

macro_rules! core_mode {
    ($mode:ident, $shared:ident, $lock:ident, ($($auto:ident)*), ($($function:ident)*)) => {
        impl CoreMode for $mode {
            type Wire = dyn Wire<$mode> $(+ $auto)*;
            type Nic = dyn gasworks_rdma::Nic $(+ $auto)*;
            type Barrier = dyn SharedBarrier $(+ $auto)*;
            type Function = dyn for<'a> Fn(&Incoming<'a, $mode>) -> Result<(), Box<Error>> $(+ $function)*;
            type Keep = dyn std::any::Any $(+ $auto)*;
            type HandlerLock<T> = <$lock as Mode>::Lock<T>;
            type Shared<T> = $shared<T>;
            fn box_function(function: Handle<Self>) -> Box<Self::Function> {
                Box::new(function)
            }
            fn box_nic<N: gasworks_rdma::Nic + Send + Sync + 'static>(nic: N) -> Box<Self::Nic> {
                Box::new(nic)
            }
            fn keep<T: std::any::Any + Send + Sync>(value: T) -> Box<Self::Keep> {
                Box::new(value)
            }
            fn unkeep<T: std::any::Any + Send + Sync>(kept: Box<Self::Keep>) -> Option<T> {
                kept.downcast().ok().map(|boxed| *boxed)
            }
            fn share<T>(value: T) -> Self::Shared<T> {
                $shared::new(value)
            }
        }
    };
}

core_mode!(Seq, Box, Seq, (), ());
// A table is shared with whoever registers more, perhaps on another thread.
core_mode!(ParSync, Box, Par, (Send), (Send Sync));
core_mode!(Par, Arc, Par, (Send Sync), (Send Sync));
