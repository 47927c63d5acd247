//! The functions of `pmi2.h`.
//!
//! # Invariants
//! Those of [`args`](super::args), and nic.1 of [`nic`](super::nic) for `PMI2_Init`.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use gasworks_gni_sys::pmi::*;

use super::args::{length, put, put_cut, put_text, text, write};
use super::job::failed;
use super::pmi1::{not_offered, number};
use super::{Done, code, state};

/// The code of a process that ends by `PMI2_Abort`, which does not give one.
const ABORTED: c_int = 1;

/// An attribute that may have been found.
fn found(value: Option<&[u8]>, to: *mut c_char, room: c_int, found: *mut c_int) -> Done {
    // SAFETY: args.1: `found` is null, which is refused, or has room for one number. args.3: `to` is null, which is refused, or has `room`
    // bytes.
    unsafe {
        put(found, 0)?;
        match value {
            Some(value) => put_text(to, room, value).and_then(|()| put(found, 1)),
            None if to.is_null() => Err(PMI_ERR_INVALID_ARG),
            None => Ok(()),
        }
    }
}

/// An attribute that is a list of numbers with commas, which may have been found.
fn numbers(value: Option<&[u8]>, to: *mut c_int, room: c_int, count: *mut c_int, found: *mut c_int) -> Done {
    // SAFETY: args.1: `found` and `count` are each null, which is refused, or have room for one number.
    unsafe {
        put(found, 0)?;
        put(count, 0)?;
    }
    let (Some(value), room) = (value, length(room)?) else { return Ok(()) };
    let numbers =
        std::str::from_utf8(value).ok().map(|text| text.split(',').map(|n| n.trim().parse()).collect());
    let numbers: Vec<c_int> = numbers.and_then(Result::ok).ok_or(PMI_ERR_INVALID_VAL)?;
    if numbers.len() > room {
        return Err(PMI_ERR_INVALID_LENGTH);
    }
    // SAFETY: args.3: `to` is null, which is refused, or has room for `room` numbers. args.1: `count` and `found` took one before.
    unsafe {
        write(to, &numbers)?;
        put(count, numbers.len() as c_int)?;
        put(found, 1)
    }
}

/// An attribute of this host. Nobody is kept from anything while this waits for it.
fn node_attribute(name: *const c_char, wait: bool) -> Done<Option<Vec<u8>>> {
    let board = state::with(|job| Ok(Arc::clone(&job.board)))?;
    // SAFETY: args.2: `name` is null, which is refused, or a text that stays as it is during this call, also while it waits.
    let name = unsafe { text(name) }?;
    match wait {
        true => board.wait(name).map(Some).map_err(failed),
        false => board.get(name).map_err(failed),
    }
}

/// An attribute of the job.
fn job_attribute(name: *const c_char) -> Done<Option<Vec<u8>>> {
    state::with(|job| {
        // SAFETY: args.2: `name` is null, which is refused, or a text of the caller in C, compared before its call returns.
        Ok(match unsafe { text(name) }? {
            b"PMI_process_mapping" => Some(job.facts.process_mapping().into_bytes()),
            b"universeSize" => Some(job.facts.size.to_string().into_bytes()),
            _ => None,
        })
    })
}

/// `PMI2_Init`
///
/// # Safety
/// args.1; no other thread of the process touches the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Init(
    spawned: *mut c_int,
    size: *mut c_int,
    rank: *mut c_int,
    appnum: *mut c_int,
) -> c_int {
    // Before anything else, so that a job is not joined in vain.
    for to in [spawned, size, rank, appnum] {
        // SAFETY: args.1: `to` is one of the four pointers: null, which is refused, or with room for one number.
        if let Err(refused) = unsafe { put(to, 0) } {
            return refused;
        }
    }
    let joined = state::init().and_then(|()| state::with(|job| Ok((job.facts.size, job.facts.rank))));
    code(joined.and_then(|(ranks, own)| {
        // SAFETY: args.1: `size` and `rank` have room for one number each; neither is null, since both took a 0 before.
        unsafe { put(size, ranks as c_int).and_then(|()| put(rank, own as c_int)) }
    }))
}

/// `PMI2_Finalize`
#[unsafe(no_mangle)]
pub extern "C" fn PMI2_Finalize() -> c_int {
    code(state::finalize())
}

/// `PMI2_Initialized`
#[unsafe(no_mangle)]
pub extern "C" fn PMI2_Initialized() -> c_int {
    state::initialized().into()
}

/// `PMI2_Abort`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Abort(flag: c_int, msg: *const c_char) -> c_int {
    // SAFETY: args.2: `msg` is null, which is refused, or a text that stays as it is during this call, which does not return.
    let words = String::from_utf8_lossy(unsafe { text(msg) }.unwrap_or(b"PMI2_Abort"));
    match flag {
        0 => state::end(ABORTED, &words),
        _ => state::abort(ABORTED, &words),
    }
}

/// `PMI2_Job_GetId`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Job_GetId(jobid: *mut c_char, size: c_int) -> c_int {
    // SAFETY: args.3: `jobid` is null, which is refused, or has the `size` bytes that the caller gives.
    code(state::with(|job| unsafe { put_text(jobid, size, job.link.job().as_bytes()) }))
}

/// `PMI2_Job_Spawn`
#[unsafe(no_mangle)]
pub extern "C" fn PMI2_Job_Spawn(
    _count: c_int,
    _cmds: *mut *const c_char,
    _argcs: *mut c_int,
    _argvs: *mut *mut *const c_char,
    _maxprocs: *const c_int,
    _info_keyval_sizes: *const c_int,
    _info_keyval_vectors: *mut *const MPID_Info,
    _preput_keyval_size: c_int,
    _preput_keyval_vector: *mut *const MPID_Info,
    _job: *mut c_char,
    _job_size: c_int,
    _errors: *mut c_int,
) -> c_int {
    not_offered([])
}

/// `PMI2_Job_Connect`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Job_Connect(
    jobid: *const c_char,
    _connection: *mut PMI2_Connect_comm_t,
) -> c_int {
    not_offered([jobid])
}

/// `PMI2_Job_Disconnect`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Job_Disconnect(jobid: *const c_char) -> c_int {
    not_offered([jobid])
}

/// `PMI2_Job_GetRank`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Job_GetRank(rank: *mut c_int) -> c_int {
    number(rank, |job| job.facts.rank as c_int)
}

/// `PMI2_KVS_Put`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_KVS_Put(key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: args.2: `key` and `value` are null, which is refused, or texts; the job's pairs keep copies.
    code(state::with(|job| unsafe { job.pairs.put(text(key)?, text(value)?) }))
}

/// `PMI2_KVS_Fence`
#[unsafe(no_mangle)]
pub extern "C" fn PMI2_KVS_Fence() -> c_int {
    code(state::with(|job| {
        job.pairs.commit();
        job.meet()
    }))
}

/// `PMI2_KVS_Get`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_KVS_Get(
    jobid: *const c_char,
    source: c_int,
    key: *const c_char,
    value: *mut c_char,
    maxvalue: c_int,
    vallen: *mut c_int,
) -> c_int {
    code(state::with(|job| {
        // SAFETY: args.1: `vallen` is null, which is refused, or has room for one number. args.2: `jobid` and `key` are texts where they
        // are not null, and stay as they are while they are used here.
        let key = unsafe {
            put(vallen, 0)?;
            if !jobid.is_null() && text(jobid)? != job.link.job().as_bytes() {
                return Err(PMI_ERR_INVALID_ARG);
            }
            text(key)?
        };
        // Who has put it is a hint, which is not needed.
        let somebody = u32::try_from(source).is_ok_and(|source| source < job.facts.size);
        if value.is_null() || !(somebody || source == PMI2_ID_NULL) {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let found = job.pairs.get(key).ok_or(PMI_FAIL)?;
        let len = found.len() as c_int;
        // SAFETY: args.3: `value` is not null and has `maxvalue` bytes. args.1: `vallen` has room for one number, as it had before.
        unsafe {
            let whole = put_cut(value, maxvalue, found)?;
            put(vallen, if whole { len } else { -len })
        }
    }))
}

/// `PMI2_Info_GetNodeAttr`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_GetNodeAttr(
    name: *const c_char,
    value: *mut c_char,
    valuelen: c_int,
    was_found: *mut c_int,
    waitfor: c_int,
) -> c_int {
    let attribute = node_attribute(name, waitfor != 0);
    code(attribute.and_then(|attribute| found(attribute.as_deref(), value, valuelen, was_found)))
}

/// `PMI2_Info_GetNodeAttrIntArray`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_GetNodeAttrIntArray(
    name: *const c_char,
    array: *mut c_int,
    arraylen: c_int,
    outlen: *mut c_int,
    was_found: *mut c_int,
) -> c_int {
    let attribute = node_attribute(name, false);
    code(attribute.and_then(|attribute| numbers(attribute.as_deref(), array, arraylen, outlen, was_found)))
}

/// `PMI2_Info_PutNodeAttr`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_PutNodeAttr(name: *const c_char, value: *const c_char) -> c_int {
    code(state::with(|job| {
        // SAFETY: args.2: `name` and `value` are null, which is refused, or texts; the board keeps copies.
        let (name, value) = unsafe { (text(name)?, text(value)?) };
        match (name.len(), value.len()) {
            (0, _) => Err(PMI_ERR_INVALID_KEY),
            (PMI2_MAX_KEYLEN.., _) => Err(PMI_ERR_INVALID_KEY_LENGTH),
            (_, PMI2_MAX_ATTRVALUE..) => Err(PMI_ERR_INVALID_VAL_LENGTH),
            _ => job.board.put(name, value).map_err(failed),
        }
    }))
}

/// `PMI2_Info_GetJobAttr`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_GetJobAttr(
    name: *const c_char,
    value: *mut c_char,
    valuelen: c_int,
    was_found: *mut c_int,
) -> c_int {
    let attribute = job_attribute(name);
    code(attribute.and_then(|attribute| found(attribute.as_deref(), value, valuelen, was_found)))
}

/// `PMI2_Info_GetJobAttrIntArray`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_GetJobAttrIntArray(
    name: *const c_char,
    array: *mut c_int,
    arraylen: c_int,
    outlen: *mut c_int,
    was_found: *mut c_int,
) -> c_int {
    let attribute = job_attribute(name);
    code(attribute.and_then(|attribute| numbers(attribute.as_deref(), array, arraylen, outlen, was_found)))
}

/// `PMI2_Info_GetSize`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Info_GetSize(size: *mut c_int) -> c_int {
    number(size, |job| job.facts.near.len() as c_int)
}

/// `PMI2_Nameserv_publish`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Nameserv_publish(
    service: *const c_char,
    _info: *const MPID_Info,
    port: *const c_char,
) -> c_int {
    not_offered([service, port])
}

/// `PMI2_Nameserv_lookup`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Nameserv_lookup(
    service: *const c_char,
    _info: *const MPID_Info,
    _port: *mut c_char,
    _room: c_int,
) -> c_int {
    not_offered([service])
}

/// `PMI2_Nameserv_unpublish`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI2_Nameserv_unpublish(service: *const c_char, _info: *const MPID_Info) -> c_int {
    not_offered([service])
}

/// `PMIX_Ring`
///
/// # Safety
/// args.1, args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIX_Ring(
    value: *const c_char,
    rank: *mut c_int,
    ranks: *mut c_int,
    left: *mut c_char,
    right: *mut c_char,
    maxvalue: c_int,
) -> c_int {
    code(state::with(|job| {
        // SAFETY: null is refused. args.2: `value` is a text that stays as it is. args.1: `rank` and `ranks` have room for one number each.
        // args.3: `left` and `right` have `maxvalue` bytes each. All are tried before the others are waited for.
        unsafe {
            let mine = text(value)?;
            put(rank, job.facts.rank as c_int)?;
            put(ranks, job.facts.size as c_int)?;
            put_text(left, maxvalue, b"")?;
            put_text(right, maxvalue, b"")?;
            let (from_left, from_right) = job.ring(mine)?;
            put_text(left, maxvalue, &from_left)?;
            put_text(right, maxvalue, &from_right)
        }
    }))
}
