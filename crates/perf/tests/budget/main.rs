//! What each hot operation costs in figures that no noise moves, against the budgets of `ci/counts`.
//!
//! `gascount` does an operation many times, and `gascount-c` does so from C. The difference between two runs, divided by the
//! difference of their operations, is what one operation costs: instructions, system calls and bytes stored under lackey (a
//! payload that is copied once stores as many bytes as it has), and allocations by the program's allocator.

mod costs;
mod count;

use anyhow::{Context, Result, ensure};
use costs::{Costs, budgets};
use count::{MANY_TIMES, TIMES, WARM_TIMES, count, count_allocations};
use gasworks_testkit::c::{compiler, linking};
use gasworks_testkit::programs::{self, Fixture};
use gasworks_testkit::{Case, Log, Need};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The operations that have a budget, as `gascount` names them.
const OPERATIONS: &[&str] = &[
    "put-val",
    "get-val",
    "put-8",
    "get-8",
    "on-region-put-val",
    "on-region-get-val",
    "on-region-put-8",
    "put-nb-8",
    "on-region-put-nb-8",
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
    "medium-flood-512",
    "medium-round-trip-512",
    "long-flood-8",
    "long-flood-512",
    "long-round-trip-8",
    "par:short-flood",
    "par:short-round-trip",
    "par:medium-flood-512",
    "par:long-flood-8",
    "collective:broadcast-8",
    "collective:broadcast-1024",
    "collective:reduce-8",
    "cci:round-trip-8",
    "cci:round-trip-1024",
    "cci:idle-10",
    "cci:idle-300",
    "cci:write-8",
];

/// Operations of several threads, of which only the allocations are counted.
const BY_MESSAGES: &[&str] = &[
    "collective:broadcast:messages",
    "collective:reduce:messages",
    "collective:reduce-all:messages",
    "collective:scan:messages",
    "collective:scan-before:messages",
    "collective:gather:messages",
    "collective:scatter:messages",
    "collective:all-gather:messages",
    "collective:all-to-all:messages",
    "collective:barrier:messages",
    "collective:begun-broadcast:messages",
    "collective:begun-reduce-all:messages",
];

/// Those that are begun: what each of four ranks keeps until its event is done is allocated.
const BEGUN: &str = "collective:begun-";

/// Operations of programs in C, as `gascount-c` names them; in `ci/counts` they follow `c/`.
const FROM_C: &[&str] = &["poll", "short-request", "short-flood", "short-round-trip", "medium-8"];

/// What is inline in C.
const INLINE: &[&str] =
    &["get-val", "put-val", "put-8", "get-8", "put-n", "put-n-nbi", "put-n-nb", "fetch-add"];

/// How programs in C are compiled, by what stands before their operations; those after the first for what is inline, and by night.
const COMPILED: [(&str, &str, &str); 4] = [
    ("c/", "gcc", "-O3"),
    ("c-O2/", "gcc", "-O2"),
    ("c-clang/", "clang", "-O3"),
    ("c-clang-O2/", "clang", "-O2"),
];

/// All operations of programs in C: the line of `ci/counts`, the compiler and its options, what `gascount-c` calls it, and whether it is
/// counted by day.
fn from_c() -> impl Iterator<Item = (String, [&'static str; 3], bool)> {
    let compiled = COMPILED.into_iter().enumerate();
    let all = compiled.flat_map(|(number, (before, compiler, options))| {
        let others = if number == 0 { FROM_C } else { &[] };
        INLINE.iter().chain(others).map(move |operation| {
            (format!("{before}{operation}"), [compiler, options, *operation], number == 0)
        })
    });
    all.collect::<Vec<_>>().into_iter()
}

fn main() -> ExitCode {
    let operations = OPERATIONS.iter().map(|&operation| {
        Case::new(operation, move |log| {
            is_within_budget(log, operation, &programs::release()?.program("gascount")?, operation)
        })
        .need(Need::Valgrind)
    });
    let from_c = from_c().filter(|(.., daily)| *daily || gasworks_testkit::cases::is_nightly());
    let operations = operations.chain(from_c.map(|(line, how, _)| {
        Case::new(line.clone(), move |log| {
            is_within_budget(log, &line, &compiled(log, &log.scratch()?, how)?, how[2])
        })
        .need(Need::Valgrind)
    }));
    let by_messages = BY_MESSAGES.iter().map(|&operation| {
        Case::new(operation, move |log| {
            let program = programs::release()?.program("gascount")?;
            let costs = count_allocations(log, &program, operation, WARM_TIMES)?;
            judge(log, operation, costs)
        })
    });
    let planted = Case::new("planted", planted_costs_are_found).need(Need::Valgrind);
    let judges = [
        Case::new("judge/every-operation-has-a-budget", |_| every_operation_has_a_budget()),
        Case::new("judge/each-exceeded-cost-is-found", |_| costs::each_exceeded_cost_is_found()),
        Case::new("judge/what-the-tool-prints-is-read", |_| count::what_the_tool_prints_is_read()),
        Case::new("judge/wrong-lines-are-named", |_| costs::wrong_lines_are_named()),
    ];
    gasworks_testkit::cases::main(
        "perf/budget",
        operations.chain(by_messages).chain([planted]).chain(judges).collect(),
    )
}

fn budget(operation: &str) -> Result<Costs> {
    budgets()?.get(operation).copied().with_context(|| format!("no budget for {operation} in ci/counts"))
}

/// What `program` calls `operation`, against the budget of a line.
fn is_within_budget(log: &Log, line: &str, program: &Path, operation: &str) -> Result<()> {
    let is_short = INLINE.contains(&operation.trim_start_matches("on-region-")) || operation == "poll";
    let times = if is_short { MANY_TIMES } else { TIMES };
    let mut costs = count(log, program, operation, times)?;
    if !costs.over(budget(line)?).is_empty() {
        // What a job's start or end took once more than it takes is no cost of the operation's.
        costs = count(log, program, operation, times)?;
    }
    judge(log, line, costs)
}

/// What an operation costs, against the budget of its line.
fn judge(log: &Log, line: &str, costs: Costs) -> Result<()> {
    let found = costs.line(line);
    log.note(&found)?;
    let over = costs.over(budget(line)?);
    ensure!(over.is_empty(), "{line} takes {}; it is `{found}` now", over.join("; "));
    Ok(())
}

/// The budget of a put would be exceeded in each cost by a put with an allocation, a copy and a system call in it.
fn planted_costs_are_found(log: &Log) -> Result<()> {
    let program = programs::release()?.program("gascount")?;
    let over = count(log, &program, "planted-64", TIMES)?.over(budget("put-8")?);
    ensure!(over.len() == 4, "a put with everything that is forbidden exceeds only: {}", over.join("; "));
    Ok(())
}

/// Compiles `gascount-c` into the folder `dir`.
fn compiled(log: &Log, dir: &Path, [cc, options, _]: [&str; 3]) -> Result<PathBuf> {
    let (laid_out, program) = (Fixture::C.get()?, dir.join("gascount-c"));
    let source = gasworks_testkit::root().join("crates/capi/perf/gascount-c.c");
    let compile = compiler(cc, "smp", "GASNET_SEQ", &laid_out).words("-std=c99").words(options).arg(source);
    log.run_ok(&linking(compile.arg("-o").arg(&program), "smp", "seq", &laid_out))?;
    Ok(program)
}

fn every_operation_has_a_budget() -> Result<()> {
    let budgets = budgets()?;
    let plain = OPERATIONS.iter().chain(BY_MESSAGES).map(|&operation| operation.to_owned());
    let mut operations: Vec<_> = plain.chain(from_c().map(|(line, ..)| line)).collect();
    operations.sort_unstable();
    assert_eq!(budgets.keys().cloned().collect::<Vec<_>>(), operations);
    let (begun, others): (Vec<_>, Vec<_>) = budgets.iter().partition(|(line, _)| line.starts_with(BEGUN));
    assert!(others.iter().all(|(_, costs)| costs.has_no_calls_nor_allocations()), "{budgets:?}");
    assert!(begun.iter().all(|(_, costs)| costs.allocations == 4.0), "{begun:?}");
    Ok(())
}
