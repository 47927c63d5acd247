//! Our own programs: building and running gasperf.

use super::place::Place;
use super::record::{Row, rows_in};
use crate::exec::Cmd;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The folder with `gasrun` and `gasperf`.
#[derive(Clone, Debug)]
pub struct Ours {
    bin: PathBuf,
}

impl Ours {
    /// Builds them, optimised.
    pub fn build() -> Result<Self> {
        Cmd::cargo("build --release -p gasworks-launch -p gasworks-perf").show()?;
        Ok(Self { bin: crate::demo::target()?.join("release") })
    }

    /// The command `gasrun -n RANKS WORDS`, where `gasperf` is ours.
    pub fn job(&self, place: Place, ranks: u32, words: &str) -> Command {
        let mut all = place.words();
        all.extend([self.bin.join("gasrun").display().to_string(), "-n".into(), ranks.to_string()]);
        all.extend(["--timeout", "120", "--"].map(str::to_owned));
        let named = |word: &str| {
            if word == "gasperf" { self.bin.join(word).display().to_string() } else { word.into() }
        };
        all.extend(words.split_whitespace().map(named));
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null());
        command
    }

    /// Runs gasperf and returns its rows.
    pub fn gasperf(&self, place: Place, ranks: u32, args: &str) -> Result<Vec<Row>> {
        let shown = format!("gasrun -n {ranks} gasperf {args}");
        let ended = self.job(place, ranks, &format!("gasperf {args} --json")).output();
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
