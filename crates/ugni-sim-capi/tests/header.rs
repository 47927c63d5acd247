//! The C headers against the tables of facts, and against the Rust declarations where there are none: every size, offset
//! and value, checked by the compiler.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use gasworks_gni_sys::Ugni;
use gasworks_gni_sys::udreg::{self, Udreg};

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
fn the_header_of_udreg_says_what_the_declarations_say() {
    let mut text = "#include <stddef.h>\n#include <udreg_pub.h>\n".to_owned();
    macro_rules! check {
        ($name:ident { $($field:ident)* } $($constant:ident)*) => {
            let size = size_of::<udreg::$name>();
            writeln!(text, "_Static_assert(sizeof({}) == {size}, \"size\");", stringify!($name)).expect("taken");
            $(
                let (name, field, offset) = (stringify!($name), stringify!($field), offset_of!(udreg::$name, $field));
                writeln!(text, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{field}\");").expect("taken");
            )*
            $(
                let (name, value) = (stringify!($constant), udreg::$constant);
                writeln!(text, "_Static_assert({name} == {value}, \"{name}\");").expect("taken");
            )*
        };
    }
    check!(udreg_cache_attr_t {
        cache_name max_entries modes debug_mode debug_rank reg_context dreg_context destructor_context
        device_reg_func device_dereg_func destructor_callback
    } UDREG_MAX_CACHENAME_LEN UDREG_CC_MODE_USE_LAZY_DEREG UDREG_CC_MODE_USE_EVICT_W_UNREG
      UDREG_CC_MODE_USE_LARGE_PAGES UDREG_CC_MODE_USE_KERNEL_CACHE);
    check!(udreg_entry_t { device_data }
        UDREG_RC_SUCCESS UDREG_RC_INVALID_PARAM UDREG_RC_NO_SPACE UDREG_RC_NO_MATCH UDREG_RC_ERROR_NO_DEVICE
        UDREG_STAT_CACHE_HIT UDREG_STAT_CACHE_MISS UDREG_STAT_CACHE_EVICTED);
    let output = compile(&text, "cc", &["-std=c11", "-pedantic"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every function that is declared to C is declared to Rust, and the other way round.
#[test]
fn both_declare_the_same_functions() {
    let headers = concat!(include_str!("../include/gni_pub.h"), include_str!("../include/udreg_pub.h"));
    let ours: BTreeSet<&str> = Ugni::NAMES.iter().chain(Udreg::NAMES).copied().collect();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = headers.lines().filter(|line| !line.starts_with(['#', ' ', '/', '*'])).filter_map(|line| {
        let before = line.split_once('(')?.0;
        let name = before.rsplit(|c| !word(c)).next()?;
        ["GNI_", "gni_", "UDREG_"].iter().any(|start| name.starts_with(start)).then_some(name)
    });
    let found: BTreeSet<&str> =
        found.filter(|name| !name.ends_with("_handler") && !name.ends_with("_func")).collect();
    assert_eq!(found, ours);
}

#[test]
fn the_headers_are_of_old_c_and_of_cxx_too() {
    const BOTH: &str = "#include <gni_pub.h>\n#include <udreg_pub.h>\nint main(void) { return 0; }\n";
    for words in [&["-std=c99", "-pedantic"][..], &["-x", "c++"]] {
        let output = compile(BOTH, "cc", words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
