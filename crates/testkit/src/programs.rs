//! What tests run and link: the workspace's programs, the C interface and the software NIC, each built once.
//!
//! `cargo xtask prepare NAME` builds one of these fixtures. A test asks for a fixture by a function of this module, which
//! runs that command once for the process. A runner that has prepared a fixture says so in the environment
//! ([`Fixture::variable`]); then nothing is run: nextest's set-up scripts and `cargo xtask test` do.

use crate::command::Cmd;
use anyhow::{Context, Result, anyhow, ensure};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Something that is built before tests use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fixture {
    /// All programs, as the dev profile builds them, with kill points.
    Debug,
    /// All programs and the libraries for C, optimised.
    Release,
    /// The C interface laid out as an installation has it: `include` and `lib`.
    C,
    /// The software NIC laid out as its clients expect the genuine libraries.
    Nic,
}

impl Fixture {
    /// All of them.
    pub const ALL: [Fixture; 4] = [Fixture::Debug, Fixture::Release, Fixture::C, Fixture::Nic];

    /// The name that `cargo xtask prepare` takes.
    pub fn name(self) -> &'static str {
        match self {
            Fixture::Debug => "debug",
            Fixture::Release => "release",
            Fixture::C => "c",
            Fixture::Nic => "nic",
        }
    }

    /// The variable that says that it has been prepared.
    pub fn variable(self) -> String {
        format!("GASWORKS_PREPARED_{}", self.name().to_uppercase())
    }

    /// Where it is.
    pub fn path(self) -> PathBuf {
        match self {
            Fixture::Debug => target().join("debug"),
            Fixture::Release => target().join("release"),
            Fixture::C | Fixture::Nic => target().join("fixtures").join(self.name()),
        }
    }

    /// Whether a runner says that it has been prepared.
    pub fn is_prepared(self) -> bool {
        variable(&self.variable()).is_some()
    }

    /// Prepares it unless that has been done, and returns where it is.
    pub fn get(self) -> Result<PathBuf> {
        static DONE: [OnceLock<Result<(), String>>; 4] = [const { OnceLock::new() }; 4];
        let prepare = || -> Result<()> {
            if self.is_prepared() {
                return Ok(());
            }
            let cmd = Cmd::cargo("xtask prepare").arg(self.name()).limit(1800);
            cmd.env("CARGO_TARGET_DIR", target()).run_ok().map(drop)
        };
        let done = DONE[self as usize].get_or_init(|| prepare().map_err(|error| format!("{error:#}")));
        done.clone().map_err(|error| anyhow!(error))?;
        Ok(self.path())
    }
}

/// A variable of this process's environment.
#[allow(clippy::disallowed_methods, reason = "variables of the test harness are no settings of the product")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The folder of builds that this program is in.
pub fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let folders = own.ancestors().skip(1).find(|dir| !dir.ends_with("deps") && !dir.ends_with("examples"));
    let profile = folders.map(Path::to_path_buf).unwrap_or_default();
    profile.parent().map(Path::to_path_buf).unwrap_or(profile)
}

/// The programs of one profile.
#[derive(Clone, Debug)]
pub struct Programs {
    dir: PathBuf,
}

/// The programs as the dev profile builds them: they have kill points.
pub fn debug() -> Result<Programs> {
    Ok(Programs { dir: Fixture::Debug.get()? })
}

/// The programs, optimised.
pub fn release() -> Result<Programs> {
    Ok(Programs { dir: Fixture::Release.get()? })
}

impl Programs {
    /// Those in a folder.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The program `name`.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        ensure!(path.is_file(), "no program {name} in {}: cargo xtask prepare builds it", self.dir.display());
        Ok(path)
    }

    /// A command that runs the program `name` under `gasrun` on `ranks` ranks.
    pub fn gasrun(&self, ranks: usize, name: &str) -> Result<Cmd> {
        self.gasrun_with(ranks, "", name)
    }

    /// The same, with `options` for `gasrun`.
    pub fn gasrun_with(&self, ranks: usize, options: &str, name: &str) -> Result<Cmd> {
        let gasrun =
            Cmd::new(self.program("gasrun")?).words(&format!("-n {ranks} --timeout 120 {options} --"));
        Ok(gasrun.arg(self.program(name)?).limit(150).job())
    }

    /// The names of all programs in a folder of the sources, such as `examples/src/bin`.
    pub fn sources(folder: &str) -> Result<Vec<String>> {
        let folder = crate::root().join(folder);
        let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| stem(entry.path())).collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_holds_this_program() {
        let own = std::env::current_exe().unwrap();
        let within = own.strip_prefix(target()).unwrap();
        assert_eq!(within.components().count(), 3, "PROFILE/deps/PROGRAM, not {}", within.display());
    }

    #[test]
    fn a_program_that_is_not_built_is_named() {
        let error = Programs::at("/nowhere").program("no-such-program").unwrap_err().to_string();
        assert!(error.contains("no-such-program") && error.contains("cargo xtask prepare"), "{error}");
    }

    #[test]
    fn every_fixture_has_a_name_and_a_variable_of_its_own() {
        let variables: std::collections::BTreeSet<_> = Fixture::ALL.iter().map(|f| f.variable()).collect();
        assert_eq!(variables.len(), Fixture::ALL.len());
        assert!(variables.contains("GASWORKS_PREPARED_NIC"));
    }
}
