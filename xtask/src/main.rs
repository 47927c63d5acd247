//! Builds, tests and checks Gasworks: `cargo xtask help`.

mod bench;
mod capi;
mod demo;
mod gni_report;
mod groups;
mod install;
mod mutants;
mod names;
mod ordinary;
mod prepare;
mod report;
mod rows;
mod tidy;
mod tools;
mod ugni;
mod world;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};
use gasworks_testkit::needs::ExpectedSkips;
use gasworks_testkit::root;
use groups::Extent;
use report::{History, Report};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, tests and checks Gasworks", disable_help_subcommand = false)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all checks: the ordinary tests, and the rows that are none
    Test(TestArgs),
    /// Run the matrix with full products and longer runs
    Nightly(TestArgs),
    /// Build what tests run: programs, the C interface, the software NIC
    Prepare(prepare::PrepareArgs),
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
    /// Only rows whose name contains this, or matches it if it has a `*`; `tests` is the ordinary tests
    #[arg(long, value_name = "PATTERN")]
    row: Option<String>,
    /// Print the names of the rows instead of running them
    #[arg(long)]
    list: bool,
    /// A subset of a few minutes: format, Clippy, tidiness, the libraries' tests, the suite of transports, one launcher
    #[arg(long)]
    quick: bool,
    /// Only what failed the last time
    #[arg(long, conflicts_with_all = ["row", "quick"])]
    failed: bool,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the twenty that took longest the last time, as a table for the book
    #[arg(long)]
    longest: bool,
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
        Task::Prepare(args) => prepare::run(&args),
        Task::Demo(args) => demo::run(args),
        Task::Loom(pass) => tools::loom(&pass),
        Task::Miri(pass) => tools::miri(&pass),
        Task::Tsan(pass) => tools::thread_sanitizer(&pass),
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
    let extent = if args.quick { Extent::Quick } else { extent };
    let mut world = world::World::new();
    world.is_nightly = extent == Extent::Nightly;
    let history = History::load(&world.history())?;
    if args.longest {
        print!("{}", history.longest(20));
        return Ok(());
    }
    let failed: Vec<String> = history.failed().into_iter().map(str::to_owned).collect();
    ensure!(!args.failed || !failed.is_empty(), "nothing failed the last time");
    let only = args.failed.then(|| Arc::new(failed));
    // The rows first: the report is to know what is ahead.
    let chosen = |rows: Vec<rows::Row>| -> Vec<rows::Row> {
        let Some(only) = &only else { return rows };
        rows.into_iter().filter(|row| only.contains(&row.name)).collect()
    };
    let mut rows = chosen(groups::all(extent)?);
    let names = groups::parts(extent).iter().map(|part| (format!("tests/{}", part.name()), part.lane()));
    let ahead: Vec<_> = rows.iter().map(|row| (row.name.clone(), row.lane)).chain(names).collect();
    let report = Arc::new(Report::new(history, ahead));
    let is_row = |name: &String| rows.iter().any(|row| row.name == *name);
    if only.as_ref().is_none_or(|only| !only.iter().all(is_row)) {
        // The second part needs more builds: launchers go between.
        let mut parts = groups::tests(extent, &report, only.as_ref()).into_iter();
        rows.splice(0..0, parts.next());
        rows.extend(parts);
    }
    let rows = rows::select(rows, args.row.as_deref())?;
    if args.list {
        for row in &rows {
            println!("{}", row.name);
        }
        return Ok(());
    }
    let skips = ExpectedSkips::load()?;
    report::with_progress(&report, || rows::run(&rows, &world, &skips, &report));
    if let Some(path) = &args.junit {
        std::fs::write(path, report.junit()).with_context(|| format!("writing {}", path.display()))?;
    }
    drop(rows);
    let Some(report) = Arc::into_inner(report) else { bail!("a row still holds the report") };
    if !report.close(&world.history())?.is_good() {
        // The summary is the last line: nothing is said after it.
        std::process::exit(1);
    }
    Ok(())
}

/// Whether the lists under `ci/` and the table of documented commands fit the rows that there are.
fn sound() -> Result<()> {
    let everyday = groups::all(Extent::Everyday)?;
    let nightly = groups::all(Extent::Nightly)?;
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

/// The names of the packages under `crates/` that have this file.
fn packages_with(file: &str) -> Vec<String> {
    let has = |dir: &String| root().join("crates").join(dir).join(file).is_file();
    let name = |dir: String| if dir == "gasworks" { dir } else { format!("gasworks-{dir}") };
    package_dirs().into_iter().filter(has).map(name).collect()
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
