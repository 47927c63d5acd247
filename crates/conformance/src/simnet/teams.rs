//! Barriers of teams in shared memory, for nets whose ranks are mapped.

use super::lock::Mutex;
use super::net::{Meeting, TeamMeeting};
use super::{SimBarrier, SimRank};
use gasworks_core::{Members, Name, SharedBarrier, SharedTeam, TeamBarriers};
use std::sync::Arc;

/// Each rank's slots: few, so that there are teams for which none is left.
const SLOTS: u32 = 0b11;

/// A team's barrier, which this rank leaves when it is dropped.
struct SimTeamBarrier {
    barrier: SimBarrier,
    slot: u32,
}

impl TeamBarriers for SimRank {
    fn free_slots(&self) -> u32 {
        let teams = self.net.teams.lock();
        let own = teams.iter().filter(|team| team.meeting.members.contains(&self.rank));
        own.fold(SLOTS, |free, team| free & !(1 << team.slot))
    }

    fn open(&self, slot: u32, members: &Members) -> Option<Arc<dyn SharedTeam>> {
        let members: Box<[u32]> = members.iter().collect();
        let mut teams = self.net.teams.lock();
        let meets = |team: &&TeamMeeting| {
            team.slot == slot && team.meeting.members.iter().any(|m| members.contains(m))
        };
        let meeting = match teams.iter().find(meets) {
            Some(team) => {
                assert_eq!(team.meeting.members, members, "slot {slot} is two teams' at once");
                team.meeting.clone()
            }
            None => {
                let meeting = Arc::new(Meeting::of(members));
                teams.push(TeamMeeting { slot, meeting: meeting.clone(), left: 0 });
                meeting
            }
        };
        let barrier = SimBarrier { rank: self.clone(), meeting, mine: Mutex::new(0) };
        Some(Arc::new(SimTeamBarrier { barrier, slot }))
    }
}

impl SharedBarrier for SimTeamBarrier {
    fn arrive(&self, name: Name) {
        self.barrier.arrive(name);
    }
    fn done(&self) -> Option<Name> {
        self.barrier.done()
    }
}

impl SharedTeam for SimTeamBarrier {}

impl Drop for SimTeamBarrier {
    fn drop(&mut self) {
        self.barrier.rank.net.teams.lock().retain_mut(|team| {
            let is_this = team.slot == self.slot && Arc::ptr_eq(&team.meeting, &self.barrier.meeting);
            team.left += usize::from(is_this);
            team.left < team.meeting.members.len()
        });
    }
}
