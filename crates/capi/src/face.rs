//! A job as C sees it.
//!
//! # Invariants
//! As in the crate.

use crate::known::{Endpoints, Found, Known, Publication, Teams};
use crate::layout::{Client, Endpoint, Entry, PAIRS, RankInfo, ReduceFnEntry, Segment, Team};
use crate::meeting::State;
use crate::place::Before;
use gasworks::{Agent, Job, Par, ParSync, Seq, ThreadMode};
use gasworks_core::{CoreMode, Engine, Error, Incoming, Name};
use gasworks_extended::{Barrier, Implicit};
use gasworks_memory::{MemoryError, RegionId, RegionTable};
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::any::Any;
use std::ffi::c_void;
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
    pub(crate) client: *mut Client,
    /// The first endpoint.
    pub(crate) ep: *mut Endpoint,
    /// The team of all ranks.
    pub(crate) team: *mut Team,
    pub(crate) everyone: Known<M>,
    /// The others.
    pub(crate) teams: M::Lock<Teams<M>>,
    /// Pairs of the first endpoint with those of others, by their numbers.
    pub(crate) pairs: *mut Team,
    pub(crate) endpoints: M::Lock<Endpoints>,
    /// The segment that is attached.
    pub(crate) segment: *mut Segment,
    /// C's own word for the host's kind of memory.
    pub(crate) kind_data: M::Lock<*const c_void>,
    /// The entries of C's handlers, by index.
    pub(crate) entries: Box<[OnceLock<Shown>; 256]>,
    /// The functions of GASNet-1's reductions.
    pub(crate) functions: M::Lock<Vec<ReduceFnEntry>>,
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

    /// The team of a handle; `None` if it is none's.
    pub(crate) fn find(&self, team: *const Team) -> Option<Found<'_, M>> {
        if team == self.team {
            return Some(Found::Everyone(&self.everyone));
        }
        self.teams.with(|teams| teams.by_handle(team).cloned()).map(Found::Other)
    }

    /// The team that a call takes which no pair of endpoints can.
    pub(crate) fn team(&self, call: &str, team: *const Team) -> Found<'_, M> {
        self.find(team).unwrap_or_else(|| self.no_team(call, team))
    }

    /// The team of a number.
    pub(crate) fn numbered(&self, number: usize) -> Option<Found<'_, M>> {
        if number == 0 {
            return Some(Found::Everyone(&self.everyone));
        }
        self.teams.with(|teams| teams.by_number(number).cloned()).map(Found::Other)
    }

    /// The barrier of a team.
    pub(crate) fn barrier_of<'a>(&'a self, known: &'a Known<M>) -> &'a Barrier<M> {
        known.barrier.as_ref().unwrap_or_else(|| self.barrier())
    }

    /// Takes as many steps as can be taken of a team's barriers.
    pub(crate) fn advance(&self, known: &Known<M>, call: &str, state: &mut State) {
        let (barrier, engine) = (self.barrier_of(known), self.engine());
        while state.over < state.asked {
            let phase = match state.phase {
                Some(phase) => phase,
                None if state.named.is_some() => return,
                None => went(call, barrier.begin(engine, Name::Any)),
            };
            state.phase = Some(phase);
            if went(call, barrier.test(engine, phase, Name::Any)).is_none() {
                return;
            }
            (state.phase, state.over) = (None, state.over + 1);
        }
    }

    /// Waits for everyone's barriers that are under way: what all ranks do next has phases of the same one.
    pub(crate) fn settle(&self, call: &str) {
        let known = &self.everyone;
        let are_over = || {
            known.meeting.state.with(|state| {
                if state.named.is_some() {
                    fail(call, "a barrier is under way: gasnet_barrier_wait comes first");
                }
                self.advance(known, call, state);
                state.over == state.asked
            })
        };
        went(call, self.engine().wait_until(are_over));
    }

    /// The number of the endpoint elsewhere that a pair is with; `None`: it is no pair.
    pub(crate) fn pair(&self, team: *const Team) -> Option<usize> {
        self.endpoints.with(|endpoints| endpoints.of_pair(team))
    }

    /// The region in which a rank's endpoint of a number is, if it was published.
    pub(crate) fn region_of(&self, number: usize, rank: u32) -> Option<RegionId> {
        let peers = self.engine().peers();
        let is_there = |id: &RegionId| peers.len_in(*id, rank).is_some_and(|len| len > 0);
        let find = |all: &[Publication]| all.iter().map(|publication| publication.region).find(is_there);
        self.endpoints.with(|endpoints| find(endpoints.published.get(number)?))
    }

    /// The rank of the job to which a message goes that names a team or a pair, and a rank of it.
    #[inline]
    pub(crate) fn rank(&self, call: &str, team: *const Team, rank: u32) -> u32 {
        if (team == self.team || team == self.pairs) && rank < self.engine().ranks() {
            return rank;
        }
        match self.rank_of_other(call, team, rank) {
            (rank, 0) => rank,
            (_, number) => fail(call, format!("a pair with endpoint {number}: it is for puts and gets")),
        }
    }

    /// The rank of the job that a team or a pair and a rank of it name, and the number of the endpoint there.
    pub(crate) fn rank_of_other(&self, call: &str, team: *const Team, rank: u32) -> (u32, usize) {
        match self.teams.with(|teams| teams.rank_of(team, rank)) {
            Some(Ok(rank)) => return (rank, 0),
            Some(Err(size)) => fail(call, format!("there is no rank {rank}: the team has {size}")),
            None => {}
        }
        let number = if team == self.team { Some(0) } else { self.pair(team) };
        match number {
            None => self.no_team(call, team),
            Some(PAIRS) => fail(call, format!("a pair with an endpoint above {}: there are none", PAIRS - 1)),
            Some(_) if rank >= self.engine().ranks() => {
                fail(call, format!("there is no rank {rank}: the team has {}", self.engine().ranks()))
            }
            Some(number) => (rank, number),
        }
    }

    #[cold]
    pub(crate) fn no_team(&self, call: &str, team: *const Team) -> ! {
        match self.pair(team) {
            _ if team.is_null() => fail(call, "the team is GEX_TM_INVALID"),
            Some(_) => fail(call, format!("{team:p} is no team, but a pair of endpoints")),
            None => fail(call, format!("{team:p} is no team")),
        }
    }

    /// The rank of the job, and the place in its memory, that a team or a pair, a rank of it and an address there name.
    #[inline]
    pub(crate) fn place(&self, call: &str, team: *const Team, rank: u32, address: *const u8) -> (u32, u64) {
        if (team == self.team || team == self.pairs) && rank < self.engine().ranks() {
            return (rank, self.offset(rank, address));
        }
        self.place_of_other(call, team, rank, address)
    }

    #[cold]
    fn place_of_other(&self, call: &str, team: *const Team, rank: u32, address: *const u8) -> (u32, u64) {
        let (id, rank, base) = self.origin(call, team, rank);
        let offset = (address.addr() as u64).wrapping_sub(base);
        let place = id.map_or(Some(offset), |id| id.place(offset));
        let outside = || {
            format!("{address:p} is not in the segment of rank {rank}'s endpoint, which begins at {base:#x}")
        };
        (rank, place.unwrap_or_else(|| fail(call, outside())))
    }

    /// What memory a team or a pair and a rank of it name: the region, if it is no segment of a first endpoint; the rank of the job; and the
    /// address there that is offset 0.
    pub(crate) fn origin(&self, call: &str, team: *const Team, rank: u32) -> (Option<RegionId>, u32, u64) {
        let (rank, number) = self.rank_of_other(call, team, rank);
        let peers = self.engine().peers();
        if number == 0 {
            return (None, rank, peers.base(rank).unwrap_or(0));
        }
        let Some(id) = self.region_of(number, rank) else {
            fail(call, format!("a pair with endpoint {number}: that of rank {rank} was not published"))
        };
        (Some(id), rank, id.place(0).map_or(0, |place| peers.address(rank, place)))
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
