//! The directory of an endpoint, `BASE/PID/ID`, and its lock.
//!
//! An endpoint holds an exclusive lock on the file `lock` in its directory for as long as it lives. The system releases the lock when the process ends, in whatever way.
//! So every process that can take the lock knows that the endpoint is gone, and may remove what it has left.

use crate::uri::{Uri, UriError, number};
use gasworks_sync::kill_point;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The lock's name in an endpoint's directory.
pub const LOCK: &str = "lock";
/// How often a directory is made, and what lies between, while others look whether its endpoint is alive.
const ATTEMPTS: u32 = 100;
/// How often one is made where another number will do as well.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(2);
/// Longer than it takes to look whether an endpoint is alive.
const GLANCE: Duration = Duration::from_micros(500);
/// Rights of directories and of the lock: this user's alone.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The bit of a directory's mode by which users who may write to it may not remove what others have made there.
const STICKY: u32 = 0o1000;
/// The bits by which a group and all others may write.
const WRITABLE: u32 = 0o022;
const WRITABLE_BY_ALL: u32 = 0o002;

/// Why there is no directory for an endpoint.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Its address is none.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// An endpoint that is alive has this address.
    #[error("{path:?} is the directory of an endpoint that is alive")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Others could put something else in the directory's place. What is further above the base is the caller's to choose.
    #[error(
        "{path:?} {what}: endpoints want a directory that only this user can change, or one with the sticky bit"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refuses.
    #[error("cannot {doing} {path:?}: {cause}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

/// What a call of the system says of a file.
fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |cause| DirectoryError::System { doing, path, cause }
}

/// The directory of an endpoint of this process. Dropping it removes the directory.
#[derive(Debug)]
pub struct Directory {
    uri: Uri,
    /// Locked until it is closed, behind the directory's removal: so nobody takes what is being removed for a dead endpoint's.
    _lock: File,
}

impl Directory {
    /// Makes the directory of endpoint `id` of process `pid` under `base`, which is made if it is not there. What a dead endpoint has left there is removed before.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub fn create(base: &str, pid: u32, id: u32) -> Result<Self, DirectoryError> {
        Self::create_within(ATTEMPTS, base, pid, id)
    }

    /// As [`create`](Self::create), with a number for which process `pid` has no directory.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub fn create_next(base: &str, pid: u32) -> Result<Self, DirectoryError> {
        remove_dead(base);
        let of_process = Path::new(base).join(pid.to_string());
        let taken = numbered(&of_process).unwrap_or_default();
        let mut free = (0..).filter(|id| taken.iter().all(|(taken, _)| taken != id));
        loop {
            let id = free.next().unwrap_or(u32::MAX);
            // Another thread may have chosen it at the same time.
            match Self::create_within(TRIES, base, pid, id) {
                Err(DirectoryError::InUse { .. }) if id < u32::MAX => {}
                made => return made,
            }
        }
    }

    fn create_within(most: u32, base: &str, pid: u32, id: u32) -> Result<Self, DirectoryError> {
        let uri = Uri::new(base, pid, id)?;
        let path = uri.directory();
        let mut attempts = 0;
        // Another process that looks for dead endpoints may remove what was made a moment ago, and holds the lock for a moment.
        loop {
            attempts += 1;
            make(Path::new(base), true)?;
            check_above(Path::new(base))?;
            let are_there = match path.parent() {
                Some(of_process) => make(of_process, false)? && make(&path, false)?,
                None => make(&path, false)?,
            };
            kill_point!("cci.directory.made");
            if !are_there {
                if attempts < most {
                    continue;
                }
                return Err(failed("make directory", &path)(ErrorKind::NotFound.into()));
            }
            match lock(&path, true, File::try_lock) {
                Ok(Some(_lock)) => {
                    kill_point!("cci.directory.locked");
                    clear(&path, false).map_err(failed("clear", &path))?;
                    return Ok(Self { uri, _lock });
                }
                Err(DirectoryError::InUse { .. }) if attempts < most => std::thread::sleep(PAUSE),
                Ok(None) if attempts < most => {}
                Ok(None) => return Err(DirectoryError::InUse { path }),
                Err(error) => return Err(error),
            }
        }
    }

    /// The endpoint's address.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.uri.directory());
    }
}

/// Makes a directory, of this user alone, if it is not there; one that is there has to be safe to use. With `parents` those above it are made, too. Whether it is there: another
/// process may have taken it away, or what it is in.
fn make(path: &Path, parents: bool) -> Result<bool, DirectoryError> {
    let made = fs::DirBuilder::new().recursive(parents).mode(DIRECTORY_MODE).create(path);
    match made {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(failed("make directory", path)(error));
        }
        _ => {}
    }
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.map_err(failed("look at", path))?,
    };
    let not_ours = |what| Err(DirectoryError::NotOurs { path: path.into(), what });
    let own = nix::unistd::geteuid().as_raw();
    match () {
        () if !found.is_dir() => not_ours("is no directory"),
        () if found.uid() != own && found.uid() != 0 => not_ours("belongs to another user"),
        () if found.mode() & WRITABLE != 0 && found.mode() & STICKY == 0 => {
            not_ours("can be changed by others")
        }
        () => Ok(true),
    }
}

/// Whether somebody else could put another directory in the place of the base: who may change the one above it.
fn check_above(base: &Path) -> Result<(), DirectoryError> {
    let Some(above) = base.parent() else { return Ok(()) };
    let found = fs::metadata(above).map_err(failed("look at", above))?;
    let own = nix::unistd::geteuid().as_raw();
    let not_ours = |what| Err(DirectoryError::NotOurs { path: above.into(), what });
    match () {
        () if found.uid() != own && found.uid() != 0 => not_ours("belongs to another user"),
        () if found.mode() & WRITABLE_BY_ALL != 0 && found.mode() & STICKY == 0 => {
            not_ours("can be changed by others")
        }
        () => Ok(()),
    }
}

/// Takes the lock of an endpoint's directory by `try_lock`, alone or with others. `None` if there is no lock, which is made if `makes` says so, or the directory went away meanwhile.
fn lock(
    path: &Path,
    makes: bool,
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<File>, DirectoryError> {
    let place = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(makes).truncate(false).mode(FILE_MODE);
    let file = match options.open(&place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("open", &place))?,
    };
    match try_lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(DirectoryError::InUse { path: path.into() }),
        Err(TryLockError::Error(cause)) => return Err(failed("lock", &place)(cause)),
    }
    // What was locked may have been removed before, by who held the lock until then.
    let (own, there) = (file.metadata().map_err(failed("look at", &place))?, fs::symlink_metadata(&place));
    let is_there = there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
    Ok(is_there.then_some(file))
}

/// Removes what lies in an endpoint's directory, the lock last and only with `all`.
fn clear(path: &Path, all: bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    if all { fs::remove_file(path.join(LOCK)) } else { Ok(()) }
}

/// Removes an endpoint's directory, whose lock this process holds, and that of its process if it was the last one's. What cannot be removed stays.
fn remove(path: &Path) {
    let is_empty = clear(path, true).is_ok();
    kill_point!("cci.directory.emptied");
    if is_empty && fs::remove_dir(path).is_ok() {
        kill_point!("cci.directory.removed");
        let _ = path.parent().map(fs::remove_dir);
    }
}

/// Processes whose directories are looked at when an endpoint is made.
const LOOKED_AT: usize = 32;

/// Removes directories of dead endpoints, of a few processes: those that do not run any more.
fn remove_dead(base: &str) {
    let processes = numbered(Path::new(base)).unwrap_or_default();
    let is_gone = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
    for (_, of_process) in processes.into_iter().filter(|(pid, _)| is_gone(*pid)).take(LOOKED_AT) {
        for (_, path) in numbered(&of_process).unwrap_or_default() {
            look_at(&path, true);
        }
        // One that a process left before it had made an endpoint's in it.
        let _ = fs::remove_dir(&of_process);
    }
}

/// Whether an endpoint is alive, as far as another process can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Its process holds the lock.
    Alive,
    /// Nobody does.
    Dead,
    /// The lock cannot be looked at: it is another user's, or not there yet.
    Unknown,
}

/// An endpoint's directory, as another process finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The endpoint's address.
    pub uri: Uri,
    /// Whether it is alive.
    pub liveness: Liveness,
}

/// All endpoints whose directories lie under `base`; with `remove_dead` those of dead ones are removed, as far as this user may.
///
/// # Errors
/// `base` cannot be read. That it is not there means that there are none.
pub fn endpoints(base: &str, remove_dead: bool) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for (pid, of_process) in numbered(Path::new(base))? {
        // Of another user's process nothing is to be seen.
        for (id, path) in numbered(&of_process).unwrap_or_default() {
            if let Ok(uri) = Uri::new(base, pid, id) {
                found.push(Found { uri, liveness: look_at(&path, remove_dead) });
            }
        }
        if remove_dead {
            // One that a process left before it had made an endpoint's in it.
            let _ = fs::remove_dir(&of_process);
        }
    }
    found.sort_by_key(|found| (found.uri.pid(), found.uri.id()));
    Ok(found)
}

/// Whether the endpoint of a directory is alive; with `remove_dead` the directory is removed if it is not.
fn look_at(path: &Path, remove_dead: bool) -> Liveness {
    // Who only looks makes nothing, and is in nobody's way who looks as well.
    let try_lock = if remove_dead { File::try_lock } else { File::try_lock_shared };
    let lock_of = || lock(path, remove_dead, try_lock);
    let mut found = lock_of();
    if matches!(found, Err(DirectoryError::InUse { .. })) {
        // Others who look at a dead one's hold the lock for a moment.
        std::thread::sleep(GLANCE);
        found = lock_of();
    }
    match found {
        Err(DirectoryError::InUse { .. }) => Liveness::Alive,
        Ok(Some(_lock)) => {
            if remove_dead {
                remove(path);
            }
            Liveness::Dead
        }
        _ => Liveness::Unknown,
    }
}

/// Directories whose names are numbers.
fn numbered(path: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let entries = match fs::read_dir(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        entries => entries?,
    };
    let numbered = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((number(entry.file_name().to_str()?)?, entry.path()))
    };
    Ok(entries.filter_map(numbered).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn base() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("cci/sm").to_str().expect("text").to_owned();
        (folder, base)
    }

    fn found(base: &str, remove_dead: bool) -> Vec<(u32, u32, bool)> {
        let all = endpoints(base, remove_dead).expect("it can be read");
        all.into_iter()
            .map(|found| {
                assert_ne!(found.liveness, Liveness::Unknown);
                (found.uri.pid(), found.uri.id(), found.liveness == Liveness::Alive)
            })
            .collect()
    }

    #[test]
    fn an_endpoint_s_directory_goes_with_it() {
        let (_folder, base) = base();
        assert_eq!(found(&base, true), []);
        let first = Directory::create(&base, 7, 1).expect("a directory");
        let second = Directory::create(&base, 7, 0).expect("another");
        assert_eq!(first.uri().to_string(), format!("sm://{base}/7/1"));
        assert_eq!(found(&base, true), [(7, 0, true), (7, 1, true)]);
        let taken = Directory::create(&base, 7, 1).expect_err("it is in use").to_string();
        assert!(taken.contains("endpoint that is alive"), "{taken}");
        let mode = fs::metadata(first.uri().directory()).expect("it is there").mode();
        assert_eq!(mode & 0o777, DIRECTORY_MODE);
        fs::write(first.uri().socket(), "").expect("a file");
        drop(first);
        assert_eq!(found(&base, false), [(7, 0, true)]);
        drop(second);
        assert_eq!(fs::read_dir(&base).expect("the base stays").count(), 0);
    }

    /// The system says of places in `/proc` that they are not there, as it does of what another process has just removed.
    #[test]
    fn where_no_directory_can_be_made_there_is_none() {
        for made in [Directory::create("/proc/cci", 7, 1), Directory::create_next("/proc/cci", 7)] {
            let error = made.expect_err("no directory").to_string();
            assert!(error.starts_with("cannot make directory \"/proc/cci/7/"), "{error}");
        }
    }

    /// As after a process that was killed: its files are there, and nobody holds the lock.
    #[test]
    fn what_the_dead_have_left_is_removed_by_whoever_comes() {
        let (_folder, base) = base();
        for (pid, id) in [(8, 3), (8, 4), (9, 1)] {
            let left = Directory::create(&base, pid, id).expect("a directory");
            fs::write(left.uri().socket(), "").expect("a file");
            left._lock.unlock().expect("it was locked");
            std::mem::forget(left);
        }
        let alive = Directory::create(&base, 9, 2).expect("a directory");
        assert_eq!(found(&base, false), [(8, 3, false), (8, 4, false), (9, 1, false), (9, 2, true)]);
        // An address is used again as if nothing had been there.
        let again = Directory::create(&base, 8, 4).expect("the dead one's");
        assert!(!again.uri().socket().exists());
        assert_eq!(found(&base, true), [(8, 3, false), (8, 4, true), (9, 1, false), (9, 2, true)]);
        assert_eq!(found(&base, true), [(8, 4, true), (9, 2, true)]);
        drop((alive, again));
        assert_eq!(fs::read_dir(&base).expect("the base stays").count(), 0);
    }

    /// Processes that make directories and look for dead ones at the same time are in nobody's way.
    #[test]
    fn who_looks_for_the_dead_disturbs_nobody() {
        let (_folder, base) = base();
        let is_over = std::sync::Mutex::new(false);
        std::thread::scope(|scope| {
            let look = || {
                while !*is_over.lock().expect("nobody panics") {
                    endpoints(&base, true).expect("it can be read");
                }
            };
            scope.spawn(look);
            scope.spawn(look);
            for round in 0..200 {
                let made = Directory::create(&base, 7, round % 3).expect("nobody else has it");
                assert!(made.uri().directory().join(LOCK).exists(), "round {round}");
            }
            *is_over.lock().expect("nobody panics") = true;
        });
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        let (folder, base) = base();
        let refused = |base: &str| Directory::create(base, 1, 1).expect_err("refused").to_string();
        drop(Directory::create(&base, 1, 1).expect("it is ours"));
        let with_mode = |mode| fs::set_permissions(&base, fs::Permissions::from_mode(mode)).expect("ours");
        with_mode(0o777);
        assert!(refused(&base).contains("can be changed by others"));
        with_mode(0o1777);
        drop(Directory::create(&base, 1, 1).expect("with the sticky bit"));
        let file = folder.path().join("file").to_str().expect("text").to_owned();
        fs::write(&file, "").expect("a file");
        assert!(refused(&file).contains("is no directory"));
        let link = folder.path().join("link").to_str().expect("text").to_owned();
        std::os::unix::fs::symlink(&base, &link).expect("a link");
        assert!(refused(&link).contains("is no directory"), "a link may lead elsewhere later");
        assert!(refused("relative").contains("an absolute path"));
    }
}
