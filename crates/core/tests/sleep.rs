//! A rank sleeps until any of its transports has something, whatever each is waited for by.

use gasworks_core::{
    Arrived, Attributes, Bell, Class, Flow, Limits, Rank, Reservation, Wait, WaitSet, Wire, WireError,
};
use gasworks_os::eventfd::EventFd;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sync::Par;
use gasworks_sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A sleep that nothing ends lasts too long for any test.
const LONG: Duration = Duration::from_secs(60);

enum By {
    Bell(Doorbell),
    Descriptor(EventFd),
    Nap(Duration),
}

/// A transport whose messages are counted.
struct End {
    by: By,
    /// How many have come and not been taken, and whether the next one is to end a sleep.
    state: Mutex<(u64, bool)>,
    armed: AtomicU64,
    broken: bool,
}

impl Bell for End {
    fn bell(&self) -> &Doorbell {
        let By::Bell(bell) = &self.by else { panic!("it has none") };
        bell
    }
}

#[derive(Clone)]
struct Fake(Arc<End>);

impl Fake {
    fn new(by: By) -> Self {
        Self(Arc::new(End { by, state: Mutex::default(), armed: AtomicU64::new(0), broken: false }))
    }
    fn bell() -> Self {
        Self::new(By::Bell(Doorbell::new()))
    }
    fn descriptor() -> Self {
        Self::new(By::Descriptor(EventFd::new().expect("an event counter")))
    }
    fn nap(nap: Duration) -> Self {
        Self::new(By::Nap(nap))
    }
    fn send(&self) {
        let mut state = self.0.state.lock().expect("nobody panics");
        state.0 += 1;
        let wanted = std::mem::take(&mut state.1);
        drop(state);
        match &self.0.by {
            By::Bell(bell) if wanted => gasworks_core::wire::ring(bell),
            By::Descriptor(event) if wanted => event.ring().expect("it rings"),
            _ => {}
        }
    }
    fn take(&self) -> u64 {
        std::mem::take(&mut self.0.state.lock().expect("nobody panics").0)
    }
    fn armed(&self) -> u64 {
        self.0.armed.load(SeqCst)
    }
}

impl Wire<Par> for Fake {
    fn attributes(&self) -> Attributes {
        Attributes::new("fake", Limits { max_medium: 0, max_long: 0, packed_long: 0 }, Flow::SEED)
    }
    fn reserve(&self, to: Rank, _: Class, _: usize) -> Result<Reservation<'_>, WireError> {
        Err(WireError::PeerGone { rank: to })
    }
    fn commit(&self, _: Reservation<'_>, _: &[u8]) -> Result<(), WireError> {
        Ok(())
    }
    fn cancel(&self, _: Reservation<'_>) {}
    fn poll(&self, _: usize, _: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        Ok(0)
    }
    fn wait(&self) -> Wait<'_> {
        match &self.0.by {
            By::Bell(_) => Wait::Bell(self.0.clone()),
            By::Descriptor(event) => Wait::Descriptor(event.as_fd()),
            By::Nap(_) => Wait::Nothing,
        }
    }
    fn arm(&self) -> Result<Duration, WireError> {
        let mut state = self.0.state.lock().expect("nobody panics");
        if let By::Descriptor(event) = &self.0.by {
            event.clear();
        }
        state.1 = true;
        self.0.armed.fetch_add(1, SeqCst);
        if self.0.broken {
            return Err(WireError::PeerGone { rank: 7 });
        }
        let nap = if let By::Nap(nap) = self.0.by { nap } else { Duration::MAX };
        Ok(if state.0 == 0 { nap } else { Duration::ZERO })
    }
}

fn sleep(waits: &WaitSet, wires: &[Fake], limit: Duration) -> Result<bool, WireError> {
    waits.sleep(wires.iter(), limit, &|| true)
}

/// Sets of transports of which none naps.
fn sets() -> Vec<Vec<Fake>> {
    let (bell, descriptor) = (Fake::bell, Fake::descriptor);
    if cfg!(miri) {
        // It has no `ppoll`.
        return vec![vec![bell()]];
    }
    vec![
        vec![bell()],
        vec![descriptor()],
        vec![bell(), bell()],
        vec![bell(), descriptor()],
        vec![descriptor(), descriptor(), bell(), bell()],
    ]
}

/// Waits until the thread that sleeps has armed all its transports so often, and most likely sleeps.
fn asleep(wires: &[Fake], times: u64) {
    while wires.iter().any(|wire| wire.armed() < times) {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(1));
}

#[test]
fn each_transport_ends_a_sleep_and_so_does_a_wake() {
    for wires in sets() {
        let waits = WaitSet::new();
        for (round, wire) in (1..).zip(wires.iter().map(Some).chain([None, None])) {
            std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| sleep(&waits, &wires, LONG));
                asleep(&wires, round);
                match wire {
                    Some(wire) => wire.send(),
                    None => waits.wake(wires.iter()),
                }
                assert_eq!(sleeper.join().expect("no panic"), Ok(true));
            });
            assert_eq!(wires.iter().map(Fake::take).sum::<u64>(), u64::from(wire.is_some()));
        }
    }
}

#[test]
fn nobody_sleeps_where_something_has_come_or_is_not_to_stay() {
    for wires in sets() {
        let waits = WaitSet::new();
        for wire in &wires {
            wire.send();
            assert_eq!(sleep(&waits, &wires, LONG), Ok(false));
            wire.take();
        }
        assert_eq!(waits.sleep(wires.iter(), LONG, &|| false), Ok(false));
        // What woke nobody ends no sleep, nor does anything else for long: a thread may still tell of what came above.
        waits.wake(wires.iter());
        let limit = Duration::from_millis(2);
        let lasts = |_| {
            let begun = Instant::now();
            assert_eq!(sleep(&waits, &wires, limit), Ok(true));
            begun.elapsed() >= limit
        };
        assert!((0..10).any(lasts), "each sleep is ended by nothing");
    }
}

#[cfg(not(miri))]
#[test]
fn all_transports_are_asked_and_the_first_that_is_broken_says_so() {
    let broken = Fake(Arc::new(End {
        by: By::Nap(LONG),
        state: Mutex::default(),
        armed: AtomicU64::new(0),
        broken: true,
    }));
    let first = Fake::bell();
    first.send();
    let wires = [first, Fake::descriptor(), broken];
    assert_eq!(sleep(&WaitSet::new(), &wires, LONG), Err(WireError::PeerGone { rank: 7 }));
    assert_eq!(wires.map(|wire| wire.armed()), [1; 3]);
}

#[cfg(not(miri))]
#[test]
fn a_transport_that_ends_no_sleep_is_looked_at_again_soon() {
    let nap = Duration::from_millis(1);
    for beside in [None, Some(Fake::bell()), Some(Fake::descriptor())] {
        let wires: Vec<_> = beside.into_iter().chain([Fake::nap(LONG), Fake::nap(nap)]).collect();
        let (waits, begun) = (WaitSet::new(), Instant::now());
        assert_eq!(sleep(&waits, &wires, LONG), Ok(true));
        assert!(begun.elapsed() >= nap);
    }
    // A wake ends such a sleep, too.
    let (waits, wires) = (WaitSet::new(), [Fake::nap(LONG)]);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep(&waits, &wires, LONG));
        asleep(&wires, 1);
        waits.wake(wires.iter());
        assert_eq!(sleeper.join().expect("no panic"), Ok(true));
    });
}

/// No message is slept through, by one thread or by several, whichever transport it comes by.
#[test]
fn no_message_is_slept_through() {
    const MESSAGES: u64 = if cfg!(miri) { 20 } else { 4_000 };
    for wires in sets() {
        for sleepers in [1, 3] {
            let begun = Instant::now();
            let (waits, taken, sent) = (WaitSet::new(), AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for _ in 0..sleepers {
                    scope.spawn(|| {
                        while taken.load(SeqCst) < MESSAGES {
                            let found = wires.iter().map(Fake::take).sum::<u64>();
                            if taken.fetch_add(found, SeqCst) + found == MESSAGES {
                                waits.wake(wires.iter());
                            } else if found == 0 {
                                let stay = || taken.load(SeqCst) < MESSAGES;
                                waits.sleep(wires.iter(), LONG, &stay).expect("nothing is wrong");
                            }
                        }
                    });
                }
                for wire in wires.iter().cycle().take(MESSAGES as usize) {
                    let number = sent.fetch_add(1, SeqCst);
                    wire.send();
                    // Now and then the sleepers fall asleep.
                    while number % 4 == 0 && taken.load(SeqCst) <= number {
                        std::thread::yield_now();
                    }
                }
            });
            assert_eq!(taken.load(SeqCst), MESSAGES);
            assert!(begun.elapsed() < LONG, "a message was slept through");
        }
    }
}

/// One wake wakes each thread of a rank about once: none comes back for what another has been woken for.
#[test]
fn threads_that_were_woken_sleep_again() {
    const SLEEPERS: u64 = 4;
    for wires in sets() {
        let (waits, ends, sleeps) = (WaitSet::new(), AtomicU64::new(0), AtomicU64::new(0));
        let left = AtomicU64::new(SLEEPERS);
        let (stay, mut most) = (|| ends.load(SeqCst) == 0, 0);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    while stay() {
                        sleeps.fetch_add(1, SeqCst);
                        waits.sleep(wires.iter(), LONG, &stay).expect("nothing is wrong");
                    }
                    left.fetch_sub(1, SeqCst);
                });
            }
            for _ in 0..10 {
                asleep(&wires, SLEEPERS);
                std::thread::sleep(Duration::from_millis(if cfg!(miri) { 0 } else { 4 }));
                let before = sleeps.load(SeqCst);
                waits.wake(wires.iter());
                std::thread::sleep(Duration::from_millis(4));
                most = most.max(sleeps.load(SeqCst) - before);
            }
            ends.store(1, SeqCst);
            while left.load(SeqCst) > 0 {
                waits.wake(wires.iter());
                std::thread::yield_now();
            }
        });
        assert!(most <= 8 * SLEEPERS, "{most} sleeps after one wake");
    }
}

#[cfg(not(miri))]
#[test]
fn threads_of_a_rank_end_with_it() {
    let wires = [Fake::bell(), Fake::descriptor(), Fake::bell()];
    let waits = WaitSet::new();
    assert_eq!(sleep(&waits, &wires, Duration::from_millis(1)), Ok(true));
    assert_eq!(
        wires.each_ref().map(|wire| Arc::strong_count(&wire.0)),
        [3, 1, 3],
        "a thread each, and what ends it"
    );
    drop(waits);
    assert_eq!(wires.map(|wire| Arc::strong_count(&wire.0)), [1; 3]);
}
