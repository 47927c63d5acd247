//! Harness for many processes, faults, and SimNet.
#![deny(missing_docs)]

pub mod simnet;
