//! The calls into `libpmix.so`.
//!
//! # Invariants
//! - pmix_sys.1: the functions have the types that the standard gives them, and may be called from any thread.
//! - pmix_sys.2: pointers that are passed point to values of ours that live through the call; the library keeps none of them.
//! - pmix_sys.3: a value that `PMIx_Get` gives is allocated by C and ours to free, with the string in it.
//! - pmix_sys.4: a value's `kind` says which field of its `data` was written.
//! - pmix_sys.5: what a handler is registered with lives as long as the process, and may be used by any thread.
//! - pmix_sys.6: the library calls a handler with `infos` well-formed entries, and with what it wants to be called back with.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
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

/// `pmix_event_notification_cbfunc_fn_t`: a handler is done. The last argument is the handler's own last.
type Done = unsafe extern "C" fn(c_int, *mut Info, usize, *const c_void, *mut c_void, *mut c_void);

/// `pmix_notification_fn_t`: a handler, with its number, the event, its source, what is told with it, what handlers
/// before have made of it, what it calls when it is done, and with what.
type Handler = unsafe extern "C" fn(
    usize,
    c_int,
    *const Proc,
    *const Info,
    usize,
    *const Info,
    usize,
    Option<Done>,
    *mut c_void,
);

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
    register: unsafe extern "C" fn(
        *mut c_int,
        usize,
        *mut Info,
        usize,
        Handler,
        *const c_void,
        *mut c_void,
    ) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The handler: shuts down what it was registered with.
unsafe extern "C" fn hang_up(
    _number: usize,
    _event: c_int,
    _source: *const Proc,
    infos: *const Info,
    count: usize,
    _results: *const Info,
    _result_count: usize,
    done: Option<Done>,
    with: *mut c_void,
) {
    let infos = match infos.is_null() {
        true => &[],
        // SAFETY: pmix_sys.6: `infos` is not null, so there are `count` entries, which stay until the library is called back.
        false => unsafe { std::slice::from_raw_parts(infos, count) },
    };
    let wanted = abi::RETURN_OBJECT.to_bytes_with_nul();
    let ours = infos.iter().find(|info| info.key.iter().zip(wanted).all(|(&has, &byte)| has as u8 == byte));
    if let Some(info) = ours.filter(|info| info.value.kind == abi::POINTER) {
        // SAFETY: pmix_sys.4: `kind` says POINTER, so that field was written.
        let line: *const UnixStream = unsafe { info.value.data.pointer }.cast();
        if !line.is_null() {
            // SAFETY: pmix_sys.5: it is what `watch` registered and not null: a socket that lives as long as the process.
            let line = unsafe { &*line };
            // A line that is down already is what is wanted.
            let _ = line.shutdown(Shutdown::Both);
        }
    }
    if let Some(done) = done {
        // SAFETY: pmix_sys.6: `done` and `with` came together, for this call; no results are told, and nothing is to be called after it.
        unsafe { done(abi::ACTION_COMPLETE, ptr::null_mut(), 0, ptr::null(), ptr::null_mut(), with) };
    }
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
                // SAFETY: pmix_sys.1: the field that the function `$name` goes into has its type.
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
            register: function!(c"PMIx_Register_event_handler"),
            error: function!(c"PMIx_Error_string"),
        })
    }

    /// Joins; gives the job's name space and this process's rank.
    pub(super) fn init(&self) -> Result<(CString, u32), Status> {
        let mut me = Proc::new(c"", 0);
        // SAFETY: pmix_sys.1, pmix_sys.2: the library fills in the local `me`; no directives are given.
        checked(unsafe { (self.init)(&raw mut me, ptr::null_mut(), 0) })?;
        let nspace: Vec<u8> = me.nspace.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        Ok((CString::new(nspace).unwrap_or_default(), me.rank))
    }

    /// Has `line` shut down when the launcher vanishes.
    pub(super) fn watch(&self, line: &'static UnixStream) -> Result<(), Status> {
        let mut codes = [abi::LOST_CONNECTION, abi::LOST_CONNECTION_TO_SERVER];
        let mut data = Data { all: [0; 3] };
        data.pointer = ptr::from_ref(line).cast_mut().cast();
        let mut with = [Info::new(abi::RETURN_OBJECT, abi::POINTER, data)];
        let (which, what) = (codes.as_mut_ptr(), with.as_mut_ptr());
        // SAFETY: pmix_sys.2: `which` and `what` point to locals, given with their lengths. pmix_sys.5: `with` holds `line`, which is
        // static. Without a function to call when it is registered, it is when this returns.
        let number = unsafe {
            (self.register)(which, codes.len(), what, with.len(), hang_up, ptr::null(), ptr::null_mut())
        };
        // Handlers are numbered from 0.
        if number < 0 { Err(Status(number)) } else { Ok(()) }
    }

    pub(super) fn finalize(&self) -> Result<(), Status> {
        // SAFETY: pmix_sys.1: no directives are given, as a null pointer and a length of 0 say.
        checked(unsafe { (self.finalize)(ptr::null(), 0) })
    }

    /// Ends all ranks. It may not return.
    pub(super) fn abort(&self, code: c_int, message: &CStr) {
        // SAFETY: pmix_sys.1, pmix_sys.2: `message` is a borrowed C string; no list of processes means all of the job. There is nobody to
        // tell of a refusal.
        let _ = unsafe { (self.abort)(code, message.as_ptr(), ptr::null_mut(), 0) };
    }

    pub(super) fn put(&self, key: &CStr, text: &CStr) -> Result<(), Status> {
        let mut data = Data { all: [0; 3] };
        data.string = text.as_ptr().cast_mut();
        let mut value = Value { kind: abi::STRING, data };
        // SAFETY: pmix_sys.1, pmix_sys.2: `key` is a borrowed C string, and `value` a local; the text in it is copied, and not written to.
        checked(unsafe { (self.put)(abi::GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Sends what was put, waits for all ranks of the job, and brings what they have sent.
    pub(super) fn fence(&self) -> Result<(), Status> {
        // SAFETY: pmix_sys.1: `PMIx_Commit` is given nothing.
        checked(unsafe { (self.commit)() })?;
        let directives = [Info::flag(abi::COLLECT_DATA)];
        // SAFETY: pmix_sys.1, pmix_sys.2: `directives` is a local, given with its length; no list of processes means all of the job.
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
        // SAFETY: pmix_sys.1, pmix_sys.2: `of` and `how` point to locals, `key` is a borrowed C string, and one pointer is written, to
        // `value`.
        checked(unsafe { (self.get)(of, key.as_ptr(), how, directives.len(), &raw mut value) })?;
        if value.is_null() {
            return Ok(Got::Other(0));
        }
        // SAFETY: pmix_sys.3: `value` is not null, and ours until it is freed below.
        let kind = unsafe { (*value).kind };
        let got = match kind {
            abi::UINT32 => {
                // SAFETY: pmix_sys.3, pmix_sys.4: the value is ours, and its kind says that the number was written.
                Got::Number(unsafe { (*value).data.uint32 })
            }
            abi::STRING => {
                // SAFETY: pmix_sys.3, pmix_sys.4: the value is ours, and its kind says that the pointer to a string was written.
                let text = unsafe { (*value).data.string };
                if text.is_null() {
                    Got::Text(String::new())
                } else {
                    // SAFETY: pmix_sys.3, pmix_sys.4: `text` is not null, a C string that is ours and freed only when it was copied.
                    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
                    // SAFETY: pmix_sys.3: C allocated `text` with the value; it was copied, and nobody uses it after this.
                    unsafe { libc::free(text.cast()) };
                    Got::Text(copy)
                }
            }
            other => Got::Other(other),
        };
        // SAFETY: pmix_sys.3: C allocated `value`; what it held was taken out, and nobody uses it after this.
        unsafe { libc::free(value.cast()) };
        Ok(got)
    }

    /// The library's words for a code.
    pub(super) fn explain(&self, Status(code): Status) -> String {
        // SAFETY: pmix_sys.1: it is given a number, and any may be asked about.
        let text = unsafe { (self.error)(code) };
        if text.is_null() {
            return format!("code {code}");
        }
        // SAFETY: pmix_sys.1: `text` is not null, a constant C string of the library's.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({code})", text.to_string_lossy())
    }
}
