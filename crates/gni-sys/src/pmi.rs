//! PMI-1, PMI-2 and Cray's extensions of them, by which software for Gemini and Aries finds its job.
//!
//! Cray's headers were never public: types and names are those that programs use. Functions return one of the codes, 0 for
//! success, unless they say otherwise.

use std::ffi::{c_char, c_int, c_void};

use crate::table::functions;

/// It worked.
pub const PMI_SUCCESS: c_int = 0;
/// It did not.
pub const PMI_FAIL: c_int = -1;
/// PMI is not initialised.
pub const PMI_ERR_INIT: c_int = 1;
/// There is no memory.
pub const PMI_ERR_NOMEM: c_int = 2;
/// An argument is wrong.
pub const PMI_ERR_INVALID_ARG: c_int = 3;
/// A key is wrong.
pub const PMI_ERR_INVALID_KEY: c_int = 4;
/// A key is too long.
pub const PMI_ERR_INVALID_KEY_LENGTH: c_int = 5;
/// A value is wrong.
pub const PMI_ERR_INVALID_VAL: c_int = 6;
/// A value is too long.
pub const PMI_ERR_INVALID_VAL_LENGTH: c_int = 7;
/// There is not room enough for a result.
pub const PMI_ERR_INVALID_LENGTH: c_int = 8;
/// There are too many arguments, or too few.
pub const PMI_ERR_INVALID_NUM_ARGS: c_int = 9;
/// Arguments are wrong.
pub const PMI_ERR_INVALID_ARGS: c_int = 10;
/// So many were not to be read.
pub const PMI_ERR_INVALID_NUM_PARSED: c_int = 11;
/// A pair of key and value is wrong.
pub const PMI_ERR_INVALID_KEYVALP: c_int = 12;
/// A size is wrong.
pub const PMI_ERR_INVALID_SIZE: c_int = 13;
/// Something else is wrong: PMI-2 alone says this.
pub const PMI2_ERR_OTHER: c_int = 14;

/// Bytes of a key, with the zero at its end.
pub const PMI2_MAX_KEYLEN: usize = 64;
/// Bytes of a value, with the zero at its end.
pub const PMI2_MAX_VALLEN: usize = 1024;
/// Bytes of an attribute's value, with the zero at its end.
pub const PMI2_MAX_ATTRVALUE: usize = 1024;
/// Stands for no rank, where one may be given as a hint.
pub const PMI2_ID_NULL: c_int = -1;

/// A key with its value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PMI_keyval_t {
    pub key: *const c_char,
    pub val: *mut c_char,
}

/// Hints to a launcher, which MPI alone makes.
#[repr(C)]
#[derive(Debug)]
pub struct MPID_Info {
    _opaque: [u8; 0],
}

/// How two jobs speak with each other, which no known library offers.
#[repr(C)]
#[derive(Debug)]
pub struct PMI2_Connect_comm_t {
    _opaque: [u8; 0],
}

/// What the library of PMI-1 is called, where nothing else is asked for.
pub const LIBRARY: &[&str] = &["libpmi.so.0", "libpmi.so"];
/// What the library of PMI-2 is called, where nothing else is asked for.
pub const LIBRARY_2: &[&str] = &["libpmi2.so.0", "libpmi2.so"];

functions! {
    /// The functions of PMI-1, and Cray's own.
    ///
    /// To call one is up to its callers: one thread at a time, with room for what is asked for.
    Pmi of "pmi", LIBRARY;
    needed {
        fn PMI_Init(spawned: *mut c_int) -> c_int;
        fn PMI_Initialized(initialized: *mut c_int) -> c_int;
        fn PMI_Finalize() -> c_int;
        fn PMI_Get_size(size: *mut c_int) -> c_int;
        fn PMI_Get_rank(rank: *mut c_int) -> c_int;
        fn PMI_Get_universe_size(size: *mut c_int) -> c_int;
        fn PMI_Get_appnum(appnum: *mut c_int) -> c_int;
        fn PMI_Barrier() -> c_int;
        fn PMI_Abort(exit_code: c_int, msg: *const c_char) -> c_int;
        fn PMI_KVS_Get_my_name(kvsname: *mut c_char, length: c_int) -> c_int;
        fn PMI_KVS_Get_name_length_max(length: *mut c_int) -> c_int;
        fn PMI_KVS_Get_key_length_max(length: *mut c_int) -> c_int;
        fn PMI_KVS_Get_value_length_max(length: *mut c_int) -> c_int;
        fn PMI_KVS_Put(kvsname: *const c_char, key: *const c_char, value: *const c_char) -> c_int;
        fn PMI_KVS_Commit(kvsname: *const c_char) -> c_int;
        fn PMI_KVS_Get(kvsname: *const c_char, key: *const c_char, value: *mut c_char, length: c_int) -> c_int;
    }
    optional {
        fn PMI_Publish_name(service: *const c_char, port: *const c_char) -> c_int;
        fn PMI_Unpublish_name(service: *const c_char) -> c_int;
        fn PMI_Lookup_name(service: *const c_char, port: *mut c_char) -> c_int;
        fn PMI_Spawn_multiple(
            count: c_int,
            cmds: *mut *const c_char,
            argvs: *mut *mut *const c_char,
            maxprocs: *const c_int,
            info_keyval_sizes: *const c_int,
            info_keyval_vectors: *mut *const PMI_keyval_t,
            preput_keyval_size: c_int,
            preput_keyval_vector: *const PMI_keyval_t,
            errors: *mut c_int,
        ) -> c_int;
        fn PMI_Get_id(id: *mut c_char, length: c_int) -> c_int;
        fn PMI_Get_id_length_max(length: *mut c_int) -> c_int;
        fn PMI_Get_kvs_domain_id(id: *mut c_char, length: c_int) -> c_int;
        fn PMI_Get_clique_size(size: *mut c_int) -> c_int;
        fn PMI_Get_clique_ranks(ranks: *mut c_int, length: c_int) -> c_int;
        fn PMI_Allgather(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int;
        fn PMI_Allgatherv(mine: *mut c_void, len: c_int, all: *mut c_void, all_lens: *mut c_int) -> c_int;
        fn PMI_Allgather_on_smp(mine: *mut c_void, all: *mut c_void, len: c_int) -> c_int;
        fn PMI_Bcast(buf: *mut c_void, len: c_int) -> c_int;
        fn PMI_Get_numpes_on_smp(num: *mut c_int) -> c_int;
        fn PMI_Get_pes_on_smp(pes: *mut c_int, num: c_int) -> c_int;
        fn PMI_Get_nidlist_ptr(nidlist: *mut *mut c_void) -> c_int;
        fn PMI_Get_nid(rank: c_int, nid: *mut c_int) -> c_int;
        fn PMI_Get_app_size(appnum: c_int, size: *mut c_int) -> c_int;
        fn PMI_Get_version_info(major: *mut c_int, minor: *mut c_int, revision: *mut c_int) -> c_int;
    }
}

functions! {
    /// The functions of PMI-2, and Slurm's own.
    ///
    /// To call one is up to its callers, as with [`Pmi`].
    Pmi2 of "pmi2", LIBRARY_2;
    needed {
        fn PMI2_Init(spawned: *mut c_int, size: *mut c_int, rank: *mut c_int, appnum: *mut c_int) -> c_int;
        fn PMI2_Finalize() -> c_int;
        // Not 0 where PMI is initialised.
        fn PMI2_Initialized() -> c_int;
        fn PMI2_Abort(flag: c_int, msg: *const c_char) -> c_int;
        fn PMI2_Job_GetId(jobid: *mut c_char, size: c_int) -> c_int;
        fn PMI2_KVS_Put(key: *const c_char, value: *const c_char) -> c_int;
        fn PMI2_KVS_Fence() -> c_int;
        fn PMI2_KVS_Get(
            jobid: *const c_char,
            source: c_int,
            key: *const c_char,
            value: *mut c_char,
            maxvalue: c_int,
            vallen: *mut c_int,
        ) -> c_int;
        fn PMI2_Info_GetNodeAttr(
            name: *const c_char,
            value: *mut c_char,
            valuelen: c_int,
            found: *mut c_int,
            waitfor: c_int,
        ) -> c_int;
        fn PMI2_Info_PutNodeAttr(name: *const c_char, value: *const c_char) -> c_int;
        fn PMI2_Info_GetJobAttr(
            name: *const c_char,
            value: *mut c_char,
            valuelen: c_int,
            found: *mut c_int,
        ) -> c_int;
    }
    optional {
        fn PMI2_Job_Spawn(
            count: c_int,
            cmds: *mut *const c_char,
            argcs: *mut c_int,
            argvs: *mut *mut *const c_char,
            maxprocs: *const c_int,
            info_keyval_sizes: *const c_int,
            info_keyval_vectors: *mut *const MPID_Info,
            preput_keyval_size: c_int,
            preput_keyval_vector: *mut *const MPID_Info,
            job: *mut c_char,
            job_size: c_int,
            errors: *mut c_int,
        ) -> c_int;
        fn PMI2_Job_Connect(jobid: *const c_char, connection: *mut PMI2_Connect_comm_t) -> c_int;
        fn PMI2_Job_Disconnect(jobid: *const c_char) -> c_int;
        fn PMI2_Job_GetRank(rank: *mut c_int) -> c_int;
        fn PMI2_Info_GetSize(size: *mut c_int) -> c_int;
        fn PMI2_Info_GetNodeAttrIntArray(
            name: *const c_char,
            array: *mut c_int,
            arraylen: c_int,
            outlen: *mut c_int,
            found: *mut c_int,
        ) -> c_int;
        fn PMI2_Info_GetJobAttrIntArray(
            name: *const c_char,
            array: *mut c_int,
            arraylen: c_int,
            outlen: *mut c_int,
            found: *mut c_int,
        ) -> c_int;
        fn PMI2_Nameserv_publish(service: *const c_char, info: *const MPID_Info, port: *const c_char) -> c_int;
        fn PMI2_Nameserv_lookup(
            service: *const c_char,
            info: *const MPID_Info,
            port: *mut c_char,
            room: c_int,
        ) -> c_int;
        fn PMI2_Nameserv_unpublish(service: *const c_char, info: *const MPID_Info) -> c_int;
        fn PMIX_Ring(
            value: *const c_char,
            rank: *mut c_int,
            ranks: *mut c_int,
            left: *mut c_char,
            right: *mut c_char,
            maxvalue: c_int,
        ) -> c_int;
    }
}
