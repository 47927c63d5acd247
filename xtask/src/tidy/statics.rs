//! Primitives that have one home, and statics that have none.

use anyhow::Result;
use gasworks_testkit::scan::{Source, Tree, cut_tests, line_of};
use std::collections::BTreeSet;

const PRIMITIVES: &[&str] =
    &["core::sync::atomic", "std::sync::atomic", "core::cell::UnsafeCell", "std::cell::UnsafeCell", "loom::"];

/// Names that belong to `crates/sync`. Measurements and tests outside the building may use the library's own.
pub fn atomics(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.products().filter(|f| f.package() != Some("sync")) {
        let code = file.code();
        for name in PRIMITIVES {
            for (at, _) in cut_tests(&code).match_indices(name) {
                found.push(format!("{}:{}: {name}: use gasworks_sync", file.path, line_of(&code, at)));
            }
        }
    }
    Ok(found)
}

/// Statics that may be changed and are meant to be, by file and name.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/sock-capi/src/table.rs",
        "TABLE",
        "C programs hold numbers of sets, which have to lead somewhere",
    ),
    (
        "crates/sock-capi/src/table.rs",
        "LAST_ERROR",
        "the words for a thread's last failure, which C asks for afterwards",
    ),
    (
        "crates/cci-capi/src/devices.rs",
        "LIBRARY",
        "CCI's functions name no library: whether it is initialised, and its devices",
    ),
    (
        "crates/cci-capi/src/state.rs",
        "ENDPOINTS",
        "C programs hold pointers to endpoints, which are looked up by their addresses",
    ),
    (
        "crates/cci-capi/src/state.rs",
        "CONNECTIONS",
        "C programs hold pointers to connections, which are looked up by their addresses",
    ),
    (
        "crates/cci-capi/src/state.rs",
        "HANDLES",
        "C programs hold pointers to handles, which are looked up by their addresses",
    ),
    (
        "crates/cci-capi/src/events.rs",
        "EVENTS",
        "C programs hold pointers to events, which are looked up by their addresses",
    ),
    (
        "crates/ugni-sim-capi/src/udreg/calls.rs",
        "TABLE",
        "C programs hold numbers of caches, which have to lead somewhere",
    ),
    (
        "crates/ugni-sim-capi/src/alps.rs",
        "LLI",
        "ALPS's functions name no conversation: a process has one at a time",
    ),
    (
        "crates/ugni-sim-capi/src/pmi/state.rs",
        "STATE",
        "PMI's functions name no job: a process is in one at a time",
    ),
    (
        "crates/ugni-sim-capi/src/pmi/state.rs",
        "WIRE",
        "a domain is attached by functions that name no job: the gate of the process, told when its ranks first meet",
    ),
    (
        "crates/ugni-sim-capi/src/ugni/waiting.rs",
        "WAIT",
        "a call that waits is tried again from the beginning, and its arguments are C's: since when it waits is its thread's",
    ),
    (
        "crates/ugni-sim-capi/src/pmi/state.rs",
        "ADDRESS",
        "a domain is attached by functions that name no job: the node of the process, told when its ranks first meet",
    ),
    (
        "crates/ugni-sim-capi/src/ugni/settings.rs",
        "READ",
        "what is to go wrong, read once: how often places were passed is counted with it",
    ),
    (
        "crates/ugni-sim-capi/src/leave.rs",
        "EXIT_THREAD",
        "`_exit` takes nothing but a code: the thread of the process that does what is to be done then",
    ),
    (
        "crates/ugni-sim-capi/src/strict.rs",
        "INBOUND",
        "whatever has come to the process, by any of its NICs or through PMI, whose functions name none",
    ),
    (
        "crates/ugni-sim-capi/src/witness.rs",
        "WANTED",
        "whether a witness is wanted, asked once: the end of the process is seen to then",
    ),
    (
        "crates/ugni-sim-capi/src/witness.rs",
        "REFUSED",
        "what was refused and not tried again, which a witness counts when it is",
    ),
    (
        "crates/ugni-sim-capi/src/witness.rs",
        "MARKS",
        "what had been counted at each mark that the process made, for the end of the process to write",
    ),
    (
        "crates/ugni-sim-capi/src/call.rs",
        "CALL",
        "a thread's own note of the function it is in; no other thread sees it",
    ),
    (
        "crates/ugni-sim-capi/src/strict.rs",
        "STRICT_IN",
        "whether clients are held to the rules, asked once: the end of the process is seen to then",
    ),
    (
        "crates/ugni-sim-capi/src/trace.rs",
        "TRACER",
        "the file that the end of the process completes, if what happens is to be written down",
    ),
    ("crates/ugni-sim-capi/src/call.rs", "WATCHED", "whether anybody watches, asked once"),
    (
        "crates/sync/src/fault.rs",
        "PASSED",
        "counts passages of kill points, in builds made to be killed only",
    ),
    (
        "crates/sync/src/fault.rs",
        "TARGET",
        "the kill point that the environment names, read once, in those builds only",
    ),
    ("crates/sync/src/tally.rs", "", "counts locks and copies, in those builds only"),
    ("crates/sync/src/fault.rs", "HOOK", "a test's own hook, in those builds only"),
    (
        "crates/sync/src/mutation.rs",
        "CHOSEN",
        "the planted bug that the environment names, in checker builds only",
    ),
    ("crates/sync/src/atomic.rs", "ANCHOR", "stands for fences under the thread sanitizer only"),
    (
        "crates/core/src/engine/thread.rs",
        "STATE",
        "a thread's own mark that it runs a handler or holds a lock; no other thread sees it",
    ),
    ("crates/core/src/engine/thread.rs", "POLLS", "a thread's own count of its polls"),
    (
        "crates/core/src/engine/thread.rs",
        "NUMBERS",
        "which numbers threads have; taken by each that communicates in a job of several domains, and when it ends",
    ),
    ("crates/tools-capi/src/backtrace.rs", "OF_CRASHES", "a handler of signals reads no environment"),
    (
        "crates/tools-capi/src/backtrace.rs",
        "HERE",
        "functions of the tools name no job: whether this rank is to print any",
    ),
    (
        "crates/tools-capi/src/backtrace.rs",
        "gasnett_backtrace_user",
        "a client of the tools defines its own way to print a backtrace",
    ),
    (
        "crates/tools-capi/src/backtrace.rs",
        "gasnett_print_backtrace_ifenabled",
        "clients of the tools assign to it",
    ),
    ("crates/tools-capi/src/crash.rs", "RANK", "a handler of signals says which rank it is that they end"),
    (
        "crates/tools-capi/src/environ.rs",
        "SPEAKS",
        "functions of the tools name no job: whether this process says which settings it reads",
    ),
    (
        "crates/tools-capi/src/fatal.rs",
        "PLACES",
        "a fatal error is told where it was found, in a signal's handler too",
    ),
    (
        "crates/tools-capi/src/freeze.rs",
        "gasnet_frozen",
        "a debugger looks for it by this name, and changes it",
    ),
    (
        "crates/tools-capi/src/freeze.rs",
        "WAITS_FOR",
        "what a frozen process waits for, which may be a client's",
    ),
    ("crates/tools-capi/src/freeze.rs", "TURN", "a process is frozen once, whichever threads find errors"),
    ("crates/tools-capi/src/freeze.rs", "OF_CRASHES", "a handler of signals does not read the environment"),
    (
        "crates/tools-capi/src/library.rs",
        "gasworks_tools_fence_place",
        "the place of a fence where the processor has no instruction for one",
    ),
    ("crates/tools-capi/src/host.rs", "HOST", "C's functions give texts that nobody frees"),
    ("crates/tools-capi/src/machine.rs", "PROGRAM", "C's functions give texts that nobody frees"),
    ("crates/tools-capi/src/signals.rs", "NAMES", "C's functions give texts that nobody frees"),
    ("crates/tools-capi/src/timer.rs", "RATE", "the rate of ticks is found once for a process"),
];

/// Types whose value changes behind a shared reference.
const MUTABLE: &[&str] = &[
    "Atomic",
    "Mutex",
    "RwLock",
    "OnceLock",
    "LazyLock",
    "RefCell",
    "Cell<",
    "UnsafeCell",
    "Once",
    "Tally",
    "Slab<",
];

/// Statics below `capi` that can change.
pub fn statics(tree: &Tree) -> Result<Vec<String>> {
    let (mut found, mut needed) = (Vec::new(), BTreeSet::new());
    // The harness of tests counts what a process of its own does.
    for file in
        tree.products().filter(|f| f.package().is_none_or(|name| !["capi", "testkit"].contains(&name)))
    {
        let code = file.code();
        for (name, line, why) in mutable_statics(cut_tests(&code)) {
            let allowed =
                |(path, n, _): &(&str, &str, &str)| *path == file.path && (n.is_empty() || *n == name);
            let by: Vec<usize> = (0..ALLOWED.len()).filter(|&at| allowed(&ALLOWED[at])).collect();
            if by.is_empty() {
                found.push(format!("{}:{line}: static {name}: {why}", file.path));
            }
            needed.extend(by);
        }
    }
    for (at, (path, name, reason)) in ALLOWED.iter().enumerate() {
        let is_needed = needed.contains(&at) || !has_package(tree, path);
        if reason.is_empty() || !is_needed {
            found.push(format!(
                "xtask/src/tidy/statics.rs: the exception {path} {name} is not needed any more"
            ));
        }
    }
    Ok(found)
}

/// Whether a tree has the crate of the file that is named.
fn has_package(tree: &Tree, path: &str) -> bool {
    let named = Source { path: path.into(), text: String::new() };
    tree.files.iter().any(|f| f.package().is_some() && f.package() == named.package())
}

/// Name, line and kind of the statics in `code` that can change.
fn mutable_statics(code: &str) -> Vec<(String, usize, &'static str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("static ") {
        // Not `'static `, nor part of a longer word.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '\'') {
            continue;
        }
        let rest = &code[at + "static ".len()..];
        let (changeable, rest) = rest.strip_prefix("mut ").map_or((false, rest), |rest| (true, rest));
        let Some((name, after)) = rest.split_once(':') else { continue };
        let kind = after.split(['=', ';']).next().unwrap_or_default();
        let why = match (
            changeable,
            MUTABLE.iter().any(|m| kind.contains(m)),
            code[..at].trim_end().ends_with('{'),
        ) {
            (true, ..) => "`static mut`",
            (_, true, _) => "its type can change behind a reference",
            _ => continue,
        };
        found.push((name.trim().to_owned(), line_of(code, at), why));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_primitives_are_found() {
        let text = "// core::sync::atomic in a comment\nuse core::sync::atomic::AtomicU32;\n\
                    #[cfg(test)]\nmod tests {\nuse std::sync::atomic::AtomicU8;\n}";
        let tree = Tree::of(&[("crates/pshm/src/a.rs", text), ("crates/sync/src/a.rs", text)]);
        let found = atomics(&tree).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/pshm/src/a.rs:2:"));
    }

    #[test]
    fn statics_that_change_are_found() {
        let text = "static NAMES: &[&'static str] = &[];\nstatic mut A: u32 = 0;\nstatic B: AtomicU32 = AtomicU32::new(0);\n\
                    fn f(x: &'static Mutex<u8>) { static C: std::sync::OnceLock<u8> = OnceLock::new(); }";
        let mut found = statics(&Tree::of(&[("crates/core/src/a.rs", text)])).unwrap();
        found.retain(|f| f.contains(": static "));
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn exceptions_that_nothing_needs_are_found() {
        let stale = |text: &str| {
            let found = statics(&Tree::of(&[("crates/sock-capi/src/table.rs", text)])).unwrap();
            found.iter().any(|f| f.contains("the exception crates/sock-capi/src/table.rs TABLE"))
        };
        assert!(stale("fn none() {}"));
        assert!(!stale("static TABLE: Mutex<u8> = Mutex::new(0);"));
    }

    #[test]
    fn exceptions_hold_for_their_file_only() {
        let text = "static ANCHOR: AtomicU32 = AtomicU32::new(0);";
        let tree = |path| Tree::of(&[(path, text)]);
        assert!(
            !statics(&tree("crates/sync/src/atomic.rs"))
                .unwrap()
                .iter()
                .any(|f| f.contains("static ANCHOR:"))
        );
        assert!(
            statics(&tree("crates/sync/src/cell.rs")).unwrap().iter().any(|f| f.contains("static ANCHOR:"))
        );
    }
}
