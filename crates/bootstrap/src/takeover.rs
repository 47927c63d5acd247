//! A job that was started and is run by something else in this process, as a rule MPI: it is taken over through functions
//! that the program gives.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use gasworks_os::random;

use crate::store::{Identity, Joined, LastWords, Store};
use crate::{BootstrapError, gather};

/// What a program that has started MPI, or something like it, gives to [`connect_with`](crate::connect_with). The
/// functions stay in use as long as the process has jobs, so what they use must not be ended before.
///
/// `all_gather` and `barrier` are called by the thread that calls the job's own collective operations, and by no
/// other. `abort` is called by the thread that calls [`Bootstrap::abort`](crate::Bootstrap::abort). How long they may
/// take is theirs to say: a time-out of ours would leave the others in them.
pub struct Takeover {
    /// This process's rank, below `size`.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// Collective: fills `all` with everybody's `mine` in rank order, as `MPI_Allgather` of bytes does. `mine` has the same
    /// length on all ranks, and `all` that length times `size`.
    pub all_gather: Gather,
    /// Collective: returns when every rank has called it.
    pub barrier: Barrier,
    /// Ends all ranks with this code. It need not return.
    pub abort: Abort,
}

/// An all-gather: `(mine, all)`.
pub type Gather = Box<dyn FnMut(&[u8], &mut [u8]) -> Result<(), String> + Send>;
/// A barrier.
pub type Barrier = Box<dyn FnMut() -> Result<(), String> + Send>;
/// The end of all ranks: `(code, message)`.
pub type Abort = Box<dyn Fn(i32, &str) + Send + Sync>;

impl fmt::Debug for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Takeover {{ rank: {}, size: {} }}", self.rank, self.size)
    }
}

/// The store: every rank keeps everybody's values, since all it has is an all-gather.
struct Taken {
    rank: u32,
    size: u32,
    gather: Gather,
    barrier: Barrier,
    fresh: Vec<(String, String)>,
    known: HashMap<String, String>,
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken {{ rank: {}, size: {}, known: {} }}", self.rank, self.size, self.known.len())
    }
}

/// Takes the job over. Collective. It gets a name that rank 0 draws.
pub(crate) fn join(takeover: Takeover) -> Result<Joined, BootstrapError> {
    let Takeover { rank, size, all_gather, barrier, abort } = takeover;
    let (rank, size) = Identity::check(rank.into(), size.into(), (None, None))?;
    let (fresh, known) = (Vec::new(), HashMap::new());
    let mut store = Taken { rank, size, gather: all_gather, barrier, fresh, known };
    let names = store.gather(random::hex(&random::nonce()?).as_bytes())?;
    let name = names.first().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
    Ok(Joined {
        identity: Identity { rank, size, job: format!("taken-{name}"), ours: false },
        store: Box::new(store),
        words: Box::new(Words(abort)),
    })
}

impl Taken {
    fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let call = &mut self.gather;
        gather::in_rank_order((self.rank, self.size), mine, |mine, total| {
            let mut all = vec![0; total];
            let done = call(&mine, &mut all);
            done.map(|()| all).map_err(|e| BootstrapError::protocol("gather from all ranks", e))
        })
    }
}

impl Store for Taken {
    fn put(&mut self, key: &str, text: &str) -> Result<(), BootstrapError> {
        self.fresh.push((key.to_owned(), text.to_owned()));
        Ok(())
    }

    /// Passes on what was put since the last fence: neither keys nor values hold the characters that separate them.
    fn fence(&mut self, _limit: Option<Duration>) -> Result<(), BootstrapError> {
        let mine: Vec<String> = self.fresh.drain(..).map(|(key, text)| format!("{key}={text}")).collect();
        for theirs in self.gather(mine.join("\n").as_bytes())? {
            let pairs = String::from_utf8_lossy(&theirs);
            let pairs = pairs.lines().filter_map(|line| line.split_once('='));
            self.known.extend(pairs.map(|(key, text)| (key.to_owned(), text.to_owned())));
        }
        Ok(())
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootstrapError> {
        self.known.get(key).cloned().ok_or_else(|| {
            BootstrapError::protocol("get a value", format!("rank {rank} has not put the key {key}"))
        })
    }

    fn barrier(&mut self, _limit: Option<Duration>) -> Result<(), BootstrapError> {
        (self.barrier)().map_err(|e| BootstrapError::protocol("wait for all ranks", e))
    }

    fn all_gather(
        &mut self,
        mine: &[u8],
        _limit: Option<Duration>,
    ) -> Option<Result<Vec<Vec<u8>>, BootstrapError>> {
        Some(self.gather(mine))
    }

    /// The program ends what it has started.
    fn finalize(&mut self) -> Result<(), BootstrapError> {
        Ok(())
    }
}

struct Words(Abort);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Words")
    }
}

impl LastWords for Words {
    fn abort_keeps_code(&self) -> bool {
        true
    }

    fn abort(&self, code: i32, message: &str) {
        (self.0)(code, message);
    }

    fn finalize(&self, _deadline: Instant) {}
}
