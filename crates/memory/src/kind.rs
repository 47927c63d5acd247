//! The port for kinds of memory.

use crate::MemoryError;
use gasworks_sync::RawBytes;

/// Which kind of memory an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KindTag {
    /// Ordinary memory of the host.
    Host,
    /// Memory of a device, by number.
    Device(u16),
}

/// A kind of memory: how to tell it, share it and copy it. Host memory is one, device memory another; put, get,
/// Long and windows ask it, and so need not know of any device.
pub trait Kind {
    /// The tag of addresses that are of this kind.
    fn tag(&self) -> KindTag;
    /// Whether `address` is of this kind.
    fn owns(&self, address: *const u8) -> bool;
    /// Copies `source` to `target`, both `source.len()` long, at least one of this kind. Returns when it is done.
    ///
    /// # Errors
    /// The lengths differ.
    fn copy(&self, target: RawBytes, source: RawBytes) -> Result<(), MemoryError>;
}

/// Ordinary memory of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host;

impl Kind for Host {
    fn tag(&self) -> KindTag {
        KindTag::Host
    }
    fn owns(&self, _address: *const u8) -> bool {
        true
    }
    fn copy(&self, target: RawBytes, source: RawBytes) -> Result<(), MemoryError> {
        if target.len() != source.len() {
            return Err(MemoryError::LengthsDiffer { target: target.len(), source_len: source.len() });
        }
        // SAFETY: both runs are mapped for their lengths, which are equal (Y1 of gasworks_sync::racy).
        unsafe { gasworks_sync::racy::copy(target.as_ptr(), source.as_ptr(), source.len()) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_memory_is_copied_where_the_lengths_agree() {
        let (mut from, mut to) = ([1u8, 2, 3, 4], [9u8; 4]);
        assert_eq!((Host.tag(), Host.owns(from.as_ptr())), (KindTag::Host, true));
        // SAFETY: the bytes of `from`, which is not used otherwise meanwhile.
        let source = unsafe { RawBytes::new(from.as_mut_ptr(), 4) };
        for (len, wanted) in [(0, [9; 4]), (3, [1, 2, 3, 9]), (4, [1, 2, 3, 4])] {
            // SAFETY: the first bytes of `to`, which is used otherwise only after that.
            let target = unsafe { RawBytes::new(to.as_mut_ptr(), len) };
            for source_len in 0..=4 {
                let differ = MemoryError::LengthsDiffer { target: len, source_len };
                let source = source.slice(0, source_len).expect("it is inside");
                let copied = Host.copy(target, source);
                assert_eq!(copied, if source_len == len { Ok(()) } else { Err(differ) });
            }
            assert_eq!(to, wanted, "{len} bytes");
            to = [9; 4];
        }
    }
}
