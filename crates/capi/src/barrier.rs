//! The barriers: GASNet-1's, by name, and those of teams, of which several may be under way. Everyone's, and those of a team in shared memory, are phases
//! of one barrier, one after the other; those of other teams are collectives of theirs.
//!
//! # Invariants
//! As in the crate.

use crate::face::{Face, FaceMode, fail, went};
use crate::known::{Found, Known};
use crate::layout::{ERR_BARRIER_MISMATCH, ERR_NOT_READY, Event, OK, Team};
use crate::talk::may_talk;
use gasworks_core::{Engine, Error, Machine, Name, Turned};
use gasworks_sync::Lock;
use std::ffi::c_int;
use std::sync::Arc;

/// The bit of an event that is a barrier's: no operation's has it.
const MARK: Event = 1 << (Event::BITS - 1);
/// Below it are the barrier's number and, above so many bits of that, the team's.
const NUMBER: u32 = 40;
/// `GASNET_BARRIERFLAG_ANONYMOUS`, and `GASNET_BARRIERFLAG_MISMATCH`.
const ANONYMOUS: c_int = 1;
const MISMATCH: c_int = 2;

/// Whether an event is a barrier's.
pub(crate) fn is_one(bits: Event) -> bool {
    bits & MARK != 0
}

/// Goes on with a team's barriers at every poll while there are several: each is announced when those before it are over, whatever C waits for.
struct Going<M: FaceMode> {
    face: &'static Face<M>,
    number: usize,
}

impl<M: FaceMode> Machine<M> for Going<M> {
    fn turn(&self, _: &Engine<M>) -> Result<Turned, Error> {
        let Some(known) = self.face.numbered(self.number) else { return Ok(Turned::Ended) };
        Ok(known.meeting.state.with(|state| {
            self.face.advance(&known, "gex_Coll_BarrierNB", state);
            state.is_going = state.over < state.asked;
            if state.is_going { Turned::Waits } else { Turned::Ended }
        }))
    }
}

/// Whether the barrier of an event is over.
pub(crate) fn is_done<M: FaceMode>(face: &Face<M>, call: &str, event: Event) -> bool {
    let (team, number) = ((event & !MARK) >> NUMBER, event as u64 & ((1 << NUMBER) - 1));
    let found = face.numbered(team).and_then(|known| {
        known.meeting.state.with(|state| {
            face.advance(&known, call, state);
            (1..=state.asked).contains(&number).then_some(state.over >= number)
        })
    });
    found.unwrap_or_else(|| {
        let what = format!(
            "the event {event:#x} is none of this job's: it would be that of barrier {number} of team {team}"
        );
        fail(call, what)
    })
}

/// `gex_Coll_BarrierNB`, and `gex_Coll_BarrierBlocking`, which waits for the event. A barrier too many is told of before it is counted:
/// later it would only be seen by who waits in vain.
pub fn begin<M: FaceMode>(call: &str, team: *const Team) -> Event {
    let face = M::slot().of(call);
    let known = face.team(call, team);
    may_talk::<M>(call);
    if !known.has_phases() {
        let (teams, _) = face.job.teams();
        return went(call, teams.begin_barrier(face.engine(), &known.team)).into_bits() as Event;
    }
    let (event, starts) = known.meeting.state.with(|state| {
        state.asked += 1;
        face.advance(&known, call, state);
        let event =
            if state.over == state.asked { 0 } else { MARK | known.number << NUMBER | state.asked as Event };
        let starts = state.asked - state.over > 1 && !state.is_going;
        state.is_going |= starts;
        (event, starts)
    });
    if starts {
        face.engine().start_machine(Arc::new(Going { face, number: known.number }));
    }
    event
}

fn name(id: c_int, flags: c_int) -> Name {
    match flags {
        _ if flags & MISMATCH != 0 => Name::Mismatch,
        _ if flags & ANONYMOUS != 0 => Name::Any,
        _ => Name::Is(id as u32),
    }
}

/// The job and the team of a named barrier: everyone, or one that GASNet-1's collectives take.
fn of<M: FaceMode>(call: &str, team: Option<*const Team>) -> (&'static Face<M>, Found<'static, M>) {
    let face = M::slot().of(call);
    (face, team.map_or(Found::Everyone(&face.everyone), |team| face.team(call, team)))
}

/// `gasnet_barrier_notify`, and `gasnet_coll_barrier_notify`.
pub fn notify<M: FaceMode>(call: &str, team: Option<*const Team>, id: c_int, flags: c_int) {
    let ((face, known), name) = (of::<M>(call, team), name(id, flags));
    may_talk::<M>(call);
    let under_way = || {
        known.meeting.state.with(|state| {
            face.advance(&known, call, state);
            state.over < state.asked
        })
    };
    // The team's come first.
    went(call, face.engine().wait_until(|| !under_way()));
    known.meeting.state.with(|state| {
        if state.named.is_some() {
            fail(call, "the barrier before was not finished");
        }
        let phase = went(call, face.barrier_of(&known).begin(face.engine(), name));
        state.named = Some((phase, name));
    });
}

/// Looks whether all have come, and whether the name here is the one that they agree on.
fn look<M: FaceMode>(face: &Face<M>, known: &Known<M>, call: &str, id: c_int, flags: c_int) -> Option<c_int> {
    known.meeting.state.with(|state| {
        let Some((phase, begun)) = state.named else { fail(call, "no barrier was begun") };
        let agreed = went(call, face.barrier_of(known).test(face.engine(), phase, begun))?;
        state.named = None;
        state.agreed = Some(agreed);
        face.advance(known, call, state);
        // The name here is another to agree with: it need not be the one that this rank came by.
        let met = agreed.and(name(id, flags));
        Some(if met == Name::Mismatch { ERR_BARRIER_MISMATCH } else { OK })
    })
}

/// `gasnet_barrier_try`, and `gasnet_coll_barrier_try`.
pub fn attempt<M: FaceMode>(call: &str, team: Option<*const Team>, id: c_int, flags: c_int) -> c_int {
    let (face, known) = of::<M>(call, team);
    went(call, face.engine().poll());
    look(face, &known, call, id, flags).unwrap_or(ERR_NOT_READY)
}

/// `gasnet_barrier_wait`, and `gasnet_coll_barrier_wait`.
pub fn wait<M: FaceMode>(call: &str, team: Option<*const Team>, id: c_int, flags: c_int) -> c_int {
    let ((face, known), mut code) = (of::<M>(call, team), OK);
    let all_came = || {
        let looked = look(face, &known, call, id, flags);
        looked.inspect(|found| code = *found).is_some()
    };
    went(call, face.engine().wait_until(all_came));
    code
}

/// `gasnet_barrier_result`, and `gasnet_coll_barrier_result`.
///
/// # Safety
/// capi.1.
pub unsafe fn result<M: FaceMode>(call: &str, team: Option<*const Team>, id: *mut c_int) -> c_int {
    let (_, known) = of::<M>(call, team);
    let agreed = known.meeting.state.with(|state| state.agreed);
    match agreed {
        Some(Name::Is(name)) => {
            if !id.is_null() {
                // SAFETY: capi.1: `id` is C's room for one number, which nobody else uses during the call.
                unsafe { id.write(name as c_int) };
            }
            0
        }
        Some(_) => 1,
        None => fail(call, "no barrier has ended"),
    }
}
