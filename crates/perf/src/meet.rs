//! The barrier, and fetch-and-add.

use crate::handlers::counted;
use crate::raw;
use crate::session::{PerfMode, Plan, Session, Who, since};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// The barrier of all ranks.
pub fn barrier<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let plan = Plan { who: Who::First, single: true, ..Plan::new("barrier", "shared", 0) };
    session.measure(&plan, |block| {
        let begin = Instant::now();
        block.begin();
        for _ in 0..block.n {
            session.agent.barrier()?;
            block.done();
        }
        Ok(since(begin))
    })
}

/// Fetch-and-add: by messages, since the library has nothing else yet; then the processor's own.
pub fn atomic<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    if session.wants("am-fetch-add") {
        let plan = Plan { single: true, ..Plan::new("atomic", "am-fetch-add", 8) };
        let lane = &session.state.lanes[0];
        let (mut handled, mut replied) = (counted(&lane.requests), counted(&lane.replies));
        let first = replied;
        session.measure(&plan, |block| {
            let Some(partner) = session.partner() else { return Ok(0.0) };
            if !session.leads() {
                handled += block.n;
                session.agent.wait_until(|| counted(&lane.requests) >= handled)?;
                return Ok(0.0);
            }
            let partner = black_box(partner);
            let begin = Instant::now();
            block.begin();
            for _ in 0..block.n {
                session.agent.request_short(partner, session.handlers.add, 3u64)?;
                replied += 1;
                session.agent.wait_until(|| counted(&lane.replies) >= replied)?;
                block.done();
            }
            let took = since(begin);
            let (old, wanted) = (counted(&session.state.fetched), 3 * (replied - first - 1));
            ensure!(old == wanted, "the last fetch-and-add found {old}, not {wanted}");
            Ok(took)
        })?;
    }
    raw::atomics(session)
}
