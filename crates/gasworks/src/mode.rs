//! What the facade needs to know of a thread mode.

use crate::progress::ProgressThread;
use crate::{Error, Networks};
use gasworks_core::{CoreMode, Engine, Incoming};
use gasworks_sync::{Mode, Par, ParSync, Seq};
use std::sync::Arc;

/// What a part of the library does with a message for it.
pub type Hear<T, M> = for<'a> fn(&T, &Incoming<'a, M>) -> Result<(), Box<gasworks_core::Error>>;

/// [`Seq`], [`ParSync`] or [`Par`].
pub trait ThreadMode: CoreMode {
    /// The networks among which a job of this mode chooses.
    fn networks() -> Networks<Self>;
    #[doc(hidden)]
    fn hear<T: Send + Sync + 'static>(state: Arc<T>, hear: Hear<T, Self>) -> Box<Self::Function>;
    #[doc(hidden)]
    fn spawn_progress(engine: &Self::Shared<Engine<Self>>) -> Result<ProgressThread, Error>;
}

macro_rules! thread_mode {
    ($mode:ident, $spawn:expr) => {
        impl ThreadMode for $mode {
            fn networks() -> Networks<Self> {
                Networks::own()
            }
            fn hear<T: Send + Sync + 'static>(state: Arc<T>, hear: Hear<T, Self>) -> Box<Self::Function> {
                Box::new(move |message: &Incoming<'_, Self>| hear(&state, message))
            }
            fn spawn_progress(engine: &Self::Shared<Engine<Self>>) -> Result<ProgressThread, Error> {
                $spawn(engine)
            }
        }
    };
}

thread_mode!(Seq, |_| Err(Error::ProgressThread { mode: Self::NAME }));
thread_mode!(ParSync, |_| Err(Error::ProgressThread { mode: Self::NAME }));
thread_mode!(Par, ProgressThread::start);
