//! The settings of this crate, and how a [`Start`](crate::Start) is read from them.

use std::time::Duration;

use gasworks_os::inherited;
use gasworks_os::settings::{Kind, Setting, SettingError};

use crate::{BootstrapError, Start};

const RANKS: Kind = Kind::Number { min: 0, max: i32::MAX as u64 };

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[
    FD,
    RANK,
    SIZE,
    JOB,
    TIMEOUT,
    EXIT_TIMEOUT,
    EXIT_TIMEOUT_MAX,
    EXIT_TIMEOUT_MIN,
    EXIT_TIMEOUT_FACTOR,
    CATCH_EXIT,
];

const FD: Setting = Setting {
    name: "PMI_FD",
    aliases: &[],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the descriptor on which the launcher speaks PMI-2; unset: this is the only rank",
    reader: "gasworks-bootstrap",
};

const RANK: Setting = Setting {
    name: "PMI_RANK",
    aliases: &["PMI_ID"],
    kind: RANKS,
    default: "",
    unit: "",
    meaning: "the rank of this process, set by the launcher",
    reader: "gasworks-bootstrap",
};

const SIZE: Setting = Setting {
    name: "PMI_SIZE",
    aliases: &[],
    kind: Kind::Number { min: 1, max: i32::MAX as u64 },
    default: "",
    unit: "ranks",
    meaning: "the number of ranks, set by the launcher; checked against what it says on the wire",
    reader: "gasworks-bootstrap",
};

const JOB: Setting = Setting {
    name: "PMI_JOBID",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the name of the job, set by launchers that want to hear it again",
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

impl Start {
    /// What the launcher left in the environment; `None` without a launcher.
    pub fn from_settings() -> Result<Option<Self>, BootstrapError> {
        let Some(fd) = FD.number()? else { return alone() };
        let fd = i32::try_from(fd).unwrap_or(i32::MAX);
        let rank = RANK.number()?.ok_or_else(|| BootstrapError::Protocol {
            during: "read PMI_RANK",
            what: format!(
                "PMI_FD={fd} is set, but neither PMI_RANK nor PMI_ID: unset PMI_FD to run without a launcher"
            ),
        })?;
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Some(Start {
            socket: inherited::socket(fd)?.into(),
            rank: narrow(rank),
            size: SIZE.number()?.map(narrow),
            job: JOB.raw().map(|(_, job)| job),
            timeout: TIMEOUT.seconds()?.unwrap_or(Duration::from_secs(60)),
        }))
    }
}

/// Nobody speaks PMI-2 with this process: it is alone, unless a launcher says that it is not.
fn alone() -> Result<Option<Start>, BootstrapError> {
    match SIZE.number()? {
        Some(size) if size > 1 => Err(BootstrapError::Protocol {
            during: "join the job",
            what: format!(
                "PMI_SIZE={size} says there are other ranks, but PMI_FD is not set: this launcher does not speak PMI-2 \
                 over a descriptor; unset PMI_SIZE to run alone"
            ),
        }),
        _ => Ok(None),
    }
}
