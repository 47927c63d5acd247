//! Commands that the documentation tells people to type.
//!
//! A fenced block marked `sh` holds a command a line; in one marked `console` commands start with `$ `; in a sentence, a
//! code span that starts with `cargo` or `gasrun` is one. Each is either in the table here, which names the row that runs
//! it or says why none does, or stands in a block under the line `<!-- not-run: REASON -->`.

use anyhow::Result;
use gasworks_testkit::scan::Tree;
use std::collections::BTreeSet;

/// Who runs a documented command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A row of its own, `documented/...`, runs it word for word.
    Itself,
    /// This everyday row runs the same thing.
    Row(&'static str),
    /// This ordinary test runs the same thing: the file that holds it, and its name there.
    Test(&'static str, &'static str),
    /// This row of the nightly matrix runs the same thing.
    Nightly(&'static str),
    /// Nobody, for this reason.
    Nobody(&'static str),
}

type Table = [(&'static str, By)];

/// The commands in README and docs, and the rows that run them. Rows call the functions that `cargo xtask loom`, `miri`,
/// `tsan`, `asan` and `fuzz` call; the rows `loom/command`, `miri/command` and `tsan/command` run the commands themselves
/// as far as the names of their tests.
const TABLE: &Table = &[
    ("cargo xtask demo", By::Row("demo/generated")),
    ("cargo xtask bench", By::Row("bench/quick")),
    ("cargo xtask bench --peers", By::Nobody("a measurement: it wants a quiet machine, and minutes")),
    ("cargo xtask bench --launchers", By::Nobody("a measurement: it wants a quiet machine, and minutes")),
    ("cargo xtask bench --quick --json bench.json", By::Row("bench/quick")),
    (
        "cargo build --release",
        By::Nobody("the rows build/release and demo do most of it; by night the examples' test does all"),
    ),
    ("cargo xtask test", By::Nobody("it is the command that runs the rows")),
    ("cargo xtask nightly", By::Nobody("it is the command that runs the nightly rows")),
    ("cargo xtask test --list", By::Itself),
    ("cargo xtask test --row static/format", By::Itself),
    ("cargo xtask test --quick", By::Nobody("it runs a part of what is run anyway")),
    ("cargo xtask test --failed", By::Nobody("it runs a part of what is run anyway")),
    (
        "cargo xtask test --junit results.xml",
        By::Nobody("it writes what a run came to, which its own tests check"),
    ),
    ("cargo xtask test --longest", By::Itself),
    ("cargo xtask test --row mutation", By::Nobody("it chooses rows that are run anyway")),
    ("cargo xtask test --row launcher", By::Nobody("it chooses rows that are run anyway")),
    ("cargo nextest run", By::Row("build/tests")),
    (
        "cargo nextest run -p gasworks-shmem inbox",
        By::Nobody("the row tests/early runs these tests with all others"),
    ),
    (
        "cargo nextest run -p gasworks-conformance inbox.send",
        By::Nobody("the row tests/early runs these cases with all others"),
    ),
    (
        "cargo nextest run -p gasworks-perf put-8",
        By::Nobody("the row tests/late runs this case with all others"),
    ),
    ("cargo xtask ugni-sim", By::Test("crates/ugni-sim-capi/tests/jobs", "install")),
    ("cargo xtask ugni-clock --curve", By::Itself),
    ("cargo xtask names", By::Row("capi/names")),
    ("cargo xtask names --write", By::Row("capi/names")),
    ("cargo xtask gni-report", By::Row("gni/report")),
    ("cargo xtask gni-report --write", By::Row("gni/report")),
    ("cargo xtask install --prefix /opt/gasworks", By::Row("install/used")),
    ("cargo xtask install --prefix DIR", By::Row("install/used")),
    ("cargo xtask install --with ugni-sim", By::Row("install/c/ugni-sim")),
    (
        "export PATH=/opt/gasworks/bin:$PATH PKG_CONFIG_PATH=/opt/gasworks/lib/pkgconfig",
        By::Row("install/c/readme"),
    ),
    (
        "cc $(pkg-config --cflags gasnet-smp-seq) hello.c -o hello $(pkg-config --libs gasnet-smp-seq)",
        By::Row("install/c/readme"),
    ),
    ("gasnetrun_smp -n 4 ./hello", By::Row("install/c/readme")),
    ("cc $(pkg-config --cflags cci) kv.c -o kv $(pkg-config --libs cci)", By::Row("install/c/cci")),
    ("./kv serve >address &", By::Row("install/c/cci")),
    ("./kv $(cat address) put colour blue", By::Row("install/c/cci")),
    ("./kv $(cat address) get colour", By::Row("install/c/cci")),
    ("./kv $(cat address) stop", By::Row("install/c/cci")),
    ("cargo xtask tidy", By::Itself),
    ("cargo xtask tidy --write", By::Row("tidy/settings")),
    ("cargo xtask loom", By::Row("loom/shmem")),
    ("cargo xtask miri", By::Row("miri/shmem")),
    ("cargo xtask tsan", By::Row("tsan/shmem")),
    ("cargo xtask asan", By::Nightly("asan/shmem")),
    ("cargo xtask fuzz --seconds 60", By::Nightly("fuzz/am_head")),
    ("cargo xtask cov", By::Nobody("a measurement for people: no row depends on it")),
    ("cargo bench -p gasworks-pshm --bench latency", By::Nobody("a measurement: it wants a quiet machine")),
    ("cargo bench -p gasworks-cci --bench endpoints", By::Nobody("a measurement: it wants a quiet machine")),
    ("cargo bench -p gasworks-ugni-sim --bench nic", By::Nobody("a measurement: it wants a quiet machine")),
    ("cargo bench -p gasworks-shmem --bench am_queue", By::Nobody("a measurement: it wants a quiet machine")),
    (
        "cargo test",
        By::Nobody("it runs the tests that nextest runs, and takes their place where that is not installed"),
    ),
    ("cargo test -p", By::Nobody("the beginning of a command, in a sentence")),
    ("cargo test -p gasworks-conformance --test suite -- --list", By::Itself),
    (
        "cargo xtask prepare",
        By::Nobody("the rows build/debug, build/release, build/c and build/nic do what it does"),
    ),
    ("gasrun -n 4 ./program", By::Itself),
    (
        "GASWORKS_NETWORK=gni GASWORKS_BOOTSTRAP=cray LD_LIBRARY_PATH=target/ugni-sim/lib gasrun -n 4 ./program",
        By::Test("crates/gni/tests/nic", "hello"),
    ),
    ("gasrun -n 4 true", By::Itself),
    ("gasrun -n 4", By::Nobody("the beginning of a command, in a sentence")),
    ("gasrun -n 4 --stats ./program", By::Itself),
    ("gasrun -n 4 --stats=counts.json ./program", By::Itself),
    ("gasrun -n 4 --trace trace.json ./program", By::Itself),
    ("gasrun --inspect JOB", By::Test("crates/launch/tests/gasrun", "inspect")),
    ("gasrun --endpoints", By::Test("crates/launch/tests/gasrun", "endpoints")),
    ("gasrun --stats", By::Nobody("the beginning of a command, in a sentence")),
    ("gasrun -v", By::Nobody("the beginning of a command, in a sentence")),
    ("gasrun --env", By::Itself),
    ("gasrun -n 2 gasperf am-latency", By::Test("crates/perf/tests/processes.rs", "am-latency")),
];

/// The table, for the rows that are made of it and the test that the other rows exist.
pub fn documented_commands() -> &'static Table {
    TABLE
}

/// What is wrong with the rows that the table names, given the names of all rows.
pub fn misplaced(everyday: &BTreeSet<&str>, nightly: &BTreeSet<&str>) -> Vec<String> {
    misplaced_in(TABLE, everyday, nightly)
}

fn misplaced_in(table: &Table, everyday: &BTreeSet<&str>, nightly: &BTreeSet<&str>) -> Vec<String> {
    let wrong = |(command, by): &(&str, By)| match by {
        By::Row(row) if !everyday.contains(row) => Some(format!("`{command}`: {row} is no everyday row")),
        By::Nightly(row) if everyday.contains(row) => Some(format!("`{command}`: {row} runs every day")),
        By::Nightly(row) if !nightly.contains(row) => Some(format!("`{command}`: {row} is no row")),
        By::Nobody(reason) if reason.len() < 10 => {
            Some(format!("`{command}`: nobody runs it, for no reason"))
        }
        _ => None,
    };
    table.iter().filter_map(wrong).collect()
}

/// Commands that no row runs and that do not say why, and tests that there are not.
pub fn commands(tree: &Tree) -> Result<Vec<String>> {
    let mut found = commands_in(tree, TABLE);
    for (command, by) in TABLE {
        let By::Test(path, name) = by else { continue };
        if !tree.files.iter().any(|file| file.path.starts_with(path) && file.text.contains(name)) {
            found.push(format!("xtask/src/tidy/commands.rs: `{command}`: no test {name} in {path}"));
        }
    }
    Ok(found)
}

fn commands_in(tree: &Tree, table: &Table) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md") && f.path != "CHANGELOG.md") {
        for command in documented(&file.text) {
            let known = table.iter().any(|(text, _)| *text == command.text);
            let place = format!("{}:{}", file.path, command.line);
            match command.reason {
                Some(reason) if reason.len() < 10 => found.push(format!("{place}: `not-run` needs a reason")),
                None if !known => found
                    .push(format!("{place}: no row runs `{}`: see xtask/src/tidy/commands.rs", command.text)),
                _ => {}
            }
            seen.insert(command.text);
        }
    }
    let unused = table.iter().filter(|(text, _)| !seen.contains(*text));
    found.extend(unused.map(|(text, _)| format!("xtask/src/tidy/commands.rs: no page has `{text}`")));
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Command<'a> {
    line: usize,
    text: String,
    reason: Option<&'a str>,
}

fn documented(text: &str) -> Vec<Command<'_>> {
    let mut found = Vec::new();
    let (mut fence, mut reason) = (None, None);
    // The sentences since the last empty line, for a code span may go over the end of a line.
    let (mut paragraph, mut begins) = (String::new(), 1);
    for (at, line) in text.lines().chain([""]).enumerate() {
        let trimmed = line.trim();
        let fenced = fence.is_some() || trimmed.starts_with("```");
        if fenced || trimmed.is_empty() {
            spans(&paragraph, begins, &mut found);
            paragraph.clear();
            begins = at + 2;
        } else {
            paragraph.push_str(trimmed);
            paragraph.push('\n');
        }
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
            found.extend(command.map(|text| Command { line: at + 1, text: text.into(), reason }));
        }
    }
    found
}

/// The commands among the code spans of a paragraph.
fn spans<'a>(paragraph: &str, begins: usize, found: &mut Vec<Command<'a>>) {
    let mut line = begins;
    for (number, part) in paragraph.split('`').enumerate() {
        let text = part.replace('\n', " ");
        if number % 2 == 1 && ["cargo ", "gasrun "].iter().any(|program| text.starts_with(program)) {
            found.push(Command { line, text, reason: None });
        }
        line += part.matches('\n').count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &Table = &[("cargo xtask demo", By::Row("demo/generated"))];

    fn places(found: &[String]) -> Vec<&str> {
        found.iter().map(|f| f.split(' ').next().unwrap_or_default()).collect()
    }

    #[test]
    fn a_command_that_nothing_runs_is_found() {
        let text = "```sh\n# why\ncargo xtask demo\nrm --weird\n```\n```console\n$ ls\nfile\n```\n```rust\nlet x;\n```\n\
                    <!-- not-run: needs a second machine -->\n```sh\nssh there\n```\n```sh\nssh here\n```\n";
        let found = commands_in(&Tree::of(&[("docs/src/a.md", text), ("CHANGELOG.md", text)]), KNOWN);
        assert_eq!(
            places(&found),
            ["docs/src/a.md:4:", "docs/src/a.md:7:", "docs/src/a.md:18:"],
            "{found:?}"
        );
    }

    #[test]
    fn a_command_in_a_sentence_that_nothing_runs_is_found() {
        let text = "Type `cargo xtask demo`, or `cargo\nxtask demo`, or `cargo xtask dance`.\n`gasrun` alone, \
                    `cargo`.\n\nThen `gasrun -n\n3 x` (`ls`).\n```text\n`cargo fence`\n```\n- `cargo last`";
        let found = commands_in(&Tree::of(&[("README.md", text)]), KNOWN);
        assert_eq!(places(&found), ["README.md:2:", "README.md:5:", "README.md:10:"], "{found:?}");
        assert!(found[1].contains("`gasrun -n 3 x`"), "{found:?}");
    }

    #[test]
    fn a_command_that_no_page_has_is_found() {
        let found = commands_in(&Tree::of(&[("README.md", "nothing to type")]), KNOWN);
        assert_eq!(found, ["xtask/src/tidy/commands.rs: no page has `cargo xtask demo`"]);
    }

    #[test]
    fn a_marker_without_a_reason_is_found() {
        let text = "<!-- not-run: -->\n```sh\nls\n```\n";
        assert!(commands(&Tree::of(&[("README.md", text)])).unwrap()[0].contains("needs a reason"));
    }

    #[test]
    fn a_row_of_another_night_is_found() {
        let (everyday, nightly) = (BTreeSet::from(["a/day"]), BTreeSet::from(["a/day", "a/night"]));
        let right = [
            ("1", By::Row("a/day")),
            ("2", By::Nightly("a/night")),
            ("3", By::Itself),
            ("4", By::Nobody("it is too much")),
        ];
        assert_eq!(misplaced_in(&right, &everyday, &nightly), [""; 0]);
        for by in [By::Row("a/night"), By::Nightly("a/day"), By::Nightly("a/gone"), By::Nobody("")] {
            assert_eq!(misplaced_in(&[("x", by)], &everyday, &nightly).len(), 1, "{by:?}");
        }
    }
}
