//! The settings that this crate reads.

use crate::memory::{HugePages, Memory};
use gasworks_os::settings::{Kind, Setting, SettingError, Share};
use std::time::Duration;

const SEGMENT: Setting = Setting {
    name: "GASWORKS_SEGMENT_SIZE",
    aliases: &["GASNET_MAX_SEGSIZE"],
    kind: Kind::Share,
    default: "64M",
    unit: "",
    meaning: "size of each rank's segment, rounded up to whole pages",
    reader: "pshm",
};
const LIMIT: Setting = Setting {
    name: "GASWORKS_SEGMENT_LIMIT",
    aliases: &["GASNET_MAX_SEGSIZE"],
    kind: Kind::Share,
    default: "0.85/H",
    unit: "",
    meaning: "the largest segment that a program may ask for",
    reader: "pshm",
};
const ROOM: Setting = Setting {
    name: "GASWORKS_SEGMENT_MAX",
    aliases: &[],
    kind: Kind::Share,
    default: "",
    unit: "",
    meaning: "size that segments have room to grow to; it takes addresses, not memory; unset: they keep their size",
    reader: "pshm",
};
const HUGE_PAGES: Setting = Setting {
    name: "GASWORKS_HUGE_PAGES",
    aliases: &["GASNET_USE_HUGEPAGES"],
    kind: Kind::Choice(&["off", "try", "require", "0", "1", "no", "yes"]),
    default: "off",
    unit: "",
    meaning: "whether segments and queues lie in huge pages: from the kernel's pool where it has enough, else transparent \
              ones (try, 1, yes), or from the pool alone (require)",
    reader: "pshm",
};
const NUMA: Setting = Setting {
    name: "GASWORKS_NUMA",
    aliases: &[],
    kind: Kind::Boolean,
    default: "1",
    unit: "",
    meaning: "each rank's memory comes from the memory nodes of the processors that it may run on, whoever touches it first",
    reader: "pshm",
};
const POPULATE: Setting = Setting {
    name: "GASWORKS_POPULATE",
    aliases: &[],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "each rank backs all of its segment with memory when the job starts, and when the segment grows",
    reader: "pshm",
};
const ATTACH_TIMEOUT: Setting = Setting {
    name: "GASWORKS_ATTACH_TIMEOUT",
    aliases: &[],
    kind: Kind::Seconds,
    default: "60",
    unit: "seconds",
    meaning: "how long the ranks of a host wait for one another when they say what memory they need and are given it",
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

const TOGETHER: Setting = Setting {
    name: "GASNET_SUPERNODE_MAXSIZE",
    aliases: &[],
    kind: Kind::Number { min: 0, max: 65535 },
    default: "0",
    unit: "ranks",
    meaning: "how many ranks of a host share memory at most, where there is a network besides; the others are reached over that; 0: \
              all of a host, 1: everything goes over the network",
    reader: "pshm",
};

/// The rows of this crate in the table of settings.
pub const SETTINGS: &[Setting] =
    &[LIMIT, SEGMENT, ROOM, HUGE_PAGES, NUMA, POPULATE, ATTACH_TIMEOUT, BARRIER_RADIX, TOGETHER];

impl Memory {
    /// What the settings say.
    ///
    /// # Errors
    /// A setting cannot be used as it stands.
    pub fn from_settings() -> Result<Self, SettingError> {
        let huge_pages = match HUGE_PAGES.choice()? {
            "try" | "1" | "yes" => HugePages::Try,
            "require" => HugePages::Require,
            _ => HugePages::Off,
        };
        Ok(Self {
            segment: SEGMENT.share()?.unwrap_or(Share::bytes(64 << 20)),
            // Nobody has asked for the default.
            at_most: SEGMENT.raw().is_none(),
            room: ROOM.share()?,
            later: false,
            limit: LIMIT.share()?,
            huge_pages,
            place: NUMA.boolean()?,
            populate: POPULATE.boolean()?,
        })
    }
}

/// How many of so many ranks meet at each count of the barrier; 0 for all.
pub(crate) fn barrier_radix(ranks: u32) -> Result<u32, SettingError> {
    Ok(BARRIER_RADIX.number()?.map_or(if ranks > 32 { 8 } else { 0 }, |radix| radix as u32))
}

/// How many ranks of a host share memory at most, where there is a network besides; 0 for all of them. GASNet's supernodes.
///
/// # Errors
/// The setting is not a number, or out of its limits.
pub fn most_together() -> Result<u32, SettingError> {
    Ok(TOGETHER.number()?.unwrap_or(0) as u32)
}

/// Whether the environment limits segments.
pub fn limits_segments() -> bool {
    LIMIT.raw().is_some()
}

/// How long the ranks wait for one another.
pub(crate) fn attach_timeout() -> Result<Duration, SettingError> {
    Ok(ATTACH_TIMEOUT.seconds()?.unwrap_or(Duration::from_secs(60)))
}

/// How an error names the limit on segments.
pub(crate) fn limit_name(limit: Share) -> String {
    let name = LIMIT.raw().map_or(LIMIT.name, |(variable, _)| variable);
    format!("the setting {name} ({limit})")
}

/// The name of the setting that an error about segments should mention.
pub(crate) const SEGMENT_NAME: &str = SEGMENT.name;
/// The name of the setting that an error about the growth of segments should mention.
pub(crate) const ROOM_NAME: &str = ROOM.name;
/// The name of the setting that an error about huge pages should mention.
pub(crate) const HUGE_NAME: &str = HUGE_PAGES.name;
/// The name of the setting that an error about time should mention.
pub(crate) const TIMEOUT_NAME: &str = ATTACH_TIMEOUT.name;
