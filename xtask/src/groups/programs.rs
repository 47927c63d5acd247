//! The examples, the demo, and the commands of the documentation.

use super::Extent;
use crate::exec::{Cmd, Log};
use crate::needs::Need;
use crate::rows::Row;
use crate::scan::Tree;
use crate::tidy::{By, documented_commands};
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};

/// The examples, on how many ranks and with which arguments. Each checks its own result.
const EXAMPLES: &[(&str, usize, &str)] = &[
    ("hello", 4, ""),
    ("ring", 4, ""),
    ("dht", 4, ""),
    ("gups", 4, ""),
    ("heat", 4, "--out heat.png"),
    ("sample-sort", 4, ""),
];

/// Programs in the folder of the examples that belong to the demo, whose rows run them.
const OF_THE_DEMO: &[&str] = &["draw-reads", "kmer-serial", "kmer-count"];

pub fn rows(extent: Extent) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(name, ranks, args) in EXAMPLES {
        rows.push(Row::new(format!("examples/{name}"), move |world, log| {
            let dir = world.scratch(&format!("examples/{name}"))?;
            let cmd = world.built(Build::Release)?.gasrun(ranks, name)?.words(args);
            log.run_ok(&cmd.dir(dir)).map(drop)
        }));
    }
    rows.push(Row::new("examples/all-have-rows", |world, _| {
        let built = world.built(Build::Release)?;
        let known = |name: &str| EXAMPLES.iter().any(|e| e.0 == name) || OF_THE_DEMO.contains(&name);
        let strangers: Vec<_> = built.examples.iter().filter(|name| !known(name)).collect();
        ensure!(strangers.is_empty(), "no row in xtask/src/groups/programs.rs runs {strangers:?}");
        Ok(())
    }));
    let demo = |name: &str, words: &'static str| {
        let scratch = name.to_owned();
        Row::new(name, move |world, log| {
            let out = world.scratch(&scratch)?;
            log.run_ok(&Cmd::cargo("xtask demo").words(words).arg("--out-dir").arg(out)).map(drop)
        })
    };
    rows.push(demo("demo/generated", "--genome-size 1000000 --no-jellyfish"));
    rows.push(demo("demo/jellyfish", "--genome-size 1000000 --ranks 2").need(Need::Jellyfish));
    if extent == Extent::Nightly {
        rows.push(demo("demo/real-reads", ""));
    }
    rows.push(Row::new("documented/rust", rust_in_pages));
    let itself = documented_commands().iter().filter(|(_, by)| *by == By::Itself);
    for (number, &(command, _)) in itself.enumerate() {
        // A number, not the command: a command that chooses rows by a pattern must not choose this one.
        rows.push(Row::new(format!("documented/command-{}", number + 1), move |_, log| {
            log.run_ok(&Cmd::new("sh").arg("-c").arg(command).limit(120)).map(drop)
        }));
    }
    Ok(rows)
}

/// Compiles the Rust in README and the book against the library.
fn rust_in_pages(world: &World, log: &Log) -> Result<()> {
    let built = world.built(Build::Debug)?;
    let face = built.face.as_deref().context("the build has no library gasworks")?;
    let dependencies = face.parent().context("the library's folder")?;
    let tree = Tree::load()?;
    let pages = tree.files.iter().filter(|f| f.path.ends_with(".md") && f.text.contains("```rust"));
    let mut tests = 0;
    for page in pages {
        let rustdoc = Cmd::new("rustdoc")
            .words("--test --edition 2024 --extern")
            .arg(format!("gasworks={}", face.display()));
        let rustdoc = rustdoc.arg("-L").arg(format!("dependency={}", dependencies.display())).arg(&page.path);
        tests += super::units::passed(&log.run_ok(&rustdoc)?.output);
    }
    ensure!(tests > 0, "no page has Rust in it");
    Ok(())
}
