//! Datagrams: who gets whose, and what becomes of those that nobody gets.

use super::*;
use gasworks_ugni_sim::nic::Outcome;
use proptest::prelude::*;

fn ranks(count: u32) -> Vec<Rank> {
    job(Chip::Aries, MODES, count)
}

fn unbound(rank: &Rank) -> Endpoint {
    rank.nic.endpoint(None).unwrap()
}

fn over(end: &Endpoint, id: Option<u64>) -> Outcome {
    let outcome = end.test_datagram(id, 128).unwrap();
    assert_eq!(outcome.state, GNI_POST_COMPLETED);
    outcome
}

fn is_pending(end: &Endpoint, id: Option<u64>) -> bool {
    end.test_datagram(id, 128).unwrap().state == GNI_POST_PENDING
}

#[test]
fn who_post_to_each_other_get_each_others() {
    let ranks = ranks(2);
    let (here, there) = (&ranks[0].endpoints[1], &ranks[1].endpoints[0]);
    here.post_datagram(b"from 0", None).unwrap();
    assert!(is_pending(here, None));
    there.post_datagram(b"from one", Some(9)).unwrap();
    // The first is there already.
    let outcome = over(there, Some(9));
    assert_eq!(
        (outcome.peer, outcome.id, &outcome.data[..]),
        (Some((address(0), 0)), Some(9), &b"from 0"[..])
    );
    let outcome = over(here, None);
    assert_eq!(
        (outcome.peer, outcome.id, &outcome.data[..]),
        (Some((address(1), 1)), None, &b"from one"[..])
    );
    assert_eq!(here.test_datagram(None, 128), Err(GNI_RC_NO_MATCH), "it is forgotten");
    // And once more, with nothing in it.
    there.post_datagram(b"", None).unwrap();
    here.post_datagram(b"", None).unwrap();
    assert_eq!((over(there, None).data.len(), over(here, None).data.len()), (0, 0));
}

#[test]
fn whoever_comes_is_taken_in_order() {
    let ranks = ranks(4);
    let listeners = [unbound(&ranks[0]), unbound(&ranks[0]), unbound(&ranks[0])];
    for (listener, id) in listeners.iter().zip(10..) {
        listener.post_datagram(&[id as u8], Some(id)).unwrap();
    }
    for (rank, id) in [(2, 10), (1, 11)] {
        let end = &ranks[rank].endpoints[0];
        end.post_datagram(&[rank as u8], None).unwrap();
        assert!(is_pending(end, None), "nobody has looked");
        let probed = ranks[0].nic.probe_datagrams(true).unwrap();
        assert_eq!((probed.id, probed.state), (Some(id), GNI_POST_COMPLETED));
        let outcome = over(&listeners[id as usize - 10], Some(id));
        assert_eq!(
            (outcome.peer, &outcome.data[..]),
            (Some((address(rank as u32), rank as u32)), &[rank as u8][..])
        );
        assert_eq!(over(end, None).data, [id as u8]);
    }
    // A post to its sender comes first.
    let named = &ranks[0].endpoints[3];
    named.post_datagram(b"named", None).unwrap();
    ranks[3].endpoints[0].post_datagram(b"three", None).unwrap();
    assert_eq!(over(named, None).data, b"three");
    assert!(is_pending(&listeners[2], Some(12)));
    assert_eq!(over(&ranks[3].endpoints[0], None).data, b"named");
}

#[test]
fn an_offer_is_kept_until_somebody_wants_it() {
    let ranks = ranks(3);
    for rank in [2, 1] {
        ranks[rank].endpoints[0].post_datagram(&[rank as u8], None).unwrap();
    }
    assert_eq!(ranks[0].nic.probe_datagrams(false), None);
    let named = &ranks[0].endpoints[1];
    named.post_datagram(b"named", None).unwrap();
    assert_eq!(over(named, None).data, [1]);
    let listener = unbound(&ranks[0]);
    listener.post_datagram(b"any", Some(1)).unwrap();
    assert_eq!(over(&listener, Some(1)).data, [2]);
    assert_eq!(over(&ranks[1].endpoints[0], None).data, b"named");
    assert_eq!(over(&ranks[2].endpoints[0], None).data, b"any");
}

#[test]
fn what_cannot_be_posted_is_refused() {
    let ranks = ranks(2);
    let end = &ranks[0].endpoints[1];
    let listener = unbound(&ranks[0]);
    assert_eq!(end.post_datagram(&[0; 129], None), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(listener.post_datagram(b"x", None), Err(GNI_RC_INVALID_PARAM), "whoever comes needs a name");
    assert_eq!(end.test_datagram(None, 128), Err(GNI_RC_NO_MATCH));
    assert_eq!(end.cancel_datagram(None), Err(GNI_RC_NO_MATCH));
    end.post_datagram(&[7; 128], Some(1)).unwrap();
    assert_eq!(end.post_datagram(b"x", Some(2)), Err(GNI_RC_ERROR_RESOURCE), "there is one already");
    let other = ranks[0].nic.endpoint(None).unwrap();
    other.bind(address(1), 1).unwrap();
    assert_eq!(
        other.post_datagram(b"x", None),
        Err(GNI_RC_ERROR_RESOURCE),
        "to that peer, by another endpoint"
    );
    assert_eq!(end.test_datagram(Some(2), 128), Err(GNI_RC_NO_MATCH));
    assert_eq!(end.test_datagram(None, 128), Err(GNI_RC_NO_MATCH));
    // Too little room loses nothing.
    ranks[1].endpoints[0].post_datagram(&[8; 100], None).unwrap();
    assert_eq!(end.test_datagram(Some(1), 99), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(over(end, Some(1)).data, [8; 100]);
}

#[test]
fn a_datagram_that_is_cancelled_is_told_of_as_that() {
    let ranks = ranks(2);
    let end = &ranks[0].endpoints[1];
    end.post_datagram(b"never", Some(5)).unwrap();
    assert_eq!((end.unbind(), end.idle()), (Err(GNI_RC_NOT_DONE), Err(GNI_RC_NOT_DONE)));
    assert_eq!(end.cancel_datagram(Some(6)), Err(GNI_RC_NO_MATCH));
    end.cancel_datagram(Some(5)).unwrap();
    assert_eq!(end.cancel_datagram(Some(5)), Err(GNI_RC_NO_MATCH), "it is over");
    let probed = ranks[0].nic.probe_datagrams(true).unwrap();
    assert_eq!((probed.state, probed.id, probed.peer), (GNI_POST_TERMINATED, Some(5), Some((address(1), 1))));
    assert_eq!(end.test_datagram(Some(5), 0).unwrap().state, GNI_POST_TERMINATED);
    end.unbind().unwrap();
    // An answer to what was cancelled is for nobody.
    let listener = unbound(&ranks[1]);
    listener.post_datagram(b"answer", Some(1)).unwrap();
    assert_eq!(over(&listener, Some(1)).data, b"never");
    let other = unbound(&ranks[0]);
    other.post_datagram(b"other", Some(2)).unwrap();
    assert!(is_pending(&other, Some(2)));
}

/// A peer that is not there yet may come; one that was there and goes is waited for no longer.
#[test]
fn a_peer_may_come_later_and_go() {
    let ranks = ranks(1);
    let rank = &ranks[0];
    let end = rank.nic.endpoint(None).unwrap();
    end.bind(address(9), 9).unwrap();
    end.post_datagram(b"to nobody", None).unwrap();
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(is_pending(&end, None));
    }
    drop(end);
    assert_eq!(rank.nic.probe_datagrams(false), None, "it went with its endpoint");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..Default::default() })]
    /// Whatever the order of posts, the nth to a peer meets its nth, and each gets the other's.
    #[test]
    fn the_nth_meets_the_nth(order in prop::collection::vec((0..3usize, 0..3usize), 0..60)) {
        let ranks = ranks(3);
        let mut posted = [[0u8; 3]; 3];
        let mut taken = [[0u8; 3]; 3];
        let mut is_posted = [[false; 3]; 3];
        for (rank, peer) in order {
            if rank == peer {
                continue;
            }
            let end = &ranks[rank].endpoints[peer];
            if is_posted[rank][peer] {
                let outcome = end.test_datagram(None, 128).unwrap();
                // Over as soon as the other has posted as many, and looked since.
                if outcome.state == GNI_POST_PENDING {
                    continue;
                }
                prop_assert_eq!(outcome.data, [peer as u8, taken[rank][peer]]);
                prop_assert!(posted[peer][rank] > taken[rank][peer]);
                taken[rank][peer] += 1;
                is_posted[rank][peer] = false;
            } else {
                end.post_datagram(&[rank as u8, posted[rank][peer]], None).unwrap();
                posted[rank][peer] += 1;
                is_posted[rank][peer] = true;
            }
        }
        for (rank, peer) in [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)] {
            if is_posted[rank][peer] {
                ranks[peer].nic.serve_letters();
                let pending = is_pending(&ranks[rank].endpoints[peer], None);
                prop_assert_eq!(pending, posted[peer][rank] < posted[rank][peer], "{} to {}", rank, peer);
            }
        }
    }
}
