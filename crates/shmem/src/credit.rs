//! The credit algorithm: how many messages may be on their way to each peer, and how much they may weigh.
//!
//! A sender takes one of a total, one of the peer's number and the payload's bytes of the peer's volume before it
//! sends a request ([`Credits`]). The receiver notes what it owes once a request has been handled ([`Owed`]) and
//! returns it piggy-backed or by a message of its own. One packed word per peer, no lock.
//!
//! What a credit is worth: all that the peer did before it owed, and all that a thread did before it gave, is
//! visible to the thread that takes the credit next. Room that is freed before the credit is returned can therefore
//! be used by whoever takes it.

use core::marker::PhantomData;
use core::ops::Deref;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, ord};
use thiserror::Error;

/// A count in the high 20 bits, bytes in the low 44.
const BYTES: u32 = 44;
const MAX_COUNT: u32 = (1 << (64 - BYTES)) - 1;
const MAX_BYTES: u64 = (1 << BYTES) - 1;

/// The most credits that one return carries.
pub const MAX_RETURN: u32 = 255;

#[inline]
const fn pack(count: u32, bytes: u64) -> u64 {
    ((count as u64) << BYTES) | bytes
}

#[inline]
const fn unpack(word: u64) -> (u32, u64) {
    ((word >> BYTES) as u32, word & MAX_BYTES)
}

/// A word of zero for each peer, on the heap.
pub fn words(peers: usize) -> Box<[AtomicU64]> {
    (0..peers).map(|_| AtomicU64::new(0)).collect()
}

/// Which of the three limits has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Exhausted {
    /// The number of requests to all peers together.
    #[error("as many requests are out as all peers together may have")]
    Total,
    /// The number of requests to this peer.
    #[error("as many requests are out as this peer may have")]
    Peer,
    /// The bytes of payload to this peer.
    #[error("as many bytes of payload are out as this peer may have")]
    Volume,
}

/// A peer returned more than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "rank {peer} returned {count} credits and {bytes} bytes, but only {out_count} and {out_bytes} are out"
)]
pub struct OverReturned {
    /// Who returned them.
    pub peer: u32,
    /// How many credits it returned.
    pub count: u32,
    /// How many bytes it returned.
    pub bytes: u64,
    /// How many credits it had.
    pub out_count: u32,
    /// How many bytes it had.
    pub out_bytes: u64,
}

/// How much may be out to peers that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests to each peer. More than a packed word counts (1,048,575) are brought down to that.
    pub depth: u32,
    /// Requests to all of these peers together.
    pub total: u32,
    /// Bytes of payload to each peer. More than a packed word counts (16 TiB) are brought down to that.
    pub volume: u64,
}

/// Limits, and what is out to all peers that share them.
struct Pool {
    /// Counted only where the total is a limit.
    out: AtomicU32,
    /// Whether it is: a few peers, each at its own limit, may stay below it.
    limits_all: bool,
    limits: Limits,
}

impl Pool {
    fn new(peers: usize, limits: Limits) -> Self {
        let Limits { depth, total, volume } = limits;
        let (depth, volume) = (depth.min(MAX_COUNT), volume.min(MAX_BYTES));
        let limits_all = u64::from(total) < peers as u64 * u64::from(depth);
        Self { out: AtomicU32::new(0), limits_all, limits: Limits { depth, total, volume } }
    }

    #[inline(always)]
    fn take<M: Mode>(&self, word: &AtomicU64, bytes: u32) -> Result<(), Exhausted> {
        if !M::PARALLEL {
            let out = self.out.load(Relaxed);
            if self.limits_all && out >= self.limits.total {
                return Err(Exhausted::Total);
            }
            word.store(self.after_take(word.load(Relaxed), bytes)?, Relaxed);
            self.out.store(out + u32::from(self.limits_all), Relaxed);
            return Ok(());
        }
        if self.limits_all {
            self.take_of_total()?;
        }
        let mut seen = word.load(Relaxed);
        loop {
            let next = match self.after_take(seen, bytes) {
                Ok(next) => next,
                Err(why) => {
                    if self.limits_all {
                        // A read-modify-write, so it stays in the release sequence of the gives before it.
                        self.out.fetch_sub(1, Relaxed);
                    }
                    return Err(why);
                }
            };
            // Acquire: as in `take_of_total`.
            match word.compare_exchange_weak(seen, next, ord!("credit.take_peer", Acquire), Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    fn take_of_total(&self) -> Result<(), Exhausted> {
        // Acquire: the room that was freed before some thread's give of this credit is free for us (and, through our
        // message, for the peer).
        let take_total = |out: u32| (out < self.limits.total).then(|| out + 1);
        let order = ord!("credit.take_total", Acquire);
        self.out.fetch_update(order, Relaxed, take_total).map(drop).map_err(|_| Exhausted::Total)
    }

    #[inline(always)]
    fn after_take(&self, word: u64, bytes: u32) -> Result<u64, Exhausted> {
        let (count, weight) = unpack(word);
        if count >= self.limits.depth {
            return Err(Exhausted::Peer);
        }
        let weight = weight + u64::from(bytes);
        if weight > self.limits.volume {
            return Err(Exhausted::Volume);
        }
        Ok(pack(count + 1, weight))
    }

    #[inline(always)]
    fn give<M: Mode>(&self, word: &AtomicU64, peer: u32, count: u32, bytes: u64) -> Result<(), OverReturned> {
        let after = |word: u64| {
            let (out_count, out_bytes) = unpack(word);
            match (out_count.checked_sub(count), out_bytes.checked_sub(bytes)) {
                (Some(count), Some(bytes)) => Ok(pack(count, bytes)),
                _ => Err(OverReturned { peer, count, bytes, out_count, out_bytes }),
            }
        };
        if !M::PARALLEL {
            word.store(after(word.load(Relaxed))?, Relaxed);
            let count = if self.limits_all { count } else { 0 };
            self.out.store(self.out.load(Relaxed) - count, Relaxed);
            return Ok(());
        }
        let mut seen = word.load(Relaxed);
        loop {
            // Release, here and below: what this thread has done with the message is done for the next taker.
            match word.compare_exchange_weak(seen, after(seen)?, ord!("credit.give_peer", Release), Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if self.limits_all {
            // The total goes last, so that it never falls below the sum of the peers'.
            self.out.fetch_sub(count, ord!("credit.give_total", Release));
        }
        Ok(())
    }
}

/// What is out where peers do not all share limits.
struct Pools<W, N> {
    /// For each peer the number of its pool.
    of: N,
    out: W,
    pools: Box<[Pool]>,
}

/// The sender's side: what is out, to each peer and in all.
///
/// In [`Par`] any number of threads take and give; in `Seq` the same words are updated without a bus lock, and the
/// type is not `Sync`. The word of each peer is in `W`, and the number of its limits in `N`.
pub struct Credits<M: Mode = Par, W = Box<[AtomicU64]>, N = Box<[u8]>> {
    /// What is out to each peer, where all share limits. No peer is found here where they do not: so only who finds none looks further.
    out: W,
    pool: Pool,
    others: Option<Pools<W, N>>,
    mode: PhantomData<M::Lock<()>>,
}

impl Credits<Par> {
    /// Nothing out: `depth` requests and `volume` bytes for each of `peers`, `total` requests in all.
    pub fn new(peers: u32, depth: u32, total: u32, volume: u64) -> Self {
        Self::for_mode(peers, Limits { depth, total, volume })
    }
}

impl<M: Mode> Credits<M> {
    /// As [`new`](Credits::new), for any thread mode.
    pub fn for_mode(peers: u32, limits: Limits) -> Self {
        Self::of_one_pool(words(peers as usize), limits)
    }
}

impl<M: Mode, W: Deref<Target = [AtomicU64]>, N: Deref<Target = [u8]>> Credits<M, W, N> {
    fn of_one_pool(out: W, limits: Limits) -> Self {
        let pool = Pool::new(out.len(), limits);
        Self { out, pool, others: None, mode: PhantomData }
    }

    /// Nothing out, where each peer shares the limits with some of the others: `of[peer]` is the number of its limits. `words` makes so
    /// many words of zero.
    ///
    /// # Panics
    /// If a peer has a number that is not there.
    pub fn by_pool(of: N, limits: &[Limits], words: impl Fn(usize) -> W) -> Self {
        assert!(of.iter().all(|&number| usize::from(number) < limits.len()), "a peer without limits");
        if let [limits] = limits {
            return Self::of_one_pool(words(of.len()), *limits);
        }
        let sharing = |number| of.iter().filter(|&&of| usize::from(of) == number).count();
        let pools = limits.iter().enumerate().map(|(number, limits)| Pool::new(sharing(number), *limits));
        let out = words(of.len());
        let others = Pools { pools: pools.collect(), of, out };
        Self { others: Some(others), ..Self::of_one_pool(words(0), Limits { depth: 0, total: 0, volume: 0 }) }
    }

    /// A peer's pool, and what is out to it.
    fn of(&self, peer: u32) -> (&Pool, &AtomicU64) {
        let peer = peer as usize;
        match &self.others {
            Some(Pools { of, out, pools }) => (&pools[usize::from(of[peer])], &out[peer]),
            None => (&self.pool, &self.out[peer]),
        }
    }

    /// Takes one of the total, one of `peer`'s number and `bytes` of its volume: all three or nothing.
    ///
    /// No limit is ever exceeded. A take that fails at the peer holds one of the total for a moment, so that another
    /// thread's take may fail too; who fails polls and tries again.
    ///
    /// # Errors
    /// Which limit has been reached.
    ///
    /// # Panics
    /// If there is no such peer.
    #[inline]
    pub fn take(&self, peer: u32, bytes: u32) -> Result<(), Exhausted> {
        match self.out.get(peer as usize) {
            Some(word) => self.pool.take::<M>(word, bytes),
            None => self.take_of_others(peer, bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_of_others(&self, peer: u32, bytes: u32) -> Result<(), Exhausted> {
        let (pool, word) = self.of(peer);
        pool.take::<M>(word, bytes)
    }

    /// Which limit keeps a request of `bytes` to `peer` back, as things stand now.
    ///
    /// # Panics
    /// If there is no such peer.
    #[cold]
    pub fn lacks(&self, peer: u32, bytes: u32) -> Option<Exhausted> {
        let (pool, word) = self.of(peer);
        if pool.limits_all && pool.out.load(Relaxed) >= pool.limits.total {
            return Some(Exhausted::Total);
        }
        pool.after_take(word.load(Relaxed), bytes).err()
    }

    /// Enters credits that `peer` returned.
    ///
    /// # Errors
    /// The peer returned more than is out; nothing has changed.
    ///
    /// # Panics
    /// If there is no such peer.
    #[inline]
    pub fn give(&self, peer: u32, count: u32, bytes: u64) -> Result<(), OverReturned> {
        match self.out.get(peer as usize) {
            Some(word) => self.pool.give::<M>(word, peer, count, bytes),
            None => self.give_to_others(peer, count, bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn give_to_others(&self, peer: u32, count: u32, bytes: u64) -> Result<(), OverReturned> {
        let (pool, word) = self.of(peer);
        pool.give::<M>(word, peer, count, bytes)
    }

    /// How many requests and bytes are out to `peer`.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn out(&self, peer: u32) -> (u32, u64) {
        unpack(self.of(peer).1.load(Relaxed))
    }

    /// How much may be out to a peer, and to those that share its limits.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn limits(&self, peer: u32) -> Limits {
        self.of(peer).0.limits
    }

    /// How many requests are out to all peers together.
    pub fn total_out(&self) -> u32 {
        if self.pool.limits_all {
            return self.pool.out.load(Relaxed);
        }
        let words = self.others.as_ref().map_or(&self.out, |others| &others.out);
        words.iter().map(|word| unpack(word.load(Relaxed)).0).sum()
    }
}

impl<M: Mode, W: Deref<Target = [AtomicU64]>, N: Deref<Target = [u8]>> core::fmt::Debug for Credits<M, W, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Credits({} out)", self.total_out())
    }
}

/// The receiver's side: what is owed to each peer, in `W`. As [`Credits`], without a bus lock in `Seq`.
#[derive(Debug)]
pub struct Owed<M: Mode = Par, W = Box<[AtomicU64]>> {
    owed: W,
    /// How many peers are owed something; for a moment off by the threads that are in between.
    owing: AtomicU32,
    mode: PhantomData<M::Lock<()>>,
}

impl Owed<Par> {
    /// Nothing owed to any of `peers`.
    pub fn new(peers: u32) -> Self {
        Self::for_mode(peers)
    }
}

impl<M: Mode> Owed<M> {
    /// As [`new`](Owed::new), for either thread mode.
    pub fn for_mode(peers: u32) -> Self {
        Self::over(words(peers as usize))
    }
}

impl<M: Mode, W: Deref<Target = [AtomicU64]>> Owed<M, W> {
    /// As [`new`](Owed::new), with a word of zero for each peer.
    pub fn over(words: W) -> Self {
        Self { owed: words, owing: AtomicU32::new(0), mode: PhantomData }
    }

    /// Notes that a request of `bytes` has been handled and not replied to. Returns how many credits and bytes `peer` is
    /// owed now.
    ///
    /// # Panics
    /// If there is no such peer.
    #[inline]
    pub fn owe(&self, peer: u32, bytes: u32) -> (u32, u64) {
        self.add(peer, 1, bytes.into())
    }

    /// Puts back what was [collected](Self::collect) and could not be returned.
    ///
    /// # Panics
    /// If there is no such peer.
    #[cold]
    pub fn restore(&self, peer: u32, count: u32, bytes: u64) {
        if count > 0 {
            self.add(peer, count, bytes);
        }
    }

    #[inline]
    fn add(&self, peer: u32, count: u32, bytes: u64) -> (u32, u64) {
        let word = &self.owed[peer as usize];
        let more = pack(count, bytes);
        let before = if M::PARALLEL {
            // Release: the handling is done before whoever returns the credit returns it.
            word.fetch_add(more, ord!("owed.owe", Release))
        } else {
            let before = word.load(Relaxed);
            word.store(before + more, Relaxed);
            before
        };
        let (count_before, bytes_before) = unpack(before);
        if count_before == 0 {
            self.owing_changes(1);
        }
        (count_before + count, bytes_before + bytes)
    }

    #[inline]
    fn owing_changes(&self, by: i32) {
        if M::PARALLEL {
            self.owing.fetch_add(by as u32, Relaxed);
        } else {
            self.owing.store(self.owing.load(Relaxed).wrapping_add(by as u32), Relaxed);
        }
    }

    /// Takes up to `max_count` (and at most [`MAX_RETURN`]) of the credits owed to `peer`, and all bytes owed to it:
    /// what remains is credits without bytes, so that nothing is lost.
    ///
    /// # Panics
    /// If there is no such peer.
    #[inline]
    pub fn collect(&self, peer: u32, max_count: u32) -> (u32, u64) {
        let word = &self.owed[peer as usize];
        let mut seen = word.load(Relaxed);
        loop {
            let (count, bytes) = unpack(seen);
            let taken = count.min(max_count).min(MAX_RETURN);
            if taken == 0 {
                return (0, 0);
            }
            let left = pack(count - taken, 0);
            let swapped = if M::PARALLEL {
                word.compare_exchange_weak(seen, left, ord!("owed.collect", Acquire), Relaxed)
            } else {
                word.store(left, Relaxed);
                Ok(seen)
            };
            match swapped {
                Ok(_) => {
                    if left == 0 {
                        self.owing_changes(-1);
                    }
                    return (taken, bytes);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// How many credits and bytes `peer` is owed.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn to(&self, peer: u32) -> (u32, u64) {
        unpack(self.owed[peer as usize].load(Relaxed))
    }

    /// Whether anybody is owed anything.
    #[inline]
    pub fn owes(&self) -> bool {
        self.owing.load(Relaxed) != 0
    }

    /// A peer that is owed something, the first at or after `from`, going round. One load where nobody is.
    #[inline]
    pub fn next_owing(&self, from: u32) -> Option<u32> {
        if !self.owes() {
            return None;
        }
        let peers = self.owed.len() as u32;
        let from = if from < peers { from } else { 0 };
        (from..peers).chain(0..from).find(|&peer| self.owed[peer as usize].load(Relaxed) != 0)
    }
}
