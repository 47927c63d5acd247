//! Links between the files of the documentation.

use anyhow::Result;
use gasworks_testkit::scan::Tree;
use std::collections::BTreeSet;

/// Links in Markdown files that lead to no file, or to no heading of it.
pub fn links(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        for (line, link) in links_of(&file.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link.split_once('#').map_or((link, None), |(p, h)| (p, Some(h)));
            let target = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
            let folder = format!("{}/", target.trim_end_matches('/'));
            match tree.get(&target) {
                None if tree.files.iter().any(|f| f.path.starts_with(&folder)) => {}
                None => found.push(format!("{}:{line}: {link}: no such file", file.path)),
                Some(other) if heading.is_some_and(|h| !headings(&other.text).contains(h)) => {
                    found.push(format!("{}:{line}: {link}: no such heading", file.path));
                }
                Some(_) => {}
            }
        }
    }
    // mdBook shows only what the summary names.
    if let Some(summary) = tree.get("docs/src/SUMMARY.md") {
        let named: BTreeSet<_> =
            links_of(&summary.text).map(|(_, link)| resolve(&summary.path, link)).collect();
        for file in tree.files.iter().filter(|f| f.path.starts_with("docs/src/") && f.path.ends_with(".md")) {
            if file.path != summary.path && !named.contains(&file.path) {
                found.push(format!("{}: not in docs/src/SUMMARY.md", file.path));
            }
        }
    }
    Ok(found)
}

/// The targets of `[text](target)` outside code, with their lines.
fn links_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().flat_map(move |(at, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let parts = if fenced { "" } else { line }.split("](").skip(1);
        parts.filter_map(move |rest| Some((at + 1, rest.split_once(')')?.0)))
    })
}

/// `link` as seen from the folder of `from`.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as they are made from the text.
fn headings(text: &str) -> BTreeSet<String> {
    let anchor = |heading: &str| -> String {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    text.lines().filter(|l| l.starts_with('#')).map(|l| anchor(l.trim_start_matches('#'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = "# One\n[a](b.md) [c](../src/b.md#two-words) [d](gone.md)\n[e](#one) [f](b.md#gone) [g](https://x.y/z)\n\
                    ```text\n[h](no.md)\n```\n[i](.)\n";
        let tree = Tree::of(&[("docs/src/a.md", page), ("docs/src/b.md", "## Two words!")]);
        let found = links(&tree).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("a.md:2: gone.md") && found[1].contains("a.md:3: b.md#gone"));
    }

    #[test]
    fn a_page_that_the_summary_forgets_is_found() {
        let tree =
            Tree::of(&[("docs/src/SUMMARY.md", "[a](a.md)"), ("docs/src/a.md", ""), ("docs/src/b.md", "")]);
        assert_eq!(links(&tree).unwrap(), ["docs/src/b.md: not in docs/src/SUMMARY.md"]);
    }
}
