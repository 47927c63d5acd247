//! Messages and transfers that were begun and are not over.

use super::event::{Failure, OperationId, SendFlags};
use crate::datagram::RegistrationId;
use crate::header::HeaderType;
use crate::registration::{RmaHandle, RmaRights};

/// A message or transfer that is not over.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) operation: OperationId,
    pub(super) context: u64,
    pub(super) flags: SendFlags,
    /// When it counts as lost.
    pub(super) deadline: Option<u64>,
}

/// How many operations of an endpoint are not over.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    all: usize,
    /// Of these, those whose end the program asks for itself, and those whose success it does not want to know.
    awaited: usize,
    silent: usize,
}

impl UnderWay {
    #[inline]
    pub(super) fn begin(&mut self, flags: SendFlags) {
        self.all += 1;
        self.awaited += usize::from(flags.contains(SendFlags::AWAITED));
        self.silent += usize::from(flags.contains(SendFlags::SILENT));
    }

    #[inline]
    pub(super) fn end(&mut self, flags: SendFlags) {
        self.all -= 1;
        self.awaited -= usize::from(flags.contains(SendFlags::AWAITED));
        self.silent -= usize::from(flags.contains(SendFlags::SILENT));
    }

    #[inline]
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// Whether the program waits for one.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Whether nobody wants to know of any.
    #[inline]
    pub(super) fn are_silent(&self) -> bool {
        self.silent == self.all
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaKind {
    /// From the peer's memory to this endpoint's.
    Read,
    /// From this endpoint's memory to the peer's.
    Write,
}

impl RmaKind {
    pub(super) fn header(self) -> HeaderType {
        match self {
            Self::Read => HeaderType::RmaRead,
            Self::Write => HeaderType::RmaWrite,
        }
    }

    pub(super) fn rights(self) -> RmaRights {
        match self {
            Self::Read => RmaRights::READ,
            Self::Write => RmaRights::WRITE,
        }
    }
}

/// A transfer by fragments.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) pending: Pending,
    pub(super) kind: RmaKind,
    pub(super) local: (RmaHandle, u64),
    pub(super) remote: (RegistrationId, u64),
    pub(super) len: u64,
    /// Bytes whose fragments were sent, and acknowledged.
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) failed: Option<Failure>,
    /// What the peer's program is told behind the last fragment; and its number once it was sent.
    pub(super) message: Option<Vec<u8>>,
    pub(super) told: Option<u64>,
}

impl Transfer {
    /// Has it end as soon as the target does not use this side's blocks for it any more.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failed.get_or_insert(failure);
    }

    /// Whether those that were begun before are to be complete before it begins.
    pub(super) fn is_fenced(&self) -> bool {
        self.pending.flags.contains(SendFlags::FENCE)
    }

    pub(super) fn is_over(&self, taken: u64) -> bool {
        let is_told = self.message.is_none() && self.told.is_none_or(|number| number < taken);
        self.acknowledged == self.sent && (self.failed.is_some() || (self.sent == self.len && is_told))
    }
}

/// A fragment in one of this side's blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) operation: OperationId,
    /// Which bytes of the transfer.
    pub(super) at: u64,
    pub(super) len: u64,
}
