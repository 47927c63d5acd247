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
        // SAFETY: args.3: `mine` is null, which is refused, or has the `len` bytes that the caller in C gives.
        let mine = unsafe { read(mine.cast::<u8>(), len) }?;
        if all.is_null() && len > 0 {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let gathered = gather(job, &mine)?;
        if gathered.iter().any(|theirs| theirs.len() != len) {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: args.3: `all` has room for `len` bytes of each rank, and so many were gathered; nobody else uses it.
        unsafe { write(all.cast(), &gathered.concat()) }
    }))
}

/// `PMI_Allgather`
///
/// # Safety
/// args.3: as many times `len` bytes as there are ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgather(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int {
    gather(mine, all, len, Job::all_gather)
}

/// `PMI_Allgatherv`
///
/// # Safety
/// args.3: all that is gathered, and a length for each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgatherv(
    mine: *mut c_void,
    len: c_int,
    all: *mut c_void,
    all_lens: *mut c_int,
) -> c_int {
    code(state::with(|job| {
        let len = length(len)?;
        // SAFETY: args.3: `mine` has `len` bytes and `all_lens` a length for each rank, or they are null, which is refused.
        let (mine, lens) =
            unsafe { (read(mine.cast_const().cast::<u8>(), len)?, read(all_lens, job.order.len())?) };
        if all.is_null() && lens.iter().any(|len| *len > 0) {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let gathered = job.all_gather(&mine)?;
        if !gathered.iter().map(|theirs| theirs.len()).eq(lens.iter().map(|len| *len as usize)) {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: args.3: `all` has room for as many bytes as the lengths say, and so many were gathered.
        unsafe { write(all.cast(), &gathered.concat()) }
    }))
}

/// `PMI_Allgather_on_smp`
///
/// # Safety
/// args.3: as many times `len` bytes as there are ranks on this host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Allgather_on_smp(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int {
    gather(mine, all, len, Job::all_gather_near)
}

/// `PMI_Bcast`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Bcast(buf: *mut c_void, len: c_int) -> c_int {
    code(state::with(|job| {
        let len = length(len)?;
        // SAFETY: args.3: `buf` is null, which is refused, or has `len` bytes, which nobody else changes.
        let mine = unsafe { read(buf.cast_const().cast::<u8>(), len) }?;
        let given = job.broadcast(&mine)?;
        if given.len() != len {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: args.3: `buf` has room for `len` bytes, as many as `given` has, which are this library's.
        unsafe { write(buf.cast(), &given) }
    }))
}

/// `PMI_Get_numpes_on_smp`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_numpes_on_smp(num: *mut c_int) -> c_int {
    number(num, |job| job.facts.near.len() as c_int)
}

/// `PMI_Get_pes_on_smp`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_pes_on_smp(pes: *mut c_int, num: c_int) -> c_int {
    near(pes, num)
}

/// `PMI_Get_nidlist_ptr`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_nidlist_ptr(nidlist: *mut *mut c_void) -> c_int {
    // SAFETY: args.1: `nidlist` is null, which is refused, or has room for one pointer.
    code(state::with(|job| unsafe { put(nidlist, job.facts.nodes.as_ptr().cast_mut().cast()) }))
}

/// `PMI_Get_nid`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_nid(rank: c_int, nid: *mut c_int) -> c_int {
    code(state::with(|job| {
        let found = usize::try_from(rank).ok().and_then(|rank| job.facts.nodes.get(rank));
        // SAFETY: args.1: `nid` is null, which is refused, or has room for one number.
        unsafe { put(nid, *found.ok_or(PMI_ERR_INVALID_ARG)?) }
    }))
}

/// `PMI_Get_app_size`
///
/// # Safety
/// args.1.
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
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_version_info(
    major: *mut c_int,
    minor: *mut c_int,
    revision: *mut c_int,
) -> c_int {
    let put_all = || {
        for (to, number) in [major, minor, revision].into_iter().zip(VERSION) {
            // SAFETY: args.1: `to` is `major`, `minor` or `revision`: null, which is refused, or with room for one number.
            unsafe { put(to, number) }?;
        }
        Ok(())
    };
    code(put_all())
}
