//! Collectives from each its own: gather, scatter, all-gather, all to all, scans; by names of ours, and those of GASNet-1.
//!
//! # Invariants
//! As in the crate, and collective.1 of [`crate::collective`].

use crate::collective::{Operands, begins, buffer, is_apart, start};
use crate::face::{Face, FaceMode, fail, went};
use crate::known::Found;
use crate::layout::{Event, Team};
use gasworks_extended::team::{Lengths, Meets};
use gasworks_sync::VolatileSlice;
use std::ffi::{c_int, c_void};

/// A buffer that a collective writes, and one that it reads.
pub type Buffers = (*mut c_void, *const c_void);

/// Where GASNet-1's flags say that members meet: `GASNET_COLL_IN_ALLSYNC` and `GASNET_COLL_OUT_ALLSYNC`. Without, a member reads and writes its
/// own memory alone, and that between its call and its event: so what `MYSYNC` asks for is so, too.
pub fn meets(flags: c_int) -> Meets {
    Meets { first: flags & 1 << 2 != 0, last: flags & 1 << 5 != 0 }
}

/// Whether a member's bytes and those of all are apart, or it has its own among them where they belong, from a place on. Else it ends the job.
fn fit(call: &str, own: VolatileSlice<'_>, all: VolatileSlice<'_>, own_at: Option<usize>) {
    let (first, begin) = (own.as_ptr().addr(), all.as_ptr().addr());
    let is_apart =
        first >= begin + all.len() || begin >= first + own.len() || own.is_empty() || all.is_empty();
    if !is_apart && own_at.is_none_or(|at| first != begin + at) {
        fail(
            call,
            "source and destination overlap: they are apart, or a member has its own where it belongs",
        );
    }
}

/// The bytes of so many members, as many each.
fn of_all(call: &str, len: usize, size: u32) -> usize {
    let all = len.checked_mul(size as usize).filter(|&all| isize::try_from(all).is_ok());
    all.unwrap_or_else(|| {
        fail(call, format!("{len} bytes of each of {size} members are more than there can be"))
    })
}

/// The lengths of all members' blocks, one behind the other, and their sum.
///
/// # Safety
/// capi.1: there is one for each member, which nobody writes during the call.
unsafe fn lengths<'a>(call: &str, each: *const usize, size: u32) -> (&'a [usize], usize) {
    if each.is_null() {
        fail(call, "there are no lengths");
    }
    // SAFETY: capi.1: `each` is not null, and C has a length for each member there.
    let each = unsafe { std::slice::from_raw_parts(each, size as usize) };
    let sum = each.iter().try_fold(0usize, |sum, len| sum.checked_add(*len));
    let sum = sum.filter(|&sum| isize::try_from(sum).is_ok());
    (each, sum.unwrap_or_else(|| fail(call, "the blocks of all are more than there can be")))
}

/// The lengths of the blocks that a root has, and their sum; elsewhere there are none.
///
/// # Safety
/// capi.1: at the root there is a length for each member, if there are any, which nobody writes during the call.
unsafe fn blocks<'a>(
    call: &str,
    (len, each): (usize, Option<*const usize>),
    size: u32,
    is_root: bool,
) -> (Lengths<'a>, usize) {
    match each {
        Some(each) if is_root => {
            // SAFETY: capi.1: the caller says so.
            let (each, all) = unsafe { lengths(call, each, size) };
            (Lengths::Each(each), all)
        }
        Some(_) => (Lengths::Each(&[]), 0),
        None => (Lengths::Equal, of_all(call, len, size)),
    }
}

/// Where a member's own block is among those of all.
fn place(lengths: Lengths<'_>, len: usize, own: u32) -> usize {
    match lengths {
        Lengths::Equal => len * own as usize,
        Lengths::Each(each) => each.iter().take(own as usize).sum(),
    }
}

/// What a rooted collective goes by: the blocks of all, which the root alone has, and this member's own.
struct Rooted<M: FaceMode> {
    face: &'static Face<M>,
    known: Found<'static, M>,
    all: VolatileSlice<'static>,
    own: VolatileSlice<'static>,
    lengths: Lengths<'static>,
}

/// Looks at what a rooted collective is given: `each` says how many bytes each has, or all have `len`.
///
/// # Safety
/// capi.1; collective.1 until the event is done. The lengths are used during the call alone.
unsafe fn rooted<M: FaceMode>(
    call: &str,
    (team, root): (*const Team, u32),
    (all, own): (*const c_void, *const c_void),
    (len, each): (usize, Option<*const usize>),
) -> Rooted<M> {
    let (face, known) = begins::<M>(call, team, Some(root));
    let (size, is_root) = (known.members().size(), root == known.team.own());
    // SAFETY: capi.1: C says so of the lengths at the root, which alone are looked at.
    let (lengths, all_len) = unsafe { blocks(call, (len, each), size, is_root) };
    // SAFETY: collective.1: C says so; the blocks of all are the root's alone.
    let (all, own) =
        unsafe { (buffer(call, all, if is_root { all_len } else { 0 }), buffer(call, own, len)) };
    fit(call, own, all, Some(place(lengths, len, known.team.own())));
    Rooted { face, known, all, own, lengths }
}

/// Gathers at a member, `each` says how many bytes of each, or all have `len`.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn gather<M: FaceMode>(
    call: &str,
    (team, root): (*const Team, u32),
    (dest, source): Buffers,
    lengths: (usize, Option<*const usize>),
    meets: Meets,
) -> Event {
    // SAFETY: capi.1, collective.1: C says so.
    let Rooted { face, known, all, own, lengths } =
        unsafe { rooted::<M>(call, (team, root), (dest, source), lengths) };
    let (teams, _) = face.job.teams();
    let begun = teams.begin_gather(face.engine(), &known.team, start(meets), (root, own), (all, lengths));
    went(call, begun).0.into_bits() as Event
}

/// Scatters from a member.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn scatter<M: FaceMode>(
    call: &str,
    (team, root): (*const Team, u32),
    (dest, source): Buffers,
    lengths: (usize, Option<*const usize>),
    meets: Meets,
) -> Event {
    // SAFETY: capi.1, collective.1: C says so.
    let Rooted { face, known, all, own, lengths } =
        unsafe { rooted::<M>(call, (team, root), (source, dest), lengths) };
    let (teams, _) = face.job.teams();
    let begun = teams.begin_scatter(face.engine(), &known.team, start(meets), (all, lengths), (root, own));
    went(call, begun).0.into_bits() as Event
}

/// Gathers at all members.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn all_gather<M: FaceMode>(
    call: &str,
    team: *const Team,
    (dest, source): Buffers,
    len: usize,
    meets: Meets,
) -> Event {
    let (face, known) = begins::<M>(call, team, None);
    let all = of_all(call, len, known.members().size());
    // SAFETY: collective.1: C says so.
    let places = unsafe { (buffer(call, source, len), buffer(call, dest, all)) };
    fit(call, places.0, places.1, Some(len * known.team.own() as usize));
    let (teams, _) = face.job.teams();
    went(call, teams.begin_all_gather(face.engine(), &known.team, start(meets), places)).0.into_bits()
        as Event
}

/// From each to each, `len` bytes, or as many as the lengths of what goes and of what comes say.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn all_to_all<M: FaceMode>(
    call: &str,
    team: *const Team,
    (dest, source): Buffers,
    (len, each): (usize, Option<[*const usize; 2]>),
    meets: Meets,
) -> Event {
    let (face, known) = begins::<M>(call, team, None);
    let size = known.members().size();
    let (lengths, [going, coming]) = match each {
        Some(each) => {
            // SAFETY: capi.1: C says so of both.
            let [(going, sent), (coming, got)] = each.map(|each| unsafe { lengths(call, each, size) });
            (Some([going, coming]), [sent, got])
        }
        None => (None, [of_all(call, len, size); 2]),
    };
    // SAFETY: collective.1: C says so.
    let places = unsafe { (buffer(call, source, going), buffer(call, dest, coming)) };
    fit(call, places.0, places.1, None);
    let (teams, _) = face.job.teams();
    let begun = teams.begin_all_to_all(face.engine(), &known.team, start(meets), places, lengths);
    went(call, begun).0.into_bits() as Event
}

/// What the result of the first member of a scan is, before which there is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstResult {
    /// What it has itself.
    Own,
    /// As it was.
    Untouched,
}

/// What members up to each have is combined, or up to the one before it.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn scan<M: FaceMode>(
    call: &str,
    team: *const Team,
    (dest, source): Buffers,
    operands: impl Operands<M>,
    (with_own, of_first): (bool, FirstResult),
    meets: Meets,
) -> Event {
    let (face, known) = begins::<M>(call, team, None);
    let (reduction, len) = operands.reduction(call, face);
    // SAFETY: collective.1: C says so of both.
    let (bytes, own) = unsafe { (buffer(call, dest, len), buffer(call, source, len)) };
    // What the first has is its result where nobody is before it, and is not written.
    let is_untouched = of_first == FirstResult::Untouched && !with_own && known.team.own() == 0;
    let bytes = if is_untouched { own } else { bytes };
    let own = is_apart(call, own, bytes).then_some(own);
    let (teams, _) = face.job.teams();
    let begun = teams.begin_scan(face.engine(), &known.team, start(meets), (own, bytes), with_own, reduction);
    went(call, begun).0.into_bits() as Event
}
