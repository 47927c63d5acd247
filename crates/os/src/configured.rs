//! The defaults that an installation was configured with, in the place of the table's own.
//!
//! `cargo xtask install` writes the constant anew into the sources that it installs; here nothing is configured. An entry is for all
//! machines, or for one kind of them, whose name the reader of the setting says: that comes before the one for all.

/// An entry: the name of the setting, the kind of machine that it is for or none, the default.
pub(crate) type Entry = (&'static str, Option<&'static str>, &'static str);

/// All entries, sorted.
pub(crate) const CONFIGURED: &[Entry] = &[];

/// The default of this setting, for such machines or for all.
pub(crate) fn of(entries: &[Entry], name: &str, machine: Option<&str>) -> Option<&'static str> {
    entries.iter().find(|entry| (entry.0, entry.1) == (name, machine)).map(|entry| entry.2)
}

/// The kinds of machines for which this setting has defaults of their own.
pub(crate) fn machines(entries: &[Entry], name: &str) -> impl Iterator<Item = &'static str> {
    entries.iter().filter(move |entry| entry.0 == name).filter_map(|entry| entry.1)
}
