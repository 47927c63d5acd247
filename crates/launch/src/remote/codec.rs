//! Numbers and bytes in messages between `gasrun` and its agents. Numbers are little-endian; bytes have their length in
//! front.

use anyhow::{Context, ensure};

/// The longest message.
const LONGEST: usize = 1 << 30;

/// The first message of what has come, and what follows it; `None` as long as it is not there to its end.
pub(crate) fn frame(waiting: &[u8]) -> anyhow::Result<Option<(&[u8], &[u8])>> {
    let Some((length, rest)) = waiting.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    ensure!(length <= LONGEST, "a message announces {length} bytes");
    Ok(rest.split_at_checked(length))
}

/// Builds a message.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut counted = self.number(bytes.len() as u64);
        counted.0.extend_from_slice(bytes);
        counted
    }

    /// Several things, their number in front.
    pub(super) fn list<T>(
        self,
        items: impl ExactSizeIterator<Item = T>,
        each: impl Fn(Self, T) -> Self,
    ) -> Self {
        let counted = self.number(items.len() as u64);
        items.fold(counted, each)
    }
}

/// Reads a message from the front.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> anyhow::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("a message is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> anyhow::Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> anyhow::Result<u64> {
        let mut number = [0; 8];
        number.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(number))
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> anyhow::Result<T> {
        T::try_from(self.number()?).ok().context("a number in a message is too large")
    }

    pub(super) fn bytes(&mut self) -> anyhow::Result<&'a [u8]> {
        let count = self.small()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(super) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let count: usize = self.small()?;
        // Every item takes a byte at least.
        ensure!(count <= self.0.len(), "a list in a message is longer than the message");
        (0..count).map(|_| each(self)).collect()
    }

    pub(super) fn end(&self) -> anyhow::Result<()> {
        ensure!(self.0.is_empty(), "a message is too long");
        Ok(())
    }
}
