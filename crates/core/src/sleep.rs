//! How a rank sleeps until one of its transports has something: on a doorbell, on descriptors, or for a while.
//!
//! A transport says what ends a sleep on it ([`Wait`]). Where all that there is is one doorbell, a sleep is a wait on its word
//! (`futex(2)`). Where there are descriptors it is a `poll(2)`, and a thread turns each doorbell into a descriptor: it sleeps on the word,
//! and rings an event counter when that has changed. That thread keeps the bell armed; but nobody rings a bell before the transport
//! has been [armed](Wire::arm), so it sleeps as long as this rank works.

use crate::wire::{Bell, Wait, Wire, WireError, ring};
use gasworks_os::eventfd::EventFd;
use gasworks_os::threads;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sock::sleeper;
use gasworks_sync::atomic::{AtomicBool, Ordering};
use gasworks_sync::{Lock, Mode, Par, kill_point};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a rank sleeps that cannot be woken by all it has, since the system gives no descriptor or thread for that.
const NAP: Duration = Duration::from_micros(50);
/// The stack of a doorbell's thread, in bytes.
const STACK: usize = 128 << 10;
/// How long a doorbell's thread sleeps at a time.
const HOUR: Duration = Duration::from_secs(3600);

/// What the threads of a rank sleep on: its transports, and each other's wakes.
pub struct WaitSet {
    /// What wakes ring where no transport has a doorbell.
    own: Doorbell,
    turned: OnceLock<Option<Turned>>,
}

/// What the transports of a rank have.
struct Waits<'a> {
    bells: Vec<Arc<dyn Bell>>,
    descriptors: Vec<BorrowedFd<'a>>,
}

impl<'a> Waits<'a> {
    fn of<M: Mode, W: Wire<M> + ?Sized + 'a>(wires: impl Iterator<Item = &'a W>) -> Self {
        let mut all = Self { bells: Vec::new(), descriptors: Vec::new() };
        for wire in wires {
            match wire.wait() {
                Wait::Bell(bell) => all.bells.push(bell),
                Wait::Descriptor(fd) => all.descriptors.push(fd),
                Wait::Nothing => {}
            }
        }
        all
    }

    /// Whether one word is all that a sleep has to be on.
    fn is_one_bell(&self) -> bool {
        self.descriptors.is_empty() && self.bells.len() < 2
    }
}

impl WaitSet {
    /// For a rank none of whose threads sleeps.
    pub fn new() -> Self {
        Self { own: Doorbell::new(), turned: OnceLock::new() }
    }

    /// Sleeps until something may have come by one of these transports, which are the same each time, or until [`wake`](Self::wake) is
    /// called; at most `limit`. Not at all if `stay` says no, which is asked once a wake can no longer be missed. Whether it has slept.
    ///
    /// # Errors
    /// Those of [`Wire::arm`].
    #[cold]
    pub fn sleep<'a, M: Mode, W: Wire<M> + ?Sized + 'a>(
        &self,
        wires: impl Iterator<Item = &'a W> + Clone,
        limit: Duration,
        stay: &dyn Fn() -> bool,
    ) -> Result<bool, WireError> {
        let waits = Waits::of(wires.clone());
        // How long a sleep may be, if it may be.
        let arm = || {
            // All, whatever the first says: each has to look whether what others write to is sound.
            let longest = wires.clone().try_fold(limit, |least, wire| Ok(least.min(wire.arm()?)))?;
            let may = !longest.is_zero() && stay();
            if may {
                kill_point!("core.sleep.asleep");
            }
            Ok(may.then_some(longest))
        };
        let turned = if waits.is_one_bell() { None } else { self.turned(&waits) };
        if let Some(turned) = turned {
            let _asleep = turned.begin();
            if let Some(longest) = arm()? {
                let all: Vec<_> = waits.descriptors.into_iter().chain([turned.event.fd.as_fd()]).collect();
                sleeper::sleep_on(&all, longest);
                return Ok(true);
            }
        } else {
            let bell = waits.bells.first().map_or(&self.own, |bell| bell.bell());
            let ticket = bell.ticket();
            if let Some(longest) = arm()? {
                let is_all = waits.is_one_bell();
                sleeper::sleep(bell.word(), ticket, if is_all { longest } else { longest.min(NAP) });
                return Ok(true);
            }
        }
        // Something is on its way, perhaps from a sender that waits for this very core.
        std::thread::yield_now();
        Ok(false)
    }

    /// Wakes this rank's threads that [sleep](Self::sleep) on these transports.
    #[cold]
    pub fn wake<'a, M: Mode, W: Wire<M> + ?Sized + 'a>(&self, wires: impl Iterator<Item = &'a W>) {
        match self.turned.get() {
            // It cannot fail: a full one is readable already.
            Some(Some(turned)) => _ = turned.event.fd.ring(),
            _ => ring(Waits::of(wires).bells.first().map_or(&self.own, |bell| bell.bell())),
        }
    }

    /// The doorbells as a descriptor; `None` if the system gives none.
    fn turned(&self, waits: &Waits<'_>) -> Option<&Turned> {
        self.turned.get_or_init(|| Turned::new(&waits.bells)).as_ref()
    }
}

impl Default for WaitSet {
    fn default() -> Self {
        Self::new()
    }
}

/// An event counter that is rung when a doorbell is, and by wakes.
struct Turned {
    event: Arc<Event>,
    threads: Vec<(Arc<dyn Bell>, JoinHandle<()>)>,
    /// How many threads are asleep on it or about to be.
    asleep: <Par as Mode>::Lock<u32>,
}

struct Event {
    fd: EventFd,
    ends: AtomicBool,
}

impl Turned {
    fn new(bells: &[Arc<dyn Bell>]) -> Option<Self> {
        let event = Arc::new(Event { fd: EventFd::new().ok()?, ends: AtomicBool::new(false) });
        let mut this = Self { event, threads: Vec::new(), asleep: Lock::new(0) };
        for bell in bells {
            let (event, turns) = (this.event.clone(), bell.clone());
            let thread =
                threads::start("gasworks-bell", Some(STACK), move || turn(turns.bell(), &event)).ok()?;
            this.threads.push((bell.clone(), thread));
        }
        Some(this)
    }

    /// A thread is about to be asleep. The first one clears the counter: what rings from then on ends the sleep of all.
    fn begin(&self) -> Asleep<'_> {
        self.asleep.with(|asleep| {
            if *asleep == 0 {
                self.event.fd.clear();
            }
            *asleep += 1;
        });
        Asleep(self)
    }
}

struct Asleep<'a>(&'a Turned);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.asleep.with(|asleep| *asleep -= 1);
    }
}

/// Rings an event counter whenever a doorbell is rung.
fn turn(bell: &Doorbell, event: &Event) {
    loop {
        let ticket = bell.ticket();
        if event.ends.load(Ordering::Relaxed) {
            return;
        }
        // After the ticket: whoever has rung before it is told of here.
        let _ = event.fd.ring();
        sleeper::sleep(bell.word(), ticket, HOUR);
    }
}

impl Drop for Turned {
    fn drop(&mut self) {
        self.event.ends.store(true, Ordering::Relaxed);
        for (bell, thread) in self.threads.drain(..) {
            // Whether its thread has a ticket by now or takes the next, it sees the end: a ring is ordered behind the store above, and
            // the ticket of this thread has the ring happen.
            bell.bell().ticket();
            ring(bell.bell());
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}
