//! The table of registrations of a NIC, in memory that other NICs read: who wants to reach memory here enters a registration,
//! and stays in it as long as it touches the memory.
//!
//! # Protocol
//! - table.1: the owner alone changes a registration, while its version is even: it is closed then. An odd version says that it is
//!   open, and what it says stays as it is.
//! - table.2: a visitor counts itself and then looks at the version; the owner closes and then looks at the count. Both have a fence
//!   in between, so that one of them sees the other: either the visitor finds it closed, or the owner waits for the visitor.
//! - table.3: a visitor that dies inside stays counted: the owner waits for a while only, and gives the registration up.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{fence, ord, spin};

/// What a registration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The address of its first byte.
    pub first: u64,
    /// How many bytes there are.
    pub len: u64,
    /// The flags of its handle.
    pub flags: u8,
    /// The entropy of its handle.
    pub entropy: u16,
    /// Which queue of the NIC is told of what comes here.
    pub queue: Option<u16>,
    /// Of memory in several pieces, which is addressed from 0 on: the registration of the first; of a piece: that of the next.
    pub next: Option<u16>,
    /// Where it lies in a file that others may map.
    pub lies: Option<Lies>,
}

/// Where memory lies in a file of its owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// The file's descriptor there, as long as the registration is open.
    pub descriptor: u32,
    /// Where in the file the first byte is.
    pub offset: u64,
}

/// One registration. Zero bytes are a closed one.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Registration {
    version: AtomicU64,
    visitors: AtomicU64,
    first: AtomicU64,
    len: AtomicU64,
    /// Flags, entropy, and the queue's number plus one.
    rest: AtomicU64,
    /// The next one's number plus one.
    next: AtomicU64,
    /// The file's descriptor plus one.
    file: AtomicU64,
    offset: AtomicU64,
}

impl Registration {
    /// A closed one.
    pub fn new() -> Self {
        let word = || AtomicU64::new(0);
        Self {
            version: word(),
            visitors: word(),
            first: word(),
            len: word(),
            rest: word(),
            next: word(),
            file: word(),
            offset: word(),
        }
    }

    /// Opens it. For its owner, who knows that it is closed.
    pub fn open(&self, place: &Place) {
        self.first.store(place.first, Relaxed);
        self.len.store(place.len, Relaxed);
        let queue = place.queue.map_or(0, |queue| u64::from(queue) + 1);
        let rest = u64::from(place.flags) | u64::from(place.entropy) << 8 | queue << 24;
        self.rest.store(rest, Relaxed);
        self.next.store(place.next.map_or(0, |next| u64::from(next) + 1), Relaxed);
        self.file.store(place.lies.map_or(0, |lies| u64::from(lies.descriptor) + 1), Relaxed);
        self.offset.store(place.lies.map_or(0, |lies| lies.offset), Relaxed);
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1) | 1, ord!("table.open", Release));
    }

    /// Closes it, and waits until nobody is inside, looking at most so many times. For its owner. `false`: somebody stayed
    /// (table.3), and may still read what it says: it is not to be opened again.
    pub fn close(&self, looks: u64) -> bool {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(version & 1), Relaxed);
        fence(ord!("table.close_fence", SeqCst));
        for _ in 0..looks {
            if self.visitors.load(ord!("table.empty", Acquire)) == 0 {
                return true;
            }
            spin();
        }
        false
    }

    /// Enters it; `None` if it is closed.
    pub fn enter(&self) -> Option<Visit<'_>> {
        self.visitors.fetch_add(1, Relaxed);
        // From here on it is left again whatever happens.
        let mut visit = Visit { registration: self, place: Place::default() };
        fence(ord!("table.enter_fence", SeqCst));
        if self.version.load(ord!("table.see_open", Acquire)) & 1 == 0 {
            return None;
        }
        let rest = self.rest.load(Relaxed);
        let lies = |descriptor| Lies { descriptor, offset: self.offset.load(Relaxed) };
        visit.place = Place {
            first: self.first.load(Relaxed),
            len: self.len.load(Relaxed),
            flags: rest as u8,
            entropy: (rest >> 8) as u16,
            queue: number_of((rest >> 24) & 0x1_ffff),
            next: number_of(self.next.load(Relaxed)),
            lies: number_of(self.file.load(Relaxed)).map(lies),
        };
        Some(visit)
    }
}

/// A number that is kept as one more, where 0 stands for none.
fn number_of<N: TryFrom<u64>>(kept: u64) -> Option<N> {
    N::try_from(kept.checked_sub(1)?).ok()
}

impl Default for Registration {
    fn default() -> Self {
        Self::new()
    }
}

/// A stay in a registration: its memory may be touched until this is dropped.
#[derive(Debug)]
pub struct Visit<'a> {
    registration: &'a Registration,
    place: Place,
}

impl Visit<'_> {
    /// What it says; copied when it was entered.
    pub fn place(&self) -> Place {
        self.place
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.registration.visitors.fetch_sub(1, ord!("table.leave", Release));
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    const LIES: Lies = Lies { descriptor: u32::MAX, offset: 1 << 45 };
    const PLACE: Place = Place {
        first: 1 << 40,
        len: 12,
        flags: 0x84,
        entropy: 0xabc,
        queue: Some(1023),
        next: Some(4095),
        lies: Some(LIES),
    };

    #[test]
    fn an_open_registration_says_what_it_was_opened_with() {
        let registration = Registration::new();
        assert!(registration.enter().is_none());
        for place in
            [PLACE, Place { queue: None, next: None, ..PLACE }, Place { queue: Some(0), ..Place::default() }]
        {
            registration.open(&place);
            assert_eq!(registration.enter().map(|visit| visit.place()), Some(place));
            assert!(registration.close(1));
            assert!(registration.enter().is_none());
        }
    }

    /// Who died inside, or is stopped there, keeps the owner for a while only.
    #[test]
    fn a_visitor_that_stays_is_waited_for_in_vain() {
        let registration = Registration::new();
        registration.open(&PLACE);
        let visit = registration.enter();
        assert!(!registration.close(100));
        assert!(registration.enter().is_none());
        drop(visit);
        assert!(registration.close(1), "once more, and it is empty");
    }
}
