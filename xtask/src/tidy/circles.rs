//! Modules of a crate that need each other.

use anyhow::Result;
use gasworks_testkit::scan::{Source, Tree, cut_tests};
use std::collections::{BTreeMap, BTreeSet};

/// Crates in which there still are circles. The software NIC stands beside the building, and nobody reads it to learn of that.
const KNOWN: &[&str] = &["ugni-sim", "ugni-sim-capi"];

/// The names that lead to a module from the root of its crate, or to an item.
type Path = Vec<String>;

/// What one module says of others.
#[derive(Default)]
struct Module {
    file: String,
    /// What it names, as it writes it.
    names: Vec<Path>,
    /// What it passes on under a name of its own (`pub use`): that is no need of it.
    shows: BTreeMap<String, Path>,
}

/// Circles among the modules of a crate: of each the modules, and of each arrow one name. A module may name what is above it, of which it is a
/// part.
pub fn circles(tree: &Tree) -> Result<Vec<String>> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Module>> = BTreeMap::new();
    for file in tree.products() {
        if let (Some(package), Some(path)) = (file.package(), module_of(file)) {
            crates.entry(package).or_default().insert(path, Module::read(file));
        }
    }
    let mut found = Vec::new();
    for (package, modules) in &crates {
        let circles = circles_of(modules);
        let is_known = KNOWN.contains(package);
        if is_known && circles.is_empty() {
            found.push(format!("{package} has no circles, and is listed in xtask/src/tidy/circles.rs"));
        } else if !is_known {
            found.extend(circles);
        }
    }
    Ok(found)
}

/// The module that a file of a library is; `None` for programs.
fn module_of(file: &Source) -> Option<Path> {
    let inside = file.path.split_once("/src/")?.1.strip_suffix(".rs")?;
    let mut path: Path = inside.split('/').map(str::to_owned).collect();
    match path.last()?.as_str() {
        "main" if path.len() == 1 => return None,
        "lib" if path.len() == 1 => path.clear(),
        "mod" => _ = path.pop(),
        _ if path[0] == "bin" => return None,
        _ => {}
    }
    Some(path)
}

impl Module {
    fn read(file: &Source) -> Self {
        let code = file.code();
        let code = cut_tests(&code);
        let mut module = Self { file: file.path.clone(), ..Self::default() };
        let mut rest = String::new();
        for statement in code.split_inclusive(';') {
            // A `use` begins a line; what stands before it in the statement is code.
            let at = statement
                .match_indices("use ")
                .map(|(at, _)| at)
                .find(|&at| is_use(statement.get(..at).unwrap_or_default()));
            let Some(at) = at else {
                rest.push_str(statement);
                continue;
            };
            let line = statement[..at].rfind('\n').map_or(0, |end| end + 1);
            rest.push_str(&statement[..line]);
            let is_shown = statement[line..at].trim_start().starts_with("pub");
            let mut paths = Vec::new();
            spread(&[], statement[at + 4..].trim_end_matches(';'), &mut paths);
            for (path, name) in paths {
                if is_shown {
                    module.shows.insert(name, path);
                } else {
                    module.names.push(path);
                }
            }
        }
        module.names.extend(written_out(&rest));
        module
    }
}

/// Whether a `use` may follow what stands before it: nothing on its line but who may see it.
fn is_use(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line == "pub" || line.starts_with("pub(") && line.ends_with(')')
}

/// The paths of a `use`, each with the name that it gives.
fn spread(before: &[String], text: &str, paths: &mut Vec<(Path, String)>) {
    let text = text.trim();
    let words = |text: &str| {
        let words = text.split("::").map(|word| word.trim().to_owned()).filter(|word| !word.is_empty());
        before.iter().cloned().chain(words).collect::<Path>()
    };
    let Some((head, group)) = text.split_once('{') else {
        let (path, name) = text.split_once(" as ").unwrap_or((text, ""));
        let mut path = words(path);
        path.pop_if(|last| last == "self");
        let name = Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        if !path.is_empty() {
            paths.push((path, name));
        }
        return;
    };
    let (before, group) = (words(head), group.trim_end().trim_end_matches('}'));
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in group.char_indices().chain([(group.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                // A path within the group begins where the group does.
                spread(&before, &group[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Paths of two names and more that stand in code.
fn written_out(code: &str) -> Vec<Path> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_of_path(c)).filter(|word| word.contains("::") && !word.starts_with(':'));
    words.map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()).collect()
}

/// Where a path begins that is written in the module `at`, and what follows; `None` if it leads out of the crate.
fn begin<'a>(
    modules: &BTreeMap<Path, Module>,
    at: &[String],
    path: &'a [String],
) -> Option<(Path, &'a [String])> {
    let above = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some((Path::new(), &path[1..])),
        "self" => Some((at.to_vec(), &path[1..])),
        "super" => Some((at.get(..at.len().checked_sub(above)?)?.to_vec(), &path[above..])),
        first => {
            let is_child = modules.contains_key(&[at, &[first.to_owned()]].concat());
            is_child.then(|| (at.to_vec(), path))
        }
    }
}

/// The module of the item to which a path leads that is written in the module `at`, and the item's name; `None` if it leads out of the crate.
fn resolve(modules: &BTreeMap<Path, Module>, at: &[String], path: &[String]) -> Option<(Path, String)> {
    let (mut home, rest) = begin(modules, at, path)?;
    for name in rest {
        home.push(name.clone());
        if modules.contains_key(&home) {
            continue;
        }
        home.pop();
        // It may be shown by this module, and of another.
        let shown = modules.get(&home).and_then(|module| module.shows.get(name));
        let home =
            shown.map_or(Some(home.clone()), |path| resolve(modules, &home, path).map(|(home, _)| home));
        return home.map(|home| (home, name.clone()));
    }
    Some((home, path.last()?.clone()))
}

/// Where arrows lead from a module, one after another.
fn reached<'a>(arrows: &'a BTreeMap<&Path, BTreeMap<Path, String>>, from: &'a Path) -> BTreeSet<&'a Path> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(arrows.get(next).into_iter().flat_map(BTreeMap::keys).filter(|to| seen.insert(*to)));
    }
    seen
}

/// The circles, in words.
fn circles_of(modules: &BTreeMap<Path, Module>) -> Vec<String> {
    let mut arrows: BTreeMap<&Path, BTreeMap<Path, String>> = BTreeMap::new();
    for (path, module) in modules {
        let to = arrows.entry(path).or_default();
        for (home, name) in module.names.iter().filter_map(|named| resolve(modules, path, named)) {
            if !path.starts_with(&home) {
                to.entry(home).or_insert(name);
            }
        }
    }
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        modules.keys().map(|path| (path, reached(&arrows, path))).collect();
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for (path, module) in modules {
        let circle: BTreeSet<&Path> = reached[path]
            .iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|to| to.contains(path)))
            .collect();
        if circle.is_empty() || !told.insert(circle.clone()) {
            continue;
        }
        let all: Vec<String> = circle.iter().map(|path| path.join("::")).collect();
        found.push(format!("{}: a circle of {}", module.file, all.join(", ")));
        for from in &circle {
            let inside = arrows[*from].iter().filter(|(to, _)| circle.contains(to));
            found.extend(
                inside.map(|(to, name)| format!("    {} names {name} of {}", from.join("::"), to.join("::"))),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        circles(&Tree::of(&[files, NIC].concat())).expect("read")
    }

    /// The crates that are listed have circles.
    const NIC: &[(&str, &str)] = &[
        ("crates/ugni-sim/src/a.rs", "use crate::b::B;"),
        ("crates/ugni-sim/src/b.rs", "use crate::a::A;"),
        ("crates/ugni-sim-capi/src/a.rs", "use crate::b::B;"),
        ("crates/ugni-sim-capi/src/b.rs", "use crate::a::A;"),
    ];

    #[test]
    fn circles_are_found_by_each_way_of_naming() {
        let lib = ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use b::{deep::Shown, B};\n");
        let deep = ("crates/x/src/b/deep.rs", "pub struct Shown;");
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use super::b::{B, C as D};\n", "use super::{a::A};"),
            ("use crate::{\n    c,\n    b::{self, B},\n};\n", "fn f() { crate::a::f() }"),
            ("fn f(_: super::b::B) {}", "pub(crate) mod deep;\nuse crate::a;"),
            ("use crate::B;", "use crate::a::*;"),
        ] {
            let found = found(&[lib, deep, ("crates/x/src/a.rs", a), ("crates/x/src/b/mod.rs", b)]);
            assert!(found.len() >= 3 && found[0].ends_with("a circle of a, b"), "{a} {b}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_need_is_no_arrow() {
        for (a, b) in [
            ("pub use crate::b::B;", "use crate::a::A;"),
            ("// use crate::b::B;\n\"crate::b::B\";", "use crate::a::A;"),
            ("#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}", "use crate::a::A;"),
            ("use other::b::B;", "use crate::a::A;"),
        ] {
            let found = found(&[("crates/x/src/a.rs", a), ("crates/x/src/b.rs", b)]);
            assert_eq!(found, [""; 0], "{a} {b}");
        }
        // A part names what is above it.
        let above = ("crates/x/src/a/mod.rs", "mod part;\nuse part::Part;");
        assert_eq!(found(&[above, ("crates/x/src/a/part.rs", "use super::A;")]), [""; 0]);
    }

    #[test]
    fn a_circle_of_three_is_told_once() {
        let files = ["use crate::b::B;", "use crate::c::C;", "use crate::a::A;"];
        let names = ["crates/x/src/a.rs", "crates/x/src/b.rs", "crates/x/src/c.rs"];
        let found = found(&names.into_iter().zip(files).collect::<Vec<_>>());
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[1], "    a names B of b");
    }

    #[test]
    fn a_crate_is_listed_as_long_as_it_has_circles() {
        let found = circles(&Tree::of(&[("crates/ugni-sim/src/a.rs", "use crate::b::B;")])).expect("read");
        assert_eq!(found, ["ugni-sim has no circles, and is listed in xtask/src/tidy/circles.rs"]);
    }
}
