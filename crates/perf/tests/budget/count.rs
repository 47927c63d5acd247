//! Counts what an operation costs, under valgrind's lackey.

use crate::costs::{Costs, NOT_COUNTED};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Cmd, Log};
use std::path::Path;

/// Operations of the shorter and the longer run. They are many because two ranks do not begin with the same steps every time.
pub const TIMES: [u64; 2] = [100, 4100];
/// As many of what takes few instructions, beside which those of the library's threads would be seen, which look at something each second.
pub const MANY_TIMES: [u64; 2] = [100, 100_100];

/// Of collectives by messages, which have buffers of all lengths soon.
pub const WARM_TIMES: [u64; 2] = [300, 3300];

/// What a run took in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Totals {
    instructions: u64,
    system_calls: u64,
    stored: u64,
    allocations: u64,
}

/// Counts what one operation of a program costs.
pub fn count(log: &Log, program: &Path, operation: &str, times: [u64; 2]) -> Result<Costs> {
    let run = |times: u64| -> Result<Totals> {
        let lackey = Cmd::new("valgrind").words("--tool=lackey --detailed-counts=yes --trace-syscalls=yes");
        totals(&log.run_ok(&lackey.arg(program).arg(operation).arg(times.to_string()).limit(120))?.output)
    };
    let (first, second) = (run(times[0])?, run(times[1])?);
    let each =
        |of: fn(Totals) -> u64| of(second).saturating_sub(of(first)) as f64 / (times[1] - times[0]) as f64;
    Ok(Costs {
        instructions: each(|totals| totals.instructions),
        system_calls: each(|totals| totals.system_calls),
        stored: each(|totals| totals.stored),
        allocations: each(|totals| totals.allocations),
    })
}

/// Counts what one operation of threads that wait for each other allocates: the rest is never the same.
pub fn count_allocations(log: &Log, program: &Path, operation: &str, times: [u64; 2]) -> Result<Costs> {
    let run = |times: u64| -> Result<u64> {
        let run = Cmd::new(program).arg(operation).arg(times.to_string()).env("GASNET_BARRIER", "AMDISSEM");
        allocations(&log.run_ok(&run.limit(60))?.output)
    };
    let more = run(times[1])?.saturating_sub(run(times[0])?);
    let allocations = more as f64 / (times[1] - times[0]) as f64;
    let [instructions, system_calls, stored] = [NOT_COUNTED; 3];
    Ok(Costs { instructions, system_calls, stored, allocations })
}

fn totals(output: &str) -> Result<Totals> {
    let system_calls = output.matches("SYSCALL[").count() as u64;
    let (instructions, stored) = (instructions(output)?, stored(output)?);
    Ok(Totals { instructions, system_calls, stored, allocations: allocations(output)? })
}

/// A number with commas between thousands.
fn number(text: &str) -> Option<u64> {
    text.trim().replace(',', "").parse().ok()
}

/// The instructions that lackey reports.
fn instructions(output: &str) -> Result<u64> {
    let executed = output.lines().find_map(|line| line.split_once("guest instrs:"));
    executed
        .and_then(|(_, count)| number(count))
        .context("lackey did not say how many instructions there were")
}

/// The bytes of all stores: lackey has a line for each type, as `V128`, with its loads, stores and operations.
fn stored(output: &str) -> Result<u64> {
    let of_type = |line: &str| {
        let (_process, row) = line.trim_start_matches('=').split_once("==")?;
        let mut words = row.split_whitespace();
        let bits: u64 = words.next()?.strip_prefix(['I', 'F', 'V', 'D'])?.parse().ok()?;
        let (_loads, stores, _operations) = (words.next()?, words.next()?, words.next()?);
        Some(number(stores)? * bits / 8)
    };
    let bytes: u64 = output.lines().filter_map(of_type).sum();
    ensure!(bytes > 0, "lackey reports no stores");
    Ok(bytes)
}

/// The allocations that the program reports.
fn allocations(output: &str) -> Result<u64> {
    // A line that valgrind has begun may stand before it.
    let line = output.lines().find_map(|line| line.split_once("allocations "));
    let line = line.map(|(_begun, number)| number);
    line.and_then(|number| number.trim().parse().ok()).context("gascount did not say how often it allocated")
}

pub fn what_the_tool_prints_is_read() -> Result<()> {
    let said = "SYSCALL[7,1](1) sys_write\nallocations 5\n==7==   guest instrs:  1,234\n==7==    Type        Loads       Stores       AluOps\n\
                ==7==    I8              9        1,002            3\n==7==    V256            1            2            3\n";
    let wanted = Totals { instructions: 1234, system_calls: 1, stored: 1002 + 64, allocations: 5 };
    assert_eq!(totals(said)?, wanted);
    for lacks in ["guest", "I8", "allocations"] {
        let said: String =
            said.lines().filter(|line| !line.contains(lacks)).map(|line| format!("{line}\n")).collect();
        assert!(totals(&said).is_ok_and(|found| found != wanted) || totals(&said).is_err(), "{lacks}");
    }
    assert!(totals("valgrind: no such tool").is_err());
    Ok(())
}
