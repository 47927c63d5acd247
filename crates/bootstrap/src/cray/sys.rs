//! The calls into Cray's `libpmi2.so` and `libpmi.so`, declared by us after how programs use them.
//!
//! # Invariants
//! - cray_sys.1: the functions have the types that are declared here, and are called by one thread at a time.
//! - cray_sys.2: pointers that are passed point to values of ours that live through the call; the library keeps none of them, and
//!   writes no more than the length that is passed with them.
//! - cray_sys.3: the list of nodes has one `int` for each rank, lives in the library, and does not change.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use gasworks_os::library::Library;

use crate::BootstrapError;

/// The longest name of a job.
const MAX_JOB: usize = 1024;
/// Stands for no rank where one may be given as a hint.
const ID_NULL: c_int = -1;

/// The functions; those that not every library has are optional.
#[derive(Clone, Copy, Debug)]
pub(super) struct Api {
    init: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    abort: unsafe extern "C" fn(c_int, *const c_char) -> c_int,
    job: unsafe extern "C" fn(*mut c_char, c_int) -> c_int,
    put: unsafe extern "C" fn(*const c_char, *const c_char) -> c_int,
    fence: unsafe extern "C" fn() -> c_int,
    get: unsafe extern "C" fn(*const c_char, c_int, *const c_char, *mut c_char, c_int, *mut c_int) -> c_int,
    gather: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int>,
    nodes: Option<unsafe extern "C" fn(*mut *mut c_void) -> c_int>,
    near_count: Option<unsafe extern "C" fn(*mut c_int) -> c_int>,
    near: Option<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>,
}

/// The library says no, with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) c_int);

fn checked(status: c_int) -> Result<(), Status> {
    if status == 0 { Ok(()) } else { Err(Status(status)) }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Api {
    /// Opens the libraries: of the two, one that has it all is enough.
    pub(super) fn open() -> Result<Self, BootstrapError> {
        let first = Library::open(&["libpmi2.so.0", "libpmi2.so"]);
        let second = Library::open(&["libpmi.so.0", "libpmi.so"]);
        let libraries: Vec<Library> = match (first, second) {
            (Err(e), Err(_)) => return Err(e.into()),
            (first, second) => first.into_iter().chain(second).collect(),
        };
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: cray_sys.1: the field that the function `$name` goes into has its type.
                libraries.iter().find_map(|library| unsafe { library.function($name) })
            };
        }
        macro_rules! needed {
            ($name:literal) => {
                function!($name).ok_or_else(|| {
                    let what = format!("the libraries have no {}", $name.to_string_lossy());
                    BootstrapError::protocol("open libpmi2.so.0 and libpmi.so.0", what)
                })?
            };
        }
        Ok(Self {
            init: needed!(c"PMI2_Init"),
            finalize: needed!(c"PMI2_Finalize"),
            abort: needed!(c"PMI2_Abort"),
            job: needed!(c"PMI2_Job_GetId"),
            put: needed!(c"PMI2_KVS_Put"),
            fence: needed!(c"PMI2_KVS_Fence"),
            get: needed!(c"PMI2_KVS_Get"),
            gather: function!(c"PMI_Allgather"),
            nodes: function!(c"PMI_Get_nidlist_ptr"),
            near_count: function!(c"PMI_Get_numpes_on_smp"),
            near: function!(c"PMI_Get_pes_on_smp"),
        })
    }

    /// Joins; gives the rank and the number of ranks.
    pub(super) fn init(&self) -> Result<(c_int, c_int), Status> {
        let (mut spawned, mut size, mut rank, mut program) = (0, 0, 0, 0);
        // SAFETY: cray_sys.1, cray_sys.2: the library writes one `int` to each of four locals.
        let done = unsafe { (self.init)(&raw mut spawned, &raw mut size, &raw mut rank, &raw mut program) };
        checked(done)?;
        Ok((rank, size))
    }

    pub(super) fn finalize(&self) -> Result<(), Status> {
        // SAFETY: cray_sys.1: `PMI2_Finalize` is given nothing.
        checked(unsafe { (self.finalize)() })
    }

    /// Ends all ranks. It may not return.
    pub(super) fn abort(&self, message: &CStr) {
        // SAFETY: cray_sys.1, cray_sys.2: `message` is a borrowed C string, which is read. There is nobody to tell of a refusal.
        let _ = unsafe { (self.abort)(1, message.as_ptr()) };
    }

    /// The name of the job.
    pub(super) fn job(&self) -> Result<String, Status> {
        let mut name = [0u8; MAX_JOB];
        // SAFETY: cray_sys.1, cray_sys.2: `name` is a local of `MAX_JOB` bytes, the length that is passed.
        checked(unsafe { (self.job)(name.as_mut_ptr().cast(), MAX_JOB as c_int) })?;
        Ok(text(&name))
    }

    pub(super) fn put(&self, key: &CStr, value: &CStr) -> Result<(), Status> {
        // SAFETY: cray_sys.1, cray_sys.2: `key` and `value` are borrowed C strings, which the library copies.
        checked(unsafe { (self.put)(key.as_ptr(), value.as_ptr()) })
    }

    pub(super) fn fence(&self) -> Result<(), Status> {
        // SAFETY: cray_sys.1: `PMI2_KVS_Fence` is given nothing.
        checked(unsafe { (self.fence)() })
    }

    /// What somebody has put under `key`, of at most `most` bytes.
    pub(super) fn get(&self, job: &CStr, key: &CStr, most: usize) -> Result<String, Status> {
        let mut value = vec![0u8; most + 1];
        let room = c_int::try_from(value.len()).unwrap_or(c_int::MAX);
        let mut length = 0;
        let (into, found) = (value.as_mut_ptr().cast(), &raw mut length);
        // SAFETY: cray_sys.1, cray_sys.2: `job` and `key` are borrowed C strings; `into` points to `value`, which has `room` bytes, and
        // `found` to `length`.
        checked(unsafe { (self.get)(job.as_ptr(), ID_NULL, key.as_ptr(), into, room, found) })?;
        Ok(text(&value))
    }

    /// Everybody's copies of `mine`, `total` bytes in all, in an order of the library's own. `None`: it cannot.
    pub(super) fn gather(&self, mut mine: Vec<u8>, total: usize) -> Option<Result<Vec<u8>, Status>> {
        let gather = self.gather?;
        let Ok(each) = c_int::try_from(mine.len()) else { return Some(Err(Status(-1))) };
        let mut all = vec![0u8; total];
        // SAFETY: cray_sys.1, cray_sys.2: `mine` has `each` bytes, and `all` has `total`, which the caller makes `each` for every rank.
        let done = unsafe { gather(mine.as_mut_ptr().cast(), all.as_mut_ptr().cast(), each) };
        Some(checked(done).map(|()| all))
    }

    pub(super) fn can_gather(&self) -> bool {
        self.gather.is_some()
    }

    /// The node of each of `size` ranks.
    pub(super) fn nodes(&self, size: u32) -> Option<Vec<c_int>> {
        let mut list: *mut c_void = ptr::null_mut();
        // SAFETY: cray_sys.1, cray_sys.2: the library writes one pointer, to the local `list`.
        checked(unsafe { self.nodes?(&raw mut list) }).ok()?;
        if list.is_null() {
            return None;
        }
        // SAFETY: cray_sys.3: `list` is not null and points to an `int` for each of `size` ranks, which are copied at once.
        Some(unsafe { std::slice::from_raw_parts(list.cast::<c_int>(), size as usize) }.to_vec())
    }

    /// The ranks of this host.
    pub(super) fn near(&self, size: u32) -> Option<Vec<c_int>> {
        let mut count = 0;
        // SAFETY: cray_sys.1, cray_sys.2: the library writes one `int`, to the local `count`.
        checked(unsafe { self.near_count?(&raw mut count) }).ok()?;
        let len = usize::try_from(count).ok().filter(|&len| len <= size as usize)?;
        let mut ranks = vec![0; len];
        // SAFETY: cray_sys.1, cray_sys.2: `ranks` has `count` elements, the length that is passed, which is not negative.
        checked(unsafe { self.near?(ranks.as_mut_ptr(), count) }).ok()?;
        Some(ranks)
    }
}
