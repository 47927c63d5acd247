//! The settings that this crate reads.

use gasworks_os::settings::{Kind, Setting, SettingError};
use std::time::Duration;

const SEGMENT: Setting = Setting {
    name: "GASWORKS_SEGMENT_SIZE",
    aliases: &["GASNET_MAX_SEGSIZE"],
    kind: Kind::Size { min: 0, max: 1 << 46 },
    default: "64M",
    unit: "bytes",
    meaning: "size of each rank's segment; rounded up to whole pages",
    reader: "pshm",
};
const ATTACH_TIMEOUT: Setting = Setting {
    name: "GASWORKS_ATTACH_TIMEOUT",
    aliases: &[],
    kind: Kind::Seconds,
    default: "60",
    unit: "seconds",
    meaning: "how long the ranks of a host wait for one another when they exchange descriptors of their memory",
    reader: "pshm",
};
const BARRIER_RADIX: Setting = Setting {
    name: "GASWORKS_BARRIER_RADIX",
    aliases: &["GASNET_PSHM_BARRIER_RADIX"],
    kind: Kind::Number { min: 0, max: 65535 },
    default: "",
    unit: "ranks",
    meaning: "ranks that meet at each count of the shared-memory barrier's tree, at least 3; 0: all at one; if unset, \
              all at one up to 32 ranks, else 8 at each; rank 0's is taken",
    reader: "pshm",
};

/// The rows of this crate in the table of settings.
pub const SETTINGS: &[Setting] = &[SEGMENT, ATTACH_TIMEOUT, BARRIER_RADIX];

/// The size of a segment that the settings ask for.
///
/// # Errors
/// The setting is not a size or out of its limits.
pub fn segment_size() -> Result<u64, SettingError> {
    Ok(SEGMENT.number()?.unwrap_or(64 << 20))
}

/// How many of so many ranks meet at each count of the barrier; 0 for all.
pub(crate) fn barrier_radix(ranks: u32) -> Result<u64, SettingError> {
    Ok(BARRIER_RADIX.number()?.unwrap_or(if ranks > 32 { 8 } else { 0 }))
}

/// How long the ranks wait for one another.
pub(crate) fn attach_timeout() -> Result<Duration, SettingError> {
    Ok(ATTACH_TIMEOUT.seconds()?.unwrap_or(Duration::from_secs(60)))
}

/// The name of the setting that an error about segments should mention.
pub(crate) const SEGMENT_NAME: &str = SEGMENT.name;
/// The name of the setting that an error about time should mention.
pub(crate) const TIMEOUT_NAME: &str = ATTACH_TIMEOUT.name;
