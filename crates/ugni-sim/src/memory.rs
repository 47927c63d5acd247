//! Memory as a NIC reaches it: by numbers, which may be wrong.

use crate::process::Process;

/// Why memory was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An address is not mapped, or not to be written.
    Unmapped,
    /// Whose memory it is has ended.
    Gone,
}

/// The memory of a process. Others use it at the same time; what is read may be torn, but aligned words are not.
pub trait Memory: Send + Sync {
    /// Copies bytes out.
    ///
    /// # Errors
    /// [`Fault`]: some may have been copied.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// The same of bytes that the client itself has named just now, and keeps until this returns.
    ///
    /// # Errors
    /// [`Fault`]: some may have been copied.
    fn load(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.read(address, into)
    }

    /// Copies bytes in; an aligned word of eight bytes at once.
    ///
    /// # Errors
    /// [`Fault`]: some may have been copied.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault>;

    /// The process whose memory it is, if it is one's.
    fn process(&self) -> Option<&Process> {
        None
    }
}

/// Bytes that are moved at a time from one memory to another.
pub(crate) const PIECE: usize = 4096;

/// Copies from one memory to another: between this process and another at once, else in pieces that keep aligned words
/// whole where both addresses are aligned alike.
///
/// # Errors
/// [`Fault`]: some bytes may have been copied.
pub fn copy(to: (&dyn Memory, u64), from: (&dyn Memory, u64), len: u64) -> Result<(), Fault> {
    if let (Some(target), Some(source)) = (to.0.process(), from.0.process())
        && let Some(copied) = target.copy(to.1, (source, from.1), len)
    {
        return copied;
    }
    let mut piece = [0; PIECE];
    let mut done = 0;
    while done < len {
        let count = usize::try_from(len - done).map_or(PIECE, |left| left.min(PIECE));
        let (to_address, from_address) = (to.1.checked_add(done), from.1.checked_add(done));
        let bytes = &mut piece[..count];
        from.0.read(from_address.ok_or(Fault::Unmapped)?, bytes)?;
        to.0.write(to_address.ok_or(Fault::Unmapped)?, bytes)?;
        done += count as u64;
    }
    Ok(())
}

/// A memory whose bytes the client has just named, and keeps.
pub(crate) struct Named<'a>(pub(crate) &'a dyn Memory);

impl Memory for Named<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.0.load(address, into)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.0.write(address, from)
    }
}

/// A memory that is no process's: some words from an address on. For NICs whose clients are threads of one process.
#[derive(Debug)]
pub struct Arena {
    first: u64,
    words: Vec<gasworks_sync::atomic::AtomicU64>,
}

impl Arena {
    /// So many words of zeros from an address on, which is a multiple of 8.
    pub fn new(first: u64, words: usize) -> Self {
        assert!(first.is_multiple_of(8), "the address {first:#x} of words");
        Self { first, words: (0..words).map(|_| gasworks_sync::atomic::AtomicU64::new(0)).collect() }
    }

    /// The address of its first byte.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        8 * self.words.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// For each word that `len` bytes from an address on lie in: the word, where in it they begin, and where among the bytes
    /// they are.
    fn pieces(
        &self,
        address: u64,
        len: usize,
    ) -> Result<impl Iterator<Item = (&gasworks_sync::atomic::AtomicU64, usize, std::ops::Range<usize>)>, Fault>
    {
        let offset = address
            .checked_sub(self.first)
            .and_then(|offset| usize::try_from(offset).ok())
            .ok_or(Fault::Unmapped)?;
        let end = offset.checked_add(len).filter(|end| *end as u64 <= self.len()).ok_or(Fault::Unmapped)?;
        let mut at = offset;
        Ok(std::iter::from_fn(move || {
            (at < end).then(|| {
                let (word, start) = (&self.words[at / 8], at % 8);
                let next = (at - start + 8).min(end);
                let piece = (word, start, at - offset..next - offset);
                at = next;
                piece
            })
        }))
    }
}

impl Memory for Arena {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        for (word, start, range) in self.pieces(address, into.len())? {
            let bytes = word.load(gasworks_sync::atomic::Ordering::Acquire).to_le_bytes();
            let count = range.len();
            into[range].copy_from_slice(&bytes[start..start + count]);
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        use gasworks_sync::atomic::Ordering::{Acquire, Release};
        for (word, start, range) in self.pieces(address, from.len())? {
            let mut old = word.load(Acquire);
            loop {
                let mut bytes = old.to_le_bytes();
                bytes[start..start + range.len()].copy_from_slice(&from[range.clone()]);
                match word.compare_exchange(old, u64::from_le_bytes(bytes), Release, Acquire) {
                    Ok(_) => break,
                    Err(now) => old = now,
                }
            }
        }
        Ok(())
    }
}
