//! Orderings, planted bugs and kill points: what `shmem` and `pshm` publish has a name.

use crate::scan::{Site, Tree, cut_tests, line_of};
use anyhow::Result;

const SHARED: &[&str] = &["shmem", "pshm"];
const STRONG: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// Orderings above `Relaxed` in `shmem` and `pshm` that no mutation can weaken.
pub fn named(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.products().filter(|f| f.package().is_some_and(|p| SHARED.contains(&p))) {
        let code = file.code();
        for name in STRONG {
            for (at, _) in cut_tests(&code).match_indices(name) {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let (before, after) = (&code[..at], &code[at + name.len()..]);
                if before.ends_with(word) || after.starts_with(word) {
                    continue;
                }
                // ord!("name", Acquire): the string is blanked, its quotes are not.
                let before = before.trim_end();
                let named = before.ends_with("\",") && before.rfind("ord!").is_some_and(|o| at - o < 200);
                let statement = code[..at].rfind(';').map_or(0, |s| s + 1);
                let imported = code[statement..at].lines().any(|l| l.trim_start().starts_with("use "));
                if !named && !imported {
                    found.push(format!("{}:{}: {name} without ord!", file.path, line_of(&code, at)));
                }
            }
        }
    }
    Ok(found)
}

fn twice(sites: &[Site]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        if let Some(first) = sites[..at].iter().find(|s| s.name == site.name) {
            let Site { name, file, line, .. } = site;
            found.push(format!("{file}:{line}: {name} is also in {}:{}", first.file, first.line));
        }
    }
    found
}

/// Names of planted bugs that stand in two places: a mutation spoils one thing.
pub fn mutation_names(tree: &Tree) -> Result<Vec<String>> {
    Ok(twice(&tree.sites(&["ord", "planted"])))
}

/// Files of `shmem` whose structures are one process's own: a process that is killed takes them along.
const PRIVATE: &[&str] = &["crates/shmem/src/credit.rs"];

/// How far from a publishing store its kill point may stand.
const NEAR: usize = 6;

/// Kill points with one name, and publishing stores without one.
pub fn kill_points(tree: &Tree) -> Result<Vec<String>> {
    let points = tree.sites(&["kill_point"]);
    let mut found = twice(&points);
    let shared = |path: &str, package: &str| SHARED.contains(&package) && !PRIVATE.contains(&path);
    for file in tree.products().filter(|f| f.package().is_some_and(|p| shared(&f.path, p))) {
        let code = file.code();
        for (at, _) in cut_tests(&code).match_indices("ord!") {
            let end = code[at..].find(')').map_or(code.len(), |n| at + n);
            let publishes = ["Release", "AcqRel"].iter().any(|o| code[at..end].contains(o));
            let line = line_of(&code, at);
            let near = |p: &&Site| p.file == file.path && p.line.abs_diff(line) <= NEAR;
            if publishes && !points.iter().any(|p| near(&p)) {
                found.push(format!(
                    "{}:{line}: a publishing store with no kill point within {NEAR} lines",
                    file.path
                ));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordering_without_a_name_is_found() {
        let text = "use x::Ordering::{self, Acquire};\nlet a = x.load(Ordering::Acquire);\n\
                    let b = x.load(ord!(\"a.b\", Acquire));\nx.store(1,\n ord!(\n\"a.c\",\n Release));\nlet ReleaseMe = 1;";
        let found =
            named(&Tree::of(&[("crates/shmem/src/a.rs", text), ("crates/core/src/a.rs", text)])).unwrap();
        assert_eq!(found, ["crates/shmem/src/a.rs:2: Acquire without ord!"]);
    }

    #[test]
    fn one_name_in_two_places_is_found() {
        let a = "ord!(\"x.y\", Release); planted!(\"x.z\")";
        let tree = Tree::of(&[("crates/shmem/src/a.rs", a), ("crates/pshm/src/b.rs", "planted!(\"x.y\")")]);
        assert_eq!(
            mutation_names(&tree).unwrap(),
            ["crates/shmem/src/a.rs:1: x.y is also in crates/pshm/src/b.rs:1"]
        );
    }

    #[test]
    fn a_publishing_store_without_a_kill_point_is_found() {
        let far = format!("x.store(1, ord!(\"a.b\", Release));{}kill_point!(\"p\");", "\n".repeat(NEAR + 1));
        let near = "kill_point!(\"q\");\nx.store(1, ord!(\"a.c\", Release)); x.load(ord!(\"a.d\", Acquire));";
        let tree = Tree::of(&[("crates/shmem/src/a.rs", &far), ("crates/shmem/src/b.rs", near)]);
        let found = kill_points(&tree).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/shmem/src/a.rs:1:"));
        let twice = Tree::of(&[("crates/pshm/src/a.rs", "kill_point!(\"q\"); kill_point!(\"q\")")]);
        assert_eq!(kill_points(&twice).unwrap().len(), 1);
    }
}
