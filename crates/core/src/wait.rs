//! How a rank waits: it spins, then yields, then sleeps.

use gasworks_os::settings::{Kind, Setting, SettingError};
use std::time::Duration;

pub(crate) const SPIN: Setting = Setting {
    name: "GASWORKS_SPIN",
    aliases: &[],
    kind: Kind::Number { min: 0, max: 1_000_000_000 },
    default: "",
    unit: "polls",
    meaning: "empty polls before a waiting rank yields its core; 2000 where every rank has a core, else 0",
    reader: "core",
};

/// Empty polls after the first yield, before the rank sleeps.
const YIELDS: u32 = 100;
/// The first and the longest sleep. A message ends a sleep at once; what arrives without one is seen at its end.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// How long a rank spins before it yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    spins: u32,
}

/// What to do after an empty poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Spin,
    Yield,
    Sleep(Duration),
}

impl Patience {
    /// Reads the setting; the default depends on whether every one of `ranks` ranks of this host has a core.
    ///
    /// # Errors
    /// The setting is not a number or out of its limits.
    pub fn from_settings(ranks: usize, cores: usize) -> Result<Self, SettingError> {
        let default = if ranks <= cores { 2000 } else { 0 };
        Ok(Self { spins: SPIN.number()?.unwrap_or(default) as u32 })
    }

    /// Spins so many times before it yields.
    pub fn spins(spins: u32) -> Self {
        Self { spins }
    }

    /// What to do after the `idle`-th empty poll in a row, counted from 1.
    pub(crate) fn step(self, idle: u32) -> Step {
        if idle <= self.spins {
            return Step::Spin;
        }
        match idle - self.spins {
            n if n <= YIELDS => Step::Yield,
            n => Step::Sleep((FIRST_SLEEP * (1 << (n - YIELDS - 1).min(6))).min(LONGEST_SLEEP)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_then_yields_then_sleeps_longer_and_longer() {
        let patience = Patience::spins(3);
        assert_eq!(patience.step(3), Step::Spin);
        assert_eq!(patience.step(4), Step::Yield);
        assert_eq!(patience.step(3 + YIELDS), Step::Yield);
        assert_eq!(patience.step(4 + YIELDS), Step::Sleep(FIRST_SLEEP));
        assert_eq!(patience.step(5 + YIELDS), Step::Sleep(2 * FIRST_SLEEP));
        assert_eq!(patience.step(u32::MAX), Step::Sleep(LONGEST_SLEEP));
    }
}
