//! Sources of others that are fetched by name: they stay under `target`, and are no part of this repository.

use crate::command::Cmd;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A source package of the distribution's.
#[derive(Debug)]
pub struct SourcePackage {
    name: &'static str,
    /// A file that it has.
    file: &'static str,
}

/// MPICH's, which carries a libfabric that still has the provider for uGNI.
pub const MPICH: SourcePackage =
    SourcePackage { name: "mpich", file: "modules/libfabric/prov/gni/src/gnix_nic.c" };

impl SourcePackage {
    fn folder(&self) -> PathBuf {
        crate::root().join("target/sources").join(self.name)
    }

    /// The top of its sources, if they are there.
    pub fn top(&self) -> Result<PathBuf> {
        let folder = self.folder();
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("looking into {}", folder.display()))?;
        let mut tops =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.join(self.file).exists());
        tops.next().with_context(|| format!("{} has no {}", folder.display(), self.file))
    }

    /// Whether they are there, after an attempt to fetch them if they are not.
    pub fn there(&self) -> bool {
        self.top().is_ok() || self.fetch().and_then(|()| self.top()).is_ok()
    }

    /// From where the distribution's packages come on this machine, with lists of its own: the machine's name no sources as a rule.
    fn fetch(&self) -> Result<()> {
        const TARGETS: &str = "deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)";
        let folder = self.folder();
        eprintln!("fetching the sources of {} into {}", self.name, folder.display());
        std::fs::create_dir_all(folder.join("lists/partial"))?;
        std::fs::create_dir_all(folder.join("cache/archives/partial"))?;
        let known = Cmd::new("apt-get")
            .words("indextargets --format")
            .arg(TARGETS)
            .arg("Identifier: Packages")
            .read()?;
        let known: BTreeSet<&str> = known.lines().collect();
        let list: String = known.iter().flat_map(|line| [line, "\n"]).collect();
        std::fs::write(folder.join("sources.list"), list)?;
        let apt = |words: &str| {
            let own = |key: &str, path: &str| format!("{key}={}", folder.join(path).display());
            let lists = [
                own("Dir::Etc::sourcelist", "sources.list"),
                own("Dir::State::lists", "lists"),
                own("Dir::Cache", "cache"),
            ];
            let apt = Cmd::new("apt-get").words("-o Dir::Etc::sourceparts=-").dir(&folder).limit(300);
            lists.iter().fold(apt, |apt, own| apt.arg("-o").arg(own)).words(words)
        };
        ensure!(apt("update").works(), "no list of sources can be had");
        ensure!(apt("source --download-only").arg(self.name).works(), "they cannot be had");
        let unpack =
            Cmd::new("sh").arg("-c").arg("tar --extract --file *.orig.tar.*").dir(&folder).limit(300);
        ensure!(unpack.works(), "they cannot be unpacked");
        Ok(())
    }
}
