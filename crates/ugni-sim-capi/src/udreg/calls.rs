//! The functions of `udreg_pub.h`.
//!
//! No lock is held while a client's function runs: one that registers may well call `UDREG_Evict` when the NIC is short of
//! something. So a registration gets its place in the cache promised before it is made, and one that ends has left the cache before.
//!
//! # Invariants
//! - udreg_calls.1: what a caller gives to be read, attributes or a name, is null, which is refused, or valid for a read of its type; a
//!   name ends with a zero byte.
//! - udreg_calls.2: a pointer that a caller gives for a result is null, which is refused, or valid for one write of its type.
//! - udreg_calls.3: a client's functions can be called by any thread that calls into UDREG, with the contexts that came with them, until
//!   the cache is destroyed and no call on it is under way.
//! - udreg_calls.4: what stands in a cache is a `Box` of ours that whoever takes it out of the cache frees; only what the cache gives is
//!   followed, and never what a caller gives, which is but compared.
//! - udreg_calls.5: a client changes an entry only while it uses it. Nobody uses one that has left its cache; what a client still does to
//!   one whose cache it destroys is its own mistake, as it is with the genuine library.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use gasworks_gni_sys::udreg::*;
use parking_lot::{Mutex, RwLock};

use super::cache::{Cache, Stat, Then};

/// More registrations than any NIC has entries for: a cache for more is refused, as by the genuine library.
const MOST_ENTRIES: u32 = 1 << 16;
const MODES: u32 = UDREG_CC_MODE_USE_LAZY_DEREG
    | UDREG_CC_MODE_USE_EVICT_W_UNREG
    | UDREG_CC_MODE_USE_LARGE_PAGES
    | UDREG_CC_MODE_USE_KERNEL_CACHE;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At(NonNull<udreg_entry_t>);

// SAFETY: udreg_calls.4: it leads to a `Box`, and the one thread that has taken it out of its cache follows it.
unsafe impl Send for At {}

/// What a client wants called.
struct Client {
    register: udreg_device_reg_func,
    deregister: udreg_device_dereg_func,
    destroyed: Option<udreg_destructor>,
    contexts: [*mut c_void; 3],
}

// SAFETY: udreg_calls.3: any thread may call the functions, and contexts are only handed to those that they came with.
unsafe impl Send for Client {}
// SAFETY: udreg_calls.3: threads may call the functions at the same time; the fields do not change.
unsafe impl Sync for Client {}

struct State {
    cache: Cache<At>,
    /// How many accesses have no release yet.
    accesses: u64,
}

struct Open {
    client: Client,
    name: Vec<u8>,
    modes: u32,
    state: Mutex<State>,
}

/// The caches of this process: a handle is a number, looked up and never followed.
struct Table {
    last: usize,
    caches: BTreeMap<usize, Arc<Open>>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { last: 0, caches: BTreeMap::new() });

type Done<T = ()> = Result<T, udreg_return_t>;

const INVALID: udreg_return_t = UDREG_RC_INVALID_PARAM;

fn code(done: Done) -> udreg_return_t {
    done.err().unwrap_or(UDREG_RC_SUCCESS)
}

/// The cache of a handle, whoever has access to it.
fn any(handle: udreg_cache_handle_t) -> Done<Arc<Open>> {
    TABLE.read().caches.get(&handle.addr()).cloned().ok_or(INVALID)
}

/// Does something to a cache that is open.
fn with<T>(open: &Open, act: impl FnOnce(&mut State) -> Done<T>) -> Done<T> {
    let mut state = open.state.lock();
    match state.accesses {
        0 => Err(INVALID),
        _ => act(&mut state),
    }
}

fn put<T>(to: *mut T, value: T) {
    // SAFETY: udreg_calls.2: the callers here have seen that `to` is not null, so the client gave it for one write of a `T`.
    unsafe { to.write(value) };
}

impl Open {
    fn register(&self, address: *mut c_void, length: u64) -> *mut c_void {
        // SAFETY: udreg_calls.3: a call on the cache is under way, so its function can be called, with the context of its own.
        unsafe { (self.client.register)(address, length, self.client.contexts[0]) }
    }

    /// Ends a registration. What the client says to it changes nothing: it is gone from the cache.
    fn deregister(&self, data: *mut c_void) {
        // SAFETY: udreg_calls.3: the call that ends the registration is under way, so the function can be called, with its context.
        unsafe { (self.client.deregister)(data, self.client.contexts[1]) };
    }

    /// Ends what has left the cache, with the data that the client has left in it: some replace it.
    fn end(&self, left: At) {
        // SAFETY: udreg_calls.4: the cache gave `left`, which is a `Box` that nobody else frees; udreg_calls.5: no client uses it now.
        let entry = unsafe { Box::from_raw(left.0.as_ptr()) };
        self.deregister(entry.device_data);
    }

    fn leave(&self, entry: *mut udreg_entry_t, then: Then) -> Done {
        let at = At(NonNull::new(entry).ok_or(INVALID)?);
        let gone = with(self, |state| state.cache.leave(at, then).map_err(|_| INVALID))?;
        gone.into_iter().for_each(|gone| self.end(gone));
        Ok(())
    }
}

fn create(attr: *mut udreg_cache_attr_t) -> Done {
    if attr.is_null() {
        return Err(INVALID);
    }
    // SAFETY: udreg_calls.1: `attr` is not null, so the client lets it be read; it is copied.
    let attr = unsafe { attr.read() };
    let name: Vec<u8> = attr.cache_name.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
    let (Some(register), Some(deregister)) = (attr.device_reg_func, attr.device_dereg_func) else {
        return Err(INVALID);
    };
    let named = (1..=UDREG_MAX_CACHENAME_LEN).contains(&name.len());
    if !named || attr.max_entries == 0 || attr.modes & !MODES != 0 {
        return Err(INVALID);
    }
    if attr.max_entries > MOST_ENTRIES {
        return Err(UDREG_RC_NO_SPACE);
    }
    let mut table = TABLE.write();
    if table.caches.values().any(|other| other.name == name) {
        return Err(INVALID);
    }
    let contexts = [attr.reg_context, attr.dreg_context, attr.destructor_context];
    let client = Client { register, deregister, destroyed: attr.destructor_callback, contexts };
    let cache = Cache::new(attr.max_entries as usize);
    let state = Mutex::new(State { cache, accesses: 0 });
    table.last += 1;
    let number = table.last;
    table.caches.insert(number, Arc::new(Open { client, name, modes: attr.modes, state }));
    Ok(())
}

fn access(name: *const c_char, handle: *mut udreg_cache_handle_t) -> Done {
    if name.is_null() || handle.is_null() {
        return Err(INVALID);
    }
    // SAFETY: udreg_calls.1: `name` is not null, so it ends with a zero byte; it is not used after this call.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let table = TABLE.read();
    let (number, open) = table.caches.iter().find(|(_, open)| open.name == name).ok_or(UDREG_RC_NO_MATCH)?;
    open.state.lock().accesses += 1;
    put(handle, std::ptr::without_provenance_mut(*number));
    Ok(())
}

fn destroy(handle: udreg_cache_handle_t) -> Done {
    let open = TABLE.write().caches.remove(&handle.addr()).ok_or(INVALID)?;
    let left = {
        let mut state = open.state.lock();
        state.accesses = 0;
        state.cache.drain()
    };
    left.into_iter().for_each(|entry| open.end(entry));
    if let Some(destroyed) = open.client.destroyed {
        // SAFETY: udreg_calls.3: this call has taken the cache out of the table, so it alone calls the function, with its context.
        unsafe { destroyed(open.client.contexts[2]) };
    }
    Ok(())
}

fn register(
    handle: udreg_cache_handle_t,
    address: *mut c_void,
    length: u64,
    entry: *mut *mut udreg_entry_t,
) -> Done {
    let open = any(handle)?;
    let start = address.addr() as u64;
    let end = start.checked_add(length).filter(|end| *end > start).ok_or(INVALID)?;
    if entry.is_null() {
        return Err(INVALID);
    }
    let found = with(&open, |state| match state.cache.find(start, end) {
        Some(found) => Ok(Some(found)),
        None if state.cache.promise() => Ok(None),
        None => Err(UDREG_RC_NO_SPACE),
    })?;
    if let Some(found) = found {
        put(entry, found.0.as_ptr());
        return Ok(());
    }
    let data = open.register(address, length);
    let mut state = open.state.lock();
    let failed = match data {
        UDREG_DEVICE_REG_FAILED => Some(INVALID),
        _ if data.is_null() => Some(UDREG_RC_NO_SPACE),
        // It was released or destroyed meanwhile.
        _ if state.accesses == 0 => Some(INVALID),
        _ => None,
    };
    if let Some(failed) = failed {
        state.cache.take_back();
        drop(state);
        if !data.is_null() && data != UDREG_DEVICE_REG_FAILED {
            open.deregister(data);
        }
        return Err(failed);
    }
    let at = At(NonNull::from(Box::leak(Box::new(udreg_entry_t { device_data: data }))));
    state.cache.enter(at, start, end);
    put(entry, at.0.as_ptr());
    Ok(())
}

fn unregister(handle: udreg_cache_handle_t, entry: *mut udreg_entry_t) -> Done {
    let open = any(handle)?;
    let is = |mode: u32| open.modes & mode != 0;
    let then = match (is(UDREG_CC_MODE_USE_LAZY_DEREG), is(UDREG_CC_MODE_USE_EVICT_W_UNREG)) {
        (false, _) => Then::Drop,
        (true, false) => Then::Keep,
        (true, true) => Then::KeepOrMakeRoom,
    };
    open.leave(entry, then)
}

fn evict(handle: udreg_cache_handle_t) -> Done {
    let open = any(handle)?;
    let evicted = with(&open, |state| state.cache.evict().ok_or(UDREG_RC_NO_MATCH))?;
    open.end(evicted);
    Ok(())
}

fn stat(number: udreg_stat_t) -> Done<Stat> {
    match number {
        UDREG_STAT_CACHE_HIT => Ok(Stat::Hit),
        UDREG_STAT_CACHE_MISS => Ok(Stat::Miss),
        UDREG_STAT_CACHE_EVICTED => Ok(Stat::Evicted),
        _ => Err(INVALID),
    }
}

fn get_stat(handle: udreg_cache_handle_t, number: udreg_stat_t, value: *mut u64) -> Done {
    let (open, stat) = (any(handle)?, stat(number)?);
    if value.is_null() {
        return Err(INVALID);
    }
    put(value, with(&open, |state| Ok(state.cache.stat(stat)))?);
    Ok(())
}

/// Unless it is to fail now, with this code.
fn may_go_on(call: &str, code: udreg_return_t) -> Result<(), udreg_return_t> {
    if crate::ugni::is_due(call) { Err(code) } else { Ok(()) }
}

/// `UDREG_CacheCreate`
///
/// # Safety
/// udreg_calls.1, udreg_calls.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn UDREG_CacheCreate(attr: *mut udreg_cache_attr_t) -> udreg_return_t {
    code(may_go_on("UDREG_CacheCreate", UDREG_RC_NO_SPACE).and_then(|()| create(attr)))
}

/// `UDREG_CacheAccess`
///
/// # Safety
/// udreg_calls.1, udreg_calls.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn UDREG_CacheAccess(
    name: *mut c_char,
    handle: *mut udreg_cache_handle_t,
) -> udreg_return_t {
    code(access(name, handle))
}

/// `UDREG_CacheRelease`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_CacheRelease(handle: udreg_cache_handle_t) -> udreg_return_t {
    let release = |state: &mut State| {
        state.accesses -= 1;
        Ok(())
    };
    code(any(handle).and_then(|open| with(&open, release)))
}

/// `UDREG_CacheDestroy`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_CacheDestroy(handle: udreg_cache_handle_t) -> udreg_return_t {
    code(destroy(handle))
}

/// `UDREG_Register`
///
/// # Safety
/// udreg_calls.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn UDREG_Register(
    handle: udreg_cache_handle_t,
    address: *mut c_void,
    length: u64,
    entry: *mut *mut udreg_entry_t,
) -> udreg_return_t {
    let goes_on = may_go_on("UDREG_Register", UDREG_RC_NO_SPACE);
    code(goes_on.and_then(|()| register(handle, address, length, entry)))
}

/// `UDREG_Unregister`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_Unregister(
    handle: udreg_cache_handle_t,
    entry: *mut udreg_entry_t,
) -> udreg_return_t {
    code(unregister(handle, entry))
}

/// `UDREG_DecrRefcount`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_DecrRefcount(
    handle: udreg_cache_handle_t,
    entry: *mut udreg_entry_t,
) -> udreg_return_t {
    code(any(handle).and_then(|open| open.leave(entry, Then::Keep)))
}

/// `UDREG_Evict`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_Evict(handle: udreg_cache_handle_t) -> udreg_return_t {
    code(may_go_on("UDREG_Evict", UDREG_RC_NO_MATCH).and_then(|()| evict(handle)))
}

/// Says that this is the software NIC's library, of the layout that its header has: a client that knows no other asks for it.
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_udreg_layout() -> u32 {
    SOFTWARE_NUMBER
}

/// `UDREG_GetStat`
///
/// # Safety
/// udreg_calls.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn UDREG_GetStat(
    handle: udreg_cache_handle_t,
    stat: udreg_stat_t,
    value: *mut u64,
) -> udreg_return_t {
    code(get_stat(handle, stat, value))
}

/// `UDREG_ResetStat`
#[unsafe(no_mangle)]
pub extern "C" fn UDREG_ResetStat(handle: udreg_cache_handle_t, number: udreg_stat_t) -> udreg_return_t {
    let reset = |stat| {
        with(&*any(handle)?, |state| {
            state.cache.reset(stat);
            Ok(())
        })
    };
    code(stat(number).and_then(reset))
}
