//! What is checked without running anything: format, lints, documentation, tidiness; and the examples in the documentation.

use crate::rows::Row;
use gasworks_testkit::Cmd;

pub fn rows() -> Vec<Row> {
    let cargo = |name: &str, words: &'static str, flags: &'static str| {
        Row::new(name, move |_, log| {
            log.run_ok(&Cmd::cargo(words).env("RUSTDOCFLAGS", flags).limit(900)).map(drop)
        })
    };
    vec![
        cargo("static/format", "fmt --all -- --check --color never", ""),
        cargo("lint/clippy", "clippy --workspace --all-targets -- -D warnings", ""),
        cargo("lint/documentation", "doc --workspace --no-deps", "-D warnings"),
        cargo("doctest/all", "test --workspace --doc", ""),
    ]
}

/// Those of the documented subset.
pub fn quick() -> Vec<Row> {
    rows().into_iter().filter(|row| ["static/format", "lint/clippy"].contains(&row.name.as_str())).collect()
}

/// A row for each rule that the compiler does not check.
pub fn tidy() -> Vec<Row> {
    let row = |check: &'static crate::tidy::Check| {
        Row::new(format!("tidy/{}", check.name), move |_, log| {
            let found = check.run()?;
            for line in &found {
                log.note(line)?;
            }
            anyhow::ensure!(found.is_empty(), "{} found: {}", found.len(), check.rule);
            Ok(())
        })
    };
    crate::tidy::CHECKS.iter().map(row).collect()
}
