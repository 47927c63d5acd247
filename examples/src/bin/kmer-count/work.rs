//! What a rank does: deal blocks or take them, count, send, settle, gather.

use crate::state::{FAILED, Handlers, State};
use anyhow::Result;
use gasworks::{Agent, GlobalPtr, Job, Local, Seq};
use gasworks_examples::kmer::{self, BadBase, K};
use gasworks_examples::reads::Reads;
use gasworks_examples::spectrum::{FLAT, Spectrum};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of sequence dealt at a time.
pub const BLOCK: usize = 64 << 10;

/// Blocks that a rank may have waiting: enough to work on while rank 0 is off its core.
pub const SLOTS: u64 = 16;

/// K-mers in a message: as many as the largest Medium holds.
const BATCH: usize = 8192;

/// What a rank puts into rank 0's segment: its spectrum and the size of its table.
pub const ROW: usize = FLAT + 1;

/// One rank at work.
pub struct Worker<'job> {
    agent: &'job Agent<'job, Seq>,
    state: &'job State,
    handlers: Handlers,
    k: K,
    /// K-mers to be sent, by owner, and how many were sent.
    waiting: Vec<Vec<u64>>,
    sent: Vec<u64>,
    /// On rank 0, how many blocks each rank was dealt.
    dealt: Vec<u64>,
    /// The slots, and this rank's view of its own.
    slots: GlobalPtr<u8>,
    mine: Local<'job, u8>,
    spectra: GlobalPtr<u64>,
}

impl<'job> Worker<'job> {
    pub fn new(
        job: &'job Job<Seq>,
        agent: &'job Agent<'job, Seq>,
        state: &'job State,
        handlers: Handlers,
        k: K,
    ) -> Result<Self> {
        let ranks = agent.ranks();
        // All ranks allocate alike, so a place in one segment is the same place in every other.
        let slots = job.alloc::<u8>(SLOTS * BLOCK as u64)?;
        let spectra = job.alloc::<u64>(u64::from(ranks) * ROW as u64)?;
        let mine = agent.local(slots, SLOTS as usize * BLOCK)?;
        let waiting = vec![Vec::with_capacity(2 * BATCH); ranks as usize];
        let (sent, dealt) = (vec![0; ranks as usize], vec![0; ranks as usize]);
        Ok(Self { agent, state, handlers, k, waiting, sent, dealt, slots, mine, spectra })
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.agent.rank();
        (0..self.agent.ranks()).filter(move |&rank| rank != me)
    }

    /// Rank 0: reads the file and deals it out; what nobody takes it counts itself. Returns the number of sequences.
    pub fn deal(&mut self, path: &Path) -> Result<u64> {
        let mut reads = match Reads::open(path, self.k) {
            Ok(reads) => reads,
            Err(error) => return self.fail(format!("{error:#}")).map(|()| 0),
        };
        self.state
            .free
            .borrow_mut()
            .extend((0..SLOTS).flat_map(|slot| self.others().map(move |r| (r, slot))));
        let mut block = Vec::with_capacity(BLOCK);
        let mut shown = Instant::now();
        while !self.state.failed.get() {
            let first = match reads.next_block(&mut block, BLOCK) {
                Ok(Some(first)) => first,
                Ok(None) => break,
                Err(error) => {
                    self.fail(format!("{error:#}"))?;
                    break;
                }
            };
            self.agent.poll()?;
            let free = self.state.free.borrow_mut().pop_front();
            match free {
                Some((rank, slot)) => {
                    let place = self.slots.on(rank).add(slot * BLOCK as u64)?;
                    self.agent.request_long(self.handlers.block, [slot, first], &block, place)?;
                    self.dealt[rank as usize] += 1;
                }
                None => self.count(&block, first, path)?,
            }
            if shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                eprintln!("progress {:.0} %", reads.progress() * 100.0);
            }
        }
        Ok(reads.records())
    }

    /// Rank 0: tells the others how many blocks they have had.
    pub fn end_dealing(&self) -> Result<()> {
        for rank in self.others() {
            self.agent.request_short(rank, self.handlers.end, self.dealt[rank as usize])?;
        }
        Ok(())
    }

    /// Other ranks: count what is dealt, until there is no more.
    pub fn work(&mut self, path: &Path) -> Result<()> {
        let state = self.state;
        let mut bytes = Vec::with_capacity(BLOCK);
        loop {
            let ended = || state.blocks_in_all.get() == Some(state.blocks_seen.get());
            self.agent.wait_until(|| !state.blocks.borrow().is_empty() || ended())?;
            let Some(block) = state.blocks.borrow_mut().pop_front() else { return Ok(()) };
            bytes.resize(block.len, 0);
            self.mine.read(block.slot as usize * BLOCK, &mut bytes);
            self.agent.request_short(0, self.handlers.free, block.slot)?;
            if !state.failed.get() {
                self.count(&bytes, block.first, path)?;
            }
        }
    }

    /// Finds the k-mers of a block and sends the batches that are full.
    fn count(&mut self, block: &[u8], first: u64, path: &Path) -> Result<()> {
        let ranks = self.agent.ranks();
        let waiting = &mut self.waiting;
        let found = kmer::scan(block, self.k, |kmer| waiting[kmer::owner(kmer, ranks) as usize].push(kmer));
        if let Err(bad @ BadBase { sequence, .. }) = found {
            return self.fail(format!("{}: record {}: {bad}", path.display(), first + sequence));
        }
        (0..ranks).try_for_each(|owner| self.send(owner, BATCH))
    }

    /// Sends batches to an owner while it has `least` k-mers or more waiting.
    fn send(&mut self, owner: u32, least: usize) -> Result<()> {
        let waiting = &mut self.waiting[owner as usize];
        if owner == self.agent.rank() {
            self.state.table.borrow_mut().add_all(waiting)?;
            waiting.clear();
        }
        while !waiting.is_empty() && waiting.len() >= least {
            let rest = waiting.len().saturating_sub(BATCH);
            let batch = &waiting[rest..];
            self.agent.request_medium(owner, self.handlers.kmers, [], bytemuck::cast_slice(batch))?;
            self.sent[owner as usize] += batch.len() as u64;
            waiting.truncate(rest);
        }
        Ok(())
    }

    /// Notes that the input is wrong, and tells rank 0, who speaks for all.
    pub fn fail(&self, why: String) -> Result<()> {
        self.state.failed.set(true);
        if self.agent.rank() == 0 {
            self.state.why.borrow_mut().get_or_insert(why);
        } else {
            let text = &why.as_bytes()[..why.len().min(4096)];
            self.agent.request_medium(0, self.handlers.why, [], text)?;
        }
        Ok(())
    }

    /// Sends what is left, and waits until every k-mer has reached its owner. False if any rank failed.
    pub fn settle(&mut self) -> Result<bool> {
        let (state, ranks) = (self.state, self.agent.ranks());
        let failed_here = state.failed.get();
        for owner in 0..ranks {
            self.send(owner, 1)?;
        }
        for rank in self.others() {
            let sent = if failed_here { FAILED } else { self.sent[rank as usize] };
            self.agent.request_short(rank, self.handlers.sent, sent)?;
        }
        self.agent.wait_until(|| state.settled.get() == ranks - 1)?;
        if state.failed.get() {
            // Messages may overtake each other: the reason may still be on its way to rank 0.
            self.agent.wait_until(|| self.agent.rank() != 0 || state.why.borrow().is_some())?;
            return Ok(false);
        }
        self.agent.wait_until(|| state.received.get() == state.announced.get())?;
        Ok(true)
    }

    /// Puts every rank's spectrum into rank 0's segment; rank 0 returns their sum and the size of all tables.
    pub fn gather(&self) -> Result<Option<(Spectrum, u64)>> {
        let place = |rank: u32| self.spectra.on(0).add(u64::from(rank) * ROW as u64);
        let (mine, bytes) = {
            let table = self.state.table.borrow();
            (Spectrum::of(table.iter()), table.bytes() as u64)
        };
        let row: Vec<u64> = mine.flat().iter().copied().chain([bytes]).collect();
        self.agent.put(place(self.agent.rank())?, &row)?;
        self.agent.barrier()?;
        if self.agent.rank() != 0 {
            return Ok(None);
        }
        let (mut sum, mut bytes, mut row) = (Spectrum::default(), 0, vec![0; ROW]);
        for rank in 0..self.agent.ranks() {
            self.agent.get(place(rank)?, &mut row)?;
            sum.merge(&row[..FLAT]);
            bytes += row[FLAT];
        }
        Ok(Some((sum, bytes)))
    }
}
