//! The files of an installation that lie among those of others: they are put in place of an earlier installation's, what that one
//! alone had is taken away, and a list says which they are.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The files of an installation, from its prefix on.
pub type Files = BTreeSet<PathBuf>;

/// Where the list is, in the folder of the sources.
pub const LIST: &str = "installed";

/// What a folder's list says. An installation from before there were lists had these.
pub fn listed(sources: &Path, before: &[&str]) -> Result<Files> {
    let file = sources.join(LIST);
    if !file.exists() {
        let had = if sources.exists() { before } else { &[] };
        return Ok(had.iter().map(PathBuf::from).collect());
    }
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let files: Files = text.lines().map(PathBuf::from).collect();
    let strange =
        files.iter().find(|file| !file.components().all(|part| matches!(part, Component::Normal(_))));
    ensure!(strange.is_none(), "{} names {strange:?}, which is none of an installation's", file.display());
    Ok(files)
}

/// Writes the list.
pub fn list<'a>(sources: &Path, files: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let lines: String = files.into_iter().map(|file| format!("{}\n", file.display())).collect();
    std::fs::write(sources.join(LIST), lines).with_context(|| format!("writing {LIST}"))
}

/// The files of a folder and its folders.
pub fn files(dir: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(dir)?.to_path_buf());
            }
        }
    }
    Ok(found)
}

/// An error if something is in the way that no earlier installation has put there.
pub fn nothing_of_others(prefix: &Path, new: &Files, earlier: &Files) -> Result<()> {
    let there = |file: &&PathBuf| std::fs::symlink_metadata(prefix.join(file)).is_ok();
    let others: Vec<_> = new.difference(earlier).filter(there).collect();
    let Some(first) = others.first() else { return Ok(()) };
    let more =
        if others.len() == 1 { String::new() } else { format!(", and {} more files", others.len() - 1) };
    anyhow::bail!(
        "{}{more}: this is of no installation of Gasworks; remove it first",
        prefix.join(first).display()
    )
}

/// Puts a file, or a link that leads to another, in the place of what is there, in one step: who has the old one open keeps it.
pub fn put(from: &Path, to: &Path) -> Result<()> {
    swap(to, |new| match std::fs::read_link(from) {
        Ok(leads) => std::os::unix::fs::symlink(leads, new),
        Err(_) => std::fs::copy(from, new).map(drop),
    })
}

/// Makes a second name of a file, or a copy where that cannot be.
pub fn put_link(file: &Path, to: &Path) -> Result<()> {
    swap(to, |new| std::fs::hard_link(file, new).or_else(|_| std::fs::copy(file, new).map(drop)))
}

fn swap(to: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = to.with_file_name(format!(".{name}.new"));
    let why = || format!("installing {}", to.display());
    if let Some(dir) = to.parent() {
        std::fs::create_dir_all(dir).with_context(why)?;
    }
    // Left by one that was interrupted.
    let _ = std::fs::remove_file(&new);
    make(&new).with_context(why)?;
    std::fs::rename(&new, to).with_context(why)
}

/// Takes away what the earlier installation had and this one has not, and folders that are empty then.
pub fn remove_stale(prefix: &Path, new: &Files, earlier: &Files) -> Result<()> {
    for file in earlier.difference(new) {
        let path = prefix.join(file);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("removing {}", path.display()));
            }
            _ => {}
        }
        // One that is not empty stays.
        let folders = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        for folder in folders {
            let _ = std::fs::remove_dir(prefix.join(folder));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> Files {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_is_listed_is_told_from_what_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let sources = dir.path().join("share");
        assert_eq!(listed(&sources, &["bin/a"]).unwrap(), set(&[]), "nothing is there");
        std::fs::create_dir(&sources).unwrap();
        assert_eq!(
            listed(&sources, &["bin/a"]).unwrap(),
            set(&["bin/a"]),
            "it is from before there were lists"
        );
        list(&sources, &set(&["bin/b", "lib/c d"])).unwrap();
        assert_eq!(listed(&sources, &["bin/a"]).unwrap(), set(&["bin/b", "lib/c d"]));
        for wrong in ["../a", "/etc/passwd", "a/../../b"] {
            std::fs::write(sources.join(LIST), wrong).unwrap();
            assert!(listed(&sources, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stale_files_go_and_nothing_of_others_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path();
        let write = |name: &str| {
            std::fs::create_dir_all(prefix.join(name).parent().unwrap()).unwrap();
            std::fs::write(prefix.join(name), name).unwrap();
        };
        ["bin/a", "bin/own", "lib/x/y/z", "include/h", "include/theirs/h"].into_iter().for_each(write);
        let earlier = set(&["bin/a", "lib/x/y/z", "include/h", "include/gone"]);
        let new = set(&["bin/a", "bin/b"]);
        nothing_of_others(prefix, &new, &earlier).unwrap();
        let said = nothing_of_others(prefix, &set(&["bin/a", "bin/own", "include/theirs/h"]), &earlier);
        let said = said.unwrap_err().to_string();
        assert!(said.contains("bin/own, and 1 more files"), "{said}");
        remove_stale(prefix, &new, &earlier).unwrap();
        assert_eq!(files(prefix).unwrap(), set(&["bin/a", "bin/own", "include/theirs/h"]));
        assert!(!prefix.join("lib").exists(), "what is empty goes");
    }

    #[test]
    fn a_file_is_replaced_and_a_second_name_of_it_made() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to, link) =
            (dir.path().join("from"), dir.path().join("to/it"), dir.path().join("to/link"));
        for text in ["one", "two"] {
            std::fs::write(&from, text).unwrap();
            put(&from, &to).unwrap();
            put_link(&to, &link).unwrap();
            assert_eq!(std::fs::read_to_string(&to).unwrap(), text);
            assert_eq!(std::fs::read_to_string(&link).unwrap(), text);
        }
        let leads = dir.path().join("leads");
        std::os::unix::fs::symlink("it", &leads).unwrap();
        put(&leads, &dir.path().join("to/leads")).unwrap();
        assert_eq!(std::fs::read_link(dir.path().join("to/leads")).unwrap(), Path::new("it"));
        assert_eq!(files(&dir.path().join("to")).unwrap(), set(&["it", "leads", "link"]));
    }
}
