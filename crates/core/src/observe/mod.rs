//! Observation: what a job does, counted and recorded, without a word of it on the hot path of a job that is not
//! observed.
//!
//! Where a launcher asks for it there is an [`Observer`]. The engine then uses no mapped queues, so that every message goes by a call
//! of a transport, where the observer is told; so does the barrier where it begins and ends, and the table of peers leads puts and
//! gets to a counted path. What they tell is recorded in a file that the launcher made and mapped ([`create`]), so that what a rank
//! recorded is there however the rank ended; the launcher reads it with [`Recording::read`].
//!
//! - `layout`: where everything lies in the file; `words`: its mapping.
//! - `recorder`: the rank's side; `recording`: the launcher's; `observer`: what is said of messages, waits and barriers.
//! - `witness`: how a rank stands, for a job that hangs, and `long`: what it waits for; nothing is recorded for that.

mod layout;
mod long;
mod observer;
mod recorder;
mod recording;
mod witness;
mod words;

// Miri maps no shared files.
#[cfg(test)]
#[cfg(not(miri))]
mod tests;

pub use layout::{CLASSES, Collective, Op, Tally, What, class_name, class_of, file_len};
pub use long::LongWait;
pub(crate) use long::LongWaits;
pub use observer::Observer;
pub(crate) use observer::Own;
pub(crate) use recorder::OBSERVE_FD;
pub use recorder::{ObserveError, Recorder};
pub use recording::{Event, Recording, create, used_len};
pub use witness::{Standing, Witness, ranks};
