//! Who tells the cache that memory is not what it was: the system, or a test.

use crate::stale::{Gone, Reader, Span, Writer, pair};
use gasworks_os::eventfd::EventFd;
use gasworks_os::threads;
use gasworks_os::userfault::{Event, Userfault, is_private};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Watches memory.
pub(crate) trait Watch: Send + std::fmt::Debug {
    /// Whether nothing is being changed. Then [`next`](Self::next) tells all that happened to watched memory before, as far as anybody
    /// can have noticed that it happened.
    fn is_settled(&mut self) -> bool;
    /// What happened to watched memory, one thing after the other.
    fn next(&mut self) -> Option<Gone>;
    /// Watches pages, some of which may be watched; or tells nothing of them.
    fn watch(&mut self, pages: Span) -> bool;
    /// Whether of these pages, which are watched and registered, everything is told that can happen to them.
    fn tells_all(&mut self, pages: Span) -> bool;
    /// Watches pages no more.
    fn forget(&mut self, pages: Span);
    /// The system's descriptor, as a forked process has it.
    #[cfg(not(miri))]
    #[cfg(test)]
    fn descriptor(&self) -> Option<Userfault> {
        None
    }
}

/// Words for which there is room while the engine has other things to do.
const WORDS: usize = 256;

/// The system, which is first asked when there is something to watch: an engine that never registers memory has no thread for it.
#[derive(Debug)]
pub(crate) enum System {
    /// It was not asked.
    Unasked,
    /// It cannot tell.
    Refused,
    /// It tells.
    Tells(Monitor),
}

impl System {
    fn ask(&mut self) -> Option<&mut Monitor> {
        if let Self::Unasked = self {
            *self = Monitor::start().map_or(Self::Refused, Self::Tells);
        }
        match self {
            Self::Tells(monitor) => Some(monitor),
            _ => None,
        }
    }
}

impl Watch for System {
    fn is_settled(&mut self) -> bool {
        match self {
            // In this order: stale.2 of the module `stale`.
            Self::Tells(monitor) => {
                !monitor.fault.as_ref().is_none_or(Userfault::is_changing) && monitor.words.is_settled()
            }
            _ => true,
        }
    }

    fn next(&mut self) -> Option<Gone> {
        match self {
            Self::Tells(monitor) => monitor.words.next(),
            _ => None,
        }
    }

    fn watch(&mut self, pages: Span) -> bool {
        let fault = self.ask().and_then(|monitor| monitor.fault.as_ref());
        fault.is_some_and(|fault| fault.watch(pages.start, pages.end - pages.start).is_ok())
    }

    fn tells_all(&mut self, pages: Span) -> bool {
        is_private(pages.start, pages.end - pages.start)
    }

    fn forget(&mut self, pages: Span) {
        if let Self::Tells(Monitor { fault: Some(fault), .. }) = self {
            forget(fault, pages);
        }
    }

    #[cfg(not(miri))]
    #[cfg(test)]
    fn descriptor(&self) -> Option<Userfault> {
        let Self::Tells(Monitor { fault, .. }) = self else { return None };
        fault.as_ref()?.try_clone().ok()
    }
}

/// Where some pages cannot be forgotten, for something else is mapped there now, the rest are.
fn forget(fault: &Userfault, Span { start, end }: Span) {
    let (pages, page) = ((end - start) / page(), page());
    if fault.forget(start, end - start).is_err() && pages > 1 {
        let middle = start + pages / 2 * page;
        forget(fault, Span { start, end: middle });
        forget(fault, Span { start: middle, end });
    }
}

/// The size of a page.
pub(crate) fn page() -> usize {
    if cfg!(miri) { 4096 } else { gasworks_os::memfd::page_size() }
}

/// The thread that reads events.
///
/// # Invariants
/// - watch.1: whoever changes watched memory waits for this thread, and may hold any lock: the allocator's, the engine's, the cache's. So
///   from before the first page is watched until the last is not, the thread neither allocates, frees, prints nor takes a lock.
///   It is started, and has said so, before anything is watched; it closes its descriptor, the last one, before it does anything else at
///   its end.
/// - watch.2: its own stack is never watched: it exists before anything is.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// `None` once it is told to end.
    fault: Option<Userfault>,
    words: Reader,
    bells: Arc<Bells>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner tell each other.
#[derive(Debug)]
struct Bells {
    started: EventFd,
    end: EventFd,
}

impl Monitor {
    fn start() -> Option<Self> {
        let fault = Userfault::open().ok()?;
        let reads = fault.try_clone().ok()?;
        let bells = Arc::new(Bells { started: EventFd::new().ok()?, end: EventFd::new().ok()? });
        let (words_in, words) = pair(WORDS);
        let body = {
            let bells = Arc::clone(&bells);
            move || {
                let _ = bells.started.ring();
                monitor(reads, words_in, &bells.end);
            }
        };
        let thread = threads::start("gasworks-memory", None, body).ok()?;
        // It allocates while it starts (watch.1).
        while bells.started.clear() == 0 {
            std::thread::yield_now();
        }
        Some(Self { fault: Some(fault), words, bells, thread: Some(thread) })
    }

    /// One whose thread does nothing.
    #[cfg(not(miri))]
    #[cfg(test)]
    pub fn unread(fault: Userfault, words: Reader) -> Self {
        let counter = || EventFd::new().expect("a counter");
        let bells = Arc::new(Bells { started: counter(), end: counter() });
        Self { fault: Some(fault), words, bells, thread: None }
    }
}

/// Reads events until it is told to end: watch.1.
fn monitor(fault: Userfault, mut words: Writer, end: &EventFd) {
    loop {
        let ready = fault.wait(end.as_fd());
        if ready.events {
            words.enter(|| fault.next().map(|event| gone(&fault, event)));
        } else if ready.other {
            break;
        }
    }
    drop(fault);
}

fn gone(fault: &Userfault, event: Event) -> Gone {
    match event {
        Event::Unmapped { start, end } => Gone::Unmapped(Span { start, end }),
        Event::Emptied { start, end } => Gone::Emptied(Span { start, end }),
        Event::Moved { from, to, len } => {
            // Nothing there is registered: who moved it has not come back from the call.
            let _ = fault.forget(to, len);
            Gone::Unmapped(Span { start: from, end: from + len })
        }
        Event::Unknown => Gone::All,
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // The thread's descriptor is to be the last: watch.1.
        self.fault = None;
        let _ = self.bells.end.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::real::is_admitted;

    /// watch.1: the thread has said that it runs before anything is watched, and is over with its owner.
    #[test]
    fn the_thread_runs_from_the_beginning_to_the_end() {
        for _ in 0..if is_admitted() { 50 } else { 0 } {
            let mut monitor = Monitor::start().expect("it is admitted");
            let bells = Arc::downgrade(&monitor.bells);
            assert_eq!(bells.strong_count(), 2, "the thread has one");
            // Told to end, and waited for, it has rung once: that was heard at the start.
            monitor.bells.end.ring().expect("rung");
            assert!(monitor.thread.take().is_some_and(|thread| thread.join().is_ok()));
            assert_eq!((monitor.bells.started.clear(), bells.strong_count()), (0, 1));
            drop(monitor);
            let monitor = Monitor::start().expect("it is admitted");
            let (bells, fault) =
                (Arc::downgrade(&monitor.bells), monitor.fault.as_ref().map(Userfault::try_clone));
            assert!(monitor.words.is_settled() && fault.is_some_and(|fault| fault.is_ok()));
            drop(monitor);
            assert_eq!(bells.strong_count(), 0, "it is over");
        }
        assert_eq!(Monitor::start().is_some(), is_admitted());
    }

    /// The system is asked when there is something to watch, and once.
    #[test]
    fn the_system_is_asked_once() {
        let mut system = System::Unasked;
        let nothing = Span { start: 0, end: 0 };
        assert!(system.is_settled() && system.next().is_none() && system.descriptor().is_none());
        system.forget(nothing);
        assert!(matches!(system, System::Unasked));
        assert!(!system.watch(nothing), "no memory is there");
        assert_eq!(matches!(system, System::Tells(_)), is_admitted());
        assert_eq!(matches!(system, System::Refused), !is_admitted());
        assert_eq!(system.descriptor().is_some(), is_admitted());
        let mut refused = System::Refused;
        assert!(refused.is_settled() && refused.next().is_none() && !refused.watch(nothing));
        refused.forget(nothing);
        assert!(matches!(refused, System::Refused) && refused.descriptor().is_none());
    }
}
