//! The calls into `libpmix.so`.
//!
//! # Invariants
//! P1. The functions have the types that the standard gives them, and may be called from any thread.
//! P2. Pointers that are passed point to values of ours that live through the call; the library keeps none of them.
//! P3. A value that `PMIx_Get` gives is allocated by C and ours to free, with the string in it.
//! P4. A value's `kind` says which field of its `data` was written.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::ptr;
use std::time::Duration;

use gasworks_os::library::Library;
use nix::libc;

use super::abi::{self, Data, Info, Proc, Value};
use crate::BootstrapError;
use crate::wire::quote;

impl Info {
    fn new(key: &CStr, kind: u16, data: Data) -> Self {
        let mut info = Info { key: [0; abi::MAX_KEYLEN + 1], flags: 0, value: Value { kind, data } };
        fill(&mut info.key, key);
        info
    }

    fn flag(key: &CStr) -> Self {
        let mut data = Data { all: [0; 3] };
        data.flag = true;
        Self::new(key, abi::BOOL, data)
    }

    fn seconds(key: &CStr, seconds: Duration) -> Self {
        let mut data = Data { all: [0; 3] };
        // 0 is for ever.
        data.integer = c_int::try_from(seconds.as_secs().max(1)).unwrap_or(c_int::MAX);
        Self::new(key, abi::INT, data)
    }
}

/// Copies a C string; one that is too long is cut.
fn fill(field: &mut [c_char], text: &CStr) {
    let most = field.len() - 1;
    for (to, &from) in field[..most].iter_mut().zip(text.to_bytes()) {
        *to = from as c_char;
    }
}

impl Proc {
    pub(super) fn new(nspace: &CStr, rank: u32) -> Self {
        let mut proc = Self { nspace: [0; abi::MAX_NSLEN + 1], rank };
        fill(&mut proc.nspace, nspace);
        proc
    }
}

/// The functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Api {
    init: unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    abort: unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence: unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int,
    get: unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The library says no, with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) c_int);

fn checked(status: c_int) -> Result<(), Status> {
    if status == abi::SUCCESS { Ok(()) } else { Err(Status(status)) }
}

/// What a value turned out to be.
#[derive(Debug)]
pub(super) enum Got {
    Text(String),
    Number(u32),
    /// Of another kind.
    Other(u16),
}

impl fmt::Display for Got {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Got::Text(text) => f.write_str(&quote(text.as_bytes())),
            Got::Number(number) => number.fmt(f),
            Got::Other(kind) => write!(f, "something of kind {kind}"),
        }
    }
}

impl Api {
    /// Opens the library.
    pub(super) fn open() -> Result<Self, BootstrapError> {
        let library = Library::open(&["libpmix.so.2", "libpmix.so"])?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: P1; the field it goes into has this function's type.
                let found = unsafe { library.function($name) };
                found.ok_or_else(|| {
                    let what = format!("the library has no {}", $name.to_string_lossy());
                    BootstrapError::protocol("open libpmix.so.2", what)
                })?
            }};
        }
        Ok(Self {
            init: function!(c"PMIx_Init"),
            finalize: function!(c"PMIx_Finalize"),
            abort: function!(c"PMIx_Abort"),
            put: function!(c"PMIx_Put"),
            commit: function!(c"PMIx_Commit"),
            fence: function!(c"PMIx_Fence"),
            get: function!(c"PMIx_Get"),
            error: function!(c"PMIx_Error_string"),
        })
    }

    /// Joins; gives the job's name space and this process's rank.
    pub(super) fn init(&self) -> Result<(CString, u32), Status> {
        let mut me = Proc::new(c"", 0);
        // SAFETY: P1 and P2.
        checked(unsafe { (self.init)(&raw mut me, ptr::null_mut(), 0) })?;
        let nspace: Vec<u8> = me.nspace.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        Ok((CString::new(nspace).unwrap_or_default(), me.rank))
    }

    pub(super) fn finalize(&self) -> Result<(), Status> {
        // SAFETY: P1; no directives are given.
        checked(unsafe { (self.finalize)(ptr::null(), 0) })
    }

    /// Ends all ranks. It may not return.
    pub(super) fn abort(&self, code: c_int, message: &CStr) {
        // SAFETY: P1 and P2; no list of processes means all of the job. There is nobody to tell of a refusal.
        let _ = unsafe { (self.abort)(code, message.as_ptr(), ptr::null_mut(), 0) };
    }

    pub(super) fn put(&self, key: &CStr, text: &CStr) -> Result<(), Status> {
        let mut data = Data { all: [0; 3] };
        data.string = text.as_ptr().cast_mut();
        let mut value = Value { kind: abi::STRING, data };
        // SAFETY: P1 and P2: it is copied, and not written to.
        checked(unsafe { (self.put)(abi::GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Sends what was put, waits for all ranks of the job, and brings what they have sent.
    pub(super) fn fence(&self) -> Result<(), Status> {
        // SAFETY: P1.
        checked(unsafe { (self.commit)() })?;
        let directives = [Info::flag(abi::COLLECT_DATA)];
        // SAFETY: P1 and P2; no list of processes means all of the job.
        checked(unsafe { (self.fence)(ptr::null(), 0, directives.as_ptr(), directives.len()) })
    }

    /// What `rank` of the job has put under `key`, or the launcher knows of it; waits for it no longer than `limit`.
    /// `None`: what is not at hand is not asked for.
    pub(super) fn get(
        &self,
        nspace: &CStr,
        rank: u32,
        key: &CStr,
        limit: Option<Duration>,
    ) -> Result<Got, Status> {
        let proc = Proc::new(nspace, rank);
        let directives =
            [limit.map_or_else(|| Info::flag(abi::OPTIONAL), |limit| Info::seconds(abi::TIMEOUT, limit))];
        let mut value: *mut Value = ptr::null_mut();
        let (of, how) = (&raw const proc, directives.as_ptr());
        // SAFETY: P1 and P2.
        checked(unsafe { (self.get)(of, key.as_ptr(), how, directives.len(), &raw mut value) })?;
        if value.is_null() {
            return Ok(Got::Other(0));
        }
        // SAFETY: P3: it is there, and ours.
        let kind = unsafe { (*value).kind };
        let got = match kind {
            abi::UINT32 => {
                // SAFETY: P3 and P4.
                Got::Number(unsafe { (*value).data.uint32 })
            }
            abi::STRING => {
                // SAFETY: P3 and P4.
                let text = unsafe { (*value).data.string };
                if text.is_null() {
                    Got::Text(String::new())
                } else {
                    // SAFETY: P3 and P4: it is a C string.
                    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
                    // SAFETY: P3; nobody uses it after.
                    unsafe { libc::free(text.cast()) };
                    Got::Text(copy)
                }
            }
            other => Got::Other(other),
        };
        // SAFETY: P3; nobody uses it after.
        unsafe { libc::free(value.cast()) };
        Ok(got)
    }

    /// The library's words for a code.
    pub(super) fn explain(&self, Status(code): Status) -> String {
        // SAFETY: P1; any number may be asked about.
        let text = unsafe { (self.error)(code) };
        if text.is_null() {
            return format!("code {code}");
        }
        // SAFETY: P1: it is a constant C string of the library's.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({code})", text.to_string_lossy())
    }
}
