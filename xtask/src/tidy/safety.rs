//! Unsafe code: the invariants that modules state, and the comments that cite them.

use anyhow::Result;
use gasworks_testkit::scan::{Source, Tree};
use std::collections::BTreeMap;

/// The fewest words of a `SAFETY` comment, beside what it cites.
const LEAST_WORDS: usize = 3;

/// Invariants with a name that another of the crate has; `SAFETY` comments that say nothing of their own; and citations of what is not
/// stated by the module itself, by one above it, by one that it names, or by the crate that the citation names.
pub fn safety(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut stated = BTreeMap::new();
    for file in tree.rust() {
        for (number, line) in file.text.lines().enumerate() {
            let Some(tag) = invariant(line) else { continue };
            let key = (package(file), tag.to_owned());
            if let Some(first) = stated.insert(key, &*file.path) {
                found.push(format!("{}:{}: {tag} is also stated in {first}", file.path, number + 1));
            }
        }
    }
    for file in tree.rust() {
        for comment in comments(file) {
            let at = |what: String| format!("{}:{}: {what}", file.path, comment.line);
            let words = without_tags(&comment.text);
            if comment.is_of_block && (words.len() < LEAST_WORDS || words[..2] == ["as", "above"]) {
                found.push(at(format!("SAFETY says nothing of its own:{}", comment.text)));
            }
            for (tag, of) in citations(&comment.text) {
                let package = of.map_or_else(|| package(file), |of| of.replace('_', "-"));
                match stated.get(&(package, tag.to_owned())) {
                    None => found.push(at(format!("{tag} is stated nowhere"))),
                    Some(home) if of.is_none() && !is_seen(file, home) => {
                        found.push(at(format!("{tag} is of {home}, which this module does not name")));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    Ok(found)
}

/// Where invariants have to differ: a crate.
fn package(file: &Source) -> String {
    file.package().or_else(|| file.path.split('/').next()).unwrap_or_default().to_owned()
}

/// The name of the invariant that a line of a module's head states: `//! - memfd.1: ...`.
fn invariant(line: &str) -> Option<&str> {
    let (tag, _) = line.strip_prefix("//! - ")?.split_once(": ")?;
    is_tag(tag).then_some(tag)
}

/// Whether a word is a module's name, a dot, and a number.
fn is_tag(word: &str) -> bool {
    let Some((name, number)) = word.split_once('.') else { return false };
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && number.starts_with(|c| ('1'..='9').contains(&c))
        && number.chars().all(|c| c.is_ascii_digit())
}

/// What somebody promises or relies on.
struct Comment {
    /// From 1.
    line: usize,
    text: String,
    /// `SAFETY`, and not what a function asks of its callers.
    is_of_block: bool,
}

/// The comments on unsafe code, and the sections `# Safety` of documentation.
fn comments(file: &Source) -> Vec<Comment> {
    let mut found = Vec::new();
    let mut lines = file.text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let line = line.trim_start();
        let (mark, first) = match (line.strip_prefix("// SAFETY:"), line.strip_prefix("/// # Safety")) {
            (Some(first), _) => ("// ", first),
            (_, Some(first)) => ("/// ", first),
            _ => continue,
        };
        let mut text = first.to_owned();
        while let Some(more) = lines.peek().and_then(|(_, line)| line.trim_start().strip_prefix(mark)) {
            if more.starts_with("SAFETY:") || more.starts_with("# ") {
                break;
            }
            text = text + " " + more;
            lines.next();
        }
        found.push(Comment { line: at + 1, text, is_of_block: mark == "// " });
    }
    found
}

/// The words of a comment, without those that are invariants' names.
fn without_tags(text: &str) -> Vec<&str> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| !word.is_empty() && !is_tag(word)).collect()
}

/// The invariants that a comment names, with the folder of the crate whose they are, if it says so: `peers.1 of gasworks_memory`.
fn citations(text: &str) -> Vec<(&str, Option<&str>)> {
    let words: Vec<_> =
        text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let of = |at: usize| {
        let of =
            words[at + 1..].iter().take_while(|word| ["of", "and"].contains(word) || is_tag(word)).count();
        let named = (of > 0 && words[at + of] == "of").then(|| words.get(at + of + 1)).flatten()?;
        named.split("::").next()?.strip_prefix("gasworks_")
    };
    (0..words.len()).filter(|&at| is_tag(words[at])).map(|at| (words[at], of(at))).collect()
}

/// Whether a file sees the invariants of another: it is that file, lies below it, or names its module.
fn is_seen(file: &Source, home: &str) -> bool {
    let (folder, stem) = home.rsplit_once('/').unwrap_or(("", home));
    let stem = stem.strip_suffix(".rs").unwrap_or(stem);
    let module = ["mod", "lib", "main"].contains(&stem);
    let below = if module { folder.to_owned() } else { format!("{folder}/{stem}") };
    let name = if module { folder.rsplit('/').next().unwrap_or_default() } else { stem };
    let code = file.code();
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    file.path == home || file.path.starts_with(&format!("{below}/")) || words.any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: &str =
        "//! Copies.\n//!\n//! # Invariants\n//! - a.1: it is mapped.\n//! - a.2: it is aligned.\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("crates/os/src/a.rs", STATES)];
        all.extend_from_slice(files);
        safety(&Tree::of(&all)).unwrap()
    }

    #[test]
    fn a_comment_says_something_of_its_own() {
        let text = "use crate::a;\n// SAFETY: a.1, a.2.\nunsafe {}\n// SAFETY: as above, but for the other one.\nunsafe {}\n// SAFETY: a.1: the page was \
                    mapped\n// by `open`.\nunsafe {}";
        let found = found(&[("crates/os/src/b.rs", text)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/os/src/b.rs:2: SAFETY says nothing"), "{found:?}");
        assert!(found[1].starts_with("crates/os/src/b.rs:4: SAFETY says nothing"), "{found:?}");
    }

    #[test]
    fn a_citation_is_of_a_module_that_is_seen() {
        let cites = "// SAFETY: a.1: it was mapped before.\n// SAFETY: a.3: it is long enough.\n";
        let found = found(&[
            ("crates/os/src/b.rs", cites),
            ("crates/os/src/c.rs", "use crate::a::map;\n/// # Safety\n/// a.1, a.2.\n"),
            ("crates/os/src/a/below.rs", "// SAFETY: a.2: it was aligned before.\n"),
            (
                "crates/pshm/src/a.rs",
                "// SAFETY: a.1 of `gasworks_os`: it was mapped.\n// SAFETY: a.1: it was mapped here.\n",
            ),
            (
                "crates/pshm/src/b.rs",
                "// SAFETY: a.1 and a.2 of `gasworks_os::a` hold here.\n// SAFETY: a.7 of `gasworks_os` holds here.\n",
            ),
        ]);
        let wanted = [
            "crates/os/src/b.rs:1: a.1 is of crates/os/src/a.rs, which this module does not name",
            "crates/os/src/b.rs:2: a.3 is stated nowhere",
            "crates/pshm/src/a.rs:2: a.1 is stated nowhere",
            "crates/pshm/src/b.rs:2: a.7 is stated nowhere",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn an_invariant_has_a_name_of_its_own_in_its_crate() {
        let found = found(&[("crates/os/src/x/a.rs", STATES), ("crates/pshm/src/a.rs", STATES)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "crates/os/src/x/a.rs:4: a.1 is also stated in crates/os/src/a.rs");
    }

    #[test]
    fn tags_are_told_from_other_words() {
        for (word, is_one) in [
            ("memfd.1", true),
            ("a_b2.17", true),
            ("a.0", false),
            ("1.2", false),
            ("A.1", false),
            ("a.b", false),
            ("a.1b", false),
        ] {
            assert_eq!(is_tag(word), is_one, "{word}");
        }
        assert_eq!(invariant("//! - a.1: x"), Some("a.1"));
        assert_eq!((invariant("//! a.1: x"), invariant("//! - A1: x")), (None, None));
    }
}
