//! Commands that the documentation tells people to type.
//!
//! A fenced block marked `sh` holds a command a line; in one marked `console` commands start with `$ `. Each is either
//! in the table here, which names the row that runs it, or stands under the line `<!-- not-run: REASON -->`.

use crate::scan::Tree;
use anyhow::Result;

/// Who runs a documented command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A row of its own, `documented/...`, runs it word for word.
    Itself,
    /// This row runs the same thing.
    Row(&'static str),
}

/// The commands in README and docs, and the rows that run them.
const TABLE: &[(&str, By)] = &[
    ("cargo xtask demo", By::Row("demo/real-reads")),
    ("cargo build --release", By::Row("build/release")),
    ("cargo xtask test --list", By::Itself),
    ("cargo xtask test --row static/format", By::Itself),
    ("cargo xtask test --list --row conformance", By::Itself),
    ("cargo xtask tidy", By::Row("tidy/floors")),
    ("cargo xtask loom", By::Row("loom/build")),
    ("cargo xtask miri", By::Row("miri/shmem")),
    ("cargo xtask tsan", By::Row("tsan/shmem")),
];

/// The table, for the rows that are made of it and the test that the other rows exist.
pub fn documented_commands() -> &'static [(&'static str, By)] {
    TABLE
}

/// Commands that no row runs and that do not say why.
pub fn commands(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md") && f.path != "CHANGELOG.md") {
        for command in documented(&file.text) {
            let known = TABLE.iter().any(|(text, _)| *text == command.text);
            match command.reason {
                Some(reason) if reason.len() < 10 => {
                    found.push(format!("{}:{}: `not-run` needs a reason", file.path, command.line));
                }
                None if !known => {
                    let Command { line, text, .. } = command;
                    found.push(format!(
                        "{}:{line}: no row runs `{text}`: see xtask/src/tidy/commands.rs",
                        file.path
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

#[derive(Debug, PartialEq, Eq)]
struct Command<'a> {
    line: usize,
    text: &'a str,
    reason: Option<&'a str>,
}

fn documented(text: &str) -> Vec<Command<'_>> {
    let mut found = Vec::new();
    let (mut fence, mut reason) = (None, None);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(marker) = trimmed.strip_prefix("<!-- not-run:") {
            reason = Some(marker.trim_end_matches("-->").trim());
        } else if let Some(language) = trimmed.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            if fence.is_none() {
                reason = None;
            }
        } else {
            let command = match fence {
                Some("sh" | "bash") => Some(trimmed).filter(|l| !l.is_empty() && !l.starts_with('#')),
                Some("console") => trimmed.strip_prefix("$ "),
                _ => None,
            };
            found.extend(command.map(|text| Command { line: at + 1, text, reason }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_nothing_runs_is_found() {
        let text = "```sh\n# why\ncargo xtask demo\nrm --weird\n```\n```console\n$ ls\nfile\n```\n```rust\nlet x;\n```\n\
                    <!-- not-run: needs a second machine -->\n```sh\nssh there\n```\n```sh\nssh here\n```\n";
        let found = commands(&Tree::of(&[("docs/src/a.md", text), ("CHANGELOG.md", text)])).unwrap();
        let lines: Vec<_> = found.iter().map(|f| f.split(' ').next().unwrap()).collect();
        assert_eq!(lines, ["docs/src/a.md:4:", "docs/src/a.md:7:", "docs/src/a.md:18:"], "{found:?}");
    }

    #[test]
    fn a_marker_without_a_reason_is_found() {
        let text = "<!-- not-run: -->\n```sh\nls\n```\n";
        assert!(commands(&Tree::of(&[("README.md", text)])).unwrap()[0].contains("needs a reason"));
    }
}
