//! The ranks of a host: they find each other by attaching, and gather among themselves what would otherwise go through
//! the launcher once for each of them.
//!
//! - `meeting`: how they find each other; `leaders`: connections between hosts, by which these hear of the end.
//! - `exchange`: everybody's bytes to everybody; `parcel`: what goes over these connections; `map`: which rank is on which host, where there are several.

pub(crate) mod exchange;
pub(crate) mod leaders;
mod map;
pub(crate) mod meeting;
mod parcel;
mod parts;

pub use map::Hosts;
pub(crate) use meeting::meet;
pub use parcel::Parcel;
pub use parts::Parts;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gasworks_os::OsError;
use gasworks_os::unix::{self, Stream};
use gasworks_sync::kill_point;

use crate::lifeline::Line;
use crate::{Bootstrap, BootstrapError};
use parcel::{receive, send_parcel, send_reason};

const GATHER: &str = "gather among the ranks of this host";
/// How much longer than the leader the others wait, so that they hear from it what went wrong.
const GRACE: Duration = Duration::from_secs(2);
/// How long ranks wait for each other where the job sets no limit.
const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

/// The ranks that share a host with this one.
#[derive(Debug)]
pub struct Host {
    me: u32,
    leader: u32,
    /// In rising order.
    ranks: Vec<u32>,
    /// The connections: to all others at the leader, in the order of `ranks`; to the leader elsewhere. Whoever speaks on
    /// them takes part in a collective operation, one at a time.
    streams: Mutex<Vec<Stream>>,
}

/// The connections by which ranks tell each other of the end.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Rank and connection: of all others of the host at its leader, of the leader elsewhere.
    pub(crate) lines: Vec<(u32, Line)>,
    pub(crate) leads: bool,
    /// Of the leaders of other hosts, at the first; and whether these are all.
    pub(crate) hosts: Vec<(u32, Line)>,
    pub(crate) reaches_all: bool,
    /// Of the first leader, at the others.
    pub(crate) above: Option<(u32, Line)>,
}

fn lost(rank: u32, cause: OsError) -> BootstrapError {
    let what = match cause.cause.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            format!("rank {rank}, on this host, is gone")
        }
        _ => format!("rank {rank}, on this host: {cause}"),
    };
    BootstrapError::protocol(GATHER, what)
}

impl Host {
    /// A host with this one rank.
    pub fn alone(rank: u32) -> Self {
        Self { me: rank, leader: rank, ranks: vec![rank], streams: Mutex::default() }
    }

    /// These ranks, of which `leader` has `streams` to the others, and the others to it.
    fn of(me: u32, leader: u32, ranks: Vec<u32>, streams: Vec<Stream>) -> Self {
        Self { me, leader, ranks, streams: Mutex::new(streams) }
    }

    /// These ranks, connected from the start; the first leads.
    pub(crate) fn together(ranks: &[u32]) -> gasworks_os::Result<Vec<Self>> {
        let Some((&leader, others)) = ranks.split_first() else { return Ok(Vec::new()) };
        let pairs = others.iter().map(|_| unix::pair()).collect::<gasworks_os::Result<Vec<_>>>()?;
        let (led, leading): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let streams = std::iter::once(leading).chain(led.into_iter().map(|stream| vec![stream]));
        let host = |(&me, streams)| Self::of(me, leader, ranks.into(), streams);
        Ok(ranks.iter().zip(streams).map(host).collect())
    }

    /// Finds the others. Collective over all ranks of the job; it uses the key `host`.
    ///
    /// # Errors
    /// The launcher fails, a rank of this host is lost meanwhile, or the system refuses.
    pub fn meet(job: &dyn Bootstrap, limit: Duration) -> Result<Self, BootstrapError> {
        meet(job, limit, None).map(|(host, _)| host)
    }

    /// The ranks of the host in rising order, this one among them.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The rank that collects and hands out.
    pub fn leader(&self) -> u32 {
        self.leader
    }

    /// Whether this rank is the leader.
    pub fn leads(&self) -> bool {
        self.me == self.leader
    }

    /// Collective over the ranks of the host: each gives bytes and descriptors, each gets those of all, in the order of
    /// [`ranks`](Self::ranks).
    ///
    /// # Errors
    /// A rank of the host is lost, or silent for longer than `limit`.
    pub fn all_gather(
        &self,
        mine: &[u8],
        fds: &[BorrowedFd<'_>],
        limit: Option<Duration>,
    ) -> Result<Vec<Parcel>, BootstrapError> {
        let collected = self.collect(mine, fds, limit)?;
        let whole = collected.map(|parcels| {
            let counts: Vec<u8> = parcels.iter().flat_map(|p| (p.fds.len() as u32).to_le_bytes()).collect();
            let bytes = std::iter::once(&counts).chain(parcels.iter().map(|parcel| &parcel.bytes));
            Parcel {
                bytes: bytes.collect::<Parts>().into_bytes(),
                fds: parcels.into_iter().flat_map(|parcel| parcel.fds).collect(),
            }
        });
        let Parcel { bytes, fds } = self.hand_out(whole, limit)?;
        self.unpack(bytes, fds).ok_or_else(|| self.no_collection())
    }

    fn no_collection(&self) -> BootstrapError {
        let what = format!("rank {} handed out something that is no collection", self.leader);
        BootstrapError::protocol(GATHER, what)
    }

    /// As [`all_gather`](Self::all_gather), of bytes alone; and each gets a parcel from the leader besides. What that gives follows
    /// from what all have given: `give` makes it there, in the order of [`ranks`](Self::ranks), each for so many of them.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather).
    pub fn all_gather_with(
        &self,
        mine: &[u8],
        limit: Option<Duration>,
        give: impl FnOnce(&Parts) -> Vec<(usize, Parcel)>,
    ) -> Result<(Parts, Parcel), BootstrapError> {
        let given = self.collect(mine, &[], limit)?.map(|parcels| {
            let all: Parts = parcels.into_iter().map(|parcel| parcel.bytes).collect();
            let mut given = give(&all);
            let all = all.into_bytes();
            for (_, parcel) in &mut given {
                parcel.bytes = Parts::from_iter([&parcel.bytes]).into_bytes();
                parcel.bytes.extend_from_slice(&all);
            }
            given
        });
        let Parcel { bytes, fds } = self.hand_out_to(given, limit)?;
        // What is given stands before what all gave.
        let parts = Parts::read(bytes).filter(|parts| parts.iter().count() == 1 + self.ranks.len());
        let mut all = parts.ok_or_else(|| self.no_collection())?;
        let bytes = all.take_first().unwrap_or_default();
        Ok((all, Parcel { bytes, fds }))
    }

    fn unpack(&self, bytes: Vec<u8>, fds: Vec<OwnedFd>) -> Option<Vec<Parcel>> {
        let parts = Parts::read(bytes)?;
        let mut parts = parts.iter();
        let counts = parts.next()?;
        let counts = counts.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) as usize);
        let mut fds = fds.into_iter();
        let parcels: Vec<Parcel> = parts
            .zip(counts)
            .map(|(bytes, count)| Parcel { bytes: bytes.to_vec(), fds: fds.by_ref().take(count).collect() })
            .collect();
        (parcels.len() == self.ranks.len() && fds.next().is_none()).then_some(parcels)
    }

    /// The first half: the leader gets what each rank of the host gives, in order of rank; the others get nothing.
    pub(crate) fn collect(
        &self,
        mine: &[u8],
        fds: &[BorrowedFd<'_>],
        limit: Option<Duration>,
    ) -> Result<Option<Vec<Parcel>>, BootstrapError> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + limit.unwrap_or(UNLIMITED);
        if !self.leads() {
            let sent = streams.iter().try_for_each(|leader| send_parcel(leader, mine, fds, deadline));
            kill_point!("host.given");
            return sent.map(|()| None).map_err(|e| lost(self.leader, e));
        }
        let copies = fds.iter().map(|fd| fd.try_clone_to_owned()).collect::<io::Result<Vec<_>>>();
        let fds =
            copies.map_err(|e| OsError::new("duplicate", "a descriptor for the ranks of this host", e))?;
        let own = Parcel { bytes: mine.to_vec(), fds };
        let (mut all, mut failed) = (Vec::with_capacity(self.ranks.len()), None);
        for (rank, stream) in self.others().zip(streams.iter()) {
            match receive(stream, MOST_FDS, deadline) {
                Ok(Ok(parcel)) => all.push(parcel),
                Ok(Err(why)) => failed = failed.or(Some(BootstrapError::protocol(GATHER, why))),
                Err(e) => failed = failed.or(Some(lost(rank, e))),
            }
        }
        // Only now: a rank whose parcel nobody reads is told of a reset connection, and not of the reason.
        if let Some(why) = failed {
            tell(&streams, &why);
            return Err(why);
        }
        all.insert(self.ranks.partition_point(|&rank| rank < self.me), own);
        kill_point!("host.collected");
        Ok(Some(all))
    }

    /// The second half: every rank of the host gets what its leader gives.
    pub(crate) fn hand_out(
        &self,
        whole: Option<Parcel>,
        limit: Option<Duration>,
    ) -> Result<Parcel, BootstrapError> {
        self.hand_out_to(whole.map(|whole| vec![(self.ranks.len(), whole)]), limit)
    }

    /// As [`hand_out`](Self::hand_out), of parcels of which each is for so many of the ranks.
    fn hand_out_to(
        &self,
        given: Option<Vec<(usize, Parcel)>>,
        limit: Option<Duration>,
    ) -> Result<Parcel, BootstrapError> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + limit.unwrap_or(UNLIMITED);
        let Some(mut given) = given else {
            let leader =
                streams.first().ok_or_else(|| BootstrapError::protocol(GATHER, "there is no leader"))?;
            let most = MOST_FDS.saturating_mul(self.ranks.len());
            let received = receive(leader, most, deadline + GRACE).map_err(|e| lost(self.leader, e))?;
            kill_point!("host.handed");
            return received.map_err(|why| BootstrapError::protocol(GATHER, why));
        };
        if given.iter().map(|(count, _)| count).sum::<usize>() != self.ranks.len() {
            let why = BootstrapError::protocol(GATHER, "what is handed out is not for each rank");
            tell(&streams, &why);
            return Err(why);
        }
        let (mut ranks, mut others, mut own) = (&self.ranks[..], self.others().zip(streams.iter()), 0);
        for (at, (count, parcel)) in given.iter().enumerate() {
            let fds: Vec<BorrowedFd<'_>> = parcel.fds.iter().map(AsFd::as_fd).collect();
            let (group, rest) = ranks.split_at(*count);
            let has_own = group.contains(&self.me);
            for (rank, stream) in others.by_ref().take(group.len() - usize::from(has_own)) {
                if let Err(e) = send_parcel(stream, &parcel.bytes, &fds, deadline) {
                    let why = lost(rank, e);
                    tell(&streams, &why);
                    return Err(why);
                }
            }
            ranks = rest;
            own = if has_own { at } else { own };
        }
        Ok(given.swap_remove(own).1)
    }

    fn others(&self) -> impl Iterator<Item = u32> {
        self.ranks.iter().copied().filter(|&rank| rank != self.me)
    }

    /// Tells the others, if this rank leads, why they wait in vain.
    pub(crate) fn fail(&self, why: &BootstrapError) {
        if self.leads() {
            tell(&self.streams.lock().unwrap_or_else(PoisonError::into_inner), why);
        }
    }
}

fn tell(streams: &[Stream], why: &BootstrapError) {
    let deadline = Instant::now() + GRACE / 4;
    streams.iter().for_each(|stream| send_reason(stream, &why.to_string(), deadline));
}

/// The most descriptors that a rank gives at once.
const MOST_FDS: usize = 16;

#[cfg(test)]
mod tests;
