//! Put and get of scattered data: the specification's VIS, vectors, indexed blocks and strided arrays.
//!
//! All forms are [`Runs`], pieces that lie together on both sides: [`Lists`] of pieces, or [`Strided`] arrays. Before a byte moves all of them
//! are measured: a sum that is more than an address counts, or a place outside the peer's memory, is an error of the call.
//!
//! To a mapped peer the runs are copied. To another one long runs go one by one, as puts and gets of one set; short ones go packed into
//! messages, several together, and the peer's processor puts them to their places or gets them from there.
//!
//! # Invariants
//! - scattered.1: the runs here stay mapped, are not written during a put and not used otherwise during a get, until the transfer completes: a
//!   blocking call does not return before; a non-blocking one passes the obligation to its caller, or keeps the buffer in the operation.

mod completion;
mod description;
mod lists;
mod packed;
mod runs;
mod strided;
#[cfg(test)]
mod tests;

pub use completion::complete;
pub use lists::{Blocks, Lists, Side};
pub use runs::{Base, Measure, Run, Runs, Way};
pub use strided::{Dimension, Strided};

use crate::Error;
use crate::event::{self, Event, Kept};
use crate::implicit::Implicit;
use crate::rma::{self, Options};
use gasworks_core::{CoreMode, Engine, Handlers, View};
use gasworks_memory::{Access, Rights};
use gasworks_sync::racy;

/// Enters the handlers for what other ranks put and get.
///
/// # Errors
/// An index is taken.
pub fn register<M: CoreMode>(handlers: &Handlers<M>) -> Result<(), gasworks_core::Error> {
    packed::register(handlers)?;
    completion::register(handlers)
}

/// Runs to a peer that is not mapped go packed if they are shorter than this on average: about as many bytes are copied twice while a post is made.
const PACKED_BELOW: u64 = 2048;

/// Whether a transfer to a peer that is not mapped goes packed.
fn is_packed(all: &Measure) -> bool {
    all.bytes / all.runs < PACKED_BELOW
}

/// The other side of a transfer: a member of a view.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The view.
    pub view: View<'a>,
    /// Which member of it.
    pub member: u32,
}

impl Peer<'_> {
    /// What went wrong with a call to it.
    #[cold]
    fn explain(self, error: gasworks_core::Error) -> Error {
        self.view.explain(self.member, error).into()
    }
}

/// Puts or gets, and returns when all is done.
///
/// # Safety
/// scattered.1, for the runs here.
///
/// # Errors
/// The rank or a place is wrong, the two sides do not have as many bytes, or the network failed; if `immediate`, also [`Error::is_busy`].
#[inline]
pub unsafe fn transfer<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
    immediate: bool,
) -> Result<(), Error> {
    // SAFETY: scattered.1: the caller promises the runs here while the call lasts.
    let Some(all) = (unsafe { copied(engine, peer, way, runs) })? else { return Ok(()) };
    let set = Implicit::new();
    // SAFETY: scattered.1: the caller promises the runs here while the call lasts, which waits below until all is over.
    let started = unsafe {
        start_far(engine, peer, way, (runs, &all), &set, Options { immediate, ..Options::default() })
    };
    let finished = set.finish(engine);
    started.and(finished)
}

/// Starts a transfer with an event. `keep` lives until it is done. The leaf for the sources of a put is asked of the event.
///
/// # Safety
/// scattered.1, for the runs here, until the event is done; if the local completion of a put is asked for apart, until the leaf is.
///
/// # Errors
/// Those of [`transfer`]; nothing is under way then.
pub unsafe fn transfer_nb<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
    keep: Option<Box<M::Keep>>,
    options: Options,
) -> Result<(Event, Kept<M>), Error> {
    // SAFETY: scattered.1: the caller promises the runs here for longer than this call.
    let Some(all) = (unsafe { copied(engine, peer, way, runs) })? else { return Ok((Event::DONE, keep)) };
    let id = match keep {
        Some(keep) => engine.open_set_keeping(keep),
        None => engine.open_set(),
    };
    let (set, event) = (Implicit::within(id), Event(Some(id)));
    // SAFETY: scattered.1: the caller promises the runs here until the event is done, or the set keeps them.
    match unsafe { start_far(engine, peer, way, (runs, &all), &set, options) } {
        Ok(()) => Ok((event, None)),
        Err(error) => {
            // Some of it may be under way.
            let _ = event::finish_borrowed(engine, &event);
            Err(error)
        }
    }
}

/// Starts a transfer in a set.
///
/// # Safety
/// scattered.1, for the runs here, until the set is done, or those of its categories that the transfer counts as.
///
/// # Errors
/// Those of [`transfer`]; unless it is busy, some of it may be part of the set.
pub unsafe fn transfer_nbi<M: CoreMode>(
    engine: &Engine<M>,
    set: &Implicit,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
    options: Options,
) -> Result<(), Error> {
    // SAFETY: scattered.1: the caller promises the runs here for longer than this call.
    match unsafe { copied(engine, peer, way, runs) }? {
        None => Ok(()),
        // SAFETY: scattered.1: the caller promises the runs here until the set is done.
        Some(all) => unsafe { start_far(engine, peer, way, (runs, &all), set, options) },
    }
}

/// Measures a transfer, and does it if load and store reach the peer. What is left to be done, if anything.
///
/// # Safety
/// scattered.1, for the runs here, while the call lasts.
#[inline]
unsafe fn copied<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
) -> Result<Option<Measure>, Error> {
    let Some(all) = runs.measure()? else {
        let rank = peer.view.rank_of(peer.member)?;
        engine.peers().reach(rank, 0, 0, Rights::empty()).map_err(|cause| wrong(peer, way, cause))?;
        return Ok(None);
    };
    let Some(there) = peer.view.at(peer.member, all.low).open(all.extent) else {
        // SAFETY: scattered.1: the caller promises the runs here while the call lasts.
        let is_done = unsafe { look_closer(engine, peer, way, runs, &all) }?;
        return Ok(if is_done { None } else { Some(all) });
    };
    // SAFETY: the caller promises the runs here; `there` is the memory that they go to or come from.
    unsafe { runs.copy(way, Base::new(there, all.low)) };
    racy::all_copied_in();
    Ok(None)
}

/// What is not open to a plain copy may be reached all the same, as in a job that is observed or with a segment that has grown; or be wrong.
///
/// # Safety
/// scattered.1, for the runs here, while the call lasts.
#[cold]
#[inline(never)]
unsafe fn look_closer<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
    all: &Measure,
) -> Result<bool, Error> {
    let place = peer.view.at(peer.member, all.low);
    let (rank, offset) = place.of_rank()?;
    let (rights, access) = match way {
        Way::Put => (Rights::WRITE, Access::Put),
        Way::Get => (Rights::READ, Access::Get),
    };
    let reached = engine.peers().reach(rank, offset, all.extent, rights);
    let reached = reached.map_err(|cause| wrong(peer, way, cause))?;
    let mut copy = || {
        if let Some(there) = reached {
            // SAFETY: the caller promises the runs here; `there` is the memory that they go to or come from.
            unsafe { runs.copy(way, Base::new(there, all.low)) };
            racy::all_copied_in();
        }
    };
    match engine.peers().watch() {
        // Runs that go one by one are noted one by one.
        Some(_) if reached.is_none() && !is_packed(all) => {}
        Some(watch) => watch.accesses(access, rank, all.bytes as usize, &mut copy),
        None => copy(),
    }
    if reached.is_some() {
        place.reached(rank);
    }
    Ok(reached.is_some())
}

#[cold]
fn wrong(peer: Peer<'_>, way: Way, cause: gasworks_memory::MemoryError) -> Error {
    let during = if way == Way::Put { "put of scattered data" } else { "get of scattered data" };
    peer.explain(gasworks_core::Error::Memory { during, cause })
}

/// Starts what no copy does, in a set.
///
/// # Safety
/// scattered.1, for the runs here, until all that was started is over.
#[cold]
#[inline(never)]
unsafe fn start_far<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    (runs, all): (&impl Runs, &Measure),
    set: &Implicit,
    mut options: Options,
) -> Result<(), Error> {
    if is_packed(all) {
        // SAFETY: scattered.1: the caller promises the runs here until all that was started is over.
        return unsafe { packed::start(engine, peer, way, runs, set, options.immediate) };
    }
    for Run { local, remote, len } in runs.runs() {
        let place = peer.view.at(peer.member, remote);
        // SAFETY: scattered.1: the caller promises the run here until what was started is over.
        unsafe {
            match way {
                Way::Put => rma::put_nbi(engine, set, place, local, len, None, options),
                Way::Get => rma::get_nbi(engine, set, place, local, len, options.immediate),
            }
        }?;
        // Something is under way: the rest is waited for.
        options.immediate = false;
    }
    Ok(())
}
