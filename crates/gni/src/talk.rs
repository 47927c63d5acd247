//! What a rank keeps of each one that it talks with: nothing before they do.

use crate::region::{Home, MOST_TICKETS};
use gasworks_os::Reserved;

/// A run of granules of a mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granules {
    pub first: u32,
    pub count: u32,
}

impl Granules {
    fn mask(self) -> u64 {
        let ones = if self.count >= 64 { u64::MAX } else { (1 << self.count) - 1 };
        ones.checked_shl(self.first).unwrap_or(0)
    }
}

/// A request that is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Where the message lies here, and where the reply comes.
    pub slot: u16,
    /// Where it lies there; none if it is fetched.
    pub granules: Granules,
}

/// Requests to one rank.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// The mailbox that it has given.
    pub mailbox: Option<Home>,
    /// Which tickets are out, and which is next: its receiver looks for them in turn.
    out: u64,
    next: u32,
    tickets: Vec<Ticket>,
    /// Those of them whose payloads go beside them.
    beside: u64,
    /// Granules of the mailbox that are in use.
    used: u64,
}

impl Sending {
    /// Takes a free ticket of this many, the next one if it is.
    pub fn take(&mut self, most: u32) -> Option<u32> {
        let most = most.clamp(1, MOST_TICKETS);
        if self.tickets.is_empty() {
            self.tickets = vec![Ticket::default(); most as usize];
        }
        let free = !self.out & (u64::MAX >> (64 - most));
        let later = free & (u64::MAX << self.next);
        let ticket = if later != 0 { later } else { free }.trailing_zeros();
        if ticket >= most {
            return None;
        }
        self.out |= 1 << ticket;
        self.next = (ticket + 1) % most;
        Some(ticket)
    }

    /// One that was taken was not used.
    pub fn untake(&mut self, ticket: u32) {
        self.out &= !(1 << ticket);
        self.beside &= !(1 << ticket);
    }

    /// The payload of this one goes beside it. Whether it may: no more than so many are out.
    pub fn go_beside(&mut self, ticket: u32, most: u32) -> bool {
        let goes = self.beside.count_ones() < most;
        self.beside |= u64::from(goes) << ticket;
        goes
    }

    /// Takes so many granules in a row.
    pub fn take_granules(&mut self, count: u32) -> Option<Granules> {
        if count == 0 || count > 64 {
            return None;
        }
        // Bits at which a run of free ones begins: each round doubles what has been looked at.
        let (mut runs, mut len) = (!self.used, 1);
        while len < count && runs != 0 {
            let step = len.min(count - len);
            runs &= runs >> step;
            len += step;
        }
        let granules = Granules { first: runs.trailing_zeros(), count };
        if runs == 0 || granules.first + count > 64 {
            return None;
        }
        self.used |= granules.mask();
        Some(granules)
    }

    /// Gives the last of these back beyond so many.
    pub fn trim(&mut self, granules: Granules, count: u32) -> Granules {
        let kept = Granules { count: count.min(granules.count), ..granules };
        self.used &= !(granules.mask() & !kept.mask());
        kept
    }

    /// Gives granules back.
    pub fn give_granules(&mut self, granules: Granules) {
        self.used &= !granules.mask();
    }

    /// What a ticket stands for from now on.
    pub fn enter(&mut self, number: u32, ticket: Ticket) {
        if let Some(place) = self.tickets.get_mut(number as usize) {
            *place = ticket;
        }
    }

    /// The rank is done with these; gives their slots. `None`: one of them was not out.
    pub fn end(&mut self, ended: u64, mut each: impl FnMut(u16)) -> Option<()> {
        if ended & !self.out != 0 {
            return None;
        }
        self.out &= !ended;
        self.beside &= !ended;
        let mut left = ended;
        while left != 0 {
            let Ticket { slot, granules } = self.tickets[left.trailing_zeros() as usize];
            self.give_granules(granules);
            each(slot);
            left &= left - 1;
        }
        Some(())
    }

    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.out == 0 && self.used == 0
    }
}

/// Requests from one rank.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    /// Which of this rank's mailboxes it has been given.
    pub mailbox: Option<u32>,
    /// Where its next letter is looked for first.
    pub next: u32,
    /// Events without their letters so far.
    pub early: u32,
    /// Tickets whose letters have come, and that it has not been told the end of.
    out: u64,
    /// Tickets whose payloads have landed before their messages could be taken.
    landed: u64,
    /// Requests that have been taken of these: which ticket, which slot of its.
    due: Vec<(u8, u16)>,
    /// Those of them whose payloads handlers read where they lie: the rank writes there again once they are ended.
    lent: u64,
}

impl Receiving {
    /// A letter with this ticket has come. Whether it may: none is used twice.
    pub fn enter(&mut self, ticket: u32) -> bool {
        let is_new = self.out >> ticket & 1 == 0;
        self.out |= 1 << ticket;
        is_new
    }

    /// The payload beside the request with this ticket has landed.
    pub fn land(&mut self, ticket: u32) {
        self.landed |= 1 << ticket;
    }

    /// Whether it has. It is forgotten then.
    pub fn has_landed(&mut self, ticket: u32) -> bool {
        let landed = self.landed >> ticket & 1 != 0;
        self.landed &= !(1 << ticket);
        landed
    }

    /// The request has been taken: it may be ended from now on.
    pub fn owe(&mut self, ticket: u32, slot: u16) {
        self.due.push((ticket as u8, slot));
    }

    /// A handler reads the payload of this request where it lies.
    pub fn lend(&mut self, ticket: u32) {
        self.lent |= 1 << ticket;
    }

    /// It does not any more.
    pub fn take_back(&mut self, ticket: u32) {
        self.lent &= !(1 << ticket);
    }

    /// Whether handlers read payloads of some of these requests.
    pub fn has_lent(&self, tickets: u64) -> bool {
        self.lent & tickets != 0
    }

    /// Ends so many requests: a set of their tickets, and the slot of one of them. `None`: there are not so many. Those whose payloads
    /// are being read are the last to be taken.
    pub fn settle(&mut self, count: usize) -> Option<(u64, u16)> {
        if self.lent != 0 {
            let lent = self.lent;
            self.due.sort_by_key(|(ticket, _)| lent >> *ticket & 1 == 0);
        }
        let rest = self.due.len().checked_sub(count)?;
        let slot = self.due.last()?.1;
        let ended = self.due.drain(rest..).fold(0, |ended, (ticket, _)| ended | 1 << ticket);
        self.out &= !ended;
        Some((ended, slot))
    }

    /// One that was settled is not ended after all: its ticket alone, and its slot.
    pub fn unsettle(&mut self, (ended, slot): (u64, u16)) {
        self.out |= ended;
        self.due.push((ended.trailing_zeros() as u8, slot));
    }
}

/// Both.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    pub sending: Sending,
    pub receiving: Receiving,
}

/// What is kept of all ranks.
#[derive(Debug)]
pub(crate) struct Talks {
    /// For each rank its place among `of`, counted from 1; 0: it has not talked.
    places: Reserved<u32>,
    of: Vec<Talk>,
}

impl Talks {
    /// Nobody has talked.
    pub fn new(ranks: u32) -> Self {
        Self { places: Reserved::new(ranks as usize), of: Vec::new() }
    }

    /// What is kept of a rank; nothing before it has talked.
    pub fn get(&self, rank: u32) -> Option<&Talk> {
        self.of.get((self.places[rank as usize] as usize).wrapping_sub(1))
    }

    /// As [`get`](Self::get).
    pub fn get_mut(&mut self, rank: u32) -> Option<&mut Talk> {
        self.of.get_mut((self.places[rank as usize] as usize).wrapping_sub(1))
    }

    /// What is kept of a rank, which talks from now on.
    pub fn with(&mut self, rank: u32) -> &mut Talk {
        let place = &mut self.places[rank as usize];
        if *place == 0 {
            self.of.push(Talk::default());
            *place = self.of.len() as u32;
        }
        &mut self.of[*place as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tickets_go_around() {
        let mut sending = Sending::default();
        assert_eq!([sending.take(2), sending.take(2), sending.take(2)], [Some(0), Some(1), None]);
        let mut slots = Vec::new();
        sending.enter(0, Ticket { slot: 7, granules: Granules::default() });
        assert_eq!(sending.end(1, |slot| slots.push(slot)), Some(()));
        assert_eq!(slots, [7]);
        assert_eq!(sending.end(1, |_| {}), None, "it is not out any more");
        assert_eq!(sending.take(2), Some(0));
        sending.untake(0);
        assert_eq!(sending.take(2), Some(0), "the only one that is free");
        let mut all = Sending::default();
        assert!((0..64).all(|ticket| all.take(64) == Some(ticket)) && all.take(64).is_none());
    }

    #[test]
    fn what_is_settled_was_owed() {
        let mut receiving = Receiving::default();
        assert_eq!(receiving.settle(1), None);
        assert!(receiving.enter(3) && receiving.enter(63) && receiving.enter(4));
        assert!(!receiving.enter(3), "its request is not even taken");
        receiving.owe(3, 30);
        receiving.owe(63, 31);
        assert_eq!(receiving.settle(3), None);
        assert_eq!(receiving.settle(2), Some((1 << 3 | 1 << 63, 31)));
        assert!(receiving.enter(3) && receiving.enter(63) && !receiving.enter(4));
    }

    #[test]
    fn what_is_being_read_is_settled_last() {
        let mut receiving = Receiving::default();
        for ticket in [1, 2, 3] {
            assert!(receiving.enter(ticket));
            receiving.owe(ticket, ticket as u16 * 10);
        }
        receiving.lend(3);
        assert_eq!(receiving.settle(1), Some((1 << 2, 20)));
        assert_eq!(receiving.settle(1), Some((1 << 1, 10)));
        assert!(receiving.has_lent(1 << 3 | 1 << 1) && !receiving.has_lent(1 << 1));
        assert_eq!(receiving.settle(1), Some((1 << 3, 30)));
        receiving.take_back(3);
        assert!(!receiving.has_lent(u64::MAX));
    }

    #[derive(Clone, Debug)]
    enum Act {
        Take(u32),
        Trim(usize, u32),
        Give(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            (0u32..70).prop_map(Act::Take),
            (any::<usize>(), 0u32..70).prop_map(|(which, count)| Act::Trim(which, count)),
            any::<usize>().prop_map(Act::Give),
        ];
        prop::collection::vec(act, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// A plain model: a field of 64 truths.
        #[test]
        fn granules_belong_to_one(acts in acts()) {
            let (mut sending, mut model, mut held) = (Sending::default(), [false; 64], Vec::<Granules>::new());
            for act in acts {
                match act {
                    Act::Take(count) => {
                        let wanted = count as usize;
                        let fits = (1..=64).contains(&wanted)
                            && model.windows(wanted).any(|run| run.iter().all(|used| !used));
                        let taken = sending.take_granules(count);
                        prop_assert_eq!(taken.is_some(), fits);
                        if let Some(granules) = taken {
                            let range = granules.first as usize..(granules.first + count) as usize;
                            prop_assert!(model[range.clone()].iter().all(|used| !used));
                            model[range].fill(true);
                            held.push(granules);
                        }
                    }
                    Act::Trim(which, count) if !held.is_empty() => {
                        let which = which % held.len();
                        let before = held[which];
                        let kept = sending.trim(before, count);
                        prop_assert_eq!(kept.count, count.min(before.count));
                        let range = (kept.first + kept.count) as usize..(before.first + before.count) as usize;
                        model[range].fill(false);
                        held[which] = kept;
                    }
                    Act::Give(which) if !held.is_empty() => {
                        let granules = held.swap_remove(which % held.len());
                        sending.give_granules(granules);
                        model[granules.first as usize..(granules.first + granules.count) as usize].fill(false);
                    }
                    _ => {}
                }
                let used = model.iter().rev().fold(0u64, |bits, used| bits << 1 | u64::from(*used));
                prop_assert_eq!(sending.used, used);
            }
            for granules in held {
                sending.give_granules(granules);
            }
            prop_assert!(sending.is_idle());
        }
    }
}
