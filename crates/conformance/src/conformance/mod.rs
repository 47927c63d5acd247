//! One suite for every transport: a table of cases, each run by all ranks of one job, in order.
//!
//! A case checks what arrives, not only that something does. Whatever a case sends it also waits for, so that the next
//! one begins with nothing under way; ranks meet at a barrier between cases. A handler that finds something wrong
//! returns an error, which comes out of the poll that ran it and fails that rank's case.
//!
//! Cases with a job of their own (tables that differ, two jobs at once) are [`special`].

mod atomics;
mod collectives;
mod events;
mod flow;
#[allow(unsafe_code)]
mod given;
mod handlers;
#[allow(unsafe_code)]
mod implicit;
mod meet;
pub mod memory;
mod messages;
mod negotiated;
mod pattern;
mod regions;
#[allow(unsafe_code)]
mod rma;
mod scattered;
pub mod special;
#[allow(unsafe_code)]
mod teams;
mod wrong;

pub use handlers::{Handlers, State, SuiteMode};

use gasworks::{Agent, GlobalPtr, Job};
use std::sync::Arc;
use thiserror::Error;

/// Why a case failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// Something is not as it must be.
    #[error("{0}")]
    Wrong(String),
    /// A call failed that must not.
    #[error(transparent)]
    Gasworks(#[from] gasworks::Error),
    /// A rank of a simulated net failed.
    #[error(transparent)]
    Sim(#[from] crate::simnet::SimError),
}

impl From<Failure> for gasworks::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gasworks(error) => error,
            other => gasworks::Error::Program(other.to_string()),
        }
    }
}

/// Fails the case unless the condition holds.
macro_rules! require {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Failure::Wrong(format!($($words)+)));
        }
    };
}
pub(crate) use require;

/// What a case is.
pub struct Case<M: SuiteMode> {
    /// Its name: what it is about, then what it does.
    pub name: &'static str,
    /// How many ranks it needs at least.
    pub ranks: u32,
    /// What every rank does.
    pub run: fn(&Stage<'_, M>) -> Result<(), Failure>,
}

/// What a case has to work with.
pub struct Stage<'a, M: SuiteMode> {
    /// The job.
    pub job: &'a Job<M>,
    /// This thread's agent.
    pub agent: Agent<'a, M>,
    /// The handlers of the suite's table.
    pub handlers: &'a Handlers,
    /// What the handlers count.
    pub state: &'a Arc<State>,
    zones: Zones,
}

/// Parts of every rank's segment, at the same offsets everywhere.
#[derive(Clone, Copy)]
struct Zones {
    /// For each peer, room where its Longs land.
    landing: GlobalPtr<u8>,
    /// Room for puts and gets by one other rank.
    open: GlobalPtr<u8>,
}

/// Bytes of landing room for each peer.
pub(crate) const LANDING: u64 = 128 << 10;
/// Bytes of the zone for puts and gets.
pub(crate) const OPEN: u64 = (1 << 20) + 4096;

/// How large a segment the suite needs.
pub fn segment(ranks: u32) -> u64 {
    u64::from(ranks) * 2 * LANDING + OPEN + 4096
}

impl<'a, M: SuiteMode> Stage<'a, M> {
    /// Sets the stage on a job that was opened with the suite's table and a segment of [`segment`] bytes at least.
    ///
    /// # Errors
    /// The segment is too small.
    pub fn new(job: &'a Job<M>, handlers: &'a Handlers, state: &'a Arc<State>) -> Result<Self, Failure> {
        let zones = Zones {
            landing: job.alloc::<u8>(u64::from(job.ranks()) * 2 * LANDING)?,
            open: job.alloc::<u8>(OPEN)?,
        };
        Ok(Self { job, agent: job.agent()?, handlers, state, zones })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.agent.rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.agent.ranks()
    }

    /// The ranks that this one talks to: all, or in a large job itself and a few at different distances. Each rank is
    /// talked to by as many.
    pub fn peers(&self) -> Vec<u32> {
        let (rank, ranks) = (self.rank(), self.ranks());
        let steps = if ranks <= 8 { (0..ranks).collect() } else { vec![0, 1, 2, ranks / 2, ranks - 1] };
        steps.into_iter().map(|step| (rank + step) % ranks).collect()
    }

    /// The next rank, around the ring.
    pub fn next(&self) -> u32 {
        (self.rank() + 1) % self.ranks()
    }

    /// The rank before, around the ring.
    pub fn previous(&self) -> u32 {
        (self.rank() + self.ranks() - 1) % self.ranks()
    }

    /// Where this rank's Longs land at `to`, and behind it where `to`'s long replies land at this rank.
    fn landing_at(&self, to: u32, slot: u32) -> GlobalPtr<u8> {
        GlobalPtr::new(to, self.zones.landing.offset() + u64::from(2 * self.rank() + slot) * LANDING)
    }

    /// The zone for puts and gets of a rank.
    fn open(&self, of: u32) -> GlobalPtr<u8> {
        self.zones.open.on(of)
    }

    /// Polls once, and lets others run if there was nothing to do: ranks may be more than cores.
    fn turn(&self) -> Result<(), Failure> {
        if self.agent.poll()? == 0 {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Polls until `done`; what for, is said if it takes far too long.
    ///
    /// # Errors
    /// A poll fails, or nothing happens for a minute.
    pub fn wait_for(&self, what: &str, mut done: impl FnMut() -> bool) -> Result<(), Failure> {
        let begun = std::time::Instant::now();
        let mut late = false;
        self.agent.wait_until(|| {
            late = begun.elapsed().as_secs() >= PATIENCE;
            done() || late
        })?;
        require!(!late || done(), "waited {PATIENCE} s in vain for {what}");
        Ok(())
    }

    /// Waits until so many messages were answered, the last of them by `to`; what a rank sends to itself is answered in the call.
    fn answered(&self, to: u32, due: u64, what: &str) -> Result<(), Failure> {
        let answered = || self.state.get(handlers::Count::Answered) == due;
        require!(to != self.rank() || answered(), "{what} to this rank itself did not come in the call");
        self.wait_for(what, answered)
    }
}

/// Seconds that a case waits for any one thing.
const PATIENCE: u64 = 60;

/// The suite, in order.
pub fn cases<M: SuiteMode>() -> Vec<Case<M>> {
    let case = |name, ranks, run| Case { name, ranks, run };
    let mut cases = vec![
        case("message.arguments", 1, messages::arguments as fn(&Stage<'_, M>) -> _),
        case("message.sizes", 1, messages::sizes),
        case("message.too-large", 1, messages::too_large),
        case("message.fixed-index", 1, messages::fixed_index),
        case("message.refused-reply", 1, messages::refused_reply),
        case("message.handler-error", 1, messages::handler_error),
        case("message.after-put", 1, messages::after_put),
        case("flow.without-replies", 1, flow::without_replies),
        case("flow.busy", 2, flow::busy),
        case("flow.busy-with-longs", 2, flow::busy_with_longs),
        case("flow.flood-of-replies", 1, flow::flood_of_replies),
        case("flow.starved-ranks-reply", 2, flow::starved_ranks_reply),
        case("flow.storm", 1, flow::storm),
        case("negotiated.medium", 1, negotiated::medium),
        case("negotiated.long", 1, negotiated::long),
        case("negotiated.from-buffer", 1, negotiated::from_buffer),
        case("negotiated.cancelled", 1, negotiated::cancelled),
        case("negotiated.refused", 1, negotiated::refused),
        case("handlers.later", 1, negotiated::later),
        case("wait.modes", 1, negotiated::wait_modes),
        case("rma.blocking", 1, rma::blocking),
        case("rma.local-memory", 1, rma::local_memory),
        case("rma.values", 1, rma::values),
        case("rma.edges", 1, rma::edges),
        case("rma.scope", 1, rma::scope),
        case("rma.all-at-once", 1, rma::all_at_once),
        case("scattered.at-random", 1, scattered::at_random),
        case("scattered.transposed", 1, scattered::transposed),
        case("scattered.all-at-once", 1, scattered::all_at_once),
        case("scattered.wrong", 1, scattered::wrong),
        case("event.owned", 1, events::owned),
        case("event.test", 1, events::test),
        case("event.await", 1, events::awaited),
        case("event.dropped", 1, events::dropped),
        case("implicit.categories", 1, implicit::categories),
        case("implicit.local-completion", 1, implicit::local_completion),
        case("implicit.regions", 1, implicit::regions),
        case("implicit.dropped", 1, implicit::dropped),
        case("event.arrays", 1, implicit::arrays),
        case("atomic.every-operation", 1, atomics::every_operation),
        case("atomic.none-is-lost", 1, atomics::none_is_lost),
        case("atomic.compared", 1, atomics::compared),
        case("atomic.sets", 1, atomics::in_sets),
        case("atomic.refused", 1, atomics::refusals),
        case("wrong.rank", 1, wrong::rank),
        case("wrong.range", 1, wrong::range),
        case("wrong.local", 1, wrong::local),
        case("wrong.alloc", 1, wrong::alloc),
        case("memory.growth", 1, memory::growth),
        case("region.used", 1, regions::used),
        case("region.many", 1, regions::many),
        case("region.lengths", 1, regions::lengths),
        case("region.wrong", 1, regions::wrong),
        case("region.rights", 1, regions::rights),
        case("region.withdrawn", 1, regions::withdrawn),
        case("region.agents", 1, regions::agents),
        case("region.given", 1, given::used),
        case("region.given-odd", 1, given::odd),
        case("region.given-longs", 1, given::longs),
        case("region.given-asleep", 1, given::asleep),
        case("region.given-by-some", 1, given::mixed),
        case("region.given-on-teams", 1, given::teams),
        case("region.given-wrong", 1, given::wrong),
        case("region.given-refusals", 1, given::refusals),
        case("barrier.split-phase", 1, meet::split_phase),
        case("barrier.skewed", 1, meet::skewed),
        case("barrier.out-of-turn", 1, meet::out_of_turn),
        case("barrier.named", 1, meet::named),
        case("barrier.serves-messages", 2, meet::serves_messages),
        case("barrier.goes-on-by-polls", 2, meet::goes_on_by_polls),
        case("wait.sleeps", 2, meet::sleeps),
        case("wait.sleeps-in-barriers", 2, meet::sleeps_in_barriers),
        case("team.splits", 1, teams::splits),
        case("team.created", 1, teams::created),
        case("team.operations", 1, teams::operations),
        case("team.barriers", 1, teams::barriers),
        case("team.two-at-once", 1, teams::two_at_once),
        case("team.many", 1, teams::many),
        case("team.growth", 1, teams::growth),
        case("team.wrong", 1, teams::wrong),
        case("collective.broadcast", 1, collectives::broadcast),
        case("collective.reduce", 1, collectives::reduce),
        case("collective.numbers", 1, collectives::numbers),
        case("collective.blocks", 1, collectives::blocks),
        case("collective.scans", 1, collectives::scans),
        case("collective.ahead", 1, collectives::ahead),
        case("collective.mixed", 1, collectives::mixed),
        case("collective.under-way", 1, collectives::under_way),
        case("collective.wrong", 2, collectives::wrong),
        case("collective.at-random", 1, collectives::at_random),
    ];
    cases.extend(M::if_par(vec![
        Case { name: "threads.all-at-once", ranks: 1, run: flow::threads },
        Case { name: "threads.for-each-other", ranks: 1, run: flow::for_each_other },
        Case { name: "team.threads", ranks: 1, run: teams::threads },
        Case { name: "atomic.threads", ranks: 1, run: atomics::threads },
        Case { name: "collective.threads", ranks: 1, run: collectives::threads },
    ]));
    cases
}

/// Runs one case on every rank, between barriers.
///
/// # Errors
/// The case failed on this rank, with its name.
pub fn run_case<M: SuiteMode>(stage: &Stage<'_, M>, case: &Case<M>) -> Result<(), Failure> {
    let named = |failure: Failure| {
        Failure::Wrong(format!(
            "case {} failed on rank {} of {}: {failure}",
            case.name,
            stage.rank(),
            stage.ranks()
        ))
    };
    (case.run)(stage).map_err(named)?;
    stage.agent.barrier().map_err(|error| named(error.into()))
}
