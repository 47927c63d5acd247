//! The functions of `cci.h`.
//!
//! # Invariants
//! - calls.1: pointers to values, texts and bytes are as `memory.1`, `memory.2` and `memory.3` of [`crate::memory`] say. A pointer to an object of the library may be any: it is looked up.
//! - calls.2: memory that the program registers stays readable and writable until it is deregistered or its endpoint destroyed.

use crate::abi::{
    ABI_VERSION, BLOCKING, CConnection, CDevice, CEndpoint, CEvent, CHandle, EINVAL, ENODEV, ENOMEM,
    ERR_DISCONNECTED, ERR_NOT_IMPLEMENTED, FENCE, NO_COPY, READ, SILENT, SUCCESS, WRITE, attribute, describe,
    of_result, option,
};
use crate::devices::{self, failed, refused};
use crate::memory::{bytes, copy_for_program, get, put, text, with_parts};
use crate::state::{self, EndpointNumber, Locked};
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{
    CallError, Endpoint, OperationId, RequestId, RmaHandle, RmaKind, RmaRights, SendFlags,
};
use gasworks_cci::header::ConnectionId;
use gasworks_sync::{RawSlice, spin};
use libc::{iovec, timeval};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// How often a blocking call looks before it gives the processor away, and how often before it sleeps, and for how long.
const LOOKS: u32 = 64;
const YIELDS: u32 = 1024;
const SLEEP: Duration = Duration::from_micros(50);
/// The longest data of a connect request.
const MAX_DATA: u32 = 1024;

type Result<T = ()> = std::result::Result<T, c_int>;

/// The end of a call.
#[inline]
fn status(result: Result) -> c_int {
    result.map_or_else(|status| status, |()| SUCCESS)
}

/// Writes the address of an object where the caller wants it.
fn put_address<T>(to: *mut *const T, address: usize) -> Result {
    put(to, std::ptr::with_exposed_provenance(address))
}

/// Refuses a null pointer.
fn wanted<T>(pointer: *const T) -> Result {
    if pointer.is_null() { Err(EINVAL) } else { Ok(()) }
}

fn context_of(context: *const c_void) -> u64 {
    context.expose_provenance() as u64
}

/// `cci_init`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_init(abi_ver: u32, flags: u32, caps: *mut u32) -> c_int {
    status((|| {
        if caps.is_null() || abi_ver != ABI_VERSION || flags != 0 {
            return Err(EINVAL);
        }
        devices::init()?;
        put(caps, 0)
    })())
}

/// `cci_finalize`
#[unsafe(no_mangle)]
pub extern "C" fn cci_finalize() -> c_int {
    status(devices::finalize(state::destroy_all))
}

/// `cci_get_devices`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_devices(devices: *mut *const *const CDevice) -> c_int {
    status(wanted(devices).and_then(|()| put_address(devices, devices::list()?)))
}

/// Makes an endpoint of a device, at an address if one is given.
fn create(
    device: *const CDevice,
    service: Option<(u32, u32)>,
    endpoint: *mut *const CEndpoint,
    fd: *mut c_int,
) -> Result {
    wanted(endpoint)?;
    devices::with(device.addr(), |device| {
        let wakes = !fd.is_null();
        let engine = device.create(service, wakes).map_err(|error| refused(&error))?;
        if wakes {
            put(fd, engine.as_fd().as_raw_fd())?;
        }
        put_address(endpoint, state::add(engine, device))
    })
}

/// `cci_create_endpoint`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_create_endpoint(
    device: *const CDevice,
    _flags: c_int,
    endpoint: *mut *const CEndpoint,
    fd: *mut c_int,
) -> c_int {
    status(create(device, None, endpoint, fd))
}

/// Reads "pid/id".
fn service_of(text: &str) -> Option<(u32, u32)> {
    // A sign or leading zeroes would give an endpoint a second name.
    let number = |text: &str| text.parse().ok().filter(|number: &u32| number.to_string() == text);
    let (pid, id) = text.split_once('/')?;
    Some((number(pid)?, number(id)?))
}

/// `cci_create_endpoint_at`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_create_endpoint_at(
    device: *const CDevice,
    service: *const c_char,
    _flags: c_int,
    endpoint: *mut *const CEndpoint,
    fd: *mut c_int,
) -> c_int {
    status((|| {
        let service = service_of(text(service)?).ok_or(EINVAL)?;
        create(device, Some(service), endpoint, fd)
    })())
}

/// `cci_destroy_endpoint`
#[unsafe(no_mangle)]
pub extern "C" fn cci_destroy_endpoint(endpoint: *const CEndpoint) -> c_int {
    status(state::destroy(endpoint.addr()))
}

/// `cci_strerror`
#[unsafe(no_mangle)]
pub extern "C" fn cci_strerror(_endpoint: *const CEndpoint, status: c_uint) -> *const c_char {
    describe(status as c_int).as_ptr()
}

/// Answers the request of an event. A request stays unanswered where another try may succeed.
fn answer(
    call: &str,
    event: *const CEvent,
    answer: impl FnOnce(&mut Endpoint, RequestId) -> std::result::Result<(), CallError>,
) -> Result {
    let (mut state, number) = state::event(event.addr())?;
    let (is_answered, engine, request) = state.request(number).ok_or(EINVAL)?;
    let answered = answer(engine, request);
    let may_try_again = matches!(
        answered,
        Err(CallError::NoRoom | CallError::NoBuffers | CallError::NoIds | CallError::System(_))
    );
    *is_answered = !may_try_again;
    answered.map_err(|error| failed(call, &error))
}

/// `cci_accept`
#[unsafe(no_mangle)]
pub extern "C" fn cci_accept(conn_req: *const CEvent, context: *const c_void) -> c_int {
    let accept = |engine: &mut Endpoint, request| engine.accept(request, context_of(context)).map(drop);
    status(answer("cci_accept", conn_req, accept))
}

/// `cci_reject`
#[unsafe(no_mangle)]
pub extern "C" fn cci_reject(conn_req: *const CEvent) -> c_int {
    status(answer("cci_reject", conn_req, |engine, request| engine.reject(request)))
}

/// A time of C; `None` for null.
fn time(from: *const timeval) -> Result<Option<Duration>> {
    if from.is_null() {
        return Ok(None);
    }
    let timeval { tv_sec, tv_usec } = get(from)?;
    let micros = u32::try_from(tv_usec).ok().filter(|micros| *micros < 1_000_000);
    let (seconds, micros) = (u64::try_from(tv_sec).map_err(|_| EINVAL)?, micros.ok_or(EINVAL)?);
    Ok(Some(Duration::new(seconds, micros * 1000)))
}

/// `cci_connect`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_connect(
    endpoint: *const CEndpoint,
    server_uri: *const c_char,
    data_ptr: *const c_void,
    data_len: u32,
    conn_attribute: c_uint,
    context: *const c_void,
    _flags: c_int,
    timeout: *const timeval,
) -> c_int {
    status((|| {
        let (uri, timeout) = (text(server_uri)?, time(timeout)?);
        let attribute = attribute(conn_attribute).ok_or(EINVAL)?;
        if data_len > MAX_DATA {
            return Err(EINVAL);
        }
        let data = bytes(data_ptr, data_len as usize)?;
        let mut state = state::endpoint(endpoint.addr())?;
        let begun = state.engine.connect(uri, data, attribute, context_of(context), timeout);
        begun.map(drop).map_err(|error| failed("cci_connect", &error))
    })())
}

/// `cci_disconnect`
#[unsafe(no_mangle)]
pub extern "C" fn cci_disconnect(connection: *const CConnection) -> c_int {
    status((|| {
        let (mut state, id) = state::connection(connection.addr())?;
        state.disconnect(id).map_err(|error| failed("cci_disconnect", &error))
    })())
}

/// `cci_arm_os_handle`
#[unsafe(no_mangle)]
pub extern "C" fn cci_arm_os_handle(endpoint: *const CEndpoint, _flags: c_int) -> c_int {
    status(state::endpoint(endpoint.addr()).and(Err(ERR_NOT_IMPLEMENTED)))
}

/// `cci_get_event`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_event(endpoint: *const CEndpoint, event: *mut *const CEvent) -> c_int {
    status((|| {
        wanted(event)?;
        let address = state::endpoint(endpoint.addr())?.next_event()?;
        put_address(event, address)
    })())
}

/// `cci_return_event`
#[unsafe(no_mangle)]
pub extern "C" fn cci_return_event(event: *const CEvent) -> c_int {
    status((|| {
        let (mut state, number) = state::event(event.addr())?;
        state.return_event(number)
    })())
}

/// A time in microseconds; 0 for none.
fn micros(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

fn of_micros(micros: u32) -> Option<Duration> {
    (micros > 0).then(|| Duration::from_micros(micros.into()))
}

/// Sets an option of an endpoint.
fn set_endpoint(engine: &mut Endpoint, name: c_uint, value: u32) -> Result {
    match name {
        option::ENDPT_SEND_TIMEOUT => engine.set_send_timeout(of_micros(value)),
        option::ENDPT_KEEPALIVE_TIMEOUT => engine.set_keepalive(of_micros(value)),
        option::ENDPT_RECV_BUF_COUNT if value > 0 => engine.set_receive_buffers(value as usize),
        option::ENDPT_SEND_BUF_COUNT if value > 0 => engine.set_send_buffers(value as usize),
        _ => return Err(EINVAL),
    }
    Ok(())
}

/// `cci_set_opt`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_set_opt(handle: *const c_void, name: c_uint, val: *const c_void) -> c_int {
    status((|| {
        let value: u32 = match name {
            option::ENDPT_URI | option::ENDPT_RMA_ALIGN => return Err(EINVAL),
            _ => get(val.cast())?,
        };
        if name != option::CONN_SEND_TIMEOUT && name != option::CONN_KEEPALIVE_TIMEOUT {
            return set_endpoint(&mut state::endpoint(handle.addr())?.engine, name, value);
        }
        let (mut state, id) = state::connection(handle.addr())?;
        let (engine, time) = (&mut state.engine, of_micros(value));
        let set = match name {
            option::CONN_SEND_TIMEOUT => engine.set_connection_send_timeout(id, time),
            _ => engine.set_connection_keepalive(id, time),
        };
        set.map_err(|error| failed("cci_set_opt", &error))
    })())
}

/// `cci_get_opt`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_opt(handle: *const c_void, name: c_uint, val: *mut c_void) -> c_int {
    status((|| {
        wanted(val)?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        if name == option::CONN_SEND_TIMEOUT || name == option::CONN_KEEPALIVE_TIMEOUT {
            let (state, id) = state::connection(handle.addr())?;
            let time = match name {
                option::CONN_SEND_TIMEOUT => state.engine.connection_send_timeout(id),
                _ => state.engine.connection_keepalive(id),
            };
            return put(val.cast(), micros(time.map_err(|error| failed("cci_get_opt", &error))?));
        }
        let state = state::endpoint(handle.addr())?;
        let (engine, config) = (&state.engine, state.engine.config());
        match name {
            option::ENDPT_SEND_TIMEOUT => put(val.cast(), micros(config.send_timeout)),
            option::ENDPT_KEEPALIVE_TIMEOUT => put(val.cast(), micros(config.keepalive)),
            option::ENDPT_RECV_BUF_COUNT => put(val.cast(), count(config.receive_buffers)),
            option::ENDPT_SEND_BUF_COUNT => put(val.cast(), count(config.send_buffers)),
            option::ENDPT_URI => {
                let uri = CString::new(engine.uri().to_string()).map_err(|_| ENODEV)?;
                put(val.cast(), copy_for_program(&uri).ok_or(ENOMEM)?)
            }
            option::ENDPT_RMA_ALIGN => put(val.cast(), [0u32; 6]),
            _ => Err(EINVAL),
        }
    })())
}

/// What flags say of how the end of an operation is told. `others` are flags that the call takes besides.
#[inline]
fn told(flags: c_int, others: c_int) -> Result<SendFlags> {
    if flags & !(BLOCKING | NO_COPY | SILENT | others) != 0 {
        return Err(EINVAL);
    }
    // A blocking call tells all by itself.
    let told = match flags & (BLOCKING | SILENT) {
        0 => SendFlags::empty(),
        SILENT => SendFlags::SILENT,
        _ => SendFlags::AWAITED,
    };
    Ok(if flags & FENCE != 0 { told | SendFlags::FENCE } else { told })
}

/// Refuses bytes that are not to be copied and whose completion nothing tells.
#[inline]
fn may_be_silent(engine: &Endpoint, id: ConnectionId, flags: c_int) -> Result {
    if flags & (NO_COPY | SILENT) != NO_COPY | SILENT {
        return Ok(());
    }
    match engine.attribute(id) {
        Ok(Attribute::ReliableOrdered) => Ok(()),
        Ok(_) => Err(EINVAL),
        Err(error) => Err(failed("attribute", &error)),
    }
}

/// Ends a call that has begun an operation: a blocking one waits for its end.
#[inline]
fn begun(state: Locked, operation: OperationId, flags: c_int) -> Result {
    if flags & BLOCKING == 0 {
        return Ok(());
    }
    let number = state.number();
    drop(state);
    wait(number, operation)
}

/// Waits for the end of an operation. Others may use the endpoint meanwhile.
fn wait(endpoint: EndpointNumber, operation: OperationId) -> Result {
    let mut looked = 0;
    loop {
        let Some(mut state) = state::again(endpoint) else { return Err(ERR_DISCONNECTED) };
        state.engine.progress();
        if let Some(result) = state.engine.outcome(operation) {
            return match of_result(result) {
                SUCCESS => Ok(()),
                status => Err(status),
            };
        }
        drop(state);
        looked += 1;
        match looked {
            0..LOOKS => spin(),
            LOOKS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(SLEEP),
        }
    }
}

/// Sends a message.
#[inline]
fn send(connection: *const CConnection, parts: &[&[u8]], context: *const c_void, flags: c_int) -> Result {
    let told = told(flags, 0)?;
    let (mut state, id) = state::connection(connection.addr())?;
    may_be_silent(&state.engine, id, flags)?;
    let sent = state.engine.send(id, parts, context_of(context), told);
    let operation = sent.map_err(|error| failed("cci_send", &error))?;
    begun(state, operation, flags)
}

/// `cci_send`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_send(
    connection: *const CConnection,
    msg_ptr: *const c_void,
    msg_len: u32,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    status(bytes(msg_ptr, msg_len as usize).and_then(|bytes| send(connection, &[bytes], context, flags)))
}

/// `cci_sendv`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_sendv(
    connection: *const CConnection,
    data: *const iovec,
    iovcnt: u32,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    status(with_parts(data, iovcnt as usize, |parts| send(connection, parts, context, flags)).flatten())
}

/// `cci_rma_register`
///
/// # Safety
/// calls.1, calls.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_rma_register(
    endpoint: *const CEndpoint,
    start: *mut c_void,
    length: u64,
    flags: c_int,
    rma_handle: *mut *const CHandle,
) -> c_int {
    status((|| {
        wanted(rma_handle)?;
        wanted(start)?;
        if length == 0 || flags & !(READ | WRITE) != 0 {
            return Err(EINVAL);
        }
        let len = isize::try_from(length).map_err(|_| EINVAL)?.cast_unsigned();
        let mut rights = RmaRights::empty();
        rights.set(RmaRights::READ, flags & READ != 0);
        rights.set(RmaRights::WRITE, flags & WRITE != 0);
        let mut state = state::endpoint(endpoint.addr())?;
        // SAFETY: calls.2: the memory can be used until it is deregistered, and the program lets peers use it.
        let registered = unsafe { state.engine.register(RawSlice::new(start.cast(), len), rights) };
        let handle = registered.map_err(|error| failed("cci_rma_register", &error))?;
        put_address(rma_handle, state.add_handle(handle))
    })())
}

/// `cci_rma_deregister`
#[unsafe(no_mangle)]
pub extern "C" fn cci_rma_deregister(endpoint: *const CEndpoint, rma_handle: *const CHandle) -> c_int {
    status((|| {
        let mut state = state::endpoint(endpoint.addr())?;
        let (number, handle) = state.handle(rma_handle.addr())?;
        state.engine.deregister(handle).map_err(|error| failed("cci_rma_deregister", &error))?;
        state.remove_handle(number);
        Ok(())
    })())
}

/// `cci_rma`
///
/// # Safety
/// calls.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_rma(
    connection: *const CConnection,
    msg_ptr: *const c_void,
    msg_len: u32,
    local_handle: *const CHandle,
    local_offset: u64,
    remote_handle: *const CHandle,
    remote_offset: u64,
    data_len: u64,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    status((|| {
        let told = told(flags, READ | WRITE | FENCE)?;
        let kind = match flags & (READ | WRITE) {
            READ => RmaKind::Read,
            WRITE => RmaKind::Write,
            _ => return Err(EINVAL),
        };
        if data_len == 0 {
            return Err(EINVAL);
        }
        let message = [bytes(msg_ptr, msg_len as usize)?];
        let message = (msg_len > 0).then_some(message.as_slice());
        let remote = RmaHandle::from_words(get(remote_handle.cast::<[u64; 4]>())?);
        let (mut state, id) = state::connection(connection.addr())?;
        may_be_silent(&state.engine, id, flags)?;
        let (_, local) = state.handle(local_handle.addr())?;
        let (local, remote) = ((local, local_offset), (remote, remote_offset));
        let rma = state.engine.rma(id, kind, local, remote, data_len, message, context_of(context), told);
        let operation = rma.map_err(|error| failed("cci_rma", &error))?;
        begun(state, operation, flags)
    })())
}
