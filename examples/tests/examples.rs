//! Every example, on various numbers of ranks. Each verifies its own result.

mod common;
#[path = "common/verified.rs"]
mod verified;

use common::{alone, gasrun};
use verified::verified;

fn on_some_ranks(program: &str, args: &[&str], words: &str) {
    verified(&alone(program, args), words, 1);
    for ranks in [1, 2, 4, 7] {
        verified(&gasrun(ranks, program, args), words, ranks);
    }
}

#[test]
fn hello() {
    on_some_ranks("hello", &[], "ranks were heard");
    let ended = gasrun(64, "hello", &[]);
    verified(&ended, "all 64 ranks were heard", 64);
    assert!((0..64).all(|rank| ended.output.contains(&format!("hello from rank {rank} of 64"))));
}

#[test]
fn ring() {
    on_some_ranks("ring", &["--laps", "200"], "the token is right");
}

#[test]
fn dht() {
    on_some_ranks("dht", &["--size", "1000"], "every value was right");
}

#[test]
fn grid() {
    on_some_ranks("grid", &[], "all sums are right");
    on_some_ranks("grid", &["--width", "3"], "all sums are right");
}

#[test]
fn gups() {
    on_some_ranks("gups", &["--size", "12"], "the table is right");
}

#[test]
fn heat_with_its_picture() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("heat.png");
    let args = ["--size", "70", "--steps", "60", "--out", picture.to_str().unwrap()];
    on_some_ranks("heat", &args, "equal to one rank's");
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn sample_sort() {
    on_some_ranks("sample-sort", &["--size", "3000"], "; sorted");
    verified(&gasrun(2, "sample-sort", &["--size", "1"]), "; sorted", 2);
}

#[test]
fn what_cannot_work_fails_with_a_reason() {
    let heat = "heat";
    let ended = gasrun(2, heat, &["--size", "64", "--out", "/nonexistent/heat.png"]);
    assert!(!ended.ok());
    assert!(ended.output.contains("cannot write /nonexistent/heat.png"), "{}", ended.output);
    let ended = gasrun(2, heat, &["--size", "3"]);
    assert!(!ended.ok());
    assert!(ended.output.contains("invalid value '3'"), "{}", ended.output);
}
