//! By what the ranks of a job find each other on a host whose name spaces they do not share: a listener that is handed to rank 0, and
//! the way to it for the others.

use std::path::{Path, PathBuf};

use gasworks_os::unix::{self, Connector, Listener};

/// Names what a rank gets of it, for the library.
pub(crate) const MEET_FD: &str = "GASWORKS_MEET_FD";

#[derive(Debug)]
pub(crate) struct MeetingSocket {
    pub(crate) listener: Listener,
    pub(crate) connector: Connector,
}

impl MeetingSocket {
    /// For the job of this name. `None` where the machine has nothing to make it of: then the ranks meet by name alone.
    pub(crate) fn open(job: &str) -> Option<Self> {
        unix::listen_hidden(&file(job)).ok().map(|(listener, connector)| Self { listener, connector })
    }
}

/// The file that is there while it is made.
pub(crate) fn file(job: &str) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("{job}.meeting"))
}
