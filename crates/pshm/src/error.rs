//! What can go wrong while the transport opens.

use crate::settings::{SEGMENT_NAME, TIMEOUT_NAME};
use gasworks_bootstrap::BootstrapError;
use gasworks_os::OsError;
use gasworks_os::settings::SettingError;
use thiserror::Error;

/// Why the shared-memory transport did not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PshmError {
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The exchange with the other ranks failed.
    #[error("open the shared-memory transport: {0}")]
    Bootstrap(BootstrapError),
    /// The operating system refused.
    #[error("open the shared-memory transport: {0}")]
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
    /// A rank is on another host.
    #[error(
        "rank {rank} does not share memory and a network name space with rank {me}: the shared-memory transport \
         needs all ranks on one host"
    )]
    Elsewhere {
        /// Which.
        rank: u32,
        /// As seen from which.
        me: u32,
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
    #[error("rank {rank} could not open the shared-memory transport: {cause}")]
    Peer {
        /// Which.
        rank: u32,
        /// What it said.
        cause: String,
    },
    /// Ranks did not come to the meeting.
    #[error("no connection from rank {} within {seconds} s ({TIMEOUT_NAME})", list(.ranks))]
    Missing {
        /// Which.
        ranks: Vec<u32>,
        /// How long was waited.
        seconds: f64,
    },
    /// The leader did not answer.
    #[error(
        "rank {leader} did not send the descriptors of all ranks ({TIMEOUT_NAME} allows {seconds} s): {cause}"
    )]
    NoLeader {
        /// Which rank leads.
        leader: u32,
        /// How long was allowed.
        seconds: f64,
        /// The cause.
        cause: OsError,
    },
    /// A descriptor is not what its rank announced.
    #[error("the memory file of rank {rank} is not what it announced: {what}")]
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

fn list(ranks: &[u32]) -> String {
    let mut text: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    if ranks.len() > 8 {
        text.push(format!("and {} more", ranks.len() - 8));
    }
    text.join(", ")
}
