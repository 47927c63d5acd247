//! The structures and numbers of `cci.h`.
//!
//! C programs read objects of the library at any time, so their members are atomics, which are the same in memory. A pointer is held as its address.

use gasworks_cci::datagram::Attribute;
use gasworks_cci::directory::DirectoryError;
use gasworks_cci::endpoint::{CallError, CreateError, Failure};
use gasworks_os::OsError;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::ffi::{CStr, c_int, c_uint};
use std::io;
use std::mem::offset_of;

/// `CCI_ABI_VERSION`.
pub const ABI_VERSION: u32 = 2;

/// `CCI_SUCCESS`.
pub const SUCCESS: c_int = 0;
/// `CCI_ERROR`.
pub const ERROR: c_int = 1;
/// `CCI_ERR_DISCONNECTED`.
pub const ERR_DISCONNECTED: c_int = 2;
/// `CCI_ERR_RMA_HANDLE`.
pub const ERR_RMA_HANDLE: c_int = 5;
/// `CCI_ERR_RMA_OP`.
pub const ERR_RMA_OP: c_int = 6;
/// `CCI_ERR_NOT_IMPLEMENTED`.
pub const ERR_NOT_IMPLEMENTED: c_int = 7;
/// `CCI_ERR_NOT_FOUND`.
pub const ERR_NOT_FOUND: c_int = 8;
/// `CCI_EINVAL`.
pub const EINVAL: c_int = libc::EINVAL;
/// `CCI_ETIMEDOUT`.
pub const ETIMEDOUT: c_int = libc::ETIMEDOUT;
/// `CCI_ENOMEM`.
pub const ENOMEM: c_int = libc::ENOMEM;
/// `CCI_ENODEV`.
pub const ENODEV: c_int = libc::ENODEV;
/// `CCI_EBUSY`.
pub const EBUSY: c_int = libc::EBUSY;
/// `CCI_EAGAIN`.
pub const EAGAIN: c_int = libc::EAGAIN;
/// `CCI_ENOBUFS`.
pub const ENOBUFS: c_int = libc::ENOBUFS;
/// `CCI_EMSGSIZE`.
pub const EMSGSIZE: c_int = libc::EMSGSIZE;
/// `CCI_EADDRNOTAVAIL`.
pub const EADDRNOTAVAIL: c_int = libc::EADDRNOTAVAIL;
/// `CCI_ECONNREFUSED`.
pub const ECONNREFUSED: c_int = libc::ECONNREFUSED;

/// `CCI_FLAG_BLOCKING`.
pub const BLOCKING: c_int = 1;
/// `CCI_FLAG_NO_COPY`.
pub const NO_COPY: c_int = 1 << 1;
/// `CCI_FLAG_SILENT`.
pub const SILENT: c_int = 1 << 3;
/// `CCI_FLAG_READ`.
pub const READ: c_int = 1 << 4;
/// `CCI_FLAG_WRITE`.
pub const WRITE: c_int = 1 << 5;
/// `CCI_FLAG_FENCE`.
pub const FENCE: c_int = 1 << 6;

/// `cci_event_type_t`.
pub mod event_type {
    /// `CCI_EVENT_SEND`.
    pub const SEND: u32 = 1;
    /// `CCI_EVENT_RECV`.
    pub const RECV: u32 = 2;
    /// `CCI_EVENT_CONNECT`.
    pub const CONNECT: u32 = 3;
    /// `CCI_EVENT_CONNECT_REQUEST`.
    pub const CONNECT_REQUEST: u32 = 4;
    /// `CCI_EVENT_ACCEPT`.
    pub const ACCEPT: u32 = 5;
    /// `CCI_EVENT_KEEPALIVE_TIMEDOUT`.
    pub const KEEPALIVE_TIMEDOUT: u32 = 6;
}

/// `cci_opt_name_t`.
pub mod option {
    use std::ffi::c_uint;

    /// `CCI_OPT_ENDPT_SEND_TIMEOUT`.
    pub const ENDPT_SEND_TIMEOUT: c_uint = 0;
    /// `CCI_OPT_ENDPT_RECV_BUF_COUNT`.
    pub const ENDPT_RECV_BUF_COUNT: c_uint = 1;
    /// `CCI_OPT_ENDPT_SEND_BUF_COUNT`.
    pub const ENDPT_SEND_BUF_COUNT: c_uint = 2;
    /// `CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT`.
    pub const ENDPT_KEEPALIVE_TIMEOUT: c_uint = 3;
    /// `CCI_OPT_ENDPT_URI`.
    pub const ENDPT_URI: c_uint = 4;
    /// `CCI_OPT_ENDPT_RMA_ALIGN`.
    pub const ENDPT_RMA_ALIGN: c_uint = 5;
    /// `CCI_OPT_CONN_SEND_TIMEOUT`.
    pub const CONN_SEND_TIMEOUT: c_uint = 6;
    /// `CCI_OPT_CONN_KEEPALIVE_TIMEOUT`.
    pub const CONN_KEEPALIVE_TIMEOUT: c_uint = 7;
}

/// `cci_device_t`. Nothing of it changes.
#[repr(C)]
#[derive(Debug)]
pub struct CDevice {
    /// The name, a text of C.
    pub name: usize,
    /// The transport's name, a text of C.
    pub transport: usize,
    /// Whether it can be used.
    pub up: c_uint,
    /// A description, a text of C.
    pub info: usize,
    /// An array of texts of C, with null at its end.
    pub conf_argv: usize,
    /// The longest message.
    pub max_send_size: u32,
    /// Bits per second.
    pub rate: u64,
    /// Domain, bus, device and function.
    pub pci: [u32; 4],
}

/// `cci_endpoint_t`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CEndpoint {
    /// A [`CDevice`].
    pub device: AtomicU64,
}

/// `cci_connection_t`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CConnection {
    /// The longest message.
    pub max_send_size: AtomicU32,
    /// A [`CEndpoint`].
    pub endpoint: AtomicU64,
    /// `cci_conn_attribute_t`.
    pub attribute: AtomicU32,
    /// The program's.
    pub context: AtomicU64,
}

/// `cci_event_t`: the members of the union are alike but for what is in the last two words.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CEvent {
    /// `cci_event_type_t`.
    event_type: AtomicU32,
    /// A status, or a length.
    second: AtomicU32,
    /// The first pointer.
    third: AtomicU64,
    /// The second pointer, or an attribute.
    fourth: AtomicU64,
}

impl CEvent {
    /// Fills it.
    pub fn set(&self, event_type: u32, second: u32, third: u64, fourth: u64) {
        self.event_type.store(event_type, Relaxed);
        self.second.store(second, Relaxed);
        self.third.store(third, Relaxed);
        self.fourth.store(fourth, Relaxed);
    }
}

/// `cci_rma_handle_t`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CHandle {
    /// What peers get a copy of.
    pub stuff: [AtomicU64; 4],
}

// As `tests/c/layout.c` has it for the header.
const _: () = {
    assert!(size_of::<CDevice>() == 72 && align_of::<CDevice>() == 8);
    assert!(offset_of!(CDevice, transport) == 8 && offset_of!(CDevice, up) == 16);
    assert!(offset_of!(CDevice, info) == 24 && offset_of!(CDevice, conf_argv) == 32);
    assert!(offset_of!(CDevice, max_send_size) == 40 && offset_of!(CDevice, rate) == 48);
    assert!(offset_of!(CDevice, pci) == 56);
    assert!(size_of::<CEndpoint>() == 8 && align_of::<CEndpoint>() == 8);
    assert!(size_of::<CConnection>() == 32 && align_of::<CConnection>() == 8);
    assert!(offset_of!(CConnection, endpoint) == 8 && offset_of!(CConnection, attribute) == 16);
    assert!(offset_of!(CConnection, context) == 24);
    assert!(size_of::<CEvent>() == 24 && align_of::<CEvent>() == 8);
    assert!(offset_of!(CEvent, second) == 4 && offset_of!(CEvent, third) == 8);
    assert!(offset_of!(CEvent, fourth) == 16);
    assert!(size_of::<CHandle>() == 32 && align_of::<CHandle>() == 8);
    // An attribute is written as a whole word, of which C reads the first half.
    assert!(cfg!(all(target_pointer_width = "64", target_endian = "little")));
};

/// The attribute that a number of C stands for, but for those of multicast.
pub fn attribute(number: c_uint) -> Option<Attribute> {
    [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable]
        .into_iter()
        .find(|attribute| *attribute as c_uint == number)
}

/// The status of a call that did nothing.
pub fn of_call(error: &CallError) -> c_int {
    match error {
        CallError::Disconnected => ERR_DISCONNECTED,
        CallError::Foreign { .. } => ECONNREFUSED,
        CallError::NoRoom | CallError::NoBuffers | CallError::NoIds => ENOBUFS,
        CallError::TooLong { .. } => EMSGSIZE,
        CallError::Handle { .. } => ERR_RMA_HANDLE,
        CallError::Operation { .. } => ERR_RMA_OP,
        CallError::System(error) => of_system(error),
        CallError::NoConnection
        | CallError::NoRequest
        | CallError::TooMuchData { .. }
        | CallError::Uri(_)
        | CallError::Unreliable
        | CallError::Memory { .. } => EINVAL,
    }
}

/// The status of what was begun and failed.
pub fn of_failure(failure: Failure) -> c_int {
    match failure {
        Failure::Disconnected => ERR_DISCONNECTED,
        Failure::TimedOut => ETIMEDOUT,
        Failure::Refused => ECONNREFUSED,
        Failure::Handle => ERR_RMA_HANDLE,
        Failure::Operation => ERR_RMA_OP,
    }
}

/// The same, or success.
pub fn of_result(result: Result<(), Failure>) -> c_int {
    result.map_or_else(of_failure, |()| SUCCESS)
}

/// The status where there is no endpoint.
pub fn of_create(error: &CreateError) -> c_int {
    match error {
        CreateError::Directory(DirectoryError::Uri(_)) | CreateError::MaxSend { .. } => EINVAL,
        CreateError::Directory(DirectoryError::InUse { .. }) => EBUSY,
        CreateError::Directory(DirectoryError::NotOurs { .. }) => EADDRNOTAVAIL,
        CreateError::Directory(DirectoryError::System { cause, .. }) => of_cause(cause, EADDRNOTAVAIL),
        CreateError::System(error) => of_system(error),
    }
}

fn of_system(error: &OsError) -> c_int {
    of_cause(&error.cause, ENODEV)
}

/// The status of what the system refused: whether something ran out, or something else.
fn of_cause(cause: &io::Error, other: c_int) -> c_int {
    match cause.raw_os_error() {
        Some(libc::ENOMEM | libc::ENOSPC | libc::EDQUOT | libc::EMFILE | libc::ENFILE | libc::ENOBUFS) => {
            ENOMEM
        }
        _ => other,
    }
}

/// What a status means.
pub fn describe(status: c_int) -> &'static CStr {
    match status {
        SUCCESS => c"success",
        ERROR => c"error",
        ERR_DISCONNECTED => c"the connection is closed",
        3 => c"the peer has no room for the message",
        4 => c"the device does not work any more",
        ERR_RMA_HANDLE => c"the target does not know the handle",
        ERR_RMA_OP => c"the memory does not admit the transfer",
        ERR_NOT_IMPLEMENTED => c"the transport does not have this function",
        ERR_NOT_FOUND => c"there is no such thing",
        EINVAL => c"an argument is not valid",
        ETIMEDOUT => c"no answer came in time",
        ENOMEM => c"no memory, space or descriptors are left",
        ENODEV => c"there is no device, or the library is not initialised",
        libc::ENETDOWN => c"the network is down",
        EBUSY => c"the address is in use",
        libc::ERANGE => c"the value is out of range",
        EAGAIN => c"there is nothing at present",
        ENOBUFS => c"too much is under way, or too many events were not returned",
        EMSGSIZE => c"the message is too long",
        libc::ENOMSG => c"there is no such message",
        EADDRNOTAVAIL => c"the address cannot be used",
        ECONNREFUSED => c"nobody is at the address, or the request was rejected",
        _ => c"unknown status",
    }
}
