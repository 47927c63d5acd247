//! A directory that is held open (`openat(2)`), and what processes of one user share in it by names: regular files and FIFOs.
//!
//! What is opened here is the caller's user's or root's, is what it should be, and is no symbolic link: otherwise it is refused. Nobody else can have put it there where the directory is
//! this user's alone to change, which is looked at, too.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat};
use nix::unistd::{ftruncate, geteuid, mkfifoat};

use crate::fifo::{FifoReader, FifoWriter};
use crate::file::SharedFile;
use crate::{OsError, Result};

/// Rights of what is made here: this user's alone.
const MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
/// The bits by which a group and all others may write.
const WRITABLE: Mode = Mode::S_IWGRP.union(Mode::S_IWOTH);
/// Opened so, nothing waits for a peer, and no symbolic link is followed.
const PLAIN: OFlag = OFlag::O_CLOEXEC.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK);

/// A directory, whatever may come to have its path.
#[derive(Debug)]
pub struct OpenDirectory {
    fd: OwnedFd,
    path: PathBuf,
}

impl OpenDirectory {
    /// Opens a directory that is this user's or root's, and that nobody else can change.
    ///
    /// # Errors
    /// It is not, or there is none, or the system refuses.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error| OsError::new("open directory", path.display(), error);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(failed)?;
        let found = fstat(&fd).map_err(failed)?;
        check(&found, SFlag::S_IFDIR).map_err(|why| OsError::other("open directory", path.display(), why))?;
        Ok(Self { fd, path: path.into() })
    }

    /// Opens something in it, which has to be of this kind.
    fn open_at(&self, name: &str, flags: OFlag, kind: SFlag) -> Result<(OwnedFd, FileStat)> {
        let place = self.path.join(name);
        let failed = |error| OsError::new("open", place.display(), error);
        let fd = openat(&self.fd, name, flags | PLAIN, MODE).map_err(failed)?;
        let found = fstat(&fd).map_err(failed)?;
        check(&found, kind).map_err(|why| OsError::other("open", place.display(), why))?;
        Ok((fd, found))
    }

    /// Makes a FIFO, to be read.
    ///
    /// # Errors
    /// There is something of that name, or the system refuses.
    pub fn make_fifo(&self, name: &str) -> Result<FifoReader> {
        let failed = |error| OsError::new("make FIFO", self.path.join(name).display(), error);
        mkfifoat(&self.fd, name, MODE).map_err(failed)?;
        // Its reader has it open for writing, too: so it does not end when its last writer has closed it.
        let (fd, _) = self.open_at(name, OFlag::O_RDWR, SFlag::S_IFIFO)?;
        Ok(FifoReader::new(fd))
    }

    /// Opens a FIFO, to write to it.
    ///
    /// # Errors
    /// There is none, or nobody reads it, or it is another user's, or the system refuses.
    pub fn open_fifo(&self, name: &str) -> Result<FifoWriter> {
        self.open_at(name, OFlag::O_WRONLY, SFlag::S_IFIFO).map(|(fd, _)| FifoWriter::new(fd))
    }

    /// Makes a regular file of `len` zero bytes, none of which takes room before it is written.
    ///
    /// # Errors
    /// There is something of that name, or this process may make no file so large, or the system refuses.
    pub fn make_file(&self, name: &str, len: u64) -> Result<SharedFile> {
        let place = self.path.join(name);
        let failed = |error: Errno| OsError::new("make file", place.display(), error);
        // The system would not only refuse, but end the process by SIGXFSZ.
        if let Some(limit) = crate::limits::file_size().filter(|limit| len > limit.bytes) {
            let why = format!("{len} bytes; {} is {} bytes", limit.who, limit.bytes);
            return Err(OsError::other("make file", place.display(), why));
        }
        let size = i64::try_from(len).map_err(|_| failed(Errno::EFBIG))?;
        let (fd, _) = self.open_at(name, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL, SFlag::S_IFREG)?;
        // Whatever the process's mask of rights takes away.
        fchmod(&fd, MODE).map_err(failed)?;
        ftruncate(&fd, size).map_err(failed)?;
        Ok(SharedFile::new(fd))
    }

    /// Opens a regular file of at least `len` bytes, to be read and written.
    ///
    /// # Errors
    /// There is none, or it is shorter, or it is another user's, or the system refuses.
    pub fn open_file(&self, name: &str, len: u64) -> Result<SharedFile> {
        let (fd, found) = self.open_at(name, OFlag::O_RDWR, SFlag::S_IFREG)?;
        match u64::try_from(found.st_size) {
            Ok(size) if size >= len => Ok(SharedFile::new(fd)),
            _ => {
                let why = format!("it has {} bytes, and should have {len}", found.st_size);
                Err(OsError::other("open", self.path.join(name).display(), why))
            }
        }
    }
}

impl AsFd for OpenDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether something is of a kind, and nobody but this user and root can change it.
fn check(found: &FileStat, kind: SFlag) -> std::result::Result<(), &'static str> {
    let mode = SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits());
    match () {
        () if mode != kind => Err("it is something else"),
        () if found.st_uid != geteuid().as_raw() && found.st_uid != 0 => Err("it belongs to another user"),
        () if found.st_mode & WRITABLE.bits() != 0 => Err("others can change it"),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_something_else_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let directory = OpenDirectory::open(folder.path()).expect("this user's");
        let said = |error: OsError| error.to_string();
        let file = directory.make_file("file", 100).expect("made");
        let mode = std::fs::metadata(at("file")).expect("it is there").permissions().mode();
        assert_eq!((mode & 0o777, std::fs::read(at("file")).expect("read")), (0o600, vec![0; 100]));
        drop(file);
        directory.open_file("file", 100).expect("long enough");
        assert!(
            directory
                .open_file("file", 101)
                .map_err(said)
                .is_err_and(|said| said.contains("should have 101"))
        );
        assert!(directory.open_fifo("file").map_err(said).is_err_and(|said| said.contains("something else")));
        assert!(directory.make_file("file", 1).is_err() && directory.make_fifo("file").is_err());
        symlink(at("file"), at("link")).expect("a link");
        assert!(directory.open_file("link", 1).is_err() && directory.open_file("none", 0).is_err());
        std::fs::set_permissions(at("file"), PermissionsExt::from_mode(0o620)).expect("changed");
        assert!(directory.open_file("file", 1).map_err(said).is_err_and(|said| said.contains("others can")));
        let reader = directory.make_fifo("fifo").expect("made");
        assert!(directory.open_file("fifo", 0).is_err());
        directory.open_fifo("fifo").expect("it is read");
        drop(reader);
        assert!(directory.open_fifo("fifo").is_err(), "nobody reads it");
        // Its path is another directory's meanwhile.
        let (inner, moved) = (at("inner"), at("moved"));
        std::fs::create_dir(&inner).expect("made");
        let held = OpenDirectory::open(&inner).expect("this user's");
        std::fs::rename(&inner, &moved).expect("moved");
        std::fs::create_dir(&inner).expect("made");
        held.make_file("there", 0).expect("made");
        assert!(moved.join("there").exists() && !inner.join("there").exists());
        std::fs::set_permissions(&inner, PermissionsExt::from_mode(0o777)).expect("changed");
        assert!(OpenDirectory::open(&inner).map_err(said).is_err_and(|said| said.contains("others can")));
        assert!(OpenDirectory::open(&at("file")).is_err());
    }
}
