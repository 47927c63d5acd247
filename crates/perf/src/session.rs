//! A job that measures: blocks of operations that all ranks begin together, until there are enough of them.
//!
//! Rank 0 decides how many operations a block has, and gathers what the leaders of the pairs have measured.

use crate::clock::{nanoseconds_of_a_tick, ticks};
use crate::handlers::{Handlers, State};
use crate::options::Options;
use crate::probe::Probe;
use crate::row::{self, Row};
use crate::stats::undisturbed;
use anyhow::{Context, Result, ensure};
use gasworks::{Agent, GlobalPtr, Job, Par, Seq, Table, ThreadMode};
use gasworks_testkit::machine;
use gasworks_testkit::stats::{quantile, sorted};
use std::cell::Cell;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// A thread mode, and what depends on it here.
pub trait PerfMode: ThreadMode {
    /// Registers the handlers of all benches.
    fn register(table: &mut Table<Self>, state: &Arc<State<Self>>) -> Result<Handlers, gasworks::Error>;

    /// Runs `f` on so many threads of this rank, each with its own agent, and gives their results in order.
    fn on_threads<R: Send>(
        job: &Job<Self>,
        threads: u32,
        f: impl Fn(&Agent<'_, Self>, u32) -> Result<R> + Sync,
    ) -> Result<Vec<R>>;
}

impl PerfMode for Seq {
    fn register(table: &mut Table<Self>, state: &Arc<State<Self>>) -> Result<Handlers, gasworks::Error> {
        crate::handlers::seq(table, state)
    }

    fn on_threads<R: Send>(
        job: &Job<Self>,
        _: u32,
        f: impl Fn(&Agent<'_, Self>, u32) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        Ok(vec![f(&job.agent()?, 0)?])
    }
}

impl PerfMode for Par {
    fn register(table: &mut Table<Self>, state: &Arc<State<Self>>) -> Result<Handlers, gasworks::Error> {
        crate::handlers::par(table, state)
    }

    fn on_threads<R: Send>(
        job: &Job<Self>,
        threads: u32,
        f: impl Fn(&Agent<'_, Self>, u32) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if threads == 1 {
            return Ok(vec![f(&job.agent()?, 0)?]);
        }
        let run = |thread| f(&job.agent()?, thread);
        let run = &run;
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
            let mut results = vec![run(0)];
            results.extend(others.into_iter().map(|other| match other.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
            results.into_iter().collect()
        })
    }
}

/// Which ranks measure; the others only take part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The first of each pair.
    Leaders,
    /// Rank 0.
    First,
}

/// What the figures of several leaders mean together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Their mean: each does its operations by itself.
    Mean,
    /// Of operations of the whole job.
    Rate,
}

/// What is measured.
pub struct Plan {
    /// The name of the bench.
    pub bench: String,
    /// The variant.
    pub variant: String,
    /// The transport.
    pub transport: &'static str,
    /// Bytes of an operation.
    pub bytes: u64,
    /// Who measures.
    pub who: Who,
    /// How leaders' figures are put together.
    pub sum: Sum,
    /// Whether operations are long enough to be timed one by one.
    pub single: bool,
    /// Operations of the job for each that a leader counts.
    pub each: f64,
    /// The fewest operations of a block, where fewer would measure something else.
    pub least: u64,
    /// The most operations in a block.
    pub most: u64,
}

impl Plan {
    /// A measurement of the library between the ranks of each pair.
    pub fn new(bench: &str, variant: impl Into<String>, bytes: u64) -> Self {
        Self {
            bench: bench.into(),
            variant: variant.into(),
            transport: "pshm",
            bytes,
            who: Who::Leaders,
            sum: Sum::Mean,
            single: false,
            each: 1.0,
            least: 1,
            most: 50_000_000,
        }
    }
}

/// A block as the one who runs it sees it.
pub struct Block {
    /// Operations to do.
    pub n: u64,
    /// Ticks of single operations, if they are wanted.
    single: Option<Vec<u64>>,
    last: u64,
}

impl Block {
    /// So many operations, timed together only.
    pub fn of(n: u64) -> Self {
        Self { n, single: None, last: 0 }
    }

    /// Before the first operation of a loop that calls [`Block::done`] after each.
    #[inline(always)]
    pub fn begin(&mut self) {
        if self.single.is_some() {
            self.last = ticks();
        }
    }

    /// An operation is done.
    #[inline(always)]
    pub fn done(&mut self) {
        if let Some(single) = &mut self.single {
            let now = ticks();
            single.push(now.wrapping_sub(self.last));
            self.last = now;
        }
    }

    /// Adds latencies in ticks that were taken elsewhere, if they are wanted.
    pub fn add(&mut self, ticks: &[u64]) {
        if let Some(single) = &mut self.single {
            single.extend_from_slice(ticks);
        }
    }

    /// Whether single operations are timed.
    pub fn wants_single(&self) -> bool {
        self.single.is_some()
    }
}

/// What takes about as long as a block should, in nanoseconds.
const BLOCK: f64 = 2e6;
/// The most operations timed one by one in a block.
const SINGLE: u64 = 2_000;
/// The most blocks.
const BLOCKS: u64 = 200;
/// What a leader tells rank 0 of a block: its figure, whether time was stolen, and what a line cost just before.
const WORDS: u64 = 3;
/// What it tells of all: that, and p99 and p999 of single operations.
const REPORT: u64 = WORDS * BLOCKS + 2;
/// Set in the control word when the number of operations is settled.
const SETTLED: u64 = 1 << 63;

/// A job that measures.
pub struct Session<'a, M: PerfMode> {
    /// The job.
    pub job: &'a Job<M>,
    /// The main thread's agent.
    pub agent: Agent<'a, M>,
    /// The handlers.
    pub handlers: Handlers,
    /// What the handlers count.
    pub state: Arc<State<M>>,
    /// The command line.
    pub options: &'a Options,
    /// Nanoseconds of a tick.
    pub tick: f64,
    machine: String,
    probe: Option<Probe>,
    control: GlobalPtr<u64>,
    reports: GlobalPtr<f64>,
    printed: Cell<u32>,
}

impl<'a, M: PerfMode> Session<'a, M> {
    /// Sets up. Collective.
    ///
    /// # Errors
    /// The segment is too small.
    pub fn new(
        job: &'a Job<M>,
        handlers: Handlers,
        state: Arc<State<M>>,
        options: &'a Options,
    ) -> Result<Self> {
        let agent = job.agent()?;
        Ok(Self {
            probe: Probe::new(job, &agent)?,
            job,
            agent,
            handlers,
            state,
            options,
            tick: nanoseconds_of_a_tick(),
            machine: machine::describe(),
            control: job.alloc(8)?,
            reports: job.alloc(u64::from(job.ranks()) * REPORT)?,
            printed: Cell::new(0),
        })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.agent.rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.agent.ranks()
    }

    /// The other rank of this one's pair, if there is one.
    pub fn partner(&self) -> Option<u32> {
        Some(self.rank() ^ 1).filter(|&partner| partner < self.ranks())
    }

    /// Whether this is the rank of a pair that measures.
    pub fn leads(&self) -> bool {
        self.rank().is_multiple_of(2) && self.partner().is_some()
    }

    /// Whether the command line asks for this variant.
    pub fn wants(&self, variant: &str) -> bool {
        variant.contains(&self.options.variant)
    }

    /// The sizes to measure: those of the command line, or else these.
    pub fn sizes(&self, usual: &[u64]) -> Vec<u64> {
        self.options.bytes.map_or_else(|| usual.to_vec(), |sizes| sizes.doubling())
    }

    /// Measures and, on rank 0, prints. Collective.
    ///
    /// # Errors
    /// Those of `block` and of the job.
    pub fn measure(&self, plan: &Plan, block: impl FnMut(&mut Block) -> Result<f64>) -> Result<()> {
        let row = self.blocks(plan, block)?;
        row.iter().for_each(|row| self.print(row));
        Ok(())
    }

    /// Runs `block` until enough is known. It does its share of [`Block::n`] operations, and returns how many nanoseconds
    /// that took. Collective; rank 0 gets the row.
    ///
    /// # Errors
    /// Those of `block` and of the job.
    pub fn blocks(
        &self,
        plan: &Plan,
        mut block: impl FnMut(&mut Block) -> Result<f64>,
    ) -> Result<Option<Row>> {
        let n = self.settle(plan, &mut block)?;
        let measures = match plan.who {
            Who::Leaders => self.leads(),
            Who::First => self.rank() == 0,
        };
        let (mut figures, mut singles) = (Vec::new(), Vec::new());
        for _ in 0..self.options.blocks {
            let stolen = if measures { machine::stolen() } else { 0 };
            self.agent.barrier()?;
            let mut line = 0.0;
            if let Some(probe) = &self.probe {
                line = probe.pass(self.rank())?;
                self.agent.barrier()?;
            }
            let took = block(&mut Block::of(n))?;
            if measures {
                let stolen = f64::from(machine::stolen() != stolen);
                figures.push([took / (n as f64 * plan.each), stolen, line * self.tick]);
            }
            if plan.single {
                let n = n.min(SINGLE);
                let single = measures.then(|| Vec::with_capacity(n as usize));
                let mut timed = Block { n, single, last: 0 };
                self.agent.barrier()?;
                block(&mut timed)?;
                singles.extend(timed.single.into_iter().flatten().map(|one| one as f64 * self.tick));
            }
        }
        if measures {
            let singles = sorted(&singles);
            let mut report: Vec<f64> = figures.into_iter().flatten().collect();
            report.resize((WORDS * BLOCKS) as usize, 0.0);
            report.extend([0.99, 0.999].map(|q| quantile(&singles, q) / plan.each));
            let at = self.reports.on(0).add(u64::from(self.rank()) * REPORT)?;
            self.agent.put(at, &report)?;
        }
        self.agent.barrier()?;
        if self.rank() == 0 { self.gather(plan).map(Some) } else { Ok(None) }
    }

    /// Warms up, and finds how many operations take as long as a block should.
    fn settle(&self, plan: &Plan, block: &mut impl FnMut(&mut Block) -> Result<f64>) -> Result<u64> {
        let fixed = self.options.iters.map(|n| n.min(plan.most));
        let mut n = fixed.unwrap_or(plan.least);
        loop {
            self.agent.barrier()?;
            let took = block(&mut Block::of(n))?;
            if self.rank() == 0 {
                let wanted = n as f64 * BLOCK / took.max(1.0);
                // Never many times more than has been tried: the first operations are slow.
                let next = (wanted as u64).clamp(1, 16 * n).max(plan.least).min(plan.most);
                let settled = fixed.is_some() || took > BLOCK / 2.0 || next <= n;
                let next = fixed.unwrap_or(next) | if settled { SETTLED } else { 0 };
                for rank in 0..self.ranks() {
                    self.agent.put_value(self.control.on(rank), next)?;
                }
            }
            self.agent.barrier()?;
            let next = self.agent.local(self.control.on(self.rank()), 1)?.get(0);
            n = next & !SETTLED;
            if next & SETTLED != 0 {
                return Ok(n);
            }
        }
    }

    /// What the leaders have reported, as one row.
    fn gather(&self, plan: &Plan) -> Result<Row> {
        let leaders = match plan.who {
            Who::Leaders => self.ranks() / 2,
            Who::First => 1,
        };
        let all = self.agent.local(self.reports.on(0), (u64::from(self.ranks()) * REPORT) as usize)?;
        let word = |leader: u32, at: u64| all.get((u64::from(2 * leader) * REPORT + at) as usize);
        let together = |figures: &mut dyn Iterator<Item = f64>| match plan.sum {
            Sum::Mean => figures.sum::<f64>() / f64::from(leaders),
            Sum::Rate => 1.0 / figures.map(|figure| 1.0 / figure).sum::<f64>(),
        };
        let each_block = 0..u64::from(self.options.blocks);
        let figure = |block| together(&mut (0..leaders).map(|leader| word(leader, WORDS * block)));
        let blocks: Vec<f64> = each_block.clone().map(figure).collect();
        let stolen = |block| (0..leaders).any(|leader| word(leader, WORDS * block + 1) > 0.0);
        let kept = undisturbed(&blocks, &each_block.clone().map(stolen).collect::<Vec<_>>());
        let lines: Vec<f64> = kept.iter().map(|&block| word(0, WORDS * block as u64 + 2)).collect();
        let kept: Vec<f64> = kept.into_iter().map(|block| blocks[block]).collect();
        let order = sorted(&kept);
        // Of single operations the worst pair counts.
        let worst = |at| (0..leaders).map(|leader| word(leader, WORDS * BLOCKS + at)).fold(0.0, f64::max);
        let tail = |q, at| if plan.single { worst(at) } else { quantile(&order, q) };
        Ok(Row {
            p99: tail(0.99, 0),
            p999: tail(0.999, 1),
            dropped: (blocks.len() - kept.len()) as u32,
            line: quantile(&sorted(&lines), 0.5),
            lines,
            ..self.row(plan, "ns", kept)
        })
    }

    /// Whether the command line left anything to measure.
    ///
    /// # Errors
    /// No variant has the name that was asked for, or no size fits.
    pub fn printed(&self) -> Result<()> {
        let Options { bench, variant, .. } = self.options;
        let none = self.rank() == 0 && self.printed.get() == 0;
        ensure!(!none, "{} has no variant whose name contains {variant:?} with such sizes", bench.name());
        Ok(())
    }

    /// A row of figures that were not timed in blocks.
    pub fn row(&self, plan: &Plan, unit: &str, figures: Vec<f64>) -> Row {
        let order = sorted(&figures);
        Row {
            bench: plan.bench.clone(),
            variant: plan.variant.clone(),
            transport: plan.transport.into(),
            mode: M::NAME.into(),
            ranks: self.ranks(),
            threads: self.options.threads,
            bytes: plan.bytes,
            unit: unit.into(),
            min: quantile(&order, 0.0),
            p50: quantile(&order, 0.5),
            p99: quantile(&order, 0.99),
            p999: quantile(&order, 0.999),
            blocks: figures,
            dropped: 0,
            line: 0.0,
            lines: Vec::new(),
            best: false,
            machine: self.machine.clone(),
        }
    }

    /// Prints a row, as a line of JSON or of the table.
    pub fn print(&self, row: &Row) {
        let text = if self.options.json {
            serde_json::to_string(row).map(|line| line + "\n").unwrap_or_default()
        } else if self.printed.get() > 0 {
            row.line()
        } else {
            row::head() + &row.line()
        };
        self.printed.set(self.printed.get() + 1);
        // A reader that has gone away is no reason to fail.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}

/// Nanoseconds since `begin`.
pub fn since(begin: Instant) -> f64 {
    begin.elapsed().as_nanos() as f64
}

/// Runs on all threads of this rank and returns how long it took from the first thread's begin to the last one's end.
///
/// # Errors
/// Those of `f`.
pub fn timed_threads<M: PerfMode>(
    job: &Job<M>,
    threads: u32,
    f: impl Fn(&Agent<'_, M>, u32) -> Result<()> + Sync,
) -> Result<f64> {
    let all = std::sync::Barrier::new(threads as usize);
    let times = M::on_threads(job, threads, |agent, thread| {
        if threads > 1 {
            all.wait();
        }
        let begin = Instant::now();
        f(agent, thread)?;
        Ok((begin, Instant::now()))
    })?;
    let begin = times.iter().map(|time| time.0).min().context("no thread")?;
    let end = times.iter().map(|time| time.1).max().context("no thread")?;
    Ok((end - begin).as_nanos() as f64)
}
