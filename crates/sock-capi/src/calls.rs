//! The functions of `gasworks_sock.h`.
//!
//! # Invariants
//! - calls.1: a pointer that the caller gives for a result is null, which is refused, or valid for one write of its type.
//! - calls.2: a text that the caller gives is null, which is refused, or ends with a zero byte.
//! - calls.3: memory that the caller gives with a length is valid for it: during an immediate call, or until the event of a posted
//!   one (`raw.1` of `gasworks_sock`). Null with a length other than 0 is refused. An array of `iovec` is valid during
//!   the call.
//! - calls.4: a progress function can be called from any thread until its operation's event.
//! - calls.5: a descriptor that is adopted is open and the caller's to give away; one that is not open is refused first.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use gasworks_sock::raw::{self, Lent};
use gasworks_sock::{Address, Class, Error, HostDescription, MOST_PARTS, Options, Progress, Set, Sock};

use crate::abi::{CEvent, CIfaddr, CIovec, CProgress, CSet, CSock, SUCCESS, code, describe, op_number};
use crate::table::{self, done};

fn bad(class: Class, operation: &'static str, why: &str) -> Error {
    Error::new(class, operation).cause(why)
}

/// Puts a result where the caller wants it.
fn put<T>(to: *mut T, value: T, operation: &'static str) -> Result<(), Error> {
    if to.is_null() {
        return Err(bad(Class::BadBuf, operation, "the pointer for the result is null"));
    }
    // SAFETY: calls.1: `to` is not null, so it is valid for one write of a `T`.
    unsafe { to.write(value) };
    Ok(())
}

/// A text with a zero byte at its end, cut off if `cut` and refused otherwise where it does not fit.
fn put_text(
    to: *mut c_char,
    room: usize,
    text: &str,
    cut: bool,
    operation: &'static str,
) -> Result<(), Error> {
    if to.is_null() || room == 0 {
        return Err(bad(Class::BadHost, operation, "there is no room for the text"));
    }
    if text.len() >= room && !cut {
        let why = format!("the text needs {} bytes, and there are {room}", text.len() + 1);
        return Err(bad(Class::BadHost, operation, &why));
    }
    let len = text.len().min(room - 1);
    // SAFETY: calls.3: `to` is not null and valid for `room` bytes, of which `len` + 1 are written; `text` is borrowed and not among them.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        to.add(len).write(0);
    }
    Ok(())
}

fn text<'a>(from: *const c_char, class: Class, operation: &'static str) -> Result<&'a str, Error> {
    if from.is_null() {
        return Err(bad(class, operation, "the text is null"));
    }
    // SAFETY: calls.2: `from` is not null, so it ends with a zero byte; the text is used before the call returns.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| bad(class, operation, "the text is not UTF-8"))
}

fn user(user_ptr: *mut c_void) -> u64 {
    user_ptr.expose_provenance() as u64
}

fn user_ptr(user: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(user as usize)
}

fn port_number(port: c_int, operation: &'static str) -> Result<u16, Error> {
    let none = |_| bad(Class::BadPort, operation, &format!("{port} is no port: give 0 to 65535"));
    u16::try_from(port).map_err(none)
}

fn handle(sock: &Sock, set: CSet) -> CSock {
    CSock { number: sock.id().number(), set, reserved: 0 }
}

fn progress(function: CProgress) -> Option<Progress> {
    let function = function?;
    Some(Box::new(move |bytes, user| {
        // SAFETY: calls.4: the operation that `function` was given with has not ended, so it can be called, from this thread too.
        unsafe { function(bytes, user_ptr(user)) };
    }))
}

/// Memory of one buffer, checked.
fn lend(at: *const c_void, len: usize, operation: &'static str) -> Result<Lent, Error> {
    if at.is_null() && len > 0 {
        return Err(bad(Class::BadBuf, operation, "the buffer is null"));
    }
    if isize::try_from(len).is_err() {
        return Err(bad(Class::BadLen, operation, "the buffer is longer than memory can be"));
    }
    // SAFETY: calls.3: `at` is valid for `len` bytes, or null with a length of 0, until the call or the posted operation ends.
    Ok(unsafe { Lent::new(at.cast_mut().cast(), len) })
}

/// The elements of an `iovec` array, checked, with the sum of their lengths.
fn lend_all(iov: *const CIovec, n: c_int, operation: &'static str) -> Result<(Vec<Lent>, usize), Error> {
    let n = usize::try_from(n).ok().filter(|n| (1..=MOST_PARTS).contains(n));
    let n = n.ok_or_else(|| bad(Class::BadLen, operation, &format!("give 1 to {MOST_PARTS} parts")))?;
    if iov.is_null() {
        return Err(bad(Class::BadBuf, operation, "the array of parts is null"));
    }
    // SAFETY: calls.3: `iov` is not null, and an array of `n` parts that is valid during the call.
    let parts = unsafe { std::slice::from_raw_parts(iov, n) };
    let total = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.len));
    let total = total.ok_or_else(|| bad(Class::BadLen, operation, "the parts together are too long"))?;
    let lent: Result<Vec<Lent>, Error> =
        parts.iter().map(|part| lend(part.base, part.len, operation)).collect();
    Ok((lent?, total))
}

/// `gasworks_sock_init`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_init() -> c_int {
    table::init();
    SUCCESS
}

/// `gasworks_sock_finalize`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_finalize() -> c_int {
    done(table::finalize())
}

fn describe_into(
    made: Result<HostDescription, Error>,
    to: *mut c_char,
    len: c_int,
    operation: &'static str,
) -> Result<(), Error> {
    table::initialised()?;
    put_text(to, usize::try_from(len).unwrap_or(0), &made?.to_string(), false, operation)
}

/// `gasworks_sock_get_host_description`
///
/// # Safety
/// calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_get_host_description(
    _rank: c_int,
    host_description: *mut c_char,
    len: c_int,
) -> c_int {
    done(describe_into(HostDescription::local(), host_description, len, "get a host description"))
}

/// `gasworks_sock_hostname_to_host_description`
///
/// # Safety
/// calls.2, calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_hostname_to_host_description(
    hostname: *const c_char,
    host_description: *mut c_char,
    len: c_int,
) -> c_int {
    const OPERATION: &str = "describe a host";
    let made = text(hostname, Class::BadHostname, OPERATION).and_then(HostDescription::named);
    done(describe_into(made, host_description, len, OPERATION))
}

/// `gasworks_sock_create_set`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_create_set(set: *mut CSet) -> c_int {
    let make = || {
        table::initialised()?;
        let made = Set::with(Options::from_settings()?)?;
        let number = table::add(made);
        put(set, number, "create a set").inspect_err(|_| table::remove(number))
    };
    done(make())
}

/// `gasworks_sock_destroy_set`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_destroy_set(set: CSet) -> c_int {
    done(table::set(set, "destroy a set").and_then(|it| it.destroy()).map(|()| table::remove(set)))
}

/// `gasworks_sock_close_open_sockets`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_close_open_sockets(
    set: CSet,
    user_ptr_out: *mut *mut c_void,
) -> c_int {
    const OPERATION: &str = "close open socks";
    let close = || {
        let set = table::set(set, OPERATION)?;
        put(user_ptr_out, std::ptr::null_mut(), OPERATION)?;
        let closed = set.close_open().ok_or_else(|| bad(Class::NoNewSock, OPERATION, "none is open"))?;
        put(user_ptr_out, user_ptr(closed), OPERATION)
    };
    done(close())
}

/// `gasworks_sock_set_user_ptr`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_set_user_ptr(sock: CSock, user_ptr: *mut c_void) -> c_int {
    done(table::sock(sock, "set a user pointer").map(|sock| sock.set_user(user(user_ptr))))
}

/// `gasworks_sock_native_to_sock`
///
/// # Safety
/// calls.1, calls.5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_native_to_sock(
    set: CSet,
    fd: c_int,
    user_ptr: *mut c_void,
    sock: *mut CSock,
) -> c_int {
    const OPERATION: &str = "adopt a descriptor";
    let adopt = || {
        let to = table::set(set, OPERATION)?;
        if sock.is_null() {
            return Err(bad(Class::BadBuf, OPERATION, "the pointer for the result is null"));
        }
        if fd < 0 || std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_err() {
            return Err(bad(Class::BadNativeFd, OPERATION, &format!("{fd} is not open")));
        }
        // SAFETY: calls.5: `fd` was open just now, and the caller has given it away; it is owned from here on.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let adopted = to.adopt(user(user_ptr), fd)?;
        put(sock, handle(&adopted, set), OPERATION)
    };
    done(adopt())
}

/// `gasworks_sock_listen`
///
/// # Safety
/// calls.1; at `port` there is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_listen(
    set: CSet,
    user_ptr: *mut c_void,
    port: *mut c_int,
    listener: *mut CSock,
) -> c_int {
    const OPERATION: &str = "listen";
    let listen = || {
        let on = table::set(set, OPERATION)?;
        if port.is_null() || listener.is_null() {
            return Err(bad(Class::BadBuf, OPERATION, "a pointer for a result is null"));
        }
        // SAFETY: `port` is not null, and the caller has put the number of the port there that it wants.
        let wanted = port_number(unsafe { port.read() }, OPERATION)?;
        let any = |ip: IpAddr| Address::Inet((ip, wanted).into());
        // Both families; where there is no IPv6, one.
        let (sock, got) = match on.listen(user(user_ptr), &any(Ipv6Addr::UNSPECIFIED.into())) {
            Err(error) if error.class() != Class::BadPort => {
                on.listen(user(user_ptr), &any([0, 0, 0, 0].into()))
            }
            other => other,
        }?;
        put(port, c_int::from(got), OPERATION)?;
        put(listener, handle(&sock, set), OPERATION)
    };
    done(listen())
}

/// `gasworks_sock_accept`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_accept(
    listener: CSock,
    set: CSet,
    user_ptr: *mut c_void,
    accepted: *mut CSock,
) -> c_int {
    const OPERATION: &str = "accept";
    let accept = || {
        if accepted.is_null() {
            return Err(bad(Class::BadBuf, OPERATION, "the pointer for the result is null"));
        }
        let sock = table::set(set, OPERATION)?.accept(&table::sock(listener, OPERATION)?, user(user_ptr))?;
        put(accepted, handle(&sock, set), OPERATION)
    };
    done(accept())
}

fn connect(
    set: CSet,
    connected: *mut CSock,
    post: impl FnOnce(&Set) -> Result<Sock, Error>,
) -> Result<(), Error> {
    const OPERATION: &str = "post a connect";
    let with = table::set(set, OPERATION)?;
    if connected.is_null() {
        return Err(bad(Class::BadBuf, OPERATION, "the pointer for the result is null"));
    }
    put(connected, handle(&post(&with)?, set), OPERATION)
}

/// `gasworks_sock_post_connect`
///
/// # Safety
/// calls.1, calls.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_connect(
    set: CSet,
    user_ptr: *mut c_void,
    host_description: *const c_char,
    port: c_int,
    connected: *mut CSock,
) -> c_int {
    const OPERATION: &str = "post a connect";
    done(connect(set, connected, |with| {
        let host = HostDescription::parse(text(host_description, Class::BadHost, OPERATION)?)?;
        with.post_connect(user(user_ptr), &host, port_number(port, OPERATION)?)
    }))
}

/// `gasworks_sock_post_connect_ifaddr`
///
/// # Safety
/// calls.1; `ifaddr` is null, which is refused, or points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_connect_ifaddr(
    set: CSet,
    user_ptr: *mut c_void,
    ifaddr: *const CIfaddr,
    port: c_int,
    connected: *mut CSock,
) -> c_int {
    const OPERATION: &str = "post a connect";
    done(connect(set, connected, |with| {
        if ifaddr.is_null() {
            return Err(bad(Class::BadHost, OPERATION, "the address is null"));
        }
        // SAFETY: `ifaddr` is not null, so the caller has put a whole address there, which is copied.
        let CIfaddr { len, ifaddr: bytes } = unsafe { ifaddr.read() };
        let ip = match len {
            4 => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
            16 => IpAddr::from(bytes),
            _ => return Err(bad(Class::BadHost, OPERATION, "an address has 4 or 16 bytes")),
        };
        let port = Some(port_number(port, OPERATION)?).filter(|port| *port != 0);
        let port = port.ok_or_else(|| bad(Class::BadPort, OPERATION, "0 is no port to connect to"))?;
        with.post_connect_to(user(user_ptr), [Address::Inet((ip, port).into())])
    }))
}

/// `gasworks_sock_post_read`
///
/// # Safety
/// calls.3, calls.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_read(
    sock: CSock,
    buf: *mut c_void,
    minbr: usize,
    maxbr: usize,
    function: CProgress,
) -> c_int {
    const OPERATION: &str = "post a read";
    let post = || {
        let sock = table::sock(sock, OPERATION)?;
        raw::post_read(&sock, vec![lend(buf, maxbr, OPERATION)?], minbr, maxbr, progress(function))
    };
    done(post())
}

/// `gasworks_sock_post_readv`
///
/// # Safety
/// calls.3, calls.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_readv(
    sock: CSock,
    iov: *const CIovec,
    iov_n: c_int,
    function: CProgress,
) -> c_int {
    const OPERATION: &str = "post a read";
    let post = || {
        let sock = table::sock(sock, OPERATION)?;
        let (parts, total) = lend_all(iov, iov_n, OPERATION)?;
        raw::post_read(&sock, parts, total, total, progress(function))
    };
    done(post())
}

/// `gasworks_sock_post_write`
///
/// # Safety
/// calls.3, calls.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_write(
    sock: CSock,
    buf: *const c_void,
    minbw: usize,
    maxbw: usize,
    function: CProgress,
) -> c_int {
    const OPERATION: &str = "post a write";
    let post = || {
        let sock = table::sock(sock, OPERATION)?;
        raw::post_write(&sock, vec![lend(buf, maxbw, OPERATION)?], minbw, maxbw, progress(function))
    };
    done(post())
}

/// `gasworks_sock_post_writev`
///
/// # Safety
/// calls.3, calls.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_post_writev(
    sock: CSock,
    iov: *const CIovec,
    iov_n: c_int,
    function: CProgress,
) -> c_int {
    const OPERATION: &str = "post a write";
    let post = || {
        let sock = table::sock(sock, OPERATION)?;
        let (parts, total) = lend_all(iov, iov_n, OPERATION)?;
        raw::post_write(&sock, parts, total, total, progress(function))
    };
    done(post())
}

/// `gasworks_sock_post_close`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_post_close(sock: CSock) -> c_int {
    done(table::sock(sock, "post a close").and_then(|sock| sock.post_close()))
}

/// `gasworks_sock_wait`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_wait(
    set: CSet,
    millisecond_timeout: c_int,
    event: *mut CEvent,
) -> c_int {
    const OPERATION: &str = "wait";
    let wait = || {
        let set = table::set(set, OPERATION)?;
        if event.is_null() {
            return Err(bad(Class::BadBuf, OPERATION, "the pointer for the event is null"));
        }
        let timeout = u64::try_from(millisecond_timeout).ok().map(Duration::from_millis);
        let told =
            set.wait(timeout)?.ok_or_else(|| bad(Class::Timeout, OPERATION, "nothing came in time"))?;
        let (op_type, user_ptr) = (op_number(told.op), user_ptr(told.user));
        let error = told.error.as_ref().map_or(SUCCESS, code);
        put(event, CEvent { op_type, error, num_bytes: told.bytes, user_ptr }, OPERATION)
    };
    done(wait())
}

/// `gasworks_sock_wakeup`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_wakeup(set: CSet) -> c_int {
    done(table::set(set, "wake a set").map(|set| set.wakeup()))
}

/// An immediate call: checks, transfers, and puts the number of bytes.
fn now(
    sock: CSock,
    parts: Result<Vec<Lent>, Error>,
    num: *mut usize,
    operation: &'static str,
    transfer: impl FnOnce(&Sock, Vec<Lent>) -> Result<usize, Error>,
) -> Result<(), Error> {
    let sock = table::sock(sock, operation)?;
    put(num, 0, operation)?;
    put(num, transfer(&sock, parts?)?, operation)
}

fn read_now(sock: &Sock, mut parts: Vec<Lent>) -> Result<usize, Error> {
    let mut slices: Vec<_> = parts.iter_mut().map(|part| IoSliceMut::new(part.bytes_mut())).collect();
    match slices.as_mut_slice() {
        [one] => sock.read(one),
        many => sock.readv(many),
    }
}

fn write_now(sock: &Sock, parts: Vec<Lent>) -> Result<usize, Error> {
    let slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part.bytes())).collect();
    match slices.as_slice() {
        [one] => sock.write(one),
        many => sock.writev(many),
    }
}

/// `gasworks_sock_read`
///
/// # Safety
/// calls.1, calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_read(
    sock: CSock,
    buf: *mut c_void,
    len: usize,
    num_read: *mut usize,
) -> c_int {
    done(now(sock, lend(buf, len, "read").map(|part| vec![part]), num_read, "read", read_now))
}

/// `gasworks_sock_readv`
///
/// # Safety
/// calls.1, calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_readv(
    sock: CSock,
    iov: *const CIovec,
    iov_n: c_int,
    num_read: *mut usize,
) -> c_int {
    done(now(sock, lend_all(iov, iov_n, "readv").map(|(parts, _)| parts), num_read, "readv", read_now))
}

/// `gasworks_sock_write`
///
/// # Safety
/// calls.1, calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_write(
    sock: CSock,
    buf: *const c_void,
    len: usize,
    num_written: *mut usize,
) -> c_int {
    done(now(sock, lend(buf, len, "write").map(|part| vec![part]), num_written, "write", write_now))
}

/// `gasworks_sock_writev`
///
/// # Safety
/// calls.1, calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_writev(
    sock: CSock,
    iov: *const CIovec,
    iov_n: c_int,
    num_written: *mut usize,
) -> c_int {
    done(now(sock, lend_all(iov, iov_n, "writev").map(|(parts, _)| parts), num_written, "writev", write_now))
}

/// `gasworks_sock_get_sock_id`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_get_sock_id(sock: CSock) -> c_int {
    if sock.number == 0 { -1 } else { (sock.number & 0x7fff_ffff) as c_int }
}

/// `gasworks_sock_get_sock_set_id`
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_sock_get_sock_set_id(set: CSet) -> c_int {
    if set.number <= 0 { -1 } else { set.number }
}

/// `gasworks_sock_get_error_class_string`
///
/// # Safety
/// calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_get_error_class_string(
    error: c_int,
    error_string: *mut c_char,
    length: usize,
) -> c_int {
    done(put_text(error_string, length, describe(error), true, "describe an error"))
}

/// `gasworks_sock_get_error_string`
///
/// # Safety
/// calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_sock_get_error_string(error_string: *mut c_char, length: usize) -> c_int {
    done(put_text(error_string, length, &table::last_error(), true, "describe the last error"))
}
