//! The library's own threads.

use crate::{say, signals};
use std::io::Result;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that the program knows nothing of, with a stack of `stack` bytes or the usual one: the program's signals
/// are not for it, whether the program blocks them now, later or never, and it is `vital`.
///
/// # Errors
/// The system has no room for a thread.
pub fn start(
    name: &str,
    stack: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let builder = stack.into_iter().fold(Builder::new().name(name.into()), Builder::stack_size);
    signals::without(|| builder.spawn(vital(body)))
}

/// `body`, a panic of which is the end of the process, and by that of the job: what such a thread was there for nobody does
/// any more, and who waits for it would wait for ever.
fn vital(body: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    move || {
        let _ends = EndsAtPanic;
        body();
    }
}

struct EndsAtPanic;

impl Drop for EndsAtPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            say(&format!("gasworks: the thread {name} panicked: this process ends"));
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigSet, Signal};

    /// What a thread takes, by its mask; `SIGKILL` and `SIGSTOP` are in no mask.
    fn taken() -> Vec<Signal> {
        let mask = SigSet::thread_get_mask().expect("a mask");
        let never = [Signal::SIGKILL, Signal::SIGSTOP];
        Signal::iterator().filter(|signal| !mask.contains(*signal) && !never.contains(signal)).collect()
    }

    #[test]
    fn a_thread_has_its_name_and_no_signals_but_its_faults() {
        let before = taken();
        let (said, heard) = std::sync::mpsc::channel();
        let thread = start("of-its-own", Some(128 << 10), move || {
            let name = std::thread::current().name().map(str::to_owned);
            let _ = said.send((name, taken()));
        });
        assert!(thread.expect("a thread").join().is_ok());
        let (name, mut taken_there) = heard.recv().expect("it says so");
        assert_eq!(name.as_deref(), Some("of-its-own"));
        taken_there.sort();
        let mut faults = signals::FAULTS.to_vec();
        faults.sort();
        assert_eq!(taken_there, faults);
        assert_eq!(taken(), before, "the thread that started it");
    }
}
