//! The demo, and the commands and the Rust in the documentation.

use super::Extent;
use crate::rows::Row;
use crate::tidy::{By, documented_commands};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::scan::Tree;
use gasworks_testkit::{Cmd, Log, Need};
use std::path::Path;

pub fn rows(extent: Extent) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let demo = |name: &str, words: &'static str| {
        let scratch = name.to_owned();
        Row::new(name, move |world, log| {
            let out = world.scratch(&scratch)?;
            log.run_ok(&own().arg("demo").words(words).arg("--out-dir").arg(&out))?;
            drawn(&out)
        })
    };
    rows.push(demo("demo/generated", "--genome-size 300000 --no-jellyfish"));
    rows.push(demo("demo/jellyfish", "--genome-size 1000000 --ranks 2").need(Need::Jellyfish));
    if extent == Extent::Nightly {
        rows.push(demo("demo/real-reads", "--install"));
    }
    rows.push(Row::new("documented/rust", rust_in_pages));
    let itself = documented_commands().iter().filter(|(_, by)| *by == By::Itself);
    for (number, &(command, _)) in itself.enumerate() {
        // A number, not the command: a command that chooses rows by a pattern must not choose this one.
        let name = format!("documented/command-{}", number + 1);
        let scratch = name.clone();
        rows.push(Row::new(name, move |world, log| {
            let cmd = if command.starts_with("gasrun") {
                as_a_user(world, &scratch, command)?
            } else {
                // As `cargo xtask` would be found, without building it again.
                let own = command.strip_prefix("cargo xtask ").map(|words| own().words(words));
                own.unwrap_or_else(|| Cmd::new("sh").arg("-c").arg(command))
            };
            log.run_ok(&cmd.limit(120)).map(drop)
        }));
    }
    Ok(rows)
}

/// This program.
fn own() -> Cmd {
    Cmd::new(std::env::current_exe().unwrap_or_else(|_| "xtask".into()))
}

/// A command of somebody who has `gasrun` in his path and `program` in his folder.
fn as_a_user(world: &World, scratch: &str, command: &str) -> Result<Cmd> {
    let (built, dir) = (world.debug()?, world.scratch(scratch)?);
    std::os::unix::fs::symlink(built.program("hello")?, dir.join("program")).context("naming the program")?;
    let gasrun = built.program("gasrun")?;
    let programs = gasrun.parent().context("the folder of gasrun")?;
    let script = format!("PATH={}:$PATH; {command}", programs.display());
    Ok(Cmd::new("sh").arg("-c").arg(script).dir(dir))
}

/// An error unless the demo left a picture and a report in its folder, and nothing else.
fn drawn(dir: &Path) -> Result<()> {
    for (name, begins) in [("spectrum.svg", "<svg"), ("demo.json", "{")] {
        let text =
            std::fs::read_to_string(dir.join(name)).with_context(|| format!("the demo left no {name}"))?;
        ensure!(text.contains(begins), "the demo's {name} holds no {begins:?}: {} bytes", text.len());
    }
    let files = std::fs::read_dir(dir).context("the demo's folder")?.count();
    ensure!(files == 2, "the demo left {files} files, not its two");
    Ok(())
}

/// Compiles the Rust in README and the book against the library, whose tests were built by now.
fn rust_in_pages(world: &World, log: &Log) -> Result<()> {
    let debug = world.fixture(Fixture::Debug)?;
    let tree = Tree::load()?;
    let pages = tree.files.iter().filter(|f| f.path.ends_with(".md") && f.text.contains("```rust"));
    // As one page, whose tests are one program: the library is generic, and each would have its code once more.
    let titled = pages.map(|page| format!("# {}\n\n{}\n", page.path, page.text));
    let page = world.scratch("documented/rust")?.join("pages.md");
    std::fs::write(&page, titled.collect::<String>()).context("the pages")?;
    let rustdoc = Cmd::new("rustdoc")
        .words("--test --edition 2024")
        .arg(format!("--extern=gasworks={}", debug.join("libgasworks.rlib").display()))
        .arg(format!("-Ldependency={}", debug.join("deps").display()))
        .arg(&page);
    let tests = crate::tools::passed(&log.run_ok(&rustdoc.limit(300))?.output);
    ensure!(tests > 0, "no page has Rust in it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_that_draws_nothing_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        assert!(drawn(dir.path()).unwrap_err().to_string().contains("no spectrum.svg"));
        write("spectrum.svg", "<svg xmlns=''></svg>");
        write("demo.json", "");
        assert!(drawn(dir.path()).unwrap_err().to_string().contains("demo.json"));
        write("demo.json", "{}");
        drawn(dir.path()).unwrap();
        write("reads.fastq", "@");
        assert!(drawn(dir.path()).unwrap_err().to_string().contains("3 files"));
    }
}
