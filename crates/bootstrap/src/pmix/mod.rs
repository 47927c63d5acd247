//! PMIx through `libpmix.so`, opened at run time: the launcher is a server on this host that the library speaks to.

mod abi;
#[allow(unsafe_code)]
mod sys;

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::BootstrapError;
use crate::store::{Identity, Joined, LastWords, Store};
use crate::worker::{Worker, aside};
use sys::{Api, Got, Status};

const JOIN: &str = "join the job by PMIx";
/// How long an order to abort may take to reach the launcher.
const ABORTING: Duration = Duration::from_secs(1);

/// A way in by PMIx.
#[derive(Debug)]
pub struct Entry {
    pub(crate) rank: u32,
    /// Hangs up when the launcher vanishes, which the library notices, or when the rank cannot join.
    line: UnixStream,
    /// The other end.
    held: UnixStream,
}

impl Entry {
    /// For the rank that the launcher's variable says.
    pub(crate) fn new(rank: u32) -> Result<Self, BootstrapError> {
        let pair = UnixStream::pair();
        let (line, held) = pair.map_err(|source| BootstrapError::Io { during: JOIN, source })?;
        Ok(Self { rank, line, held })
    }

    pub(crate) fn watched(&self) -> io::Result<OwnedFd> {
        Ok(self.line.try_clone()?.into())
    }
}

/// The job's store of keys and values.
#[derive(Debug)]
struct Pmix {
    api: Api,
    worker: Worker,
    nspace: CString,
    size: u32,
    timeout: Duration,
}

/// Introduces this rank to the launcher.
pub(crate) fn join(entry: Entry, timeout: Duration) -> Result<Joined, BootstrapError> {
    let (api, worker) = (Api::open()?, Worker::start()?);
    let (nspace, rank) = worker
        .call(JOIN, Some(timeout), move || api.init())?
        .map_err(|status| refused(&api, JOIN, "this rank", status))?;
    // The library calls back as long as the process lives.
    let held: &'static UnixStream = Box::leak(Box::new(entry.held));
    worker
        .call(JOIN, Some(timeout), move || api.watch(held))?
        .map_err(|status| refused(&api, JOIN, "to tell of its end", status))?;
    let mut store = Pmix { api, worker: worker.clone(), nspace: nspace.clone(), size: 0, timeout };
    let size = match store.look_up(JOIN, abi::RANK_WILDCARD, abi::JOB_SIZE, Some(timeout))? {
        Got::Number(size) => size,
        other => return Err(BootstrapError::protocol(JOIN, format!("the number of ranks is {other}"))),
    };
    let (rank, size) = Identity::check(rank.into(), size.into(), (None, None))?;
    store.size = size;
    let job = nspace.to_string_lossy().into_owned();
    Ok(Joined {
        identity: Identity { rank, size, job, ours: false },
        store: Box::new(store),
        words: Box::new(Words { api, worker }),
    })
}

fn refused(api: &Api, during: &'static str, what: &str, status: Status) -> BootstrapError {
    BootstrapError::protocol(during, format!("PMIx refuses {what}: {}", api.explain(status)))
}

/// A key as the library sees it: its own begin with `pmix`.
fn own(key: &str) -> CString {
    CString::new(format!("gasworks.{key}")).unwrap_or_default()
}

impl Pmix {
    fn look_up(
        &self,
        during: &'static str,
        rank: u32,
        key: &CStr,
        limit: Option<Duration>,
    ) -> Result<Got, BootstrapError> {
        let (api, nspace, wanted) = (self.api, self.nspace.clone(), key.to_owned());
        // The library keeps its own time, and is expected to be the first to give up.
        let patience = Some(self.timeout + Duration::from_secs(1));
        self.worker.call(during, patience, move || api.get(&nspace, rank, &wanted, limit))?.map_err(
            |status| refused(&self.api, during, &format!("the key {}", key.to_string_lossy()), status),
        )
    }
}

impl Store for Pmix {
    fn put(&mut self, key: &str, text: &str) -> Result<(), BootstrapError> {
        const DURING: &str = "put a value";
        let (api, name) = (self.api, own(key));
        let text = CString::new(text).map_err(|e| BootstrapError::protocol(DURING, e))?;
        let put = self.worker.call(DURING, Some(self.timeout), move || api.put(&name, &text))?;
        put.map_err(|status| refused(&self.api, DURING, &format!("the key {key}"), status))
    }

    fn fence(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
        const DURING: &str = "wait for all ranks";
        let api = self.api;
        self.worker
            .call(DURING, limit, move || api.fence())?
            .map_err(|status| refused(&self.api, DURING, "the fence", status))
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootstrapError> {
        const DURING: &str = "get a value";
        match self.look_up(DURING, rank, &own(key), Some(self.timeout))? {
            Got::Text(text) => Ok(text),
            other => {
                let what = format!("the launcher made {other} of the key {key} of rank {rank}");
                Err(BootstrapError::protocol(DURING, what))
            }
        }
    }

    fn host_hint(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        let host = |rank| match self.look_up("ask where ranks run", rank, abi::NODEID, None) {
            Ok(Got::Number(host)) => Ok(Some(host)),
            // A launcher need not know.
            Ok(_) | Err(BootstrapError::Protocol { .. }) => Ok(None),
            Err(e) => Err(e),
        };
        (0..self.size).map(host).collect()
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        const DURING: &str = "end in good order";
        let api = self.api;
        self.worker
            .call(DURING, Some(self.timeout), move || api.finalize())?
            .map_err(|status| refused(&self.api, DURING, "the end", status))
    }
}

#[derive(Debug)]
struct Words {
    api: Api,
    worker: Worker,
}

impl LastWords for Words {
    fn abort_keeps_code(&self) -> bool {
        true
    }

    fn abort(&self, code: i32, message: &str) {
        let (api, message) = (self.api, CString::new(message).unwrap_or_default());
        aside(ABORTING, move || api.abort(code, &message));
    }

    fn interrupt(&self) {
        self.worker.interrupt();
    }

    fn finalize(&self, deadline: Instant) {
        let api = self.api;
        aside(deadline.saturating_duration_since(Instant::now()), move || {
            // There is nobody to tell.
            let _ = api.finalize();
        });
    }
}
