//! A C program, compiled with warnings as errors, linked with each form of the library, and run.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The libraries as the dev profile builds them: their directory.
fn libraries() -> PathBuf {
    gasworks_testkit::programs::Fixture::Debug.get().unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn a_c_program_does_all_of_it() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = libraries();
    let dir = tempfile::tempdir().expect("a directory");
    let compile = |name: &str, link: &[&str]| {
        let program = dir.path().join(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(crate_dir.join("include"))
            .arg(crate_dir.join("tests/program.c"))
            .arg("-o")
            .arg(&program)
            .args(link)
            .args(["-lpthread", "-ldl", "-lm"]);
        run(&mut cc);
        program
    };
    let archive = libraries.join("libgasworks_sock.a");
    let program = compile("static", &[archive.to_str().expect("a path")]);
    assert_eq!(run(&mut Command::new(program)), "all is well\n");
    let place = libraries.to_str().expect("a path");
    let program = compile("shared", &["-L", place, "-lgasworks_sock"]);
    assert_eq!(run(Command::new(program).env("LD_LIBRARY_PATH", place)), "all is well\n");
}

/// Every function of the header is in the library, and the other way round.
#[test]
fn the_header_and_the_library_have_the_same_functions() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(crate_dir.join(path)).expect("a source");
    let names = |text: &str, before: &str| {
        let found = text.match_indices(before).map(|(at, _)| {
            let rest = &text[at + before.len()..];
            rest.split('(').next().expect("a name").to_owned()
        });
        found.collect::<std::collections::BTreeSet<_>>()
    };
    let header = names(&read("include/gasworks_sock.h"), "\nint ");
    let library = names(&read("src/calls.rs"), "extern \"C\" fn ");
    let library: std::collections::BTreeSet<_> =
        library.into_iter().filter(|name| name.starts_with("gasworks_sock_")).collect();
    assert_eq!(header, library);
    assert_eq!(header.len(), 28);
}
