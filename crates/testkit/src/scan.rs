//! Reading the sources without compiling them: comments and strings told from code, and names in macros.

use crate::command::Cmd;
use anyhow::{Context, Result};

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path from the root, with slashes.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Source {
    /// The text with comments blanked; strings stay. Line breaks are kept.
    pub fn without_comments(&self) -> String {
        blank(&self.text, false)
    }

    /// The text with comments and the insides of strings blanked. Line breaks are kept.
    pub fn code(&self) -> String {
        blank(&self.text, true)
    }

    /// The folder under `crates/` that it belongs to.
    pub fn package(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether it is part of a library or program, not of its tests.
    pub fn is_product(&self) -> bool {
        let test = self.path.ends_with("/tests.rs") || self.path.contains("/tests/");
        self.path.ends_with(".rs") && self.path.contains("/src/") && self.path.starts_with("crates/") && !test
    }
}

/// The files of the repository that are text.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// In order of path.
    pub files: Vec<Source>,
}

impl Tree {
    /// The files that git tracks or would.
    pub fn load() -> Result<Self> {
        let listed = Cmd::new("git").words("ls-files --cached --others --exclude-standard").read()?;
        let mut files = Vec::new();
        for path in listed.lines() {
            let full = crate::root().join(path);
            if !full.is_file() {
                continue;
            }
            let bytes = std::fs::read(&full).with_context(|| format!("reading {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(Source { path: path.into(), text });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Self { files })
    }

    /// A tree of these files, for tests of what reads trees.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(p, t)| Source { path: (*p).into(), text: (*t).into() }).collect();
        Self { files }
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|f| f.path.ends_with(".rs"))
    }

    /// The Rust files of libraries and programs under `crates/`, without their tests.
    pub fn products(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|f| f.is_product())
    }

    /// The file at `path`.
    pub fn get(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|f| f.path == path)
    }

    /// Where the macros `names` are given a literal as first argument, in products.
    pub fn sites(&self, names: &[&str]) -> Vec<Site> {
        let mut sites = Vec::new();
        for file in self.products() {
            let code = cut_tests(&file.without_comments()).to_owned();
            for name in names {
                for (at, _) in code.match_indices(&format!("{name}!")) {
                    let rest = code[at + name.len() + 1..].trim_start();
                    let literal =
                        rest.strip_prefix('(').map(str::trim_start).and_then(|r| r.strip_prefix('"'));
                    let Some((literal, _)) = literal.and_then(|r| r.split_once('"')) else { continue };
                    sites.push(Site {
                        name: literal.into(),
                        package: file.package().unwrap_or_default().into(),
                        file: file.path.clone(),
                        line: line_of(&code, at),
                    });
                }
            }
        }
        sites.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        sites
    }
}

/// The code before a file's `#[cfg(test)] mod tests`, which may be for some builds only (`#[cfg(all(test, ...))]`).
pub fn cut_tests(code: &str) -> &str {
    let marks = code.match_indices("#[cfg(test)]").chain(code.match_indices("#[cfg(all(test, "));
    let tests = marks.map(|(at, _)| at).filter(|&at| {
        let rest = code[at..].split_once(")]").map_or("", |(_, rest)| rest).trim_start();
        rest.starts_with("mod ")
            && rest.split_once('\n').is_some_and(|(line, _)| line.trim_end().ends_with('{'))
    });
    &code[..tests.min().unwrap_or(code.len())]
}

/// The line, from 1, of the byte at `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A place with a name.
#[derive(Clone, Debug)]
pub struct Site {
    /// The literal.
    pub name: String,
    /// The folder of the crate.
    pub package: String,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// Every ordering with a name, which the build for loom can weaken.
pub fn orderings() -> Result<Vec<Site>> {
    let mut sites = Tree::load()?.sites(&["ord"]);
    sites.sort_by(|a, b| a.name.cmp(&b.name));
    sites.dedup_by(|a, b| a.name == b.name);
    Ok(sites)
}

/// Every place at which a process may be killed.
pub fn kill_points() -> Result<Vec<Site>> {
    Ok(Tree::load()?.sites(&["kill_point"]))
}

/// Blanks comments, and with `strings` what strings and characters hold.
fn blank(text: &str, strings: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut wipe = |from: usize, to: usize| {
        for byte in &mut out[from..to.min(bytes.len())] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word_before = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            wipe(at, end);
            at = end;
        } else if rest.starts_with(b"/*") {
            let end = at + block_comment(rest);
            wipe(at, end);
            at = end;
        } else if rest[0] == b'"' {
            let end = at + string(rest);
            if strings {
                wipe(at + 1, end - 1);
            }
            at = end;
        } else if let (b'r', Some(hashes), false) = (rest[0], raw_string(rest), word_before) {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = at + 2 + hashes;
            let end = text[body..].find(&close).map_or(bytes.len(), |n| body + n);
            if strings {
                wipe(body, end);
            }
            at = end + close.len();
        } else if rest[0] == b'\'' {
            let length = character(rest);
            if strings && length > 1 {
                wipe(at + 1, at + length - 1);
            }
            at += length;
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The number of hashes if a raw string starts here.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest.get(1..)?.iter().take_while(|&&b| b == b'#').count();
    (rest.get(1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// The length of a character literal, or 1 for the tick of a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => rest.iter().skip(3).position(|&b| b == b'\'').map_or(1, |n| n + 4),
        Some(first) => {
            let width = match first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 1 }
        }
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "crates/shmem/src/x.rs".into(), text: text.into() }
    }

    #[test]
    fn comments_and_strings_are_told_from_code() {
        let text = "one // two\n/* three /* four */ five */ six \"s // s\" '7' '\\'' '\"' r#\"e\" e\"# &'nine \u{e9} '\u{e9}' ten";
        let with_strings = source(text).without_comments();
        for gone in ["two", "three", "four", "five"] {
            assert!(!with_strings.contains(gone), "{gone} in {with_strings}");
        }
        assert!(
            with_strings.contains("\"s // s\"") && with_strings.contains("#\"e\" e\"#"),
            "{with_strings}"
        );
        let code = source(text).code();
        assert!(!code.contains('7') && !code.contains("//") && !code.contains("e\""), "{code}");
        assert!(code.contains("six") && code.contains("&'nine") && code.ends_with("ten"), "{code}");
        assert_eq!(code.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn names_are_found_outside_comments_and_tests() {
        let text = "// ord!(\"no\")\nx(ord!(\"ring.head\", Release));\nkill_point!(\n    \"ring.lose\");\n\
                    #[cfg(test)]\nmod tests {\n ord!(\"test\", Acquire) }";
        let tree = Tree { files: vec![source(text)] };
        let sites = tree.sites(&["ord", "kill_point"]);
        let found: Vec<_> = sites.iter().map(|s| (s.name.as_str(), s.line)).collect();
        assert_eq!(found, [("ring.head", 2), ("ring.lose", 3)]);
    }
}
