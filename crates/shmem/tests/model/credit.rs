//! [`Credits`] and [`Owed`] against plain numbers, and their limits exactly.

use crate::{CALLS, config};
use gasworks_shmem::credit::{Credits, Exhausted, Limits, MAX_RETURN, OverReturned, Owed, words};
use gasworks_sync::{Mode, Par, ParSync, Seq};
use proptest::prelude::*;

const PEERS: u32 = 3;

/// What [`Credits`] should do, in plain numbers.
struct Ledger {
    out: Vec<(u32, u64)>,
    limits: (u32, u32, u64),
}

impl Ledger {
    fn total(&self) -> u32 {
        self.out.iter().map(|out| out.0).sum()
    }
    fn lacks(&self, peer: u32, bytes: u32) -> Option<Exhausted> {
        let (depth, total, volume) = self.limits;
        let (count, weight) = self.out[peer as usize];
        // A total that all peers together cannot exceed is none.
        if self.total() >= total && total < PEERS * depth {
            Some(Exhausted::Total)
        } else if count >= depth {
            Some(Exhausted::Peer)
        } else if weight + u64::from(bytes) > volume {
            Some(Exhausted::Volume)
        } else {
            None
        }
    }
    fn take(&mut self, peer: u32, bytes: u32) -> Result<(), Exhausted> {
        if let Some(why) = self.lacks(peer, bytes) {
            return Err(why);
        }
        let (count, weight) = &mut self.out[peer as usize];
        *count += 1;
        *weight += u64::from(bytes);
        Ok(())
    }
    fn give(&mut self, peer: u32, count: u32, bytes: u64) -> Result<(), OverReturned> {
        let (out_count, out_bytes) = self.out[peer as usize];
        if count > out_count || bytes > out_bytes {
            return Err(OverReturned { peer, count, bytes, out_count, out_bytes });
        }
        self.out[peer as usize] = (out_count - count, out_bytes - bytes);
        Ok(())
    }
}

fn credits_follow_the_ledger<M: Mode>(
    limits: (u32, u32, u64),
    calls: &[(bool, u32, u32, u64)],
) -> Result<(), TestCaseError> {
    let credits = Credits::<M>::for_mode(PEERS, limits_of(limits));
    let mut ledger = Ledger { out: vec![(0, 0); PEERS as usize], limits };
    for &(take, peer, number, bytes) in calls {
        if take {
            prop_assert_eq!(credits.lacks(peer, bytes as u32), ledger.lacks(peer, bytes as u32));
            prop_assert_eq!(credits.take(peer, bytes as u32), ledger.take(peer, bytes as u32));
        } else {
            prop_assert_eq!(credits.give(peer, number, bytes), ledger.give(peer, number, bytes));
        }
        prop_assert_eq!(credits.total_out(), ledger.total());
        prop_assert!((0..PEERS).all(|peer| credits.out(peer) == ledger.out[peer as usize]));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Debt {
    Owe(u32),
    Collect(u32),
    /// Puts back what was collected last, or nothing.
    Restore,
}

fn owed_loses_nothing<M: Mode>(calls: &[(u32, Debt)]) -> Result<(), TestCaseError> {
    let owed = Owed::<M>::for_mode(PEERS);
    let mut model = vec![(0u32, 0u64); PEERS as usize];
    let mut collected = vec![(0u32, 0u64); PEERS as usize];
    for &(peer, call) in calls {
        let (count, bytes) = &mut model[peer as usize];
        match call {
            Debt::Owe(number) => {
                *count += 1;
                *bytes += u64::from(number);
                prop_assert_eq!(owed.owe(peer, number), (*count, *bytes));
            }
            Debt::Collect(number) => {
                let (taken, weight) = owed.collect(peer, number);
                prop_assert_eq!(taken, (*count).min(number).min(MAX_RETURN));
                prop_assert_eq!(weight, if taken == 0 { 0 } else { *bytes });
                *count -= taken;
                *bytes -= weight;
                collected[peer as usize] = (taken, weight);
            }
            Debt::Restore => {
                let (back, weight) = std::mem::take(&mut collected[peer as usize]);
                owed.restore(peer, back, weight);
                *count += back;
                *bytes += weight;
            }
        }
        prop_assert_eq!(owed.owes(), model.iter().any(|&(count, _)| count > 0));
        for from in 0..PEERS {
            prop_assert_eq!(owed.to(from), model[from as usize]);
            let next = (0..PEERS).map(|step| (from + step) % PEERS).find(|&peer| model[peer as usize].0 > 0);
            prop_assert_eq!(owed.next_owing(from), next);
        }
    }
    Ok(())
}

fn debts() -> impl Strategy<Value = Vec<(u32, Debt)>> {
    let call = prop_oneof![
        3 => (0u32..400).prop_map(Debt::Owe),
        2 => (0u32..4).prop_map(Debt::Collect),
        1 => Just(Debt::Restore),
    ];
    prop::collection::vec((0..PEERS, call), 0..2 * CALLS)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn credits(
        limits in (1u32..5, 1u32..14, 1u64..300),
        calls in prop::collection::vec((any::<bool>(), 0..PEERS, 0u32..4, 0u64..120), 0..CALLS),
    ) {
        credits_follow_the_ledger::<Seq>(limits, &calls)?;
        credits_follow_the_ledger::<ParSync>(limits, &calls)?;
        credits_follow_the_ledger::<Par>(limits, &calls)?;
    }

    #[test]
    fn owed(calls in debts()) {
        owed_loses_nothing::<Seq>(&calls)?;
        owed_loses_nothing::<ParSync>(&calls)?;
        owed_loses_nothing::<Par>(&calls)?;
    }
}

fn limits_of((depth, total, volume): (u32, u32, u64)) -> Limits {
    Limits { depth, total, volume }
}

fn each_limit_is_exact<M: Mode>() {
    let credits = Credits::<M>::for_mode(2, limits_of((3, 4, 100)));
    assert_eq!(credits.limits(1), limits_of((3, 4, 100)));
    assert_eq!(credits.take(0, 60), Ok(()));
    assert_eq!((credits.lacks(0, 40), credits.lacks(0, 41)), (None, Some(Exhausted::Volume)));
    assert_eq!(credits.take(0, 41), Err(Exhausted::Volume));
    assert_eq!((credits.take(0, 40), credits.take(0, 1)), (Ok(()), Err(Exhausted::Volume)));
    assert_eq!((credits.take(0, 0), credits.take(0, 0)), (Ok(()), Err(Exhausted::Peer)));
    assert_eq!((credits.lacks(0, 0), credits.lacks(1, 100)), (Some(Exhausted::Peer), None));
    assert_eq!((credits.take(1, 100), credits.take(1, 0)), (Ok(()), Err(Exhausted::Total)));
    assert_eq!((credits.lacks(0, 0), credits.lacks(1, 0)), (Some(Exhausted::Total), Some(Exhausted::Total)));
    assert_eq!((credits.out(0), credits.out(1), credits.total_out()), ((3, 100), (1, 100), 4));
    assert_eq!(format!("{credits:?}"), "Credits(4 out)");
    let over = |peer, count, bytes, out_count, out_bytes| {
        Err(OverReturned { peer, count, bytes, out_count, out_bytes })
    };
    assert_eq!(credits.give(0, 4, 100), over(0, 4, 100, 3, 100));
    assert_eq!(credits.give(1, 1, 101), over(1, 1, 101, 1, 100));
    assert_eq!((credits.give(0, 1, 100), credits.out(0), credits.total_out()), (Ok(()), (2, 0), 3));
    assert_eq!((credits.give(0, 2, 0), credits.give(1, 1, 100)), (Ok(()), Ok(())));
    assert_eq!((credits.out(0), credits.out(1), credits.total_out()), ((0, 0), (0, 0), 0));
}

/// Of six requests that two peers with three each can have, all, or all but one.
fn a_total_is_a_limit_where_it_can_be_reached<M: Mode>() {
    for (total, takes, then) in [(5, 5, Exhausted::Total), (6, 6, Exhausted::Peer), (7, 6, Exhausted::Peer)] {
        let credits = Credits::<M>::for_mode(2, limits_of((3, total, 100)));
        (0..takes).for_each(|number| assert_eq!(credits.take(number % 2, 1), Ok(()), "{number} of {total}"));
        assert_eq!(credits.take(takes % 2, 1), Err(then), "{total}");
        assert_eq!((credits.total_out(), credits.lacks(takes % 2, 1)), (takes, Some(then)), "{total}");
        assert_eq!((credits.give(0, 3, 3), credits.total_out()), (Ok(()), takes - 3), "{total}");
    }
}

/// A debt is there from the first credit to the last, whoever is asked about first.
fn a_debt_is_seen_from_its_first_to_its_last_credit<M: Mode>() {
    let owed = Owed::<M>::for_mode(3);
    assert!(!owed.owes() && owed.next_owing(0).is_none());
    assert_eq!((owed.owe(1, 7), owed.owe(1, 5), owed.to(1)), ((1, 7), (2, 12), (2, 12)));
    assert!(owed.owes());
    for from in [0, 1, 2, 3, 4, u32::MAX] {
        assert_eq!(owed.next_owing(from), Some(1), "{from}");
    }
    assert_eq!(owed.owe(2, 0), (1, 0));
    assert_eq!([0, 1, 2, 3].map(|from| owed.next_owing(from)), [Some(1), Some(1), Some(2), Some(1)]);
    assert_eq!((owed.collect(1, 0), owed.collect(1, 1), owed.to(1)), ((0, 0), (1, 12), (1, 0)));
    assert_eq!((owed.collect(1, 9), owed.collect(1, 9)), ((1, 0), (0, 0)));
    assert_eq!((owed.next_owing(0), owed.owes()), (Some(2), true));
    assert_eq!((owed.collect(2, 1), owed.owes(), owed.next_owing(0)), ((1, 0), false, None));
    owed.restore(0, 0, 0);
    assert!(!owed.owes(), "nothing was put back");
    owed.restore(0, MAX_RETURN + 45, 9);
    assert_eq!((owed.to(0), owed.owes()), ((300, 9), true));
    assert_eq!((owed.collect(0, u32::MAX), owed.owes()), ((255, 9), true));
    assert_eq!((owed.collect(0, u32::MAX), owed.owes()), ((45, 0), false));
}

#[test]
fn limits_are_exact_in_every_mode() {
    fn all<M: Mode>() {
        each_limit_is_exact::<M>();
        a_total_is_a_limit_where_it_can_be_reached::<M>();
        a_debt_is_seen_from_its_first_to_its_last_credit::<M>();
    }
    all::<Seq>();
    all::<ParSync>();
    all::<Par>();
}

/// Peers 0 and 2 share limits, and so do peers 1 and 3.
fn each_pool_has_its_own_limits<M: Mode>() {
    let (wide, tight) = (limits_of((5, 6, 1000)), limits_of((1, 2, 10)));
    let credits = Credits::<M, _, _>::by_pool(&[0, 1, 0, 1][..], &[wide, tight], words);
    assert_eq!([0, 1, 2, 3].map(|peer| credits.limits(peer)), [wide, tight, wide, tight]);
    assert_eq!(
        (credits.take(1, 11), credits.lacks(1, 11)),
        (Err(Exhausted::Volume), Some(Exhausted::Volume))
    );
    assert_eq!((credits.take(1, 10), credits.take(1, 0)), (Ok(()), Err(Exhausted::Peer)));
    (0..5).for_each(|_| credits.take(0, 200).expect("the other's limits are wider"));
    assert_eq!((credits.take(0, 0), credits.lacks(0, 0)), (Err(Exhausted::Peer), Some(Exhausted::Peer)));
    assert_eq!((credits.take(2, 0), credits.take(2, 0)), (Ok(()), Err(Exhausted::Total)));
    assert_eq!((credits.lacks(2, 0), credits.lacks(3, 0)), (Some(Exhausted::Total), None));
    // Two peers of one request each cannot exceed two, so that total is no limit.
    assert_eq!((credits.take(3, 1), credits.take(3, 1)), (Ok(()), Err(Exhausted::Peer)));
    assert_eq!((credits.total_out(), credits.out(0), credits.out(1)), (8, (5, 1000), (1, 10)));
    assert!(credits.give(1, 1, 11).is_err() && credits.give(1, 2, 10).is_err());
    assert_eq!((credits.give(0, 5, 1000), credits.give(1, 1, 10)), (Ok(()), Ok(())));
    assert_eq!((credits.take(2, 0), credits.take(1, 9), credits.total_out()), (Ok(()), Ok(()), 4));
}

#[test]
fn peers_that_share_limits_share_them_with_nobody_else() {
    each_pool_has_its_own_limits::<Seq>();
    each_pool_has_its_own_limits::<ParSync>();
    each_pool_has_its_own_limits::<Par>();
    let all = Credits::<Seq, _, _>::by_pool(&[0, 0][..], &[limits_of((1, 1, 10))], words);
    assert_eq!((all.take(1, 10), all.take(0, 0)), (Ok(()), Err(Exhausted::Total)));
}

#[test]
#[should_panic(expected = "a peer without limits")]
fn every_peer_has_limits() {
    drop(Credits::<Seq, _, _>::by_pool(&[0, 2][..], &[limits_of((1, 1, 1)); 2], words));
}

#[test]
fn limits_beyond_a_packed_word_are_brought_down_to_it() {
    let credits = Credits::new(1, u32::MAX, u32::MAX, u64::MAX);
    assert_eq!(credits.limits(0), limits_of(((1 << 20) - 1, u32::MAX, (1 << 44) - 1)));
    if cfg!(miri) {
        return;
    }
    let most = (1 << 44) - 1;
    let (takes, rest) = (most / u64::from(u32::MAX), most % u64::from(u32::MAX));
    (0..takes).for_each(|_| credits.take(0, u32::MAX).expect("below the limit"));
    assert_eq!((credits.take(0, rest as u32), credits.take(0, 1)), (Ok(()), Err(Exhausted::Volume)));
    assert_eq!(credits.out(0), (takes as u32 + 1, most));
}

#[test]
fn over_return_says_how_much_was_out() {
    let credits = Credits::new(2, 4, 4, 100);
    credits.take(1, 40).expect("the first");
    let error = credits.give(1, 2, 40).expect_err("too many");
    assert_eq!(error.to_string(), "rank 1 returned 2 credits and 40 bytes, but only 1 and 40 are out");
    assert_eq!(credits.out(1), (1, 40));
}
