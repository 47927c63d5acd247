//! Orderings and kill points: what `shmem` and `pshm` publish has a name.

use anyhow::Result;
use gasworks_testkit::scan::{Site, Tree, cut_tests, line_of};

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

/// Names of orderings that stand in two places: a mutation weakens one of them.
pub fn mutation_names(tree: &Tree) -> Result<Vec<String>> {
    Ok(twice(&tree.sites(&["ord"])))
}

/// Stores that publish to threads of one process, by name, and why no other process waits for them.
const PRIVATE: &[(&str, &str)] = &[
    ("credit.give_peer", "a sender's count of its own requests, on its heap: gone with the process"),
    ("credit.give_total", "a sender's count of its own requests, on its heap: gone with the process"),
    (
        "stock.fill",
        "blocks that a process has beforehand, on its heap: they stay claimed, as those in use do",
    ),
    ("owed.owe", "a receiver's count of what it owes, on its heap: gone with the process"),
];

/// How far from a publishing store its kill point may stand.
const NEAR: usize = 6;

/// Kill points with one name, and publishing stores without one of their own.
pub fn kill_points(tree: &Tree) -> Result<Vec<String>> {
    kill_points_but(tree, PRIVATE)
}

fn kill_points_but(tree: &Tree, private: &[(&str, &str)]) -> Result<Vec<String>> {
    let points = tree.sites(&["kill_point"]);
    let mut found = twice(&points);
    let stores = publishing(tree);
    let mut taken = vec![false; points.len()];
    for store in stores.iter().filter(|s| !private.iter().any(|(name, _)| *name == s.name)) {
        // Both lists are in order, so the first point that is near and free leaves the later ones the most.
        let near = |p: &Site| p.file == store.file && p.line.abs_diff(store.line) <= NEAR;
        match points.iter().zip(&taken).position(|(point, taken)| !taken && near(point)) {
            Some(point) => taken[point] = true,
            None => found.push(format!(
                "{}:{}: {} publishes, and no kill point within {NEAR} lines is its own",
                store.file, store.line, store.name
            )),
        }
    }
    for (name, reason) in private {
        if !stores.iter().any(|s| s.name == *name) || reason.len() < 10 {
            found.push(format!(
                "xtask/src/tidy/orderings.rs: {name} is no publishing store, or has no reason"
            ));
        }
    }
    Ok(found)
}

/// The stores of `shmem` and `pshm` that publish, in the order of the files.
fn publishing(tree: &Tree) -> Vec<Site> {
    let mut stores = tree.sites(&["ord"]);
    stores.retain(|store| {
        let Some(file) = tree.get(&store.file).filter(|_| SHARED.contains(&store.package.as_str())) else {
            return false;
        };
        let code = file.without_comments();
        let end = |at: usize| code[at..].find(')').map_or(code.len(), |n| at + n);
        let mut macros = code.match_indices("ord!").map(|(at, _)| &code[at..end(at)]);
        let named = format!("\"{}\"", store.name);
        macros.any(|text| {
            text.contains(&named) && ["Release", "AcqRel"].iter().any(|ordering| text.contains(ordering))
        })
    });
    stores
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
        let a = "ord!(\"x.y\", Release); ord!(\"x.z\", Acquire)";
        let tree =
            Tree::of(&[("crates/shmem/src/a.rs", a), ("crates/pshm/src/b.rs", "ord!(\"x.y\", Acquire)")]);
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
        let found = kill_points_but(&tree, &[]).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/shmem/src/a.rs:1: a.b publishes"));
        let twice = Tree::of(&[("crates/pshm/src/a.rs", "kill_point!(\"q\"); kill_point!(\"q\")")]);
        assert_eq!(kill_points_but(&twice, &[]).unwrap().len(), 1);
    }

    #[test]
    fn a_kill_point_covers_one_store_only() {
        let stores =
            "x.store(1, ord!(\"a.b\", Release));\nkill_point!(\"p\");\nx.store(2, ord!(\"a.c\", AcqRel));\n";
        let tree = Tree::of(&[("crates/shmem/src/a.rs", stores)]);
        let found = kill_points_but(&tree, &[]).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/shmem/src/a.rs:3: a.c publishes"));
        let both = format!("{stores}kill_point!(\"q\");");
        let tree = Tree::of(&[("crates/shmem/src/a.rs", &both)]);
        assert_eq!(kill_points_but(&tree, &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn an_exemption_is_one_name_with_a_reason() {
        let stores = "x.store(1, ord!(\"a.b\", Release));\nx.store(2, ord!(\"a.c\", Release));";
        let tree = Tree::of(&[("crates/shmem/src/a.rs", stores)]);
        let found = kill_points_but(&tree, &[("a.b", "nobody else sees it")]).unwrap();
        assert!(found.len() == 1 && found[0].contains("a.c publishes"), "{found:?}");
        let none = "why this is so";
        let found = kill_points_but(&tree, &[("a.b", ""), ("a.c", none), ("a.d", none)]).unwrap();
        assert!(found.len() == 2 && found[0].contains("a.b") && found[1].contains("a.d"), "{found:?}");
    }
}
