//! A rank that is asked how it is answers, whatever its program does: computes, waits, sleeps, hangs.
//!
//! A signal rings, a thread that has nothing else to do looks at what is atomic anyway, and says so: to the launcher, if
//! that asked, or on standard error.
//!
//! # Invariants
//! - inspect.1: the engine that the thread looks at stays at its address until the thread has ended: it is pinned in a box, or in
//!   an `Arc`, and whoever holds it drops the `Inspector`, which joins the thread, before it.
//! - inspect.2: the thread calls `Engine::peek` alone, which any thread may.

use crate::{Error, ThreadMode, settings};
use gasworks_core::Engine;
use gasworks_core::observe::{Standing, Witness, ranks};
use gasworks_os::eventfd::EventFd;
use gasworks_os::inquiry::{self, Inquiry};
use gasworks_os::{process, threads, unix};
use std::fmt::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often, and how long at most, it is looked whether a rank polls. One that waits and sleeps polls every 10 ms, if it
/// gets a processor.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 25;
/// How long the launcher may take to accept an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that answers; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Inspector {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// An engine as the thread sees it.
struct Window<M: ThreadMode>(*const Engine<M>);

// SAFETY: inspect.1: the engine outlives the thread that the pointer goes to. inspect.2: there it is only peeked at.
unsafe impl<M: ThreadMode> Send for Window<M> {}

impl<M: ThreadMode> Window<M> {
    fn peek(&self) -> gasworks_core::Peek {
        // SAFETY: inspect.1: the inspector is joined before the engine goes, so the pointer is good. inspect.2: `peek` may be called by any
        // thread.
        unsafe { (*self.0).peek() }
    }
}

impl Inspector {
    /// Answers from now on for the engine of `rank` in `job`. Nobody is asked, and none is made, where the setting says so
    /// or the program handles the signal itself.
    ///
    /// # Safety
    /// inspect.1: what is returned is dropped before the engine.
    pub(crate) unsafe fn start<M: ThreadMode>(
        engine: &M::Shared<Engine<M>>,
        witness: Option<Arc<dyn Witness>>,
        job: &str,
    ) -> Result<Option<Self>, Error> {
        let signal = settings::inspect_signal()?;
        let Some(inquiry) = (if signal == 0 { None } else { Inquiry::on(signal).map_err(Error::Inspect)? })
        else {
            return Ok(None);
        };
        let stop = Arc::new(EventFd::new().map_err(Error::Inspect)?);
        let (stopped, window, rank) = (stop.clone(), Window::<M>(&raw const **engine), engine.rank());
        // Jobs that follow the first of a process have its name and a number.
        let by_name = || address(job.split('.').next().unwrap_or(job));
        let address = settings::inspect_address().unwrap_or_else(by_name);
        let body = move || {
            inquiry::leave_only(signal);
            while inquiry.wait(&stopped) {
                let asked = inquiry.take();
                let (standing, text) = (witness.as_ref().map(|witness| witness.standing()), report(&window));
                if asked.by_hand {
                    let standing = standing.map_or_else(String::new, |standing| standing.to_string());
                    let whole =
                        text.lines().fold(format!("gasworks: rank {rank}: {standing}"), |mut whole, line| {
                            whole.push_str("\n  ");
                            whole + line
                        });
                    gasworks_os::say(&whole);
                }
                if asked.by_program {
                    let Standing { begun, waiting } = standing.unwrap_or_default();
                    let answer = format!("answer {rank} {begun} {waiting}\n{text}");
                    // A launcher that has gone, or asks nothing any more, wants no answer.
                    let _ = send(&address, &answer);
                }
            }
        };
        let thread = threads::start("gasworks-inspect", Some(128 << 10), body);
        let thread = thread.map_err(|cause| Error::Thread { cause: cause.to_string() })?;
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        // A counter that cannot be rung is full, and so readable already.
        let _ = self.stop.ring();
        if let Some(thread) = self.thread.take() {
            // The thread does nothing that could fail.
            let _ = thread.join();
        }
    }
}

/// Where the launcher of a job takes answers: the name of its socket.
pub fn address(job: &str) -> String {
    format!("gasworks-job-{job}")
}

/// How an engine stands, a line for each thing.
fn report<M: ThreadMode>(window: &Window<M>) -> String {
    let (before, mut looks) = (window.peek().polls, 0);
    let now = loop {
        std::thread::sleep(LOOK);
        looks += 1;
        let now = window.peek();
        if now.polls != before || looks == LOOKS {
            break now;
        }
    };
    let (looked, mut text) = ((LOOK * looks).as_millis(), String::new());
    // A String takes all that is written to it, here and below.
    let _ = match now.polls.wrapping_sub(before) {
        0 => write!(text, "polls: {}, none of them in the last {looked} ms", now.polls),
        new => write!(text, "polls: {}, {new} of them in the last {looked} ms", now.polls),
    };
    let _ = writeln!(text, "; sleeps: {}", now.sleeps);
    let (out, total) = now.out;
    let _ = write!(text, "requests not answered: {out} of {total}");
    for (to, (count, most), bytes) in &now.out_to {
        let _ = write!(text, "; to rank {to}: {count} of {most}, {bytes} bytes");
    }
    text.push('\n');
    if !now.owed_to.is_empty() {
        let all: Vec<u32> = now.owed_to.iter().map(|&(to, _)| to).collect();
        let sum: u32 = now.owed_to.iter().map(|&(_, count)| count).sum();
        let _ = writeln!(text, "credits not yet returned: {sum}, to {}", ranks(&all));
    }
    for wait in &now.long_waits {
        let _ = writeln!(text, "{wait}");
    }
    if now.postponed > 0 {
        let _ = writeln!(text, "steps that wait for room: {}", now.postponed);
    }
    if !now.by_process.is_empty() {
        let _ = writeln!(text, "given memory by process_vm_*: of {}", ranks(&now.by_process));
    }
    for (rank, why) in &now.by_message {
        let _ = writeln!(text, "given memory by messages: of rank {rank}: {why}");
    }
    text
}

fn send(address: &str, answer: &str) -> gasworks_os::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let launcher = unix::connect(address, deadline)?;
    // A stranger who took the name hears nothing.
    if launcher.peer()?.uid == process::user() {
        launcher.send_fds(answer.as_bytes(), &[], deadline)?;
    }
    Ok(())
}
