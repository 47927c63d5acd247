//! Rules about single files: their size and their words.

use anyhow::Result;
use gasworks_testkit::scan::{Tree, line_of};

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
}
