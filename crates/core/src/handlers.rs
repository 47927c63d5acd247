//! The handler table: 256 entries, some of which the library keeps for itself.
//!
//! Entries are added at any time, one table of a client after the other, and never change or go: so a message is
//! dispatched without a lock while another thread registers.

use crate::message::{CATEGORY, COUNT, First, MAX_ARGS, WAY, shape_of};
use crate::{Category, CoreMode, Error};
use bitflags::bitflags;
use std::sync::{Arc, OnceLock};

/// The first index that clients use; those below are the library's. `GEX_AM_INDEX_BASE` in the specification.
pub const CLIENT_BASE: u8 = 128;

bitflags! {
    /// What a handler takes beside the messages that its signature names, for programs in C, whose tables may say less.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Also: u8 {
        /// Of a handler of Mediums: Longs, too (`GEX_FLAG_AM_MEDLONG`).
        const LONG = 1;
        /// Messages of all categories.
        const ANY_CATEGORY = 2;
        /// The other of requests and replies (`GEX_FLAG_AM_REQREP`).
        const OTHER_WAY = 4;
        /// Any number of arguments.
        const ANY_COUNT = 8;
    }
}

impl Also {
    /// The bits of a shape by which messages are told that are for such a handler.
    fn mask(self) -> u32 {
        let category = if self.intersects(Also::LONG | Also::ANY_CATEGORY) { CATEGORY } else { 0 };
        let way = if self.contains(Also::OTHER_WAY) { WAY } else { 0 };
        let count = if self.contains(Also::ANY_COUNT) { COUNT } else { 0 };
        !(category | way | count)
    }
}

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
    /// What else it takes.
    pub also: Also,
}

impl Signature {
    /// Whether it takes a message whose first word has the bits by which it is told.
    #[cold]
    fn takes_also(&self, first: First) -> bool {
        let category = match first.category() {
            None => false,
            Some(Category::Short) => {
                self.category == Category::Short || self.also.contains(Also::ANY_CATEGORY)
            }
            Some(_) => self.category != Category::Short || self.also.contains(Also::ANY_CATEGORY),
        };
        category && first.count() <= MAX_ARGS
    }
}

/// A handler in its place in the table.
pub(crate) struct Placed<M: CoreMode> {
    /// The handler.
    pub(crate) entry: Entry<M>,
    /// What a message for it looks like, as far as its first word says, in these bits of that.
    pub(crate) shape: u32,
    pub(crate) mask: u32,
    /// A message of this shape with fewer arguments is for it; with more, its signature has to be asked.
    fewer_than: u16,
    /// Whether a panic may come out of it, which is then an error of the message.
    pub(crate) unwinds: bool,
}

impl<M: CoreMode> Placed<M> {
    /// Whether it takes a message whose first word has the bits by which it is told.
    #[inline]
    fn takes(&self, first: First) -> bool {
        first.count() < usize::from(self.fewer_than) || self.entry.signature.takes_also(first)
    }
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
        // Made where it stays: an array would first lie on the stack, which a thread may have little of.
        let entries: Arc<[_]> = (0..256).map(|_| OnceLock::new()).collect();
        match entries.try_into() {
            Ok(entries) => Self { entries },
            Err(_) => unreachable!("there are 256"),
        }
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
        self.register_as(fixed, entry, true)
    }

    /// As [`register`](Self::register), of a function that never unwinds, such as one in C: a panic that came out of it would end the
    /// process.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_foreign(&self, fixed: Option<u8>, entry: Entry<M>) -> Result<u8, Error> {
        self.register_as(fixed, entry, false)
    }

    fn register_as(&self, fixed: Option<u8>, entry: Entry<M>, unwinds: bool) -> Result<u8, Error> {
        if let Some(index) = fixed {
            if index < CLIENT_BASE {
                let what = format!("index {index} is the library's: clients use {CLIENT_BASE} to 255");
                return Err(Error::Table { name: entry.signature.name, what });
            }
            return self.place(index, entry, unwinds);
        }
        check(&entry)?;
        let mut entry = entry;
        for index in (CLIENT_BASE..=255).rev() {
            match self.set(index, entry, unwinds) {
                Ok(()) => return Ok(index),
                Err(back) => entry = back,
            }
        }
        let what = format!("the table is full: {} handlers", 256 - u32::from(CLIENT_BASE));
        Err(Error::Table { name: entry.signature.name, what })
    }

    /// Registers one of the library's own handlers, for messages of this category, whether they are replies, and with so many bytes of
    /// arguments.
    ///
    /// # Errors
    /// The index is taken or a client's.
    pub fn register_internal(
        &self,
        index: u8,
        name: &str,
        (category, reply, bytes): (Category, bool, usize),
        function: Box<M::Function>,
    ) -> Result<(), Error> {
        if index >= CLIENT_BASE {
            let what = format!("index {index} is for clients");
            return Err(Error::Table { name: name.into(), what });
        }
        let signature =
            Signature { name: name.into(), category, reply, nargs: bytes / 4, also: Also::empty() };
        self.place(index, Entry { signature, function }, true).map(drop)
    }

    fn place(&self, index: u8, entry: Entry<M>, unwinds: bool) -> Result<u8, Error> {
        check(&entry)?;
        self.set(index, entry, unwinds).map_err(|back| {
            let there = self.get(index).map(|there| there.signature.name.as_str()).unwrap_or_default();
            let what = format!("index {index} is taken by {there:?}");
            Error::Table { name: back.signature.name, what }
        })?;
        Ok(index)
    }

    /// The entry comes back if the place is taken.
    fn set(&self, index: u8, entry: Entry<M>, unwinds: bool) -> Result<(), Entry<M>> {
        let Signature { category, reply, nargs, also, .. } = entry.signature;
        let mask = also.mask();
        let shape = shape_of(category, reply, index, nargs) & mask;
        let fewer_than = match also {
            // The shape says the number.
            _ if also.is_empty() => 256,
            // Of programs in C that are not compiled for debugging.
            Also::ANY_COUNT => MAX_ARGS as u16 + 1,
            _ => 0,
        };
        let placed = Placed { shape, mask, fewer_than, unwinds, entry };
        self.entries[usize::from(index)].set(placed).map_err(|back| back.entry)
    }

    /// The handler at an index.
    pub fn get(&self, index: u8) -> Option<&Entry<M>> {
        self.placed(index).map(|placed| &placed.entry)
    }

    /// The handler that takes a message with this first word.
    #[inline(always)]
    pub(crate) fn taking(&self, first: First) -> Option<&Placed<M>> {
        let placed = self.placed(first.handler())?;
        (placed.shape == first.shape() & placed.mask && placed.takes(first)).then_some(placed)
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
                let more = if s.also.is_empty() { String::new() } else { format!(", and {:?}", s.also) };
                text +=
                    &format!("{index} {} {way} of {} arguments {:?}{more}\n", s.category, s.nargs, s.name);
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
        let signature = Signature {
            name: name.into(),
            category: Category::Short,
            reply: false,
            nargs: 1,
            also: Also::empty(),
        };
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

    /// What a handler takes is what its signature and the rest say, and nothing else, whatever the first word has.
    #[test]
    fn a_handler_takes_what_it_says() {
        let table = Handlers::<Seq>::new();
        let categories = [Some(Category::Short), Some(Category::Medium), Some(Category::Long), None];
        let mut index = 127;
        for (bits, own) in (0..16)
            .filter(|bits| !cfg!(miri) || [0, 5, 10].contains(bits))
            .flat_map(|bits| categories[..3].iter().flatten().map(move |own| (bits, *own)))
        {
            let also = Also::from_bits_truncate(bits);
            let signature = Signature { category: own, nargs: 2, also, ..entry("one").signature };
            index += 1;
            assert_eq!(table.register(Some(index), Entry { signature, ..entry("one") }), Ok(index));
            let placed = table.placed(index).expect("it was registered");
            // Fewer under Miri, of each kind.
            let counts = (0..32u64).filter(|nargs| !cfg!(miri) || [2, 16, 17].contains(nargs));
            for (kind, nargs) in (0..8u64).flat_map(|kind| counts.clone().map(move |nargs| (kind, nargs))) {
                let word = kind | u64::from(index) << 8 | nargs << 16;
                let first = First::of(&word.to_le_bytes()).expect("a word");
                let found = placed.shape == first.shape() & placed.mask && placed.takes(first);
                // To one of Mediums `LONG` adds Longs, and so it does the other way round.
                let has_payload = |category| category != Category::Short;
                let category = categories[kind as usize & 3].is_some_and(|found| {
                    let alike = has_payload(found) && has_payload(own) && also.contains(Also::LONG);
                    found == own || alike || also.contains(Also::ANY_CATEGORY)
                });
                let way = kind & 4 == 0 || also.contains(Also::OTHER_WAY);
                let count = nargs == 2 || nargs <= 16 && also.contains(Also::ANY_COUNT);
                assert_eq!(found, category && way && count, "{own} and {also:?}: {word:#x}");
            }
        }
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

    #[test]
    fn the_library_has_the_indices_below_128() {
        let table = Handlers::<Seq>::new();
        let own = |index, name| {
            let function = entry(name).function;
            table.register_internal(index, name, (Category::Short, false, 8), function)
        };
        for index in [0, 1, 127] {
            assert_eq!(own(index, "own"), Ok(()));
            let taken = own(index, "other").expect_err("it is taken").to_string();
            assert!(taken.contains("\"other\": ") && taken.contains("taken by \"own\""), "{taken}");
        }
        assert!(own(128, "own").is_err_and(|e| e.to_string().contains("for clients")));
        assert_eq!(table.get(0).map(|entry| entry.signature.nargs), Some(2));
        assert_eq!(table.get(127).map(|entry| &entry.signature.name[..]), Some("own"));
        assert!(table.get(128).is_none());
    }

    #[test]
    fn a_handler_has_at_most_16_arguments() {
        let with = |nargs| Entry { signature: Signature { nargs, ..entry("one").signature }, ..entry("one") };
        let table = Handlers::new();
        for fixed in [Some(200), None] {
            assert!(table.register(fixed, with(16)).is_ok());
            assert_eq!(table.register(fixed.map(|_| 201), with(17)), Err(Error::Arguments { bytes: 68 }));
        }
    }

    #[test]
    fn a_table_is_described_line_by_line() {
        let table = Handlers::new();
        assert_eq!((table.describe(), table.fingerprint()), (String::new(), 0xcbf2_9ce4_8422_2325));
        assert_eq!(table.register(Some(200), entry("one")), Ok(200));
        let two = Signature {
            name: "two".into(),
            category: Category::Long,
            reply: true,
            nargs: 3,
            also: Also::OTHER_WAY,
        };
        assert_eq!(table.register(Some(130), Entry { signature: two, ..entry("") }), Ok(130));
        let text = "130 long reply of 3 arguments \"two\", and Also(OTHER_WAY)\n\
                    200 short request of 1 arguments \"one\"\n";
        assert_eq!(table.describe(), text);
        // FNV-1a, as its authors give it.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in text.bytes() {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!(table.fingerprint(), hash);
        let longer = format!("{text}more");
        assert_eq!(first_difference(text, text), ("nothing", "nothing"));
        assert_eq!(first_difference(text, &longer), ("nothing", "more"));
        assert_eq!(first_difference("a\nb\nc", "a\nx\nc"), ("b", "x"));
    }
}
