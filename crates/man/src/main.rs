//! `gasworks-man DIR`: writes the man pages of the programs there, made from the tables of options that the programs read.
//!
//! It is for `cargo xtask install`; nobody else calls it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("gasworks-man DIR: writes the man pages of the programs there");
        return ExitCode::from(2);
    };
    match write(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gasworks-man: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &Path) -> Result<()> {
    for command in [
        gasworks_launch::options::Options::command(),
        gasworks_launch::gasnetrun::Options::command(),
        gasworks_perf::options::Options::command(),
    ] {
        let file = dir.join(format!("{}.1", command.get_name()));
        std::fs::write(&file, page(command)?).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The page of a program.
fn page(command: Command) -> Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default().to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command).source(format!("Gasworks {version}")).manual("Gasworks").date("");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut rest = Roff::new();
    rest.control("SH", ["NOTES"]);
    notes(&after, &mut rest);
    rest.control("SH", ["SEE ALSO"]);
    rest.text([
        bold("gasworks"),
        roman("(7), "),
        bold("gasrun"),
        roman("(1), "),
        bold("gasnetrun"),
        roman("(1), "),
    ]);
    rest.text([bold("gasperf"), roman("(1)")]);
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// What the help says after the options: paragraphs, and lists whose lines are indented by two, with the words that are explained
/// apart from the rest.
fn notes(text: &str, to: &mut Roff) {
    for line in text.lines() {
        let item = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
            .and_then(|rest| rest.split_once("  "));
        match item {
            Some((word, rest)) => {
                to.control("TP", []).text([bold(word)]).text([roman(rest.trim())]);
            }
            None if line.trim().is_empty() => {
                to.control("PP", []);
            }
            None => {
                to.text([roman(line.trim())]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_paragraphs_stay_apart() {
        let mut page = Roff::new();
        notes("Codes:\n  1 - 255  one\n           of many\n  .2       two\n\nThe end.", &mut page);
        let lines = [
            "Codes:",
            ".TP",
            "\\fB1 \\- 255\\fR",
            "one",
            "of many",
            ".TP",
            "\\fB.2\\fR",
            "two",
            ".PP",
            "The end.",
        ];
        let page = page.to_roff();
        let found: Vec<_> = page.lines().collect();
        assert_eq!(found, lines);
    }

    /// Every option that is not hidden is on its program's page.
    #[test]
    fn pages_have_all_options() {
        let command = gasworks_launch::options::Options::command();
        let names: Vec<_> =
            command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long()).collect();
        assert!(names.len() > 10);
        let page = String::from_utf8(page(command.clone()).expect("a page")).expect("text");
        for name in names {
            assert!(page.contains(&format!("\\-\\-{}", name.replace('-', "\\-"))), "{name}");
        }
    }
}
