//! Registered memory that lies in a sealed memory file, such as a segment that ranks of a host share: who posts maps the file too, and
//! reaches a few bytes of it without the system.
//!
//! Its owner says in which file it lies, and keeps a descriptor of that for as long as something in it is registered. Memory that is
//! unmapped before it is deregistered is reached all the same then, as with the hardware, which keeps the pages.
//!
//! # Invariants
//! - shares.1: a file that is mapped here is sealed: all of it stays there. Its bytes are touched through [`VolatileSlice`] alone.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use gasworks_os::maps::InFile;
use gasworks_os::memfd::{self, Mapping};
use gasworks_os::remote::Remote;
use gasworks_sync::atomic::Ordering::SeqCst;
use gasworks_sync::{VolatileSlice, fence};
use parking_lot::Mutex;

use crate::memory::{Fault, Memory};
use crate::table::{Lies, Place};
use crate::window::Window;

/// How many files of a process are kept mapped: more than any is known to have.
const MOST: usize = 64;

/// The files in which registrations of a process lie, as it keeps them itself.
#[derive(Default)]
pub(crate) struct Files {
    known: BTreeMap<(u64, u64), Weak<OwnedFd>>,
}

impl Files {
    /// What others are told of memory that lies there, and what is to be kept meanwhile.
    pub(crate) fn show(&mut self, InFile { file, offset }: InFile) -> Option<(Lies, Arc<OwnedFd>)> {
        let kept = match self.known.get(&file).and_then(Weak::upgrade) {
            Some(kept) => kept,
            None => {
                let found = Arc::new(memfd::find(file)?);
                self.known.retain(|_, kept| kept.strong_count() > 0);
                self.known.insert(file, Arc::downgrade(&found));
                found
            }
        };
        let descriptor = u32::try_from(kept.as_raw_fd()).ok()?;
        Some((Lies { descriptor, offset }, kept))
    }
}

/// The files of a process in which its registrations lie, as another reaches them.
pub struct Shares {
    process: Remote,
    mapped: Mutex<Mapped>,
}

#[derive(Default)]
struct Mapped {
    /// How many files had ended there.
    ended: u64,
    /// Those that can be mapped, and those that cannot, by their descriptors there. Of two files that have the same number one after
    /// the other, the first has ended before the second is shown.
    files: BTreeMap<u32, Option<Arc<Mapping>>>,
}

impl Shares {
    /// Those of a process.
    pub fn of(process: Remote) -> Self {
        Self { process, mapped: Mutex::default() }
    }

    /// The file of a registration, for as long as somebody is in that; `None` where the system has to be asked for these bytes.
    pub fn find(&self, window: &Window, place: &Place, (address, len): (u64, u64)) -> Option<Share> {
        let Lies { descriptor, offset } = place.lies?;
        let mut mapped = self.mapped.lock();
        let ended = window.files_ended();
        if mapped.ended != ended || mapped.files.len() > MOST {
            // Nobody's memory is to be kept for long that it wants to give back.
            *mapped = Mapped { ended, files: BTreeMap::new() };
        }
        let mapping = mapped.files.entry(descriptor).or_insert_with(|| self.map(descriptor).map(Arc::new));
        let share = Share { mapping: mapping.clone()?, zero: place.first.wrapping_sub(offset) };
        // A registration goes on to the end of its page, and the file may not.
        share.bytes(address, usize::try_from(len).ok()?).is_ok().then_some(share)
    }

    fn map(&self, descriptor: u32) -> Option<Mapping> {
        let descriptor = self.process.descriptor(i32::try_from(descriptor).ok()?).ok()?;
        // It may be of anything.
        if !memfd::is_sealed(descriptor.as_fd()) {
            return None;
        }
        let len = memfd::size_of_file(descriptor.as_fd()).ok()?;
        memfd::map(descriptor.as_fd(), usize::try_from(len).ok()?).ok()
    }
}

/// A file in which a registration lies, by the addresses that its bytes have there.
pub struct Share {
    mapping: Arc<Mapping>,
    /// The address of the file's first byte, were all of it mapped there.
    zero: u64,
}

impl Share {
    fn bytes(&self, address: u64, len: usize) -> Result<VolatileSlice<'_>, Fault> {
        let offset = usize::try_from(address.wrapping_sub(self.zero)).map_err(|_| Fault::Unmapped)?;
        self.mapping.bytes().slice(offset, len).ok_or(Fault::Unmapped)
    }
}

impl Memory for Share {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.bytes(address, into.len())?.read(into);
        fence(SeqCst);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        // Whoever is told that a transaction is over finds it done, as after a call of the system; what was before comes before.
        fence(SeqCst);
        self.bytes(address, from.len())?.write(from);
        fence(SeqCst);
        Ok(())
    }
}
