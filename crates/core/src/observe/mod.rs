//! Observation: what a job does, counted and recorded, without a word of it on the hot path of a job that is not
//! observed.
//!
//! It is a decorator on the ports, made only where a launcher asks for it: [`Observed`] stands between the engine and a
//! transport, [`ObservedBarrier`] before a barrier, and the table of peers leads puts and gets to a counted path. They
//! record in a file that the launcher made and mapped ([`create`]), so that what a rank recorded is there however the
//! rank ended; the launcher reads it with [`Recording::read`].
//!
//! - `layout`: where everything lies in the file; `words`: its mapping.
//! - `recorder`: the rank's side; `recording`: the launcher's; `observer`: what is said of messages; `wire`: the decorators.
//! - `witness`: how a rank stands, for a job that hangs; nothing is recorded for that.

mod layout;
mod observer;
mod recorder;
mod recording;
mod wire;
mod witness;
mod words;

// Miri maps no shared files.
#[cfg(test)]
#[cfg(not(miri))]
mod tests;

pub use layout::{CLASSES, Op, Tally, What, class_name, class_of, file_len};
pub use observer::Observer;
pub(crate) use observer::Own;
pub(crate) use recorder::OBSERVE_FD;
pub use recorder::{ObserveError, Recorder};
pub use recording::{Event, Recording, create};
pub use wire::{Observed, ObservedBarrier};
pub use witness::{Standing, Witness, ranks};
