//! Our own programs: building and running gasperf, and gasperf-c.

use super::c;
use super::place::Place;
use super::plan::{Launch, Program};
use super::record::{Row, rows_in};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::command::Cmd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The folder with `gasrun` and `gasperf`, and that with `gasperf-c` for each mode.
#[derive(Clone, Debug)]
pub struct Ours {
    bin: PathBuf,
    c: PathBuf,
}

impl Ours {
    /// Builds them, optimised; `gasperf-c` if it is wanted.
    pub fn build(with_c: bool) -> Result<Self> {
        Cmd::cargo("build --release -p gasworks-launch -p gasworks-perf --bins --examples").show()?;
        let bin = gasworks_testkit::programs::target().join("release");
        Ok(Self { bin, c: if with_c { c::build()? } else { PathBuf::new() } })
    }

    /// The command `gasrun -n RANKS WORDS`, where `gasperf` and `gasperf-c-MODE` are ours.
    pub fn job(&self, place: Place, ranks: u32, words: &str) -> Command {
        let mut all = place.words();
        all.extend([self.bin.join("gasrun").display().to_string(), "-n".into(), ranks.to_string()]);
        all.extend(["--timeout", "120", "--"].map(str::to_owned));
        let named = |word: &str| match word {
            "gasperf" => self.bin.join(word).display().to_string(),
            _ if word.starts_with(c::PROGRAM) => self.c.join(word).display().to_string(),
            _ => word.into(),
        };
        all.extend(words.split_whitespace().map(named));
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null());
        command
    }

    /// Runs gasperf and returns its rows.
    pub fn gasperf(&self, place: Place, ranks: u32, args: &str) -> Result<Vec<Row>> {
        self.measured(place, ranks, &format!("gasperf {args}"))
    }

    /// Runs what is to be launched, with so many blocks, and returns its rows.
    pub fn launch(&self, place: Place, launch: &Launch, blocks: u32) -> Result<Vec<Row>> {
        let Launch { program, ranks, args } = *launch;
        let name = match program {
            Program::Rust => "gasperf".to_owned(),
            Program::C(mode) => format!("{}-{mode}", c::PROGRAM),
        };
        self.measured(place, ranks, &format!("{name} {args} --blocks {blocks}"))
    }

    fn measured(&self, place: Place, ranks: u32, words: &str) -> Result<Vec<Row>> {
        let shown = format!("gasrun -n {ranks} {words}");
        let ended = self.job(place, ranks, &format!("{words} --json")).output();
        let ended = ended.with_context(|| format!("starting {shown}"))?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{shown} ended with {}: {}", ended.status, said.trim());
        let mut rows = rows_in(&String::from_utf8_lossy(&ended.stdout)).with_context(|| shown.clone())?;
        ensure!(!rows.is_empty(), "{shown} printed no row");
        for row in &mut rows {
            row.sane().with_context(|| shown.clone())?;
            row.place = place.name().into();
        }
        Ok(rows)
    }
}
