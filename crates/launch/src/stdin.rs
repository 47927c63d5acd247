//! Standard input from a terminal, passed on to rank 0.
//!
//! A rank has a process group of its own and may not read from the terminal; a file or a pipe it simply inherits.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};

use gasworks_sock::poll::{Channel, Interest, Set, SockError};

use crate::job::token;
use crate::spawn::Input;

/// How much may wait for rank 0 before the terminal is not read any more.
const HIGH: usize = 64 << 10;

/// What kind of input rank 0 gets.
pub(crate) fn input() -> Input {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Input::Inherited;
    }
    // A job in the background must not read: it would be stopped.
    let foreground = nix::unistd::tcgetpgrp(stdin.as_fd()).is_ok_and(|group| group == nix::unistd::getpgrp());
    if foreground { Input::Piped } else { Input::Null }
}

/// Rank 0's standard input where `gasrun` is on another host.
#[derive(Debug)]
pub(crate) struct Piped {
    pipe: Option<Channel>,
    /// All has come.
    ended: bool,
    /// What has come and was not told to be taken.
    untold: usize,
}

impl Piped {
    pub(crate) fn new(pipe: OwnedFd, set: &Set) -> anyhow::Result<Self> {
        let pipe = Channel::new(pipe)?;
        set.add(&pipe, token::RANK0_INPUT, Interest::None)?;
        Ok(Self { pipe: Some(pipe), ended: false, untold: 0 })
    }

    /// Takes what has come, nothing meaning the end; gives how much rank 0 has taken in the meantime.
    pub(crate) fn feed(&mut self, bytes: Option<&[u8]>, set: &Set) -> Result<usize, SockError> {
        if let Some(bytes) = bytes {
            self.ended |= bytes.is_empty();
            self.untold += bytes.len();
        }
        let Some(pipe) = &mut self.pipe else { return Ok(std::mem::take(&mut self.untold)) };
        pipe.post(bytes.unwrap_or_default());
        let flushed = pipe.flush();
        let left = pipe.unwritten();
        if flushed.is_err() || (self.ended && left == 0) {
            // Rank 0 sees the end of its input; or it does not read any more.
            set.remove(&*pipe)?;
            self.pipe = None;
            return Ok(std::mem::take(&mut self.untold));
        }
        set.modify(&*pipe, token::RANK0_INPUT, Interest::new(false, left > 0))?;
        let taken = self.untold - left;
        self.untold = left;
        Ok(taken)
    }
}

/// The terminal and the pipe to rank 0.
#[derive(Debug)]
pub(crate) struct Terminal {
    pipe: Option<Channel>,
    reading: bool,
}

impl Terminal {
    pub(crate) fn new(pipe: OwnedFd, set: &Set) -> anyhow::Result<Self> {
        let pipe = Channel::new(pipe)?;
        set.add(io::stdin().as_fd(), token::TERMINAL, Interest::Read)?;
        set.add(&pipe, token::RANK0_INPUT, Interest::None)?;
        Ok(Self { pipe: Some(pipe), reading: true })
    }

    /// Passes on what can be passed on. `typed`: there is something to read.
    pub(crate) fn turn(&mut self, typed: bool, set: &Set) -> Result<(), SockError> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut ended = false;
        if typed && self.reading {
            let mut bytes = [0; 4096];
            match nix::unistd::read(io::stdin().as_fd(), &mut bytes) {
                Ok(0) => ended = true,
                Ok(n) => pipe.post(&bytes[..n]),
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                Err(_) => ended = true,
            }
        }
        let flushed = pipe.flush();
        if (ended && pipe.unwritten() == 0) || flushed.is_err() {
            // Rank 0 sees the end of its input; or it does not read any more.
            if self.reading {
                set.remove(io::stdin().as_fd())?;
            }
            set.remove(&*pipe)?;
            self.pipe = None;
            return Ok(());
        }
        set.modify(&*pipe, token::RANK0_INPUT, Interest::new(false, pipe.unwritten() > 0))?;
        let wanted = !ended && pipe.unwritten() < HIGH;
        if wanted != self.reading {
            self.reading = wanted;
            match wanted {
                true => set.add(io::stdin().as_fd(), token::TERMINAL, Interest::Read)?,
                false => set.remove(io::stdin().as_fd())?,
            }
        }
        Ok(())
    }
}
