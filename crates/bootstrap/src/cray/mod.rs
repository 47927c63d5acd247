//! Cray's PMI through `libpmi2.so` and `libpmi.so`, opened at run time. Where they have no `PMI_Allgather`, as those of
//! Slurm, everything goes through the store of keys and values.
//!
//! The library forks a helper when it is initialized, unless `PMI_NO_FORK` is set. What PMI is used for here needs none, so
//! a rank sets it first ([`prepare`]).

#[allow(unsafe_code)]
mod sys;

use std::ffi::CString;
use std::time::{Duration, Instant};

use crate::settings::NO_FORK;
use crate::store::{Identity, Joined, LastWords, Store};
use crate::value::PIECE;
use crate::worker::Worker;
use crate::{BootstrapError, gather};
use gasworks_os::environ;
use sys::{Api, Status};

const JOIN: &str = "join the job by Cray's PMI";
/// How long an order to abort may take to reach the launcher.
const ABORTING: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Cray {
    api: Api,
    worker: Worker,
    rank: u32,
    size: u32,
    job: CString,
    timeout: Duration,
}

/// Tells the library to fork no helper, as far as the environment may still be written. Where the program has threads
/// already the helper does no harm: it costs a process.
pub(crate) fn prepare() {
    environ::set_default(&NO_FORK);
}

/// Introduces this rank to the launcher.
pub(crate) fn join(timeout: Duration) -> Result<Joined, BootstrapError> {
    let (api, worker) = (Api::open()?, Worker::start()?);
    let (rank, size) = call(&worker, JOIN, Some(timeout), move || api.init())?;
    let (rank, size) = Identity::check(rank.into(), size.into(), (None, None))?;
    let job = call(&worker, "ask for the job's name", Some(timeout), move || api.job())?;
    let name = CString::new(job.as_str()).map_err(|e| BootstrapError::protocol(JOIN, e))?;
    Ok(Joined {
        identity: Identity { rank, size, job, ours: false },
        store: Box::new(Cray { api, worker: worker.clone(), rank, size, job: name, timeout }),
        words: Box::new(Words { api, worker }),
    })
}

fn call<T: Send + 'static>(
    worker: &Worker,
    during: &'static str,
    limit: Option<Duration>,
    what: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, BootstrapError> {
    worker.call(during, limit, what)?.map_err(|Status(code)| {
        BootstrapError::protocol(during, format!("the launcher's library refuses it with the code {code}"))
    })
}

fn c_text(during: &'static str, text: &str) -> Result<CString, BootstrapError> {
    CString::new(text).map_err(|e| BootstrapError::protocol(during, e))
}

impl Store for Cray {
    fn put(&mut self, key: &str, text: &str) -> Result<(), BootstrapError> {
        const DURING: &str = "put a value";
        let (api, key, text) = (self.api, c_text(DURING, key)?, c_text(DURING, text)?);
        call(&self.worker, DURING, Some(self.timeout), move || api.put(&key, &text))
    }

    fn fence(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
        let api = self.api;
        call(&self.worker, "wait for all ranks", limit, move || api.fence())
    }

    fn get(&mut self, _rank: u32, key: &str) -> Result<String, BootstrapError> {
        const DURING: &str = "get a value";
        let (api, job, key) = (self.api, self.job.clone(), c_text(DURING, key)?);
        call(&self.worker, DURING, Some(self.timeout), move || api.get(&job, &key, PIECE))
    }

    fn all_gather(
        &mut self,
        mine: &[u8],
        limit: Option<Duration>,
    ) -> Option<Result<Vec<Vec<u8>>, BootstrapError>> {
        let (api, worker) = (self.api, &self.worker);
        api.can_gather().then(|| {
            gather::in_rank_order((self.rank, self.size), mine, |mine, total| {
                let gather = move || api.gather(mine, total).unwrap_or(Err(Status(-1)));
                call(worker, "gather from all ranks", limit, gather)
            })
        })
    }

    fn host_hint(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        const DURING: &str = "ask where ranks run";
        let (api, size) = (self.api, self.size);
        let (nodes, near) =
            self.worker.call(DURING, Some(self.timeout), move || (api.nodes(size), api.near(size)))?;
        if let Some(nodes) = nodes {
            return Ok(Some(nodes.into_iter().map(|node| node as u32).collect()));
        }
        // Every host is called after its lowest rank. All ranks have the same libraries, so all come here or none.
        let Some(host) = near.and_then(|near| near.into_iter().min()) else { return Ok(None) };
        let Some(hosts) = self.all_gather(&host.to_le_bytes(), Some(self.timeout)) else { return Ok(None) };
        let read = |bytes: Vec<u8>| bytes.try_into().ok().map(u32::from_le_bytes);
        Ok(hosts?.into_iter().map(read).collect())
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        let api = self.api;
        call(&self.worker, "end in good order", Some(self.timeout), move || api.finalize())
    }
}

/// The library need not bear a second thread, so the last words wait for a call under way like any others, and are lost
/// with it if it does not come back.
#[derive(Debug)]
struct Words {
    api: Api,
    worker: Worker,
}

impl LastWords for Words {
    fn abort_keeps_code(&self) -> bool {
        // The order has no place for it.
        false
    }

    fn abort(&self, _code: i32, message: &str) {
        let (api, message) = (self.api, CString::new(message).unwrap_or_default());
        self.worker.last(ABORTING, move || api.abort(&message));
    }

    fn interrupt(&self) {
        self.worker.interrupt();
    }

    fn finalize(&self, deadline: Instant) {
        let (api, left) = (self.api, deadline.saturating_duration_since(Instant::now()));
        self.worker.last(left, move || api.finalize());
    }
}
