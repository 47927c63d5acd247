//! What is wanted of a rank's memory.

use gasworks_os::settings::Share;

/// What is wanted of the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// The size of the segment.
    pub segment: Share,
    /// Whether a segment above the limit is cut down to it, and not an error.
    pub at_most: bool,
    /// The size that the segment has room to grow to; without it, it cannot.
    pub room: Option<Share>,
    /// Whether room above what can be had is cut down to that: the segment gets its length later, of which all that there is room for
    /// is promised.
    pub later: bool,
    /// The largest segment allowed.
    pub limit: Option<Share>,
    /// Whether it lies in huge pages.
    pub huge_pages: HugePages,
    /// Whether it lies on the memory nodes of the processors that this rank may run on.
    pub place: bool,
    /// Whether all of the segment is backed with memory at once.
    pub populate: bool,
}

/// Whether memory lies in huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HugePages {
    /// It does not.
    #[default]
    Off,
    /// It does if the kernel's pool has enough of them; else the kernel is asked for transparent ones; else it does not.
    Try,
    /// It does, from the kernel's pool, or the job does not start.
    Require,
}

/// What a rank's memory lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Ordinary pages.
    Base,
    /// Ordinary pages which the kernel joins to huge ones when it can.
    Transparent,
    /// Huge pages of this size in bytes, kept for this rank.
    Huge(usize),
}

impl Memory {
    /// A segment of so many bytes, and the defaults but for the limit.
    pub const fn of(segment: u64) -> Self {
        Self {
            segment: Share::bytes(segment),
            at_most: false,
            room: None,
            later: false,
            limit: None,
            huge_pages: HugePages::Off,
            place: true,
            populate: false,
        }
    }
}
