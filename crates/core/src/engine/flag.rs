//! Flags: what a call that waits for one transfer waits for, in the place of an entry in the table of operations. A flag lies in the call itself,
//! and the transfer's token says where.
//!
//! # Invariants
//! F1. A flag stays where it is until it is raised: the call whose it is waits for that, whatever else goes wrong.
//! F2. A token is given to one transfer, whose end comes once. Whoever raises the flag does not touch it after the store that says so.

use crate::CoreMode;
use gasworks_rdma::NicError;
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use std::ptr;

/// The bit of a flag's token, which no operation's number has.
const MARK: u64 = 1 << 63;
const DOWN: u32 = 0;
const DONE: u32 = 1;
const FAILED: u32 = 2;

/// A flag that is down until a transfer has ended.
#[derive(Debug)]
pub(super) struct Flag<M: CoreMode> {
    state: AtomicU32,
    failure: M::Lock<Option<NicError>>,
}

impl<M: CoreMode> Flag<M> {
    pub fn new() -> Self {
        Self { state: AtomicU32::new(DOWN), failure: Lock::new(None) }
    }

    /// What names it to a transfer.
    pub fn token(&self) -> u64 {
        MARK | ptr::from_ref(self).expose_provenance() as u64
    }

    /// How the transfer ended, once it has.
    pub fn ended(&self) -> Option<Result<(), NicError>> {
        // Acquire: what the transfer brought can be seen.
        match self.state.load(Ordering::Acquire) {
            DOWN => None,
            FAILED => Some(self.failure.with(|failure| failure.take()).map_or(Ok(()), Err)),
            _ => Some(Ok(())),
        }
    }

    /// Raises the flag that a token names; whether it names one.
    ///
    /// # Safety
    /// F1, F2: the token comes from a transfer that ends now, of an engine of this mode.
    pub unsafe fn raise(token: u64, result: Result<(), NicError>) -> bool {
        if token & MARK == 0 {
            return false;
        }
        let flag = ptr::with_exposed_provenance::<Self>((token & !MARK) as usize);
        let state = if let Err(error) = result {
            // SAFETY: F1.
            unsafe { (*flag).failure.with(|failure| *failure = Some(error)) };
            FAILED
        } else {
            DONE
        };
        // SAFETY: F1, F2. Release: whoever sees the flag sees what the transfer brought.
        unsafe { (*flag).state.store(state, Ordering::Release) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::OpId;
    use gasworks_sync::Par;

    #[test]
    fn a_flag_is_raised_by_its_token_alone() {
        for result in [Ok(()), Err(NicError::BadKey { peer: 3 })] {
            let flag = Flag::<Par>::new();
            let token = flag.token();
            assert_eq!((flag.ended(), OpId::from_bits(token)), (None, None));
            // SAFETY: F1, F2: the flag is here until the thread has ended.
            let raise = move || unsafe { Flag::<Par>::raise(token, result) };
            assert!(std::thread::scope(|scope| scope.spawn(raise).join().unwrap_or(false)));
            assert_eq!(flag.ended(), Some(result));
        }
        // SAFETY: it names none.
        assert!(!unsafe { Flag::<Par>::raise(!MARK, Ok(())) });
    }
}
