//! Memory handles: 128 bits that name a registration, in one of two layouts, with a check sum.
//!
//! Clients take them for opaque, pass them on to each other, and some (libfabric) even build their own, so the layouts
//! are those of the genuine library:
//!
//! | bits | layout 1 | layout 2 (flag [`Flags::NEW_FORMAT`], shared descriptors) |
//! |---|---|---|
//! | 0 to 51 | first page | first page |
//! | 52 to 63 | descriptor | entropy |
//! | 64 to 91 | pages | pages |
//! | 92 to 97 | page shift | page shift |
//! | 98 to 105 | flags | flags |
//! | 106 to 117 | the highest: writes are ordered | descriptor |
//! | 120 to 127 | check sum | check sum |
//!
//! The check sum is CRC-8/MAXIM of the 15 bytes before it. In layout 2 the highest bit of the entropy says that writes are ordered.

use gasworks_gni_sys::gni_mem_handle_t;

/// Bits of a page's number.
const PAGE_BITS: u32 = 52;
const PAGE: u64 = (1 << PAGE_BITS) - 1;
/// Addresses are counted in pages of this many bits, whatever the pages of the registration.
const ADDRESS_SHIFT: u32 = 64 - PAGE_BITS;
/// The most that a handle can say of pages; it means that the handle does not tell where they end.
pub const PAGES_UNSAID: u32 = (1 << 28) - 1;
/// Descriptors and entropy have this many bits.
const DESCRIPTOR: u64 = (1 << 12) - 1;
/// The greatest entropy that tells registrations apart.
pub const MOST_ENTROPY: u16 = ORDERED - 1;
/// The bit of the entropy that says that an event of a write comes after its bytes.
pub const ORDERED: u16 = 1 << 11;
/// The greatest descriptor.
pub const MOST_DESCRIPTOR: u16 = DESCRIPTOR as u16;
const SHIFT: u64 = (1 << 6) - 1;

/// Attributes of a registration, as a handle carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// It may not be written from afar.
    pub const READ_ONLY: Flags = Flags(0x01);
    /// It is named by a virtual descriptor.
    pub const VMDH: Flags = Flags(0x02);
    /// Through the memory relocation table (Gemini).
    pub const MRT: Flags = Flags(0x04);
    /// Through the graphics aperture (Gemini).
    pub const GART: Flags = Flags(0x08);
    /// Through the chip's own page tables (Aries).
    pub const IOMMU: Flags = Flags(0x10);
    /// Through the processor's page tables for devices.
    pub const PCI_IOMMU: Flags = Flags(0x20);
    /// A copy of another registration's.
    pub const CLONE: Flags = Flags(0x40);
    /// Layout 2.
    pub const NEW_FORMAT: Flags = Flags(0x80);

    /// Whether all of `others` are there.
    pub fn has(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// Those of them that a handle must say as its registration does. By which tables the NIC finds the memory is the
    /// target's own affair, and whether it may be written is asked where it is; clients that build handles leave both out.
    pub fn telling(self) -> Flags {
        Flags(self.0 & (Flags::VMDH.0 | Flags::CLONE.0 | Flags::NEW_FORMAT.0))
    }

    /// With `others`.
    pub fn and(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }
}

/// What a handle says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// The address of the first byte in units of 4 KiB.
    pub page: u64,
    /// The number of its descriptor: which registration.
    pub descriptor: u16,
    /// Tells registrations apart that had the same descriptor one after the other, in layout 2 alone; and [`ORDERED`].
    pub entropy: u16,
    /// How many pages.
    pub pages: u32,
    /// How large they are: 2 to this power.
    pub shift: u8,
    /// Its attributes.
    pub flags: Flags,
}

/// A handle that no registration has made: a bit of it was changed, or it was never filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl Handle {
    /// The handle's bits. What does not fit its field is cut.
    pub fn seal(&self) -> gni_mem_handle_t {
        let new = self.flags.has(Flags::NEW_FORMAT);
        let descriptor = u64::from(self.descriptor) & DESCRIPTOR;
        let entropy = u64::from(self.entropy) & DESCRIPTOR;
        let (above, beside) =
            if new { (entropy, descriptor) } else { (descriptor, entropy & u64::from(ORDERED)) };
        let qword1 = self.page & PAGE | above << PAGE_BITS;
        let qword2 = u64::from(self.pages.min(PAGES_UNSAID))
            | (u64::from(self.shift) & SHIFT) << 28
            | u64::from(self.flags.0) << 34
            | beside << 42;
        gni_mem_handle_t { qword1, qword2: qword2 | u64::from(check_sum(qword1, qword2)) << 56 }
    }

    /// Reads a handle.
    ///
    /// # Errors
    /// [`Corrupt`].
    pub fn open(handle: &gni_mem_handle_t) -> Result<Self, Corrupt> {
        let gni_mem_handle_t { qword1, qword2 } = *handle;
        if qword2 == 0 || check_sum(qword1, qword2) != (qword2 >> 56) as u8 {
            return Err(Corrupt);
        }
        Ok(Self::read(*handle))
    }

    /// Reads the handle of a peer's memory, as it is posted: clients that build such a handle by themselves leave out the check sum,
    /// which is 0 then.
    ///
    /// # Errors
    /// [`Corrupt`].
    pub fn open_of_peer(handle: &gni_mem_handle_t) -> Result<Self, Corrupt> {
        let has_sum = handle.qword2 >> 56 != 0;
        if has_sum || handle.qword2 == 0 { Self::open(handle) } else { Ok(Self::read(*handle)) }
    }

    fn read(gni_mem_handle_t { qword1, qword2 }: gni_mem_handle_t) -> Self {
        let flags = Flags((qword2 >> 34) as u8);
        let (above, beside) = ((qword1 >> PAGE_BITS) as u16, (qword2 >> 42 & DESCRIPTOR) as u16);
        let (descriptor, entropy) =
            if flags.has(Flags::NEW_FORMAT) { (beside, above) } else { (above, beside & ORDERED) };
        Self {
            page: qword1 & PAGE,
            descriptor,
            entropy,
            pages: (qword2 & u64::from(PAGES_UNSAID)) as u32,
            shift: (qword2 >> 28 & SHIFT) as u8,
            flags,
        }
    }

    /// Whether an event of a write to the memory comes after the bytes: it was registered so, or peers make its handles by themselves,
    /// which cannot know.
    pub fn orders_writes(&self) -> bool {
        self.flags.has(Flags::VMDH) || self.entropy & ORDERED != 0
    }

    /// Where its first page begins.
    pub fn first(&self) -> u64 {
        self.page << ADDRESS_SHIFT
    }

    /// Whether `len` bytes at `address` lie in the pages that the handle names; where it does not say how many there are,
    /// whether they begin there.
    pub fn covers(&self, address: u64, len: u64) -> bool {
        let Some(offset) = address.checked_sub(self.first()) else { return false };
        let Some(end) = offset.checked_add(len) else { return false };
        self.pages == PAGES_UNSAID || u128::from(end) <= u128::from(self.pages) << self.shift
    }
}

/// The remainder of each byte.
const REMAINDERS: [u8; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < all.len() {
        let (mut sum, mut bit) = (byte as u8, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0x8c } else { sum >> 1 };
            bit += 1;
        }
        all[byte] = sum;
        byte += 1;
    }
    all
};

/// CRC-8/MAXIM (polynomial 0x31 reflected, from 0) of both words in the order of a little machine's memory, but for the
/// last byte.
fn check_sum(qword1: u64, qword2: u64) -> u8 {
    let (first, second) = (qword1.to_le_bytes(), qword2.to_le_bytes());
    first.iter().chain(&second[..7]).fold(0, |sum, byte| REMAINDERS[usize::from(sum ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn handle() -> impl Strategy<Value = Handle> {
        let numbers = (0..=PAGE, 0..=DESCRIPTOR as u16, 0..=DESCRIPTOR as u16, 0..=PAGES_UNSAID);
        (numbers, 12..=SHIFT as u8, 1..=u8::MAX).prop_map(
            |((page, descriptor, entropy, pages), shift, flags)| {
                let flags = Flags(flags);
                let entropy = if flags.has(Flags::NEW_FORMAT) { entropy } else { entropy & ORDERED };
                Handle { page, descriptor, entropy, pages, shift, flags }
            },
        )
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn what_is_sealed_is_read(handle in handle()) {
            prop_assert_eq!(Handle::open(&handle.seal()), Ok(handle));
        }

        /// The sum notices every change of up to eight bits beside each other, so every single one.
        #[test]
        fn a_changed_bit_is_noticed(handle in handle(), bit in 0..128u32) {
            let mut sealed = handle.seal();
            match bit {
                0..64 => sealed.qword1 ^= 1 << bit,
                _ => sealed.qword2 ^= 1 << (bit - 64),
            }
            prop_assert_eq!(Handle::open(&sealed), Err(Corrupt));
        }

        #[test]
        fn any_bits_are_read_or_refused(qword1: u64, qword2: u64) {
            if let Ok(handle) = Handle::open(&gni_mem_handle_t { qword1, qword2 }) {
                let _ = handle.covers(qword1, qword2);
            }
        }
    }

    #[test]
    fn the_sum_is_that_of_the_name() {
        // The check value of CRC-8/MAXIM is that of the digits 1 to 9; zeros in front change nothing.
        let digits = *b"\x00\x00\x00\x00\x00\x00123456789\x00";
        let word = |at: usize| u64::from_le_bytes(digits[at..at + 8].try_into().expect("eight bytes"));
        assert_eq!(check_sum(word(0), word(8)), 0xa1);
    }

    #[test]
    fn a_handle_covers_its_pages() {
        let handle = Handle { page: 5, pages: 2, shift: 12, flags: Flags::MRT, ..Handle::default() };
        assert!(handle.covers(5 << 12, 8192) && handle.covers((7 << 12) - 1, 1) && handle.covers(7 << 12, 0));
        assert!(
            !handle.covers((5 << 12) - 1, 1) && !handle.covers(5 << 12, 8193) && !handle.covers(u64::MAX, 2)
        );
        let unsaid = Handle { pages: PAGES_UNSAID, ..handle };
        assert!(unsaid.covers(u64::MAX - 1, 1) && !unsaid.covers(0, 1));
    }

    #[test]
    fn a_peer_s_handle_may_lack_the_sum() {
        let handle =
            Handle { page: 5, descriptor: 7, pages: 2, shift: 12, flags: Flags::MRT, ..Handle::default() };
        let sealed = handle.seal();
        assert_ne!(sealed.qword2 >> 56, 0);
        let bare = gni_mem_handle_t { qword2: sealed.qword2 & !(0xff << 56), ..sealed };
        assert_eq!((Handle::open(&bare), Handle::open_of_peer(&bare)), (Err(Corrupt), Ok(handle)));
        assert_eq!(Handle::open_of_peer(&sealed), Ok(handle));
        let changed = gni_mem_handle_t { qword1: sealed.qword1 ^ 1, ..sealed };
        assert_eq!(Handle::open_of_peer(&changed), Err(Corrupt));
    }

    #[test]
    fn an_empty_handle_is_none() {
        let none = gni_mem_handle_t { qword1: 0, qword2: 0 };
        assert_eq!((Handle::open(&none), Handle::open_of_peer(&none)), (Err(Corrupt), Err(Corrupt)));
    }
}
