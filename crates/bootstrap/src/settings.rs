//! The settings of this crate.

use std::time::Duration;

use gasworks_os::settings::{Kind, Setting, SettingError};

const RANKS: Kind = Kind::Number { min: 0, max: i32::MAX as u64 };

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[
    BOOTSTRAP,
    NODES,
    GASRUN,
    BECAME,
    FD,
    PORT,
    RANK,
    ID,
    SIZE,
    HERE,
    JOB,
    PMIX_NAMESPACE,
    PMIX_RANK,
    CRAY_RANK,
    MEETING,
    TIMEOUT,
    EXIT_TIMEOUT,
    EXIT_TIMEOUT_MAX,
    EXIT_TIMEOUT_MIN,
    EXIT_TIMEOUT_FACTOR,
    CATCH_EXIT,
    NO_CATCH_SIGNAL,
    NO_FORK,
];

pub(crate) const BOOTSTRAP: Setting = Setting {
    name: "GASWORKS_BOOTSTRAP",
    aliases: &[],
    kind: Kind::Choice(&["auto", "pmi2", "pmi1", "pmix", "cray", "single"]),
    default: "auto",
    unit: "",
    meaning: "how a rank finds its job: by what the environment offers, by one protocol only, or not at all",
    reader: "gasworks-bootstrap",
};

pub(crate) const NODES: Setting = Setting {
    name: "GASNET_PSHM_NODES",
    aliases: &[],
    kind: RANKS,
    default: "1",
    unit: "ranks",
    meaning: "how many ranks a program starts by itself that no launcher has started",
    reader: "gasworks-bootstrap",
};

pub(crate) const GASRUN: Setting = Setting {
    name: "GASWORKS_GASRUN",
    aliases: &[],
    kind: Kind::Text,
    default: "gasrun",
    unit: "",
    meaning: "what starts these; where it is not found, gasrun on the path",
    reader: "gasworks-bootstrap",
};

pub(crate) const BECAME: Setting = Setting {
    name: "GASWORKS_BECAME",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "which programs have become a launcher on the way to this process; set by them, so that none does it twice",
    reader: "gasworks-bootstrap",
};

pub(crate) const FD: Setting = Setting {
    name: "PMI_FD",
    aliases: &[],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the descriptor on which the launcher speaks PMI-2 or PMI-1",
    reader: "gasworks-bootstrap",
};

pub(crate) const PORT: Setting = Setting {
    name: "PMI_PORT",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "host:port where the launcher speaks PMI-2 or PMI-1, where it has left no descriptor",
    reader: "gasworks-bootstrap",
};

pub(crate) const ID: Setting = Setting {
    name: "PMI_ID",
    aliases: &[],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "by what number the launcher at PMI_PORT knows this process",
    reader: "gasworks-bootstrap",
};

pub(crate) const RANK: Setting = Setting {
    name: "PMI_RANK",
    aliases: &["PMI_ID"],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the rank of this process, set by the launcher",
    reader: "gasworks-bootstrap",
};

pub(crate) const SIZE: Setting = Setting {
    name: "PMI_SIZE",
    aliases: &[],
    kind: Kind::Number { min: 1, max: i32::MAX as u64 },
    default: "",
    unit: "ranks",
    meaning: "the number of ranks, set by the launcher; checked against what it says on the wire",
    reader: "gasworks-bootstrap",
};

pub(crate) const HERE: Setting = Setting {
    name: "MPI_LOCALNRANKS",
    aliases: &[],
    kind: Kind::Number { min: 1, max: i32::MAX as u64 },
    default: "",
    unit: "ranks",
    meaning: "how many of the ranks are on this host, set by gasrun and hydra; what is asked of ALPS is answered by it",
    reader: "gasworks-bootstrap",
};

pub(crate) const JOB: Setting = Setting {
    name: "PMI_JOBID",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the name of the job, set by launchers that want to hear it again",
    reader: "gasworks-bootstrap",
};

pub(crate) const PMIX_NAMESPACE: Setting = Setting {
    name: "PMIX_NAMESPACE",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the name of the job, set by a launcher that speaks PMIx through libpmix.so",
    reader: "gasworks-bootstrap",
};

pub(crate) const PMIX_RANK: Setting = Setting {
    name: "PMIX_RANK",
    aliases: &[],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the rank of this process, set by a launcher that speaks PMIx",
    reader: "gasworks-bootstrap",
};

pub(crate) const CRAY_RANK: Setting = Setting {
    name: "ALPS_APP_PE",
    aliases: &["PMI_FORK_RANK"],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the rank of this process, set by a launcher that speaks Cray's PMI through libpmi.so and libpmi2.so",
    reader: "gasworks-bootstrap",
};

pub(crate) const MEETING: Setting = Setting {
    name: "GASWORKS_MEET_FD",
    aliases: &[],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "set by gasrun where it starts all ranks of a job: the descriptor by which they find rank 0 from other name spaces",
    reader: "gasworks-bootstrap",
};

pub(crate) const TIMEOUT: Setting = Setting {
    name: "GASWORKS_BOOTSTRAP_TIMEOUT",
    aliases: &[],
    kind: Kind::Seconds,
    default: "60",
    unit: "s",
    meaning: "how long a rank waits for the launcher, and for the slowest rank while the job starts",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT: Setting = Setting {
    name: "GASNET_EXITTIMEOUT",
    aliases: &[],
    kind: Kind::Seconds,
    default: "",
    unit: "s",
    meaning: "how long a job may take to end; unset: MIN and FACTOR for each rank, at most MAX",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_MAX: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_MAX",
    aliases: &[],
    kind: Kind::Seconds,
    default: "",
    unit: "s",
    meaning: "the greatest exit time-out, where GASNET_EXITTIMEOUT is unset. Unset: 5, in jobs by Cray's PMI 120",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_MIN: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_MIN",
    aliases: &[],
    kind: Kind::Seconds,
    default: "",
    unit: "s",
    meaning: "the exit time-out without what each rank adds, where GASNET_EXITTIMEOUT is unset. Unset: 1, in jobs by Cray's PMI 3",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_FACTOR: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_FACTOR",
    aliases: &[],
    kind: Kind::Seconds,
    default: "",
    unit: "s",
    meaning: "what each rank adds to the exit time-out, where GASNET_EXITTIMEOUT is unset. Unset: 0.1, in jobs by Cray's PMI 0.125",
    reader: "gasworks-bootstrap",
};

pub(crate) const CATCH_EXIT: Setting = Setting {
    name: "GASNET_CATCH_EXIT",
    aliases: &[],
    kind: Kind::Boolean,
    default: "1",
    unit: "",
    meaning: "an end by exit() or a return from main with a job open ends the job; 0: that process alone",
    reader: "gasworks-bootstrap",
};

pub(crate) const NO_CATCH_SIGNAL: Setting = Setting {
    name: "GASNET_NO_CATCH_SIGNAL",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "signals that do with a rank what they do with any program: a list of names, or *; those that end the job else, and those by which a program in C says where it was",
    reader: "gasworks-bootstrap, gasworks-tools",
};

pub(crate) const NO_FORK: Setting = Setting {
    name: "PMI_NO_FORK",
    aliases: &[],
    kind: Kind::Text,
    default: "1",
    unit: "",
    meaning: "Cray's PMI starts no process of its own beside a rank: set by a rank that joins by it, unless it is set already",
    reader: "gasworks-bootstrap",
};

/// How long a job may take to end. GASNet counts what it calls nodes, which are its processes: the ranks.
#[derive(Clone, Copy, Debug)]
pub struct ExitTimeout {
    least: Duration,
    each: Duration,
    most: Duration,
}

impl ExitTimeout {
    /// What GASNet takes in the memory of one host where nothing is set.
    const NEAR: Self = Self {
        least: Duration::from_secs(1),
        each: Duration::from_millis(100),
        most: Duration::from_secs(5),
    };
    /// The same over Gemini and Aries, where ranks join by Cray's PMI.
    const CRAY: Self = Self {
        least: Duration::from_secs(3),
        each: Duration::from_millis(125),
        most: Duration::from_secs(120),
    };

    /// Reads the settings, for ranks that join by what `GASWORKS_BOOTSTRAP` names.
    pub fn of_environment() -> Result<Self, SettingError> {
        Self::from_settings(BOOTSTRAP.choice()? == "cray")
    }

    /// Reads `GASNET_EXITTIMEOUT`, and the settings that stand for it where it is unset: for ranks that join by Cray's PMI, or not.
    pub(crate) fn from_settings(cray: bool) -> Result<Self, SettingError> {
        if let Some(set) = EXIT_TIMEOUT.seconds()? {
            return Ok(Self { least: set, each: Duration::ZERO, most: set });
        }
        let usual = if cray { Self::CRAY } else { Self::NEAR };
        Ok(Self {
            least: EXIT_TIMEOUT_MIN.seconds()?.unwrap_or(usual.least),
            each: EXIT_TIMEOUT_FACTOR.seconds()?.unwrap_or(usual.each),
            most: EXIT_TIMEOUT_MAX.seconds()?.unwrap_or(usual.most),
        })
    }

    /// That of a job of so many ranks.
    pub fn of(self, ranks: u32) -> Duration {
        self.least.saturating_add(self.each.saturating_mul(ranks)).min(self.most)
    }

    /// How long the end of a job of so many ranks may take: all that may be waited for, one after the other, and some more.
    pub(crate) fn patience(self, ranks: u32) -> Duration {
        self.of(ranks) * 4 + Duration::from_secs(1)
    }
}

/// How long a rank waits for the launcher.
pub(crate) fn timeout() -> Result<Duration, SettingError> {
    Ok(TIMEOUT.seconds()?.unwrap_or(Duration::from_secs(60)))
}

/// The ways into a job that the environment offers, for an error about one that it does not.
pub(crate) fn offers() -> String {
    const WAYS: [(Setting, &str); 4] =
        [(FD, "pmi2, pmi1"), (PORT, "pmi2, pmi1"), (CRAY_RANK, "cray"), (PMIX_NAMESPACE, "pmix")];
    let found = WAYS.iter().filter_map(|(row, way)| {
        let (variable, value) = row.raw()?;
        Some(format!("{variable}={value} ({way})"))
    });
    let found: Vec<String> = found.collect();
    match found.is_empty() {
        true => {
            let wanted: Vec<&str> = WAYS.iter().map(|(row, _)| row.name).collect();
            format!("no launcher has left a way in ({})", wanted.join(", "))
        }
        false => format!("there is {}", found.join(", ")),
    }
}

#[cfg(test)]
impl ExitTimeout {
    /// One that does not depend on the number of ranks.
    pub(crate) fn fixed(timeout: Duration) -> Self {
        Self { least: timeout, each: Duration::ZERO, most: timeout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_adds_to_the_exit_time_out_up_to_a_limit() {
        let ms = Duration::from_millis;
        let near = [(0, 1000), (1, 1100), (39, 4900), (40, 5000), (41, 5000), (u32::MAX, 5000)];
        let cray = [(0, 3000), (1, 3125), (935, 119_875), (936, 120_000), (u32::MAX, 120_000)];
        for (is_cray, all) in [(false, &near[..]), (true, &cray)] {
            let timeout = ExitTimeout::from_settings(is_cray).expect("nothing is set");
            for &(ranks, wanted) in all {
                assert_eq!(timeout.of(ranks), ms(wanted), "{ranks} ranks, {is_cray}");
                assert_eq!(timeout.patience(ranks), ms(4 * wanted + 1000));
            }
        }
    }
}
