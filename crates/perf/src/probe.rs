//! How near the processors of two ranks are, while something else is measured.

use crate::call::{Call, Measurement, Memory};
use anyhow::{Context, Result};
use gasworks::{Agent, Job, ThreadMode};
use std::cell::{Cell, RefCell};

/// Round trips of a probe.
const PROBES: u64 = 32;

/// Passes a line between the ranks of a job of two, to know how near their processors are while something else is
/// measured: those of a virtual machine move.
pub struct Probe {
    memory: RefCell<Memory>,
    passed: Cell<u64>,
}

impl Probe {
    /// For a job of two ranks; `None` for others. Collective.
    pub fn new<M: ThreadMode>(job: &Job<M>, agent: &Agent<'_, M>) -> Result<Option<Self>> {
        if job.ranks() != 2 {
            return Ok(None);
        }
        let memory = Memory::shared(job, agent, 256 << 10, 8192)?;
        Ok(Some(Self { memory: RefCell::new(memory), passed: Cell::new(0) }))
    }

    /// The ticks of one pass. Collective.
    ///
    /// # Errors
    /// What came is not what was sent.
    pub fn pass(&self, me: u32) -> Result<f64> {
        let mut took = 0;
        // The first time is a warm-up: the other rank may still be on its way from a barrier.
        for _ in 0..2 {
            let base = self.passed.replace(self.passed.get() + PROBES);
            // The variant that looks with pauses, which does well everywhere.
            let call = Call { base, n: PROBES, bytes: 8, me, ranks: 2, variant: 1, together: 0 };
            let passed = call.run(Measurement::Line, &mut self.memory.borrow_mut(), &mut []);
            took = passed.context("a line that was passed between the ranks arrived wrong")?;
        }
        Ok(took as f64 / (2 * PROBES) as f64)
    }
}
