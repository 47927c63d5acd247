//! What can go wrong while the transport opens.

use crate::settings::{HUGE_NAME, ROOM_NAME, SEGMENT_NAME, TIMEOUT_NAME};
use gasworks_bootstrap::BootstrapError;
use gasworks_os::OsError;
use gasworks_os::settings::{SettingError, Share};
use thiserror::Error;

/// Why the shared-memory transport did not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PshmError {
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The exchange with the other ranks failed.
    #[error("{0}")]
    Bootstrap(BootstrapError),
    /// The ranks of the host did not come together.
    #[error("{cause} ({TIMEOUT_NAME} allows {seconds} s)")]
    Apart {
        /// The cause.
        cause: BootstrapError,
        /// How long was allowed.
        seconds: f64,
    },
    /// The operating system refused.
    #[error("{0}")]
    Os(OsError),
    /// The segments do not fit into memory.
    #[error(
        "the segments of {} take {asked} bytes together, but {who} leaves {have}; ask for less (by {SEGMENT_NAME} or \
         Config::segment) or run fewer ranks on this host", count(*.ranks)
    )]
    Memory {
        /// How many ranks share the host.
        ranks: u32,
        /// How many bytes they ask for together.
        asked: u64,
        /// How many there are.
        have: u64,
        /// Who says so.
        who: String,
    },
    /// A segment is larger than a limit.
    #[error(
        "a segment of {asked} bytes is more than {who} allows, {have} bytes for this rank; ask for less (by {SEGMENT_NAME} or \
         Config::segment) or raise the limit"
    )]
    Limit {
        /// How many bytes were asked for.
        asked: u64,
        /// How many are allowed.
        have: u64,
        /// Whose limit it is.
        who: String,
    },
    /// A segment, or its room or limit, is a fraction that is none.
    #[error(
        "memory for a segment: {share}, but a fraction is above 0 and at most 1; see Config::segment_fraction and \
         {SEGMENT_NAME}"
    )]
    Fraction {
        /// What was asked for.
        share: Share,
    },
    /// The room for a segment is beyond any address space.
    #[error("room for a segment of {room} bytes is beyond any address space: ask for less by {ROOM_NAME}")]
    Unbounded {
        /// The room in bytes.
        room: u64,
    },
    /// A rank cannot map the memory of all.
    #[error(
        "the memory of {} and its room to grow take {asked} bytes of addresses together, but the address space of rank {rank} \
         (see ulimit -v) has {have} left; raise that limit, run fewer ranks, or ask for less by {SEGMENT_NAME} and {ROOM_NAME}",
        count(*.ranks)
    )]
    AddressSpace {
        /// Which rank has the fewest.
        rank: u32,
        /// How many ranks share the host.
        ranks: u32,
        /// How many bytes of addresses the file of all takes, and that rank's own segment.
        asked: u64,
        /// How many there are.
        have: u64,
    },
    /// The kernel's pool has not enough huge pages.
    #[error(
        "{HUGE_NAME}=require: {} {needed} huge pages of {page} bytes, and {free} are free{}; reserve {all} for \
         all ranks by `sysctl vm.nr_hugepages={all}`, or set {HUGE_NAME}=try",
        if needed < all { "this rank needs" } else { "the ranks need" },
        .cause.as_deref().map(|cause| format!(" ({cause})")).unwrap_or_default()
    )]
    HugePages {
        /// How many this rank needs, or all.
        needed: u64,
        /// Their size in bytes; 0 where the kernel has none.
        page: usize,
        /// How many are free.
        free: u64,
        /// How many all ranks need.
        all: u64,
        /// What the kernel said, if it was asked.
        cause: Option<String>,
    },
    /// Some ranks cannot do without huge pages, and others do.
    #[error(
        "{HUGE_NAME}=require: rank {rank} requires huge pages, and rank {other} does not use them; the memory of a host lies in one \
         kind of pages, so set it alike for all ranks"
    )]
    Mixed {
        /// Which cannot.
        rank: u32,
        /// Which does.
        other: u32,
    },
    /// A segment could not be backed with memory at once.
    #[error("GASWORKS_POPULATE: {0}")]
    Populate(OsError),
    /// Ranks are on other hosts.
    #[error(
        "the ranks of this job are on {hosts} hosts (rank {rank} shares no memory with rank 0), and shared memory \
         does not reach from host to host: start all ranks on one host, or with GASWORKS_NETWORK=gni where there is Gemini or Aries"
    )]
    Elsewhere {
        /// How many hosts there are.
        hosts: u32,
        /// The first rank that is not on the host of rank 0.
        rank: u32,
    },
    /// A rank runs a version that lays its memory out in another way, or sent something else altogether.
    #[error("rank {rank} announced itself in a form that this version does not know ({what})")]
    Announcement {
        /// Which.
        rank: u32,
        /// What was wrong.
        what: &'static str,
    },
    /// Another rank could not open the transport.
    #[error("rank {rank} could not set it up: {cause}")]
    Peer {
        /// Which.
        rank: u32,
        /// What it said.
        cause: String,
    },
    /// What the rank that leads the host gave is not what belongs there.
    #[error("the memory file that rank {rank} made for this host is not as it should be: {what}")]
    Descriptor {
        /// Whose.
        rank: u32,
        /// What was found.
        what: String,
    },
    /// There are more ranks than a message's head counts.
    #[error("{ranks} ranks on one host: the shared-memory transport admits at most {max}")]
    TooManyRanks {
        /// How many.
        ranks: u32,
        /// How many are allowed.
        max: u32,
    },
}

// By hand, since an error whose text has its cause in it must not give the cause again as its source.
impl From<BootstrapError> for PshmError {
    fn from(cause: BootstrapError) -> Self {
        PshmError::Bootstrap(cause)
    }
}

impl From<OsError> for PshmError {
    fn from(cause: OsError) -> Self {
        PshmError::Os(cause)
    }
}

fn count(ranks: u32) -> String {
    if ranks == 1 { "this rank".into() } else { format!("all {ranks} ranks") }
}
