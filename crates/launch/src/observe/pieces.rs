//! Recordings on their way from the hosts of their ranks to `gasrun`: in pieces, one after the other, of which only so many are on
//! their way as there is room for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};
use gasworks_core::observe::{Recording, file_len, used_len};
use gasworks_os::memfd::MemFd;

/// How much of a host's recordings may be on its way.
const WINDOW: usize = 1 << 20;
/// The largest piece.
const PIECE: usize = 64 << 10;

/// A piece of what a rank has recorded, behind those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) rank: u32,
    /// It is the last one.
    pub(crate) is_last: bool,
    pub(crate) bytes: Vec<u8>,
}

/// An agent's side.
#[derive(Debug)]
pub(crate) struct Sender {
    /// What is left of each file, from the last on: the rank, its file, and where that ends.
    left: Vec<(u32, File, usize)>,
    /// How much of the last was sent.
    at: usize,
    room: usize,
}

impl Sender {
    /// Of the files of ranks that have ended.
    pub(super) fn new(files: &BTreeMap<u32, MemFd>) -> Result<Self> {
        let open = |(&rank, file): (&u32, &MemFd)| {
            Ok((rank, File::from(file.as_fd().try_clone_to_owned()?), used_len(file)?))
        };
        let left: Result<_> = files.iter().rev().map(open).collect();
        Ok(Self { left: left.context("read what the ranks recorded")?, at: 0, room: WINDOW })
    }

    /// The next piece, if there is room for it.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        let Some((rank, file, end)) = self.left.last() else { return Ok(None) };
        let (rank, len) = (*rank, PIECE.min(end - self.at));
        if len > self.room {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, self.at as u64)?;
        self.room -= len;
        self.at += len;
        let is_last = self.at == *end;
        if is_last {
            self.at = 0;
            self.left.pop();
        }
        Ok(Some(Piece { rank, is_last, bytes }))
    }

    /// So many bytes have come to where they were sent.
    pub(crate) fn has_room(&mut self, count: usize) {
        self.room = self.room.saturating_add(count).min(WINDOW);
    }

    /// Whether all was sent.
    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }
}

/// The side of `gasrun`.
#[derive(Debug)]
pub(super) struct Receiver {
    /// How many events each rank keeps.
    events: u32,
    begun: BTreeMap<u32, Vec<u8>>,
    whole: BTreeMap<u32, Recording>,
}

impl Receiver {
    /// Of ranks each of which keeps so many events.
    pub(super) fn new(events: u32) -> Self {
        Self { events, begun: BTreeMap::new(), whole: BTreeMap::new() }
    }

    /// A piece has come.
    pub(super) fn take(&mut self, piece: Piece) -> Result<(), String> {
        let Piece { rank, is_last, bytes } = piece;
        let begun = self.begun.entry(rank).or_default();
        if self.whole.contains_key(&rank) || begun.len() + bytes.len() > file_len(self.events) {
            return Err(format!("it sends more of what rank {rank} recorded than there is"));
        }
        begun.extend_from_slice(&bytes);
        if is_last && let Some(bytes) = self.begun.remove(&rank) {
            let whole = Recording::from_bytes(&bytes, self.events);
            let whole = whole.map_err(|_| format!("what rank {rank} recorded is cut short"))?;
            self.whole.insert(rank, whole);
        }
        Ok(())
    }

    /// What has come of a rank, and whether it is all.
    pub(super) fn of(&mut self, rank: u32) -> (Recording, bool) {
        if let Some(whole) = self.whole.remove(&rank) {
            return (whole, true);
        }
        let begun = self.begun.remove(&rank).unwrap_or_default();
        (Recording::from_bytes(&begun, self.events).unwrap_or_default(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_core::observe::{Op, Recorder, create};

    /// What comes to the other side is what was recorded, with no more on its way than there is room for.
    #[test]
    fn recordings_come_in_pieces() {
        for (events, puts) in [(0, 3), (8, 3), (8, 20), (30_000, 29_000)] {
            let record = |rank| {
                let file = create(events).expect("a file");
                let recorder = Recorder::join(file.as_fd(), rank).expect("a recorder");
                (0..puts).for_each(|i| recorder.transfer(Op::Put, i, 9, || ()));
                (rank, file)
            };
            let files: BTreeMap<u32, MemFd> = [2, 5].map(record).into();
            let mut sender = Sender::new(&files).expect("files");
            let mut receiver = Receiver::new(events);
            let mut on_the_way = 0;
            while !sender.is_done() {
                while let Some(piece) = sender.next().expect("read") {
                    on_the_way += piece.bytes.len();
                    assert!(piece.bytes.len() <= PIECE && on_the_way <= WINDOW);
                    assert_eq!(receiver.take(piece), Ok(()));
                }
                sender.has_room(std::mem::take(&mut on_the_way));
            }
            for (rank, file) in &files {
                let (come, is_whole) = receiver.of(*rank);
                let kept = Recording::read(file).expect("a recording");
                assert!(is_whole && come.events == kept.events && come.overwritten == kept.overwritten);
                assert_eq!(come.events.len() as u32, puts.min(events));
                assert_eq!(
                    (come.pid, come.total(Op::Put)),
                    (std::process::id(), (u64::from(puts), 9 * u64::from(puts)))
                );
            }
            assert_eq!((receiver.of(2).1, receiver.of(3).0.pid), (false, 0));
        }
    }

    #[test]
    fn what_comes_in_part_is_read_as_far_as_it_goes() {
        let file = create(8).expect("a file");
        let recorder = Recorder::join(file.as_fd(), 0).expect("a recorder");
        (0..6).for_each(|i| recorder.transfer(Op::Get, i, 9, || ()));
        let mut sender = Sender::new(&[(0, file)].into()).expect("a file");
        let Piece { mut bytes, .. } = sender.next().expect("read").expect("a piece");
        bytes.truncate(file_len(4) - 1);
        let mut receiver = Receiver::new(8);
        assert_eq!(receiver.take(Piece { rank: 0, is_last: false, bytes: bytes.clone() }), Ok(()));
        let (come, is_whole) = receiver.of(0);
        assert_eq!((come.events.len(), come.total(Op::Get).0, is_whole), (3, 6, false));
        // More than there may be, more behind the last, and a last one that comes too soon.
        let piece = |is_last, len| Piece { rank: 1, is_last, bytes: vec![1; len] };
        assert!(receiver.take(piece(false, file_len(8) + 1)).is_err());
        assert!(receiver.take(piece(true, 5)).is_err());
        assert_eq!(receiver.take(piece(true, file_len(8))), Ok(()));
        assert!(receiver.take(piece(false, 1)).is_err());
    }
}
