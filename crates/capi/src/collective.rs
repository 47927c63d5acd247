//! Collectives: broadcast, reduction to one and to all.
//!
//! # Invariants
//! As in the crate.
//! - collective.1: C leaves both buffers of a collective to it until its event is done, and its function can be called for them on any thread, with
//!   the pointer that came with it.

use crate::face::{Face, FaceMode, fail, went};
use crate::known::Found;
use crate::layout::{Event, RegisteredFn, Team};
use crate::talk::may_talk;
use gasworks_core::WordOp;
use gasworks_extended::collective::{Combine, Numbers};
use gasworks_extended::team::{self, Meets, Start};
use gasworks_memory::atomic::{Ops, Type};
use gasworks_sync::{RawSlice, VolatileSlice};
use std::ffi::{c_int, c_uint, c_void};

/// `gex_Coll_ReduceFn_t`.
pub type ReduceFn = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *const c_void);

/// What a reduction is over: `gex_DT_t`, bytes of an element, how many, `gex_OP_t`, and what that is where it is the program's own.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The type.
    pub of: c_uint,
    /// Bytes of one.
    pub size: usize,
    /// How many there are.
    pub count: usize,
    /// The operation.
    pub op: c_uint,
    /// The program's function, and what it is given.
    pub user: Option<ReduceFn>,
    /// What that is given.
    pub data: *const c_void,
}

/// `GEX_DT_USER`, `GEX_OP_USER` and `GEX_OP_USER_NC`.
const USER_TYPE: c_uint = 1 << 6;
const USER: c_uint = 1 << 30;
const USER_NC: c_uint = 1 << 31;

/// What a reduction or a scan combines.
pub trait Operands<M: FaceMode> {
    /// How the elements are combined, and how many bytes they are.
    fn reduction(&self, call: &str, face: &Face<M>) -> (Reduction, usize);
}

/// How C's elements are combined.
pub struct Reduction {
    element: usize,
    function: ReductionFn,
    commutes: bool,
}

/// What combines elements.
pub(crate) enum ReductionFn {
    Numbers(Numbers),
    User(ReduceFn, *const c_void),
    /// GASNet-1's, which writes one result at a time to a place of its own, that is made when it is needed first.
    Registered {
        function: RegisteredFn,
        flags: c_int,
        arg: c_int,
        results: Vec<u128>,
    },
}

// SAFETY: collective.1: the program's function may be called on any thread, with its pointer, which is only given back to it.
unsafe impl Send for Reduction {}

impl Combine for Reduction {
    fn element(&self) -> usize {
        self.element
    }

    fn commutes(&self) -> bool {
        self.commutes
    }

    fn word_op(&self) -> Option<WordOp> {
        match &self.function {
            ReductionFn::Numbers(numbers) => numbers.word_op(),
            _ => None,
        }
    }

    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        let element = self.element;
        match &mut self.function {
            ReductionFn::Numbers(numbers) => numbers.combine(before, after),
            ReductionFn::User(function, data) => {
                let count = before.len() / element;
                // SAFETY: collective.1: both are as many elements, aligned for any, and borrowed, the second exclusively.
                unsafe { function(before.as_ptr().cast(), after.as_mut_ptr().cast(), count, *data) };
                before.copy_from_slice(after);
            }
            ReductionFn::Registered { function, flags, arg, results } => {
                if results.is_empty() {
                    results.resize(element.div_ceil(size_of::<u128>()), 0);
                }
                let results: &mut [u8] = bytemuck::cast_slice_mut(results);
                for (left, right) in before.chunks_exact_mut(element).zip(after.chunks_exact(element)) {
                    let (result, operands) = (results.as_mut_ptr(), [left.as_ptr(), right.as_ptr()]);
                    let [first, second] = operands.map(|operand| operand.cast());
                    // SAFETY: collective.1: one element each, of `element` bytes that are borrowed, the result's exclusively and apart from both.
                    unsafe { function(result.cast(), 1, first, 1, second, element, *flags, *arg) };
                    left.copy_from_slice(&results[..element]);
                }
            }
        }
    }
}

impl Reduction {
    /// Combines elements, of so many bytes and so many, with a function.
    pub(crate) fn new(
        call: &str,
        (element, count): (usize, usize),
        function: ReductionFn,
        commutes: bool,
    ) -> (Self, usize) {
        if element == 0 {
            fail(call, "an element has no bytes");
        }
        let Some(len) = element.checked_mul(count).filter(|&len| isize::try_from(len).is_ok()) else {
            fail(call, format!("{count} elements of {element} bytes are more than there can be"))
        };
        (Self { element, function, commutes }, len)
    }
}

impl<M: FaceMode> Operands<M> for Elements {
    fn reduction(&self, call: &str, _face: &Face<M>) -> (Reduction, usize) {
        let &Self { of, size: element, count, op, user, data } = self;
        let known = of.is_power_of_two().then(|| Type::from_number(of.trailing_zeros())).flatten();
        if known.is_none() && of != USER_TYPE {
            fail(call, format!("{of:#x} is no type"));
        }
        if let Some(known) = known.filter(|known| known.width() != element) {
            fail(call, format!("the type has {} bytes, not {element}", known.width()));
        }
        let function = match (op, known) {
            (USER | USER_NC, _) => match user {
                Some(user) => ReductionFn::User(user, data),
                None => fail(call, "there is no function for GEX_OP_USER"),
            },
            (_, None) => fail(call, format!("the operation {op:#x} is none for GEX_DT_USER: GEX_OP_USER is")),
            (_, Some(known)) => match Numbers::new(known, Ops::from_bits_retain(op)) {
                Some(numbers) => ReductionFn::Numbers(numbers),
                None => fail(call, format!("the operation {op:#x} is none for the type {of:#x}")),
            },
        };
        Reduction::new(call, (element, count), function, op != USER_NC)
    }
}

/// The job and the team, for a collective.
pub(crate) fn begins<M: FaceMode>(
    call: &str,
    team: *const Team,
    root: Option<u32>,
) -> (&'static Face<M>, Found<'static, M>) {
    let face = M::slot().of(call);
    let known = face.team(call, team);
    let size = known.members().size();
    if let Some(root) = root.filter(|root| *root >= size) {
        fail(call, format!("there is no rank {root}: the team has {size}"));
    }
    may_talk::<M>(call);
    (face, known)
}

/// What bits any member of a team has, when all have come.
pub(crate) fn agree<M: FaceMode>(call: &str, face: &Face<M>, team: &team::Team, bits: u64) -> u64 {
    let mut all = bits.to_le_bytes();
    let (teams, _) = face.job.teams();
    went(call, teams.reduce(face.engine(), team, None, &mut all, Numbers::OR));
    u64::from_le_bytes(all)
}

/// A buffer of C's.
///
/// # Safety
/// collective.1, until the event of the collective is done.
pub(crate) unsafe fn buffer(call: &str, at: *const c_void, len: usize) -> VolatileSlice<'static> {
    if len > 0 && at.is_null() {
        fail(call, format!("{len} bytes at no address"));
    }
    // SAFETY: collective.1: C has `len` bytes there, which it leaves alone until the collective is over; what is only read stays as it is.
    unsafe { RawSlice::new(at.cast_mut().cast(), len).borrow() }
}

/// The beginning of a collective whose members meet so.
pub(crate) fn start<M: FaceMode>(meets: Meets) -> Start<M> {
    Start { meets, keep: None }
}

/// Whether what a member has lies apart from where its result belongs, and not there. Else it ends the job.
pub(crate) fn is_apart(call: &str, from: VolatileSlice<'_>, to: VolatileSlice<'_>) -> bool {
    match from.as_ptr().addr().abs_diff(to.as_ptr().addr()) {
        0 => false,
        apart if apart >= from.len() => true,
        _ => fail(call, "source and destination overlap: they are one, or apart"),
    }
}

/// `gex_Coll_BroadcastNB`, and GASNet-1's, whose members may meet.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn broadcast<M: FaceMode>(
    call: &str,
    (team, root): (*const Team, u32),
    (dest, source): (*mut c_void, *const c_void),
    len: usize,
    meets: Meets,
) -> Event {
    let (face, known) = begins::<M>(call, team, Some(root));
    // SAFETY: collective.1: C says so.
    let bytes = unsafe { buffer(call, dest, len) };
    let own = (root == known.team.own()).then(|| {
        // SAFETY: collective.1: C says so.
        let own = unsafe { buffer(call, source, len) };
        is_apart(call, own, bytes).then_some(own)
    });
    let (teams, _) = face.job.teams();
    let begun = teams.begin_broadcast(face.engine(), &known.team, start(meets), root, (own.flatten(), bytes));
    went(call, begun).0.into_bits() as Event
}

/// `gex_Coll_ReduceToOneNB`, and without a root `gex_Coll_ReduceToAllNB`; GASNet-1's reduction to one, whose members may meet.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn reduce<M: FaceMode>(
    call: &str,
    team: *const Team,
    root: Option<u32>,
    (dest, source): (*mut c_void, *const c_void),
    operands: impl Operands<M>,
    meets: Meets,
) -> Event {
    let (face, known) = begins::<M>(call, team, root);
    let (reduction, len) = operands.reduction(call, face);
    // SAFETY: collective.1: C says so.
    let own = unsafe { buffer(call, source, len) };
    let result = match root {
        Some(root) if root != known.team.own() => VolatileSlice::EMPTY,
        // SAFETY: collective.1: C says so.
        _ => unsafe { buffer(call, dest, len) },
    };
    let (teams, _) = face.job.teams();
    let begun = teams.begin_reduce(face.engine(), &known.team, start(meets), root, (own, result), reduction);
    went(call, begun).0.into_bits() as Event
}
