//! The types of `gasworks_sock.h`, laid out as C has them, and the numbers of its error classes.

use std::ffi::{c_int, c_void};

use gasworks_sock::{Class, Error, Op};

/// `gasworks_sock_set_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CSet {
    /// The number in the table of sets.
    pub number: i32,
}

/// `gasworks_sock_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CSock {
    /// The sock's number in its set.
    pub number: u64,
    /// Its set.
    pub set: CSet,
    /// Zero.
    pub reserved: i32,
}

/// `gasworks_sock_event_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CEvent {
    /// A `gasworks_sock_op_t`.
    pub op_type: c_int,
    /// The bytes transferred.
    pub num_bytes: usize,
    /// The sock's user pointer.
    pub user_ptr: *mut c_void,
    /// An error code.
    pub error: c_int,
}

/// `gasworks_sock_ifaddr_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CIfaddr {
    /// 4 or 16.
    pub len: u32,
    /// The address in network order.
    pub ifaddr: [u8; 16],
}

/// `struct iovec`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CIovec {
    /// Where.
    pub base: *mut c_void,
    /// How many bytes.
    pub len: usize,
}

/// `gasworks_sock_progress_update_func_t`.
pub type CProgress = Option<unsafe extern "C" fn(usize, *mut c_void) -> c_int>;

// The C test asserts the same numbers.
const _: () = {
    assert!(size_of::<CSet>() == 4 && size_of::<CSock>() == 16);
    assert!(std::mem::offset_of!(CSock, set) == 8);
    assert!(size_of::<CEvent>() == 32);
    assert!(std::mem::offset_of!(CEvent, num_bytes) == 8 && std::mem::offset_of!(CEvent, user_ptr) == 16);
    assert!(std::mem::offset_of!(CEvent, error) == 24);
    assert!(size_of::<CIfaddr>() == 20 && size_of::<CIovec>() == 16);
};

/// `GASWORKS_SOCK_SUCCESS`.
pub const SUCCESS: c_int = 0;

/// The classes in the order of their numbers, from 1.
const CLASSES: [Class; 19] = [
    Class::Fail,
    Class::Init,
    Class::NoMem,
    Class::BadSet,
    Class::BusySet,
    Class::BadSock,
    Class::BadHost,
    Class::BadHostname,
    Class::BadPort,
    Class::BadBuf,
    Class::BadLen,
    Class::BadNativeFd,
    Class::SockClosed,
    Class::ConnClosed,
    Class::ConnFailed,
    Class::InProgress,
    Class::Timeout,
    Class::Intr,
    Class::NoNewSock,
];

/// An error as a code.
pub fn code(error: &Error) -> c_int {
    let class = CLASSES.iter().position(|class| *class == error.class()).unwrap_or(0) as c_int + 1;
    class | error.raw_os_error().unwrap_or(0) << 8
}

/// What the class of a code says.
pub fn describe(code: c_int) -> &'static str {
    match usize::try_from(code & 0xff).unwrap_or(0) {
        0 => "success",
        class => CLASSES.get(class - 1).map_or("unknown error class", |class| class.describe()),
    }
}

/// The number of an operation. Bare readiness cannot be awaited from C.
pub fn op_number(op: Op) -> c_int {
    match op {
        Op::Read | Op::Readable => 0,
        Op::Write | Op::Writable => 1,
        Op::Accept => 2,
        Op::Connect => 3,
        Op::Close => 4,
        Op::Wakeup => 5,
    }
}
