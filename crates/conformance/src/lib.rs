//! The conformance suite of Gasworks' transports, and the programs that tests of whole jobs start.
//!
//! - [`simnet`]: a network in one process, its ranks threads and its decisions from a seed, behind the ports of the
//!   real ones.
//! - [`conformance`]: one suite of cases for every transport; the program `gasworks-conformance` runs it.
//! - [`ends`]: every way in which a job can end; the program `gasworks-ends` is a rank of such a job.
//! - [`whereabouts`]: a rank that any launcher can start; the program `gasworks-whereabouts` is one.
#![deny(missing_docs)]

pub mod conformance;
pub mod ends;
pub mod simnet;
pub mod whereabouts;
