//! The C header against the tables of facts: every size, offset and value, checked by the compiler.
#![cfg(all(not(gasworks_loom), not(miri)))]

use std::fmt::Write as _;
use std::process::Command;

const STRUCTS: &str = include_str!("../../gni-sys/tests/facts/structs.csv");
const CONSTANTS: &str = include_str!("../../gni-sys/tests/facts/constants.csv");

/// A program that does not compile unless the header says what the tables say; and how many things it checks.
fn program() -> (String, usize) {
    let mut text = "#include <stddef.h>\n#include <gni_pub.h>\n".to_owned();
    let mut checks = 0;
    let mut check = |condition: String, what: &str| {
        checks += 1;
        writeln!(text, "_Static_assert({condition}, \"{what}\");").expect("a string takes it");
    };
    for line in STRUCTS.lines().filter(|line| !line.starts_with("struct,")) {
        let [name, field, offset, size] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if field == "(sizeof)" {
            check(format!("sizeof({name}) == {size}"), name);
        } else {
            check(format!("offsetof({name}, {field}) == {offset}"), &format!("{name}.{field}"));
            check(format!("sizeof((({name} *)0)->{field}) == {size}"), &format!("{name}.{field}"));
        }
    }
    for line in CONSTANTS.lines().filter(|line| *line != "name,value") {
        let (name, value) = line.split_once(',').expect("two columns");
        check(format!("(long long)({name}) == {value}LL"), name);
    }
    (text + "int main(void) { return 0; }\n", checks)
}

fn compile(text: &str, compiler: &str, words: &[&str]) -> std::process::Output {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("check.c");
    std::fs::write(&file, text).expect("a file");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include];
    Command::new(compiler).args(words).args(strict).arg(file).output().expect("a C compiler")
}

#[test]
fn the_header_says_what_the_tables_say() {
    let (text, checks) = program();
    assert_eq!(checks, 2 * (STRUCTS.lines().count() - 1) - structures() + CONSTANTS.lines().count() - 1);
    let output = compile(&text, "cc", &["-std=c11", "-pedantic"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A value that is another is noticed.
    let wrong = text.replace("(GNI_RC_TIMEOUT) == 4LL", "(GNI_RC_TIMEOUT) == 5LL");
    let output = compile(&wrong, "cc", &["-std=c11"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("GNI_RC_TIMEOUT"));
}

fn structures() -> usize {
    STRUCTS.lines().filter(|line| line.contains("(sizeof)")).count()
}

#[test]
fn the_header_is_of_old_c_and_of_cxx_too() {
    for words in [&["-std=c99", "-pedantic"][..], &["-x", "c++"]] {
        let output = compile("#include <gni_pub.h>\nint main(void) { return 0; }\n", "cc", words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
