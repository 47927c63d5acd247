//! The two chips: what they call themselves, their rules of alignment, their limits.

use gasworks_gni_sys::{
    GNI_DEVICE_ARIES, GNI_DEVICE_GEMINI, GNI_JOB_CTRL_ALL_CE_MASK, gni_ce_result_t, gni_nic_device_t,
};

/// Which chip a NIC plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chip {
    /// Of the XE and XK.
    Gemini,
    /// Of the XC.
    Aries,
}

/// The cache line within which a get with flag must stay.
pub const LINE: u64 = 64;
/// The most bytes of a get with flag: a line, but for the flag.
pub const MOST_WITH_FLAG: u64 = 60;
/// The bytes of what a collective engine delivers.
pub const RESULT: u64 = size_of::<gni_ce_result_t>() as u64;
/// What their address is a multiple of.
pub const RESULT_ALIGNMENT: u64 = 32;
/// The most bytes of a transfer by the block transfer engine.
pub const MOST_BTE: u64 = u32::MAX as u64;

impl Chip {
    /// Both.
    pub const ALL: [Chip; 2] = [Chip::Gemini, Chip::Aries];

    /// What uGNI calls it.
    pub fn device(self) -> gni_nic_device_t {
        match self {
            Chip::Gemini => GNI_DEVICE_GEMINI,
            Chip::Aries => GNI_DEVICE_ARIES,
        }
    }

    /// The chip that uGNI calls so.
    pub fn of_device(device: gni_nic_device_t) -> Option<Chip> {
        Chip::ALL.into_iter().find(|chip| chip.device() == device)
    }

    /// What a local address of a get is a multiple of.
    pub fn local_alignment(self) -> u64 {
        match self {
            Chip::Gemini => 4,
            Chip::Aries => 1,
        }
    }

    /// Bits of the number of an instance, as it stands in an event at its source.
    pub fn instance_bits(self) -> u32 {
        match self {
            Chip::Gemini => 32,
            Chip::Aries => 24,
        }
    }

    /// How many registrations a NIC has room for.
    pub fn descriptors(self) -> usize {
        4096
    }

    /// How many domains of a host may have an FMA descriptor of their own: as many as clients have found that there are, which
    /// is fewer than the chip has.
    pub fn fma_descriptors(self) -> u32 {
        match self {
            Chip::Gemini => 30,
            Chip::Aries => 123,
        }
    }

    /// How many completion queues a NIC has room for.
    pub fn queues(self) -> usize {
        1024
    }

    /// How many collective engines a NIC has: as many as a job's limits have bits for.
    pub fn engines(self) -> u8 {
        match self {
            Chip::Gemini => 0,
            Chip::Aries => GNI_JOB_CTRL_ALL_CE_MASK.count_ones() as u8,
        }
    }
}
