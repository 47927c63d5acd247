//! What GASNet-1's collectives have beyond EX's: functions that a program registers for reductions and scans, and lists of addresses by image. An
//! image is a rank.
//!
//! # Invariants
//! As in the crate, and:
//! - images.1: a registered function can be called on any thread, for as many elements as it is told, until the job ends.

use crate::collective::{Operands, Reduction, ReductionFn};
use crate::face::{Face, FaceMode, fail};
use crate::layout::{ReduceFnEntry, Team};
use gasworks_sync::Lock;
use std::ffi::{c_int, c_uint, c_void};

/// `GASNET_COLL_SINGLE`, `GASNET_COLL_LOCAL`, `GASNET_COLL_NONCOMM`, `GASNET_COLL_INCLUSIVE_SCAN` and `GASNET_COLL_EXCLUSIVE_SCAN`.
const SINGLE: c_int = 1 << 6;
const LOCAL: c_int = 1 << 7;
const NONCOMM: c_uint = 1 << 11;
const INCLUSIVE: c_int = 1 << 15;
const EXCLUSIVE: c_int = 1 << 16;

/// `gasnet_coll_init`: keeps the functions, instead of those of an earlier call.
///
/// # Safety
/// capi.1: there is a number of images for each rank at `images`, if that is not null, and `count` entries at `functions`. images.1.
pub unsafe fn init<M: FaceMode>(images: *const u32, functions: *const ReduceFnEntry, count: usize) {
    const CALL: &str = "gasnet_coll_init";
    let face = M::slot().of(CALL);
    if !images.is_null() {
        // SAFETY: capi.1: C has a number for each rank there.
        let images = unsafe { std::slice::from_raw_parts(images, face.job.ranks() as usize) };
        if let Some(rank) = images.iter().position(|&images| images != 1) {
            fail(CALL, format!("rank {rank} has {} images: one is what a rank can have", images[rank]));
        }
    }
    if functions.is_null() && count > 0 {
        fail(CALL, format!("there is no table of {count} functions"));
    }
    let entries = match count {
        0 => Vec::new(),
        // SAFETY: capi.1: `functions` is not null, and C has `count` entries there.
        _ => unsafe { std::slice::from_raw_parts(functions, count) }.to_vec(),
    };
    face.functions.with(|functions| *functions = entries);
}

/// The address of this member's image in a list, which has one for each member, or this member's alone.
///
/// # Safety
/// capi.1: as the flags say.
pub unsafe fn own_address<M: FaceMode>(
    call: &str,
    team: *const Team,
    list: *const *mut c_void,
    flags: c_int,
) -> *mut c_void {
    let face = M::slot().of(call);
    let at = match flags & (SINGLE | LOCAL) {
        SINGLE => face.team(call, team).team.own() as usize,
        LOCAL => 0,
        _ => fail(call, "its flags say one of GASNET_COLL_SINGLE and GASNET_COLL_LOCAL"),
    };
    if list.is_null() {
        fail(call, "there is no list of addresses");
    }
    // SAFETY: capi.1: `list` is not null and has an address for each member, or with `LOCAL` one.
    unsafe { *list.add(at) }
}

/// Elements that a registered function combines.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredElements {
    /// How the elements of an array lie: bytes of a block and before the first element, of what is read and of what is written.
    pub blocks: [usize; 4],
    /// Bytes of one.
    pub size: usize,
    /// How many there are.
    pub count: usize,
    /// The function's place in the table.
    pub function: c_int,
    /// What it is given.
    pub arg: c_int,
}

impl<M: FaceMode> Operands<M> for RegisteredElements {
    fn reduction(&self, call: &str, face: &Face<M>) -> (Reduction, usize) {
        let &Self { blocks, size, count, function: place, arg } = self;
        if blocks != [0; 4] {
            fail(call, "elements lie one behind the other at an address: sizes of blocks and offsets are 0");
        }
        let entry = face.functions.with(|functions| {
            let place = usize::try_from(place).ok()?;
            functions.get(place).copied()
        });
        let Some(ReduceFnEntry { function: Some(function), flags }) = entry else {
            fail(call, format!("no function {place} was given to gasnet_coll_init"))
        };
        let results = Vec::new();
        let function = ReductionFn::Registered { function, flags: (flags & NONCOMM) as c_int, arg, results };
        Reduction::new(call, (size, count), function, flags & NONCOMM == 0)
    }
}

/// Whether a scan has a member's own elements in its result.
pub fn with_own(call: &str, flags: c_int) -> bool {
    match flags & (INCLUSIVE | EXCLUSIVE) {
        INCLUSIVE => true,
        EXCLUSIVE => false,
        _ => fail(call, "its flags say one of GASNET_COLL_INCLUSIVE_SCAN and GASNET_COLL_EXCLUSIVE_SCAN"),
    }
}
