//! The FMA descriptors of a host, of which some domains have one of their own.
//!
//! A descriptor is the name of a socket at which nobody connects: the system gives each name once, and takes it back when its
//! process ends, however it ends. The names are those of all users: they share the NIC.

use std::io;

use gasworks_os::OsError;
use gasworks_os::unix::{self, Listener};

use crate::chip::Chip;

/// A domain's own descriptor, until this is dropped.
#[derive(Debug)]
pub struct Descriptor {
    _name: Listener,
}

impl Descriptor {
    /// A free one of the NIC at an address; `None`: all are taken.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn take(chip: Chip, address: u32) -> Result<Option<Self>, OsError> {
        // Processes begin at different ones, so that they do not look in vain for long.
        let first = std::process::id();
        for number in (0..chip.fma_descriptors()).map(|i| (first + i) % chip.fma_descriptors()) {
            match unix::listen(&format!("gasworks-ugni-fma-{address:x}-{number}")) {
                Ok(name) => return Ok(Some(Self { _name: name })),
                Err(taken) if taken.cause.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
