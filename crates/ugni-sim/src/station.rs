//! What the other NICs see of one: its registrations, its queues, its client's memory.
//!
//! Whoever posts a transaction carries it out at the target's station itself, if it can reach it; the same functions serve
//! the target where it has to do that for a poster of another host.

use crate::entry::{Body, Entry, Source, Status};
use crate::handle::{Flags, Handle};
use crate::letter::Letter;
use crate::memory::{self, Memory};
use crate::queue::Overrun;
use crate::table::{Place, Visit};
use crate::window::Window;

/// A NIC's pages: registered memory ends at the end of one.
pub const PAGE: u64 = 4096;

/// A NIC, as others reach it.
pub trait Station: Send + Sync {
    /// What it shows.
    fn window(&self) -> &Window;
    /// Its client's memory.
    fn memory(&self) -> &dyn Memory;
    /// Takes a datagram in; `false` if it cannot.
    fn deliver(&self, letter: &Letter) -> bool;
    /// Whether its client has gone, for all that is known here.
    fn is_gone(&self) -> bool {
        false
    }
}

/// What a transaction wants of the memory that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To read it.
    Read,
    /// To write it.
    Write,
    /// Nothing but its queue.
    Queue,
}

/// Some bytes of a station, for as long as this lives.
pub struct Reach<'a> {
    station: &'a dyn Station,
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

/// Enters the memory that a handle names, to use `len` bytes from `address`.
///
/// # Errors
/// The status of a transaction that wants what is not there, or not allowed.
pub fn reach<'a>(
    station: &'a dyn Station,
    named: Handle,
    (address, len): (u64, u64),
    want: Want,
) -> Result<Reach<'a>, Status> {
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
        && named.entropy == own.entropy
        && named.flags.telling() == own.flags.telling();
    if !same {
        return Err(Status::Descriptor);
    }
    let distance = own.first().wrapping_sub(named.first());
    let (said, address) = (address, address.wrapping_add(distance));
    if want != Want::Queue && !(own.covers(address, len) && named.covers(said, len)) {
        return Err(Status::Bounds);
    }
    if want == Want::Write && own.flags.has(Flags::READ_ONLY) {
        return Err(Status::Permission);
    }
    Ok(Reach { station, visit, address, len })
}

impl Reach<'_> {
    /// Fills it from another memory.
    ///
    /// # Errors
    /// Why one of the two was not reached.
    pub fn fill(&self, from: (&dyn Memory, u64)) -> Result<(), Status> {
        Ok(memory::copy((self.station.memory(), self.address), from, self.len)?)
    }

    /// Copies it to another memory.
    ///
    /// # Errors
    /// Why one of the two was not reached.
    pub fn copy_to(&self, to: (&dyn Memory, u64)) -> Result<(), Status> {
        Ok(memory::copy(to, (self.station.memory(), self.address), self.len)?)
    }

    /// Writes bytes to its beginning, as many as it has or fewer.
    ///
    /// # Errors
    /// Why it was not reached.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Status> {
        let bytes = &bytes[..bytes.len().min(usize::try_from(self.len).unwrap_or(usize::MAX))];
        Ok(self.station.memory().write(self.address, bytes)?)
    }

    /// Changes its first word, of 4 or 8 bytes, and gives the old one. No other NIC does that at the same time; as with the
    /// chips, the client's own stores may come in between.
    ///
    /// # Errors
    /// Why the word was not reached, or [`Status::Timeout`] where another NIC keeps it to itself for too long.
    pub fn update(&self, width: usize, change: impl Fn(u64) -> u64) -> Result<u64, Status> {
        let _alone = self.station.window().alone().ok_or(Status::Timeout)?;
        let (memory, mut word) = (self.station.memory(), [0; 8]);
        let bytes = &mut word[..width];
        memory.read(self.address, bytes)?;
        let old = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        memory.write(self.address, &change(old).to_le_bytes()[..width])?;
        Ok(old)
    }

    /// Makes an event in the queue that the memory was registered with, if it has one; whether the queue overran.
    pub fn tell(&self, data: u64) -> Option<Result<(), Overrun>> {
        let window = self.station.window();
        let queue = window.queue(self.visit.place().queue?)?;
        let (overrun, remote_overrun, status) = (false, false, Status::Ok as u8);
        let entry =
            Entry { overrun, remote_overrun, status, source: Source::Remote, body: Body::Remote(data) };
        Some(queue.push(entry.encode(window.chip())))
    }

    /// Loses an event of that queue, if there is one, as if it were full.
    pub fn lose(&self) -> Option<Result<(), Overrun>> {
        self.station.window().queue(self.visit.place().queue?)?.lose();
        Some(Err(Overrun))
    }
}
