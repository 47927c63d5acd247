//! Counts what an operation costs, under valgrind's tools.

use crate::costs::Costs;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Cmd, Log};
use std::path::Path;

/// Operations of the shorter and the longer run, where instructions alone are counted. They are many because two ranks do not
/// begin with the same steps every time.
const COUNTED: [u64; 2] = [100, 4100];
/// The same where every store is written down.
const TRACED: [u64; 2] = [10, 110];

/// Counts what one operation of a program costs. Traces are written into the folder `dir`.
pub fn count(log: &Log, program: &Path, operation: &str, dir: &Path) -> Result<Costs> {
    let run = |words: &str, n: u64| {
        let valgrind = Cmd::new("valgrind").words(words).arg(program).arg(operation).arg(n.to_string());
        log.run_ok(&valgrind.dir(dir).limit(120)).map(|ended| ended.output)
    };
    let counts = |n| -> Result<(u64, u64)> {
        let output = run("--tool=callgrind --callgrind-out-file=/dev/null --trace-syscalls=yes", n)?;
        Ok((instructions(&output)?, output.matches("SYSCALL[").count() as u64))
    };
    let stores = |n| -> Result<(u64, u64)> {
        let output = run("--tool=lackey --trace-mem=yes --log-file=stores", n)?;
        Ok((stored(&dir.join("stores"))?, allocations(&output)?))
    };
    let (first, second) = (counts(COUNTED[0])?, counts(COUNTED[1])?);
    let (third, fourth) = (stores(TRACED[0])?, stores(TRACED[1])?);
    let each = |two: [u64; 2], n: [u64; 2]| two[1].saturating_sub(two[0]) as f64 / (n[1] - n[0]) as f64;
    Ok(Costs {
        instructions: each([first.0, second.0], COUNTED),
        system_calls: each([first.1, second.1], COUNTED),
        stored: each([third.0, fourth.0], TRACED),
        allocations: each([third.1, fourth.1], TRACED),
    })
}

/// The instructions that callgrind reports.
fn instructions(output: &str) -> Result<u64> {
    let collected = output.lines().find_map(|line| line.split_once("Collected : "));
    let number = collected.and_then(|(_, number)| number.trim().parse().ok());
    number.context("callgrind did not say what it has collected")
}

/// The allocations that the program reports.
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

pub fn what_the_tools_print_is_read() -> Result<()> {
    assert_eq!(instructions("==7== \n==7== Collected : 1234\n")?, 1234);
    assert!(instructions("valgrind: no such tool").is_err());
    assert_eq!(allocations("==7== x\nallocations 5\n")?, 5);
    assert!(allocations("").is_err());
    assert_eq!(bytes_of("==7== S 1\nI  04001000,3\n S 1ffe,8\n L 1ffe,32\n M 20,4\n S 30,16\n"), 28);
    Ok(())
}
