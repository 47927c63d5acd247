//! The harness under the tests, benches and `xtask` of Gasworks. It knows nothing of the product but the names of programs.
//!
//! - [`command`]: running programs under a limit on time, with their output kept.
//! - [`leftovers`]: finding what a job left: processes and shared memory.
//! - [`programs`]: what tests run and link, built once.
//! - [`cases`]: tables of cases as test programs.
//! - [`needs`]: what a test needs of the machine, and `ci/expected-skips`.
//! - [`hosts`]: hosts that are namespaces of this machine, and launchers over them.
//! - [`pairwise`]: covering sets of combinations.
//! - [`scan`]: reading the sources: comments told from code, names in macros.
//! - [`c`] and [`nic`]: what programs in C, and jobs over the software NIC, are built and started with.
//! - [`output`] and [`suite`]: judging what programs and the conformance suite wrote; [`settings`]: reading `gasrun --env`.
//! - [`stats`] and [`machine`]: medians, intervals, and stolen time.
#![deny(missing_docs)]

pub mod c;
pub mod cases;
pub mod command;
pub mod files;
pub mod hosts;
pub mod leftovers;
pub mod machine;
pub mod needs;
pub mod nic;
pub mod output;
pub mod pairwise;
pub mod programs;
pub mod scan;
pub mod settings;
pub mod sources;
pub mod stats;
pub mod suite;

pub use cases::Case;
pub use command::{Cmd, Ended, Log};
pub use needs::Need;

use std::path::PathBuf;

/// The repository's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

/// The lines `LEFT : RIGHT` of a list, with their numbers; `#` starts a comment.
pub fn pairs_of(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        let (left, right) = line.split_once(" : ").map_or((line, None), |(l, r)| (l.trim(), Some(r.trim())));
        (!line.is_empty()).then_some((at + 1, left, right))
    })
}

/// Whether `name` is meant by `pattern`: `*` stands for any text; without one, any part of the name will do.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let (Some(first), true) = (parts.next(), pattern.contains('*')) else { return name.contains(pattern) };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// A duration as minutes and seconds.
pub fn minutes(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches("loom", "mutation/loom-x"));
        assert!(matches("a/*/c", "a/b/c") && matches("*", "x") && matches("a/*", "a/"));
        assert!(!matches("a/*/c", "a/c") && !matches("b*", "ab") && !matches("*b", "bc"));
    }

    #[test]
    fn minutes_are_whole() {
        let shown = |seconds| minutes(std::time::Duration::from_secs_f64(seconds));
        assert_eq!((shown(59.94).as_str(), shown(119.7).as_str()), ("59.9 s", "1 min 59 s"));
    }
}
