//! Collectives: broadcast, reduction to one and to all, and the publication of endpoints.
//!
//! # Invariants
//! As in the crate.
//! - collective.1: C leaves both buffers of a collective to it until its event is done, and its function can be called for them on any thread, with
//!   the pointer that came with it.

use crate::codes::refused;
use crate::face::{Face, FaceMode, fail, went};
use crate::layout::{ERR_BAD_ARG, Endpoint, Event, OK, Team};
use crate::talk::may_talk;
use crate::{barrier, event};
use gasworks_extended::collective::Combine;
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

/// Combines elements of a type of C's.
type Built = fn(&mut [u8], &[u8]);

/// How elements of a type are combined, if they can be so.
fn built(of: Type, op: Ops) -> Option<Built> {
    fn each<T: bytemuck::Pod>(before: &mut [u8], after: &[u8], combine: impl Fn(T, T) -> T) {
        let after = bytemuck::cast_slice::<u8, T>(after);
        for (before, &after) in bytemuck::cast_slice_mut::<u8, T>(before).iter_mut().zip(after) {
            *before = combine(*before, after);
        }
    }
    macro_rules! integer {
        ($t:ty) => {
            match op {
                Ops::AND => Some(|a, b| each::<$t>(a, b, |a, b| a & b)),
                Ops::OR => Some(|a, b| each::<$t>(a, b, |a, b| a | b)),
                Ops::XOR => Some(|a, b| each::<$t>(a, b, |a, b| a ^ b)),
                Ops::ADD => Some(|a, b| each::<$t>(a, b, <$t>::wrapping_add)),
                Ops::MULT => Some(|a, b| each::<$t>(a, b, <$t>::wrapping_mul)),
                Ops::MIN => Some(|a, b| each::<$t>(a, b, <$t>::min)),
                Ops::MAX => Some(|a, b| each::<$t>(a, b, <$t>::max)),
                _ => None,
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                Ops::ADD => Some(|a, b| each::<$t>(a, b, |a, b| a + b)),
                Ops::MULT => Some(|a, b| each::<$t>(a, b, |a, b| a * b)),
                Ops::MIN => Some(|a, b| each::<$t>(a, b, <$t>::min)),
                Ops::MAX => Some(|a, b| each::<$t>(a, b, <$t>::max)),
                _ => None,
            }
        };
    }
    match of {
        Type::I32 => integer!(i32),
        Type::U32 => integer!(u32),
        Type::I64 => integer!(i64),
        Type::U64 => integer!(u64),
        Type::F32 => float!(f32),
        Type::F64 => float!(f64),
    }
}

/// How C's elements are combined.
struct Reduction {
    element: usize,
    way: Way,
    commutes: bool,
}

enum Way {
    Built(Built),
    User(ReduceFn, *const c_void),
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

    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        match self.way {
            Way::Built(built) => built(before, after),
            Way::User(function, data) => {
                let count = before.len() / self.element;
                // SAFETY: collective.1: both are as many elements, aligned for any, and borrowed, the second exclusively.
                unsafe { function(before.as_ptr().cast(), after.as_mut_ptr().cast(), count, data) };
                before.copy_from_slice(after);
            }
        }
    }
}

impl Elements {
    /// How they are combined, and how many bytes they are.
    fn reduction(&self, call: &str) -> (Reduction, usize) {
        let &Self { of, size: element, count, op, user, data } = self;
        let known = of.is_power_of_two().then(|| Type::from_number(of.trailing_zeros())).flatten();
        if known.is_none() && of != USER_TYPE {
            fail(call, format!("{of:#x} is no type"));
        }
        if let Some(known) = known.filter(|known| known.width() != element) {
            fail(call, format!("the type has {} bytes, not {element}", known.width()));
        }
        let way = match (op, known) {
            (USER | USER_NC, _) => match user {
                Some(user) => Way::User(user, data),
                None => fail(call, "there is no function for GEX_OP_USER"),
            },
            (_, None) => fail(call, format!("the operation {op:#x} is none for GEX_DT_USER: GEX_OP_USER is")),
            (_, Some(known)) => match built(known, Ops::from_bits_retain(op)) {
                Some(built) => Way::Built(built),
                None => fail(call, format!("the operation {op:#x} is none for the type {of:#x}")),
            },
        };
        if element == 0 {
            fail(call, "an element has no bytes");
        }
        let Some(len) = element.checked_mul(count).filter(|&len| isize::try_from(len).is_ok()) else {
            fail(call, format!("{count} elements of {element} bytes are more than there can be"))
        };
        (Reduction { element, way, commutes: op != USER_NC }, len)
    }
}

/// The job, for a collective of its team.
fn begins<M: FaceMode>(call: &str, team: *const Team, root: Option<u32>) -> &'static Face<M> {
    let face = M::slot().of(call);
    if team != face.team {
        fail(call, format!("{team:p} is no team"));
    }
    root.map(|root| face.rank(call, team, root));
    may_talk::<M>(call);
    face
}

/// A buffer of C's.
///
/// # Safety
/// collective.1, until the event of the collective is done.
unsafe fn buffer(call: &str, at: *const c_void, len: usize) -> VolatileSlice<'static> {
    if len > 0 && at.is_null() {
        fail(call, format!("{len} bytes at no address"));
    }
    // SAFETY: collective.1: C has `len` bytes there, which it leaves alone until the collective is over; what is only read stays as it is.
    unsafe { RawSlice::new(at.cast_mut().cast(), len).borrow() }
}

/// Copies what a member has to where its result belongs, unless it lies there already.
fn bring(call: &str, from: VolatileSlice<'_>, to: VolatileSlice<'_>) {
    let apart = from.as_ptr().addr().abs_diff(to.as_ptr().addr());
    match apart {
        0 => {}
        _ if apart >= from.len() => from.copy_to(to),
        _ => fail(call, "source and destination overlap: they are one, or apart"),
    }
}

/// `gex_Coll_BroadcastNB`.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn broadcast<M: FaceMode>(
    team: *const Team,
    root: u32,
    (dest, source): (*mut c_void, *const c_void),
    len: usize,
) -> Event {
    const CALL: &str = "gex_Coll_BroadcastNB";
    let face = begins::<M>(CALL, team, Some(root));
    // SAFETY: collective.1: C says so.
    let bytes = unsafe { buffer(CALL, dest, len) };
    if root == face.engine().rank() {
        // SAFETY: collective.1: C says so.
        bring(CALL, unsafe { buffer(CALL, source, len) }, bytes);
    }
    let (teams, everyone) = face.job.teams();
    let begun = teams.begin_broadcast(face.engine(), everyone, root, bytes);
    went(CALL, begun).into_bits() as Event
}

/// `gex_Coll_ReduceToOneNB`, and without a root `gex_Coll_ReduceToAllNB`.
///
/// # Safety
/// capi.1; collective.1 until the event is done.
pub unsafe fn reduce<M: FaceMode>(
    call: &str,
    team: *const Team,
    root: Option<u32>,
    (dest, source): (*mut c_void, *const c_void),
    elements: Elements,
) -> Event {
    let face = begins::<M>(call, team, root);
    let (reduction, len) = elements.reduction(call);
    // SAFETY: collective.1: C says so.
    let own = unsafe { buffer(call, source, len) };
    let result = match root {
        Some(root) if root != face.engine().rank() => VolatileSlice::EMPTY,
        // SAFETY: collective.1: C says so.
        _ => unsafe { buffer(call, dest, len) },
    };
    let (teams, everyone) = face.job.teams();
    let begun = teams.begin_reduce(face.engine(), everyone, root, (own, result), reduction);
    went(call, begun).into_bits() as Event
}

/// `gex_EP_PublishBoundSegment`: what is bound to the first endpoint everybody knows since it was attached, so that ranks meet and no more.
/// Collective.
///
/// # Safety
/// capi.1.
pub unsafe fn publish<M: FaceMode>(
    team: *const Team,
    endpoints: *const *const Endpoint,
    count: usize,
) -> c_int {
    const CALL: &str = "gex_EP_PublishBoundSegment";
    let face = M::slot().of(CALL);
    if team != face.team {
        return refused(CALL, format!("{team:p} is no team"), ERR_BAD_ARG);
    }
    if count > 0 && endpoints.is_null() {
        return refused(CALL, format!("{count} endpoints at no address"), ERR_BAD_ARG);
    }
    for at in 0..count {
        // SAFETY: capi.1: C has as many endpoints there.
        let endpoint = unsafe { endpoints.add(at).read() };
        if endpoint != face.ep {
            return refused(CALL, format!("{endpoint:p} is no endpoint of this rank"), ERR_BAD_ARG);
        }
    }
    event::wait::<M>(barrier::begin::<M>(CALL, team));
    OK
}
