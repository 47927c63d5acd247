//! Regions: memory that peers may name beside the segments, created while a job runs.

use crate::{Agent, Error, GlobalPtr, Job, Part, Team, ThreadMode};
use bytemuck::Pod;
use gasworks_core::View;
use gasworks_extended::collective::Combine;
use gasworks_extended::team::{self, TeamNumber};
use gasworks_memory::{Asked, MemoryError, RegionHandle, RegionId, RegionTable, Rights};
use std::sync::Arc;

/// What comes before what a rank says of its part: whether it could be created.
const CREATED: u8 = 0;
const REFUSED: u8 = 1;

/// A region of memory of each rank, or of each member of a team: what [`Job::create_region`] creates. Puts, gets, Longs and atomic operations reach the
/// parts of all by [places](Self::at) in them, as they do segments.
///
/// It stays until it is [withdrawn](Self::withdraw), or the job is dropped, whether or not this value is kept.
pub struct Region<'job, M: ThreadMode> {
    job: &'job Job<M>,
    /// Who has created it.
    team: Arc<team::Team>,
    id: RegionId,
}

impl<M: ThreadMode> std::fmt::Debug for Region<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "region {}", self.id)
    }
}

/// The largest of what members say of each column.
struct MaxGeneration;

impl Combine for MaxGeneration {
    fn element(&self) -> usize {
        size_of::<u16>()
    }
    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        for (before, after) in before.as_chunks_mut().0.iter_mut().zip(after.as_chunks().0) {
            *before = u16::from_le_bytes(*before).max(u16::from_le_bytes(*after)).to_le_bytes();
        }
    }
    fn commutes(&self) -> bool {
        true
    }
}

impl<M: ThreadMode> Job<M> {
    /// Creates a region, of which this rank's part is `len` bytes of zeroes. Collective: all ranks call it, in the same order as other collectives of
    /// [`everyone`](Self::everyone); the lengths may differ, and be 0. When it returns, each may use the parts of all.
    ///
    /// # Errors
    /// The transport has no regions, all 191 columns are in use, or a rank lacks the memory: then no rank has the region. A rank that is at another collective call of
    /// the team is an error, or waits for the others, as in any collective.
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
    /// segment or another region, or the network does not take it; but the very same bytes may be given again with the same rights. What a rank gave is
    /// dropped then, or kept until the job is dropped.
    pub fn create_region_of(&self, part: Part) -> Result<Region<'_, M>, Error> {
        self.create_region_among(self.teams().1, part)
    }

    /// As [`create_region_of`](Self::create_region_of), of the members of a team: collective among these. Other ranks have no part in it and know nothing of it. New
    /// memory is for regions of all ranks.
    ///
    /// ```
    /// # use gasworks::{Config, Job, Part, Seq, Table};
    /// # fn main() -> Result<(), gasworks::Error> {
    /// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
    /// let agent = job.agent()?;
    /// let half = job.everyone().split(&agent, Some(agent.rank() % 2), 0)?.expect("a rank with a colour has a team");
    /// let region = job.create_region_on(&half, Part::of(Box::new([agent.rank(); 8])))?;
    /// let last = half.rank_of(half.size() - 1).expect("the last member");
    /// assert_eq!(agent.get_value::<u32>(region.at(last, 4, 1)?)?, last);
    /// region.withdraw()?;
    /// # drop((half, agent));
    /// # job.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`create_region_of`](Self::create_region_of); the team is another job's, or a member asks for new memory.
    pub fn create_region_on(&self, team: &Team<'_, M>, part: Part) -> Result<Region<'_, M>, Error> {
        let (engine, _, of) = team.parts();
        match std::ptr::eq(engine, self.engine()) {
            true => self.create_region_among(of, part),
            false => Err(Error::OtherJob("the team")),
        }
    }

    /// The same of a team as [`teams`](Self::teams) has it.
    ///
    /// # Errors
    /// Those of [`create_region_on`](Self::create_region_on).
    pub fn create_region_among(&self, team: &Arc<team::Team>, part: Part) -> Result<Region<'_, M>, Error> {
        let (asked, given) = part.asked();
        let (peers, members) = (self.engine().peers(), team.members());
        let mut region = Region { job: self, team: team.clone(), id: RegionId { index: 0, generation: 0 } };
        region.id = region.agree()?;
        let said = region.tell(&encode(asked))?;
        let mut all = vec![Asked { len: 0, rights: Rights::empty(), given: None }; peers.ranks() as usize];
        for (rank, said) in members.iter().zip(&said) {
            let cause = || Error::NoRegion { rank, cause: "it has not said what its part is to be".into() };
            let asked = decode(said).ok_or_else(cause).inspect_err(|_| peers.release(region.id))?;
            // All ranks of a host lay their file out alike, by the order of the collectives of everyone.
            if team.number() != TeamNumber::EVERYONE && asked.given.is_none() && asked.len > 0 {
                peers.release(region.id);
                let cause = "new memory is for regions of everyone, and this is one of another team".into();
                return Err(Error::NoRegion { rank, cause });
            }
            all[rank as usize] = asked;
        }
        let created = peers.create(region.id, &all, given).map_err(creating);
        let key = created.and_then(|()| Ok(self.engine().register_region(region.id)?));
        let base = peers.own_in(region.id).as_ptr().addr() as u64;
        let said = region.tell(&match &key {
            Ok(key) => [&[CREATED][..], &base.to_le_bytes(), key].concat(),
            Err(error) => [&[REFUSED][..], error.to_string().as_bytes()].concat(),
        })?;
        let refused = members.iter().zip(&said).find_map(|(rank, said)| match said.split_first() {
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
        let key = key?;
        // Who is no member has a key that nobody uses.
        let none = vec![0; key.len()];
        let mut parts = vec![(0, &none[..]); peers.ranks() as usize];
        for (rank, part) in members.iter().zip(&said) {
            parts[rank as usize] = part_of(part).unwrap_or((0, &none));
        }
        if !peers.publish(region.id, parts.into_iter()) {
            // So it is for all of them, which end it together.
            region.end(&key)?;
            let cause = "the keys of the ranks' parts have different lengths".into();
            return Err(Error::NoRegion { rank: self.rank(), cause });
        }
        // A message to the region may be handled by another thread of a rank that has not come so far.
        region.meet()?;
        Ok(region)
    }
}

impl<M: ThreadMode> Region<'_, M> {
    /// What all who create it call it: each says what it can.
    fn agree(&self) -> Result<RegionId, Error> {
        let (engine, teams) = (self.job.engine(), self.job.teams().0);
        let TeamNumber { maker, counter } = self.team.number();
        // Other threads may create regions with other teams: where one has taken the name on any of these ranks, all try another, and other teams others again.
        let mut nth = 0u32;
        loop {
            let mut all = engine.peers().generations().map_err(creating)?.map(u16::to_le_bytes);
            teams.reduce(engine, &self.team, None, all.as_flattened_mut(), MaxGeneration)?;
            let id = RegionTable::name_region(&all.map(u16::from_le_bytes), nth).map_err(creating)?;
            let is_ours = engine.peers().reserve(id);
            let mut is_taken = u16::from(!is_ours).to_le_bytes();
            teams.reduce(engine, &self.team, None, &mut is_taken, MaxGeneration)?;
            if is_taken == [0; 2] {
                return Ok(id);
            }
            if is_ours {
                engine.peers().release(id);
            }
            nth = nth.wrapping_add(1 + maker.wrapping_mul(31).wrapping_add(counter) % 61);
        }
    }

    /// All who create it have come.
    fn meet(&self) -> Result<(), Error> {
        let (engine, teams) = (self.job.engine(), self.job.teams().0);
        Ok(teams.reduce(engine, &self.team, None, &mut [0; 2], MaxGeneration)?)
    }

    /// What each of those who create it says, in the order of the members.
    fn tell(&self, said: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let (engine, teams) = (self.job.engine(), self.job.teams().0);
        let mut lens = vec![[0; 8]; self.team.members().size() as usize];
        let len = (said.len() as u64).to_le_bytes();
        teams.all_gather(engine, &self.team, &len, lens.as_flattened_mut())?;
        let lens: Vec<_> = lens.into_iter().map(|len| u64::from_le_bytes(len) as usize).collect();
        let longest = lens.iter().copied().max().unwrap_or(0).max(1);
        let mut own = said.to_vec();
        own.resize(longest, 0);
        let mut all = vec![0; longest * lens.len()];
        teams.all_gather(engine, &self.team, &own, &mut all)?;
        Ok(all.chunks_exact(longest).zip(lens).map(|(said, len)| said[..len].to_vec()).collect())
    }

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

    /// Ends the region and gives its memory back. Collective among those who created it. Puts, gets and atomic operations that are under
    /// way are completed before; that Longs to it have been handled their senders are to know before they call this. Who uses a place in the
    /// region afterwards gets an error.
    ///
    /// # Errors
    /// A peer fails, or the system refuses to take the memory.
    pub fn withdraw(self) -> Result<(), Error> {
        self.job.engine().drain()?;
        self.meet()?;
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
        self.meet()?;
        let deregistered = engine.deregister_region(key.to_vec());
        let unmapped = withdrawn.and_then(|()| peers.unmap(self.id).map_err(withdrawing));
        self.meet()?;
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
        let &Region { job, id, .. } = region;
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
fn encode(Asked { len, rights, given }: Asked) -> Vec<u8> {
    let numbers = [rights.bits().into(), len].into_iter().chain(given);
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// What a rank asks for.
fn decode(said: &[u8]) -> Option<Asked> {
    let (numbers, rest) = said.as_chunks();
    let numbers: Vec<_> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
    let (&[rights, len, ref given @ ..], []) = (&numbers[..], rest) else { return None };
    let rights = Rights::from_bits_truncate(u32::try_from(rights).ok()?);
    (given.len() <= 1).then(|| Asked { len, rights, given: given.first().copied() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_survives_the_way_and_nothing_else_does() {
        let asked = Asked { len: 1 << 33, rights: Rights::READ, given: Some(4096) };
        let new = Asked { given: None, ..asked };
        let said = encode(asked);
        assert_eq!((decode(&said), decode(&encode(new))), (Some(asked), Some(new)));
        for cut in (0..said.len()).filter(|&cut| cut != 16) {
            assert!(decode(&said[..cut]).is_none(), "cut at {cut}");
        }
        assert!(decode(&[&said[..], &[0; 8]].concat()).is_none());
    }

    #[test]
    fn the_largest_of_each_column_is_what_all_can_create() {
        let of = |words: [u16; 3]| words.map(u16::to_le_bytes);
        let mut all = of([0, 7, u16::MAX]);
        MaxGeneration.combine(all.as_flattened_mut(), of([3, 2, 0]).as_flattened_mut());
        assert_eq!(all, of([3, 7, u16::MAX]));
    }
}
