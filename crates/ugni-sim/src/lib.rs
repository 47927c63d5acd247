//! A software NIC with the interface of uGNI: what software for Cray's Gemini and Aries networks is tried on where there is
//! none of these machines.
//!
//! - [`chip`]: the two chips: their rules, their limits.
//! - [`entry`]: the words of which completion queues consist.
//! - [`alone`]: a lock that outlives whoever holds it.
//! - [`queue`]: a completion queue, in memory that processes share.
//! - [`table`]: the registrations of a NIC, in memory that processes share.
//! - [`faults`]: faults that are to happen.
//! - [`handle`]: memory handles: what they say, and how one tells that they were not tampered with.
//! - [`mailbox`]: the mailboxes of short messages.
//! - [`msgq`]: shared message queues: what their memory holds.
//! - [`atomics`]: what the atomic units compute.
//! - [`reduction`]: what the collective engine computes.
//! - [`post`]: what a post asks for, and the rules that it is held to.
//! - [`memory`]: memory as a NIC reaches it.
//! - [`process`]: that of a process.
//! - [`writes`]: which bytes other NICs have written, for one that wants to know.
//! - [`window`]: what a NIC shows the others, in memory that they map.
//! - [`letter`]: what NICs send each other besides: datagrams, and the shares of reductions.
//! - [`fma`]: the FMA descriptors of a host.
//! - [`station`]: what the other NICs see of one.
//! - [`nic`]: a NIC, as its client sees it.
//! - [`near`]: the NICs of a host.
//! - [`neighbours`]: which there are.
//! - [`far`]: those of other hosts.
//! - [`clock`]: what a run would have taken on the machine.
#![deny(missing_docs)]

// The checker models what processes share alone: the floors below cannot be built for it.
pub mod alone;
pub mod clock;
pub mod queue;
pub mod table;
pub mod writes;

#[cfg(not(gasworks_loom))]
pub mod atomics;
#[cfg(not(gasworks_loom))]
pub mod chip;
#[cfg(not(gasworks_loom))]
pub mod entry;
#[cfg(not(gasworks_loom))]
pub mod far;
#[cfg(not(gasworks_loom))]
pub mod faults;
#[cfg(not(gasworks_loom))]
pub mod fma;
#[cfg(not(gasworks_loom))]
pub mod handle;
#[cfg(not(gasworks_loom))]
pub mod letter;
#[cfg(not(gasworks_loom))]
pub mod mailbox;
#[cfg(not(gasworks_loom))]
pub mod memory;
#[cfg(not(gasworks_loom))]
pub mod msgq;
#[cfg(not(gasworks_loom))]
pub mod near;
#[cfg(not(gasworks_loom))]
pub mod neighbours;
#[cfg(not(gasworks_loom))]
pub mod nic;
#[cfg(not(gasworks_loom))]
pub mod post;
#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
pub mod process;
#[cfg(not(gasworks_loom))]
pub mod reduction;
#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
pub mod shares;
#[cfg(not(gasworks_loom))]
pub mod station;
#[cfg(not(gasworks_loom))]
#[allow(unsafe_code)]
pub mod window;

/// How many cases a property is tried with: few where each takes a second.
#[cfg(all(test, not(gasworks_loom)))]
fn trials() -> proptest::prelude::ProptestConfig {
    let cases = if cfg!(miri) { 2 } else { 256 };
    proptest::prelude::ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}
