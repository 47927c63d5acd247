//! A connection, with what is to be sent over it: anybody may send, and the gate's thread goes on with what there was no room
//! for.

use gasworks_sock::{Error, Sock};
use parking_lot::Mutex;

/// More bytes than ever wait to be sent to one who reads.
const MOST_WAITING: usize = 64 << 20;

pub(super) struct Line {
    sock: Sock,
    out: Mutex<Out>,
}

#[derive(Default)]
struct Out {
    /// It is connected.
    open: bool,
    /// Something of it is on its way.
    busy: bool,
    waiting: Vec<u8>,
}

impl Line {
    /// Over a sock that is connected, or will be.
    pub(super) fn new(sock: Sock, open: bool) -> Self {
        Self { sock, out: Mutex::new(Out { open, ..Out::default() }) }
    }

    pub(super) fn sock(&self) -> &Sock {
        &self.sock
    }

    /// It is connected now.
    pub(super) fn open(&self) -> Result<(), Error> {
        let mut out = self.out.lock();
        out.open = true;
        self.flush(&mut out)
    }

    /// Sends bytes, behind those that are still to be sent. Where nobody takes them the connection is at its end, which the
    /// gate learns.
    pub(super) fn send(&self, bytes: &[u8]) {
        let mut out = self.out.lock();
        out.waiting.extend_from_slice(bytes);
        if out.waiting.len() > MOST_WAITING || self.flush(&mut out).is_err() {
            self.close();
        }
    }

    /// What was on its way is sent.
    pub(super) fn sent(&self) {
        let mut out = self.out.lock();
        out.busy = false;
        if self.flush(&mut out).is_err() {
            self.close();
        }
    }

    fn flush(&self, out: &mut Out) -> Result<(), Error> {
        if out.busy || !out.open || out.waiting.is_empty() {
            return Ok(());
        }
        // What there is room for goes at once, without an event.
        let written = self.sock.write(&out.waiting)?;
        out.waiting.drain(..written);
        if out.waiting.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut out.waiting);
        let len = bytes.len();
        self.sock.post_write(bytes, len, len, None)?;
        out.busy = true;
        Ok(())
    }

    pub(super) fn close(&self) {
        // It may have come to its end by itself.
        let _ = self.sock.post_close();
    }
}
