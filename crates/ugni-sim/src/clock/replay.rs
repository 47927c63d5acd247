//! The records of all processes, played through a model.
//!
//! Each process has a clock of its own, that what it posts and takes moves on; a transaction leaves its NIC after those before it,
//! and who takes an event waits until the model says that it is there. Events at a target are told apart by what they say: of
//! several that say the same the earliest is taken. What a process computes between its calls, and what it waits for by looking
//! at its memory alone, takes no time here: the record does not have it.

use std::collections::{BTreeMap, VecDeque};

use super::model::{Means, Model};
use super::trace::{Name, Posted, Record};

/// For what a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// That a source is free.
    Local,
    /// That a transaction is over.
    Global,
    /// An event from afar.
    Remote,
    /// A message.
    Message,
    /// All others.
    Meeting,
}

impl Wait {
    /// All, in the order of their numbers.
    pub const ALL: [Wait; 5] = [Wait::Local, Wait::Global, Wait::Remote, Wait::Message, Wait::Meeting];
}

/// What a process has spent, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// Its clock at its end.
    pub all: f64,
    /// How many transactions it posted, by what they go, and their bytes.
    pub posts: [(u64, u64); Means::ALL.len()],
    /// Posting them.
    pub posting: [f64; Means::ALL.len()],
    /// Taking events.
    pub taking: f64,
    /// Waiting.
    pub waiting: [f64; Wait::ALL.len()],
    /// Events that it took, and nobody's record says where they came from. They take no time to wait for.
    pub unknown: u64,
    /// Its marks, each with its clock there.
    pub marks: Vec<(u64, f64)>,
}

/// A process on its way through its records.
#[derive(Default)]
struct Process<'a> {
    records: VecDeque<&'a Record>,
    spent: Spent,
    /// When the unit is free that the processor feeds, and when the engine is.
    free: [f64; 2],
    /// When the source of a transaction is free, and when it is over.
    done: BTreeMap<u64, (f64, f64)>,
    /// When events from afar come, by what they say.
    arrivals: BTreeMap<u64, Vec<f64>>,
    /// When messages come, by their senders.
    messages: BTreeMap<Name, VecDeque<f64>>,
}

impl Process<'_> {
    /// Waits until then, and takes an event.
    fn take(&mut self, wait: Wait, when: f64, event: f64) {
        let waited = (when - self.spent.all).max(0.0);
        self.spent.waiting[wait as usize] += waited;
        self.spent.taking += event;
        self.spent.all += waited + event;
    }
}

/// Plays the records of each process; what each has spent.
pub fn replay(model: &Model, records: &[Vec<Record>]) -> Vec<Spent> {
    let mut owners = BTreeMap::new();
    for (rank, records) in records.iter().enumerate() {
        let names = records.iter().filter_map(|record| match record {
            Record::Nic(name) => Some(*name),
            _ => None,
        });
        owners.extend(names.map(|name| (name, rank)));
    }
    let queues = records.iter().map(|records| records.iter().collect());
    let ranks = queues.map(|records| Process { records, ..Process::default() }).collect();
    let mut play = Play { model, owners, ranks };
    while play.ranks.iter().any(|rank| !rank.records.is_empty()) {
        play.go_on();
    }
    play.ranks.into_iter().map(|rank| rank.spent).collect()
}

struct Play<'a> {
    model: &'a Model,
    owners: BTreeMap<Name, usize>,
    ranks: Vec<Process<'a>>,
}

impl Play<'_> {
    /// The process that is the furthest behind, of those that can, does what it did next.
    fn go_on(&mut self) {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.retain(|rank| !self.ranks[*rank].records.is_empty());
        order.sort_by(|one, other| self.ranks[*one].spent.all.total_cmp(&self.ranks[*other].spent.all));
        if order.iter().any(|rank| self.step(*rank, false)) {
            return;
        }
        if order.iter().all(|rank| self.ranks[*rank].records.front() == Some(&&Record::Met)) {
            let last = order.iter().map(|rank| self.ranks[*rank].spent.all).fold(0.0, f64::max);
            for rank in order {
                self.ranks[rank].records.pop_front();
                self.ranks[rank].take(Wait::Meeting, last, 0.0);
            }
        } else if !order.iter().any(|rank| self.step(*rank, true)) {
            // Who meets others that wait for what never comes does so alone.
            self.ranks[order[0]].records.pop_front();
        }
    }

    /// Takes the next step of a process; `false` if it has to wait for others. Where it is `forced` it does without what
    /// nobody has sent.
    fn step(&mut self, rank: usize, forced: bool) -> bool {
        let Some(record) = self.ranks[rank].records.front() else { return false };
        let record = **record;
        let event = self.model.event;
        let process = &mut self.ranks[rank];
        let (wait, when) = match record {
            Record::Nic(_) => {
                process.records.pop_front();
                return true;
            }
            Record::Mark(number) => {
                process.records.pop_front();
                process.spent.marks.push((number, process.spent.all));
                return true;
            }
            Record::Post(posted) => {
                process.records.pop_front();
                self.post(rank, &posted);
                return true;
            }
            Record::Met => return false,
            Record::Local(id) => (Wait::Local, process.done.get(&id).map(|done| done.0)),
            Record::Global(id) => (Wait::Global, process.done.get(&id).map(|done| done.1)),
            Record::Remote(value) => (Wait::Remote, process.arrivals.get_mut(&value).and_then(take_first)),
            Record::Got(peer) => {
                (Wait::Message, process.messages.get_mut(&peer).and_then(VecDeque::pop_front))
            }
        };
        // What a process has not posted itself, nobody else will.
        let own = matches!(wait, Wait::Local | Wait::Global);
        if when.is_none() && !forced && !own {
            return false;
        }
        process.spent.unknown += u64::from(when.is_none());
        process.records.pop_front();
        let when = when.unwrap_or(process.spent.all);
        // A message is found in memory: its event was taken before.
        process.take(wait, when, if wait == Wait::Message { 0.0 } else { event });
        true
    }

    fn post(&mut self, rank: usize, posted: &Posted) {
        let Posted { id, means, gets, length, peer, events, value } = *posted;
        let (cost, bytes) = (self.model.cost(means), length as f64 * self.model.cost(means).byte);
        let process = &mut self.ranks[rank];
        let number = means as usize;
        process.spent.posts[number].0 += 1;
        process.spent.posts[number].1 += length;
        process.spent.posting[number] += cost.overhead;
        process.spent.all += cost.overhead;
        let unit = &mut process.free[usize::from(means == Means::Bte)];
        let start = unit.max(process.spent.all);
        *unit = start + cost.gap + bytes;
        let (read, there) = (start + bytes, start + cost.latency + if gets { 0.0 } else { bytes });
        let over = start + bytes + cost.latency + self.model.answer;
        process.done.insert(id, (if gets { over } else { read }, over));
        let Some(owner) = self.owners.get(&peer) else { return };
        let target = &mut self.ranks[*owner];
        if events.remote {
            target.arrivals.entry(value).or_default().push(there);
        }
        if means == Means::Smsg {
            let own = self.owners.iter().find(|(_, owner)| **owner == rank).map(|(name, _)| *name);
            if let Some(own) = own {
                self.ranks[*owner].messages.entry(own).or_default().push_back(there);
            }
        }
    }
}

/// Takes the earliest.
fn take_first(times: &mut Vec<f64>) -> Option<f64> {
    let first = (0..times.len()).min_by(|one, other| times[*one].total_cmp(&times[*other]))?;
    Some(times.swap_remove(first))
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::super::trace::Events;
    use super::*;

    /// Figures that are easy to add up by hand, and different from each other.
    fn model() -> Model {
        let mut text = String::new();
        for (means, base) in Means::ALL.iter().zip([1000, 2000, 3000, 4000, 5000]) {
            for (part, figure) in [("overhead", 100), ("gap", base), ("latency", base / 2), ("byte", 2)] {
                text += &format!("{}.{part} = {figure} ns ; a test\n", means.name());
            }
        }
        text += "event.taken = 10 ns ; a test\nanswer.latency = 300 ns ; a test\n";
        Model::parse(&text).expect("a model")
    }

    fn put(id: u64, means: Means, length: u64, to: u32, events: &str) -> Record {
        let has = |letter| events.contains(letter);
        let events = Events { local: has('l'), global: has('g'), remote: has('r') };
        Record::Post(Posted { id, means, gets: false, length, peer: (9, to), events, value: 40 + id })
    }

    fn get(id: u64, length: u64) -> Record {
        let Record::Post(posted) = put(id, Means::Fma, length, 1, "g") else { unreachable!("a post") };
        Record::Post(Posted { gets: true, ..posted })
    }

    fn spent(records: &[Vec<Record>]) -> Vec<Spent> {
        let named = |(rank, records): (u32, &Vec<Record>)| {
            std::iter::once(Record::Nic((9, rank))).chain(records.iter().copied()).collect()
        };
        replay(&model(), &(0..).zip(records).map(named).collect::<Vec<_>>())
    }

    fn times(records: &[Vec<Record>]) -> Vec<f64> {
        spent(records).iter().map(|spent| spent.all).collect()
    }

    #[test]
    fn a_put_takes_what_its_parts_take() {
        // 100 to post, 16 for the bytes, 500 on the way: there at 616, back at 916; each event is 10.
        let one = [vec![put(1, Means::Fma, 8, 1, "gr"), Record::Global(1)], vec![Record::Remote(41)]];
        assert_eq!(times(&one), [926.0, 626.0]);
        // The source is free when it was read: 100 + 2000.
        let engine = [vec![put(1, Means::Bte, 1000, 1, "lg"), Record::Local(1), Record::Global(1)], vec![]];
        assert_eq!(times(&engine), [100.0 + 2000.0 + 1000.0 + 300.0 + 10.0, 0.0]);
        assert_eq!(spent(&engine)[0].waiting, [2000.0, 1290.0, 0.0, 0.0, 0.0]);
        // A get goes there and back as well.
        assert_eq!(times(&[vec![get(1, 8), Record::Global(1)], vec![]]), [926.0, 0.0]);
    }

    #[test]
    fn one_waits_for_the_one_before_and_the_engine_for_itself() {
        let both = |second| {
            [vec![put(1, Means::Fma, 100, 1, ""), put(2, second, 0, 1, "g"), Record::Global(2)], vec![]]
        };
        // Posted at 200, but the unit is busy until 100 + 1000 + 200.
        assert_eq!(times(&both(Means::Fma))[0], 1300.0 + 500.0 + 300.0 + 10.0);
        assert_eq!(times(&both(Means::Amo))[0], 1300.0 + 1500.0 + 300.0 + 10.0);
        assert_eq!(times(&both(Means::Bte))[0], 200.0 + 1000.0 + 300.0 + 10.0);
    }

    #[test]
    fn a_value_is_passed_on_from_rank_to_rank() {
        let on = |id, to| put(id, Means::CqWrite, 0, to, "r");
        let ring = [
            vec![on(1, 1), Record::Remote(43)],
            vec![Record::Remote(41), on(2, 2)],
            vec![Record::Remote(42), on(3, 0)],
        ];
        // Each: 100 to post, 2000 on the way, 10 to take.
        assert_eq!(times(&ring), [6330.0, 2210.0, 4320.0]);
        assert_eq!(spent(&ring)[0].waiting[Wait::Remote as usize], 6220.0);
    }

    #[test]
    fn messages_come_from_their_senders_in_order() {
        let send = |id| put(id, Means::Smsg, 50, 1, "r");
        let all = [vec![send(1), send(2), Record::Global(2)], vec![Record::Got((9, 0)), Record::Got((9, 0))]];
        // The first: 100 + 100 + 2500. The second leaves at 100 + 5100, and takes as much.
        assert_eq!(times(&all), [5200.0 + 2600.0 + 300.0 + 10.0, 5200.0 + 2600.0]);
        // Of two that say the same the earlier one is taken first, whoever posted it.
        let same = put(1, Means::Fma, 400, 2, "r");
        let late = put(1, Means::Fma, 0, 2, "r");
        let two = [vec![same], vec![late], vec![Record::Remote(41)]];
        assert_eq!(times(&two)[2], 610.0);
    }

    #[test]
    fn those_who_meet_wait_for_the_last() {
        let all = [vec![put(1, Means::Fma, 0, 1, ""), Record::Met, Record::Met], vec![Record::Met], vec![]];
        let spent = spent(&all);
        assert_eq!((spent[0].all, spent[1].all, spent[2].all), (100.0, 100.0, 0.0));
        assert_eq!(spent[1].waiting[Wait::Meeting as usize], 100.0);
    }

    /// What is missing is counted, and does not stop the others.
    #[test]
    fn what_nobody_sent_is_done_without() {
        let all = [
            vec![Record::Remote(1), Record::Global(77), Record::Got((1, 1))],
            vec![Record::Met, Record::Remote(2)],
        ];
        let spent = spent(&all);
        assert_eq!((spent[0].unknown, spent[1].unknown), (3, 1));
        assert_eq!(spent[0].all, 20.0);
    }
}
