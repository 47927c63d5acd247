//! What a launcher's protocol offers to a rank: the port that [`Launched`](crate::Launched) is built on.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::BootstrapError;

/// A launcher's protocol, as far as a rank needs it. Keys are those of the whole job: they name their rank.
pub(crate) trait Store: Debug + Send {
    /// Makes `text` known: at most [`PIECE`](crate::value::PIECE) characters that every launcher passes on.
    fn put(&mut self, key: &str, text: &str) -> Result<(), BootstrapError>;
    /// Collective: what was put before is visible after. Waits no longer than `limit`, where there is one.
    fn fence(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError>;
    /// Collective: returns when every rank has called it.
    fn barrier(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
        self.fence(limit)
    }
    /// What `rank` has put under `key` before the last fence. Never asked for a key that may be absent.
    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootstrapError>;
    /// Collective: everybody's bytes in rank order, where the launcher has that as an operation of its own. Waits as
    /// [`fence`](Self::fence) does.
    fn all_gather(
        &mut self,
        _mine: &[u8],
        _limit: Option<Duration>,
    ) -> Option<Result<Vec<Vec<u8>>, BootstrapError>> {
        None
    }
    /// Collective: where ranks run as the launcher sees it, a number for the host of each. `None` if it says nothing.
    fn host_hint(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        Ok(None)
    }
    /// Leaves the job in good order.
    fn finalize(&mut self) -> Result<(), BootstrapError>;
}

/// What can be said to a launcher although a conversation is under way: the process ends, and nobody misses an answer.
pub(crate) trait LastWords: Debug + Send + Sync {
    /// Whether an order to abort makes its code that of the job. Where it does not, the code of the process does.
    fn abort_keeps_code(&self) -> bool;
    /// Orders the end of all ranks.
    fn abort(&self, code: i32, message: &str);
    /// Tells a launcher of ours whose code the job's will be, and whether the other ranks hear of it from this one.
    fn announce_exit(&self, _code: u8, _told: bool) {}
    /// Breaks off a conversation under way: what waits in it waits for the end of the process instead.
    fn interrupt(&self) {}
    /// Tells the launcher that this rank ends in good order, and waits until it has heard, or until `deadline`.
    fn finalize(&self, deadline: Instant);
}

/// Who a rank is.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The name of the job, as the launcher has it.
    pub(crate) job: String,
    /// The launcher is one of ours, and knows words that others do not.
    pub(crate) ours: bool,
}

impl Identity {
    /// Checks what a launcher has said. `told` is what its settings said before, where they did.
    pub(crate) fn check(
        rank: i64,
        size: i64,
        told: (Option<u32>, Option<u32>),
    ) -> Result<(u32, u32), BootstrapError> {
        let (told_rank, told_size) = (told.0.map_or(rank, i64::from), told.1.map_or(size, i64::from));
        let sound = (1..=i64::from(i32::MAX)).contains(&size) && (0..size).contains(&rank);
        match (u32::try_from(rank), u32::try_from(size)) {
            (Ok(rank), Ok(size)) if sound && told == (told.0.and(Some(rank)), told.1.and(Some(size))) => {
                Ok((rank, size))
            }
            _ => {
                let why = match sound {
                    true => format!("its settings said rank {told_rank} of {told_size}"),
                    false => "and no job has such a rank".to_owned(),
                };
                let what = format!("the launcher says rank {rank} of {size}, {why}");
                Err(BootstrapError::protocol("join the job", what))
            }
        }
    }
}

/// What joining a job gives.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) identity: Identity,
    pub(crate) store: Box<dyn Store>,
    pub(crate) words: Box<dyn LastWords>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_below_the_size_and_a_size_fits_a_c_int() {
        const MAX: i64 = i32::MAX as i64;
        for (rank, size) in [(0, 1), (1, 2), (0, MAX), (MAX - 1, MAX)] {
            let checked = Identity::check(rank, size, (None, None)).expect("a rank");
            assert_eq!((i64::from(checked.0), i64::from(checked.1)), (rank, size));
        }
        for (rank, size) in [(0, 0), (1, 1), (-1, 1), (0, -1), (0, MAX + 1), (MAX, MAX)] {
            let error = Identity::check(rank, size, (None, None)).expect_err("no rank").to_string();
            let wanted =
                format!("join the job: the launcher says rank {rank} of {size}, and no job has such a rank");
            assert_eq!(error, wanted);
        }
    }

    #[test]
    fn what_was_told_before_must_agree() {
        for told in [(None, None), (Some(1), None), (None, Some(3)), (Some(1), Some(3))] {
            assert_eq!(Identity::check(1, 3, told).ok(), Some((1, 3)));
        }
        for (told, wanted) in [
            ((Some(0), None), "its settings said rank 0 of 3"),
            ((None, Some(2)), "its settings said rank 1 of 2"),
            ((Some(0), Some(3)), "its settings said rank 0 of 3"),
            ((Some(1), Some(4)), "its settings said rank 1 of 4"),
        ] {
            let error = Identity::check(1, 3, told).expect_err("they differ").to_string();
            assert!(error.ends_with(wanted), "{error} should say {wanted}");
        }
    }
}
