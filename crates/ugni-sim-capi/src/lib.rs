//! The libraries that software for Cray's Gemini and Aries networks is linked with, played by a software NIC: `libugni`,
//! `libudreg`, `libpmi`, `libpmi2`, and what such software asks of ALPS. `include` has their headers.
//!
//! A panic inside a call ends the process: it cannot leave an `extern "C"` function.
//!
//! - `host`: which NIC address this host has.
//! - `ugni`: the NIC.
//! - `udreg`: the cache of registrations.
//! - `pmi`: the job: both versions of PMI, and Cray's extensions.
//! - `call`: in which call a thread is, for those who watch.
//! - `witness`: what a process has asked of its NIC, and what came of it.
//! - `strict`: ends the job where a client breaks a rule.
//! - `trace`: what the clock needs of a run.
//! - `leave`: the end of a process, however it ends.
//! - `alps`: what programs ask of the launcher of Cray's machines.
#![deny(missing_docs)]
#![allow(non_snake_case)] // the names are the libraries'

#[allow(unsafe_code)]
mod alps;
mod call;
mod host;
#[allow(unsafe_code)]
mod leave;
mod pmi;
#[allow(unsafe_code)]
mod strict;
#[allow(unsafe_code)]
mod trace;
mod udreg;
mod ugni;
#[allow(unsafe_code)]
mod witness;
