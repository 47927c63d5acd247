//! `gasrun` as its users meet it: jobs that end well, and jobs in which something goes wrong.
//!
//! The same program is the test (`cargo test`), and, when started as `gasrun ... THIS rank ACTION`, a rank.
//! A case that needs rights of its own is not among those of `cargo test`; `-- --only NAME` runs it, and then it passes
//! or fails.
#![allow(clippy::disallowed_methods)] // a hostile rank does not go through the table of settings

mod cases;
mod foreign;
mod harness;
mod hosts;
mod inspect;
mod observe;
mod program;
mod rank;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", action] => rank::act(action),
        ["program", action] => program::act(action),
        _ => harness::run(
            &[cases::CASES, foreign::CASES, hosts::CASES, observe::CASES, inspect::CASES].concat(),
            cases::ON_REQUEST,
            &words,
        ),
    }
}
