//! Lists of pieces: vectors, and blocks at indexed places.

use super::runs::{Base, Measure, Run, Runs, Way, copy, too_large};
use crate::Error;

/// One side of a transfer: pieces of memory in order, at addresses here or at offsets there.
///
/// # Safety
/// runs.1 of the module `runs`: it gives the same pieces each time.
pub unsafe trait Side<Place>: Copy {
    /// Where a piece is and how many bytes it has; `None` behind the last one.
    fn piece(&self, number: usize) -> Option<(Place, usize)>;

    /// How many bytes each has, if all have as many.
    fn each(&self) -> Option<usize> {
        None
    }
}

/// Pieces of their own lengths.
// SAFETY: runs.1: what is borrowed does not change.
unsafe impl<Place: Copy> Side<Place> for &[(Place, usize)] {
    #[inline]
    fn piece(&self, number: usize) -> Option<(Place, usize)> {
        self.get(number).copied()
    }
}

/// Blocks of one length.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a, Place> {
    /// Where they are.
    pub places: &'a [Place],
    /// How many bytes each has.
    pub len: usize,
}

// SAFETY: runs.1: what is borrowed does not change.
unsafe impl<Place: Copy> Side<Place> for Blocks<'_, Place> {
    #[inline]
    fn piece(&self, number: usize) -> Option<(Place, usize)> {
        Some((*self.places.get(number)?, self.len))
    }
    fn each(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// A transfer between two lists of pieces, which need not have the same lengths, but together as many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lists<L, R> {
    /// The pieces here.
    pub local: L,
    /// Those of the peer's memory.
    pub remote: R,
}

/// All pieces of a side that are not empty.
fn pieces<Place>(side: impl Side<Place>) -> impl Iterator<Item = (Place, usize)> {
    (0..).map_while(move |number| side.piece(number)).filter(|(_, len)| *len > 0)
}

// SAFETY: runs.1: both sides give the same pieces each time, all of which are measured.
unsafe impl<L: Side<*mut u8>, R: Side<u64>> Runs for Lists<L, R> {
    fn measure(&self) -> Result<Option<Measure>, Error> {
        let (mut low, mut high, mut there, mut here) = (u64::MAX, 0, 0u64, 0u64);
        let (mut pieces_here, mut pieces_there) = (0, 0);
        for (place, len) in pieces(self.remote) {
            let end = place.checked_add(len as u64).ok_or_else(too_large)?;
            (low, high) = (low.min(place), high.max(end));
            there = there.checked_add(len as u64).ok_or_else(too_large)?;
            pieces_there += 1;
        }
        for (place, len) in pieces(self.local) {
            place.addr().checked_add(len).ok_or_else(too_large)?;
            here = here.checked_add(len as u64).ok_or_else(too_large)?;
            pieces_here += 1;
        }
        if here != there {
            return Err(Error::Unequal { here, there });
        }
        if here == 0 {
            return Ok(None);
        }
        let extent = usize::try_from(high - low).map_err(|_| too_large())?;
        Ok(Some(Measure { bytes: here, runs: pieces_here.max(pieces_there), low, extent }))
    }

    fn runs(&self) -> impl Iterator<Item = Run> + Clone {
        let nothing = std::ptr::null_mut();
        Walk { lists: *self, next: (0, 0), local: nothing, local_left: 0, remote: 0, remote_left: 0 }
    }

    unsafe fn copy(&self, way: Way, there: Base<'_>) {
        // SAFETY: the caller promises the runs here and there.
        unsafe {
            match way {
                Way::Put => self.copy_all::<true>(there),
                Way::Get => self.copy_all::<false>(there),
            }
        }
    }
}

impl<L: Side<*mut u8>, R: Side<u64>> Lists<L, R> {
    /// # Safety
    /// That of [`Runs::copy`].
    unsafe fn copy_all<const PUT: bool>(&self, there: Base<'_>) {
        macro_rules! blocks {
            ($len:expr) => {{
                let (mut number, Self { local, remote }) = (0, self);
                while let (Some((here, _)), Some((offset, _))) = (local.piece(number), remote.piece(number)) {
                    // SAFETY: runs.1: both have as many blocks, those there inside what was opened; the caller promises those here.
                    unsafe { copy::<PUT>(here, there.at(offset), $len) };
                    number += 1;
                }
            }};
        }
        match self.local.each().filter(|&len| self.remote.each() == Some(len)) {
            Some(8) => blocks!(8),
            Some(16) => blocks!(16),
            Some(len) => blocks!(len),
            None => {
                for Run { local, remote, len } in self.runs() {
                    // SAFETY: runs.1: the run is inside what was opened; the caller promises as many bytes here.
                    unsafe { copy::<PUT>(local, there.at(remote), len) };
                }
            }
        }
    }
}

/// Where two lists are walked together.
#[derive(Clone)]
struct Walk<L, R> {
    lists: Lists<L, R>,
    /// The numbers of the next pieces.
    next: (usize, usize),
    local: *mut u8,
    local_left: usize,
    remote: u64,
    remote_left: usize,
}

impl<L: Side<*mut u8>, R: Side<u64>> Iterator for Walk<L, R> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        while self.local_left == 0 {
            (self.local, self.local_left) = self.lists.local.piece(self.next.0)?;
            self.next.0 += 1;
        }
        while self.remote_left == 0 {
            (self.remote, self.remote_left) = self.lists.remote.piece(self.next.1)?;
            self.next.1 += 1;
        }
        let len = self.local_left.min(self.remote_left);
        let run = Run { local: self.local, remote: self.remote, len };
        // What was measured does not go beyond the last address, except one behind it.
        (self.local, self.remote) = (self.local.wrapping_add(len), self.remote.wrapping_add(len as u64));
        (self.local_left, self.remote_left) = (self.local_left - len, self.remote_left - len);
        Some(run)
    }
}
