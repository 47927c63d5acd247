//! A rank's slots for barriers of teams.
//!
//! In the memory that all share each rank has a meeting for each slot. The barrier of a team is at its members' meetings of one slot,
//! which are nobody else's meanwhile; so the ranks keep no account in common of who uses what. Whoever leaves the team says so at all
//! of these meetings, and a rank's slot is free again when it finds at its own meeting that all have left.

use gasworks_core::wire::TEAM_SLOTS;
use gasworks_shmem::barrier::{Barrier, Meeting};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sync::{Lock, Mode, Par};
use std::sync::Arc;

/// A team's barrier, seen from this rank.
#[derive(Debug)]
pub(crate) struct TeamMeeting {
    pub barrier: Barrier<'static>,
    /// Of each member.
    pub meetings: Box<[&'static Meeting]>,
    pub bells: Box<[&'static Doorbell]>,
}

/// What is in a slot.
#[derive(Debug, Default)]
enum Slot {
    #[default]
    Free,
    /// A team's barrier.
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

    /// A bit for each that is free. `own` is this rank's meeting for a slot.
    pub fn free(&self, own: impl Fn(u32) -> Option<&'static Meeting>) -> u32 {
        self.0.with(|slots| {
            let mut free = 0;
            for (number, slot) in (0..).zip(slots) {
                if let Slot::Left(members) = *slot
                    && own(number).is_some_and(|meeting| meeting.renew(members))
                {
                    *slot = Slot::Free;
                }
                free |= u32::from(matches!(slot, Slot::Free)) << number;
            }
            free
        })
    }

    /// Puts a barrier into one that is free; whether it was.
    pub fn take(&self, number: u32, team: Arc<TeamMeeting>) -> bool {
        self.0.with(|slots| {
            let slot = slots.get_mut(number as usize).filter(|slot| matches!(slot, Slot::Free));
            slot.map(|slot| *slot = Slot::Used(team)).is_some()
        })
    }

    /// Leaves the barrier in one.
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

    /// Whether something holds of all barriers here.
    pub fn all(&self, mut holds: impl FnMut(&Barrier<'static>) -> bool) -> bool {
        self.0.with(|slots| {
            slots.iter().all(|slot| if let Slot::Used(team) = slot { holds(&team.barrier) } else { true })
        })
    }
}
