//! The numbers of sets and of socks.

use std::fmt;

/// The number of a set (`MPIDU_Sock_getsetid`): unique among the sets of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(pub(crate) i32);

impl SetId {
    /// The number itself.
    pub fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a sock (`MPIDU_Sock_getid`): no other sock of its set ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SockId(pub(crate) u64);

impl SockId {
    /// The sock that had this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number itself.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 & 0xffff_ffff, self.0 >> 32)
    }
}
