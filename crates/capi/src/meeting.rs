//! How far a rank is in the job's barriers: what [`Face`](crate::Face) keeps of that, and [`barrier`](crate::barrier) goes on with.

use gasworks_core::Name;
use gasworks_sync::{Lock, Mode, Par};

/// How far this rank is in its barriers.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Barriers of the team that were asked for, and those that are over.
    pub(crate) asked: u64,
    pub(crate) over: u64,
    /// A machine goes on with them.
    pub(crate) is_going: bool,
    /// The phase of the one that is under way.
    pub(crate) phase: Option<u64>,
    /// GASNet-1's that is under way: its phase, and by what name this rank came.
    pub(crate) named: Option<(u64, Name)>,
    /// What the last of those agreed on.
    pub(crate) agreed: Option<Name>,
}

/// Where that is kept.
pub(crate) struct Meeting {
    pub(crate) state: <Par as Mode>::Lock<State>,
}

impl Default for Meeting {
    fn default() -> Self {
        Self { state: Lock::new(State::default()) }
    }
}
