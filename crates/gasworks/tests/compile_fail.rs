//! What must not compile does not, for the reason that is written beside it: a line for each error, as rustc's short form has it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Case, Cmd, Log};
use memchr::memmem;

const CASES: &str = "tests/compile_fail";
/// What the cases use; the facade first.
const LIBRARIES: [&str; 5] = ["gasworks", "gasworks_core", "gasworks_memory", "gasworks_os", "gasworks_sync"];

fn main() -> ExitCode {
    let files = std::fs::read_dir(CASES).expect("the cases").map(|entry| entry.expect("a case").path());
    let mut names: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|of| of == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort_unstable();
    assert!(names.len() > 10, "the cases are gone");
    let cases = names.into_iter().map(|name| Case::new(name.clone(), move |log| is_refused(log, &name)));
    gasworks_testkit::cases::main("gasworks/compile_fail", cases.collect())
}

fn is_refused(log: &Log, name: &str) -> Result<()> {
    let deps = deps()?;
    let (file, wanted) = (format!("{CASES}/{name}.rs"), format!("{CASES}/{name}.stderr"));
    let wanted = std::fs::read_to_string(&wanted).context(wanted)?;
    let mut rustc =
        Cmd::new("rustc").words("--edition 2024 --crate-type bin --emit metadata --error-format short");
    for (name, path) in libraries(&deps)? {
        rustc = rustc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    let rustc = rustc
        .arg("-L")
        .arg(format!("dependency={}", deps.display()))
        .arg("--out-dir")
        .arg(log.scratch()?)
        .arg(&file)
        .dir(env!("CARGO_MANIFEST_DIR"));
    let ended = log.run(&rustc)?;
    let errors = ended.output.lines().filter(|line| line.contains(": error")).collect::<Vec<_>>();
    ensure!(ended.code() == Some(1), "{}, where it should be refused", ended.how());
    ensure!(errors == wanted.lines().collect::<Vec<_>>(), "other errors:\n{}", errors.join("\n"));
    Ok(())
}

/// Where this program's libraries are: beside it.
fn deps() -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    me.parent().map(Path::to_owned).context("the folder of this program")
}

/// The facade as it was built last, and the other libraries as it was built with them: there may be several of each, from builds of other sets
/// of packages.
fn libraries(deps: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let built = |path: &PathBuf| path.metadata().and_then(|of| of.modified()).ok();
    let [facade, others @ ..] = LIBRARIES;
    let newest = candidates(deps, facade)?.into_iter().max_by_key(built);
    let newest = newest.with_context(|| format!("no {facade} beside this program"))?;
    let bytes = std::fs::read(&newest)?;
    // A library names those that it was built with by what is at the end of their files' names.
    let is_named = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem.rfind('-').is_some_and(|at| memmem::find(&bytes, &stem.as_bytes()[at..]).is_some())
    };
    let mut libraries = vec![(facade, newest)];
    for name in others {
        let path = candidates(deps, name)?.into_iter().find(is_named);
        libraries.push((name, path.with_context(|| format!("{facade} was built with no {name}"))?));
    }
    Ok(libraries)
}

/// All that were built of a library.
fn candidates(deps: &Path, library: &str) -> Result<Vec<PathBuf>> {
    let prefix = format!("lib{library}-");
    let entries = std::fs::read_dir(deps)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(".rlib")
    };
    Ok(entries.filter(is_it).collect())
}
