//! The transport over uGNI on the software NIC, with both chips: the conformance suite, faults, bad input, and what the NIC
//! counted. All ranks talk over the NIC unless a case says otherwise.
//!
//! Daily runs take pairwise covering sets of combinations, or each value once; nightly runs take all combinations
//! (`gasworks_testkit::cases::is_nightly`).

mod bad_input;
mod counts;
mod domains;
mod effects;
mod engines;
mod faults;
mod hosts;
mod job;
mod limits;
mod suite;
mod udreg;

use gasworks_testkit::cases;
use std::process::ExitCode;

fn main() -> ExitCode {
    let tables = [
        suite::cases(),
        hosts::cases(),
        domains::cases(),
        effects::cases(),
        engines::cases(),
        faults::cases(),
        counts::cases(),
        udreg::cases(),
        bad_input::cases(),
        limits::cases(),
        job::judges(),
    ];
    cases::main("gni/nic", tables.into_iter().flatten().collect())
}
