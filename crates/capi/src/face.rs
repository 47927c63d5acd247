//! A job as C sees it.
//!
//! # Invariants
//! As in the crate.

use crate::layout::{Endpoint, Entry, PAIRS, RankInfo, Segment, Team};
use crate::meeting::Meeting;
use crate::place::Before;
use gasworks::{Agent, Job, Par, ParSync, Seq, ThreadMode};
use gasworks_core::{CoreMode, Engine, Error, Incoming};
use gasworks_extended::{Barrier, Implicit};
use gasworks_memory::{MemoryError, RegionTable};
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::any::Any;
use std::fmt::Display;
use std::sync::OnceLock;

/// A thread mode, with what C makes of it.
pub trait FaceMode: ThreadMode {
    /// What C calls it.
    const MODEL: &'static str;
    /// Whether one thread of the program communicates.
    const IS_SEQ: bool;
    /// What runs a handler, as the table of this mode wants it.
    fn function(
        run: impl Fn(&Incoming<'_, Self>) -> Result<(), Box<Error>> + Send + Sync + 'static,
    ) -> Box<Self::Function>;
    /// Where the job of a library of this mode is kept.
    fn slot() -> &'static Slot<Self>;
}

macro_rules! face_mode {
    ($mode:ident, $name:literal, $is_seq:literal, $slot:ident) => {
        static $slot: Slot<$mode> = Slot::new();

        impl FaceMode for $mode {
            const MODEL: &'static str = $name;
            const IS_SEQ: bool = $is_seq;
            fn function(
                run: impl Fn(&Incoming<'_, Self>) -> Result<(), Box<Error>> + Send + Sync + 'static,
            ) -> Box<<Self as CoreMode>::Function> {
                Box::new(run)
            }
            fn slot() -> &'static Slot<Self> {
                &$slot
            }
        }
    };
}

face_mode!(Seq, "SEQ", true, SEQ);
face_mode!(ParSync, "PARSYNC", false, PARSYNC);
face_mode!(Par, "PAR", false, PAR);

/// Where the one job of a library is, once there is one.
pub struct Slot<M: FaceMode> {
    face: OnceLock<&'static Face<M>>,
}

impl<M: FaceMode> Slot<M> {
    const fn new() -> Self {
        Self { face: OnceLock::new() }
    }

    /// The job, if it has begun.
    #[inline]
    pub fn get(&self) -> Option<&'static Face<M>> {
        self.face.get().copied()
    }

    /// The job, which this call needs.
    #[inline]
    pub fn of(&self, call: &str) -> &'static Face<M> {
        self.get().unwrap_or_else(|| fail(call, "there is no job: gex_Client_Init comes first"))
    }

    /// It has begun: from now on it is there (capi.2).
    pub(crate) fn set(&self, face: Face<M>) {
        let face = self.face.get_or_init(|| Box::leak(Box::new(face)));
        let _ = PEERS.set(face.engine().peers());
    }
}

/// The memory of the job's ranks, for what is said of places there.
static PEERS: OnceLock<&RegionTable> = OnceLock::new();

/// An entry that is shown to C.
pub(crate) struct Shown(pub Entry);

// SAFETY: capi.1: an entry is a copy that nothing changes, and what its pointers lead to is C's: they are only given back to it.
unsafe impl Send for Shown {}
// SAFETY: threads that share an entry can only read it; capi.1: what its pointers lead to is for C's threads to share.
unsafe impl Sync for Shown {}

/// What C sees of a job.
pub struct Face<M: FaceMode> {
    pub(crate) job: Job<M>,
    /// The program is compiled for debugging.
    pub(crate) is_debug: bool,
    /// Files are written to their devices before the end.
    pub(crate) syncs: bool,
    pub(crate) ep: *mut Endpoint,
    pub(crate) team: *mut Team,
    /// Pairs of this rank's endpoint with those of others, by their numbers.
    pub(crate) pairs: *mut Team,
    pub(crate) segment: *mut Segment,
    /// The entries of C's handlers, by index.
    pub(crate) entries: Box<[OnceLock<Shown>; 256]>,
    pub(crate) meeting: Meeting,
    pub(crate) places: gasworks::Places,
    /// The ranks that share memory with this one.
    pub(crate) neighbours: Box<[RankInfo]>,
    /// Those on its host.
    pub(crate) host: Box<[RankInfo]>,
    /// C knows where the segments of others are mapped here, and may use them without asking.
    pub(crate) uses_mapped: AtomicBool,
}

// SAFETY: capi.3: in `Seq` one thread comes to it, in `ParSync` one at a time; in `Par` threads share a `Job`, and the other fields are
// locks, atomics, what never changes, and pointers to what stays (capi.2).
unsafe impl<M: FaceMode> Sync for Face<M> {}

thread_local! {
    /// The implicit operations of this thread.
    static IMPLICIT: Implicit = const { Implicit::new() };
}

impl<M: FaceMode> Face<M> {
    /// What moves messages and bytes.
    #[inline]
    pub(crate) fn engine(&self) -> &Engine<M> {
        self.job.engine()
    }

    /// Has the segments of others that are mapped here be used from now on, as long as they are by now.
    pub(crate) fn show_mapped(&self) {
        let peers = self.engine().peers();
        self.uses_mapped.store(true, Relaxed);
        (0..peers.ranks()).filter(|&rank| peers.reaches(rank)).for_each(|rank| _ = peers.len_of(rank));
    }

    pub(crate) fn barrier(&self) -> &Barrier<M> {
        self.job.barrier()
    }

    /// This thread's agent.
    pub(crate) fn agent(&self, call: &str) -> Agent<'_, M> {
        self.job.agent().unwrap_or_else(|error| fail(call, error))
    }

    /// Does something with the implicit operations of this thread.
    pub(crate) fn implicit<R>(&self, act: impl FnOnce(&Implicit) -> R) -> R {
        IMPLICIT.with(act)
    }

    /// The rank of the job that a team's handle and a rank of it name.
    #[inline]
    pub(crate) fn rank(&self, call: &str, team: *const Team, rank: u32) -> u32 {
        // There is one endpoint, so one pair.
        let is_known = team == self.team || team == self.pairs;
        if !is_known || rank >= self.engine().ranks() {
            self.strange(call, team, rank);
        }
        rank
    }

    #[cold]
    fn strange(&self, call: &str, team: *const Team, rank: u32) -> ! {
        if team.is_null() {
            fail(call, "the team is GEX_TM_INVALID");
        }
        if team != self.team && team != self.pairs {
            let there = team.addr().wrapping_sub(self.pairs.addr()) / size_of::<Team>();
            let what = match there {
                0..PAIRS => format!("a pair with endpoint {there}: each rank has endpoint 0 alone"),
                PAIRS => format!("a pair with an endpoint above {}: there are none", PAIRS - 1),
                _ => format!("{team:p} is no team"),
            };
            fail(call, what);
        }
        fail(call, format!("there is no rank {rank}: the team has {}", self.engine().ranks()))
    }

    /// Where an address of a rank lies in its segment.
    #[inline]
    pub(crate) fn offset(&self, rank: u32, address: *const u8) -> u64 {
        let base = self.engine().peers().base(rank).unwrap_or(0);
        (address.addr() as u64).wrapping_sub(base)
    }

    /// Where a byte of this rank's own segment is.
    pub(crate) fn own(&self, offset: u64) -> *mut u8 {
        self.engine().peers().mapped(self.engine().rank()).as_ptr().wrapping_add(offset as usize)
    }
}

/// Says what was wrong with a call, and ends the job.
#[cold]
pub(crate) fn fail(call: &str, error: impl Display) -> ! {
    gasworks_os::say(&format!("*** FATAL ERROR: {}{call}: {error}", Before(call)));
    gasworks_tools::freeze::gasnett_freezeForDebuggerErr();
    gasworks_tools::backtrace::print_if_enabled(2);
    gasworks::exit(1)
}

/// Makes a panic of any thread of this library the end of its process, and by that of the job. It is a defect of the library, of whose state
/// nothing is known from then on: so the process ends by a signal and not by the exit protocol.
pub(crate) fn end_at_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let (thread, place) = (std::thread::current(), panic.location());
        let place = place.map_or_else(String::new, |place| format!("{}:{}: ", place.file(), place.line()));
        let what = panic.payload_as_str().unwrap_or("it panicked");
        let by = thread.name().map_or_else(String::new, |name| format!("thread {name}: "));
        gasworks_os::say(&format!(
            "*** FATAL ERROR: {}a defect of Gasworks: {by}{place}{what}",
            Before("gex_Client_Init")
        ));
        std::process::abort();
    }));
}

/// What a call gives, if it went well.
#[inline]
pub(crate) fn went<T, E: Display + 'static>(call: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(call, by_address(&error)))
}

/// What is wrong, with the addresses of the segment that a place is outside of: C names places by theirs.
#[cold]
pub(crate) fn by_address<E: Display + 'static>(error: &E) -> String {
    let peer = |rank| PEERS.get().and_then(|peers| Some((peers.base(rank)?, peers.len_of(rank)?)));
    match memory_error(error) {
        Some(&MemoryError::OutsideSegment { rank, offset, .. }) if let Some((base, len)) = peer(rank) => {
            let (place, end) = (base.wrapping_add(offset), base + len);
            format!("{error} (the place is {place:#x}, and the segment from {base:#x} to {end:#x})")
        }
        _ => error.to_string(),
    }
}

/// What an error says of memory.
fn memory_error(error: &dyn Any) -> Option<&MemoryError> {
    use gasworks_core::Error as Core;
    let core =
        error.downcast_ref::<Core>().or_else(|| error.downcast_ref::<Box<Core>>().map(|error| &**error));
    let extended = match error.downcast_ref() {
        Some(gasworks_extended::Error::Core(core)) => Some(core),
        _ => None,
    };
    match core.or(extended) {
        Some(Core::Memory { cause, .. }) => Some(cause),
        _ => None,
    }
}
