//! Faults that are asked for happen where and when they were asked for, and are told as the interface tells them.

use super::*;
use gasworks_ugni_sim::entry::{Entry, Status};

/// Two ranks that share their faults.
fn ranks(chip: Chip, faults: &str) -> Vec<Rank> {
    let faults = Faults::parse(faults, 3, |_, _| true).unwrap();
    job_with((Mood::Plain, faults), chip, MODES, 2, WORDS, |arena| arena)
}

fn put(ranks: &[Rank]) -> gni_post_descriptor_t {
    ranks[0].write(0, &[5; 8]);
    gni_post_descriptor_t {
        cq_mode: GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
        ..ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8)
    }
}

#[test]
fn a_transaction_fails_as_it_is_to_and_moves_nothing() {
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Ok) {
        let name = format!("{status:?}");
        let name: String = name
            .chars()
            .enumerate()
            .flat_map(|(at, c)| {
                (at > 0 && c.is_uppercase()).then_some('-').into_iter().chain(c.to_lowercase())
            })
            .collect();
        assert_eq!(Status::named(&name), Some(status), "{name}");
        for chip in Chip::ALL {
            let ranks = ranks(chip, &format!("transaction:{name}@2"));
            for turn in 1..=3 {
                ranks[1].write(0, &[0; 8]);
                ranks[0].post(1, &put(&ranks)).unwrap();
                let seen = event(&ranks[0].events);
                let fails = turn == 2;
                assert_eq!(seen.status, if fails { status } else { Status::Ok });
                assert_eq!(ranks[1].bytes(0, 8), if fails { [0; 8] } else { [5; 8] });
                assert_eq!(nothing(&ranks[1].arrivals), fails);
                ranks[0].events.completed(seen.word).unwrap();
            }
        }
    }
    assert_eq!(Status::named("no-such"), None);
}

#[test]
fn an_event_that_found_its_queue_full_is_told_of_with_the_next() {
    for chip in Chip::ALL {
        let ranks = ranks(chip, "queue:overrun@1 remote-queue:overrun@2");
        for _ in 0..3 {
            ranks[0].post(1, &put(&ranks)).unwrap();
        }
        // Of the first post the event here was lost, of the second the one there.
        let here: Vec<_> = (0..2).map(|_| event(&ranks[0].events)).collect();
        assert_eq!(here.iter().map(|event| event.overrun).collect::<Vec<_>>(), [true, false]);
        let lost_there = |event: &Event| Entry::decode(event.word, chip).unwrap().remote_overrun;
        assert_eq!(here.iter().map(lost_there).collect::<Vec<_>>(), [true, false]);
        assert!(nothing(&ranks[0].events));
        let there: Vec<_> = (0..2).map(|_| event(&ranks[1].arrivals).overrun).collect();
        assert_eq!(there, [true, false]);
        assert!(nothing(&ranks[1].arrivals));
    }
}

#[test]
fn datagrams_time_out_and_are_terminated() {
    let ranks = ranks(Chip::Aries, "datagram:timeout@1 datagram:terminated@2");
    for state in [GNI_POST_TIMEOUT, GNI_POST_TERMINATED] {
        ranks[0].endpoints[1].post_datagram(b"x", None).unwrap();
        assert_eq!(ranks[0].endpoints[1].test_datagram(None, 9).unwrap().state, state);
    }
    ranks[0].endpoints[1].post_datagram(b"x", None).unwrap();
    ranks[1].endpoints[0].post_datagram(b"y", None).unwrap();
    assert_eq!(ranks[0].endpoints[1].test_datagram(None, 9).unwrap().data, b"y");
}
