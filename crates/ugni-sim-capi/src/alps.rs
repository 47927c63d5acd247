//! `libalpslli` and `libalpsutil`: what programs ask of ALPS, the launcher of Cray's machines. The genuine headers were never
//! public: `include/alps` is the contract.
//!
//! Who asks is answered alone, by what the ranks of its job know since they have met, or by what its launcher has told it: gasrun does, for
//! jobs on one host. Elsewhere it joins a job with all others that ask, and leaves it at once.
//!
//! # Invariants
//! - alps.1: a pointer that a caller gives for a result is null, which is refused or means that it is not wanted, or valid for one
//!   write of its type.
//! - alps.2: memory that a caller gives with a length is null, which is refused, or valid for so many bytes.
//! - alps.3: what `malloc` gives is null or valid for so many bytes, aligned for any type.
//! - alps.4: nic.1 of [`nic`](crate::pmi::nic) holds for a request, and for a question for placement.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex};

use crate::pmi::job::Alps;
use crate::pmi::state;

/// `ALPS_APP_LLI_ALPS_REQ_APID`
const REQUEST_APPLICATION: c_int = 1;
/// `ALPS_APP_LLI_ALPS_REQ_GNI`
const REQUEST_NIC: c_int = 2;
/// `ALPS_APP_LLI_ALPS_STAT_OK`
const OK: c_int = 0;
/// `ALPS_APP_LLI_ALPS_STAT_ERROR`
const ERROR: c_int = 1;
/// `ALPS_APP_LLI_ALPS_STAT_UNKNOWN`
const UNKNOWN: c_int = 2;
/// What a call returns that makes no sense.
const REFUSED: c_int = -1;
/// What a question for placement returns that was answered.
const ANSWERED: c_int = 1;

/// `alpsAppLayout_t`
#[repr(C)]
#[derive(Debug)]
pub struct Layout {
    first_pe: c_int,
    pes_here: c_int,
    total_pes: c_int,
    pe_depth: c_int,
    commands: c_int,
    targets: c_int,
    control_nid: c_int,
}

// The C test asserts the same numbers.
const _: () = assert!(size_of::<Layout>() == 28 && offset_of!(Layout, control_nid) == 24);

/// The answer to a request.
struct Answer {
    status: c_int,
    bytes: Vec<u8>,
    /// Whether the status was asked for, and how many bytes were taken then.
    heard: bool,
    taken: usize,
}

/// The conversation of one thread at a time.
struct Lli {
    owner: Option<ThreadId>,
    answer: Option<Answer>,
}

static LLI: Mutex<Lli> = Mutex::new(Lli { owner: None, answer: None });
static FREE: Condvar = Condvar::new();

impl Lli {
    fn is_mine(&self) -> bool {
        self.owner == Some(thread::current().id())
    }
}

/// A step of the conversation, of the thread that has it. `None`: it makes no sense.
fn step(act: impl FnOnce(&mut Lli) -> Option<()>) -> c_int {
    let mut lli = LLI.lock();
    let taken = lli.is_mine().then(|| act(&mut lli)).flatten();
    taken.map_or(REFUSED, |()| OK)
}

fn answer(request: c_int) -> (c_int, Vec<u8>) {
    if ![REQUEST_APPLICATION, REQUEST_NIC].contains(&request) {
        return (UNKNOWN, Vec::new());
    }
    match state::alps() {
        Ok(alps) if request == REQUEST_APPLICATION => (OK, alps.application.to_ne_bytes().to_vec()),
        Ok(alps) => (OK, nics(&alps)),
        Err(_) => (ERROR, Vec::new()),
    }
}

/// The words of an `alpsAppLLIGni_t`: the number of NICs, nothing, and what the one there is needs.
fn nics(alps: &Alps) -> Vec<u8> {
    let nic = alps.nic;
    let numbers = [1, 0, nic.device, nic.address, nic.cookie, u32::from_ne_bytes([nic.tag, 0, 0, 0])];
    numbers.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// `alps_app_lli_lock`
#[unsafe(no_mangle)]
pub extern "C" fn alps_app_lli_lock() -> c_int {
    let mut lli = LLI.lock();
    if lli.is_mine() {
        return REFUSED;
    }
    FREE.wait_while(&mut lli, |lli| lli.owner.is_some());
    lli.owner = Some(thread::current().id());
    OK
}

/// `alps_app_lli_unlock`
#[unsafe(no_mangle)]
pub extern "C" fn alps_app_lli_unlock() -> c_int {
    let done = step(|lli| {
        (lli.owner, lli.answer) = (None, None);
        Some(())
    });
    FREE.notify_one();
    done
}

/// `alps_app_lli_put_request`
///
/// # Safety
/// alps.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alps_app_lli_put_request(request: c_int, _data: *mut c_void, _len: usize) -> c_int {
    if step(|_| Some(())) != OK {
        return REFUSED;
    }
    // The conversation stays this thread's meanwhile.
    let (status, bytes) = answer(request);
    step(|lli| {
        lli.answer = Some(Answer { status, bytes, heard: false, taken: 0 });
        Some(())
    })
}

/// `alps_app_lli_get_response`
///
/// # Safety
/// alps.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alps_app_lli_get_response(status: *mut c_int, count: *mut usize) -> c_int {
    step(|lli| {
        let answer = lli.answer.as_mut().filter(|_| !status.is_null() && !count.is_null())?;
        answer.heard = true;
        // SAFETY: alps.1: neither `status` nor `count` is null, so each is valid for one write.
        unsafe {
            status.write(answer.status);
            count.write(answer.bytes.len());
        }
        Some(())
    })
}

/// `alps_app_lli_get_response_bytes`
///
/// # Safety
/// alps.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alps_app_lli_get_response_bytes(to: *mut c_void, len: usize) -> c_int {
    step(|lli| {
        let answer = lli.answer.as_mut().filter(|answer| answer.heard && !to.is_null())?;
        let bytes = answer.bytes.get(answer.taken..)?.get(..len)?;
        // SAFETY: alps.2: `to` is not null, so it is valid for `len` bytes; `bytes` has as many, which are the answer's own.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), len) };
        answer.taken += len;
        Some(())
    })
}

/// Gives a caller a list of its own, which it frees; null where there is nothing, or no memory.
fn give<T: Copy>(to: *mut *mut T, list: &[T]) {
    if to.is_null() {
        return;
    }
    let copy = match list.len() {
        0 => std::ptr::null_mut(),
        // SAFETY: alps.3: `malloc` is given a size, which is not 0, and touches no memory of ours.
        _ => unsafe { libc::malloc(size_of_val(list)) }.cast::<T>(),
    };
    // SAFETY: alps.3: `copy` is null, or new and as large as `list`; alps.1: `to` is not null, so it is valid for one write.
    unsafe {
        if !copy.is_null() {
            copy.copy_from_nonoverlapping(list.as_ptr(), list.len());
        }
        to.write(copy);
    }
}

/// `alps_get_placement_info`
///
/// # Safety
/// alps.1, alps.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alps_get_placement_info(
    apid: u64,
    layout: *mut Layout,
    placement_list: *mut *mut c_int,
    target_nids: *mut *mut c_int,
    target_pes: *mut *mut c_int,
    target_len: *mut *mut c_int,
    target_ips: *mut *mut u32,
    start_pe: *mut *mut c_int,
    total_pes: *mut *mut c_int,
    node_pes: *mut *mut c_int,
    pe_cpus: *mut *mut c_int,
) -> c_int {
    let Some(alps) = state::alps().ok().filter(|alps| alps.application == apid && !layout.is_null()) else {
        return REFUSED;
    };
    let (all, first, here) = (alps.size as c_int, alps.here.0 as c_int, alps.here.1 as c_int);
    // SAFETY: alps.1: `layout` is not null, so it is valid for one write.
    unsafe {
        layout.write(Layout {
            first_pe: first,
            pes_here: here,
            total_pes: all,
            pe_depth: 1,
            commands: 1,
            targets: 0,
            control_nid: alps.nodes[0],
        });
    }
    give(placement_list, &alps.nodes);
    // Nobody is controlled from here.
    [target_nids, target_pes, target_len].into_iter().for_each(|to| give(to, &[]));
    give(target_ips, &[]);
    for (to, number) in [(start_pe, 0), (total_pes, all), (node_pes, here), (pe_cpus, 1)] {
        give(to, &[number]);
    }
    ANSWERED
}
