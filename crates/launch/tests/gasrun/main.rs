//! `gasrun` as its users meet it: jobs that end well, and jobs in which something goes wrong.
//!
//! The same program is the table of tests and, when started as `gasrun ... THIS rank ACTION` or `... THIS program ACTION`,
//! a rank.
#![allow(clippy::disallowed_methods)] // a hostile rank does not go through the table of settings

mod cases;
mod endpoints;
mod foreign;
mod harness;
mod hosts;
mod inspect;
mod observe;
mod program;
mod rank;

use harness::{entries, entries_with_needs};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", action] => rank::act(action),
        ["program", action] => program::act(action),
        _ => gasworks_testkit::cases::main("launch/gasrun", table()),
    }
}

fn table() -> Vec<gasworks_testkit::Case> {
    let plain = [
        cases::CASES,
        endpoints::CASES,
        foreign::CASES,
        hosts::CASES,
        observe::CASES,
        inspect::CASES,
        harness::CASES,
    ];
    let needy = [cases::WITH_NEEDS, foreign::WITH_NEEDS, hosts::WITH_NEEDS, observe::WITH_NEEDS];
    let needy = needy.into_iter().flat_map(entries_with_needs);
    plain.into_iter().flat_map(entries).chain(needy).collect()
}
