//! A rank and its job.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use gasworks_bootstrap::{Bootstrap, BootstrapError, Hosts, Told};
use gasworks_gni_sys::pmi::*;
use gasworks_os::random;
use gasworks_ugni_sim::far::Gate;
use gasworks_ugni_sim::near::Wire;

use super::Done;
use super::board::Board;
use super::nic::Nic;
use super::pairs::Pairs;
use crate::host;
use crate::ugni::always_sock;
use crate::{strict, trace};

/// What does not change as long as the process lives, whichever of its jobs it is in.
pub struct Facts {
    /// This rank.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// A number for what the ranks are part of, the same for all.
    pub application: u64,
    /// The ranks of this host, in rising order.
    pub near: Vec<u32>,
    /// Which rank is on which host.
    pub hosts: Hosts,
    /// The address of the NIC of each rank; it stays for the life of the process, for C programs hold it.
    pub nodes: &'static [c_int],
    /// What this rank needs to use its NIC.
    pub nic: Nic,
    /// The way to NICs of other hosts.
    pub wire: Wire,
}

/// What ALPS knows of a rank, and says to it alone.
#[derive(Clone, Debug)]
pub struct Alps {
    /// How many ranks there are.
    pub size: u32,
    /// As in [`Facts`].
    pub application: u64,
    /// The first rank on this host, and how many there are.
    pub here: (u32, u32),
    /// As in [`Facts`].
    pub nodes: Vec<c_int>,
    /// As in [`Facts`].
    pub nic: Nic,
}

impl Alps {
    /// When the ranks have met.
    pub fn of(facts: &Facts) -> Self {
        let Facts { size, application, nic, .. } = *facts;
        Self {
            size,
            application,
            here: (facts.near[0], facts.near.len() as u32),
            nodes: facts.nodes.to_vec(),
            nic,
        }
    }

    /// Before that, of a rank at this address, where its launcher has told it enough: the job's name, and that all ranks are on this host.
    ///
    /// # Errors
    /// The setting for nodes is wrong.
    pub fn told(told: &Told, address: u32) -> Result<Option<Self>, String> {
        let &Told { rank, size, ref job, here } = told;
        if here < size {
            return Ok(None);
        }
        let nodes = (0..size).map(|rank| host::of_rank(address, rank, size).map(|node| node as c_int));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let nic = Nic::drawn(bytes_of(job), nodes[rank as usize] as u32);
        Ok(Some(Self { size, application: hash(job), here: (0, size), nodes, nic }))
    }
}

/// A rank of an open job.
pub struct Job {
    /// The way to the other ranks.
    pub link: Box<dyn Bootstrap + Send>,
    /// What is always so.
    pub facts: Arc<Facts>,
    /// Keys and values.
    pub pairs: Pairs,
    /// The attributes of this host.
    pub board: Arc<Board>,
    /// Which rank's bytes stand at which place after an all-gather.
    pub order: Vec<u32>,
    exchanges: u64,
}

/// The end of an operation that failed: its reason is said, for PMI has no place for it.
pub fn failed(error: impl std::fmt::Display) -> c_int {
    gasworks_os::say(&format!("gasworks: PMI: {error}"));
    PMI_FAIL
}

impl Job {
    /// The beginning of a job whose ranks have met. Collective. `address` is that of this host's NIC; facts are found
    /// out where they are not known.
    ///
    /// # Errors
    /// The launcher fails.
    pub fn begin(link: Box<dyn Bootstrap + Send>, address: u32, known: Option<Arc<Facts>>) -> Done<Self> {
        let board = share_board(&*link).map_err(failed)?;
        // From here on a rank waits for the others as long as the program takes.
        link.started();
        let mut exchanges = 0;
        let facts = match known {
            Some(known) => known,
            None => Arc::new(find_out(&*link, address, &mut exchanges)?),
        };
        let order = order(link.job(), facts.size);
        Ok(Self { link, facts, pairs: Pairs::default(), board: Arc::new(board), order, exchanges })
    }

    fn exchange(&mut self, mine: &[u8]) -> Done<Vec<Vec<u8>>> {
        let all = exchange(&*self.link, &mut self.exchanges, mine)?;
        trace::met();
        strict::was_told();
        Ok(all)
    }

    /// All ranks meet. Collective.
    ///
    /// # Errors
    /// The launcher fails, or a rank is lost.
    pub fn meet(&mut self) -> Done {
        let mine = self.pairs.bring();
        let all = self.exchange(&mine)?;
        self.pairs.learn(&all).ok_or_else(|| failed("what a rank brought is no list of keys and values"))
    }

    /// Everybody's bytes, in the order of the job's all-gathers. Collective.
    ///
    /// # Errors
    /// The launcher fails, or a rank is lost.
    pub fn all_gather(&mut self, mine: &[u8]) -> Done<Vec<Vec<u8>>> {
        let mut all = self.exchange(mine)?;
        Ok(self.order.iter().map(|rank| std::mem::take(&mut all[*rank as usize])).collect())
    }

    /// The bytes of the ranks of this host, in their order. Collective over these.
    ///
    /// # Errors
    /// A rank is lost.
    pub fn all_gather_near(&mut self, mine: &[u8]) -> Done<Vec<Vec<u8>>> {
        let gathered = self.link.host().and_then(|host| host.all_gather(mine, &[], None));
        Ok(gathered.map_err(failed)?.into_iter().map(|parcel| parcel.bytes).collect())
    }

    /// The bytes of rank 0. Collective.
    ///
    /// # Errors
    /// The launcher fails, or a rank is lost.
    pub fn broadcast(&mut self, mine: &[u8]) -> Done<Vec<u8>> {
        let mine = if self.facts.rank == 0 { mine } else { &[] };
        Ok(std::mem::take(&mut self.exchange(mine)?[0]))
    }

    /// What the ranks to the left and to the right give, in the circle of all. Collective.
    ///
    /// # Errors
    /// The launcher fails, or a rank is lost.
    pub fn ring(&mut self, mine: &[u8]) -> Done<(Vec<u8>, Vec<u8>)> {
        let all = self.exchange(mine)?;
        let (rank, size) = (self.facts.rank as usize, all.len());
        Ok((all[(rank + size - 1) % size].clone(), all[(rank + 1) % size].clone()))
    }
}

/// Everybody's bytes in the order of ranks. Collective: all ranks count their exchanges alike.
fn exchange(link: &dyn Bootstrap, exchanges: &mut u64, mine: &[u8]) -> Done<Vec<Vec<u8>>> {
    // Who is alone need not keep what it says to itself, as its link would.
    if link.size() == 1 {
        return Ok(vec![mine.to_vec()]);
    }
    *exchanges += 1;
    link.exchange(&format!("pmi{exchanges}"), mine).map(|all| all.to_vec()).map_err(failed)
}

/// The leader of each host makes a board; its ranks share it. Nobody waits for one that could not be made.
fn share_board(link: &dyn Bootstrap) -> Result<Board, BootstrapError> {
    let host = link.host()?;
    let wrong = |why: String| BootstrapError::Protocol { during: "share a host's attributes", what: why };
    let made = host.leads().then(Board::new).transpose();
    let fds: Vec<BorrowedFd<'_>> = made.iter().flatten().map(Board::fd).collect();
    let given = host.all_gather(&[], &fds, None)?.into_iter().flat_map(|parcel| parcel.fds).next();
    let why = || {
        made.as_ref().err().map_or("the leader of this host has made none".to_owned(), ToString::to_string)
    };
    given.map(Board::of).ok_or_else(|| wrong(why()))
}

fn find_out(link: &dyn Bootstrap, address: u32, exchanges: &mut u64) -> Done<Facts> {
    let drawn = random::nonce().map_err(failed)?;
    let address = host::of_rank(address, link.rank(), link.size()).map_err(failed)?;
    let (host, hosts) = (link.host().map_err(failed)?, link.hosts().map_err(failed)?);
    let always = always_sock().map_err(failed)?;
    // One host has no need of it.
    let wanted = always || host.ranks().len() < link.size() as usize;
    let gate = wanted.then(Gate::open).transpose().map_err(failed)?;
    let place = gate.as_ref().map(|gate| gate.place()).unwrap_or_default();
    let cards = exchange(link, exchanges, &[&address.to_le_bytes(), &drawn[..], place.as_bytes()].concat())?;
    let read = |card: &'_ Vec<u8>| {
        let (address, rest) = card.split_first_chunk()?;
        let (drawn, place) = rest.split_first_chunk::<16>()?;
        Some((u32::from_le_bytes(*address), *drawn, String::from_utf8(place.to_vec()).ok()?))
    };
    let cards: Option<Vec<_>> = cards.iter().map(read).collect();
    let cards = cards.ok_or_else(|| failed("what a rank said of itself is not what ranks say"))?;
    let nodes: Vec<c_int> = cards.iter().map(|(address, ..)| *address as c_int).collect();
    if let Some(gate) = &gate {
        let ranks: Vec<(u32, &str)> =
            cards.iter().map(|(address, _, place)| (*address, &place[..])).collect();
        gate.learn(cards[0].1, &ranks).map_err(failed)?;
    }
    // What the launcher says of the job before ranks have met is said to each alone, and holds when they have.
    let told = Told::as_cray().map_err(failed)?.filter(|told| is_job(link.job(), &told.job));
    let name = told.as_ref().map_or(link.job(), |told| &told.job);
    let bytes = told.as_ref().map_or(cards[0].1, |told| bytes_of(&told.job));
    Ok(Facts {
        rank: link.rank(),
        size: link.size(),
        application: hash(name),
        near: host.ranks().to_vec(),
        hosts: hosts.clone(),
        nodes: nodes.leak(),
        nic: Nic::drawn(bytes, address),
        wire: Wire { gate, always },
    })
}

impl Facts {
    /// Where ranks run, in the words of PMI-2: blocks of hosts, each with its first host, how many there are, and how many ranks
    /// each of them has.
    pub fn process_mapping(&self) -> String {
        let mut blocks: Vec<(u32, u32, u32)> = Vec::new();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for host in self.hosts.numbered().1 {
            match runs.last_mut() {
                Some((last, count)) if *last == host => *count += 1,
                _ => runs.push((host, 1)),
            }
        }
        for (host, ranks) in runs {
            match blocks.last_mut() {
                Some((first, hosts, each)) if *first + *hosts == host && *each == ranks => *hosts += 1,
                _ => blocks.push((host, 1, ranks)),
            }
        }
        let blocks: String =
            blocks.iter().map(|(first, hosts, each)| format!(",({first},{hosts},{each})")).collect();
        format!("(vector{blocks})")
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Whether a job is one of those of the processes that were started under a name, the first or a later one.
fn is_job(job: &str, name: &str) -> bool {
    job.strip_prefix(name).is_some_and(|number| number.is_empty() || number.starts_with('.'))
}

/// Bytes that follow from the name of a job.
fn bytes_of(job: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&hash(job).to_le_bytes());
    bytes
}

/// The order of a job's all-gathers: by its name and size, and never that of the ranks, so that a client which takes it for
/// that is found out.
fn order(job: &str, size: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..size).collect();
    let mut state = hash(job);
    for left in (1..order.len()).rev() {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        order.swap(left, ((drawn ^ drawn >> 31) % (left as u64 + 1)) as usize);
    }
    if order.is_sorted() && size > 1 {
        order.rotate_left(1);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_bootstrap::Together;

    #[test]
    fn the_order_is_a_permutation_of_the_jobs_own_and_never_the_ranks() {
        let mut seen = std::collections::BTreeSet::new();
        for size in 1..40 {
            for job in ["a", "b", "12.0", "single-0"] {
                let order = order(job, size);
                assert_eq!(order, super::order(job, size));
                assert_eq!(order.is_sorted(), size == 1, "{job} of {size}");
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..size));
                seen.insert(order);
            }
        }
        assert!(seen.len() > 100, "jobs differ: {}", seen.len());
    }

    #[test]
    fn what_a_launcher_has_told_is_answered_by_each_alone_and_alike() {
        let told = |rank, here| Told { rank, size: 3, job: "gasrun-1-ab".into(), here };
        let alps = |rank| Alps::told(&told(rank, 3), 7).expect("settings").expect("all are here");
        assert_eq!((alps(0).application, alps(0).nic), (alps(2).application, alps(2).nic));
        assert_eq!((alps(1).here, &alps(1).nodes[..]), ((0, 3), &[7, 7, 7][..]));
        let other = Told { job: "gasrun-2-ab".into(), ..told(0, 3) };
        let other = Alps::told(&other, 7).expect("settings").expect("all are here");
        assert_ne!(other.application, alps(0).application);
        assert_ne!(other.nic.cookie, alps(0).nic.cookie);
        assert!(Alps::told(&told(0, 2), 7).expect("settings").is_none(), "who is elsewhere has to be met");
        assert!(is_job("a", "a") && is_job("a.1", "a") && !is_job("ab", "a") && !is_job("b", "a"));
    }

    fn job_of(hosts: &Hosts, act: impl Fn(&mut Job) + Sync) {
        let ranks = Together::on(hosts.clone()).expect("a job");
        std::thread::scope(|scope| {
            for rank in ranks {
                let act = &act;
                scope.spawn(move || {
                    let address = 40 + rank.rank();
                    let mut job = Job::begin(Box::new(rank), address, None).expect("begun");
                    act(&mut job);
                });
            }
        });
    }

    #[test]
    fn ranks_learn_of_each_other() {
        job_of(&Hosts::one(3, 0), |job| {
            let facts = Arc::clone(&job.facts);
            assert_eq!(facts.nodes, [40, 41, 42]);
            assert_eq!((facts.size, &facts.near[..]), (3, &[0, 1, 2][..]));
            assert_eq!(facts.nic.address, 40 + facts.rank);
            let same = [&[facts.nic.tag][..], &facts.nic.cookie.to_le_bytes()].concat();
            assert_eq!(job.broadcast(&same).expect("all"), same);
            let all = job.all_gather(&[facts.rank as u8]).expect("all").concat();
            assert!(all.iter().map(|rank| u32::from(*rank)).eq(job.order.iter().copied()));
            assert_eq!(job.all_gather_near(&[facts.rank as u8]).expect("all").concat(), [0, 1, 2]);
            let (left, right) = job.ring(&[facts.rank as u8]).expect("all");
            assert_eq!(
                (u32::from(left[0]), u32::from(right[0])),
                ((facts.rank + 2) % 3, (facts.rank + 1) % 3)
            );
            let key = |rank: u32| format!("of-{rank}").into_bytes();
            job.pairs.put(&key(facts.rank), b"value").expect("put");
            job.meet().expect("met");
            assert_eq!(job.pairs.get(&key(facts.rank)), None, "nobody has committed");
            job.pairs.commit();
            job.meet().expect("met");
            assert!((0..3).all(|rank| job.pairs.get(&key(rank)) == Some(b"value")));
            job.board.put(&key(facts.rank), b"here").expect("put");
            assert_eq!(job.board.wait(&key((facts.rank + 1) % 3)).expect("put"), b"here");
        });
    }

    #[test]
    fn where_ranks_run_is_said_in_blocks() {
        for (led_by, wanted) in [
            (&[0, 0, 2, 2][..], "(vector,(0,2,2))"),
            (&[0, 1, 0, 1], "(vector,(0,2,1),(0,2,1))"),
            (&[0, 0, 0, 3, 4], "(vector,(0,1,3),(1,2,1))"),
            (&[0], "(vector,(0,1,1))"),
        ] {
            let hosts = Hosts::led_by(led_by.to_vec());
            job_of(&hosts, |job| assert_eq!(job.facts.process_mapping(), wanted));
        }
    }
}
