//! A rank that sleeps is woken by a message.

use crate::clock::ticks;
use crate::handlers::counted;
use crate::raw;
use crate::session::{PerfMode, Plan, Session};
use anyhow::{Result, ensure};
use gasworks_sync::Lock;
use std::time::{Duration, Instant};

/// So long after its last message a rank is taken to sleep, between its looks.
const ASLEEP: Duration = Duration::from_millis(4);

/// From before the request is sent to the first word of its handler, in a rank that waits since some milliseconds.
pub fn run<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let lane = &session.state.lanes[0];
    for (variant, sleeps) in [("sender busy", false), ("sender slept too", true)] {
        if !session.wants(variant) {
            continue;
        }
        let plan = Plan { single: true, most: 8, ..Plan::new("wake", variant, 0) };
        let (mut handled, mut replied) = (counted(&lane.requests), counted(&lane.replies));
        // Where the woken rank leaves what it found.
        let told = session.job.alloc::<u64>(8)?;
        session.measure(&plan, |block| {
            let Some(partner) = session.partner() else {
                session.agent.barrier()?;
                return Ok(0.0);
            };
            let mut latencies = Vec::new();
            if session.leads() {
                for _ in 0..block.n {
                    if sleeps {
                        std::thread::sleep(ASLEEP);
                    } else {
                        let begin = Instant::now();
                        while begin.elapsed() < ASLEEP {
                            std::hint::spin_loop();
                        }
                    }
                    session.agent.request_short(partner, session.handlers.wake, ticks())?;
                    replied += 1;
                    session.agent.wait_until(|| counted(&lane.replies) >= replied)?;
                }
                // The partner tells all of them when the last has been handled.
                session.agent.barrier()?;
                latencies.resize(block.n as usize, 0);
                session.agent.get(told, &mut latencies)?;
            } else {
                handled += block.n;
                session.agent.wait_until(|| counted(&lane.requests) >= handled)?;
                session.state.woken.with(|woken| std::mem::swap(woken, &mut latencies));
                ensure!(latencies.len() as u64 == block.n, "{} of {} wake-ups", latencies.len(), block.n);
                session.agent.put(told.on(partner), &latencies)?;
                session.agent.barrier()?;
            }
            block.add(&latencies);
            let sum: u64 = latencies.iter().sum();
            Ok(sum as f64 * session.tick)
        })?;
    }
    raw::wakes(session)
}
