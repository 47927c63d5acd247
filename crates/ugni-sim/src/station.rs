//! What the other NICs may do at one: with its registrations, its queues, its client's memory.
//!
//! Whoever posts a transaction carries it out at the target itself, if it is shown what it needs; the same functions serve the
//! target where it has to do that for a poster of another host.

use crate::atomics::Command;
use crate::entry::{Body, Entry, Source, Status};
use crate::handle::{Flags, Handle};
use crate::letter::Letter;
use crate::memory::{self, Fault, Memory, PIECE};
use crate::queue::Overrun;
use crate::shares::{Share, Shares};
use crate::table::{Place, Visit};
use crate::window::Window;

/// A NIC's pages: registered memory ends at the end of one.
pub const PAGE: u64 = 4096;

/// Bytes that a transaction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct There {
    /// What they are registered as.
    pub handle: Handle,
    /// Where they begin.
    pub address: u64,
    /// How many they are.
    pub len: u64,
}

/// Whether there was a queue to be told, and room in it.
pub type Told = Option<Result<(), Overrun>>;

/// A NIC, as others reach it. What they name is checked each time; the errors are those of a transaction that wants what is not
/// there, or not allowed.
pub trait Station: Send + Sync {
    /// Fills bytes from another memory.
    ///
    /// # Errors
    /// Why one of the two was not reached.
    fn put(&self, there: There, from: (&dyn Memory, u64)) -> Result<(), Status>;

    /// Copies bytes to another memory.
    ///
    /// # Errors
    /// Why one of the two was not reached.
    fn get(&self, there: There, to: (&dyn Memory, u64)) -> Result<(), Status>;

    /// Writes a word to the eight bytes, at once.
    ///
    /// # Errors
    /// Why they were not reached.
    fn store(&self, there: There, word: u64) -> Result<(), Status>;

    /// Does what a command says to the word that the bytes are, and gives the old one. No other NIC changes a word here at the
    /// same time; as with the chips, the client's own stores may come in between.
    ///
    /// # Errors
    /// Why the word was not reached, or [`Status::Timeout`] where another NIC keeps it to itself for too long.
    fn change(&self, there: There, command: Command, operands: [u64; 2]) -> Result<u64, Status>;

    /// Makes an event in the queue that the memory was registered with, or without `data` loses one, as if it were full.
    ///
    /// # Errors
    /// There is no such memory.
    fn tell(&self, there: There, data: Option<u64>) -> Result<Told, Status>;

    /// Takes a letter in; `false` if it cannot.
    fn deliver(&self, letter: &Letter) -> bool;

    /// Whether its client has gone, for all that is known here.
    fn is_gone(&self) -> bool {
        false
    }
}

/// A NIC that shows what others need to do all that by themselves.
pub trait Shown: Send + Sync {
    /// What it shows.
    fn window(&self) -> &Window;
    /// Its client's memory.
    fn memory(&self) -> &dyn Memory;
    /// The files in which its registrations lie, if any can.
    fn shares(&self) -> Option<&Shares> {
        None
    }
    /// As [`Station::deliver`].
    fn take_in(&self, letter: &Letter) -> bool;
    /// As [`Station::is_gone`].
    fn has_gone(&self) -> bool {
        false
    }
}

impl<T: Shown> Station for T {
    fn put(&self, there: There, from: (&dyn Memory, u64)) -> Result<(), Status> {
        reach(self, there, Want::Write)?.fill(from)
    }

    fn get(&self, there: There, to: (&dyn Memory, u64)) -> Result<(), Status> {
        reach(self, there, Want::Read)?.copy_to(to)
    }

    fn store(&self, there: There, word: u64) -> Result<(), Status> {
        reach(self, there, Want::Write)?.write(0, &word.to_le_bytes())
    }

    fn change(&self, there: There, command: Command, operands: [u64; 2]) -> Result<u64, Status> {
        reach(self, there, Want::Write)?.change(command, operands)
    }

    fn tell(&self, there: There, data: Option<u64>) -> Result<Told, Status> {
        let reached = reach(self, there, Want::Read)?;
        Ok(data.map_or_else(|| reached.lose(), |data| reached.tell(data)))
    }

    fn deliver(&self, letter: &Letter) -> bool {
        self.take_in(letter)
    }

    fn is_gone(&self) -> bool {
        self.has_gone()
    }
}

/// What a transaction wants of the memory that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To read it, or to tell its queue.
    Read,
    /// To write it.
    Write,
}

/// Some bytes of a station, for as long as this lives.
pub struct Reach<'a> {
    station: &'a dyn Shown,
    visit: Visit<'a>,
    address: u64,
    len: u64,
}

/// The handle of registered memory.
pub fn handle_of(descriptor: u16, place: &Place) -> Handle {
    let pages = place.first.saturating_add(place.len).div_ceil(PAGE) - place.first / PAGE;
    Handle {
        page: place.first / PAGE,
        descriptor,
        entropy: place.entropy,
        pages: u32::try_from(pages).unwrap_or(u32::MAX).min(crate::handle::PAGES_UNSAID),
        shift: PAGE.trailing_zeros() as u8,
        flags: Flags(place.flags),
    }
}

/// Enters the memory that a handle names, to use bytes of it on behalf of another NIC.
///
/// # Errors
/// The status of a transaction that wants what is not there, or not allowed.
pub fn reach(station: &dyn Shown, there: There, want: Want) -> Result<Reach<'_>, Status> {
    let reach = enter(station, there, want)?;
    if want == Want::Write
        && let Some(writes) = station.window().writes()
    {
        reach.each_piece(0, reach.len, |_, address, len| {
            writes.note(address, len);
            Ok(())
        })?;
    }
    Ok(reach)
}

/// The same for the station's own NIC.
///
/// # Errors
/// As [`reach`].
pub fn enter(station: &dyn Shown, there: There, want: Want) -> Result<Reach<'_>, Status> {
    let There { handle: named, address, len } = there;
    let window = station.window();
    let registration = window.descriptor(&named).and_then(|descriptor| window.registration(descriptor));
    let registration = registration.ok_or(Status::Descriptor)?;
    let visit = registration.enter().ok_or(Status::Descriptor)?;
    let place = visit.place();
    let own = handle_of(named.descriptor, &place);
    // One that a client has made of another's says where that begins, and addresses count from there.
    let virtually = named.flags.has(Flags::VMDH);
    // Clients may build handles that do not say how large the memory is.
    let same = (named.page == own.page || virtually)
        && (named.entropy == own.entropy || !own.flags.has(Flags::NEW_FORMAT))
        && named.flags.telling() == own.flags.telling();
    if !same {
        return Err(Status::Descriptor);
    }
    let distance = own.first().wrapping_sub(named.first());
    let (said, address) = (address, address.wrapping_add(distance));
    if !(own.covers(address, len) && named.covers(said, len)) {
        return Err(Status::Bounds);
    }
    if want == Want::Write && own.flags.has(Flags::READ_ONLY) {
        return Err(Status::Permission);
    }
    Ok(Reach { station, visit, address, len })
}

impl Reach<'_> {
    /// What a few of its bytes are reached by without asking the system, if they are.
    fn share(&self, from: u64, len: u64) -> Option<Share> {
        let (place, first) = (self.visit.place(), self.address.checked_add(from)?);
        let may = self.may_be_shared(len);
        may.then(|| self.station.shares()?.find(self.station.window(), &place, (first, len))).flatten()
    }

    fn may_be_shared(&self, len: u64) -> bool {
        len <= PIECE as u64 && self.visit.place().lies.is_some()
    }

    /// Whether its memory is in several pieces, so that it does not lie where its addresses say.
    pub fn is_scattered(&self) -> bool {
        self.visit.place().next.is_some()
    }

    /// Whether it is better asked for so many bytes than the memory in which they lie.
    pub fn is_nearer(&self, len: u64) -> bool {
        self.is_scattered() || self.may_be_shared(len)
    }

    fn fill(&self, (memory, from): (&dyn Memory, u64)) -> Result<(), Status> {
        if let Some(share) = self.share(0, self.len) {
            let mut piece = [0; PIECE];
            let bytes = &mut piece[..self.len as usize];
            memory.load(from, bytes)?;
            return Ok(share.write(self.address, bytes)?);
        }
        self.each_piece(0, self.len, |at, address, len| {
            let from = from.checked_add(at).ok_or(Status::Bounds)?;
            Ok(memory::copy((self.station.memory(), address), (memory, from), len)?)
        })
    }

    fn copy_to(&self, (memory, to): (&dyn Memory, u64)) -> Result<(), Status> {
        let share = self.share(0, self.len);
        let own = share.as_ref().map_or(self.station.memory(), |share| share);
        self.each_piece(0, self.len, |at, address, len| {
            let to = to.checked_add(at).ok_or(Status::Bounds)?;
            Ok(memory::copy((memory, to), (own, address), len)?)
        })
    }

    /// Where so many of its bytes are, from one of its own on: for each piece, how many were before it, its address and length.
    ///
    /// # Errors
    /// [`Status::Bounds`]: it has not so many. And those of `act`.
    fn each_piece(
        &self,
        from: u64,
        len: u64,
        mut act: impl FnMut(u64, u64, u64) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let end = from.checked_add(len).filter(|end| *end <= self.len).ok_or(Status::Bounds)?;
        let Some(first) = self.visit.place().next else { return act(0, self.address + from, len) };
        let (begin, end) = (self.address + from, self.address + end);
        let (window, mut next, mut before) = (self.station.window(), Some(first), 0u64);
        // A peer's chain may lead in a circle.
        for _ in 0..window.shape().registrations {
            let Some(number) = next.filter(|_| before < end) else { break };
            let piece =
                window.registration(number).and_then(|piece| piece.enter()).ok_or(Status::Descriptor)?;
            let place = piece.place();
            let after = before.checked_add(place.len).ok_or(Status::Bounds)?;
            let (low, high) = (begin.max(before), end.min(after));
            if low < high {
                let address = place.first.checked_add(low - before).ok_or(Status::Bounds)?;
                act(low - begin, address, high - low)?;
            }
            (next, before) = (place.next, after);
        }
        if before < end { Err(Status::Bounds) } else { Ok(()) }
    }

    /// Writes bytes to it, from one of its own on.
    ///
    /// # Errors
    /// [`Status::Bounds`]: it has not so many; or why it was not reached.
    pub fn write(&self, from: u64, bytes: &[u8]) -> Result<(), Status> {
        let share = self.share(from, bytes.len() as u64);
        let own = share.as_ref().map_or(self.station.memory(), |share| share);
        self.each_piece(from, bytes.len() as u64, |at, address, len| {
            Ok(own.write(address, &bytes[at as usize..(at + len) as usize])?)
        })
    }

    /// Reads bytes of it, from one of its own on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read(&self, from: u64, into: &mut [u8]) -> Result<(), Status> {
        let share = self.share(from, into.len() as u64);
        let own = share.as_ref().map_or(self.station.memory(), |share| share);
        self.each_piece(from, into.len() as u64, |at, address, len| {
            Ok(own.read(address, &mut into[at as usize..(at + len) as usize])?)
        })
    }

    fn change(&self, command: Command, [first, second]: [u64; 2]) -> Result<u64, Status> {
        let _alone = self.station.window().alone().ok_or(Status::Timeout)?;
        let mut word = [0; 8];
        let bytes = &mut word[..command.width()];
        self.read(0, bytes)?;
        let old = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.write(0, &command.apply(old, first, second).to_le_bytes()[..command.width()])?;
        Ok(old)
    }

    fn tell(&self, data: u64) -> Told {
        let window = self.station.window();
        let queue = window.queue(self.visit.place().queue?)?;
        let (overrun, remote_overrun, status) = (false, false, Status::Ok as u8);
        let entry =
            Entry { overrun, remote_overrun, status, source: Source::Remote, body: Body::Remote(data) };
        Some(queue.push(entry.encode(window.chip())))
    }

    fn lose(&self) -> Told {
        self.station.window().queue(self.visit.place().queue?)?.lose();
        Some(Err(Overrun))
    }
}

/// Memory in several pieces, by the addresses under which it is known.
impl Memory for Reach<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        let from = address.checked_sub(self.address).ok_or(Fault::Unmapped)?;
        Reach::read(self, from, into).map_err(|_| Fault::Unmapped)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let at = address.checked_sub(self.address).ok_or(Fault::Unmapped)?;
        Reach::write(self, at, from).map_err(|_| Fault::Unmapped)
    }
}
