//! What each hot operation costs in figures that no noise moves, against `ci/counts`.
//!
//! `gascount`, or from C `gascount-c`, does an operation many times; the difference between two runs, divided by the difference of their
//! operations, is what one costs: instructions and system calls under callgrind, bytes stored under lackey (a payload
//! of so many bytes that is copied once stores as many), and allocations by its own allocator.

use super::capi::laid_out;
use crate::capi::{compiler, linking};
use crate::exec::{Cmd, Log};
use crate::needs::Need;
use crate::rows::Row;
use crate::world::{Built, World};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The operations that have a budget: what `gascount` calls them.
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

/// Those of programs in C, which `gascount-c` calls by what follows.
const FROM_C: &[&str] = &["c/poll", "c/short-request", "c/short-flood", "c/short-round-trip"];

/// Two ranks do not begin with the same steps every time, which many operations share. Runs to compare: operations in the shorter and in the longer one, where only instructions are counted and where every
/// store is written down.
const FEW: [u64; 2] = [100, 4100];
const TRACED: [u64; 2] = [10, 510];

/// What happens once or twice in a longer run, such as a thread of the process that looks at something, is no cost of
/// an operation.
const ONCE: f64 = 0.02;

/// What an operation costs, or may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Costs {
    instructions: f64,
    system_calls: f64,
    stored: f64,
    allocations: f64,
}

impl Costs {
    fn named(self) -> [(&'static str, f64); 4] {
        [
            ("instructions", self.instructions),
            ("system calls", self.system_calls),
            ("bytes stored", self.stored),
            ("allocations", self.allocations),
        ]
    }

    /// The line of `ci/counts`.
    fn line(self, operation: &str) -> String {
        let numbers = self.named().map(|(_, cost)| cost.ceil().to_string());
        format!("{operation} : {}", numbers.join(" "))
    }

    /// In what it exceeds the budget.
    fn over(self, budget: Costs) -> Vec<String> {
        let pairs = self.named().into_iter().zip(budget.named());
        let over = pairs.filter(|((_, cost), (_, budget))| *cost > budget + ONCE);
        over.map(|((name, cost), (_, budget))| format!("{cost} {name}, and may take {budget}")).collect()
    }
}

/// The budgets by operation.
fn parse(text: &str) -> Result<BTreeMap<String, Costs>> {
    let mut budgets = BTreeMap::new();
    for (number, operation, numbers) in crate::pairs_of(text) {
        let wanted = || {
            format!(
                "ci/counts, line {number}: wanted `OPERATION : INSTRUCTIONS SYSTEM-CALLS STORED ALLOCATIONS`"
            )
        };
        let numbers: Vec<f64> = numbers
            .with_context(wanted)?
            .split_whitespace()
            .map(|word| word.parse::<u32>().map(f64::from))
            .collect::<Result<_, _>>()
            .with_context(wanted)?;
        let [instructions, system_calls, stored, allocations] = numbers[..] else { bail!("{}", wanted()) };
        let costs = Costs { instructions, system_calls, stored, allocations };
        ensure!(budgets.insert(operation.to_owned(), costs).is_none(), "ci/counts has {operation} twice");
    }
    Ok(budgets)
}

fn budget(operation: &str) -> Result<Costs> {
    let path = crate::root().join("ci/counts");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    parse(&text)?.get(operation).copied().with_context(|| format!("no budget for {operation} in ci/counts"))
}

pub fn rows() -> Vec<Row> {
    let row = |&operation: &&'static str| {
        Row::new(format!("budget/{operation}"), move |world, log| {
            let scratch = format!("budget/{operation}");
            let costs = match operation.strip_prefix("c/") {
                Some(plain) => count(world, log, &from_c(world, log)?, plain, &scratch)?,
                None => count(world, log, &from_rust(log)?, operation, &scratch)?,
            };
            let line = costs.line(operation);
            log.note(&line)?;
            let over = costs.over(budget(operation)?);
            ensure!(over.is_empty(), "{operation} takes {}; it is `{line}` now", over.join("; "));
            Ok(())
        })
        .need(Need::Valgrind)
        .beside()
    };
    let mut rows: Vec<Row> = OPERATIONS.iter().chain(FROM_C).map(row).collect();
    rows.push(
        // That the gate would show it: the same put with an allocation, a copy and a system call in it.
        Row::new("budget/planted", |world, log| {
            let costs = count(world, log, &from_rust(log)?, "planted-64", "budget/planted")?;
            let over = costs.over(budget("put-8")?);
            ensure!(
                over.len() == 4,
                "a put with everything that is forbidden exceeds only: {}",
                over.join("; ")
            );
            Ok(())
        })
        .need(Need::Valgrind)
        .beside(),
    );
    rows
}

/// `gascount`, and nothing else: who makes an operation cheaper asks for these rows often.
fn from_rust(log: &Log) -> Result<PathBuf> {
    // Of all packages, whose dependencies have other features than those of one: nothing is built twice.
    let build = Cmd::cargo("build --release --workspace --exclude xtask --bin gascount")
        .arg("--message-format=json-render-diagnostics");
    Ok(Built::of(&log.run_ok(&build)?.output).program("gascount")?.to_owned())
}

/// `gascount-c`, once for all rows.
fn from_c(world: &World, log: &Log) -> Result<PathBuf> {
    let place = laid_out(world, log)?;
    let program = place.join("gascount-c");
    world.once("gascount-c", || {
        let source = crate::root().join("crates/capi/perf/gascount-c.c");
        let compile = compiler("gcc", "smp", "GASNET_SEQ", &place).words("-std=c99 -O3").arg(source);
        log.run_ok(&linking(compile.arg("-o").arg(&program), "smp", "seq", &place)).map(drop)
    })?;
    Ok(program)
}

/// Counts what one operation of a program costs.
fn count(world: &World, log: &Log, program: &Path, operation: &str, scratch: &str) -> Result<Costs> {
    let dir = world.scratch(scratch)?;
    let run = |words: &str, n: u64| {
        let valgrind = Cmd::new("valgrind").words(words).arg(program).arg(operation).arg(n.to_string());
        log.run_ok(&valgrind.dir(&dir).limit(120)).map(|ended| ended.output)
    };
    let counts = |n| -> Result<(u64, u64)> {
        let output = run("--tool=callgrind --callgrind-out-file=/dev/null --trace-syscalls=yes", n)?;
        Ok((instructions(&output)?, output.matches("SYSCALL[").count() as u64))
    };
    let stores = |n| -> Result<(u64, u64)> {
        let output = run("--tool=lackey --trace-mem=yes --log-file=stores", n)?;
        Ok((stored(&dir.join("stores"))?, allocations(&output)?))
    };
    let (first, second) = (counts(FEW[0])?, counts(FEW[1])?);
    let (third, fourth) = (stores(TRACED[0])?, stores(TRACED[1])?);
    let each = |two: [u64; 2], n: [u64; 2]| two[1].saturating_sub(two[0]) as f64 / (n[1] - n[0]) as f64;
    Ok(Costs {
        instructions: each([first.0, second.0], FEW),
        system_calls: each([first.1, second.1], FEW),
        stored: each([third.0, fourth.0], TRACED),
        allocations: each([third.1, fourth.1], TRACED),
    })
}

/// What callgrind says that it has collected.
fn instructions(output: &str) -> Result<u64> {
    let collected = output.lines().find_map(|line| line.split_once("Collected : "));
    let number = collected.and_then(|(_, number)| number.trim().parse().ok());
    number.context("callgrind did not say what it has collected")
}

fn allocations(output: &str) -> Result<u64> {
    let line = output.lines().find_map(|line| line.strip_prefix("allocations "));
    line.and_then(|number| number.trim().parse().ok()).context("gascount did not say how often it allocated")
}

/// The bytes of all stores in a trace, which is deleted: it is long.
fn stored(trace: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(trace).with_context(|| format!("reading {}", trace.display()))?;
    std::fs::remove_file(trace).with_context(|| format!("deleting {}", trace.display()))?;
    let bytes = bytes_of(&text);
    ensure!(bytes > 0, "{} has no stores in it", trace.display());
    Ok(bytes)
}

/// Stores are lines ` S address,size`, changes in place ` M address,size`.
fn bytes_of(trace: &str) -> u64 {
    let stores = trace.lines().filter(|line| line.starts_with(" S ") || line.starts_with(" M "));
    stores.filter_map(|line| line.rsplit_once(',')?.1.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { instructions: 55.2, system_calls: 0.0, stored: 87.0, allocations: 0.0 };

    #[test]
    fn every_operation_has_a_budget_and_every_budget_an_operation() {
        let text = std::fs::read_to_string(crate::root().join("ci/counts")).unwrap();
        let budgets = parse(&text).unwrap();
        let mut operations = [OPERATIONS, FROM_C].concat();
        operations.sort_unstable();
        assert_eq!(budgets.keys().map(String::as_str).collect::<Vec<_>>(), operations);
        assert!(budgets.values().all(|b| b.system_calls == 0.0 && b.allocations == 0.0), "{budgets:?}");
    }

    #[test]
    fn each_cost_that_is_exceeded_is_found() {
        let budget = parse(&COSTS.line("put-8")).unwrap()["put-8"];
        assert_eq!(budget.instructions, 56.0, "a line allows what was counted");
        assert_eq!(COSTS.over(budget), [""; 0]);
        assert_eq!(Costs { allocations: 0.01, ..COSTS }.over(budget), [""; 0], "one in a hundred operations");
        let dearer = [
            (Costs { instructions: 56.1, ..COSTS }, "56.1 instructions, and may take 56"),
            (Costs { system_calls: 0.03, ..COSTS }, "0.03 system calls, and may take 0"),
            (Costs { stored: 95.0, ..COSTS }, "95 bytes stored, and may take 87"),
            (Costs { allocations: 1.0, ..COSTS }, "1 allocations, and may take 0"),
        ];
        for (costs, found) in dearer {
            assert_eq!(costs.over(budget), [found]);
        }
    }

    #[test]
    fn what_the_tools_print_is_read() {
        assert_eq!(instructions("==7== \n==7== Collected : 1234\n").unwrap(), 1234);
        assert!(instructions("valgrind: no such tool").is_err());
        assert_eq!(allocations("==7== x\nallocations 5\n").unwrap(), 5);
        assert!(allocations("").is_err());
        assert_eq!(bytes_of("==7== S 1\nI  04001000,3\n S 1ffe,8\n L 1ffe,32\n M 20,4\n S 30,16\n"), 28);
    }

    #[test]
    fn wrong_lines_are_named() {
        for text in ["# why\nput-8", "# why\nput-8 : 1 2 3", "# why\nput-8 : 1 2 3 x"] {
            assert!(parse(text).unwrap_err().to_string().contains("line 2"), "{text}");
        }
        assert!(parse("a : 1 0 0 0\na : 1 0 0 0").unwrap_err().to_string().contains("twice"));
    }
}
