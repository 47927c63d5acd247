//! The progress thread: a rank that computes still serves the others.

use crate::{Error, settings};
use gasworks_core::Engine;
use gasworks_os::{ending, threads};
use gasworks_sync::Par;
use gasworks_sync::atomic::{AtomicBool, Ordering};
use gasworks_sync::kill_point;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A thread that polls while there is something to do and sleeps while there is not; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the thread ends when this is dropped"]
pub struct ProgressThread {
    thread: Option<JoinHandle<()>>,
    stop: Arc<dyn Stop>,
}

trait Stop: Send + Sync + std::fmt::Debug {
    fn stop(&self);
}

struct Shared {
    engine: Arc<Engine<Par>>,
    stopped: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "progress of rank {}", self.engine.rank())
    }
}

impl Stop for Shared {
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.engine.wake();
    }
}

impl ProgressThread {
    pub(crate) fn start(engine: &Arc<Engine<Par>>) -> Result<Self, Error> {
        let shared = Arc::new(Shared { engine: engine.clone(), stopped: AtomicBool::new(false) });
        let stop = shared.clone();
        let body = move || {
            let Shared { engine, stopped } = &*shared;
            Engine::<Par>::serve();
            kill_point!("progress.serves");
            // What goes wrong here is found by the program's next poll. What the program's handlers use may be gone when it
            // ends.
            let is_done = || stopped.load(Ordering::Acquire) || ending::is_over();
            if let Err(error) = engine.wait_until(is_done) {
                engine.fail_later(error);
            }
        };
        let name = format!("gasworks-{}", engine.rank());
        let thread = threads::start(&name, settings::thread_stack()?, body);
        let thread = thread.map_err(|cause| Error::Thread { cause: cause.to_string() })?;
        Ok(Self { thread: Some(thread), stop })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // It has not panicked: that would have been the end.
            let _ = thread.join();
        }
    }
}
