//! A connection, or one end of a pipe, with a buffer on each side.

use std::time::Duration;

use gasworks_os::inet;
use gasworks_sock::{Event, Op, Sock};

/// How much the first read takes. Most ranks say little, and memory that is not touched costs nothing; who says much soon
/// gets more.
const FIRST: usize = 1 << 10;

#[derive(Debug)]
pub(crate) struct Line {
    sock: Sock,
    /// What has come and was not taken yet.
    pub(crate) inbox: Vec<u8>,
    /// Into what the next read goes, if none is posted.
    spare: Option<Vec<u8>>,
    /// How much one read may take once much comes.
    most: usize,
    outbox: Vec<u8>,
    /// How many bytes of a posted write are on their way.
    writing: usize,
    /// Nobody takes what is sent any more. What the other side said before it left may still be to come.
    mute: bool,
    /// Whether anything is read, and so tells of the end.
    reads: bool,
    /// Why nothing comes any more.
    ended: Option<String>,
}

impl Line {
    /// Over a connected sock of which nothing is posted; one read takes at most `most` bytes.
    pub(crate) fn new(sock: Sock, most: usize) -> Self {
        let mut line = Self::outward(sock);
        (line.spare, line.most, line.reads) = (Some(vec![0; most.min(FIRST)]), most, true);
        line.go_on();
        line
    }

    /// Over a sock that is only written to.
    pub(crate) fn outward(sock: Sock) -> Self {
        let (inbox, outbox) = (Vec::new(), Vec::new());
        Self { sock, inbox, spare: None, most: 0, outbox, writing: 0, mute: false, reads: false, ended: None }
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
                let full = event.bytes;
                let mut buffer = event.take_buffer();
                if full == buffer.len() && full < self.most {
                    buffer.resize((full * 4).min(self.most), 0);
                }
                self.spare = Some(buffer);
                self.ended = self.ended.take().or(error);
            }
            Op::Write => {
                self.writing = 0;
                match error {
                    Some(error) => self.silence(error),
                    None => self.flush(),
                }
            }
            _ => {}
        }
    }

    /// Nothing can be sent any more. Where something is read, that tells of the end, after all that came before it.
    fn silence(&mut self, error: String) {
        self.mute = true;
        self.outbox.clear();
        if !self.reads {
            self.ended = Some(error);
        }
    }

    /// Why nothing comes any more, if that is so; where nothing is read, why nothing can be sent.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Sends bytes, behind those that are still to be sent.
    pub(crate) fn post(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
        self.flush();
    }

    fn flush(&mut self) {
        if self.mute {
            self.outbox.clear();
        }
        if self.writing > 0 || self.outbox.is_empty() || self.ended.is_some() {
            return;
        }
        // What there is room for goes at once, without an event.
        let posted = self.sock.write(&self.outbox).and_then(|written| {
            self.outbox.drain(..written);
            if self.outbox.is_empty() {
                return Ok(0);
            }
            let bytes = std::mem::take(&mut self.outbox);
            let length = bytes.len();
            self.sock.post_write(bytes, length, length, None).map(|()| length)
        });
        match posted {
            Ok(length) => self.writing = length,
            Err(e) => self.silence(e.to_string()),
        }
    }

    /// How long ago the other side's system has acknowledged anything, over TCP.
    pub(crate) fn acknowledged(&self) -> Option<Duration> {
        self.sock.with_fd(inet::acknowledged).ok()?
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

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sock::Set;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_said_before_the_other_side_left_is_heard() {
        let set = Set::new().expect("a set");
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let mut line = Line::new(set.adopt(1, near).expect("adopted"), 2);
        far.write_all(b"done").expect("written");
        drop(far);
        line.post(b"too late");
        while line.ended().is_none() {
            let event = set.wait(Some(Duration::from_secs(20))).expect("waited");
            line.event(event.expect("an event"));
            line.go_on();
        }
        assert_eq!((line.inbox.as_slice(), line.unwritten()), (b"done".as_slice(), 0));
    }

    #[test]
    fn who_says_much_is_read_in_large_pieces() {
        let set = Set::new().expect("a set");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(&[b'x'; 40_000]).expect("written");
        drop(writer);
        let mut line = Line::new(set.adopt(1, reader).expect("adopted"), 16 << 10);
        let mut pieces = Vec::new();
        while line.ended().is_none() {
            let before = line.inbox.len();
            line.event(set.wait(Some(Duration::from_secs(20))).expect("waited").expect("an event"));
            pieces.push(line.inbox.len() - before);
            line.go_on();
        }
        assert_eq!(pieces, [1 << 10, 4 << 10, 16 << 10, 16 << 10, 40_000 - (37 << 10), 0]);
    }
}
