//! Kinds of memory: the host's, which is there without being made, and no other.
//!
//! # Invariants
//! As in the crate.

use crate::codes::refused;
use crate::face::{FaceMode, fail};
use crate::layout::{Client, ERR_BAD_ARG, ERR_RESOURCE, Flags};
use gasworks_sync::Lock;
use std::ffi::{c_int, c_uint, c_void};

/// `GEX_MK_HOST`.
const HOST: usize = 1;
/// `GEX_MK_CLASS_HOST`.
const CLASS_HOST: c_uint = 0;

/// Whether a handle is `GEX_MK_HOST`.
pub(crate) fn is_host(kind: *const c_void) -> bool {
    kind.addr() == HOST
}

/// Ends the job where a handle is not.
fn host(call: &str, kind: *const c_void) {
    if !is_host(kind) {
        fail(call, format!("{kind:p} is no kind of memory: GEX_MK_HOST is"));
    }
}

/// `gex_MK_Create`: always a code.
///
/// # Safety
/// capi.1.
pub unsafe fn create<M: FaceMode>(client: *mut Client, args: *const c_void) -> c_int {
    const CALL: &str = "gex_MK_Create";
    /// `gex_MK_Create_args_t`, as far as it is read.
    #[repr(C)]
    struct Args {
        flags: u64,
        class: c_uint,
    }
    if client != M::slot().of(CALL).client || args.is_null() {
        return refused(CALL, "there is no such client, or nothing says what kind", ERR_BAD_ARG);
    }
    // SAFETY: capi.1: `args` is not null, so it is C's structure, which nobody writes meanwhile.
    match unsafe { (*args.cast::<Args>()).class } {
        CLASS_HOST => refused(CALL, "the host's kind is GEX_MK_HOST", ERR_BAD_ARG),
        class @ 1..=3 => {
            let name = ["CUDA_UVA", "HIP", "ZE"][class as usize - 1];
            refused(
                CALL,
                format!("this library has no memory of devices (GEX_MK_CLASS_{name})"),
                ERR_RESOURCE,
            )
        }
        class => refused(CALL, format!("there is no class {class} of memory"), ERR_BAD_ARG),
    }
}

/// `gex_MK_Destroy`.
pub fn destroy(kind: *const c_void) {
    const CALL: &str = "gex_MK_Destroy";
    host(CALL, kind);
    fail(CALL, "GEX_MK_HOST stays as long as the job");
}

/// `gex_MK_SetCData`.
pub fn set_data<M: FaceMode>(kind: *const c_void, data: *const c_void) {
    const CALL: &str = "gex_MK_SetCData";
    host(CALL, kind);
    M::slot().of(CALL).kind_data.with(|place| *place = data);
}

/// `gex_MK_QueryCData`.
pub fn data<M: FaceMode>(kind: *const c_void) -> *mut c_void {
    const CALL: &str = "gex_MK_QueryCData";
    host(CALL, kind);
    M::slot().of(CALL).kind_data.with(|place| place.cast_mut())
}

/// `gex_MK_QueryFlags`.
pub fn flags(kind: *const c_void) -> Flags {
    host("gex_MK_QueryFlags", kind);
    0
}

/// `gex_MK_QueryClient`.
pub fn client<M: FaceMode>(kind: *const c_void) -> *mut Client {
    const CALL: &str = "gex_MK_QueryClient";
    host(CALL, kind);
    M::slot().of(CALL).client
}

/// `gex_MK_QueryClass`.
pub fn class(kind: *const c_void) -> c_uint {
    host("gex_MK_QueryClass", kind);
    CLASS_HOST
}
