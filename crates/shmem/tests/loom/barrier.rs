//! The barrier.

use crate::{Contents, model, sleeps_on};
use gasworks_shmem::barrier::{Barrier, Meeting, Name};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sync::spin;
use loom::sync::Arc;
use loom::thread;

#[test]
fn shows_what_was_done_before_it() {
    model(|| {
        struct Shared {
            meetings: [Meeting; 2],
            values: [Contents; 2],
        }
        let shared = Arc::new(Shared {
            meetings: [Meeting::new(), Meeting::new()],
            values: [Contents::new(), Contents::new()],
        });
        let rank = |shared: &Shared, me: usize| {
            let barrier = Barrier::new(&shared.meetings, me, 0).expect("a rank");
            let pass = || {
                assert!(!barrier.arrive(Name::Is(me as u32)), "nobody sleeps");
                let agreed = loop {
                    match barrier.done() {
                        Some(name) => break name,
                        None => spin(),
                    }
                };
                assert_eq!(agreed, Name::Mismatch);
            };
            shared.values[me].write(me as u32 + 10);
            pass();
            assert_eq!(shared.values[1 - me].read(), 11 - me as u32);
            pass();
            // The other has read what it wanted, so this may be overwritten.
            shared.values[me].write(0);
        };
        let other = shared.clone();
        let thread = thread::spawn(move || rank(&other, 1));
        rank(&shared, 0);
        thread.join().expect("the other rank");
    });
}

#[test]
fn of_three() {
    model(|| {
        let shared = Arc::new(([(); 3].map(|()| Meeting::new()), [(); 3].map(|()| Contents::new())));
        let rank = |shared: &([Meeting; 3], [Contents; 3]), me: usize| {
            let barrier = Barrier::new(&shared.0, me, 0).expect("a rank");
            shared.1[me].write(1);
            let _ = barrier.arrive(Name::Any);
            // Waiting for two others is more than loom can follow; one look sees every order of arrival.
            if barrier.done().is_some() {
                assert_eq!(shared.1.iter().map(Contents::read).sum::<u32>(), 3);
            }
        };
        let others = [1, 2].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || rank(&shared, me))
        });
        rank(&shared, 0);
        others.into_iter().for_each(|thread| thread.join().expect("a rank"));
    });
}

/// Four ranks in a tree, of which two are quick: whoever finds all there sees what the others did, two counts away.
#[test]
fn in_a_tree_shows_what_was_done_before_it() {
    model(|| {
        let shared = Arc::new(([(); 4].map(|()| Meeting::new()), [(); 2].map(|()| Contents::new())));
        for quick in [0, 1] {
            let _ = Barrier::new(&shared.0, quick, 3).expect("a rank").arrive(Name::Any);
        }
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let barrier = Barrier::new(&other.0, 3, 3).expect("a rank");
            other.1[1].write(1);
            let _ = barrier.arrive(Name::Is(7));
            if let Some(name) = barrier.done() {
                assert_eq!((name, other.1[0].read()), (Name::Is(7), 1));
            }
        });
        let barrier = Barrier::new(&shared.0, 2, 3).expect("a rank");
        shared.1[0].write(1);
        let _ = barrier.arrive(Name::Any);
        if let Some(name) = barrier.done() {
            assert_eq!((name, shared.1[1].read()), (Name::Is(7), 1));
        }
        thread.join().expect("the other rank");
        assert_eq!(barrier.done(), Some(Name::Is(7)));
    });
}

/// The last to arrive wakes those that sleep.
#[test]
fn nobody_sleeps_when_all_have_arrived() {
    model(|| {
        let shared = Arc::new(([(); 3].map(|()| Meeting::new()), Doorbell::new()));
        let arrive = |shared: &([Meeting; 3], Doorbell), me: usize| {
            let barrier = Barrier::new(&shared.0, me, 0).expect("a rank");
            if barrier.arrive(Name::Any) {
                let _ = shared.1.ring();
            }
        };
        let others = [1, 2].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || arrive(&shared, me))
        });
        let barrier = Barrier::new(&shared.0, 0, 0).expect("a rank");
        assert!(!barrier.arrive(Name::Any) || barrier.done().is_some());
        let ticket = shared.1.ticket();
        let asleep = barrier.arm().then_some(ticket);
        others.into_iter().for_each(|thread| thread.join().expect("a rank"));
        assert!(!sleeps_on(&shared.1, asleep), "all have arrived, and it sleeps on");
        assert_eq!(barrier.done(), Some(Name::Any));
    });
}

/// A sleeper of the next phase, while the last of this one is still about to take a sleeper's bit away.
#[test]
fn wakes_a_sleeper_of_the_next_phase() {
    model(|| {
        let shared = Arc::new(([(); 2].map(|()| Meeting::new()), Doorbell::new()));
        let barrier = Barrier::new(&shared.0, 0, 0).expect("a rank");
        let _ = barrier.arrive(Name::Any);
        let first = shared.1.ticket();
        assert!(barrier.arm());
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let barrier = Barrier::new(&other.0, 1, 0).expect("a rank");
            for _ in 0..2 {
                if barrier.arrive(Name::Any) {
                    let _ = other.1.ring();
                }
                if barrier.done().is_none() {
                    return;
                }
            }
        });
        if barrier.done().is_some() {
            let wakes = barrier.arrive(Name::Any);
            if wakes {
                let _ = shared.1.ring();
            }
            let ticket = shared.1.ticket();
            let asleep = barrier.arm().then_some(ticket);
            thread.join().expect("the other rank");
            if barrier.done().is_some() {
                assert!(!sleeps_on(&shared.1, asleep), "all have arrived, and it sleeps on");
            }
        } else {
            thread.join().expect("the other rank");
            assert!(!sleeps_on(&shared.1, Some(first)), "all have arrived, and it sleeps on");
        }
    });
}

/// Two threads of a rank ask, and one of them has come to the next phase meanwhile.
#[test]
fn finished_by_two_threads_stays_finished() {
    model(|| {
        let meetings: &'static [Meeting] = vec![Meeting::new()].leak();
        let barrier = Arc::new(Barrier::new(meetings, 0, 0).expect("a rank"));
        let _ = barrier.arrive(Name::Any);
        let other = barrier.clone();
        let thread = thread::spawn(move || other.done().is_some());
        assert_eq!(barrier.done(), Some(Name::Any));
        let _ = barrier.arrive(Name::Any);
        assert_eq!(barrier.done(), Some(Name::Any));
        thread.join().expect("the other thread");
        assert_eq!(barrier.standing(), (2, false));
        assert!(barrier.arm(), "it waits for nothing");
    });
}

/// A group meets, leaves, and its meetings are used by another: nothing of the first is left, and whatever its ranks did before they left is
/// done. One of the first group may leave without having looked, or without having come.
#[test]
fn meeting_is_as_good_as_new_once_all_have_left() {
    for comes in [true, false] {
        model(move || {
            let shared = Arc::new(([(); 2].map(|()| Meeting::new()), Contents::new()));
            let other = shared.clone();
            let thread = thread::spawn(move || {
                let barrier = Barrier::new(&other.0, 1, 0).expect("a rank");
                // For whom a bell would ring is no matter here.
                let _ = comes && barrier.arrive(Name::Is(1));
                other.1.write(1);
                other.0.iter().for_each(Meeting::leave);
            });
            let first = &shared.0[0];
            let barrier = Barrier::new(&shared.0, 0, 0).expect("a rank");
            let _ = barrier.arrive(Name::Is(7));
            let _ = barrier.arm();
            shared.0.iter().for_each(Meeting::leave);
            if first.renew(2) {
                assert_eq!(shared.1.read(), 1);
                shared.1.write(2);
                // It is its owner's alone.
                let alone = Barrier::new([first], 0, 0).expect("a rank");
                for name in [Name::Any, Name::Is(3), Name::Any, Name::Any] {
                    assert!(!alone.arrive(name), "somebody seems to be asleep");
                    assert_eq!(alone.done(), Some(name));
                    assert!(alone.is_sound());
                }
                assert!(!first.renew(1), "nobody has left");
            }
            thread.join().expect("the other rank");
        });
    }
}
