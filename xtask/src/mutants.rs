//! Mutants by night: of the functions that `ci/mutants` names, and a systematic sample of whole packages.
//!
//! cargo-mutants changes a function (an operator, a condition, its result) and runs the tests of its package alone: what they
//! do not notice survives. `ci/mutants` has a line for each package: how many survivors of how many are let through, and
//! functions of which none is.

use crate::rows::Row;
use anyhow::{Context, Result, bail, ensure};
use gasworks_testkit::programs::target;
use gasworks_testkit::{Cmd, Log, Need, pairs_of, root};

/// Mutants of a package that a night tries.
const SAMPLE: usize = 40;
/// The share of them, in percent, that the package's own tests must notice.
const NOTICED: usize = 95;

/// What is to be mutated.
#[derive(Clone, Debug, PartialEq)]
enum Target {
    /// A sample of a package's functions.
    Sample(String),
    /// Every mutant of the functions whose names contain this.
    Function(String, String),
}

/// The lines of `ci/mutants`: `PACKAGE : sample`, or `PACKAGE : FUNCTION`.
fn parse(text: &str) -> Result<Vec<Target>> {
    let target = |(number, package, what): (usize, &str, Option<&str>)| match what {
        Some("sample") => Ok(Target::Sample(package.into())),
        Some(function) if !function.is_empty() => Ok(Target::Function(package.into(), function.into())),
        _ => bail!("ci/mutants, line {number}: wanted `PACKAGE : sample` or `PACKAGE : FUNCTION`"),
    };
    pairs_of(text).map(target).collect()
}

/// A row for each line.
pub fn rows() -> Result<Vec<Row>> {
    let path = root().join("ci/mutants");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let row = |target: Target| {
        let name = match &target {
            Target::Sample(package) => format!("mutants/{package}/sample"),
            Target::Function(package, function) => format!("mutants/{package}/{function}"),
        };
        Row::new(name, move |_, log| survive(log, &target)).need(Need::CargoMutants)
    };
    Ok(parse(&text)?.into_iter().map(row).collect())
}

/// Where cargo-mutants writes what it finds in a package; it makes no folders above that.
fn out(package: &str) -> Result<std::path::PathBuf> {
    let out = target().join("mutants").join(package);
    std::fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    Ok(out)
}

fn mutants(package: &str, out: &std::path::Path) -> Cmd {
    let cmd =
        Cmd::cargo("mutants --no-shuffle --colors never --timeout 60 -p").arg(format!("gasworks-{package}"));
    cmd.arg("-o").arg(out).limit(3600)
}

fn survive(log: &Log, target: &Target) -> Result<()> {
    let (Target::Sample(package) | Target::Function(package, _)) = target;
    let out = out(package)?;
    let (cmd, needed) = match target {
        Target::Sample(package) => {
            let all = mutants(package, &out).arg("--list").read()?.lines().count();
            let shards = all.div_ceil(SAMPLE).max(1);
            // Another sample each day.
            let days = std::time::SystemTime::UNIX_EPOCH.elapsed().context("the date")?.as_secs() / 86_400;
            let shard = format!("--shard {}/{shards} --sharding round-robin", days as usize % shards);
            (mutants(package, &out).words(&shard), NOTICED)
        }
        Target::Function(package, function) => (mutants(package, &out).arg("--re").arg(function), 100),
    };
    let ended = log.run(&cmd)?;
    let (caught, missed) = counts(&ended.output)?;
    let share = 100 * caught / (caught + missed).max(1);
    let survivors: Vec<_> = ended.output.lines().filter(|line| line.starts_with("MISSED")).collect();
    ensure!(caught + missed > 0, "no mutant was tried");
    ensure!(share >= needed, "{missed} of {} survive:\n{}", caught + missed, survivors.join("\n"));
    Ok(())
}

/// How many mutants were noticed (by a failure or a time-out) and how many were missed, by cargo-mutants' last line:
/// `40 mutants tested in 2m: 1 missed, 35 caught, 3 unviable, 1 timeouts`.
fn counts(output: &str) -> Result<(usize, usize)> {
    let line = output
        .lines()
        .rev()
        .find(|line| line.contains(" tested in "))
        .context("cargo-mutants did not end")?;
    let (_, parts) = line.split_once(": ").context("its last line has no counts")?;
    let count = |what: &str| {
        let part = parts.split(", ").find(|part| part.ends_with(what));
        part.and_then(|part| part.split(' ').next()?.parse::<usize>().ok()).unwrap_or(0)
    };
    Ok((count(" caught") + count(" timeouts"), count(" missed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_samples_and_functions() {
        let targets = parse("# why\nshmem : sample\nsock : Queue::take # it had a planted bug\n").unwrap();
        let function = Target::Function("sock".into(), "Queue::take".into());
        assert_eq!(targets, [Target::Sample("shmem".into()), function]);
        assert!(parse("\nshmem").unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn every_line_of_the_list_is_of_a_package_that_is_there() {
        let text = std::fs::read_to_string(root().join("ci/mutants")).unwrap();
        for target in parse(&text).unwrap() {
            let (Target::Sample(package) | Target::Function(package, _)) = &target;
            assert!(crate::package_dirs().contains(package), "{target:?}");
        }
    }

    #[test]
    fn what_cargo_mutants_says_is_counted() {
        let said = "MISSED   crates/a/src/b.rs:3:4: replace f -> bool with true in 1.2s build\n\
                    40 mutants tested in 2m: 1 missed, 35 caught, 3 unviable, 1 timeouts\n";
        assert_eq!(counts(said).unwrap(), (36, 1));
        assert_eq!(counts("2 mutants tested in 1s: 2 caught").unwrap(), (2, 0));
        assert!(counts("error: no package").is_err());
    }
}
