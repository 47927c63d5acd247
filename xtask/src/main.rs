//! Builds, tests and checks Gasworks: `cargo xtask help`.

mod bench;
mod budget;
mod capi;
mod cluster;
mod demo;
mod exec;
mod files;
mod gni_report;
mod groups;
mod install;
mod leftovers;
mod matrix;
mod names;
mod needs;
mod rows;
mod scan;
mod sources;
mod tidy;
mod tools;
mod ugni;
mod world;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};
use groups::Extent;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, tests and checks Gasworks", disable_help_subcommand = false)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the matrix of tests, or the rows of it that a pattern means
    Test(TestArgs),
    /// Run the matrix with full products and longer runs
    Nightly(TestArgs),
    /// Count the k-mers of real sequencing reads with a hash table distributed over ranks
    Demo(demo::DemoArgs),
    /// Install the programs and the library's sources, configured by GASNet's options
    Install(install::InstallArgs),
    /// Check the lock-free structures with loom
    Loom(tools::Pass),
    /// Check for undefined behaviour with Miri
    Miri(tools::Pass),
    /// Check for data races with the thread sanitizer
    Tsan(tools::Pass),
    /// Check for memory errors with the address sanitizer
    Asan(tools::Pass),
    /// Fuzz one target, or each in turn
    Fuzz(tools::FuzzArgs),
    /// Measure how much of the code the tests reach
    Cov(tools::Pass),
    /// Check the rules that the compiler does not
    Tidy(tidy::TidyArgs),
    /// Measure every operation, beside other libraries too, and hold the figures against their limits
    Bench(bench::BenchArgs),
    /// Build the software NIC, and lay it out for clients of uGNI
    UgniSim(ugni::UgniArgs),
    /// Say what a run on the software NIC would have taken on the machine
    UgniClock(ugni::ClockArgs),
    /// Count what each operation takes over uGNI, and hold the counts against their limits
    GniReport(gni_report::ReportArgs),
    /// Use every public name of the C interface, and say what comes of it
    Names(names::NamesArgs),
    /// Measure the candidates for the queue of active messages
    BenchQueue(tools::Pass),
}

/// Which rows, and what to do with them.
#[derive(Args)]
struct TestArgs {
    /// Only rows whose name contains this, or matches it if it has a `*`
    #[arg(long, value_name = "PATTERN")]
    row: Option<String>,
    /// Print the names of the rows instead of running them
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Test(args) => test(&args, Extent::Everyday),
        Task::Nightly(args) => test(&args, Extent::Nightly),
        Task::Demo(args) => demo::run(args),
        Task::Loom(pass) => tools::loom(&pass),
        Task::Miri(pass) => tools::miri(&pass),
        Task::Tsan(pass) => tools::tsan(&pass),
        Task::Asan(pass) => tools::asan(&pass),
        Task::Fuzz(args) => tools::fuzz(&args),
        Task::Cov(pass) => tools::cov(&pass),
        Task::Tidy(args) => tidy::main(&args),
        Task::Bench(args) => bench::run(&args),
        Task::UgniSim(args) => ugni::run(&args),
        Task::UgniClock(args) => ugni::clock(&args),
        Task::GniReport(args) => gni_report::run(&args),
        Task::Install(args) => install::run(&args),
        Task::Names(args) => names::run(&args),
        Task::BenchQueue(pass) => tools::bench_queue(&pass),
    }
}

fn test(args: &TestArgs, extent: Extent) -> Result<()> {
    sound()?;
    let rows = rows::select(groups::all(extent)?, args.row.as_deref())?;
    if args.list {
        for row in &rows {
            println!("{}", row.name);
        }
        return Ok(());
    }
    let width = std::thread::available_parallelism().map_or(2, |n| n.get()).clamp(1, 4);
    // They are minutes of an everyday run.
    let budgets = match extent {
        Extent::Everyday => budget::Budgets::load()?,
        Extent::Nightly => budget::Budgets::default(),
    };
    rows::run(&rows, &world::World::new(), width, &budgets)
}

/// Whether the lists under `ci/` and the table of documented commands fit the rows that there are.
fn sound() -> Result<()> {
    let everyday = groups::all(Extent::Everyday)?;
    let nightly = groups::all(Extent::Nightly)?;
    let names: Vec<_> = everyday.iter().chain(&nightly).map(|row| row.name.as_str()).collect();
    let mut groups: Vec<_> = everyday.iter().chain(&nightly).map(|row| row.group()).collect();
    groups.dedup();
    let without = budget::Budgets::load()?.without(&groups);
    ensure!(without.is_empty(), "no budget in ci/budgets for the groups {without:?}");
    let skips = needs::ExpectedSkips::load()?;
    let stale = skips.stale(&names);
    ensure!(stale.is_empty(), "ci/expected-skips names rows that there are not: {stale:?}");
    let days: BTreeSet<_> = everyday.iter().map(|row| row.name.as_str()).collect();
    let nights: BTreeSet<_> = nightly.iter().map(|row| row.name.as_str()).collect();
    let misplaced = tidy::misplaced(&days, &nights);
    ensure!(misplaced.is_empty(), "xtask/src/tidy/commands.rs: {}", misplaced.join("; "));
    for rows in [&everyday, &nightly] {
        let mut seen = BTreeSet::new();
        let twice = rows.iter().find(|row| !seen.insert(&row.name));
        ensure!(twice.is_none(), "two rows are called {}", twice.map_or("", |row| &row.name));
    }
    Ok(())
}

/// The repository's root.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// The folders of the workspace's packages by their last part, in order.
fn package_dirs() -> Vec<String> {
    let mut dirs: Vec<_> = std::fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    dirs.sort();
    dirs.extend(["examples".into(), "xtask".into()]);
    dirs
}

/// Whether a package says that it has no tests: it is one line, of which others are a test.
fn is_untested(dir: &str) -> bool {
    let manifest = std::fs::read_to_string(root().join("crates").join(dir).join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "test = false"))
}

/// The names of the packages under `crates/` that have this file.
fn packages_with(file: &str) -> Vec<String> {
    let has = |dir: &String| root().join("crates").join(dir).join(file).is_file();
    let name = |dir: String| if dir == "gasworks" { dir } else { format!("gasworks-{dir}") };
    package_dirs().into_iter().filter(has).map(name).collect()
}

/// The lines `LEFT : RIGHT` of a list, with their numbers; `#` starts a comment.
fn pairs_of(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        let (left, right) = line.split_once(" : ").map_or((line, None), |(l, r)| (l.trim(), Some(r.trim())));
        (!line.is_empty()).then_some((at + 1, left, right))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_hangs_together() {
        sound().unwrap();
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
