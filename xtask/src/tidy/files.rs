//! Rules about single files: their size, their words, and where unsafe code stands.

use crate::scan::{Tree, cut_tests, line_of};
use anyhow::Result;

/// The most lines that a source file may have.
const MOST_LINES: usize = 800;

/// Source files that are too long.
pub fn sizes(tree: &Tree) -> Result<Vec<String>> {
    let long = tree.rust().map(|f| (f, f.text.lines().count())).filter(|(_, lines)| *lines > MOST_LINES);
    Ok(long.map(|(f, lines)| format!("{}: {lines} lines", f.path)).collect())
}

/// What is never committed, put together so that this file does not hold it. The last says what it is.
fn forbidden() -> Vec<(String, &'static str)> {
    vec![
        (["to", "do!("].concat(), "unfinished"),
        (["unimple", "mented!("].concat(), "unfinished"),
        (["db", "g!("].concat(), "debugging"),
        (["FIX", "ME"].concat(), "unfinished"),
        (["#[ig", "nore"].concat(), "a test that does not run"),
        (["allow(dead", "_code)"].concat(), "silenced"),
        (["allow(un", "used"].concat(), "silenced"),
        (["/wo", "rk/"].concat(), "a path of one machine"),
        (["/ho", "me/"].concat(), "a path of one machine"),
        (["https://ind", "ex."].concat(), "a registry's host"),
        (["https://sta", "tic."].concat(), "a registry's host"),
        (["registry+", "http://"].concat(), "a registry's host"),
    ]
}

/// Words that do not belong in the repository.
pub fn words(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let wanted = ["rs", "toml", "md", "sh", "h", "c", "lock", "svg"];
    for file in &tree.files {
        let extension = file.path.rsplit_once('.').map_or("", |(_, e)| e);
        if !wanted.contains(&extension) && !file.path.starts_with(".ci/") && !file.path.starts_with("ci/") {
            continue;
        }
        for (word, what) in forbidden() {
            for (at, _) in file.text.match_indices(&word) {
                found.push(format!("{}:{}: {word}: {what}", file.path, line_of(&file.text, at)));
            }
        }
    }
    Ok(found)
}

/// Files with unsafe code that do not open with numbered invariants, and `SAFETY` comments that cite nothing.
pub fn safety(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.products() {
        let code = file.code();
        let product = cut_tests(&code);
        let Some(first) = unsafe_at(product) else { continue };
        let header: Vec<_> =
            file.text.lines().take_while(|l| l.starts_with("//") || l.trim().is_empty()).collect();
        let invariants: Vec<_> =
            header.iter().filter_map(|line| invariant(line.strip_prefix("//! ")?)).collect();
        if invariants.is_empty() && !file.text.contains("forbid(unsafe") {
            let line = line_of(product, first);
            found.push(format!(
                "{}:{line}: unsafe code, but the file opens with no numbered invariant",
                file.path
            ));
        }
    }
    Ok(found)
}

/// Where unsafe code starts: a block, a function or an implementation, not the word in an attribute.
fn unsafe_at(code: &str) -> Option<usize> {
    let opens = |at: &usize| {
        let rest = code[at + "unsafe".len()..].trim_start();
        ["{", "impl"].iter().any(|next| rest.starts_with(next))
    };
    code.match_indices("unsafe").map(|(at, _)| at).find(opens)
}

/// The name of the invariant that a line of a module's head states: `R1. ...` or `- **R1** ...`.
fn invariant(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '-', '*']);
    let end = line.find(['.', ':', '*', ' '])?;
    let name = &line[..end];
    let letters = name.chars().take_while(char::is_ascii_uppercase).count();
    let digits = &name[letters..];
    ((1..=3).contains(&letters) && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found() {
        let long = "\n".repeat(MOST_LINES + 1);
        assert_eq!(sizes(&Tree::of(&[("a.rs", &long), ("b.rs", "x")])).unwrap(), ["a.rs: 801 lines"]);
    }

    #[test]
    fn each_forbidden_word_is_found() {
        for (word, _) in forbidden() {
            let found = words(&Tree::of(&[("README.md", &format!("a\nb {word} c"))])).unwrap();
            assert!(found.iter().any(|f| f.starts_with("README.md:2: ")), "{word}");
        }
    }

    #[test]
    fn unsafe_code_without_invariants_is_found() {
        let bare = "//! Copies.\nfn f() { unsafe { g() } }";
        let good = "//! Copies.\n//!\n//! # Invariants\n//! R1. It is mapped.\nfn f() { unsafe { g() } }";
        let tests_only = "//! Copies.\n#[cfg(test)]\nmod tests {\n unsafe { g() } }";
        let tree = Tree::of(&[
            ("crates/os/src/a.rs", bare),
            ("crates/os/src/b.rs", good),
            ("crates/os/src/c.rs", tests_only),
            ("crates/os/src/d.rs", "#![deny(unsafe_op_in_unsafe_fn)]"),
        ]);
        let found = safety(&tree).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/os/src/a.rs:2:"));
    }

    #[test]
    fn invariants_have_a_letter_and_a_number() {
        assert_eq!(invariant("Y1. A run"), Some("Y1"));
        assert_eq!(invariant("- **RB12** a run"), Some("RB12"));
        assert_eq!(invariant("A run. B2"), None);
        assert_eq!(invariant("R. x"), None);
    }
}
