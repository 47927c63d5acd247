//! The defaults that an installation was configured with, in the place of the table's own.
//!
//! `cargo xtask install` writes the constant anew into the sources that it installs; here nothing is configured. A setting has one entry for
//! all, or one for each chip of the NIC, not both.

/// An entry: the name of the setting, the chip that it is for or none, the default.
pub(crate) type Entry = (&'static str, Option<&'static str>, &'static str);

/// The chips that defaults may differ by.
pub(crate) const CHIPS: [&str; 2] = ["aries", "gemini"];

/// All entries, sorted.
pub(crate) const CONFIGURED: &[Entry] = &[];

/// The default of this setting, for this chip or for all.
pub(crate) fn of(entries: &[Entry], name: &str, chip: Option<&str>) -> Option<&'static str> {
    entries.iter().find(|entry| (entry.0, entry.1) == (name, chip)).map(|entry| entry.2)
}
