//! A job: its ranks, its transports, its segments, its end.

use crate::inspect::Inspector;
use crate::observe::Observation;
use crate::progress::ProgressThread;
use crate::{
    Agent, Config, Error, GlobalPtr, Networks, Places, Segment, Table, Team, ThreadMode, Transport, settings,
};
use bytemuck::Pod;
use gasworks_bootstrap::Bootstrap;
use gasworks_core::{self, Engine, Flow, Incoming, Name, WaitMode, flow, handlers::first_difference};
use gasworks_extended::Barrier;
use gasworks_extended::barrier::Way;
use gasworks_extended::barrier::messages::Messages;
use gasworks_extended::collective::matching::Matching;
use gasworks_extended::team::Teams;
use gasworks_sync::{Lock, Mode, Par, kill_point};
use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;

/// This process's part in a job.
///
/// In `Par` it is shared between threads. In `Seq` and `ParSync` it is not:
///
/// ```compile_fail,E0277
/// fn share(job: &gasworks::Job<gasworks::Seq>) {
///     std::thread::scope(|scope| _ = scope.spawn(|| job.rank()));
/// }
/// ```
/// ```compile_fail,E0277
/// fn share(job: &gasworks::Job<gasworks::ParSync>) {
///     std::thread::scope(|scope| _ = scope.spawn(|| job.rank()));
/// }
/// ```
/// ```
/// fn share(job: &gasworks::Job<gasworks::Par>) {
///     std::thread::scope(|scope| _ = scope.spawn(|| job.rank()));
/// }
/// fn take_turns(job: gasworks::Job<gasworks::ParSync>) {
///     std::thread::spawn(move || job.rank());
/// }
/// ```
pub struct Job<M: ThreadMode> {
    /// In `Seq` a job stays on its thread.
    mode: PhantomData<M::Lock<()>>,
    /// It looks at the engine, and so goes before it.
    _inspector: Option<Inspector>,
    /// Before the engine, whose table frees what ranks gave to regions: the transport's own may be the last that holds its network.
    barrier: Barrier<M>,
    engine: M::Shared<Engine<M>>,
    teams: Arc<Teams>,
    everyone: Arc<gasworks_extended::team::Team>,
    bootstrap: <Par as Mode>::Lock<Box<dyn Bootstrap + Send>>,
    allocated: <Par as Mode>::Lock<u64>,
    /// How many ranks of a host share memory at most.
    together: u32,
    progress: <Par as Mode>::Lock<Option<ProgressThread>>,
    _observation: Option<Observation<M>>,
    /// What a message about a fault calls this process.
    _name: gasworks_os::jobs::Guard,
}

impl<M: ThreadMode> Job<M> {
    /// Joins the job that this process was started in (by `gasrun` or any PMI-2 launcher; alone, it is a job of one
    /// rank). Collective: returns when every rank has joined.
    ///
    /// # Errors
    /// A setting is wrong, the launcher or another rank fails, memory is short, or the handler tables differ: the
    /// error says which.
    pub fn open(config: Config, table: Table<M>) -> Result<Self, Error> {
        Self::open_by(gasworks_bootstrap::connect()?, config, table)
    }

    /// As [`open`](Self::open), by a bootstrap of the caller's. Collective.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_by(
        bootstrap: Box<dyn Bootstrap + Send>,
        config: Config,
        table: Table<M>,
    ) -> Result<Self, Error> {
        Self::open_among(&M::networks(), bootstrap, config, table)
    }

    /// As [`open_by`](Self::open_by), over the one of these networks that the configuration names. Collective.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_among(
        networks: &Networks<M>,
        bootstrap: Box<dyn Bootstrap + Send>,
        config: Config,
        table: Table<M>,
    ) -> Result<Self, Error> {
        gasworks_os::ending::may_return(config.may_return);
        let network = networks.find(&config.network)?;
        let (rank, ranks) = (bootstrap.rank(), bootstrap.size());
        let name = gasworks_os::jobs::enter(&format!("rank {rank}"));
        if rank == 0 && settings::verbose() {
            // A report that nobody can read is no reason to fail.
            let _ =
                write!(std::io::stderr(), "gasworks: settings of rank 0 of {ranks}\n{}", settings::report());
        }
        if rank == 0 {
            settings::unknown().iter().for_each(|line| gasworks_os::say(line));
        }
        let handlers = table.handlers;
        let cores = greet(&*bootstrap, &handlers.describe(), handlers.fingerprint())?;
        let (patience, process_vm) = (flow::patience(ranks as usize, cores)?, flow::process_vm()?);
        kill_point!("job.open.greeted");
        let Transport { wires, route, peers, rdma, barrier, teams, witness, together } =
            network.open(&*bootstrap, &config)?;
        let observation = Observation::start(rank, ranks, &handlers)?;
        let observer = observation.as_ref().map(|observation| observation.observer.clone());
        kill_point!("job.open.transport");
        let astray = route.iter().any(|&wire| usize::from(wire) >= wires.len());
        if peers.ranks() != ranks || route.len() != ranks as usize || astray {
            return Err(Error::Transport {
                ranks,
                peers: peers.ranks(),
                routes: route.len(),
                wires: wires.len(),
            });
        }
        gasworks_core::engine::by_message::register(&handlers)?;
        gasworks_extended::atomic::register(&handlers)?;
        gasworks_extended::scattered::register(&handlers)?;
        let peers = match &observation {
            Some(observation) => observation.watch(peers),
            None => peers,
        };
        let step = |state: &Messages, step: &Incoming<'_, M>| {
            state.hear(step.args());
            Ok(())
        };
        let way = Way::choose(rank, ranks, barrier, &handlers, |state| M::hear(state, step))?;
        let shared = teams.filter(|_| matches!(way, Way::Shared(_)));
        let places = places(&*bootstrap, together)?;
        let hear = |state| M::hear(state, Matching::hear);
        let teams = Teams::register(ranks, shared, places.neighbourhoods(), &handlers, hear)?;
        let witness = way.witness().or(witness);
        let way = way.observed(observer.clone());
        let parts = gasworks_core::Parts {
            rank,
            wires,
            route,
            peers,
            rdma,
            patience,
            process_vm,
            handlers,
            observer,
        };
        let everyone = Arc::new(teams.everyone(rank, ranks));
        let engine = M::share(Engine::new(parts));
        // SAFETY: inspect.1: the inspector is declared after the engine here and before it in the job, so it is dropped before it.
        let inspector = unsafe { Inspector::start::<M>(&engine, witness, bootstrap.job())? };
        // What the ranks have told each other is not needed any more, and is more than what is kept of it.
        gasworks_os::memory_use::trim();
        bootstrap.fence()?;
        bootstrap.started();
        kill_point!("job.open.fenced");
        let bootstrap = Lock::new(bootstrap);
        let progress = if settings::progress_thread()? { Some(M::spawn_progress(&engine)?) } else { None };
        Ok(Self {
            mode: PhantomData,
            _inspector: inspector,
            engine,
            barrier: Barrier::new(way),
            teams,
            everyone,
            bootstrap,
            allocated: Lock::new(0),
            together,
            progress: Lock::new(progress),
            _observation: observation,
            _name: name,
        })
    }

    /// This thread's agent: what every call that communicates is made on.
    ///
    /// # Errors
    /// A handler runs on this thread.
    pub fn agent(&self) -> Result<Agent<'_, M>, Error> {
        if Engine::<M>::in_handler() {
            return Err(gasworks_core::Error::InHandler("an agent").into());
        }
        Ok(Agent::new(&self.engine, &self.barrier))
    }

    /// The team of all ranks, of which others are made.
    pub fn everyone(&self) -> Team<'_, M> {
        Team::everyone(&self.engine, &self.barrier, &self.teams, &self.everyone)
    }

    /// The engine below: for faces of the library in other languages, whose calls are made on no agent. What is forbidden in handlers and with
    /// locks held, whoever calls it sees to.
    pub fn engine(&self) -> &Engine<M> {
        &self.engine
    }

    /// The barrier below, as [`engine`](Self::engine).
    pub fn barrier(&self) -> &Barrier<M> {
        &self.barrier
    }

    /// What makes teams and runs their collectives, and the team of all ranks, as [`engine`](Self::engine).
    pub fn teams(&self) -> (&Arc<Teams>, &Arc<gasworks_extended::team::Team>) {
        (&self.teams, &self.everyone)
    }

    /// The handler table, for registering more. Registration is local: it waits for nobody.
    pub fn table(&self) -> Table<M> {
        Table::of(self.engine.handlers().clone())
    }

    /// Starts a thread that serves the other ranks while this one computes, until what is returned is dropped. Handlers
    /// may then run on that thread. `GASWORKS_PROGRESS_THREAD=1` starts one with the job.
    ///
    /// # Errors
    /// The job is not in `Par` mode, or the system starts no thread.
    pub fn progress_thread(&self) -> Result<ProgressThread, Error> {
        M::spawn_progress(&self.engine)
    }

    /// Whether `GASWORKS_PROGRESS_THREAD` started such a thread with the job: handlers may run and credits come back at any time,
    /// then.
    pub fn has_progress_thread(&self) -> bool {
        self.progress.with(|progress| progress.is_some())
    }

    /// How this rank waits.
    pub fn wait_mode(&self) -> WaitMode {
        self.engine.wait_mode()
    }

    /// How this rank waits from now on.
    pub fn set_wait_mode(&self, mode: WaitMode) {
        self.engine.set_wait_mode(mode);
    }

    /// How much may be under way to rank `to`, and to all that the same transport reaches, before a sender polls.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn flow(&self, to: u32) -> Result<Flow, Error> {
        Ok(self.engine.flow(to)?)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.engine.rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.engine.ranks()
    }

    /// Where the ranks are.
    ///
    /// # Errors
    /// The launcher failed when it was asked.
    pub fn places(&self) -> Result<Places, Error> {
        self.bootstrap.with(|bootstrap| places(&**bootstrap, self.together))
    }

    /// This rank's segment.
    pub fn segment(&self) -> Segment {
        let rank = self.rank();
        Segment { rank, len: self.engine.peers().len_of(rank).unwrap_or(0) }
    }

    /// Makes this rank's segment at least `len` bytes long, in place: nothing moves, and the new bytes are zero. Local: no
    /// other rank takes part. A peer may use the new bytes as soon as it hears of them by any message. Returns the length
    /// that the segment has then.
    ///
    /// # Errors
    /// The segment has no room to grow so far ([`Config::segment_max`]), or a limit or the lack of memory is in the way;
    /// it keeps its length.
    pub fn grow(&self, len: u64) -> Result<u64, Error> {
        let grown = self.engine.peers().grow(len);
        grown.map_err(|cause| gasworks_core::Error::Memory { during: "grow a segment", cause }.into())
    }

    /// Gives this rank's segment a length of `len` bytes or more, and tells everybody of it, for a job that was opened with
    /// [`Config::segment_later`]. Collective, and once; the lengths may differ. When it returns, all ranks have done so, and
    /// each may use the segments of all. Returns the length that this rank's has.
    ///
    /// # Errors
    /// There is no such room, a limit or the lack of memory is in the way, or the network does not take the memory.
    pub fn attach(&self, len: u64) -> Result<u64, Error> {
        let card = self.engine.attach_segment(len)?;
        // Who waits for the launcher handles no messages, so nobody does before all are here.
        self.meet()?;
        kill_point!("job.attach.met");
        if self.engine.has_network() {
            let cards = self.bootstrap.with(|bootstrap| bootstrap.exchange("gasworks.segments", &card))?;
            self.engine.meet_segments(cards.iter())?;
        }
        Ok(self.engine.peers().len_of(self.rank()).unwrap_or(0))
    }

    /// A barrier of all ranks.
    pub(crate) fn meet(&self) -> Result<(), Error> {
        let phase = self.barrier.begin(&self.engine, Name::Any)?;
        self.barrier.wait(&self.engine, phase, Name::Any).map(drop).map_err(Error::from)
    }

    /// What this rank's segment has room to grow to, in bytes.
    pub fn segment_max(&self) -> u64 {
        self.engine.peers().room()
    }

    /// The largest segment that this rank could have asked for when the job started, in bytes: what the limits and the
    /// machine left, in equal parts. The specification's `gasnet_getMaxLocalSegmentSize`.
    pub fn max_local_segment(&self) -> u64 {
        self.engine.peers().largest().map_or(self.segment().len(), |largest| largest.local)
    }

    /// The largest segment that all ranks could have asked for, in bytes. The specification's
    /// `gasnet_getMaxGlobalSegmentSize`.
    pub fn max_global_segment(&self) -> u64 {
        self.engine.peers().largest().map_or(self.segment().len(), |largest| largest.global)
    }

    /// Takes room for `count` values from this rank's segment, aligned to 64 bytes; it is not given back. Ranks that
    /// allocate alike get the same offsets.
    ///
    /// # Errors
    /// The segment has not so much left.
    pub fn alloc<T: Pod>(&self, count: u64) -> Result<GlobalPtr<T>, Error> {
        let Segment { rank, len } = self.segment();
        let bytes = count.checked_mul(size_of::<T>() as u64);
        self.allocated.with(|allocated| {
            let offset = *allocated;
            match bytes.and_then(|bytes| offset.checked_add(bytes)) {
                Some(end) if end <= len => {
                    *allocated = end.next_multiple_of(64).min(len);
                    Ok(GlobalPtr::new(rank, offset))
                }
                _ => Err(Error::SegmentFull {
                    rank,
                    asked: bytes.unwrap_or(u64::MAX),
                    left: len - offset,
                    len,
                }),
            }
        })
    }

    /// Ends the job in good order. Collective: waits for every rank. The process goes on, and may open another job.
    /// Nothing goes on in this one: what waits for something fails, on whatever thread, as in a collective that others have not
    /// begun; and so does an event whose operation is not done. What the ranks share stays until the job is dropped.
    ///
    /// A job that is dropped instead stays open for the others until this process ends, and ends then with its code, as
    /// by [`exit`](crate::exit()); one that is dropped by a panic ends at once, with code 101.
    ///
    /// # Errors
    /// A peer or the launcher fails, or the job is closed already.
    pub fn close(&self) -> Result<(), Error> {
        if self.engine.is_over() {
            return Err(gasworks_core::Error::Over.into());
        }
        kill_point!("job.close.begin");
        if let Some((left, name)) = self.barrier.under_way() {
            self.barrier.wait(&self.engine, left, name)?;
        }
        self.engine.drain()?;
        // What ranks have given may be freed once all have met.
        self.engine.close_processes();
        self.meet()?;
        kill_point!("job.close.met");
        if self.engine.has_network() {
            // Somebody's last words, returns of credits, may have followed the barrier.
            self.engine.drain()?;
            self.bootstrap.with(|bootstrap| bootstrap.barrier())?;
            self.engine.closed();
        }
        self.engine.end();
        // It serves nobody any more.
        drop(self.progress.with(Option::take));
        self.bootstrap.with(|bootstrap| bootstrap.finalize())?;
        kill_point!("job.close.finalized");
        Ok(())
    }

    /// Ends all ranks of the job at once with `code`, saying why. Does not return.
    pub fn abort(&self, code: i32, why: &str) -> ! {
        self.bootstrap.with(|bootstrap| bootstrap.abort(code, why))
    }
}

/// Where the ranks are, of which as many as `together` says share memory.
fn places(bootstrap: &dyn Bootstrap, together: u32) -> Result<Places, Error> {
    Ok(Places::new(bootstrap.hosts()?.numbered().1, together))
}

/// Tells everybody this rank's table and cores. Where the fingerprints differ, all ranks exchange the tables and name
/// the difference; otherwise the answer is how many cores the ranks may use between them.
fn greet(bootstrap: &dyn Bootstrap, mine: &str, fingerprint: u64) -> Result<usize, Error> {
    let fingerprint = fingerprint.to_le_bytes();
    let cpus = gasworks_os::affinity::allowed().unwrap_or_default();
    let mask = gasworks_os::affinity::mask_of(&cpus);
    let mut greeting: Vec<u8> =
        fingerprint.into_iter().chain(mask.iter().flat_map(|word| word.to_le_bytes())).collect();
    // Everybody gets everybody's: no more than there is to say.
    greeting.truncate(fingerprint.len().max(1 + greeting.iter().rposition(|&byte| byte != 0).unwrap_or(0)));
    let all = bootstrap.exchange("gasworks.greeting", &greeting)?;
    if all.iter().all(|theirs| theirs.starts_with(&fingerprint)) {
        let mut union = Vec::new();
        for theirs in all.iter() {
            let mask = &theirs[fingerprint.len()..];
            union.resize(union.len().max(mask.len()), 0u8);
            union.iter_mut().zip(mask).for_each(|(all, theirs)| *all |= theirs);
        }
        return Ok(union.iter().map(|byte| byte.count_ones() as usize).sum());
    }
    let tables = bootstrap.exchange("gasworks.table", mine.as_bytes())?;
    let different = tables.iter().enumerate().find(|(_, theirs)| theirs[..] != *mine.as_bytes());
    let (other, theirs) = match different {
        Some((other, theirs)) => (other as u32, String::from_utf8_lossy(theirs).into_owned()),
        None => (bootstrap.rank(), String::new()),
    };
    let (mine, theirs) = first_difference(mine, &theirs);
    Err(Error::TablesDiffer { rank: bootstrap.rank(), mine: mine.into(), other, theirs: theirs.into() })
}
