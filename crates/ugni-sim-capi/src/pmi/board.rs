//! The attributes of a host: a file without a name that its ranks share, one record after the other.
//!
//! A record is appended by one write, so it is in one place; who reads looks at whole records alone, and the file never
//! shrinks. What was put twice is what was put last.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use gasworks_gni_sys::pmi::{PMI2_MAX_ATTRVALUE, PMI2_MAX_KEYLEN};

/// Where it takes memory, and no disk; and where everybody may have a file.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];
const RECORD: usize = PMI2_MAX_KEYLEN + PMI2_MAX_ATTRVALUE;
/// How often one who waits looks.
const PAUSE: Duration = Duration::from_millis(1);

/// A host's attributes.
#[derive(Debug)]
pub struct Board(File);

impl Board {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        let open = |place| {
            OpenOptions::new().read(true).append(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(place)
        };
        open(PLACES[0]).or_else(|_| open(PLACES[1])).map(Self)
    }

    /// One that another rank has made.
    pub fn of(fd: OwnedFd) -> Self {
        Self(fd.into())
    }

    /// What to give to the other ranks.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Puts an attribute. Name and value hold no zero and are shorter than there is room for, as was checked.
    pub fn put(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        let mut record = [0; RECORD];
        record[..name.len()].copy_from_slice(name);
        record[PMI2_MAX_KEYLEN..][..value.len()].copy_from_slice(value);
        (&self.0).write_all(&record)
    }

    /// An attribute, if it was put.
    pub fn get(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let (mut record, mut found) = ([0; RECORD], None);
        let whole = self.0.metadata()?.len() / RECORD as u64;
        for at in 0..whole {
            self.0.read_exact_at(&mut record, at * RECORD as u64)?;
            let (theirs, value) = record.split_at(PMI2_MAX_KEYLEN);
            if text(theirs) == name {
                found = Some(text(value).to_vec());
            }
        }
        Ok(found)
    }

    /// An attribute, as soon as somebody puts it.
    pub fn wait(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(found) = self.get(name)? {
                return Ok(found);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_puts_the_others_find() {
        let board = Board::new().expect("a board");
        let other = Board::of(board.fd().try_clone_to_owned().expect("a copy"));
        assert_eq!(board.get(b"name").expect("read"), None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| other.wait(b"name").expect("read"));
            board.put(b"another", b"value").expect("put");
            board.put(b"name", &[b'v'; 1023]).expect("put");
            assert_eq!(waiting.join().expect("waited"), [b'v'; 1023]);
        });
        other.put(b"name", b"").expect("put");
        assert_eq!(board.get(b"name").expect("read"), Some(Vec::new()));
        assert_eq!(board.get(b"nam").expect("read"), None);
    }
}
