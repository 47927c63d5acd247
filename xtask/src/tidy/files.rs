//! Rules about single files: their size, their words, and where unsafe code stands.

use anyhow::Result;
use gasworks_testkit::scan::{Tree, cut_tests, line_of};
use std::collections::BTreeSet;

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

/// `SAFETY` comments that cite no invariant that the head of a module states, this one's or another's.
pub fn safety(tree: &Tree) -> Result<Vec<String>> {
    let heads =
        tree.products().flat_map(|f| f.text.lines()).filter_map(|l| l.trim_start().strip_prefix("//"));
    let stated: BTreeSet<_> =
        heads.filter_map(|l| invariant(l.trim_start_matches(['!', '/', ' ']))).collect();
    let mut found = Vec::new();
    for file in tree.products() {
        let mut lines = cut_tests(&file.text).lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            let Some(first) = line.trim_start().strip_prefix("// SAFETY:") else { continue };
            let mut comment = first.to_owned();
            while let Some(more) = lines.peek().and_then(|(_, l)| l.trim_start().strip_prefix("//")) {
                comment.push_str(more);
                lines.next();
            }
            let words = comment.split(|c: char| !c.is_ascii_alphanumeric());
            // Inside an unsafe function the obligation is the caller's; of two implementations the second repeats the first.
            if !words.clone().any(|word| stated.contains(word))
                && !["caller", "as above"].iter().any(|t| comment.contains(t))
            {
                found.push(format!("{}:{}: SAFETY cites no invariant:{}", file.path, at + 1, first));
            }
        }
    }
    Ok(found)
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
    fn a_safety_comment_that_cites_nothing_is_found() {
        let states =
            "//! Copies.\n//!\n//! # Invariants\n//! R1. It is mapped.\n// SAFETY: R1: it is.\nunsafe {}";
        let cites = "// SAFETY: the run is long enough\n// (R1 of a).\nunsafe { g() }\n// SAFETY: the caller's promise.";
        let cites_nothing = "fn f() {\n    // SAFETY: this pointer is valid, R2.\n    unsafe { g() }\n}";
        let tree = Tree::of(&[
            ("crates/os/src/a.rs", states),
            ("crates/os/src/b.rs", cites),
            ("crates/os/src/c.rs", cites_nothing),
        ]);
        let found = safety(&tree).unwrap();
        assert_eq!(found, ["crates/os/src/c.rs:2: SAFETY cites no invariant: this pointer is valid, R2."]);
    }

    #[test]
    fn invariants_have_a_letter_and_a_number() {
        assert_eq!(invariant("Y1. A run"), Some("Y1"));
        assert_eq!(invariant("- **RB12** a run"), Some("RB12"));
        assert_eq!(invariant("A run. B2"), None);
        assert_eq!(invariant("R. x"), None);
    }
}
