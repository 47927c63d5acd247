//! A thread that waits for the launcher's end of the connection to vanish.
//!
//! A rank that computes looks at nothing for a long time. Without a launcher nobody would collect it, or end it when
//! another rank fails; so it ends itself, within a second, and says why.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use gasworks_os::eventfd::EventFd;
use gasworks_os::process;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;

use crate::BootstrapError;

/// The watch; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// How long the rank has to notice the loss by itself, when it is just talking to the launcher: its own error says
/// more than the watch can.
const GRACE: Duration = Duration::from_millis(300);

impl Watcher {
    /// Watches `connection`; `who` is this process in the message.
    pub(crate) fn start(connection: OwnedFd, who: String) -> Result<Self, BootstrapError> {
        let stop = Arc::new(EventFd::new()?);
        let stopped = Arc::clone(&stop);
        let body = move || {
            // The program's signals belong to the program's threads. A failure only means that they may come here.
            let _ = SigSet::all().thread_block();
            if hung_up(&connection, &stopped) && !wait_stopped(&stopped) {
                gasworks_os::say(&format!(
                    "gasworks: {who}: the launcher is gone (it closed the connection): this rank ends"
                ));
                process::exit_now(1);
            }
        };
        let thread = std::thread::Builder::new()
            .name("gasworks-watch".into())
            .stack_size(128 << 10)
            .spawn(body)
            .map_err(|source| BootstrapError::Io { during: "start the watch over the launcher", source })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // A counter that cannot be rung is full, and so already readable.
        let _ = self.stop.ring();
        if let Some(thread) = self.thread.take() {
            // The thread does nothing that could fail.
            let _ = thread.join();
        }
    }
}

/// Waits for a hang-up, and for nothing else of what may come; `false` when told to stop.
fn hung_up(connection: &OwnedFd, stop: &EventFd) -> bool {
    // The flag that a stream socket sets as soon as the other side writes no more; nix has no name for it.
    let half_closed = PollFlags::from_bits_retain(nix::libc::POLLRDHUP);
    loop {
        let mut fds =
            [PollFd::new(connection.as_fd(), half_closed), PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            Err(_) => return false,
            Ok(_) if fds[1].any() == Some(true) => return false,
            Ok(_) => return true,
        }
    }
}

fn wait_stopped(stop: &EventFd) -> bool {
    let grace = PollTimeout::try_from(GRACE).unwrap_or(PollTimeout::ZERO);
    matches!(poll(&mut [PollFd::new(stop.as_fd(), PollFlags::POLLIN)], grace), Ok(n) if n > 0)
}
