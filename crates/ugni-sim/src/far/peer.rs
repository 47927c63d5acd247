//! A NIC of another host, as one that posts to it sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gasworks_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use parking_lot::{Condvar, Mutex};

use super::Waker;
use super::frame::{Ask, PIECE};
use super::line::Line;
use crate::atomics::Command;
use crate::entry::Status;
use crate::letter::Letter;
use crate::memory::Memory;
use crate::queue::Overrun;
use crate::station::{Station, There, Told};

/// How long an answer may take: far longer than any does, unless its host is stopped or cut off.
const PATIENCE: Duration = Duration::from_secs(30);

/// A NIC of another host.
pub(super) struct Peer {
    line: Line,
    next: AtomicU64,
    state: Mutex<State>,
    answered: Condvar,
    /// Changes with the state held, for those who wait for an answer.
    gone: AtomicBool,
    wake: Waker,
}

#[derive(Default)]
struct State {
    /// What was asked, and its answer once it is there.
    asked: BTreeMap<u64, Option<(Status, Vec<u8>)>>,
}

impl Peer {
    pub(super) fn new(line: Line, wake: Waker) -> Self {
        let (next, gone) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { line, next, state: Mutex::default(), answered: Condvar::new(), gone, wake }
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// An answer has come; `false` if nobody waits for it.
    pub(super) fn answer(&self, number: u64, status: Status, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        let Some(asked) = state.asked.get_mut(&number) else { return false };
        *asked = Some((status, bytes.to_vec()));
        self.answered.notify_all();
        true
    }

    /// It is gone.
    pub(super) fn end(&self) {
        let state = self.state.lock();
        self.gone.store(true, Relaxed);
        drop(state);
        self.answered.notify_all();
        (self.wake)();
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&self, ask: &Ask<'_>) -> Result<Vec<u8>, Status> {
        let number = self.next.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        state.asked.insert(number, None);
        parking_lot::MutexGuard::unlocked(&mut state, || self.line.send(&ask.encode(number)));
        let pending =
            |state: &mut State| !self.is_gone() && state.asked.get(&number).is_some_and(Option::is_none);
        self.answered.wait_while_for(&mut state, pending, PATIENCE);
        let answer = state.asked.remove(&number).flatten();
        let late = answer.is_none() && !self.is_gone();
        drop(state);
        if late {
            // An answer that comes now would be none that anybody waits for.
            self.line.close();
            self.end();
        }
        match answer.ok_or(Status::Gone)? {
            (Status::Ok, bytes) => Ok(bytes),
            (status, _) => Err(status),
        }
    }

    /// An answer of so many bytes.
    fn ask_for<const N: usize>(&self, ask: &Ask<'_>) -> Result<[u8; N], Status> {
        // Who answers otherwise is none of us.
        self.ask(ask)?.try_into().map_err(|_| Status::Lost)
    }
}

/// The pieces of so many bytes: from which on, and how many; at least one.
fn pieces(len: u64) -> impl Iterator<Item = (u64, usize)> {
    let count = len.div_ceil(PIECE).max(1);
    (0..count).map(move |at| (at * PIECE, (len - at * PIECE).min(PIECE) as usize))
}

impl Station for Peer {
    fn put(&self, there: There, (memory, address): (&dyn Memory, u64)) -> Result<(), Status> {
        let mut bytes = Vec::new();
        for (from, len) in pieces(there.len) {
            bytes.resize(len, 0);
            memory.read(address.checked_add(from).ok_or(Status::Bounds)?, &mut bytes)?;
            self.ask_for::<0>(&Ask::Put(there, from, &bytes))?;
        }
        Ok(())
    }

    fn get(&self, there: There, (memory, address): (&dyn Memory, u64)) -> Result<(), Status> {
        for (from, len) in pieces(there.len) {
            let bytes = self.ask(&Ask::Get(there, from, len as u32))?;
            if bytes.len() != len {
                return Err(Status::Lost);
            }
            memory.write(address.checked_add(from).ok_or(Status::Bounds)?, &bytes)?;
        }
        Ok(())
    }

    fn store(&self, there: There, word: u64) -> Result<(), Status> {
        self.ask_for(&Ask::Store(there, word)).map(|[]| ())
    }

    fn change(&self, there: There, command: Command, operands: [u64; 2]) -> Result<u64, Status> {
        self.ask_for(&Ask::Change(there, command, operands)).map(u64::from_le_bytes)
    }

    fn tell(&self, there: There, data: Option<u64>) -> Result<Told, Status> {
        match self.ask_for(&Ask::Tell(there, data))? {
            [0] => Ok(None),
            [1] => Ok(Some(Ok(()))),
            [_] => Ok(Some(Err(Overrun))),
        }
    }

    fn deliver(&self, letter: &Letter) -> bool {
        self.ask_for(&Ask::Letter(letter.clone())).is_ok_and(|[taken]| taken == 1)
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.line.close();
    }
}

/// Keeps it until the gate's thread has taken note.
pub(super) type Found = (u64, Arc<Peer>);
