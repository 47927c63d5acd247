//! Lines that a handler of a signal says: made in place, of bytes and numbers, and written by one call.

use std::os::fd::AsFd;

use crate::jobs;

/// Bytes that a line holds.
const MOST: usize = 512;

/// A line that is made without allocating, locking or formatting: in a handler of a signal, where the program may have been at
/// that. What does not fit is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    bytes: [u8; MOST],
    len: usize,
}

impl Line {
    /// An empty line. It is not copied while it is made: the stack of a handler may be small.
    pub const fn new() -> Self {
        Self { bytes: [0; MOST], len: 0 }
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let n = bytes.len().min(MOST - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&bytes[..n]);
        self.len += n;
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        let (mut digits, mut at, mut rest) = ([0u8; 20], 20, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return self.bytes(&digits[at..]);
            }
        }
    }

    /// Begins with the library's name, and that of this process in its job.
    pub fn who(&mut self) -> &mut Self {
        self.text("gasworks: ");
        if let Some(who) = jobs::who() {
            self.bytes(who.as_bytes()).text(": ");
        }
        self
    }

    /// Writes it to standard error, where the last byte is the line's end. If that fails there is nobody to tell.
    pub fn say(&mut self) {
        self.len = self.len.min(MOST - 1);
        self.text("\n");
        let _ = nix::unistd::write(std::io::stderr().as_fd(), &self.bytes[..self.len]);
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_numbers_and_never_overflow() {
        let mut line = Line::new();
        line.number(0);
        for number in [7, 12345, u64::MAX] {
            line.text(" ").number(number);
        }
        assert_eq!(&line.bytes[..line.len], b"0 7 12345 18446744073709551615");
        line.bytes(&[b'x'; 1000]).number(3);
        assert_eq!(line.len, MOST);
    }
}
