//! The type of a setting, and the only place that reads the environment.
//!
//! Each crate declares its rows as `pub const SETTINGS: &[Setting]`; the facade joins them, and `gasrun --env`, the
//! book's page and the verbose start-up report are printed from that one table.
#![allow(clippy::disallowed_methods)] // this module is what the rule points to

use crate::configured::{self, CONFIGURED, Entry};

/// One setting: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Our name for it, and the environment variable: `GASWORKS_...`, or the seeds' own name where they have one.
    pub name: &'static str,
    /// Other environment variables that set it, looked at in this order after `name`.
    pub aliases: &'static [&'static str],
    /// What kind of value it takes, with its limits.
    pub kind: Kind,
    /// The default, as it would be written, where nothing else was configured: see [`Setting::usual`].
    pub default: &'static str,
    /// Its unit, or an empty string.
    pub unit: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// Who reads it: a crate or a program.
    pub reader: &'static str,
}

/// The kind of value that a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number from `min` to `max`.
    Number {
        /// The least allowed value.
        min: u64,
        /// The greatest allowed value.
        max: u64,
    },
    /// A size in bytes from `min` to `max`; suffixes K, M, G, T (powers of 1,024) are accepted.
    Size {
        /// The least allowed value.
        min: u64,
        /// The greatest allowed value.
        max: u64,
    },
    /// A [`Share`] of memory: `64M`, `1.5G`, or a fraction such as `0.85` or `5/8`, for each process (`/P`) or for all processes of
    /// a host together (`/H`).
    Share,
    /// A time to wait in seconds, a decimal fraction allowed, from [`LEAST_SECONDS`] to [`MOST_SECONDS`].
    Seconds,
    /// `0` or `1` (also no and yes, n and y, false and true, off and on). A row without a default may be neither.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
}

/// An amount of memory: so many bytes or a fraction of what there is, for each process or for a whole host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// How much.
    pub amount: Amount,
    /// Whether all processes of a host share it.
    pub of_host: bool,
}

/// How much memory a [`Share`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// A fraction of the memory that there is, above 0 and at most 1.
    Fraction(f64),
}

impl Share {
    /// So many bytes for each process.
    pub const fn bytes(bytes: u64) -> Self {
        Self { amount: Amount::Bytes(bytes), of_host: false }
    }

    /// A fraction of a host's memory for all its processes together.
    pub const fn of_host(fraction: f64) -> Self {
        Self { amount: Amount::Fraction(fraction), of_host: true }
    }

    /// Whether it is an amount at all: a fraction is above 0 and at most 1.
    pub fn is_sound(&self) -> bool {
        match self.amount {
            Amount::Bytes(_) => true,
            Amount::Fraction(fraction) => fraction > 0.0 && fraction <= 1.0,
        }
    }

    /// The bytes of one of `processes` on a host with `total` bytes of memory.
    pub fn for_each(&self, total: u64, processes: u32) -> u64 {
        let all = match self.amount {
            Amount::Bytes(bytes) => bytes,
            // A product of numbers that are not negative: it saturates where it is too large.
            Amount::Fraction(fraction) => (total as f64 * fraction) as u64,
        };
        if self.of_host { all / u64::from(processes.max(1)) } else { all }
    }

    /// Parses `64M`, `1.5G`, `0.85`, `5/8`, each with `/P` or `/H` after it, or neither. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (amount, of_host) = match text.trim().rsplit_once('/') {
            Some((amount, "P" | "p")) => (amount, false),
            Some((amount, "H" | "h")) => (amount, true),
            _ => (text, false),
        };
        let amount = match (parse_size(amount), amount.split_once('/')) {
            (Some(bytes), _) => Amount::Bytes(bytes),
            (None, Some((part, whole))) => Amount::Fraction(natural(part)? / natural(whole)?),
            (None, None) => parse_decimal(amount)?,
        };
        Some(Self { amount, of_host }).filter(Self::is_sound)
    }
}

/// A number of digits alone.
fn natural(text: &str) -> Option<f64> {
    text.trim().parse::<u32>().ok().map(f64::from)
}

/// A fraction, or a size with a decimal point.
fn parse_decimal(text: &str) -> Option<Amount> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    if unit.trim().is_empty() {
        return Some(Amount::Fraction(number));
    }
    let bytes = number * parse_size(&format!("1{}", unit.trim()))? as f64;
    (bytes < u64::MAX as f64).then_some(Amount::Bytes(bytes as u64))
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.amount {
            Amount::Bytes(bytes) => write!(f, "{bytes} bytes")?,
            Amount::Fraction(fraction) => write!(f, "{fraction} of memory")?,
        }
        f.write_str(if self.of_host { " for all ranks of a host" } else { "" })
    }
}

/// The least time of a [`Kind::Seconds`]: who does not wait at all finds nobody.
pub const LEAST_SECONDS: f64 = 0.1;
/// The greatest time of a [`Kind::Seconds`], some thirty years: what fits every clock.
pub const MOST_SECONDS: f64 = 1e9;

/// A setting that cannot be used as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The variable that was set.
    pub variable: String,
    /// Its value.
    pub value: String,
    /// What it should have been.
    pub wanted: String,
}

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "setting {}={:?}: {}", self.variable, self.value, self.wanted)
    }
}
impl std::error::Error for SettingError {}

impl Setting {
    /// The variable that sets it and its raw value, or `None` where the default applies. An empty value counts as
    /// absent.
    pub fn raw(&self) -> Option<(&'static str, String)> {
        std::iter::once(&self.name).chain(self.aliases).find_map(|&variable| {
            let value = std::env::var_os(variable)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some((variable, value))
        })
    }

    /// The default that holds: as the installation was configured, or the table's.
    pub fn usual(&self) -> &'static str {
        self.usual_by(CONFIGURED)
    }

    fn usual_by(&self, entries: &[Entry]) -> &'static str {
        configured::of(entries, self.name, None).unwrap_or(self.default)
    }

    /// The row as it is on one kind of machine, for which another default may have been configured.
    pub fn on(&self, machine: &str) -> Self {
        self.on_by(CONFIGURED, machine)
    }

    fn on_by(&self, entries: &[Entry], machine: &str) -> Self {
        let default = configured::of(entries, self.name, Some(machine));
        Self { default: default.unwrap_or(self.default), ..*self }
    }

    /// The default that holds, in words, and behind it those of some machines alone.
    pub fn usual_shown(&self) -> String {
        self.usual_shown_by(CONFIGURED)
    }

    fn usual_shown_by(&self, entries: &[Entry]) -> String {
        let own = |machine| format!("{} on {machine}", self.on_by(entries, machine).default);
        let own = configured::machines(entries, self.name).map(own);
        let general = Some(self.usual_by(entries).to_owned()).filter(|usual| !usual.is_empty());
        general.into_iter().chain(own).collect::<Vec<_>>().join("; ")
    }

    /// The value that holds, with the variable that sets it: the default, too, unless it is empty.
    pub fn held(&self) -> Option<(&'static str, String)> {
        let usual = || Some((self.name, self.usual().to_owned())).filter(|(_, usual)| !usual.is_empty());
        self.raw().or_else(usual)
    }

    /// The value as text, the default included.
    pub fn text(&self) -> String {
        self.held().map_or_else(String::new, |(_, value)| value)
    }

    /// The value of a [`Kind::Number`] or [`Kind::Size`]; `None` if it is unset and its default is empty.
    pub fn number(&self) -> Result<Option<u64>, SettingError> {
        let Some((variable, value)) = self.held() else { return Ok(None) };
        let (min, max, suffixes) = match self.kind {
            Kind::Number { min, max } => (min, max, false),
            Kind::Size { min, max } => (min, max, true),
            _ => (0, u64::MAX, false),
        };
        let parsed = if suffixes { parse_size(&value) } else { value.parse().ok() };
        match parsed.filter(|n| (min..=max).contains(n)) {
            Some(n) => Ok(Some(n)),
            None => {
                let wanted = match suffixes {
                    true => format!("wanted a size from {min} to {max} bytes, such as 4096, 64K, 16M or 1G"),
                    false => format!("wanted a whole number from {min} to {max}"),
                };
                Err(SettingError { variable: variable.into(), value, wanted })
            }
        }
    }

    /// The value of a [`Kind::Boolean`].
    pub fn boolean(&self) -> Result<bool, SettingError> {
        self.optional_boolean()?.ok_or_else(|| self.no_boolean(self.name, String::new()))
    }

    /// The value of a [`Kind::Boolean`]; `None` if it is unset and its default is empty.
    pub fn optional_boolean(&self) -> Result<Option<bool>, SettingError> {
        let Some((variable, value)) = self.held() else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "1" | "y" | "yes" | "true" | "on" => Ok(Some(true)),
            "0" | "n" | "no" | "false" | "off" => Ok(Some(false)),
            _ => Err(self.no_boolean(variable, value)),
        }
    }

    fn no_boolean(&self, variable: &str, value: String) -> SettingError {
        SettingError { variable: variable.into(), value, wanted: "wanted 0 or 1".into() }
    }

    /// The value of a [`Kind::Share`]; `None` if it is unset and its default is empty.
    pub fn share(&self) -> Result<Option<Share>, SettingError> {
        let Some((variable, value)) = self.held() else { return Ok(None) };
        match Share::parse(&value) {
            Some(share) => Ok(Some(share)),
            None => {
                let wanted = "wanted a size such as 64M or 1.5G, or a fraction of memory such as 0.5 or 5/8, perhaps with /P \
                              (for each process) or /H (for all processes of a host) after it";
                Err(SettingError { variable: variable.into(), value, wanted: wanted.into() })
            }
        }
    }

    /// The value of a [`Kind::Seconds`]; `None` if it is unset and its default is empty.
    pub fn seconds(&self) -> Result<Option<std::time::Duration>, SettingError> {
        let Some((variable, value)) = self.held() else { return Ok(None) };
        match value.parse::<f64>() {
            Ok(s) if (LEAST_SECONDS..=MOST_SECONDS).contains(&s) => {
                Ok(Some(std::time::Duration::from_secs_f64(s)))
            }
            _ => {
                let wanted = format!("wanted a number of seconds from {LEAST_SECONDS} to {MOST_SECONDS}");
                Err(SettingError { variable: variable.into(), value, wanted })
            }
        }
    }

    /// The value of a [`Kind::Choice`].
    pub fn choice(&self) -> Result<&'static str, SettingError> {
        let (variable, value) = self.held().unwrap_or((self.name, String::new()));
        let words = match self.kind {
            Kind::Choice(words) => words,
            _ => &[],
        };
        words.iter().find(|word| word.eq_ignore_ascii_case(&value)).copied().ok_or_else(|| SettingError {
            variable: variable.into(),
            value,
            wanted: format!("wanted one of {}", words.join(", ")),
        })
    }
}

impl Setting {
    /// Whether the value as it stands, the default included, can be used, on each kind of machine.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_row()?;
        configured::machines(CONFIGURED, self.name).try_for_each(|machine| self.on(machine).check_row())
    }

    fn check_row(&self) -> Result<(), SettingError> {
        match self.kind {
            Kind::Number { .. } | Kind::Size { .. } => self.number().map(drop),
            Kind::Share => self.share().map(drop),
            Kind::Seconds => self.seconds().map(drop),
            Kind::Boolean => self.optional_boolean().map(drop),
            Kind::Choice(_) => self.choice().map(drop),
            Kind::Text => Ok(()),
        }
    }
}

/// Parses `4096`, `64K`, `16M`, `1G` or `1T` (also `KB`, `KiB`; powers of 1,024), with or without `+` in front, as numbers are.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let shift = match text.get(digits..)?.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("12K"), Some(12 << 10));
        assert_eq!(parse_size("1 GiB"), Some(1 << 30));
        assert_eq!(parse_size("99999999999T"), None);
        assert_eq!(parse_size("+4096"), Some(4096));
        assert_eq!(["-1", "+", "++1", "+-1"].map(parse_size), [None; 4]);
        assert_eq!(parse_size("K"), None);
    }

    #[test]
    fn shares() {
        let share = |amount, of_host| Some(Share { amount, of_host });
        assert_eq!(Share::parse("64M"), share(Amount::Bytes(64 << 20), false));
        assert_eq!(Share::parse("2.5GB/P"), share(Amount::Bytes(5 << 29), false));
        assert_eq!(Share::parse("0"), share(Amount::Bytes(0), false));
        assert_eq!(Share::parse(" 1 "), share(Amount::Bytes(1), false), "a whole number is bytes");
        assert_eq!(Share::parse("0.85/H"), Some(Share::of_host(0.85)));
        assert_eq!(Share::parse("5/8"), share(Amount::Fraction(0.625), false));
        assert_eq!(Share::parse(" 1 / 4 /H"), Some(Share::of_host(0.25)));
        assert_eq!(Share::parse("1.0/h"), Some(Share::of_host(1.0)));
        assert_eq!(Share::of_host(0.5).for_each(1000, 4), 125);
        assert_eq!(Share::parse("0.5").map(|share| share.for_each(1000, 4)), Some(500));
        assert_eq!(Share::parse("1K/H").map(|share| share.for_each(7, 0)), Some(1024));
        assert_eq!(Share::of_host(1.0).for_each(u64::MAX, 1), u64::MAX);
        assert_eq!(Share::of_host(0.85).to_string(), "0.85 of memory for all ranks of a host");
    }

    /// A row whose value is its default, which is checked like any value.
    fn row(kind: Kind, default: &'static str) -> Setting {
        let (name, aliases) = ("GASWORKS_TEST_UNSET", &[]);
        Setting { name, aliases, kind, default, unit: "", meaning: "", reader: "tests" }
    }

    #[test]
    fn every_kind_refuses_what_it_cannot_use() {
        let number = Kind::Number { min: 1, max: 4096 };
        let size = Kind::Size { min: 4096, max: 1 << 30 };
        let choice = Kind::Choice(&["one", "two"]);
        let in_number = "wanted a whole number from 1 to 4096";
        let in_size = "wanted a size from 4096 to 1073741824 bytes, such as";
        let in_seconds = "wanted a number of seconds from 0.1 to 1000000000";
        for (kind, bad, wanted) in [
            (number, &["0", "4097", "-1", "99999999999999999999999", "1.5", "1K", "many"][..], in_number),
            (size, &["0", "4095", "2G", "-1", "99999999999T", "lots", "K", "1.5G"], in_size),
            (Kind::Seconds, &["0", "0.09", "-1", "1e10", "1e999", "inf", "nan", "10 s", "soon"], in_seconds),
            (Kind::Boolean, &["2", "-1", "perhaps"], "wanted 0 or 1"),
            (
                Kind::Share,
                &["lots", "-1", "1.5", "0.0", "0.85/X", "/H", "1G/", "1.5.2G", "nan", "99999999T"],
                "wanted a size such",
            ),
            (choice, &["three", "0", "-1"], "wanted one of one, two"),
        ] {
            for value in bad {
                let error = row(kind, value).check().expect_err(value).to_string();
                let start = format!("setting GASWORKS_TEST_UNSET={value:?}: {wanted}");
                assert!(error.starts_with(&start), "{error:?} should begin with {start:?}");
            }
        }
        for (kind, value) in [
            (number, "1"),
            (number, "4096"),
            (size, "4K"),
            (size, "1 GiB"),
            (Kind::Share, "0.85/H"),
            (Kind::Share, "64M"),
            (Kind::Seconds, "0.1"),
            (Kind::Seconds, "1e9"),
            (Kind::Boolean, "Yes"),
            (choice, "TWO"),
            (Kind::Text, "anything"),
            (number, ""),
        ] {
            assert_eq!(row(kind, value).check(), Ok(()), "{kind:?} {value}");
        }
    }

    /// Entries as an installation has them.
    const ENTRIES: &[Entry] = &[
        ("GASWORKS_TEST_CHIPS", Some("aries"), "1984"),
        ("GASWORKS_TEST_CHIPS", Some("gemini"), "960"),
        ("GASWORKS_TEST_GEMINI", Some("gemini"), "9"),
        ("GASWORKS_TEST_ONE", None, "7"),
    ];

    #[test]
    fn what_is_configured_takes_the_place_of_the_default() {
        let row = |name| Setting { name, ..row(Kind::Number { min: 1, max: 4096 }, "12") };
        for (name, usual, on, shown) in [
            ("GASWORKS_TEST_CHIPS", "12", ["1984", "960"], "12; 1984 on aries; 960 on gemini"),
            ("GASWORKS_TEST_GEMINI", "12", ["12", "9"], "12; 9 on gemini"),
            ("GASWORKS_TEST_ONE", "7", ["7", "7"], "7"),
            ("GASWORKS_TEST_UNSET", "12", ["12", "12"], "12"),
        ] {
            let row = row(name);
            assert_eq!(
                (row.usual_by(ENTRIES), row.usual_shown_by(ENTRIES).as_str()),
                (usual, shown),
                "{name}"
            );
            assert_eq!(
                ["aries", "gemini"].map(|chip| row.on_by(ENTRIES, chip).usual_by(ENTRIES)),
                on,
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_set_comes_before_what_is_configured() {
        // Every test has a PATH.
        let path = Setting { name: "PATH", ..row(Kind::Text, "configured") };
        assert_eq!(path.held(), path.raw());
        assert_ne!(path.text(), "configured");
        let unset = row(Kind::Text, "configured");
        assert_eq!(unset.held(), Some((unset.name, "configured".to_owned())));
        assert_eq!(row(Kind::Text, "").held(), None);
    }
}
