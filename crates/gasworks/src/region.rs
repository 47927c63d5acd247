//! Regions: memory that peers may name beside the segments, created while a job runs.

use crate::{Agent, Error, GlobalPtr, Job, Part, ThreadMode};
use bytemuck::Pod;
use gasworks_core::View;
use gasworks_memory::{Asked, MemoryError, RegionHandle, RegionId, Rights};

/// What comes before what a rank says of its part: whether it could be created.
const CREATED: u8 = 0;
const REFUSED: u8 = 1;

/// A region of memory of each rank: what [`Job::create_region`] creates. Puts, gets, Longs and atomic operations reach the parts of all
/// ranks by [places](Self::at) in them, as they do segments.
///
/// It stays until it is [withdrawn](Self::withdraw), or the job is dropped, whether or not this value is kept.
pub struct Region<'job, M: ThreadMode> {
    job: &'job Job<M>,
    id: RegionId,
}

impl<M: ThreadMode> std::fmt::Debug for Region<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "region {}", self.id)
    }
}

impl<M: ThreadMode> Job<M> {
    /// Creates a region, of which this rank's part is `len` bytes of zeroes. Collective: all ranks create and withdraw regions in the same
    /// order, while no barrier is under way; the lengths may differ, and be 0. When it returns, each may use the parts of all.
    ///
    /// # Errors
    /// The transport has no regions, 191 of them are in use, a rank lacks the memory, or creates regions in another order: then no rank has
    /// the region. A rank that is at another collective call is waited for.
    pub fn create_region(&self, len: u64) -> Result<Region<'_, M>, Error> {
        self.create_region_with(len, Rights::all())
    }

    /// As [`create_region`](Self::create_region), where peers may do no more than that with this rank's part. Rights may differ.
    ///
    /// # Errors
    /// Those of [`create_region`](Self::create_region).
    pub fn create_region_with(&self, len: u64, rights: Rights) -> Result<Region<'_, M>, Error> {
        self.create_region_of(Part::new(len).with_rights(rights))
    }

    /// As [`create_region`](Self::create_region), where each rank says what its part is to be: new memory, or memory that it gives. Whatever it is,
    /// puts, gets, Longs and atomic operations reach it. Memory that is given is not mapped by the ranks of its host, which therefore reach
    /// it as memory of another host, by the network. Where there is none, puts, gets and Longs reach it by `process_vm_readv` and
    /// `process_vm_writev` if the system allows that and `GASWORKS_PROCESS_VM` is not 0; else, and atomic operations, by messages: its owner
    /// has to poll for these. Words for atomic operations are aligned in the memory itself, and not only in the region.
    ///
    /// # Errors
    /// Those of [`create_region`](Self::create_region). Memory that is given cannot be a part if it wraps around, is at address 0, overlaps a
    /// segment or another region, or the network does not take it. What a rank gave is dropped then, or kept until the job is dropped.
    pub fn create_region_of(&self, part: Part) -> Result<Region<'_, M>, Error> {
        let (asked, given) = part.asked();
        let peers = self.engine().peers();
        let id = peers.next_region().map_err(creating)?;
        let region = Region { job: self, id };
        self.meet()?;
        let asked = self.exchange_regions(&encode(id, asked))?;
        let asked = (0..).zip(asked.iter()).map(|(rank, theirs)| decode(id, rank, theirs));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let created = peers.create(id, &asked, given).map_err(creating);
        let key = created.and_then(|()| Ok(self.engine().register_region(id)?));
        let base = peers.own_in(id).as_ptr().addr() as u64;
        let said = match &key {
            Ok(key) => [&[CREATED][..], &base.to_le_bytes(), key].concat(),
            Err(error) => [&[REFUSED][..], error.to_string().as_bytes()].concat(),
        };
        let all = self.exchange_regions(&said)?;
        let refused = (0..).zip(all.iter()).find_map(|(rank, said)| match said.split_first() {
            Some((&REFUSED, cause)) => Some((rank, String::from_utf8_lossy(cause).into_owned())),
            _ if part_of(said).is_none() => Some((rank, "it did not say where its part is".into())),
            _ => None,
        });
        if let Some((rank, cause)) = refused {
            // All take part in that; there is nothing to end where it could not be created.
            let ended = region.end(&key.as_ref().map(Vec::clone).unwrap_or_default());
            key?;
            ended?;
            return Err(Error::NoRegion { rank, cause });
        }
        if !peers.publish(id, all.iter().filter_map(part_of)) {
            // So it is for all ranks, which end it together.
            region.end(&key?)?;
            let cause = "the keys of the ranks' parts have different lengths".into();
            return Err(Error::NoRegion { rank: self.rank(), cause });
        }
        // A message to the region may be handled by another thread of a rank that has not come so far.
        self.meet()?;
        Ok(region)
    }
}

impl<M: ThreadMode> Region<'_, M> {
    /// The name of a rank's part.
    pub fn handle(&self, owner: u32) -> RegionHandle {
        RegionHandle { owner, id: self.id }
    }

    /// The length of a rank's part in bytes.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn len(&self, rank: u32) -> Result<u64, Error> {
        let peers = self.job.engine().peers();
        let none = || using(MemoryError::NoSuchRank { rank, ranks: peers.ranks() });
        peers.len_in(self.id, rank).ok_or_else(none)
    }

    /// The place of `count` values of `T` at `offset` of a rank's part.
    ///
    /// # Errors
    /// There is no such rank, or they are not all inside.
    pub fn at<T: Pod>(&self, rank: u32, offset: u64, count: u64) -> Result<GlobalPtr<T>, Error> {
        let size = self.len(rank)?;
        let region = self.handle(rank);
        let len = count.saturating_mul(size_of::<T>() as u64);
        let outside = || using(MemoryError::OutsideRegion { region, offset, len, size });
        let inside = offset.checked_add(len).is_some_and(|end| end <= size);
        // An empty range at the end of the largest region has no place.
        let place = self.id.place(offset).filter(|_| inside).ok_or_else(outside)?;
        Ok(GlobalPtr::new(rank, place))
    }

    /// Ends the region and gives its memory back. Collective, as [`Job::create_region`]. Puts, gets and atomic operations that are under
    /// way are completed before; that Longs to it have been handled their senders are to know before they call this. Who uses a place in the
    /// region afterwards gets an error.
    ///
    /// # Errors
    /// A peer or the launcher fails, or the system refuses to take the memory.
    pub fn withdraw(self) -> Result<(), Error> {
        self.job.engine().drain()?;
        self.job.meet()?;
        let key = self.key();
        self.end(&key)
    }

    /// The network's key for this rank's part.
    fn key(&self) -> Vec<u8> {
        let peers = self.job.engine().peers();
        self.id.place(0).map_or(Vec::new(), |place| peers.remote(self.job.rank(), place).0.to_vec())
    }

    /// As [`withdraw`](Self::withdraw), of a region to which nobody sends messages any more.
    fn end(&self, key: &[u8]) -> Result<(), Error> {
        let (engine, peers) = (self.job.engine(), self.job.engine().peers());
        let withdrawn = peers.withdraw(self.id).map_err(withdrawing);
        // No rank starts anything from now on, and what other threads had started is done.
        engine.drain()?;
        self.job.meet()?;
        let deregistered = engine.deregister_region(key.to_vec());
        let unmapped = withdrawn.and_then(|()| peers.unmap(self.id).map_err(withdrawing));
        self.job.meet()?;
        // In any case: all ranks have to agree on what is free.
        let freed = peers.free(self.id).map_err(withdrawing);
        deregistered?;
        unmapped?;
        freed
    }
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// This agent with a region in the place of the segments: offsets in pointers are offsets in ranks' parts of it, and so are those that
    /// [`Agent::segment`] gives. What goes to a part that is mapped here, and allows everything, costs no more than to a segment: puts, gets,
    /// values and atomic operations, which by a place that [`Region::at`] gives take a longer way. Its ranks are those of the job.
    ///
    /// ```
    /// # use gasworks::{Config, Job, Seq, Table};
    /// # fn main() -> Result<(), gasworks::Error> {
    /// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
    /// let agent = job.agent()?;
    /// let region = job.create_region(4096)?;
    /// let within = agent.on_region(&region)?;
    /// let word = within.segment(agent.rank())?.at::<u64>(64, 1)?;
    /// within.put_value(word, 7)?;
    /// assert_eq!(agent.get_value(region.at::<u64>(agent.rank(), 64, 1)?)?, 7);
    /// region.withdraw()?;
    /// assert!(within.put_value(word, 8).is_err());
    /// # drop((agent, within));
    /// # job.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// The region is of another job.
    pub fn on_region(&self, region: &Region<'job, M>) -> Result<Agent<'job, M>, Error> {
        let (job, id) = (region.job, region.id);
        if !std::ptr::eq(self.engine(), job.engine()) {
            return Err(Error::OtherJob("the region"));
        }
        let none = || using(MemoryError::NoSuchRegion { region: region.handle(job.rank()) });
        let view = View::region(job.engine().peers(), id).ok_or_else(none)?;
        Ok(Agent::within(job.engine(), job.barrier(), view, job.rank()))
    }
}

fn creating(cause: MemoryError) -> Error {
    gasworks_core::Error::Memory { during: "create a region", cause }.into()
}

fn using(cause: MemoryError) -> Error {
    gasworks_core::Error::Memory { during: "place in a region", cause }.into()
}

fn withdrawing(cause: MemoryError) -> Error {
    gasworks_core::Error::Memory { during: "withdraw a region", cause }.into()
}

/// What a rank says that has a part of a region: the address at which it begins, and the network's key for it.
fn part_of(said: &[u8]) -> Option<(u64, &[u8])> {
    let (base, key) = said.strip_prefix(&[CREATED])?.split_first_chunk()?;
    Some((u64::from_le_bytes(*base), key))
}

/// What a rank says that asks for a part of a region.
fn encode(id: RegionId, asked: Asked) -> Vec<u8> {
    let words = [RegionHandle { owner: 0, id }.to_words()[1..].to_vec(), vec![asked.rights.bits()]].concat();
    let numbers = [asked.len].into_iter().chain(asked.given).flat_map(u64::to_le_bytes);
    words.into_iter().flat_map(u32::to_le_bytes).chain(numbers).collect()
}

/// What a rank asks for, if it is to create the same region.
fn decode(id: RegionId, rank: u32, said: &[u8]) -> Result<Asked, Error> {
    let mine = encode(id, Asked { len: 0, rights: Rights::empty(), given: None });
    let wrong = || Error::NoRegion { rank, cause: format!("it is not about to create region {id}") };
    // The first two words are the region's, then the rights, the length, and the address of what is given.
    let (words, numbers) = said.split_at_checked(12).ok_or_else(wrong)?;
    let (rights, numbers) = (words[8..].first_chunk(), numbers.as_chunks());
    let (rights, (&[len, ref given @ ..], [])) = (rights.ok_or_else(wrong)?, numbers) else {
        return Err(wrong());
    };
    if words[..8] != mine[..8] || given.len() > 1 {
        return Err(wrong());
    }
    let rights = Rights::from_bits_truncate(u32::from_le_bytes(*rights));
    let given = given.first().map(|start| u64::from_le_bytes(*start));
    Ok(Asked { len: u64::from_le_bytes(len), rights, given })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_survives_the_way_and_nothing_else_does() {
        let id = RegionId { index: 65, generation: 3 };
        let asked = Asked { len: 1 << 33, rights: Rights::READ, given: Some(4096) };
        let new = Asked { given: None, ..asked };
        let said = encode(id, asked);
        assert_eq!(decode(id, 1, &said).ok(), Some(asked));
        assert_eq!(decode(id, 1, &said[..20]).ok(), Some(new));
        for cut in (0..said.len()).filter(|&cut| cut != 20) {
            assert!(decode(id, 1, &said[..cut]).is_err(), "cut at {cut}");
        }
        assert!(decode(id, 1, &[&said[..], &[0; 8]].concat()).is_err());
        let other = RegionId { generation: 2, ..id };
        let refused = decode(other, 1, &said).expect_err("another region").to_string();
        assert_eq!(refused, "create a region: rank 1: it is not about to create region 65.2");
    }
}
