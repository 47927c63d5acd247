//! Errors that a client has asked to hear of.

use super::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::nic::{Report, Subscription};
use std::time::{Duration, Instant};

const ALL: gni_error_mask_t = gni_error_mask_t::MAX;

/// A put that fails, of which one hears at the queue or not.
fn fail(ranks: &[Rank], status: Status, mode: u16) {
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    put.cq_mode = mode;
    match status {
        Status::Bounds => put.remote_addr += 1 << 20,
        Status::Descriptor => put.remote_mem_hndl.qword1 ^= 1,
        // Registered, but not there.
        Status::Translation => {
            let bytes = (ranks[1].at(1 << 20), 64);
            (put.remote_addr, put.remote_mem_hndl) =
                (bytes.0, ranks[1].nic.register(bytes, None, 0).unwrap());
        }
        _ => panic!("{status:?}"),
    }
    ranks[0].post(1, &put).unwrap();
    if mode != GNI_CQMODE_SILENT {
        while nothing(&ranks[0].events) {}
    }
}

fn taken(subscription: &Subscription) -> Vec<(Status, gni_error_mask_t, u32)> {
    std::iter::from_fn(|| subscription.next())
        .map(|Report { status, category, serial, .. }| (status, category, serial))
        .collect()
}

#[test]
fn a_failure_is_reported_once_to_whoever_asked_for_it() {
    for mood in [Mood::Plain, Mood::Adversarial { seed: 6 }] {
        let ranks = job_in(mood, Chip::Aries, MODES, 2);
        let all = ranks[0].nic.subscribe(ALL, 0);
        let some = ranks[0].nic.subscribe(GNI_ERRMASK_ADDRESS_TRANSLATION, 0);
        let there = ranks[1].nic.subscribe(ALL, 0);
        fail(&ranks, Status::Bounds, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        fail(&ranks, Status::Translation, GNI_CQMODE_GLOBAL_EVENT);
        let bounds = (Status::Bounds, GNI_ERRMASK_TRANSACTION, 1);
        let translation = |serial| (Status::Translation, GNI_ERRMASK_ADDRESS_TRANSLATION, serial);
        assert_eq!(taken(&all), [bounds, translation(2)]);
        assert_eq!(taken(&some), [translation(1)]);
        assert_eq!(taken(&there), [], "it is the poster's");
        ranks[0].post(1, &ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8)).unwrap();
        while nothing(&ranks[0].events) {}
        assert_eq!(taken(&all), []);
    }
}

#[test]
fn a_mask_is_for_what_comes_after() {
    let ranks = job(Chip::Gemini, MODES, 2);
    let subscription = ranks[0].nic.subscribe(GNI_ERRMASK_TRANSACTION, 0);
    fail(&ranks, Status::Descriptor, GNI_CQMODE_SILENT);
    assert_eq!(subscription.set_mask(GNI_ERRMASK_TRANSIENT), GNI_ERRMASK_TRANSACTION);
    assert_eq!(subscription.mask(), GNI_ERRMASK_TRANSIENT);
    fail(&ranks, Status::Bounds, GNI_CQMODE_SILENT);
    assert_eq!(taken(&subscription), [(Status::Descriptor, GNI_ERRMASK_TRANSACTION, 1)]);
}

/// What is lost leaves a gap in the numbers.
#[test]
fn a_subscription_that_is_full_loses_what_comes() {
    let ranks = job(Chip::Aries, MODES, 2);
    let serials =
        |subscription: &Subscription| taken(subscription).iter().map(|one| one.2).collect::<Vec<_>>();
    let (small, usual) = (ranks[0].nic.subscribe(ALL, 3), ranks[0].nic.subscribe(ALL, 0));
    (0..5).for_each(|_| fail(&ranks, Status::Bounds, GNI_CQMODE_SILENT));
    assert_eq!(serials(&small), [1, 2, 3]);
    (0..65).for_each(|_| fail(&ranks, Status::Bounds, GNI_CQMODE_SILENT));
    assert_eq!(serials(&small), [6, 7, 8]);
    assert_eq!(serials(&usual), (1..=64).collect::<Vec<_>>());
}

#[test]
fn who_waits_gets_what_comes_together() {
    let ranks = job(Chip::Aries, MODES, 2);
    let subscription = ranks[0].nic.subscribe(ALL, 8);
    assert_eq!(subscription.wait(0, Duration::ZERO), Err(GNI_RC_INVALID_PARAM));
    (0..3).for_each(|_| fail(&ranks, Status::Bounds, GNI_CQMODE_SILENT));
    // As many as are wanted are there: nobody lingers.
    let long = Duration::from_secs(600);
    let (some, late) = subscription.wait(2, long).unwrap();
    assert_eq!((some.len(), late), (2, false));
    let (begun, short) = (Instant::now(), Duration::from_millis(30));
    let (some, late) = subscription.wait(2, short).unwrap();
    assert_eq!((some.len(), late), (1, true));
    assert!(begun.elapsed() >= short);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| subscription.wait(2, long));
        std::thread::sleep(short);
        let (waited, released) = (!waits.is_finished(), subscription.release());
        (0..2).for_each(|_| fail(&ranks, Status::Bounds, GNI_CQMODE_SILENT));
        assert_eq!(waits.join().unwrap().map(|(some, late)| (some.len(), late)), Ok((2, false)));
        assert_eq!((waited, released), (true, Err(GNI_RC_NOT_DONE)));
        let waits = scope.spawn(|| subscription.wait(2, long));
        std::thread::sleep(short);
        subscription.close();
        assert_eq!(waits.join().unwrap(), Err(GNI_RC_NOT_DONE), "the client has gone");
    });
    assert_eq!(subscription.release(), Ok(()));
}
