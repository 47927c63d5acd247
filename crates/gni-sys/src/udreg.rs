//! UDREG, the cache of registrations that clients of uGNI use.
//!
//! Its header was never public: the names are those that programs use, their order, sizes and values are ours, and are what
//! `udreg_pub.h` of the software NIC says. Those of a site's own library are known where this is built against its header
//! (`GASWORKS_UDREG_INCLUDE`); whoever calls the library takes them from [`layout`].
//!
//! # Invariants
//! - udreg.1: what the site's header says is a constant of this program's, made of the fields of [`Layout`] in their order.
//! - udreg.2: a function of the name [`MARK`] is ours: it takes nothing and gives a number.

use gasworks_os::OsError;
use gasworks_os::library::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

use crate::table::functions;

/// What a function returns (`UDREG_RC_*`).
pub type udreg_return_t = u32;
/// It worked.
pub const UDREG_RC_SUCCESS: udreg_return_t = 0;
/// A parameter is wrong, or the registration failed for another reason than lack of room.
pub const UDREG_RC_INVALID_PARAM: udreg_return_t = 1;
/// There is no room.
pub const UDREG_RC_NO_SPACE: udreg_return_t = 2;
/// There is no such cache, or nothing that could be thrown out.
pub const UDREG_RC_NO_MATCH: udreg_return_t = 3;
/// There is no device.
pub const UDREG_RC_ERROR_NO_DEVICE: udreg_return_t = 4;

/// Bytes of the name of a cache, without the zero at its end.
pub const UDREG_MAX_CACHENAME_LEN: usize = 63;

/// Registrations are ended when room is needed, not when nobody uses them.
pub const UDREG_CC_MODE_USE_LAZY_DEREG: u32 = 1;
/// One that nobody uses is thrown out when one is unregistered and the cache is full.
pub const UDREG_CC_MODE_USE_EVICT_W_UNREG: u32 = 2;
/// Registrations are of large pages.
pub const UDREG_CC_MODE_USE_LARGE_PAGES: u32 = 4;
/// The kernel tells of memory that is unmapped.
pub const UDREG_CC_MODE_USE_KERNEL_CACHE: u32 = 8;

/// A statistic of a cache (`UDREG_STAT_*`).
pub type udreg_stat_t = u32;
/// Registrations that were there.
pub const UDREG_STAT_CACHE_HIT: udreg_stat_t = 0;
/// Registrations that were not.
pub const UDREG_STAT_CACHE_MISS: udreg_stat_t = 1;
/// Registrations that were thrown out.
pub const UDREG_STAT_CACHE_EVICTED: udreg_stat_t = 2;

/// What a function that registers returns if it could not, for another reason than lack of room.
pub const UDREG_DEVICE_REG_FAILED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

/// Registers memory: the device's data for it, null for lack of room, or [`UDREG_DEVICE_REG_FAILED`].
pub type udreg_device_reg_func = unsafe extern "C" fn(*mut c_void, u64, *mut c_void) -> *mut c_void;
/// Ends a registration.
pub type udreg_device_dereg_func = unsafe extern "C" fn(*mut c_void, *mut c_void) -> u32;
/// The cache is destroyed.
pub type udreg_destructor = unsafe extern "C" fn(*mut c_void);

/// What a [`udreg_cache_handle_t`] leads to: the library alone looks into it.
#[repr(C)]
#[derive(Debug)]
pub struct udreg_cache {
    _opaque: [u8; 0],
}

/// An open cache.
pub type udreg_cache_handle_t = *mut udreg_cache;

/// How a cache is to be.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct udreg_cache_attr_t {
    pub cache_name: [c_char; UDREG_MAX_CACHENAME_LEN + 1],
    pub max_entries: c_uint,
    pub modes: c_uint,
    pub debug_mode: c_int,
    pub debug_rank: c_int,
    pub reg_context: *mut c_void,
    pub dreg_context: *mut c_void,
    pub destructor_context: *mut c_void,
    pub device_reg_func: Option<udreg_device_reg_func>,
    pub device_dereg_func: Option<udreg_device_dereg_func>,
    pub destructor_callback: Option<udreg_destructor>,
}

/// A registration that is used.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct udreg_entry_t {
    /// What the function that registers has returned.
    pub device_data: *mut c_void,
}

/// Where a field is in its structure, and how many bytes it has.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Field {
    pub offset: u64,
    pub size: u64,
}

/// What a header of UDREG says, as far as a client needs it: fields of [`udreg_cache_attr_t`] and [`udreg_entry_t`], modes, codes, and what a function
/// that registers returns if it could not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Layout {
    /// Of the attributes.
    pub size: u64,
    pub cache_name: Field,
    pub max_entries: Field,
    pub modes: Field,
    pub debug_mode: Field,
    pub debug_rank: Field,
    pub reg_context: Field,
    pub dreg_context: Field,
    pub destructor_context: Field,
    pub device_reg_func: Field,
    pub device_dereg_func: Field,
    pub destructor_callback: Field,
    /// Of an entry.
    pub device_data: Field,
    pub kernel_cache: u64,
    pub lazy_deregistration: u64,
    pub success: u64,
    pub invalid_param: u64,
    pub no_space: u64,
    pub no_match: u64,
    pub no_device: u64,
    pub failed: u64,
}

macro_rules! field {
    ($of:ident, $name:ident, $kind:ty) => {
        Field { offset: offset_of!($of, $name) as u64, size: size_of::<$kind>() as u64 }
    };
}

/// What the header of the software NIC says, and the declarations here.
pub const SOFTWARE: Layout = Layout {
    size: size_of::<udreg_cache_attr_t>() as u64,
    cache_name: field!(udreg_cache_attr_t, cache_name, [c_char; UDREG_MAX_CACHENAME_LEN + 1]),
    max_entries: field!(udreg_cache_attr_t, max_entries, c_uint),
    modes: field!(udreg_cache_attr_t, modes, c_uint),
    debug_mode: field!(udreg_cache_attr_t, debug_mode, c_int),
    debug_rank: field!(udreg_cache_attr_t, debug_rank, c_int),
    reg_context: field!(udreg_cache_attr_t, reg_context, *mut c_void),
    dreg_context: field!(udreg_cache_attr_t, dreg_context, *mut c_void),
    destructor_context: field!(udreg_cache_attr_t, destructor_context, *mut c_void),
    device_reg_func: field!(udreg_cache_attr_t, device_reg_func, Option<udreg_device_reg_func>),
    device_dereg_func: field!(udreg_cache_attr_t, device_dereg_func, Option<udreg_device_dereg_func>),
    destructor_callback: field!(udreg_cache_attr_t, destructor_callback, Option<udreg_destructor>),
    device_data: field!(udreg_entry_t, device_data, *mut c_void),
    kernel_cache: UDREG_CC_MODE_USE_KERNEL_CACHE as u64,
    lazy_deregistration: UDREG_CC_MODE_USE_LAZY_DEREG as u64,
    success: UDREG_RC_SUCCESS as u64,
    invalid_param: UDREG_RC_INVALID_PARAM as u64,
    no_space: UDREG_RC_NO_SPACE as u64,
    no_match: UDREG_RC_NO_MATCH as u64,
    no_device: UDREG_RC_ERROR_NO_DEVICE as u64,
    failed: u64::MAX,
};

/// By this name the software NIC's library has a function, and no other: it gives the number of its layout.
pub const MARK: &str = "gasworks_udreg_layout";
/// The number of [`SOFTWARE`].
pub const SOFTWARE_NUMBER: u32 = 1;

/// What the header says that this was built against.
#[cfg(udreg_header)]
fn of_the_site() -> Option<Layout> {
    unsafe extern "C" {
        #[link_name = "gasworks_udreg_site_layout"]
        static SITE: Layout;
    }
    // SAFETY: udreg.1: `SITE` is a constant that is linked into this program, and is laid out as `Layout`.
    Some(unsafe { SITE })
}

/// There was none.
#[cfg(not(udreg_header))]
fn of_the_site() -> Option<Layout> {
    None
}

/// The layout of the library at `path`, or of the system's, if it is known: the software NIC's library says that it is that, also to what was
/// built for a site's.
///
/// # Errors
/// There is no such library.
pub fn layout(path: Option<&str>) -> Result<Option<Layout>, OsError> {
    let path = path.map(|path| [path]);
    let library = Library::open(path.as_ref().map_or(LIBRARY, |path| path.as_slice()))?;
    // SAFETY: udreg.2: what a library has by the name `MARK` is a function of this type.
    let mark: Option<unsafe extern "C" fn() -> u32> = unsafe { crate::table::function(&library, MARK) };
    // SAFETY: udreg.2: `mark` takes nothing, and its library is never closed.
    let number = mark.map(|mark| unsafe { mark() });
    Ok(if number == Some(SOFTWARE_NUMBER) { Some(SOFTWARE) } else { of_the_site() })
}

/// What the library is called, where nothing else is asked for.
pub const LIBRARY: &[&str] = &["libudreg.so.0", "libudreg.so"];

functions! {
    /// The functions of UDREG.
    ///
    /// To call one is up to its callers: handles and entries are the library's, and used by one thread at a time.
    Udreg of "udreg", LIBRARY;
    needed {
        fn UDREG_CacheCreate(attr: *mut udreg_cache_attr_t) -> udreg_return_t;
        fn UDREG_CacheAccess(name: *mut c_char, handle: *mut udreg_cache_handle_t) -> udreg_return_t;
        fn UDREG_CacheRelease(handle: udreg_cache_handle_t) -> udreg_return_t;
        fn UDREG_CacheDestroy(handle: udreg_cache_handle_t) -> udreg_return_t;
        fn UDREG_Register(
            handle: udreg_cache_handle_t,
            address: *mut c_void,
            length: u64,
            entry: *mut *mut udreg_entry_t,
        ) -> udreg_return_t;
        fn UDREG_Unregister(handle: udreg_cache_handle_t, entry: *mut udreg_entry_t) -> udreg_return_t;
        fn UDREG_DecrRefcount(handle: udreg_cache_handle_t, entry: *mut udreg_entry_t) -> udreg_return_t;
        fn UDREG_Evict(handle: udreg_cache_handle_t) -> udreg_return_t;
    }
    optional {
        fn UDREG_GetStat(handle: udreg_cache_handle_t, stat: udreg_stat_t, value: *mut u64) -> udreg_return_t;
        fn UDREG_ResetStat(handle: udreg_cache_handle_t, stat: udreg_stat_t) -> udreg_return_t;
    }
}
