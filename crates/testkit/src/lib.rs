//! What the tests of Gasworks stand on.
//!
//! - [`simnet`]: a network in one process, its ranks threads and its decisions from a seed, behind the ports of the
//!   real ones.
//! - [`conformance`]: one suite of cases for every transport; the program `gasworks-conformance` runs it.
//! - [`ends`]: every way in which a job can end; the program `gasworks-ends` runs them.
//! - [`whereabouts`]: a rank that any launcher can start; the program `gasworks-whereabouts` is one.
//! - [`processes`]: running jobs of real processes under a watchdog and looking for what they leave.
#![deny(missing_docs)]

pub mod conformance;
pub mod ends;
pub mod processes;
pub mod simnet;
pub mod whereabouts;
