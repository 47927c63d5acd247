//! The sources that are installed, with what is configured.

use super::{CONFIGURED, Default, listed, placed};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is installed of this tree's top.
const TOP: [&str; 5] = ["Cargo.lock", "rust-toolchain.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// The file in which the options are.
const OPTIONS: &str = "crates/os/src/configured.rs";

/// Files, by where they are.
pub struct Sources(BTreeMap<PathBuf, Vec<u8>>);

impl Sources {
    /// Those of all crates, as a workspace, with what is configured.
    pub fn configured(configured: &[Default]) -> Result<Self> {
        let root = crate::root();
        let mut files = BTreeMap::new();
        let crates =
            placed::files(&root.join("crates"))?.into_iter().map(|file| Path::new("crates").join(file));
        for file in TOP.iter().map(PathBuf::from).chain(crates) {
            let text =
                std::fs::read(root.join(&file)).with_context(|| format!("reading {}", file.display()))?;
            files.insert(file, text);
        }
        let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
        const MEMBERS: &str = r#"["crates/*", "examples", "xtask"]"#;
        ensure!(manifest.contains(MEMBERS), "Cargo.toml names other members than {MEMBERS}");
        let manifest = manifest.replace(MEMBERS, r#"["crates/*"]"#);
        files.insert("Cargo.toml".into(), without_defaults(&manifest)?.into());
        let options = written(&std::fs::read_to_string(root.join(OPTIONS))?, configured)?;
        files.insert(OPTIONS.into(), options.into());
        files.insert(CONFIGURED.into(), listed(configured).into());
        Ok(Self(files))
    }

    /// Makes a folder hold these and nothing else. A file that says the same is left as it is, with its time: nothing is built anew
    /// of it.
    pub fn write(&self, to: &Path) -> Result<()> {
        std::fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
        placed::remove_stale(to, &self.0.keys().cloned().collect(), &placed::files(to)?)?;
        for (file, text) in &self.0 {
            let path = to.join(file);
            if std::fs::read(&path).is_ok_and(|there| there == *text) {
                continue;
            }
            let folder = path.parent().unwrap_or(to);
            std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// The manifest without `default-members`, some of which are not installed.
fn without_defaults(manifest: &str) -> Result<String> {
    let (before, list) =
        manifest.split_once("default-members = [").context("Cargo.toml has no default-members")?;
    let (_, after) = list.split_once("]\n").context("the default-members of Cargo.toml have no end")?;
    Ok(format!("{before}{after}"))
}

/// The source file with these entries.
fn written(text: &str, configured: &[Default]) -> Result<String> {
    const NONE: &str = "CONFIGURED: &[Entry] = &[];";
    ensure!(text.contains(NONE), "{OPTIONS} has no line with {NONE:?}");
    let entry = |(name, chip, value): &Default| format!("    ({name:?}, {chip:?}, {value:?}),\n");
    let entries: String = configured.iter().map(entry).collect();
    Ok(text.replace(NONE, &format!("CONFIGURED: &[Entry] = &[\n{entries}];")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_written_with_what_is_configured() {
        let text = std::fs::read_to_string(crate::root().join(OPTIONS)).expect("the file");
        let all = [
            ("GASWORKS_A".to_owned(), Some("aries"), "a \"b\"".to_owned()),
            ("GASWORKS_B".to_owned(), None, "1".to_owned()),
        ];
        let written = written(&text, &all).expect("there is the line");
        assert!(written.contains(r#"    ("GASWORKS_A", Some("aries"), "a \"b\""),"#), "{written}");
        assert!(written.contains(r#"    ("GASWORKS_B", None, "1"),"#), "{written}");
        assert!(super::written(&written, &all).is_err(), "it is written once");
    }

    #[test]
    fn what_says_the_same_is_left_and_what_is_no_more_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let sources = |texts: &[(&str, &str)]| {
            Sources(texts.iter().map(|&(name, text)| (name.into(), text.into())).collect())
        };
        let time =
            |name: &str| dir.path().join(name).metadata().and_then(|m| m.modified()).expect("its time");
        sources(&[("same", "1"), ("a/other", "2"), ("gone/too", "3")]).write(dir.path()).expect("written");
        let old = std::time::SystemTime::UNIX_EPOCH;
        for name in ["same", "a/other"] {
            let file = std::fs::File::options().write(true).open(dir.path().join(name)).expect("it is there");
            file.set_modified(old).expect("its time");
        }
        sources(&[("same", "1"), ("a/other", "4"), ("b/new", "5")]).write(dir.path()).expect("written");
        assert_eq!(time("same"), old);
        assert!(time("a/other") > old);
        let there = placed::files(dir.path()).expect("its files");
        assert_eq!(there, ["same", "a/other", "b/new"].map(PathBuf::from).into());
        assert!(!dir.path().join("gone").exists(), "an empty folder is left");
        assert_eq!(std::fs::read_to_string(dir.path().join("a/other")).expect("it is there"), "4");
    }
}
