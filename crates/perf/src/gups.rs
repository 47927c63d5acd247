//! Random updates of a table that is spread over the ranks.

use crate::handlers::{BATCH, counted};
use crate::session::{PerfMode, Plan, Session, Sum, Who, since};
use anyhow::{Result, ensure};
use gasworks::{AtomicOp, AtomicOps, Categories, Favor};
use gasworks_sync::Lock;
use std::time::Instant;

/// Each rank keeps two to this power of words.
pub const LOG_WORDS: u32 = 20;

/// The next of a sequence of random words (xorshift, whose period is all words but 0).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Every rank updates words anywhere; figures are of the whole job's updates.
pub fn run<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let (ranks, words) = (session.ranks(), 1u64 << LOG_WORDS);
    let seed = u64::from(session.rank() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let each = f64::from(ranks);
    if session.wants("put-get") {
        let table = session.job.alloc::<u64>(words)?;
        let plan = Plan { who: Who::First, each, sum: Sum::Rate, ..Plan::new("gups", "put-get", 8) };
        let mut random = seed;
        session.measure(&plan, |block| {
            let begin = Instant::now();
            for _ in 0..block.n {
                let value = next(&mut random);
                let place = table.on((value >> 40) as u32 % ranks).add(value & (words - 1))?;
                session.agent.put_value(place, session.agent.get_value(place)? ^ value)?;
            }
            session.agent.barrier()?;
            Ok(since(begin))
        })?;
    }
    if session.wants("atomic") {
        atomic(session, each, seed)?;
    }
    if session.wants("am-batch") {
        session.state.words.with(|all| all.resize(words as usize, 0));
        batches(session, each, seed)?;
    }
    Ok(())
}

/// Each update as an atomic operation; none is lost: done twice, they leave the table as it was.
fn atomic<M: PerfMode>(session: &Session<'_, M>, each: f64, seed: u64) -> Result<()> {
    let (agent, ranks, words) = (&session.agent, session.ranks(), 1u64 << LOG_WORDS);
    let (table, mut random) = (session.job.alloc::<u64>(words)?, seed);
    let own = table.on(session.rank());
    agent.local(own, words as usize)?.write(0, &vec![0; words as usize]);
    agent.barrier()?;
    let atomics = agent.atomics::<u64>(AtomicOps::XOR, Favor::Far)?;
    let plan = Plan { who: Who::First, each, sum: Sum::Rate, ..Plan::new("gups", "atomic", 8) };
    session.measure(&plan, |block| {
        let again = random;
        let updates = agent.implicit();
        let begin = Instant::now();
        for _ in 0..2 {
            random = again;
            // Half in the first round, the same half again in the second.
            for _ in 0..block.n.div_ceil(2) {
                let value = next(&mut random);
                let place = table.on((value >> 40) as u32 % ranks).add(value & (words - 1))?;
                updates.atomic(&atomics, place, AtomicOp::Xor(value))?;
            }
        }
        updates.wait(agent, Categories::UPDATE)?;
        agent.barrier()?;
        let took = since(begin);
        let mut seen = vec![0; words as usize];
        agent.local(own, seen.len())?.read(0, &mut seen);
        let wrong = seen.iter().filter(|word| **word != 0).count();
        ensure!(wrong == 0, "{wrong} words are wrong after every update was done twice");
        agent.barrier()?;
        Ok(took * block.n as f64 / (2 * block.n.div_ceil(2)) as f64)
    })
}

/// Batches of updates as messages; the owner applies them, and none is lost: applied twice, they leave the table as it was.
fn batches<M: PerfMode>(session: &Session<'_, M>, each: f64, seed: u64) -> Result<()> {
    let (ranks, mut random) = (session.ranks(), seed);
    // With fewer than a batch to each rank a block would measure its barriers.
    let least = BATCH as u64 * u64::from(ranks);
    let plan = Plan { who: Who::First, each, sum: Sum::Rate, least, ..Plan::new("gups", "am-batch", 8) };
    let lane = &session.state.lanes[0];
    let received = session.job.alloc::<u64>(u64::from(ranks))?;
    let mut expected = counted(&lane.requests);
    session.measure(&plan, |block| {
        let again = random;
        let begin = Instant::now();
        for _ in 0..2 {
            random = again;
            let mut sent = vec![0u64; ranks as usize];
            let mut pending = vec![Vec::with_capacity(BATCH); ranks as usize];
            // Half in the first round, the same half again in the second.
            for _ in 0..block.n.div_ceil(2) {
                let value = next(&mut random);
                let to = (value >> 40) as u32 % ranks;
                let batch = &mut pending[to as usize];
                batch.push(value);
                if batch.len() == BATCH {
                    session.send_batch(to, batch)?;
                    sent[to as usize] += BATCH as u64;
                    batch.clear();
                }
            }
            for (to, batch) in (0..).zip(&pending) {
                session.send_batch(to, batch)?;
                sent[to as usize] += batch.len() as u64;
                session
                    .agent
                    .put_value(received.on(to).add(u64::from(session.rank()))?, sent[to as usize])?;
            }
            session.agent.barrier()?;
            let mut all = vec![0u64; ranks as usize];
            session.agent.get(received.on(session.rank()), &mut all)?;
            expected += all.iter().sum::<u64>();
            session.agent.wait_until(|| counted(&lane.requests) >= expected)?;
            session.agent.barrier()?;
        }
        let took = since(begin);
        let wrong = session.state.words.with(|words| words.iter().filter(|&&word| word != 0).count());
        ensure!(wrong == 0, "{wrong} words are wrong after every update was done twice");
        Ok(took * block.n as f64 / (2 * block.n.div_ceil(2)) as f64)
    })
}

impl<M: PerfMode> Session<'_, M> {
    fn send_batch(&self, to: u32, batch: &[u64]) -> Result<(), gasworks::Error> {
        let bytes = bytemuck::cast_slice(batch);
        self.agent.request_medium(to, self.handlers.update, batch.len() as u32, bytes)
    }
}
