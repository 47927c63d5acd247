//! What is checked without running anything: format, lints, documentation, tidiness.

use crate::exec::Cmd;
use crate::rows::Row;

pub fn rows() -> Vec<Row> {
    let cargo = |name: &str, words: &'static str| {
        Row::new(name, move |_, log| log.run_ok(&Cmd::cargo(words).limit(900)).map(drop))
    };
    vec![
        cargo("static/format", "fmt --all -- --check --color never"),
        cargo("lint/clippy", "clippy --workspace --all-targets -- -D warnings"),
        Row::new("lint/documentation", |_, log| {
            let doc = Cmd::cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").limit(900);
            log.run_ok(&doc).map(drop)
        }),
    ]
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
