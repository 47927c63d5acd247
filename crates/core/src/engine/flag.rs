//! Flags: what a call that waits for one transfer waits for, in the place of an entry in the table of operations. There are some, from a pool;
//! the transfer's token is the flag's number.

use crate::CoreMode;
use gasworks_rdma::NicError;
use gasworks_rdma::pool::Pool;
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicU32, Ordering};

/// How many calls may wait so at once: threads of a rank. Further ones wait for a flag first.
const MOST: u32 = 64;
/// The bit of a flag's token, which no operation's number has.
const MARK: u64 = 1 << 63;
const DOWN: u32 = 0;
const DONE: u32 = 1;
const FAILED: u32 = 2;

struct Flag<M: CoreMode> {
    state: AtomicU32,
    failure: M::Lock<Option<NicError>>,
}

/// All flags of a rank.
pub(super) struct Flags<M: CoreMode> {
    free: Pool,
    all: Box<[Flag<M>]>,
}

impl<M: CoreMode> Flags<M> {
    pub fn new() -> Self {
        let flag = |_| Flag { state: AtomicU32::new(DOWN), failure: Lock::new(None) };
        Self { free: Pool::new(MOST), all: (0..MOST).map(flag).collect() }
    }

    /// A flag that is down, if one is free: the token that names it to one transfer.
    pub fn take(&self) -> Option<u64> {
        let number = self.free.take()?;
        // Relaxed: whoever raises it is given it later.
        self.all[number as usize].state.store(DOWN, Ordering::Relaxed);
        Some(MARK | u64::from(number))
    }

    /// It was raised, or its transfer was never started.
    pub fn give(&self, token: u64) {
        self.free.give((token & !MARK) as u32);
    }

    fn named(&self, token: u64) -> Option<&Flag<M>> {
        self.all.get((token & !MARK) as usize).filter(|_| token & MARK != 0)
    }

    /// How the transfer ended, once it has.
    pub fn ended(&self, token: u64) -> Option<Result<(), NicError>> {
        let flag = self.named(token)?;
        // Acquire: what the transfer brought can be seen.
        match flag.state.load(Ordering::Acquire) {
            DOWN => None,
            FAILED => Some(flag.failure.with(|failure| failure.take()).map_or(Ok(()), Err)),
            _ => Some(Ok(())),
        }
    }

    /// Raises the flag that a token names; whether it names one.
    pub fn raise(&self, token: u64, result: Result<(), NicError>) -> bool {
        let Some(flag) = self.named(token) else { return false };
        let state = match result {
            Ok(()) => DONE,
            Err(error) => {
                flag.failure.with(|failure| *failure = Some(error));
                FAILED
            }
        };
        // Release: whoever sees the flag sees what the transfer brought.
        flag.state.store(state, Ordering::Release);
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
        let flags = Flags::<Par>::new();
        for result in [Ok(()), Err(NicError::BadKey { peer: 3 }), Ok(())] {
            let (token, other) = (flags.take().expect("one is free"), flags.take().expect("another, too"));
            assert_eq!((flags.ended(token), OpId::from_bits(token)), (None, None));
            assert!(std::thread::scope(|s| s.spawn(|| flags.raise(token, result)).join().unwrap_or(false)));
            assert_eq!((flags.ended(token), flags.ended(other)), (Some(result), None));
            flags.give(other);
            flags.give(token);
        }
        assert!(!flags.raise(0, Ok(())) && !flags.raise(!MARK, Ok(())) && !flags.raise(u64::MAX, Ok(())));
    }

    #[test]
    fn there_are_no_more_flags_than_there_are() {
        let flags = Flags::<Par>::new();
        let all: Vec<_> = std::iter::from_fn(|| flags.take()).collect();
        assert_eq!(all.len(), MOST as usize);
        flags.give(all[7]);
        assert_eq!((flags.take(), flags.take()), (Some(all[7]), None));
    }
}
