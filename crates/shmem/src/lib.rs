//! Structures that live in shared memory.
//!
//! Nothing here calls the operating system or knows of processes: a structure is a few atomics with constructors
//! whose result equals zeroed memory, and a view borrows them. So a fresh mapping is ready for use, and loom, Miri
//! and the thread sanitizer run the same code on the heap.
//!
//! - [`credit`]: how many messages may be on their way.
//! - [`inbox`]: the queue of active messages: many senders, one receiver.
//! - [`queues`]: those of all ranks, as one of them sees them.
//! - [`ranks`]: which ranks of a job these are.
//! - [`blocks`]: payloads that do not fit into a slot.
//! - [`eventcount`]: counting events so that whoever sleeps until the next is woken.
//! - [`doorbell`]: waking a rank that sleeps.
//! - [`ready`]: which of many queues may have something.
//! - [`flag`]: a flag that one process sets once.
//! - [`entry`]: an entry of a table that others only read.
//! - [`barrier`]: the barrier of the ranks that share memory.
//! - [`board`]: what members of a team post for each other in short collectives.
//! - [`view`]: typed views of a mapping: the one place with unsafe code.
#![deny(missing_docs)]

pub mod barrier;
pub mod blocks;
pub mod board;
pub mod credit;
pub mod doorbell;
pub mod entry;
pub mod eventcount;
pub mod flag;
#[allow(unsafe_code)]
pub mod inbox;
#[allow(unsafe_code)]
pub mod queues;
pub mod ranks;
pub mod ready;
#[allow(unsafe_code)]
pub mod view;
