//! How many messages the collectives of a team without a board take of each member, and how many steps: the schedules that ranks run, over a network
//! in this process that counts messages and delivers those of a step together.

use super::*;
use crate::collective::Numbers;
use crate::collective::Sender;
use crate::collective::matching::Matching;
use gasworks_core::{Handlers, Incoming, Outgoing, Rank, WordOp, WordReduction};
use gasworks_memory::atomic::{Ops, Type};
use gasworks_sync::Seq;
use gasworks_sync::atomic::Ordering::Relaxed;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Numbers of members.
const SIZES: [u32; 7] = [1, 2, 3, 8, 64, 100, 1024];
/// So many collectives of a kind follow each other; members that share no memory meet before each sixteenth.
const TIMES: u32 = 20;

/// The turns of a member's part, which say whether it is over.
type Turns<'a> = Box<dyn FnMut(&dyn Sender) -> Result<bool, gasworks_core::Error> + 'a>;

/// A message under way.
struct Message {
    from: Rank,
    to: Rank,
    args: Vec<u8>,
    payload: Vec<u8>,
}

/// A member of the team of all ranks.
struct Member {
    teams: Arc<Teams>,
    team: Team,
    matching: Arc<Matching>,
}

/// What a collective has taken: of the member that sent most, and that received most, the messages; the steps; and the messages from one
/// neighbourhood to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Costs {
    sent: u32,
    received: u32,
    steps: u32,
    crossed: u32,
}

/// Engines that combine a word of each of so many ranks.
#[derive(Default)]
struct Engines {
    participants: u32,
    given: Vec<(Rank, WordOp, u64)>,
    number: u64,
    results: HashMap<Rank, u64>,
    /// How many reductions there were.
    done: u32,
}

impl Engines {
    fn give(&mut self, rank: Rank, number: u64, op: WordOp, word: u64) {
        let is_same = self.number == number || self.given.is_empty();
        assert!(
            is_same && self.given.iter().all(|given| given.0 != rank && given.1 == op),
            "in another order"
        );
        self.number = number;
        self.given.push((rank, op, word));
        self.results.remove(&rank);
        if self.given.len() == self.participants as usize {
            let all = self.given.drain(..).reduce(|(_, op, a), (rank, _, b)| {
                let word = match op {
                    WordOp::And => a & b,
                    WordOp::Or => a | b,
                    WordOp::Xor => a ^ b,
                    WordOp::Add => a.wrapping_add(b),
                };
                (rank, op, word)
            });
            self.done += 1;
            self.results = (0..MANY).filter_map(|rank| Some((rank, all?.2))).collect();
        }
    }
}

/// More than all ranks.
const MANY: Rank = 100;

/// The network, and who is on it.
struct Net {
    members: Vec<Member>,
    engines: RefCell<Engines>,
    /// Of each member.
    neighbourhoods: Box<[u32]>,
    flying: RefCell<Vec<Message>>,
}

/// What a member sends by.
struct Port<'n> {
    net: &'n Net,
    rank: Rank,
}

impl Sender for Port<'_> {
    fn try_request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), gasworks_core::Error> {
        let (args, payload) = (message.args.to_vec(), message.payload.to_vec());
        self.net.flying.borrow_mut().push(Message { from: self.rank, to, args, payload });
        Ok(())
    }

    fn max_medium(&self) -> usize {
        4096
    }

    fn reduction(&self) -> Option<&dyn WordReduction> {
        (self.net.engines.borrow().participants > 0).then_some(self)
    }
}

impl WordReduction for Port<'_> {
    fn participants(&self) -> u32 {
        self.net.engines.borrow().participants
    }
    fn contribute(&self, number: u64, op: WordOp, word: u64) {
        self.net.engines.borrow_mut().give(self.rank, number, op, word);
    }
    fn result(&self) -> Option<u64> {
        self.net.engines.borrow().results.get(&self.rank).copied()
    }
}

impl Net {
    /// Of members that share no memory.
    fn new(ranks: u32) -> Self {
        Self::of((0..ranks).collect())
    }

    /// Of as many members, each in the neighbourhood of this number.
    fn of(neighbourhoods: Box<[u32]>) -> Self {
        let ranks = neighbourhoods.len() as u32;
        let member = |rank| {
            let (handlers, mut kept) = (Handlers::<Seq>::new(), None);
            let neighbourhoods = Some(neighbourhoods.clone());
            let teams = Teams::register(ranks, None, neighbourhoods, &handlers, |matching| {
                kept = Some(matching.clone());
                Box::new(move |piece: &Incoming<'_, Seq>| matching.hear(piece))
            });
            let (teams, matching) = (teams.expect("a free handler"), kept.expect("it is made"));
            Member { teams, team: Team::everyone(rank, ranks), matching }
        };
        let members = (0..ranks).map(member).collect();
        Self { members, neighbourhoods, engines: RefCell::default(), flying: RefCell::default() }
    }

    /// Turns all parts until they are over: each once, then what they have sent is delivered, the latest first.
    fn run(&self, turns: Vec<Turns<'_>>) -> Costs {
        let mut parts: Vec<_> = turns.into_iter().map(Some).collect();
        let (mut sent, mut received, mut crossed) = (vec![0; parts.len()], vec![0; parts.len()], 0);
        for steps in 0.. {
            assert!(steps < 10_000, "nobody goes on");
            for (rank, part) in (0..).zip(&mut parts) {
                let is_over =
                    |turn: &mut Turns<'_>| turn(&Port { net: self, rank }).expect("all do the same");
                if part.as_mut().is_some_and(is_over) {
                    *part = None;
                }
            }
            let flying = self.flying.take();
            if flying.is_empty() && parts.iter().all(Option::is_none) {
                let most = |counts: Vec<u32>| counts.into_iter().max().unwrap_or(0);
                return Costs { sent: most(sent), received: most(received), steps, crossed };
            }
            for Message { from, to, args, mut payload } in flying.into_iter().rev() {
                sent[from as usize] += 1;
                received[to as usize] += 1;
                let neighbourhood = |rank: Rank| self.neighbourhoods[rank as usize];
                crossed += u32::from(neighbourhood(from) != neighbourhood(to));
                let payload = VolatileSlice::from_mut(&mut payload);
                self.members[to as usize].matching.keep(from, &args, payload).expect("a good piece");
            }
        }
        unreachable!("it returns from within")
    }

    /// Runs a collective of the buffers of all members: what they give, and where what comes goes.
    fn collective<'a>(
        &'a self,
        (own, all): (&'a mut [Vec<u8>], &'a mut [Vec<u8>]),
        turns: impl Fn(&'a Member, &'a mut Vec<u8>, &'a mut Vec<u8>) -> Turns<'a>,
    ) -> Costs {
        let buffers = own.iter_mut().zip(all);
        self.run(
            self.members.iter().zip(buffers).map(|(member, (own, all))| turns(member, own, all)).collect(),
        )
    }
}

/// A member's part in what is planned.
fn planned<'a, X, S, L: Schedule + 'a>(member: &Member, plan: Plan<X, S, impl FnOnce(X) -> L>) -> Turns<'a> {
    let given = plan.given.unwrap_or_else(|error| panic!("{error}"));
    Box::new(collective::turns(member.teams.next(&member.team, plan.what), (plan.schedule)(given)))
}

/// The logarithm, rounded up.
fn log2(size: u32) -> u32 {
    size.next_power_of_two().ilog2()
}

/// Sums of words.
struct Sum;

impl Combine for Sum {
    fn element(&self) -> usize {
        8
    }
    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        for (before, after) in before.as_chunks_mut().0.iter_mut().zip(after.as_chunks().0) {
            *before = u64::from_ne_bytes(*before).wrapping_add(u64::from_ne_bytes(*after)).to_ne_bytes();
        }
    }
    fn commutes(&self) -> bool {
        true
    }
}

/// What a member gives in a collective, of so many words.
fn word(member: u32, time: u32, at: usize) -> u64 {
    (u64::from(member) + 3) * (u64::from(time) + 1) + at as u64 * 1000
}

fn words(member: u32, time: u32, count: usize) -> Vec<u8> {
    (0..count).flat_map(|at| word(member, time, at).to_ne_bytes()).collect()
}

/// The collectives, each of a word of each member.
#[derive(Clone, Copy, Debug)]
enum Call {
    Broadcast,
    Reduce,
    ReduceAll,
    Scan,
    Gather,
    Scatter,
    AllGather,
    AllToAll,
    Barrier,
}

const CALLS: [Call; 9] = [
    Call::Broadcast,
    Call::Reduce,
    Call::ReduceAll,
    Call::Scan,
    Call::Gather,
    Call::Scatter,
    Call::AllGather,
    Call::AllToAll,
    Call::Barrier,
];

impl Call {
    /// The most messages from one neighbourhood to another, of so many, where that is known.
    fn crosses(self, count: u32) -> Option<u32> {
        match self {
            Call::Broadcast | Call::Reduce | Call::Gather | Call::Scatter => Some(count - 1),
            Call::ReduceAll => Some(2 * (count - 1)),
            Call::AllGather | Call::Barrier => Some(count * log2(count)),
            Call::Scan | Call::AllToAll => None,
        }
    }

    /// The most that a member may send and receive, and the most steps, where distances double so often.
    fn limit(self, log: u32) -> Costs {
        let (sent, received, steps) = match self {
            Call::Broadcast | Call::Scatter => (log, 1, log),
            Call::Reduce | Call::Gather => (1, log, log),
            Call::ReduceAll => (2 * log, 2 * log, 2 * log),
            Call::Scan | Call::AllGather | Call::AllToAll | Call::Barrier => (log, log, log),
        };
        Costs { sent, received, steps, crossed: u32::MAX }
    }

    /// Runs it on all members, with this root, and looks at what comes of it.
    fn run(self, net: &Net, root: u32, time: u32) -> Costs {
        let size = net.members.len() as u32;
        let mut own: Vec<_> = (0..size).map(|member| words(member, time, 1)).collect();
        let every = || (0..size).flat_map(|member| words(member, time, 1)).collect::<Vec<u8>>();
        let has_all = |member| match self {
            Call::Gather => member == root,
            Call::AllGather | Call::AllToAll => true,
            _ => false,
        };
        let mut all: Vec<_> = (0..size)
            .map(|member| if has_all(member) { vec![0; 8 * size as usize] } else { Vec::new() })
            .collect();
        match self {
            Call::Scatter => {
                all[root as usize] = every();
                own = vec![vec![0; 8]; size as usize];
            }
            // A member has a word for each.
            Call::AllToAll => own.iter_mut().for_each(|own| *own = own.repeat(size as usize)),
            _ => {}
        }
        let costs = net.collective((&mut own, &mut all), |member, own, all| {
            let team = &member.team;
            match self {
                Call::Broadcast => planned(member, broadcast(team, root, VolatileSlice::from_mut(own))),
                Call::Reduce | Call::ReduceAll => {
                    let (own, root) =
                        (VolatileSlice::from_mut(own), matches!(self, Call::Reduce).then_some(root));
                    planned(member, reduce(team, root, (own, own), Sum))
                }
                Call::Scan => planned(member, scan(team, VolatileSlice::from_mut(own), true, Sum)),
                Call::Gather => {
                    let (own, all) = (Bytes::Plain(own), VolatileSlice::from_mut(all));
                    planned(member, gather(team, root, own, all, Lengths::Equal))
                }
                Call::Scatter => {
                    let (own, all) = (VolatileSlice::from_mut(own), Bytes::Plain(all));
                    planned(member, scatter(team, root, all, Lengths::Equal, own))
                }
                Call::AllGather => {
                    planned(member, all_gather(team, Bytes::Plain(own), VolatileSlice::from_mut(all)))
                }
                Call::AllToAll => {
                    planned(member, all_to_all(team, Bytes::Plain(own), VolatileSlice::from_mut(all), None))
                }
                Call::Barrier => {
                    let what = What::new(Kind::Barrier, None, 0);
                    Box::new(collective::turns(member.teams.next(team, what), Exchange::agree(Name::Any, 0)))
                }
            }
        });
        let each = |member: u32| word(member, time, 0);
        let sum = |members: std::ops::Range<u32>| members.map(each).sum::<u64>();
        let every = every();
        for (member, (own, all)) in (0..).zip(own.iter().zip(&all)) {
            let wanted = match self {
                Call::Broadcast => each(root),
                Call::ReduceAll => sum(0..size),
                Call::Reduce if member == root => sum(0..size),
                Call::Scan => sum(0..member + 1),
                _ => each(member),
            };
            assert_eq!(own[..8], wanted.to_ne_bytes(), "{self:?} of {size}, root {root}, member {member}");
            if !all.is_empty() {
                assert_eq!(*all, every, "{self:?} of {size}, root {root}, member {member}");
            }
        }
        costs
    }
}

/// Of each collective of a word, from few members to a thousand and one that is no power of two, nobody sends or receives more messages than a logarithm of
/// their number, nor does it take more steps.
#[test]
fn messages_of_short_collectives_are_a_logarithm_of_the_members() {
    for size in SIZES {
        let (net, log) = (Net::new(size), log2(size));
        for (root, call) in CALLS.into_iter().enumerate() {
            let limit = call.limit(log);
            for time in 0..if size > 100 { 2 } else { TIMES } {
                let root = (root as u32 * 5 + time * 7) % size;
                let costs = call.run(&net, root, time);
                // The members' meeting is an exchange of its own.
                let meets = if net.members[0].team.begun.load(Relaxed).is_multiple_of(16) { log } else { 0 };
                let is_within = costs.sent <= limit.sent + meets
                    && costs.received <= limit.received + meets
                    && costs.steps <= limit.steps + meets;
                assert!(is_within, "{call:?} of {size}: {costs:?}, of at most {limit:?} and {meets}");
            }
        }
    }
}

/// Of members in several neighbourhoods, whose sizes differ, one member of each speaks with others, wherever the root is and whether neighbours follow each
/// other; and it takes no more messages than up and down two trees.
#[test]
fn one_member_of_each_neighbourhood_speaks_with_others() {
    for (size, count) in [(3, 2), (8, 2), (8, 3), (12, 7), (64, 8), (100, 9)] {
        for scattered in [false, true] {
            let number =
                |rank: u32| if scattered { rank * rank % count } else { rank * rank * count / (size * size) };
            let net = Net::of((0..size).map(number).collect());
            let mut all = net.neighbourhoods.to_vec();
            all.sort_unstable();
            all.dedup();
            let (count, most) = (all.len() as u32, 4 * log2(size) + 2);
            for (root, call) in CALLS.into_iter().enumerate() {
                for time in 0..TIMES {
                    let root = (root as u32 * 5 + time * 7) % size;
                    let costs = call.run(&net, root, time);
                    let meets = net.members[0].team.begun.load(Relaxed).is_multiple_of(16);
                    let meeting = Call::Barrier.crosses(count).filter(|_| meets).unwrap_or(0);
                    let crosses = call.crosses(count).unwrap_or(u32::MAX - meeting) + meeting;
                    let is_within = costs.crossed <= crosses && costs.sent.max(costs.received) <= 2 * most;
                    assert!(is_within, "{call:?} of {size} in {count}, root {root}: {costs:?}, of {crosses}");
                }
            }
        }
    }
}

/// A word of all is combined by the network, where it does that: one of each neighbourhood gives it, or each member. So are several that are under way, whichever is turned
/// first; and nothing else is.
#[test]
fn words_are_combined_by_the_network_in_the_order_of_the_calls() {
    for (neighbourhoods, each) in [
        (vec![0, 1, 2], true),
        (vec![0, 0, 1], true),
        (vec![0, 0, 1], false),
        (vec![0, 1, 0, 2, 1, 0, 0], false),
        (vec![5; 4], true),
    ] {
        let net = Net::of(neighbourhoods.into());
        let size = net.members.len() as u32;
        let count = net.neighbourhoods.iter().collect::<BTreeSet<_>>().len() as u32;
        net.engines.borrow_mut().participants = if each { size } else { count };
        for time in 0..40 {
            let of = if time % 2 == 0 { Type::U64 } else { Type::I32 };
            let sum = || Numbers::new(of, Ops::ADD).expect("numbers have sums");
            let own = |member: u32| 3_000_000_000u64 + u64::from(member * time);
            let first: u64 = (0..size).map(own).sum();
            let second = (0..size).map(own).fold(0, |all, word| all ^ word);
            let buffers = |_: u32| vec![0u8; of.width()];
            let (mut sums, mut bits): (Vec<_>, Vec<_>) =
                ((0..size).map(buffers).collect(), (0..size).map(buffers).collect());
            for (member, (sum, bits)) in (0..).zip(sums.iter_mut().zip(&mut bits)) {
                sum.copy_from_slice(&own(member).to_le_bytes()[..of.width()]);
                bits.copy_from_slice(&own(member).to_le_bytes()[..of.width()]);
            }
            let before = net.engines.borrow().done;
            let costs = net.collective((&mut sums, &mut bits), |member, sums, bits| {
                let (sums, bits) = (VolatileSlice::from_mut(sums), VolatileSlice::from_mut(bits));
                let xor = Numbers::new(of, Ops::XOR).expect("integers have bits");
                let mut first = planned(member, reduce(&member.team, None, (sums, sums), sum()));
                let mut second = planned(member, reduce(&member.team, None, (bits, bits), xor));
                let mut are_over = [false; 2];
                let backwards = member.team.own() % 2 == 0;
                Box::new(move |port| {
                    for which in if backwards { [1, 0] } else { [0, 1] } {
                        let turn = if which == 0 { &mut first } else { &mut second };
                        are_over[which] = are_over[which] || turn(port)?;
                    }
                    Ok(are_over == [true; 2])
                })
            });
            for (found, wanted) in [(&sums, first), (&bits, second)] {
                let wanted = &wanted.to_le_bytes()[..of.width()];
                assert!(found.iter().all(|found| found == wanted), "{size} members, {count} neighbourhoods");
            }
            assert_eq!(net.engines.borrow().done, before + 2);
            // Of the window's meeting.
            let meets = Call::Barrier.crosses(count).unwrap_or(0);
            assert!(costs.crossed <= if count == 1 { 0 } else { meets.max(size * log2(size)) }, "{costs:?}");
        }
        // Two words are nothing for engines, nor is what has no such operation.
        let before = net.engines.borrow().done;
        let mut own = vec![vec![1u8; 16]; size as usize];
        net.collective((&mut own, &mut vec![Vec::new(); size as usize]), |member, own, _| {
            let own = VolatileSlice::from_mut(own);
            planned(member, reduce(&member.team, None, (own, own), Sum))
        });
        assert_eq!(net.engines.borrow().done, before);
    }
}

/// What all say comes to all in the order of the members, of any length, also in several pieces and where some say nothing.
#[test]
fn what_members_of_neighbourhoods_say_comes_to_all_in_order() {
    for neighbourhoods in [vec![0, 0, 1], vec![0, 1, 0, 2, 1, 0, 0], vec![2, 2, 2, 0, 0, 1, 1, 1, 1, 3]] {
        let net = Net::of(neighbourhoods.into());
        let size = net.members.len();
        for len in [0, 1, 24, 2999, 5000, 20_001] {
            let block = |member: usize| -> Vec<u8> {
                (0..len).map(|at| (member * 89 + at * 7 + (at >> 9)) as u8).collect()
            };
            let mut own: Vec<_> = (0..size).map(block).collect();
            let mut all = vec![vec![0; len * size]; size];
            net.collective((&mut own, &mut all), |member, own, all| {
                // Whatever the length: of long ones all_gather makes an all to all.
                let (what, own) = (What::new(Kind::AllGather, None, len), Bytes::Plain(own));
                let appended = Appended::new(member.team.own(), own, VolatileSlice::from_mut(all));
                Box::new(collective::turns(member.teams.next(&member.team, what), appended))
            });
            let wanted: Vec<u8> = (0..size).flat_map(block).collect();
            assert!(all.iter().all(|all| *all == wanted), "{size} members, {len} bytes");
        }
    }
}

/// From each member to each the block that is for it, of any number of members and of lengths around what goes eagerly.
#[test]
fn blocks_by_way_of_others_come_to_whom_they_are_for() {
    for size in (1..=20).chain([31, 32, 33, 64]) {
        let net = Net::new(size);
        for (time, len) in (0..).zip([1usize, 8, 24, 130, 1000]) {
            let block = |from: u32, to: u32| -> Vec<u8> {
                let seed = from * 1009 + to * 31 + time;
                (0..len as u32)
                    .map(|at| (seed.wrapping_mul(2_654_435_761).wrapping_add(at * 7) >> 5) as u8)
                    .collect()
            };
            let mut own: Vec<Vec<u8>> =
                (0..size).map(|from| (0..size).flat_map(|to| block(from, to)).collect()).collect();
            let mut all = vec![vec![0; len * size as usize]; size as usize];
            let costs = net.collective((&mut own, &mut all), |member, own, all| {
                let what = What::new(Kind::AllToAll, None, len);
                let schedule = collective::Bruck::new(Bytes::Plain(own), VolatileSlice::from_mut(all), len);
                Box::new(collective::turns(member.teams.next(&member.team, what), schedule))
            });
            for (to, all) in (0..).zip(&all) {
                let wanted: Vec<u8> = (0..size).flat_map(|from| block(from, to)).collect();
                assert!(*all == wanted, "{size} members, {len} bytes, to {to}");
            }
            // What does not go eagerly takes a word that clears it, and more pieces.
            let pieces = 2 + (size as usize * len).div_ceil(4096) as u32;
            let most = log2(size) * if size as usize / 2 * len > 4096 { pieces } else { 1 };
            assert!(costs.sent <= most, "{size} members, {len} bytes: {costs:?}");
        }
    }
}
