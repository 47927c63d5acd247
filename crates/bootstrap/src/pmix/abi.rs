//! The declarations of `libpmix.so` that are used here, by us, after the PMIx standard 4.2. A test compares them with
//! the headers of an installed library.

use std::ffi::{CStr, c_char, c_int, c_void};

/// The longest name of a name space.
pub(crate) const MAX_NSLEN: usize = 255;
/// The longest key.
pub(crate) const MAX_KEYLEN: usize = 511;
/// Stands for the whole job where a rank is asked for.
pub(crate) const RANK_WILDCARD: u32 = u32::MAX - 1;
/// What is put is for all ranks.
pub(crate) const GLOBAL: u8 = 3;
/// The server is gone, as versions from 4 on say it.
pub(crate) const LOST_CONNECTION: c_int = -61;
/// The same in older versions.
pub(crate) const LOST_CONNECTION_TO_SERVER: c_int = -101;
/// A handler's answer: nobody else need look at it.
pub(crate) const ACTION_COMPLETE: c_int = -334;
/// All is well.
pub(crate) const SUCCESS: c_int = 0;

// Kinds of values.
pub(crate) const BOOL: u16 = 1;
pub(crate) const STRING: u16 = 3;
pub(crate) const INT: u16 = 6;
pub(crate) const UINT32: u16 = 14;
pub(crate) const POINTER: u16 = 31;

/// The number of ranks in the job, a `u32`.
pub(crate) const JOB_SIZE: &CStr = c"pmix.job.size";
/// The number of a rank's host, a `u32`.
pub(crate) const NODEID: &CStr = c"pmix.nodeid";
/// A fence brings what was put; a flag.
pub(crate) const COLLECT_DATA: &CStr = c"pmix.collect";
/// How many seconds an operation may take, an `int`; 0: for ever.
pub(crate) const TIMEOUT: &CStr = c"pmix.timeout";
/// What is not at hand is not asked for; a flag.
pub(crate) const OPTIONAL: &CStr = c"pmix.optional";

/// What a handler is given again with each event, a pointer.
pub(crate) const RETURN_OBJECT: &CStr = c"pmix.evobject";

/// `pmix_proc_t`: a rank of a job.
#[repr(C)]
pub(crate) struct Proc {
    pub(crate) nspace: [c_char; MAX_NSLEN + 1],
    pub(crate) rank: u32,
}

/// `pmix_value_t`.
#[repr(C)]
pub(crate) struct Value {
    /// Which field of `data` counts.
    pub(crate) kind: u16,
    pub(crate) data: Data,
}

/// The union in it, as far as it is used here, and as long as its longest field.
#[repr(C)]
pub(crate) union Data {
    pub(crate) flag: bool,
    pub(crate) string: *mut c_char,
    pub(crate) integer: c_int,
    pub(crate) uint32: u32,
    pub(crate) pointer: *mut c_void,
    pub(crate) all: [u64; 3],
}

/// `pmix_info_t`: a directive for a call.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) key: [c_char; MAX_KEYLEN + 1],
    pub(crate) flags: u32,
    pub(crate) value: Value,
}
