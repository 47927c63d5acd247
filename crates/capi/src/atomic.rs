//! Atomic domains, and their operations that are more than an operation of the processor's, or that the compiler of C did not know.
//!
//! # Invariants
//! As in the crate, and:
//! - atomic.1: C leaves the place for what a word was to an operation until its event is done, or the thread's set says so.
//! - atomic.2: a domain's object is never freed: one that was destroyed says that it was, until it is the next one's.

use crate::check::is_object;
use crate::face::{Face, FaceMode, by_address, fail, went};
use crate::known::Found;
use crate::layout::{AtomicDomain, Event, Flags, IMMEDIATE, Kind, NO_OP, OK, PAIRS, Team};
use gasworks_extended::atomic::{By, Domain, Favor, Operation};
use gasworks_extended::event::Event as Started;
use gasworks_extended::{Error, Implicit};
use gasworks_memory::Row;
use gasworks_memory::atomic::{Change, Ops, Type, Update};
use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

/// `GEX_FLAG_AD_FAVOR_MY_RANK` and `GEX_FLAG_AD_FAVOR_MY_NBRHD`.
const FAVOR_NEAR: Flags = 1 << 0 | 1 << 1;
/// `GEX_FLAG_AD_MY_RANK`.
const MY_RANK: Flags = 1 << 11;
/// `GEX_FLAG_AD_MY_NBRHD`.
const MY_NBRHD: Flags = 1 << 12;
/// `GEX_FLAG_RANK_IS_JOBRANK`.
const RANK_IS_JOB_RANK: Flags = 1 << 13;

/// What a `gex_AD_t` leads to: what C sees, and what the library knows besides.
#[repr(C)]
struct Made {
    shown: AtomicDomain,
    domain: Domain,
    /// What has the rows that are shown, so that they stay where the team is destroyed before the domain is.
    keeps: Option<Arc<dyn Any>>,
}

/// An object that nobody has.
struct Spare(*mut Made);

// SAFETY: atomic.2: it is nobody's, and leads to what stays.
unsafe impl Send for Spare {}

/// The objects of domains that were destroyed: the next ones get them.
static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

fn spare() -> std::sync::MutexGuard<'static, Vec<Spare>> {
    SPARE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `gex_DT_t`.
fn type_of(of: c_uint) -> Option<Type> {
    of.is_power_of_two().then(|| Type::from_number(of.trailing_zeros())).flatten()
}

/// `gex_AD_Create`: nobody waits for the other ranks, which come to the same by the same arguments.
///
/// # Safety
/// capi.1.
pub unsafe fn create<M: FaceMode>(
    place: *mut *mut AtomicDomain,
    team: *const Team,
    of: c_uint,
    operations: c_uint,
    flags: Flags,
) {
    const CALL: &str = "gex_AD_Create";
    let face = M::slot().of(CALL);
    if place.is_null() {
        fail(CALL, "there is no place for the domain");
    }
    let found = face.team(CALL, team);
    let team: *const Team = found.handle;
    let Some(known) = type_of(of) else { fail(CALL, format!("{of:#x} is no type")) };
    let favor = if flags & FAVOR_NEAR != 0 { Favor::Near } else { Favor::Far };
    let domain = Domain::new(face.engine(), known, Ops::from_bits_retain(operations), favor);
    let domain = went(CALL, domain);
    // SAFETY: capi.1: C destroys no team meanwhile that it passes, and everyone's stays (capi.2).
    let [own, everyone] = [team, face.team.cast_const()].map(|team| unsafe { rows(face, team, &domain) });
    let kind = Kind::AtomicDomain as u32;
    let ((rows, pitch), (job_rows, job_pitch)) = (own, everyone);
    let cdata = std::ptr::null();
    let shown = AtomicDomain { cdata, kind, flags, team, of, operations, rows, pitch, job_rows, job_pitch };
    let keeps = match found {
        Found::Everyone(_) => None,
        Found::Other(known) => Some(known as Arc<dyn Any>),
    };
    let made = Made { shown, domain, keeps };
    let object = match spare().pop() {
        Some(Spare(object)) => {
            // SAFETY: atomic.2: the object stays, and was nobody's.
            unsafe { object.write(made) };
            object
        }
        None => Box::into_raw(Box::new(made)),
    };
    // SAFETY: capi.1: `place` is not null, and C has room for a handle there.
    unsafe { place.write(object.cast()) };
}

/// The rows of a team's members, and how far on each is; closed ones where no processor may do what the NIC does.
///
/// # Safety
/// The team is there (capi.1, capi.2).
unsafe fn rows<M: FaceMode>(face: &Face<M>, team: *const Team, domain: &Domain) -> (*const Row, isize) {
    let of = if domain.by() == By::Nic { nobody(face) } else { team };
    // SAFETY: capi.1, capi.2: the caller says so of `team`, and the pair of nobody's stays.
    unsafe { ((*of).rows, (*of).pitch) }
}

/// The pair with endpoints that are not there, whose rows are closed.
fn nobody<M: FaceMode>(face: &Face<M>) -> *const Team {
    face.pairs.wrapping_add(PAIRS)
}

/// `gex_AD_Destroy`: nobody waits here either.
///
/// # Safety
/// capi.1.
pub unsafe fn destroy<M: FaceMode>(domain: *mut AtomicDomain) {
    const CALL: &str = "gex_AD_Destroy";
    let face = M::slot().of(CALL);
    // SAFETY: capi.1: C passes a handle that it was given.
    let made = unsafe { known(CALL, domain) }.cast_mut();
    // SAFETY: capi.2: the job's pairs stay.
    let closed = unsafe { (*nobody(face)).rows };
    // SAFETY: atomic.2: the object stays; capi.1: nobody else uses it now.
    let shown = unsafe { &mut (*made).shown };
    shown.kind = Kind::Gone as u32;
    // What is inline asks the library, which says so.
    (shown.rows, shown.pitch, shown.job_rows, shown.job_pitch) = (closed, 0, closed, 0);
    // SAFETY: atomic.2: the object stays; capi.1: nobody else uses it now.
    drop(unsafe { (*made).keeps.take() });
    spare().push(Spare(made));
}

/// The domain of a handle, which is there and stays (atomic.2): [`create`] alone makes objects of this kind.
///
/// # Safety
/// capi.1: it leads to some object, if it is aligned as one and not null.
#[inline]
unsafe fn known(call: &str, handle: *const AtomicDomain) -> *const Made {
    // SAFETY: capi.1: the caller says so of `handle`.
    match unsafe { is_object(handle.cast(), Kind::AtomicDomain as u32) } {
        Ok(()) => handle.cast(),
        Err(wrong) => fail(call, wrong),
    }
}

/// What C says of an operation: `gex_AD_t`, `gex_DT_t` of the function, where the result goes, the rank and the place there, `gex_OP_t`, the
/// bits of the operands.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The domain.
    pub domain: *const AtomicDomain,
    /// The type of the function that was called.
    pub of: c_uint,
    /// Where the result goes of one that fetches.
    pub result: *mut c_void,
    /// The rank.
    pub rank: u32,
    /// The address there.
    pub target: *const c_void,
    /// The operation.
    pub op: c_uint,
    /// The bits of its operands.
    pub operands: [u64; 2],
    /// The flags.
    pub flags: Flags,
}

impl Asked {
    /// The function that was called.
    fn call(&self, is_implicit: bool) -> &'static str {
        const CALLS: [[&str; 2]; 6] = [
            ["gex_AD_OpNB_I32", "gex_AD_OpNBI_I32"],
            ["gex_AD_OpNB_U32", "gex_AD_OpNBI_U32"],
            ["gex_AD_OpNB_I64", "gex_AD_OpNBI_I64"],
            ["gex_AD_OpNB_U64", "gex_AD_OpNBI_U64"],
            ["gex_AD_OpNB_FLT", "gex_AD_OpNBI_FLT"],
            ["gex_AD_OpNB_DBL", "gex_AD_OpNBI_DBL"],
        ];
        CALLS[self.of.trailing_zeros() as usize % CALLS.len()][usize::from(is_implicit)]
    }

    /// What it changes, and how.
    #[inline]
    fn update(&self, call: &str) -> Update {
        let bit = Ops::from_bits_retain(self.op);
        match type_of(self.of).and_then(|of| Update::new(of, bit, self.operands)) {
            Some(update) => update,
            None => fail(call, format!("the operation {:#x} is none for the type {:#x}", self.op, self.of)),
        }
    }

    /// The rank of the job, which the flags may say more of.
    #[inline]
    fn rank<M: FaceMode>(&self, call: &str, face: &Face<M>, team: *const Team) -> u32 {
        let by_job = self.flags & RANK_IS_JOB_RANK != 0;
        let rank = face.rank(call, if by_job { face.team } else { team }, self.rank);
        if self.flags & (MY_RANK | MY_NBRHD) != 0 {
            let near = &face.neighbours;
            if self.flags & MY_RANK != 0 && rank != face.engine().rank() {
                fail(call, format!("GEX_FLAG_AD_MY_RANK of rank {}, which is another's", self.rank));
            }
            if !near.iter().any(|near| near.rank == rank) {
                fail(call, format!("GEX_FLAG_AD_MY_NBRHD of rank {}, which is in another", self.rank));
            }
        }
        rank
    }

    /// Starts it; `None` if there is no room, and nobody is to wait for any.
    ///
    /// # Safety
    /// capi.1, atomic.1.
    #[inline]
    unsafe fn start<M: FaceMode>(
        &self,
        call: &str,
        face: &Face<M>,
        set: Option<&Implicit>,
    ) -> Option<Started> {
        // SAFETY: capi.1: C passes a handle that it was given.
        let made = unsafe { known(call, self.domain) };
        // SAFETY: atomic.2: it is a domain, which stays, and whose team and kind nobody changes.
        let (team, domain) = unsafe { ((*made).shown.team, (*made).domain) };
        let update = self.update(call);
        let fetches = update.fetches || update.change == Change::Get;
        if fetches && self.result.is_null() {
            fail(call, "there is no place for the result, which the operation fetches");
        }
        let rank = self.rank(call, face, team);
        let offset = face.offset(rank, self.target.cast());
        let operation = Operation { domain, update, rank, offset };
        let engine = face.engine();
        if let Ok(Some(was)) = operation.apply_near(engine.peers().rows()) {
            if fetches {
                // SAFETY: atomic.1: C has as many bytes at `result` as the word has.
                unsafe { store(self.result, was, update.width()) };
            }
            return Some(Started::DONE);
        }
        // SAFETY: atomic.1: C leaves the bytes at `result` to the operation until it is done.
        let started =
            unsafe { operation.start(engine, self.result.cast(), set, None, self.flags & IMMEDIATE != 0) };
        match started {
            Ok((event, _)) => Some(event),
            Err(error) if self.flags & IMMEDIATE != 0 && error.is_busy() => None,
            Err(error) => self.failed(call, &error),
        }
    }

    #[cold]
    fn failed(&self, call: &str, error: &Error) -> ! {
        fail(call, format!("the word at {:p} of rank {}: {}", self.target, self.rank, by_address(error)))
    }
}

/// Stores the bits of a word where C wants them.
///
/// # Safety
/// atomic.1: C has so many bytes there, at any address.
#[inline]
unsafe fn store(place: *mut c_void, bits: u64, width: usize) {
    match width {
        // SAFETY: atomic.1: there are 4 bytes, as the caller says.
        4 => unsafe { place.cast::<u32>().write_unaligned(bits as u32) },
        // SAFETY: atomic.1: there are 8 bytes, as the caller says.
        _ => unsafe { place.cast::<u64>().write_unaligned(bits) },
    }
}

/// `gex_AD_OpNB_*`.
///
/// # Safety
/// capi.1, atomic.1.
#[inline]
pub unsafe fn nb<M: FaceMode>(asked: Asked) -> Event {
    let call = asked.call(false);
    // SAFETY: capi.1, atomic.1: the caller says so of all that `asked` names.
    let started = unsafe { asked.start(call, M::slot().of(call), None) };
    started.map_or(NO_OP, |event| event.into_bits() as Event)
}

/// `gex_AD_OpNBI_*`.
///
/// # Safety
/// capi.1, atomic.1.
#[inline]
pub unsafe fn nbi<M: FaceMode>(asked: Asked) -> c_int {
    let call = asked.call(true);
    let face = M::slot().of(call);
    // SAFETY: capi.1, atomic.1: the caller says so of all that `asked` names.
    let started = face.implicit(|set| unsafe { asked.start(call, face, Some(set)) });
    started.map_or(1, |_| OK)
}
