//! The type of a setting, and the only place that reads the environment.
//!
//! Each crate declares its rows as `pub const SETTINGS: &[Setting]`; the facade joins them, and `gasrun --env`, the
//! book's page and the verbose start-up report are printed from that one table.
#![allow(clippy::disallowed_methods)] // this module is what the rule points to

/// One setting: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Our name for it, and the environment variable: `GASWORKS_...`, or the seeds' own name where they have one.
    pub name: &'static str,
    /// Other environment variables that set it, looked at in this order after `name`.
    pub aliases: &'static [&'static str],
    /// What kind of value it takes, with its limits.
    pub kind: Kind,
    /// The default, as it would be written.
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
    /// A time to wait in seconds, a decimal fraction allowed, from [`LEAST_SECONDS`] to [`MOST_SECONDS`].
    Seconds,
    /// `0` or `1` (also no and yes, n and y, false and true, off and on).
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
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

    /// The value as text, the default included.
    pub fn text(&self) -> String {
        self.raw().map_or_else(|| self.default.to_owned(), |(_, value)| value)
    }

    /// The value of a [`Kind::Number`] or [`Kind::Size`]; `None` if it is unset and its default is empty.
    pub fn number(&self) -> Result<Option<u64>, SettingError> {
        let (variable, value) = match self.raw() {
            Some((variable, value)) => (variable, value),
            None if self.default.is_empty() => return Ok(None),
            None => (self.name, self.default.to_owned()),
        };
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
        let (variable, value) = self.raw().unwrap_or((self.name, self.default.to_owned()));
        match value.to_ascii_lowercase().as_str() {
            "1" | "y" | "yes" | "true" | "on" => Ok(true),
            "0" | "n" | "no" | "false" | "off" => Ok(false),
            _ => Err(SettingError { variable: variable.into(), value, wanted: "wanted 0 or 1".into() }),
        }
    }

    /// The value of a [`Kind::Seconds`]; `None` if it is unset and its default is empty.
    pub fn seconds(&self) -> Result<Option<std::time::Duration>, SettingError> {
        let (variable, value) = match self.raw() {
            Some(pair) => pair,
            None if self.default.is_empty() => return Ok(None),
            None => (self.name, self.default.to_owned()),
        };
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
        let (variable, value) = self.raw().unwrap_or((self.name, self.default.to_owned()));
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
    /// Whether the value as it stands, the default included, can be used.
    pub fn check(&self) -> Result<(), SettingError> {
        match self.kind {
            Kind::Number { .. } | Kind::Size { .. } => self.number().map(drop),
            Kind::Seconds => self.seconds().map(drop),
            Kind::Boolean => self.boolean().map(drop),
            Kind::Choice(_) => self.choice().map(drop),
            Kind::Text => Ok(()),
        }
    }
}

/// Parses `4096`, `64K`, `16M`, `1G` or `1T` (also `KB`, `KiB`; powers of 1,024).
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
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
        assert_eq!(parse_size("-1"), None);
        assert_eq!(parse_size("K"), None);
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
}
