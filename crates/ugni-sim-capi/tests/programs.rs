//! C programs, written as clients of the genuine library write them, compiled with warnings as errors, linked with each form
//! of the library, and run on both chips, in all moods, as several processes.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Builds the libraries where this test was built, and gives the directory.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("this test");
    let built = own.parent().and_then(Path::parent).expect("the directory of a build").to_owned();
    let target = built.parent().expect("the target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "gasworks-ugni-sim-capi", "--target-dir"]).arg(target);
    if built.ends_with("release") {
        cargo.arg("--release");
    }
    run(&mut cargo);
    built
}

/// How a program is linked.
#[derive(Clone, Copy, Debug)]
enum Form {
    Static,
    Shared,
}

/// Compiles a program, and gives it.
fn compile(name: &str, form: Form, dir: &Path) -> PathBuf {
    let libraries = libraries();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]);
    cc.arg(tests.join("include")).arg(tests.join("tests/c").join(name).with_extension("c"));
    cc.arg("-o").arg(&program);
    match form {
        Form::Static => cc.arg(libraries.join("libgasworks_ugni_sim_c.a")),
        Form::Shared => cc
            .arg("-L")
            .arg(&libraries)
            .arg("-lgasworks_ugni_sim_c")
            .arg(format!("-Wl,-rpath,{}", libraries.display())),
    };
    run(cc.args(["-lpthread", "-ldl", "-lm"]));
    program
}

/// Runs a program with so many ranks on both chips, in the plain mood and as many adversarial ones.
fn go(name: &str, form: Form, ranks: &[u32], seeds: u32) {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(name, form, dir.path());
    for chip in ["gemini", "aries"] {
        for ranks in ranks {
            for seed in 0..=seeds {
                let mood = if seed == 0 { "plain" } else { "adversarial" };
                let mut command = Command::new("timeout");
                command.args(["-k", "5", "120"]).arg(&program).arg(ranks.to_string());
                command.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", mood);
                assert_eq!(run(command.env("GASWORKS_UGNI_SEED", seed.to_string())), "all is well\n");
            }
        }
    }
}

/// Data that goes around at every alignment, with its events and flags.
#[test]
fn transfers() {
    go("transfers", Form::Shared, &[2, 3], 2);
    go("transfers", Form::Static, &[2], 0);
}

#[test]
fn atomics() {
    go("atomics", Form::Shared, &[2, 8], 1);
}

#[test]
fn overrun_and_recovery() {
    go("overrun", Form::Shared, &[2, 5], 4);
}

#[test]
fn errors() {
    go("errors", Form::Shared, &[2, 3], 4);
}

#[test]
fn waiting() {
    go("waiting", Form::Shared, &[2, 4], 4);
}

#[test]
fn datagrams() {
    go("datagrams", Form::Shared, &[3, 8], 2);
}

#[test]
fn vmdh() {
    go("vmdh", Form::Shared, &[2, 3], 2);
}

#[test]
fn channels() {
    go("channels", Form::Shared, &[2, 4], 2);
}

#[test]
fn queries() {
    go("queries", Form::Shared, &[2, 3], 2);
}
