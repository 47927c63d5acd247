//! The barriers of the ranks that share memory, and what teams of them have: barriers and boards.

use crate::region::Host;
use crate::slots::TeamMeeting;
use gasworks_core::observe::{Standing, Witness};
use gasworks_core::wire::{TEAM_SLOTS, ring};
use gasworks_core::{Board, Members, Name, SharedBarrier, SharedTeam, TeamBarriers};
use gasworks_shmem::barrier::Barrier;
use gasworks_sync::Mode;
use std::marker::PhantomData;
use std::sync::Arc;

/// A barrier in shared memory. In `Par` any thread asks, in `Seq` one does.
#[derive(Debug)]
pub struct ShmBarrier<M: Mode> {
    host: Arc<Host>,
    mode: PhantomData<M>,
}

impl<M: Mode> ShmBarrier<M> {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, mode: PhantomData }
    }
}

impl<M: Mode> SharedBarrier for ShmBarrier<M> {
    #[inline]
    fn arrive(&self, name: Name) {
        if self.host.barrier.arrive(name) {
            self.host.bells().for_each(ring);
        }
    }

    #[inline]
    fn done(&self) -> Option<Name> {
        done::<M>(&self.host.barrier)
    }
}

/// With the board of all ranks.
impl<M: Mode> SharedTeam for ShmBarrier<M> {
    fn board(&self) -> Option<&Board<'_>> {
        self.host.board.get()
    }

    fn ring(&self) {
        self.host.bells().for_each(ring);
    }
}

#[inline]
fn done<M: Mode>(barrier: &Barrier<'_>) -> Option<Name> {
    if M::PARALLEL { barrier.done() } else { barrier.done_alone() }
}

impl Witness for Host {
    fn standing(&self) -> Standing {
        let (begun, waiting) = self.barrier.standing();
        Standing { begun, waiting }
    }
}

/// Barriers and boards for teams of the ranks that share memory.
#[derive(Debug)]
pub struct ShmTeams<M: Mode> {
    host: Arc<Host>,
    mode: PhantomData<M>,
}

impl<M: Mode> ShmTeams<M> {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, mode: PhantomData }
    }
}

impl<M: Mode> TeamBarriers for ShmTeams<M> {
    fn free_slots(&self) -> u32 {
        let host = &self.host;
        host.slots
            .free(|slot| host.team_meeting(slot, host.me).zip(host.cell(slot, host.me).map(|(cell, _)| cell)))
    }

    fn open(&self, slot: u32, members: &Members) -> Option<Arc<dyn SharedTeam>> {
        if slot >= TEAM_SLOTS {
            return None;
        }
        let host = &self.host;
        let meetings: Option<Box<[_]>> = members.iter().map(|rank| host.team_meeting(slot, rank)).collect();
        let bells: Option<Box<[_]>> = members.iter().map(|rank| host.bell(rank)).collect();
        let (meetings, bells, own) = (meetings?, bells?, members.member_of(host.me)?);
        let barrier = Barrier::new(meetings.iter().copied(), own as usize, host.radix)?;
        let team = Arc::new(TeamMeeting { barrier, board: host.board_of(slot, members)?, meetings, bells });
        let is_taken = host.slots.take(slot, team.clone());
        is_taken
            .then(|| Arc::new(TeamBarrier::<M> { host: host.clone(), slot, team, mode: PhantomData }) as _)
    }

    fn everyone(&self, members: &Members) -> Option<Arc<dyn SharedTeam>> {
        let host = &self.host;
        let board = host.board_of(TEAM_SLOTS, members)?;
        let is_first = host.board.set(board).is_ok();
        is_first.then(|| Arc::new(ShmBarrier::<M>::new(host.clone())) as _)
    }
}

/// A team's barrier and board in shared memory, which are left when this is dropped.
struct TeamBarrier<M: Mode> {
    host: Arc<Host>,
    slot: u32,
    team: Arc<TeamMeeting>,
    mode: PhantomData<M>,
}

impl<M: Mode> SharedBarrier for TeamBarrier<M> {
    #[inline]
    fn arrive(&self, name: Name) {
        if self.team.barrier.arrive(name) {
            self.team.bells.iter().for_each(|bell| ring(bell));
        }
    }

    #[inline]
    fn done(&self) -> Option<Name> {
        done::<M>(&self.team.barrier)
    }
}

impl<M: Mode> SharedTeam for TeamBarrier<M> {
    fn board(&self) -> Option<&Board<'_>> {
        Some(&self.team.board)
    }

    fn ring(&self) {
        self.team.bells.iter().for_each(|bell| ring(bell));
    }
}

impl<M: Mode> Drop for TeamBarrier<M> {
    fn drop(&mut self) {
        self.host.slots.leave(self.slot);
    }
}
