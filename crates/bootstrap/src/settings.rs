//! The settings of this crate.

use std::time::Duration;

use gasworks_os::settings::{Kind, Setting, SettingError};

const RANKS: Kind = Kind::Number { min: 0, max: i32::MAX as u64 };

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[
    BOOTSTRAP,
    FD,
    PORT,
    RANK,
    ID,
    SIZE,
    JOB,
    PMIX_NAMESPACE,
    PMIX_RANK,
    CRAY_RANK,
    TIMEOUT,
    EXIT_TIMEOUT,
    EXIT_TIMEOUT_MAX,
    EXIT_TIMEOUT_MIN,
    EXIT_TIMEOUT_FACTOR,
    CATCH_EXIT,
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
    meaning: "how long a job may take to end; unset: MIN and FACTOR for each host, at most MAX",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_MAX: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_MAX",
    aliases: &[],
    kind: Kind::Seconds,
    default: "5",
    unit: "s",
    meaning: "the greatest exit time-out, where GASNET_EXITTIMEOUT is unset",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_MIN: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_MIN",
    aliases: &[],
    kind: Kind::Seconds,
    default: "1",
    unit: "s",
    meaning: "the exit time-out without what each host adds, where GASNET_EXITTIMEOUT is unset",
    reader: "gasworks-bootstrap",
};

const EXIT_TIMEOUT_FACTOR: Setting = Setting {
    name: "GASNET_EXITTIMEOUT_FACTOR",
    aliases: &[],
    kind: Kind::Seconds,
    default: "0.1",
    unit: "s",
    meaning: "what each host adds to the exit time-out, where GASNET_EXITTIMEOUT is unset",
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

/// How long a job on so many hosts may take to end.
pub fn exit_timeout(hosts: u32) -> Result<Duration, SettingError> {
    if let Some(set) = EXIT_TIMEOUT.seconds()? {
        return Ok(set);
    }
    let or_zero = |setting: &Setting| setting.seconds().map(Option::unwrap_or_default);
    let (max, min) = (or_zero(&EXIT_TIMEOUT_MAX)?, or_zero(&EXIT_TIMEOUT_MIN)?);
    Ok((min + or_zero(&EXIT_TIMEOUT_FACTOR)?.saturating_mul(hosts)).min(max))
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
