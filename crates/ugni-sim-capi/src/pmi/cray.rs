//! The functions of `pmi_cray_ext.h`.
//!
//! # Invariants
//! Those of [`args`](super::args).

use std::ffi::{c_int, c_void};

use gasworks_gni_sys::pmi::*;

use super::args::{length, put, read, write};
use super::job::Job;
use super::pmi1::{near, number};
use super::{Done, code, state};

/// The version of Cray's PMI that is played.
const VERSION: [c_int; 3] = [5, 0, 0];

/// An all-gather in which all give so many bytes.
fn gather(
    mine: *const c_void,
    all: *mut c_void,
    len: c_int,
    gather: impl FnOnce(&mut Job, &[u8]) -> Done<Vec<Vec<u8>>>,
) -> c_int {
    code(state::with(|job| {
        let len = length(len)?;
        // SAFETY: P3.
        let mine = unsafe { read(mine.cast::<u8>(), len) }?;
        if all.is_null() && len > 0 {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let gathered = gather(job, &mine)?;
        if gathered.iter().any(|theirs| theirs.len() != len) {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: P3: `len` bytes of each.
        unsafe { write(all.cast(), &gathered.concat()) }
    }))
}

/// `PMI_Allgather`
///
/// # Safety
/// P3: as many times `len` bytes as there are ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgather(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int {
    gather(mine, all, len, Job::all_gather)
}

/// `PMI_Allgatherv`
///
/// # Safety
/// P3: all that is gathered, and a length for each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgatherv(
    mine: *mut c_void,
    len: c_int,
    all: *mut c_void,
    all_lens: *mut c_int,
) -> c_int {
    code(state::with(|job| {
        let len = length(len)?;
        // SAFETY: P3.
        let (mine, lens) =
            unsafe { (read(mine.cast_const().cast::<u8>(), len)?, read(all_lens, job.order.len())?) };
        if all.is_null() && lens.iter().any(|len| *len > 0) {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let gathered = job.all_gather(&mine)?;
        if !gathered.iter().map(|theirs| theirs.len()).eq(lens.iter().map(|len| *len as usize)) {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: P3: so many bytes as the lengths say.
        unsafe { write(all.cast(), &gathered.concat()) }
    }))
}

/// `PMI_Allgather_on_smp`
///
/// # Safety
/// P3: as many times `len` bytes as there are ranks on this host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgather_on_smp(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int {
    gather(mine, all, len, Job::all_gather_near)
}

/// `PMI_Bcast`
///
/// # Safety
/// P3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Bcast(buf: *mut c_void, len: c_int) -> c_int {
    code(state::with(|job| {
        let len = length(len)?;
        // SAFETY: P3.
        let mine = unsafe { read(buf.cast_const().cast::<u8>(), len) }?;
        let given = job.broadcast(&mine)?;
        if given.len() != len {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: P3.
        unsafe { write(buf.cast(), &given) }
    }))
}

/// `PMI_Get_numpes_on_smp`
///
/// # Safety
/// P1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_numpes_on_smp(num: *mut c_int) -> c_int {
    number(num, |job| job.facts.near.len() as c_int)
}

/// `PMI_Get_pes_on_smp`
///
/// # Safety
/// P3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_pes_on_smp(pes: *mut c_int, num: c_int) -> c_int {
    near(pes, num)
}

/// `PMI_Get_nidlist_ptr`
///
/// # Safety
/// P1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_nidlist_ptr(nidlist: *mut *mut c_void) -> c_int {
    // SAFETY: P1.
    code(state::with(|job| unsafe { put(nidlist, job.facts.nodes.as_ptr().cast_mut().cast()) }))
}

/// `PMI_Get_nid`
///
/// # Safety
/// P1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_nid(rank: c_int, nid: *mut c_int) -> c_int {
    code(state::with(|job| {
        let found = usize::try_from(rank).ok().and_then(|rank| job.facts.nodes.get(rank));
        // SAFETY: P1.
        unsafe { put(nid, *found.ok_or(PMI_ERR_INVALID_ARG)?) }
    }))
}

/// `PMI_Get_app_size`
///
/// # Safety
/// P1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_app_size(appnum: c_int, size: *mut c_int) -> c_int {
    match appnum {
        0 => number(size, |job| job.facts.size as c_int),
        _ => code(state::with(|_| Err(PMI_ERR_INVALID_ARG))),
    }
}

/// `PMI_Get_version_info`
///
/// # Safety
/// P1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_version_info(
    major: *mut c_int,
    minor: *mut c_int,
    revision: *mut c_int,
) -> c_int {
    let put_all = || {
        for (to, number) in [major, minor, revision].into_iter().zip(VERSION) {
            // SAFETY: P1.
            unsafe { put(to, number) }?;
        }
        Ok(())
    };
    code(put_all())
}
