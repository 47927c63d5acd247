//! Random programs of messages against a plain model: a list for each pair of ranks.

use super::messages::{ANY, Faults, TYPES, attributes, connected, sent};
use super::*;
use gasworks_ugni_sim::entry::Status;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

const RANKS: usize = 3;
const LONGEST: u32 = 80;
/// How often a client looks for something before it gives up.
const LOOKS: usize = 2000;
/// Looks that credit takes at most, in a bad network too.
const QUIET: usize = 200;
const STUCK: Duration = Duration::from_secs(60);

/// Something that a client does: who, with whom.
#[derive(Clone, Debug)]
struct Step {
    rank: usize,
    peer: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// Sends so many bytes.
    Send(usize),
    /// Looks at the next message, if it has this tag.
    Look(u8),
    /// Takes so many messages.
    Take(usize),
    /// Takes so many events.
    Poll(usize),
    /// Nobody's memory can be written by NICs so many times.
    Fault(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        6 => (0..=LONGEST as usize).prop_map(What::Send),
        1 => (0..4u8).prop_map(What::Look),
        3 => (0..4usize).prop_map(What::Take),
        3 => (0..6usize).prop_map(What::Poll),
        1 => (0..4u32).prop_map(What::Fault),
    ];
    (0..RANKS, 0..RANKS, what).prop_map(|(rank, peer, what)| Step { rank, peer, what })
}

/// Messages: bytes and tags.
type List = VecDeque<(Vec<u8>, u8)>;

struct Job {
    chip: Chip,
    credits: usize,
    exact: bool,
    ranks: Vec<Rank>,
    faults: Arc<Faults>,
    /// What each rank has sent to each and was not taken.
    inside: [[List; RANKS]; RANKS],
    /// The names of each rank's messages of which it has not heard, and how many messages it has sent.
    unheard: [BTreeSet<u32>; RANKS],
    count: [u32; RANKS],
}

impl Job {
    fn new(mood: Mood, chip: Chip, kind: gni_smsg_type_t, credits: u16) -> Self {
        let (ranks, faults) = connected(mood, chip, RANKS as u32, &attributes(kind, credits, LONGEST));
        ranks.iter().for_each(|rank| rank.nic.set_smsg_retransmissions(1000));
        let (credits, exact) = (credits.into(), mood == Mood::Plain);
        let (inside, unheard, count) = Default::default();
        Self { chip, credits, exact, ranks, faults, inside, unheard, count }
    }

    /// Whether it went.
    fn send(&mut self, from: usize, to: usize, len: usize) -> Result<bool, TestCaseError> {
        let id = self.count[from];
        let (bytes, tag) = (vec![(id * 7) as u8; len], (id % 4) as u8);
        // With as few requests as there are no two messages that are on their way lie in the same memory.
        match self.ranks[from].send(to, &bytes, id, tag) {
            Ok(()) => {
                self.inside[from][to].push_back((bytes, tag));
                prop_assert!(self.inside[from][to].len() <= self.credits, "more than there is credit for");
                self.unheard[from].insert(id);
                self.count[from] += 1;
                Ok(true)
            }
            Err(code) => {
                prop_assert_eq!(code, GNI_RC_NOT_DONE);
                Ok(false)
            }
        }
    }

    /// Looks at the next message.
    fn look(&mut self, rank: usize, peer: usize, wanted: u8) -> Result<bool, TestCaseError> {
        let first = self.inside[peer][rank].front();
        let seen = self.ranks[rank].peek(peer, wanted, first.map_or(0, |(bytes, _)| bytes.len()));
        if seen == Err(GNI_RC_NOT_DONE) {
            prop_assert!(!self.exact || first.is_none(), "it is there");
            return Ok(false);
        }
        let first = first.expect("there is one").clone();
        let matches = wanted == ANY || wanted == first.1;
        prop_assert_eq!(seen, if matches { Ok(first) } else { Err(GNI_RC_NO_MATCH) });
        Ok(matches)
    }

    fn take(&mut self, rank: usize, peer: usize) -> Result<bool, TestCaseError> {
        let seen = self.look(rank, peer, ANY)?;
        if seen {
            prop_assert_eq!(self.ranks[rank].endpoints[peer].smsg_release(), Ok(()));
            self.inside[peer][rank].pop_front();
        }
        Ok(seen)
    }

    fn poll(&mut self, rank: usize) -> Result<(), TestCaseError> {
        if let Next::Event(event) = self.ranks[rank].events.next() {
            let (id, status) = sent(&event, self.chip);
            prop_assert_eq!(status, Status::Ok);
            prop_assert!(self.unheard[rank].remove(&id), "heard once of what was sent");
        }
        let _ = self.ranks[rank].arrivals.next();
        Ok(())
    }

    fn step(&mut self, Step { rank, peer, what }: &Step) -> Result<(), TestCaseError> {
        match *what {
            What::Send(len) => self.send(*rank, *peer, len).map(drop),
            What::Look(tag) => self.look(*rank, *peer, tag).map(drop),
            What::Take(count) => (0..count).try_for_each(|_| self.take(*rank, *peer).map(drop)),
            What::Poll(count) => (0..count).try_for_each(|_| self.poll(*rank)),
            What::Fault(writes) => {
                // What fails is late, and in the plain mood nothing is to be.
                if !self.exact {
                    self.faults.next(writes);
                }
                Ok(())
            }
        }
    }

    /// Everybody takes what there is, until all is quiet.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        let mut quiet = 0;
        for _ in 0..LOOKS {
            for rank in 0..RANKS {
                self.poll(rank)?;
                for peer in 0..RANKS {
                    self.take(rank, peer)?;
                }
            }
            let idle = |rank: &Rank| rank.endpoints.iter().all(|endpoint| endpoint.idle() == Ok(()));
            let is_quiet =
                self.inside.iter().flatten().all(VecDeque::is_empty) && self.ranks.iter().all(idle);
            quiet = if is_quiet { quiet + 1 } else { 0 };
            // Of credit nobody is told: it is back after so many looks.
            if quiet == QUIET {
                break;
            }
        }
        prop_assert!(self.inside.iter().flatten().all(VecDeque::is_empty), "a message is lost");
        prop_assert!(self.unheard.iter().all(BTreeSet::is_empty), "an event is lost");
        Ok(())
    }

    /// At the end all credit is there, and no more.
    fn all_credit_is_back(&mut self) -> Result<(), TestCaseError> {
        for from in 0..RANKS {
            for to in 0..RANKS {
                let mut went = 0;
                for _ in 0..LOOKS / 10 {
                    went += usize::from(self.send(from, to, 0)?);
                    self.poll(from)?;
                }
                prop_assert_eq!(went, self.credits, "from {} to {}", from, to);
            }
        }
        Ok(())
    }
}

fn run(mut job: Job, steps: &[Step]) -> Result<(), TestCaseError> {
    steps.iter().try_for_each(|step| job.step(step))?;
    job.settle()?;
    job.all_credit_is_back()?;
    job.settle()
}

/// Real threads: ranks that send to each other at the same time.
#[test]
fn messages_come_in_order_between_threads() {
    const EACH: u32 = 2000;
    for (kind, chip) in TYPES.into_iter().zip(Chip::ALL) {
        let (ranks, _) = connected(Mood::Plain, chip, 2, &attributes(kind, 3, LONGEST));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for (number, rank) in ranks.iter().enumerate() {
                scope.spawn(move || {
                    let (peer, mut sent, mut taken) = (1 - number, 0, 0);
                    while sent < EACH || taken < EACH {
                        let len = 4 + sent as usize % (LONGEST as usize - 3);
                        let bytes = sent.to_le_bytes().repeat(len.div_ceil(4));
                        if sent < EACH && rank.send(peer, &bytes[..len], sent, 0).is_ok() {
                            sent += 1;
                        }
                        if let Ok(bytes) = rank.receive(peer, 4) {
                            assert_eq!(bytes, u32::to_le_bytes(taken));
                            taken += 1;
                        }
                        if rank.events.next() == Next::Nothing {
                            assert!(begun.elapsed() < STUCK, "{sent} sent, {taken} taken");
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn messages_come_in_order_once_and_all(
        (aries, auto) in any::<(bool, bool)>(),
        credits in 1..6u16,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let chip = if aries { Chip::Aries } else { Chip::Gemini };
        run(Job::new(Mood::Plain, chip, TYPES[usize::from(auto)], credits), &steps)?;
    }

    /// Whatever the network does, and with faults where messages are sent again.
    #[test]
    fn they_do_so_in_a_bad_network(
        seed in any::<u64>(),
        (aries, auto) in any::<(bool, bool)>(),
        credits in 1..6u16,
        mut steps in prop::collection::vec(step(), 1..200),
    ) {
        let chip = if aries { Chip::Aries } else { Chip::Gemini };
        if !auto {
            steps.retain(|step| !matches!(step.what, What::Fault(_)));
        }
        let mood = Mood::Adversarial { seed };
        run(Job::new(mood, chip, TYPES[usize::from(auto)], credits), &steps)?;
    }

    /// A peer may write what it likes into a mailbox: calls end, and show nothing outside of it.
    #[test]
    fn nonsense_in_a_mailbox_harms_nobody(
        auto in any::<bool>(),
        writes in prop::collection::vec((0..400u64, prop_oneof![0..6u64, any::<u64>()]), 1..40),
    ) {
        let like = attributes(TYPES[usize::from(auto)], 4, 64);
        let (ranks, _) = connected(Mood::Plain, Chip::Aries, 2, &like);
        for (id, (at, word)) in (0..).zip(writes) {
            ranks[1].write(at & !7, &word.to_le_bytes());
            let _ = ranks[1].send(0, &[1; 64], id, 0);
            let _ = (ranks[1].events.next(), ranks[0].send(1, &[2; 64], id, 0), ranks[0].receive(1, 64));
            match ranks[1].endpoints[0].smsg_next(ANY) {
                Ok((address, _)) => {
                    let inside = ranks[1].at(0)..=ranks[1].at(like.buff_size.into()) - 64;
                    prop_assert!(inside.contains(&address), "{:#x}", address);
                    prop_assert_eq!(ranks[1].endpoints[0].smsg_release(), Ok(()));
                }
                Err(code) => prop_assert!([GNI_RC_NOT_DONE, GNI_RC_INVALID_STATE].contains(&code)),
            }
        }
    }
}
