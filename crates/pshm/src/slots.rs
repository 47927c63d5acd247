//! A rank's slots for what teams have in shared memory.
//!
//! In the memory that all share each rank has a meeting for each slot, and a cell. The barrier of a team is at its members' meetings of one slot,
//! and its board has their cells, which are nobody else's meanwhile; so the ranks keep no account in common of who uses what. Whoever leaves the team says so at all
//! of these meetings, and a rank's slot is free again when it finds at its own meeting that all have left.

use gasworks_core::wire::TEAM_SLOTS;
use gasworks_shmem::barrier::{Barrier, Meeting};
use gasworks_shmem::board::{Board, Cell};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sync::{Lock, Mode, Par};
use std::sync::Arc;

/// A team's barrier and board, seen from this rank.
#[derive(Debug)]
pub(crate) struct TeamMeeting {
    pub barrier: Barrier<'static>,
    pub board: Board<'static>,
    /// Of each member.
    pub meetings: Box<[&'static Meeting]>,
    pub bells: Box<[&'static Doorbell]>,
}

/// What is in a slot.
#[derive(Debug, Default)]
enum Slot {
    #[default]
    Free,
    /// A team.
    Used(Arc<TeamMeeting>),
    /// What this rank has left, and so many members have to leave.
    Left(u64),
}

/// The slots.
#[derive(Debug)]
pub(crate) struct Slots(<Par as Mode>::Lock<[Slot; TEAM_SLOTS as usize]>);

impl Slots {
    /// All free.
    pub fn new() -> Self {
        Self(Lock::new(Default::default()))
    }

    /// A bit for each that is free. `own` is this rank's meeting for a slot, and its cell.
    pub fn free(&self, own: impl Fn(u32) -> Option<(&'static Meeting, &'static Cell)>) -> u32 {
        self.0.with(|slots| {
            let mut free = 0;
            for (number, slot) in (0..).zip(slots) {
                if let Slot::Left(members) = *slot
                    && let Some((meeting, cell)) = own(number)
                    && meeting.renew(members)
                {
                    cell.renew();
                    *slot = Slot::Free;
                }
                free |= u32::from(matches!(slot, Slot::Free)) << number;
            }
            free
        })
    }

    /// Puts a team into one that is free; whether it was.
    pub fn take(&self, number: u32, team: Arc<TeamMeeting>) -> bool {
        self.0.with(|slots| {
            let slot = slots.get_mut(number as usize).filter(|slot| matches!(slot, Slot::Free));
            slot.map(|slot| *slot = Slot::Used(team)).is_some()
        })
    }

    /// Leaves the team in one.
    pub fn leave(&self, number: u32) {
        let left = self.0.with(|slots| {
            let slot = slots.get_mut(number as usize)?;
            let Slot::Used(team) = slot else { return None };
            let team = team.clone();
            *slot = Slot::Left(team.meetings.len() as u64);
            Some(team)
        });
        // Nobody looks at it on the way to sleep any more.
        left.iter().flat_map(|team| &team.meetings).for_each(|meeting| meeting.leave());
    }

    /// Whether something holds of all teams here.
    pub fn all(&self, mut holds: impl FnMut(&TeamMeeting) -> bool) -> bool {
        self.0.with(|slots| {
            slots.iter().all(|slot| if let Slot::Used(team) = slot { holds(team) } else { true })
        })
    }
}
