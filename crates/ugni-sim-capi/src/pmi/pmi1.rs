//! The functions of `pmi.h`.
//!
//! # Invariants
//! Those of [`args`](super::args), and nic.1 of [`nic`](super::nic) for `PMI_Init`.

use std::ffi::{c_char, c_int};

use gasworks_gni_sys::pmi::*;

use super::args::{length, put, put_text, text, write};
use super::job::Job;
use super::{Done, code, state};

/// Bytes of the name of a job, with the zero at its end.
const MAX_NAME: c_int = 256;

/// A number that the job knows.
pub(super) fn number(to: *mut c_int, of: impl FnOnce(&Job) -> c_int) -> c_int {
    // SAFETY: args.1: `to` is a pointer of a caller in C: null, which is refused, or with room for one number.
    code(state::with(|job| unsafe { put(to, of(job)) }))
}

/// The name of the job, which is that of its only space of keys too.
fn name(to: *mut c_char, room: c_int) -> c_int {
    // SAFETY: args.3: `to` is null, which is refused, or has the `room` bytes that the caller in C gives.
    code(state::with(|job| unsafe { put_text(to, room, job.link.job().as_bytes()) }))
}

/// Does something with the job if it is the one that a caller names.
fn named<T>(name: *const c_char, act: impl FnOnce(&mut Job) -> Done<T>) -> Done<T> {
    state::with(|job| {
        // SAFETY: args.2: `name` is null, which is refused, or a text of the caller in C, compared before its call returns.
        let named = unsafe { text(name) }?;
        if named == job.link.job().as_bytes() { act(job) } else { Err(PMI_ERR_INVALID_ARG) }
    })
}

/// What no launcher is asked for: texts are looked at, and it is refused.
pub(super) fn not_offered<const N: usize>(texts: [*const c_char; N]) -> c_int {
    // SAFETY: args.2: each of `texts` is null, which is refused, or ends with a zero byte; none is kept.
    let looked = |_: &mut Job| texts.into_iter().try_for_each(|given| unsafe { text(given) }.map(drop));
    code(state::with(looked).and(Err(PMI_FAIL)))
}

/// `PMI_Init`
///
/// # Safety
/// args.1; no other thread of the process touches the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Init(spawned: *mut c_int) -> c_int {
    // SAFETY: args.1: `spawned` is null, which is refused, or has room for one number.
    // Before anything else, so that a job is not joined in vain.
    code(unsafe { put(spawned, 0) }.and_then(|()| state::init()))
}

/// `PMI_Initialized`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Initialized(initialized: *mut c_int) -> c_int {
    // SAFETY: args.1: `initialized` is null, which is refused, or has room for one number.
    code(unsafe { put(initialized, state::initialized().into()) })
}

/// `PMI_Finalize`
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Finalize() -> c_int {
    code(state::finalize())
}

/// `PMI_Get_size`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_size(size: *mut c_int) -> c_int {
    number(size, |job| job.facts.size as c_int)
}

/// `PMI_Get_rank`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_rank(rank: *mut c_int) -> c_int {
    number(rank, |job| job.facts.rank as c_int)
}

/// `PMI_Get_universe_size`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_universe_size(size: *mut c_int) -> c_int {
    number(size, |job| job.facts.size as c_int)
}

/// `PMI_Get_appnum`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_appnum(appnum: *mut c_int) -> c_int {
    number(appnum, |_| 0)
}

/// `PMI_Publish_name`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Publish_name(service: *const c_char, port: *const c_char) -> c_int {
    not_offered([service, port])
}

/// `PMI_Unpublish_name`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Unpublish_name(service: *const c_char) -> c_int {
    not_offered([service])
}

/// `PMI_Lookup_name`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Lookup_name(service: *const c_char, _port: *mut c_char) -> c_int {
    not_offered([service])
}

/// `PMI_Barrier`
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Barrier() -> c_int {
    code(state::with(Job::meet))
}

/// `PMI_Abort`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Abort(exit_code: c_int, msg: *const c_char) -> c_int {
    // SAFETY: args.2: `msg` is null, which is refused, or a text that stays as it is during this call, which does not return.
    let words = unsafe { text(msg) }.unwrap_or(b"PMI_Abort");
    state::abort(exit_code, &String::from_utf8_lossy(words))
}

/// `PMI_KVS_Get_my_name`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_my_name(kvsname: *mut c_char, length: c_int) -> c_int {
    name(kvsname, length)
}

/// `PMI_KVS_Get_name_length_max`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_name_length_max(length: *mut c_int) -> c_int {
    number(length, |_| MAX_NAME)
}

/// `PMI_KVS_Get_key_length_max`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_key_length_max(length: *mut c_int) -> c_int {
    number(length, |_| PMI2_MAX_KEYLEN as c_int)
}

/// `PMI_KVS_Get_value_length_max`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_value_length_max(length: *mut c_int) -> c_int {
    number(length, |_| PMI2_MAX_VALLEN as c_int)
}

/// `PMI_KVS_Put`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Put(
    kvsname: *const c_char,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: args.2: `key` and `value` are null, which is refused, or texts, which are copied into the job's pairs.
    code(named(kvsname, |job| unsafe { job.pairs.put(text(key)?, text(value)?) }))
}

/// `PMI_KVS_Commit`
///
/// # Safety
/// args.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Commit(kvsname: *const c_char) -> c_int {
    code(named(kvsname, |job| {
        job.pairs.commit();
        Ok(())
    }))
}

/// `PMI_KVS_Get`
///
/// # Safety
/// args.2, args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get(
    kvsname: *const c_char,
    key: *const c_char,
    value: *mut c_char,
    length: c_int,
) -> c_int {
    code(named(kvsname, |job| {
        // SAFETY: args.2: `key` is null, which is refused, or a text that stays as it is while it is looked up.
        let key = unsafe { text(key) }?;
        if value.is_null() {
            return Err(PMI_ERR_INVALID_ARG);
        }
        let found = job.pairs.get(key).ok_or(PMI_FAIL)?;
        // SAFETY: args.3: `value` is not null and has `length` bytes, which nobody else uses; `found` is the job's.
        unsafe { put_text(value, length, found) }
    }))
}

/// `PMI_Spawn_multiple`
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Spawn_multiple(
    _count: c_int,
    _cmds: *mut *const c_char,
    _argvs: *mut *mut *const c_char,
    _maxprocs: *const c_int,
    _info_keyval_sizes: *const c_int,
    _info_keyval_vectors: *mut *const PMI_keyval_t,
    _preput_keyval_size: c_int,
    _preput_keyval_vector: *const PMI_keyval_t,
    _errors: *mut c_int,
) -> c_int {
    not_offered([])
}

/// `PMI_Get_id`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_id(id: *mut c_char, length: c_int) -> c_int {
    name(id, length)
}

/// `PMI_Get_id_length_max`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_id_length_max(length: *mut c_int) -> c_int {
    number(length, |_| MAX_NAME)
}

/// `PMI_Get_kvs_domain_id`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_kvs_domain_id(id: *mut c_char, length: c_int) -> c_int {
    name(id, length)
}

/// `PMI_Get_clique_size`
///
/// # Safety
/// args.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_clique_size(size: *mut c_int) -> c_int {
    number(size, |job| job.facts.near.len() as c_int)
}

/// `PMI_Get_clique_ranks`
///
/// # Safety
/// args.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_clique_ranks(ranks: *mut c_int, length: c_int) -> c_int {
    near(ranks, length)
}

/// The ranks of this host.
pub(super) fn near(to: *mut c_int, room: c_int) -> c_int {
    code(state::with(|job| {
        let near: Vec<c_int> = job.facts.near.iter().map(|rank| *rank as c_int).collect();
        if length(room)? < near.len() {
            return Err(PMI_ERR_INVALID_LENGTH);
        }
        // SAFETY: args.3: `to` is null, which is refused, or has room for `room` ranks, and `near` has no more.
        unsafe { write(to, &near) }
    }))
}
