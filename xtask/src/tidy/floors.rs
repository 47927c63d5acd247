//! One direction of dependency.

use anyhow::Result;
use gasworks_testkit::scan::Tree;

/// The floors of the building, ground floor first. A crate may use those of lower floors. `testkit`, the harness, knows
/// nothing of the building; `conformance` and `ugni-sim` stand beside it and may use all of it, and nothing of the building
/// uses them outside tests.
const FLOORS: &[&[&str]] = &[
    &["sync", "testkit"],
    &["os", "shmem"],
    &["memory", "sock", "gni-sys"],
    &["bootstrap", "cci", "rdma"],
    &["core"],
    &["extended"],
    &["pshm", "gni", "ofi", "kinds", "windows", "tools-capi"],
    &["gasworks"],
    &["capi", "cci-capi", "sock-capi", "launch", "perf"],
    &["capi-seq", "capi-par", "capi-parsync", "man"],
    &["conformance", "ugni-sim"],
    &["ugni-sim-capi"],
];

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// Dependencies that do not go down.
pub fn floors(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.starts_with("crates/") && f.path.ends_with("/Cargo.toml"))
    {
        let Some(name) = file.package() else { continue };
        let Some(own) = floor(name) else {
            found.push(format!("{}: the crate {name} has no floor in xtask/src/tidy/floors.rs", file.path));
            continue;
        };
        for (section, dependency) in dependencies(&file.text) {
            // A test may use what stands higher: cargo allows it, and it binds nobody who uses the crate.
            if section.ends_with("dev-dependencies") {
                continue;
            }
            if floor(&dependency).is_none_or(|other| other >= own) {
                found.push(format!(
                    "{}: {name} (floor {own}) depends on {dependency}, which is not below it",
                    file.path
                ));
            }
        }
    }
    Ok(found)
}

/// The crates of this workspace that a manifest names, with the section in which it does.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        } else if section.ends_with("dependencies") {
            let end = line.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(line.len());
            let name = &line[..end];
            if name == "gasworks" || name.starts_with("gasworks-") {
                found.push((section.clone(), name.trim_start_matches("gasworks-").to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_upwards_is_found() {
        let sock = "[dependencies]\ngasworks-os.workspace = true\ngasworks-core = { workspace = true }\n\
                    [dev-dependencies]\ngasworks-testkit.workspace = true\n";
        let found = floors(&Tree::of(&[("crates/sock/Cargo.toml", sock)])).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("sock (floor 2) depends on core"), "{found:?}");
    }

    #[test]
    fn a_crate_of_one_s_own_floor_and_one_without_are_found() {
        let manifest = "[target.'cfg(x)'.dependencies]\ngasworks-os.workspace = true\n";
        let found =
            floors(&Tree::of(&[("crates/shmem/Cargo.toml", manifest), ("crates/new/Cargo.toml", "")]))
                .unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
