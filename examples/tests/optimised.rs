//! Every example from the optimised build, with the sizes that it has by itself. Each verifies its own result.

#[path = "common/run.rs"]
mod run;
#[path = "common/verified.rs"]
mod verified;

use gasworks_testkit::Cmd;
use gasworks_testkit::programs::{self, Programs};
use run::run;
use verified::verified;

/// The examples, and the words with which each reports its check.
const EXAMPLES: [(&str, &str); 7] = [
    ("dht", "every value was right"),
    ("grid", "all sums are right"),
    ("gups", "the table is right"),
    ("heat", "equal to one rank's"),
    ("hello", "all 4 ranks were heard"),
    ("ring", "the token is right"),
    ("sample-sort", "; sorted"),
];

/// Programs in the folder of the examples that count k-mers: the tests of `kmers.rs` run them.
const KMERS: [&str; 3] = ["draw-reads", "kmer-count", "kmer-serial"];

/// Builds them, with all packages, so that dependencies have the features that they have in every other build.
const BUILD: &str = "build --release --workspace --exclude xtask --bins";

#[test]
fn each_is_right_on_four_ranks() {
    Cmd::cargo(BUILD).limit(900).read().unwrap();
    for (program, words) in EXAMPLES {
        let job = programs::release().and_then(|programs| programs.gasrun(4, program));
        verified(&run(job, &[]), words, 4);
    }
}

#[test]
fn no_program_is_without_a_test() {
    let mut known: Vec<_> = EXAMPLES.iter().map(|(name, _)| *name).chain(KMERS).collect();
    known.sort_unstable();
    assert_eq!(Programs::sources("examples/src/bin").unwrap(), known);
}
