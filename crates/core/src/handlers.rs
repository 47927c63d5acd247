//! The handler table: 256 entries, some of which the library keeps for itself.
//!
//! Entries are added at any time, one table of a client after the other, and never change or go: so a message is
//! dispatched without a lock while another thread registers.

use crate::message::shape_of;
use crate::{Category, CoreMode, Error};
use std::sync::{Arc, OnceLock};

/// The first index that clients use; those below are the library's. `GEX_AM_INDEX_BASE` in the specification.
pub const CLIENT_BASE: u8 = 128;

/// What a handler accepts: this is what ranks must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name, for messages and the fingerprint.
    pub name: String,
    /// The category it handles.
    pub category: Category,
    /// Whether it handles replies.
    pub reply: bool,
    /// How many arguments it takes.
    pub nargs: usize,
}

/// A handler in its place in the table.
pub(crate) struct Placed<M: CoreMode> {
    /// The handler.
    pub(crate) entry: Entry<M>,
    /// What a message for it looks like, as far as its first word says.
    pub(crate) shape: u32,
}

/// One registered handler.
pub struct Entry<M: CoreMode> {
    /// What it accepts.
    pub signature: Signature,
    /// What is run.
    pub function: Box<M::Function>,
}

/// A handler table, being built and being used. Clones are the same table.
pub struct Handlers<M: CoreMode> {
    entries: Arc<[OnceLock<Placed<M>>; 256]>,
}

impl<M: CoreMode> Default for Handlers<M> {
    fn default() -> Self {
        Self { entries: Arc::new(std::array::from_fn(|_| OnceLock::new())) }
    }
}

impl<M: CoreMode> Clone for Handlers<M> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<M: CoreMode> Handlers<M> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a handler at a fixed index, or with `None` ("don't care") at the highest free one. Returns the
    /// index.
    ///
    /// # Errors
    /// The index is taken or the library's, the table is full, or there are too many arguments.
    pub fn register(&self, fixed: Option<u8>, entry: Entry<M>) -> Result<u8, Error> {
        if let Some(index) = fixed {
            if index < CLIENT_BASE {
                let what = format!("index {index} is the library's: clients use {CLIENT_BASE} to 255");
                return Err(Error::Table { name: entry.signature.name, what });
            }
            return self.place(index, entry);
        }
        check(&entry)?;
        let mut entry = entry;
        for index in (CLIENT_BASE..=255).rev() {
            match self.set(index, entry) {
                Ok(()) => return Ok(index),
                Err(back) => entry = back,
            }
        }
        let what = format!("the table is full: {} handlers", 256 - u32::from(CLIENT_BASE));
        Err(Error::Table { name: entry.signature.name, what })
    }

    /// Registers one of the library's own handlers.
    ///
    /// # Errors
    /// The index is taken or a client's.
    pub fn register_internal(&self, index: u8, entry: Entry<M>) -> Result<u8, Error> {
        if index >= CLIENT_BASE {
            let what = format!("index {index} is for clients");
            return Err(Error::Table { name: entry.signature.name, what });
        }
        self.place(index, entry)
    }

    fn place(&self, index: u8, entry: Entry<M>) -> Result<u8, Error> {
        check(&entry)?;
        self.set(index, entry).map_err(|back| {
            let there = self.get(index).map(|there| there.signature.name.as_str()).unwrap_or_default();
            let what = format!("index {index} is taken by {there:?}");
            Error::Table { name: back.signature.name, what }
        })?;
        Ok(index)
    }

    /// The entry comes back if the place is taken.
    fn set(&self, index: u8, entry: Entry<M>) -> Result<(), Entry<M>> {
        let Signature { category, reply, nargs, .. } = entry.signature;
        let placed = Placed { shape: shape_of(category, reply, index, nargs), entry };
        self.entries[usize::from(index)].set(placed).map_err(|back| back.entry)
    }

    /// The handler at an index.
    pub fn get(&self, index: u8) -> Option<&Entry<M>> {
        self.placed(index).map(|placed| &placed.entry)
    }

    #[inline]
    pub(crate) fn placed(&self, index: u8) -> Option<&Placed<M>> {
        self.entries[usize::from(index)].get()
    }

    /// The table in words, a line for each handler, in index order: what the ranks of a job compare.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(Placed { entry: Entry { signature: s, .. }, .. }) = entry.get() {
                let way = if s.reply { "reply" } else { "request" };
                text += &format!("{index} {} {way} of {} arguments {:?}\n", s.category, s.nargs, s.name);
            }
        }
        text
    }

    /// A number that is the same for equal tables and, in all likelihood, no others (FNV-1a of the description).
    pub fn fingerprint(&self) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.describe().bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

fn check<M: CoreMode>(entry: &Entry<M>) -> Result<(), Error> {
    match entry.signature.nargs {
        nargs if nargs > crate::message::MAX_ARGS => Err(Error::Arguments { bytes: 4 * nargs }),
        _ => Ok(()),
    }
}

/// The first line in which two descriptions differ, for the message: what each side has.
pub fn first_difference<'a>(mine: &'a str, theirs: &'a str) -> (&'a str, &'a str) {
    let (mut a, mut b) = (mine.lines(), theirs.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return ("nothing", "nothing"),
            (x, y) if x == y => {}
            (x, y) => return (x.unwrap_or("nothing"), y.unwrap_or("nothing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::Seq;

    fn entry(name: &str) -> Entry<Seq> {
        let signature = Signature { name: name.into(), category: Category::Short, reply: false, nargs: 1 };
        Entry { signature, function: Box::new(|_| Ok(())) }
    }

    #[test]
    fn indices_are_given_from_the_top() {
        let table = Handlers::new();
        assert_eq!(table.register(Some(254), entry("fixed")), Ok(254));
        assert_eq!(table.register(None, entry("a")), Ok(255));
        assert_eq!(table.register(None, entry("b")), Ok(253));
        assert!(
            table
                .register(Some(254), entry("c"))
                .is_err_and(|e| e.to_string().contains("taken by \"fixed\""))
        );
        assert!(table.register(Some(127), entry("d")).is_err_and(|e| e.to_string().contains("128 to 255")));
    }

    // Not under Miri: it takes more than a minute, for nothing but more of the same.
    #[cfg(not(miri))]
    #[test]
    fn a_full_table_takes_no_more() {
        let table = Handlers::new();
        for i in 0..128 {
            assert!(table.register(None, entry(&i.to_string())).is_ok());
        }
        assert!(table.register(None, entry("over")).is_err_and(|e| e.to_string().contains("full")));
    }

    #[test]
    fn a_difference_changes_the_fingerprint_and_is_named() {
        let (one, two) = (Handlers::new(), Handlers::new());
        assert_eq!(one.fingerprint(), two.fingerprint());
        assert!(one.register(None, entry("ping")).is_ok());
        assert!(two.register(None, entry("pong")).is_ok());
        assert_ne!(one.fingerprint(), two.fingerprint());
        let (mine, theirs) = (one.describe(), two.describe());
        let (a, b) = first_difference(&mine, &theirs);
        assert!(a.contains("ping") && b.contains("pong"));
        assert_eq!(first_difference(&mine, "").1, "nothing");
    }
}
