//! Active messages: round trips and floods.

use crate::handlers::{Lane, counted, filled};
use crate::session::{Block, PerfMode, Plan, Session, Sum, since, timed_threads};
use anyhow::{Result, ensure};
use gasworks::{Agent, GlobalPtr, LongRequest, MediumRequest, ShortRequest};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const SIZES: &[u64] = &[8, 64, 512, 4096, 65536];

/// Sizes that a Medium can have.
fn sizes<M: PerfMode>(session: &Session<'_, M>) -> Result<Vec<u64>> {
    let (most, asked) = (session.agent.max_medium() as u64, session.options.bytes.is_some());
    let mut sizes = session.sizes(SIZES);
    if asked {
        for &size in &sizes {
            ensure!(
                size <= most && size.is_multiple_of(8),
                "a Medium of {size} bytes: here it has whole words, at most {most} bytes"
            );
        }
    }
    sizes.retain(|&size| size <= most);
    Ok(sizes)
}

/// What one thread of a leader sends.
#[derive(Clone, Copy)]
enum Send {
    Short(ShortRequest<u32>),
    Medium(MediumRequest<[u32; 4]>),
    /// To this offset of the partner's segment.
    Long(LongRequest<u32>, u64),
}

/// Who answers what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Each is replied to, and the next one waits for the reply.
    EachInTurn,
    /// Each is replied to; all replies are waited for at the end.
    Each,
    /// One message says that all have been handled.
    Last,
}

/// One measurement of messages from leaders to their partners.
#[derive(Clone)]
struct Messages {
    send: Send,
    arrived: ShortRequest<u32>,
    bytes: u64,
    answer: Answer,
    lanes: Arc<[Lane]>,
    /// Requests handled and replies received on any one lane when all blocks so far have ended.
    handled: u64,
    replied: u64,
}

impl Messages {
    fn new<M: PerfMode>(session: &Session<'_, M>, send: Send, bytes: u64, answer: Answer) -> Self {
        // Nothing is under way between measurements, and every lane counts alike.
        let lanes = session.state.lanes.clone();
        let (handled, replied) = (counted(&lanes[0].requests), counted(&lanes[0].replies));
        Self { send, arrived: session.handlers.arrived, bytes, answer, lanes, handled, replied }
    }

    fn measure<M: PerfMode>(mut self, session: &Session<'_, M>, plan: &Plan) -> Result<()> {
        let mut blocks = u64::from(session.rank());
        session.measure(plan, |block| {
            blocks += 1;
            self.block(session, block, blocks)
        })
    }

    /// A block: leaders send, partners wait until they have handled all.
    fn block<M: PerfMode>(
        &mut self,
        session: &Session<'_, M>,
        block: &mut Block,
        number: u64,
    ) -> Result<f64> {
        let Some(partner) = session.partner() else { return Ok(0.0) };
        let threads = session.options.threads;
        let each = block.n.div_ceil(threads.into());
        // Another word fills the payloads of every block, so that a stale one is noticed.
        let payload = vec![number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1; self.bytes as usize / 8];
        let (this, payload) = (&*self, &payload[..]);
        let took = if !session.leads() {
            timed_threads(session.job, threads, |agent, lane| this.take(agent, partner, lane, each))?
        } else if threads == 1 {
            let begin = Instant::now();
            this.send(&session.agent, partner, 0, each, payload, block)?;
            since(begin)
        } else {
            timed_threads(session.job, threads, |agent, lane| {
                this.send(agent, partner, lane, each, payload, &mut Block::of(each))
            })?
        };
        if session.leads() {
            self.replied += if self.answer == Answer::Last { 1 } else { each };
        } else {
            self.handled += each;
        }
        let wrong: u64 = self.lanes.iter().map(|lane| counted(&lane.wrong)).sum();
        ensure!(wrong == 0, "{wrong} payloads of {} bytes are not what was sent", self.bytes);
        Ok(took * block.n as f64 / (each * u64::from(threads)) as f64)
    }

    /// A partner's thread.
    fn take<M: PerfMode>(&self, agent: &Agent<'_, M>, leader: u32, lane: u32, each: u64) -> Result<()> {
        let requests = &self.lanes[lane as usize].requests;
        agent.wait_until(|| counted(requests) >= self.handled + each)?;
        if self.answer == Answer::Last {
            agent.request_short(leader, self.arrived, lane)?;
        }
        Ok(())
    }

    /// A leader's thread. Where the message goes is known at run time only.
    fn send<M: PerfMode>(
        &self,
        agent: &Agent<'_, M>,
        partner: u32,
        lane: u32,
        each: u64,
        payload: &[u64],
        block: &mut Block,
    ) -> Result<()> {
        let partner = black_box(partner);
        let args = filled(lane, payload.first().copied().unwrap_or(0));
        let payload: &[u8] = bytemuck::cast_slice(payload);
        let replies = &self.lanes[lane as usize].replies;
        let answer = self.answer;
        block.begin();
        for sent in 1..=each {
            match self.send {
                Send::Short(handler) => agent.request_short(partner, handler, lane)?,
                Send::Medium(handler) => agent.request_medium(partner, handler, args, payload)?,
                Send::Long(handler, at) => {
                    agent.request_long(handler, lane, payload, GlobalPtr::new(partner, at))?;
                }
            }
            if answer == Answer::EachInTurn {
                agent.wait_until(|| counted(replies) >= self.replied + sent)?;
                block.done();
            }
        }
        let all = if answer == Answer::Last { 1 } else { each };
        Ok(agent.wait_until(|| counted(replies) >= self.replied + all)?)
    }
}

/// Round trips.
pub fn latency<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let single = session.options.threads == 1;
    let plan = |variant: &str, bytes| Plan {
        single,
        sum: threads_sum(single),
        ..Plan::new("am-latency", variant, bytes)
    };
    if session.wants("short") {
        let send = Send::Short(session.handlers.ping);
        Messages::new(session, send, 0, Answer::EachInTurn).measure(session, &plan("short", 0))?;
    }
    let sizes = sizes(session)?;
    let landing = landing(session, &sizes)?;
    for bytes in sizes {
        if session.wants("long") {
            let send = Send::Long(session.handlers.ping_long, landing);
            Messages::new(session, send, bytes, Answer::EachInTurn).measure(session, &plan("long", bytes))?;
        }
        for (variant, handler) in
            [("medium-unread", session.handlers.ping_unread), ("medium-read", session.handlers.ping_read)]
        {
            if session.wants(variant) {
                let messages = Messages::new(session, Send::Medium(handler), bytes, Answer::EachInTurn);
                messages.measure(session, &plan(variant, bytes))?;
            }
        }
    }
    Ok(())
}

/// Where Longs land, on every rank. Collective.
fn landing<M: PerfMode>(session: &Session<'_, M>, sizes: &[u64]) -> Result<u64> {
    Ok(session.job.alloc::<u8>(sizes.iter().copied().max().unwrap_or(0))?.offset())
}

/// Several threads' round trips overlap, so that only their rate means something.
fn threads_sum(single: bool) -> Sum {
    if single { Sum::Mean } else { Sum::Rate }
}

/// Floods of Shorts.
pub fn rate<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let ways = [
        ("short", session.handlers.flood, Answer::Last),
        ("short-replies", session.handlers.ping, Answer::Each),
    ];
    for (variant, handler, answer) in ways {
        if session.wants(variant) {
            let plan = Plan { sum: Sum::Rate, ..Plan::new("am-rate", variant, 0) };
            Messages::new(session, Send::Short(handler), 0, answer).measure(session, &plan)?;
        }
    }
    Ok(())
}

/// Floods of Mediums and Longs.
pub fn bandwidth<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let sizes = sizes(session)?;
    let landing = landing(session, &sizes)?;
    for bytes in sizes {
        for (variant, handler, answer) in [
            ("long", session.handlers.flood_long, Answer::Last),
            ("long-replies", session.handlers.answer_long, Answer::Each),
        ] {
            if session.wants(variant) {
                let plan = Plan { sum: Sum::Rate, ..Plan::new("am-bandwidth", variant, bytes) };
                Messages::new(session, Send::Long(handler, landing), bytes, answer)
                    .measure(session, &plan)?;
            }
        }
        for (variant, handler) in
            [("unread", session.handlers.flood_unread), ("checked", session.handlers.flood_checked)]
        {
            if session.wants(variant) {
                let plan = Plan { sum: Sum::Rate, ..Plan::new("am-bandwidth", variant, bytes) };
                Messages::new(session, Send::Medium(handler), bytes, Answer::Last).measure(session, &plan)?;
            }
        }
    }
    Ok(())
}
