//! How a rank sleeps until one of its transports has something: on a doorbell, on descriptors, or for a while.
//!
//! A transport says what ends a sleep on it ([`Wait`]). Where all that there is is one doorbell, a sleep is a wait on its word
//! (`futex(2)`). Where there are descriptors it is a `ppoll(2)` of those and of an event counter, which a thread for each doorbell rings: it
//! sleeps on the word meanwhile. Nobody rings a bell before the transport has been [armed](Wire::arm).
//!
//! Of several threads one leads: it alone clears the counter and waits for the descriptors. The others sleep on a doorbell of their own, which
//! the leader rings when its sleep is over. If all waited for the descriptors, nobody could clear the counter before all had woken.

use crate::wire::{Bell, Wait, Wire, WireError, ring};
use gasworks_os::eventfd::EventFd;
use gasworks_os::threads;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sock::sleeper;
use gasworks_sync::{Latch, Lock, Mode, Par, kill_point};
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
    /// What wakes ring where no transport has a doorbell, and the leader of several threads.
    own: Doorbell,
    forwarder: OnceLock<Option<Forwarder>>,
}

/// What the transports of a rank have.
struct Sources<'a> {
    bell: Option<Arc<dyn Bell>>,
    /// The doorbells beyond the first: to sleep on one allocates nothing.
    more: Vec<Arc<dyn Bell>>,
    descriptors: Vec<BorrowedFd<'a>>,
}

impl<'a> Sources<'a> {
    fn of<M: Mode, W: Wire<M> + ?Sized + 'a>(wires: impl Iterator<Item = &'a W>) -> Self {
        let mut all = Self { bell: None, more: Vec::new(), descriptors: Vec::new() };
        for wire in wires {
            match wire.wait() {
                Wait::Bell(bell) => match all.bell {
                    None => all.bell = Some(bell),
                    Some(_) => all.more.push(bell),
                },
                Wait::Descriptor(fd) => all.descriptors.push(fd),
                Wait::Nothing => {}
            }
        }
        all
    }

    /// Whether one word is all that a sleep has to be on.
    fn is_one_bell(&self) -> bool {
        self.descriptors.is_empty() && self.more.is_empty()
    }
}

impl WaitSet {
    /// For a rank none of whose threads sleeps.
    pub fn new() -> Self {
        Self { own: Doorbell::new(), forwarder: OnceLock::new() }
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
        let sources = Sources::of(wires.clone());
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
        let forwarder = if sources.is_one_bell() { None } else { self.forwarder(&sources) };
        let slept = match forwarder {
            Some(forwarder) => self.sleep_on(forwarder, sources.descriptors, arm)?,
            None => {
                let bell = sources.bell.as_ref().map_or(&self.own, |bell| bell.bell());
                let ticket = bell.ticket();
                let longest = arm()?;
                let most = if sources.is_one_bell() { Duration::MAX } else { NAP };
                longest.map(|longest| sleeper::sleep(bell.word(), ticket, longest.min(most))).is_some()
            }
        };
        if !slept {
            // Something is on its way, perhaps from a sender that waits for this very core.
            std::thread::yield_now();
        }
        Ok(slept)
    }

    /// Sleeps on descriptors and what is forwarded, or on the thread that does.
    fn sleep_on(
        &self,
        forwarder: &Forwarder,
        descriptors: Vec<BorrowedFd<'_>>,
        arm: impl Fn() -> Result<Option<Duration>, WireError>,
    ) -> Result<bool, WireError> {
        // Before it is known that another thread leads: that one opens the latch before it rings.
        let ticket = self.own.ticket();
        let Some(entered) = forwarder.leader.try_enter() else {
            let longest = arm()?;
            match longest {
                Some(longest) => sleeper::sleep(self.own.word(), ticket, longest),
                // What has come may have been the leader's to be told, and was forgotten when this thread armed the transports.
                None => forwarder.event.ring(),
            }
            return Ok(longest.is_some());
        };
        let _leads = Leads { entered: Some(entered), followers: &self.own };
        forwarder.event.fd.clear();
        let longest = arm()?;
        if let Some(longest) = longest {
            let all: Vec<_> = descriptors.into_iter().chain([forwarder.event.fd.as_fd()]).collect();
            sleeper::sleep_on(&all, longest);
        }
        Ok(longest.is_some())
    }

    /// Wakes this rank's threads that [sleep](Self::sleep) on these transports.
    #[cold]
    pub fn wake<'a, M: Mode, W: Wire<M> + ?Sized + 'a>(&self, mut wires: impl Iterator<Item = &'a W>) {
        if let Some(Some(forwarder)) = self.forwarder.get() {
            return forwarder.event.ring();
        }
        let first = wires.find_map(|wire| if let Wait::Bell(bell) = wire.wait() { Some(bell) } else { None });
        ring(first.as_ref().map_or(&self.own, |bell| bell.bell()));
    }

    /// What makes a descriptor of the doorbells; `None` if the system gives none.
    fn forwarder(&self, sources: &Sources<'_>) -> Option<&Forwarder> {
        self.forwarder.get_or_init(|| Forwarder::new(sources.bell.iter().chain(&sources.more))).as_ref()
    }
}

impl Default for WaitSet {
    fn default() -> Self {
        Self::new()
    }
}

/// This thread leads, until this is dropped.
struct Leads<'a> {
    entered: Option<<<Par as Mode>::Latch<()> as Latch<()>>::Entered<'a>>,
    followers: &'a Doorbell,
}

impl Drop for Leads<'_> {
    fn drop(&mut self) {
        // First: whoever finds another leading has its ticket by now, and is rung for.
        drop(self.entered.take());
        ring(self.followers);
    }
}

/// An event counter that is rung when a doorbell is, and by wakes.
struct Forwarder {
    event: Arc<Event>,
    threads: Vec<(Arc<dyn Bell>, JoinHandle<()>)>,
    /// Entered by the thread that waits for the descriptors.
    leader: <Par as Mode>::Latch<()>,
}

struct Event {
    fd: EventFd,
    ends: <Par as Mode>::Lock<bool>,
}

impl Event {
    fn ring(&self) {
        // It cannot fail: a full one is readable already.
        let _ = self.fd.ring();
    }
}

impl Forwarder {
    fn new<'a>(bells: impl Iterator<Item = &'a Arc<dyn Bell>>) -> Option<Self> {
        let event = Arc::new(Event { fd: EventFd::new().ok()?, ends: Lock::new(false) });
        let mut this = Self { event, threads: Vec::new(), leader: Latch::new(()) };
        for bell in bells {
            let (event, rung) = (this.event.clone(), bell.clone());
            let body = move || forward(rung.bell(), &event);
            let thread = threads::start("gasworks-bell", Some(STACK), body).ok()?;
            this.threads.push((bell.clone(), thread));
        }
        Some(this)
    }
}

/// Rings an event counter whenever a doorbell is rung.
fn forward(bell: &Doorbell, event: &Event) {
    loop {
        let ticket = bell.ticket();
        if event.ends.with(|ends| *ends) {
            return;
        }
        // After the ticket: whoever has rung before it is told of here.
        event.ring();
        sleeper::sleep(bell.word(), ticket, HOUR);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.event.ends.with(|ends| *ends = true);
        for (bell, thread) in self.threads.drain(..) {
            // If its thread did not see the end it had its ticket before, so that this ring ends its sleep.
            bell.bell().ticket();
            ring(bell.bell());
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}
