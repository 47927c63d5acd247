//! What each hot operation costs in figures that no noise moves, against the budgets of `ci/counts`.
//!
//! `gascount` does an operation many times, and `gascount-c` does so from C. The difference between two runs, divided by the
//! difference of their operations, is what one operation costs: instructions, system calls and bytes stored under lackey (a
//! payload that is copied once stores as many bytes as it has), and allocations by the program's allocator.

mod costs;
mod count;

use anyhow::{Context, Result, ensure};
use costs::{Costs, budgets};
use count::count;
use gasworks_testkit::c::{compiler, linking};
use gasworks_testkit::programs::{self, Fixture};
use gasworks_testkit::{Case, Log, Need};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The operations that have a budget, as `gascount` names them.
const OPERATIONS: &[&str] = &[
    "put-8",
    "get-8",
    "put-slice-4096",
    "get-slice-4096",
    "poll",
    "barrier",
    "short-request",
    "short-flood",
    "short-round-trip",
    "medium-8",
    "medium-512",
    "medium-4096",
];

/// Operations of programs in C. `gascount-c` knows them by what follows `c/`.
const FROM_C: &[&str] = &["c/poll", "c/short-request", "c/short-flood", "c/short-round-trip"];

fn main() -> ExitCode {
    let operations = OPERATIONS.iter().chain(FROM_C).map(|&operation| {
        Case::new(operation, move |log| is_within_budget(log, operation)).need(Need::Valgrind)
    });
    let planted = Case::new("planted", planted_costs_are_found).need(Need::Valgrind);
    let judges = [
        Case::new("judge/every-operation-has-a-budget", |_| every_operation_has_a_budget()),
        Case::new("judge/each-exceeded-cost-is-found", |_| costs::each_exceeded_cost_is_found()),
        Case::new("judge/what-the-tool-prints-is-read", |_| count::what_the_tool_prints_is_read()),
        Case::new("judge/wrong-lines-are-named", |_| costs::wrong_lines_are_named()),
    ];
    gasworks_testkit::cases::main("perf/budget", operations.chain([planted]).chain(judges).collect())
}

fn budget(operation: &str) -> Result<Costs> {
    budgets()?.get(operation).copied().with_context(|| format!("no budget for {operation} in ci/counts"))
}

fn is_within_budget(log: &Log, operation: &str) -> Result<()> {
    let costs = match operation.strip_prefix("c/") {
        Some(plain) => count(log, &from_c(log, &log.scratch()?)?, plain)?,
        None => count(log, &programs::release()?.program("gascount")?, operation)?,
    };
    let line = costs.line(operation);
    log.note(&line)?;
    let over = costs.over(budget(operation)?);
    ensure!(over.is_empty(), "{operation} takes {}; it is `{line}` now", over.join("; "));
    Ok(())
}

/// The budget of a put would be exceeded in each cost by a put with an allocation, a copy and a system call in it.
fn planted_costs_are_found(log: &Log) -> Result<()> {
    let program = programs::release()?.program("gascount")?;
    let over = count(log, &program, "planted-64")?.over(budget("put-8")?);
    ensure!(over.len() == 4, "a put with everything that is forbidden exceeds only: {}", over.join("; "));
    Ok(())
}

/// Compiles `gascount-c` into the folder `dir`.
fn from_c(log: &Log, dir: &Path) -> Result<PathBuf> {
    let (laid_out, program) = (Fixture::C.get()?, dir.join("gascount-c"));
    let source = gasworks_testkit::root().join("crates/capi/perf/gascount-c.c");
    let compile = compiler("gcc", "smp", "GASNET_SEQ", &laid_out).words("-std=c99 -O3").arg(source);
    log.run_ok(&linking(compile.arg("-o").arg(&program), "smp", "seq", &laid_out))?;
    Ok(program)
}

fn every_operation_has_a_budget() -> Result<()> {
    let budgets = budgets()?;
    let mut operations = [OPERATIONS, FROM_C].concat();
    operations.sort_unstable();
    assert_eq!(budgets.keys().map(String::as_str).collect::<Vec<_>>(), operations);
    assert!(budgets.values().all(Costs::has_no_calls_nor_allocations), "{budgets:?}");
    Ok(())
}
