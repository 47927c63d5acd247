//! When a client that is held to the rules may use the source of a put again.

use super::moods::await_event;
use super::*;
use gasworks_ugni_sim::nic::{Inbound, Rule};
use std::sync::mpsc::{Receiver, channel};

/// Two ranks, each a process of its own, and the rules that the first breaks.
fn strict(mood: Mood) -> (Vec<Rank>, Receiver<Rule>, Arc<Inbound>) {
    let ranks = job_in(mood, Chip::Aries, MODES, 2);
    let ((blame, blamed), inbound) = (channel(), Arc::<Inbound>::default());
    let judge = Box::new(move |breach: &gasworks_ugni_sim::nic::Breach| blame.send(breach.rule).unwrap());
    ranks[0].nic.be_strict(judge, &inbound);
    ranks[1].nic.be_strict(Box::new(|breach| panic!("{breach:?}")), &Arc::default());
    (ranks, blamed, inbound)
}

const MOODS: [Mood; 3] = [Mood::Plain, Mood::Adversarial { seed: 3 }, Mood::Unordered { seed: 4 }];

/// The first rank asks, with a flag that comes after the bytes.
fn ask(ranks: &[Rank]) {
    ranks[0].write(0, &[1; 8]);
    let put = gni_post_descriptor_t {
        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
        sync_flag_addr: ranks[1].at(64),
        sync_flag_value: 9,
        ..ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT_W_SYNCFLAG, 8)
    };
    ranks[0].post(1, &put).unwrap();
}

fn await_that(ranks: &[Rank], is_so: impl Fn() -> bool) {
    let seen = (0..200).any(|_| {
        ranks.iter().for_each(|rank| rank.nic.progress());
        is_so()
    });
    assert!(seen, "it never comes");
}

/// The second answers when it has the question, and the first sees the answer.
fn answer(ranks: &[Rank]) {
    await_that(ranks, || ranks[1].bytes(64, 1) == [9]);
    assert_eq!(ranks[1].bytes(0, 8), [1; 8]);
    ranks[1].write(128, &[7; 8]);
    let put = gni_post_descriptor_t {
        local_addr: ranks[1].at(128),
        remote_addr: ranks[0].at(192),
        ..ranks[1].descriptor(&ranks[0], GNI_POST_FMA_PUT, 8)
    };
    ranks[1].post(0, &put).unwrap();
    await_that(ranks, || ranks[0].bytes(192, 8) == [7; 8]);
}

/// Takes the event of the question.
fn finish(ranks: &[Rank]) {
    let event = await_event(ranks, &ranks[0].events).expect("an event");
    ranks[0].events.completed(event.word).unwrap();
}

#[test]
fn a_source_is_free_when_its_receiver_has_answered() {
    for mood in MOODS {
        let (ranks, blamed, _) = strict(mood);
        ask(&ranks);
        answer(&ranks);
        ranks[0].write(0, &[2; 8]);
        finish(&ranks);
        assert!(blamed.try_recv().is_err(), "{mood:?}");
    }
}

#[test]
fn a_source_is_not_free_before_that() {
    for mood in MOODS {
        // With no answer at all, and before the answer.
        for answered in [false, true] {
            let (ranks, blamed, _) = strict(mood);
            ask(&ranks);
            if answered {
                ranks[0].write(0, &[2; 8]);
                assert!(!ranks[0].events.holds_event() || mood == Mood::Plain);
                assert_eq!(blamed.try_recv(), Ok(Rule::Source), "{mood:?}: found in the next call");
                ranks[0].write(0, &[1; 8]);
                answer(&ranks);
            } else {
                ranks[0].write(0, &[2; 8]);
            }
            finish(&ranks);
            assert_eq!(blamed.try_recv().is_ok(), !answered, "{mood:?}");
        }
    }
}

/// Answers by other means count as well: an event of the receiver's, a meeting of all ranks.
#[test]
fn an_answer_may_come_by_other_means() {
    let (ranks, blamed, inbound) = strict(Mood::Plain);
    ask(&ranks);
    inbound.note();
    ranks[0].write(0, &[2; 8]);
    finish(&ranks);
    assert!(blamed.try_recv().is_err());
}

/// What comes before the bytes have arrived is no answer, nor are the process's own bytes.
#[test]
fn what_comes_before_is_no_answer() {
    let late = (0..64).map(|seed| Mood::Adversarial { seed }).find(|mood| {
        let (ranks, ..) = strict(*mood);
        ask(&ranks);
        ranks[1].bytes(0, 8) != [1; 8]
    });
    let (ranks, blamed, inbound) = strict(late.expect("a put that is late"));
    ask(&ranks);
    inbound.note();
    ranks[0].write(0, &[2; 8]);
    finish(&ranks);
    assert_eq!(blamed.try_recv(), Ok(Rule::Source));

    let (ranks, blamed, _) = strict(Mood::Plain);
    let put = gni_post_descriptor_t {
        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
        remote_addr: ranks[0].at(64),
        sync_flag_addr: ranks[0].at(128),
        ..ranks[0].descriptor(&ranks[0], GNI_POST_FMA_PUT_W_SYNCFLAG, 8)
    };
    ranks[0].post(0, &put).unwrap();
    ranks[0].write(0, &[2; 8]);
    finish(&ranks);
    assert_eq!(blamed.try_recv(), Ok(Rule::Source));
}

/// Of a chain all links must have arrived.
#[test]
fn a_chain_is_free_when_all_of_it_was_answered() {
    for mood in MOODS {
        let (ranks, blamed, inbound) = strict(mood);
        let put = gni_post_descriptor_t {
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            ..ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8)
        };
        let link = gni_ct_put_post_descriptor_t {
            length: 8,
            remote_addr: ranks[1].at(64),
            remote_mem_hndl: ranks[1].handle,
            local_addr: ranks[0].at(64),
            ..gni_ct_put_post_descriptor_t::zeroed()
        };
        ranks[0].write(0, &[1; 8]);
        ranks[0].write(64, &[2; 8]);
        let link = gasworks_ugni_sim::nic::Link {
            endpoint: Some(&ranks[0].endpoints[1]),
            part: gasworks_ugni_sim::nic::Part::Put(link),
        };
        ranks[0].endpoints[1].post_chain(&put, [link], Way::Fma, 1).unwrap();
        await_that(&ranks, || ranks[1].bytes(0, 8) == [1; 8] && ranks[1].bytes(64, 8) == [2; 8]);
        inbound.note();
        ranks[0].write(64, &[3; 8]);
        finish(&ranks);
        assert!(blamed.try_recv().is_err(), "{mood:?}");
    }
}
