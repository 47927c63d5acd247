//! A connection, or one end of a pipe, with a buffer on each side.

use gasworks_sock::{Event, Op, Sock};

#[derive(Debug)]
pub(crate) struct Line {
    sock: Sock,
    /// What has come and was not taken yet.
    pub(crate) inbox: Vec<u8>,
    /// Into what the next read goes, if none is posted.
    spare: Option<Vec<u8>>,
    outbox: Vec<u8>,
    /// How many bytes of a posted write are on their way.
    writing: usize,
    /// Why nothing comes any more.
    ended: Option<String>,
}

impl Line {
    /// Over a connected sock of which nothing is posted; one read takes at most `chunk` bytes.
    pub(crate) fn new(sock: Sock, chunk: usize) -> Self {
        let mut line = Self::outward(sock);
        line.spare = Some(vec![0; chunk]);
        line.go_on();
        line
    }

    /// Over a sock that is only written to.
    pub(crate) fn outward(sock: Sock) -> Self {
        Self { sock, inbox: Vec::new(), spare: None, outbox: Vec::new(), writing: 0, ended: None }
    }

    /// Sets the word that events of this line carry from now on.
    pub(crate) fn set_user(&self, user: u64) {
        self.sock.set_user(user);
    }

    /// Posts a read, unless one is posted.
    pub(crate) fn go_on(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let Some(buffer) = self.spare.take() else { return };
        let most = buffer.len();
        if let Err(e) = self.sock.post_read(buffer, 1, most, None) {
            self.ended = Some(e.to_string());
        }
    }

    /// Something that was posted has come to its end; after a read the next one is posted by [`go_on`](Self::go_on).
    pub(crate) fn event(&mut self, mut event: Event) {
        let error = event.error.take().map(|e| e.to_string());
        match event.op {
            Op::Read => {
                self.inbox.extend_from_slice(event.data());
                self.spare = Some(event.take_buffer());
                self.ended = self.ended.take().or(error);
            }
            Op::Write => {
                self.writing = 0;
                self.ended = self.ended.take().or(error);
                self.flush();
            }
            _ => {}
        }
    }

    /// Why nothing comes any more, if that is so.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Sends bytes, behind those that are still to be sent.
    pub(crate) fn post(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
        self.flush();
    }

    fn flush(&mut self) {
        if self.writing > 0 || self.outbox.is_empty() || self.ended.is_some() {
            return;
        }
        let bytes = std::mem::take(&mut self.outbox);
        let length = bytes.len();
        match self.sock.post_write(bytes, length, length, None) {
            Ok(()) => self.writing = length,
            Err(e) => self.ended = Some(e.to_string()),
        }
    }

    /// How many bytes are still to be sent.
    pub(crate) fn unwritten(&self) -> usize {
        if self.ended.is_some() { 0 } else { self.writing + self.outbox.len() }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // It may have come to its end by itself.
        let _ = self.sock.post_close();
    }
}
