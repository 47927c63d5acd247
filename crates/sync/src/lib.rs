//! The only place in Gasworks that names atomics, fences, `UnsafeCell` and spin hints.
//!
//! Everything that shares memory between threads or processes is written against this crate, so that the very
//! same code runs natively, under loom (`--cfg gasworks_loom`), under Miri and under the thread sanitizer
//! (`--cfg gasworks_tsan`).
//!
//! - [`atomic`], [`cell`], [`fence`], [`spin`]: the primitives, switched to loom's where it checks.
//! - [`racy`]: copies to and from memory that a peer may be writing; [`room`]: memory of the library's own for a payload.
//! - [`hint`]: hints to the processor; [`doubling`]: a growing array whose elements never move.
//! - [`mode`]: the thread mode as a type (`Seq`, `ParSync`, `Par`), and the locks each one pays for; [`latch`]: one that
//!   nobody waits for; [`spinlock`]: one whose waiters spin.
//! - [`ord!`]: orderings by name, which a checker build can relax one at a time to prove that the checks would notice.
//! - [`kill_point!`]: the places at which a test kills the process.
//! - [`tally`]: counters of copies and locks in a build with debug assertions.
#![deny(missing_docs)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // this crate is what the rule points to

pub mod atomic;
pub mod cell;
pub mod doubling;
#[allow(unsafe_code)]
pub mod fault;
#[allow(unsafe_code)]
pub mod hint;
#[allow(unsafe_code)]
pub mod latch;
pub mod mode;
pub mod mutation;
#[allow(unsafe_code)]
pub mod racy;
#[allow(unsafe_code)]
pub mod room;
pub mod spinlock;
pub mod tally;

pub use atomic::{fence, spin};
pub use hint::prefetch_for_write;
pub use latch::Latch;
pub use mode::{Lock, Mode, Par, ParSync, Seq};
pub use racy::{RawSlice, VolatileSlice};
pub use room::Room;
pub use spinlock::SpinLock;
