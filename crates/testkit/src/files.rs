//! Directories that are laid out for others.

use anyhow::{Context, Result};
use std::path::Path;
use std::time::SystemTime;

/// There is such a directory, with nothing in it.
pub fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))
}

/// In place of what is there, at once: a process that runs keeps the old file, and none finds half of the new one.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut new = to.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    std::fs::copy(from, &new)
        .and_then(|_| std::fs::rename(&new, to))
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

/// A directory and all that is in it.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let from = entry?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() { copy_tree(&from, &to)? } else { copy(&from, &to)? }
    }
    Ok(())
}

/// When the file `path`, or what was changed last below the folder, was changed.
pub fn newest(path: &Path) -> Result<SystemTime> {
    let why = || format!("looking at {}", path.display());
    let found = path.metadata().with_context(why)?;
    let mut newest = found.modified().with_context(why)?;
    if found.is_dir() {
        for entry in std::fs::read_dir(path).with_context(why)? {
            newest = newest.max(self::newest(&entry?.path())?);
        }
    }
    Ok(newest)
}
