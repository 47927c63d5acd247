//! UDREG, the cache of registrations that other clients of uGNI use, where a job asks for it: the only place that calls it.
//!
//! It keeps what was registered for a transfer, finds it again for the next one, and learns from a module of the kernel when memory was
//! unmapped meanwhile. Like uGNI it is not made for several threads at once: who has the domain has its cache. It registers by functions
//! of ours, which it calls from within its own; so these take no lock, and use what they are handed alone.
//!
//! # Invariants
//! - udreg.1: the cache's handle is the library's, and is not used after it was destroyed: that happens once, in `drop`.
//! - udreg.2: the context of our functions is a [`Device`] that stays where it is, as it is, until the cache was destroyed. Its NIC stays
//!   attached until then: the domain gives up its cache first. They do not panic.
//! - udreg.3: what they return for a registration is a [`Registered`] in a box of ours, which stands in its entry until it is given back to
//!   them, once.
//! - udreg.4: an entry is looked at, and handed to the library, only while it is used: it then stands in `used`.
//! - udreg.5: a call's pointers are to values of this thread. Attributes are as large as the library's layout says.

use crate::error::GniError;
use crate::handle::Handle;
use crate::pinned::Pinned;
use gasworks_gni_sys::udreg::*;
use gasworks_gni_sys::*;
use gasworks_sync::RawSlice;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;

/// What the cache is called in this process.
const NAME: &[u8] = b"gasworks";

type Register = unsafe extern "C" fn(
    gni_nic_handle_t,
    u64,
    u64,
    gni_cq_handle_t,
    u32,
    u32,
    *mut gni_mem_handle_t,
) -> gni_return_t;
type Deregister = unsafe extern "C" fn(gni_nic_handle_t, *mut gni_mem_handle_t) -> gni_return_t;

/// The library, and its layout.
pub(crate) type Known = (Udreg, Layout);

/// What registers: uGNI's functions, and what they are handed.
pub(crate) struct Device {
    pub register: Register,
    pub deregister: Deregister,
    pub nic: gni_nic_handle_t,
    /// `GNI_MEM_*`.
    pub flags: u32,
    /// What the library is given where memory could not be registered for another reason than lack of room.
    pub failed: *mut c_void,
    /// How much more may be registered.
    pub pinned: Pinned,
}

/// What stands in an entry: the handle, and how many bytes that pins.
struct Registered {
    handle: gni_mem_handle_t,
    pages: u64,
}

/// A registration that is used, by the address of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Use(pub u64);

/// An open cache.
pub(crate) struct Cache {
    udreg: Udreg,
    layout: Layout,
    handle: udreg_cache_handle_t,
    device: *mut Device,
    /// Entries that are used, and how often.
    used: HashMap<Use, (*mut udreg_entry_t, usize)>,
}

/// Registers memory for the library.
///
/// # Safety
/// udreg.2: `context` is that device. The bytes are mapped.
unsafe extern "C" fn register(address: *mut c_void, len: u64, context: *mut c_void) -> *mut c_void {
    // SAFETY: udreg.2: `context` is a `Device`, which nobody changes or frees before the cache was destroyed.
    let Device { register, nic, flags, failed, pinned, .. } = unsafe { &*context.cast::<Device>() };
    let (mut handle, address) = (gni_mem_handle_t::zeroed(), address.addr() as u64);
    // As if the NIC had no room: the library gives up what nobody uses, and asks again.
    let Some(pages) = pinned.take(address, len) else { return null_mut() };
    // SAFETY: udreg.2: the NIC is attached. udreg.5: `handle` is of this call. The caller of `take` keeps the bytes mapped.
    let code = unsafe { register(*nic, address, len, null_mut(), *flags, u32::MAX, &raw mut handle) };
    if code == GNI_RC_SUCCESS {
        return Box::into_raw(Box::new(Registered { handle, pages })).cast();
    }
    pinned.give(pages);
    if code == GNI_RC_ERROR_RESOURCE { null_mut() } else { *failed }
}

/// Ends a registration for the library.
///
/// # Safety
/// udreg.2: `context` is that device. udreg.3: `data` is what [`register`] has returned, and comes back once.
unsafe extern "C" fn deregister(data: *mut c_void, context: *mut c_void) -> u32 {
    // SAFETY: udreg.2: `context` is the `Device` of this cache, which is not destroyed yet.
    let Device { deregister, nic, pinned, .. } = unsafe { &*context.cast::<Device>() };
    // SAFETY: udreg.3: `register` made `data` of a box, and the library gives it back once.
    let mut registered = unsafe { Box::from_raw(data.cast::<Registered>()) };
    pinned.give(registered.pages);
    // SAFETY: udreg.2: the NIC is still attached. udreg.5: the handle lies in the box, which is this call's now.
    unsafe { deregister(*nic, &raw mut registered.handle) }
}

/// What a code is called.
fn name_of(layout: &Layout, code: udreg_return_t) -> &'static str {
    let names = [
        (layout.success, "UDREG_RC_SUCCESS"),
        (layout.invalid_param, "UDREG_RC_INVALID_PARAM"),
        (layout.no_space, "UDREG_RC_NO_SPACE"),
        (layout.no_match, "UDREG_RC_NO_MATCH"),
        (layout.no_device, "UDREG_RC_ERROR_NO_DEVICE"),
    ];
    let name = names.into_iter().find(|(number, _)| *number == u64::from(code));
    name.map_or("a code that is none", |(_, name)| name)
}

/// The library's structure of attributes, of which no more is known than the layout says: all else is zero.
struct Attributes(Vec<u64>);

impl Attributes {
    fn new(layout: &Layout) -> Self {
        Self(vec![0; (layout.size as usize).div_ceil(8)])
    }

    /// As many of these bytes as the field has, and it ends with zeros.
    fn set(&mut self, Field { offset, size }: Field, bytes: &[u8]) {
        for (at, byte) in (offset as usize..).zip(bytes.iter().take(size as usize)) {
            if let Some(word) = self.0.get_mut(at / 8) {
                *word |= u64::from(*byte) << (8 * (at % 8));
            }
        }
    }

    fn as_mut_ptr(&mut self) -> *mut udreg_cache_attr_t {
        self.0.as_mut_ptr().cast()
    }
}

impl Cache {
    /// A cache for so many registrations.
    ///
    /// # Errors
    /// [`GniError::Udreg`].
    pub fn open((udreg, layout): Known, device: Device, entries: u32) -> Result<Self, GniError> {
        let device = Box::into_raw(Box::new(device));
        // From here on `drop` ends what was begun.
        let mut this = Self { udreg, layout, handle: null_mut(), device, used: HashMap::new() };
        let mut name = NAME.to_vec();
        name.resize((layout.cache_name.size as usize).max(NAME.len()) + 1, 0);
        let pointer = |address: usize| (address as u64).to_le_bytes();
        let mut attributes = Attributes::new(&layout);
        for (field, number) in [
            (layout.max_entries, u64::from(entries)),
            (layout.modes, layout.kernel_cache | layout.lazy_deregistration),
        ] {
            attributes.set(field, &number.to_le_bytes());
        }
        attributes.set(layout.cache_name, NAME);
        for field in [layout.reg_context, layout.dreg_context] {
            attributes.set(field, &pointer(device.expose_provenance()));
        }
        attributes.set(layout.device_reg_func, &pointer(register as *const () as usize));
        attributes.set(layout.device_dereg_func, &pointer(deregister as *const () as usize));
        let check = |call, code: udreg_return_t| match u64::from(code) == layout.success {
            true => Ok(()),
            false => Err(GniError::Udreg { call, number: code, code: name_of(&layout, code), entries }),
        };
        // SAFETY: udreg.2: `device`, the context, is freed in `drop` alone. udreg.5: the attributes are as large as the layout says.
        check("UDREG_CacheCreate", unsafe { (udreg.UDREG_CacheCreate)(attributes.as_mut_ptr()) })?;
        // SAFETY: udreg.5: `name` is of this call, and ends with a zero; the handle is written to `this.handle`.
        let code = unsafe { (udreg.UDREG_CacheAccess)(name.as_mut_ptr().cast(), &raw mut this.handle) };
        check("UDREG_CacheAccess", code).map(|()| this)
    }

    /// A registration that holds these bytes, which was there or is made.
    ///
    /// # Errors
    /// The name of the code: nothing could be registered, even with nothing else kept.
    ///
    /// # Safety
    /// The bytes are mapped, and stay so until [`give`](Self::give).
    pub unsafe fn take(&mut self, bytes: RawSlice) -> Result<(Handle, Use), &'static str> {
        let (address, len) = (bytes.as_ptr().cast(), bytes.len() as u64);
        loop {
            let mut entry = null_mut();
            // SAFETY: udreg.1: the cache is open. udreg.5: `entry` is of this call. The caller keeps the bytes mapped until `give`.
            let code = unsafe { (self.udreg.UDREG_Register)(self.handle, address, len, &raw mut entry) };
            if u64::from(code) == self.layout.success {
                return Ok(self.enter(entry));
            }
            // Each time one that is kept goes, so this ends. With none left it is for the caller to do without.
            if u64::from(code) != self.layout.no_space || !self.evict() {
                return Err(name_of(&self.layout, code));
            }
        }
    }

    fn is_done(&self, code: udreg_return_t) -> bool {
        u64::from(code) == self.layout.success
    }

    /// Throws out one that nobody uses; whether there was one.
    fn evict(&self) -> bool {
        // SAFETY: udreg.1: the cache is open until `drop`, and its handle is all that the call is given.
        self.is_done(unsafe { (self.udreg.UDREG_Evict)(self.handle) })
    }

    /// One use more of an entry that the library has just given.
    fn enter(&mut self, entry: *mut udreg_entry_t) -> (Handle, Use) {
        // SAFETY: udreg.4: the library has just given `entry`, which is used from now on, and has set this field of it.
        let data = unsafe {
            entry.byte_add(self.layout.device_data.offset as usize).cast::<*mut Registered>().read()
        };
        // SAFETY: udreg.3: `data` is a box that `register` made, and stands in the entry while that is used.
        let handle = unsafe { (*data).handle };
        let number = Use(entry.addr() as u64);
        self.used.entry(number).or_insert((entry, 0)).1 += 1;
        (Handle { words: [handle.qword1, handle.qword2] }, number)
    }

    /// A registration is not used any more; whether it was.
    pub fn give(&mut self, number: Use) -> bool {
        let Some((entry, uses)) = self.used.get_mut(&number) else { return false };
        let entry = *entry;
        *uses -= 1;
        if *uses == 0 {
            self.used.remove(&number);
        }
        // SAFETY: udreg.1: the cache is open. udreg.4: `entry` was in `used`, for the use that ends here.
        self.is_done(unsafe { (self.udreg.UDREG_DecrRefcount)(self.handle, entry) })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let mut is_gone = true;
        if !self.handle.is_null() {
            // SAFETY: udreg.1: the handle is not null, so the cache was opened, and it is destroyed here alone.
            is_gone = self.is_done(unsafe {
                (self.udreg.UDREG_CacheRelease)(self.handle);
                (self.udreg.UDREG_CacheDestroy)(self.handle)
            });
        }
        if is_gone {
            // SAFETY: udreg.2: made by `Box::into_raw` in `open`; the cache was destroyed or never opened: our functions get it no more.
            drop(unsafe { Box::from_raw(self.device) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::ffi::c_char;

    thread_local! {
        /// What the NIC says to the next registration.
        static REFUSAL: Cell<gni_return_t> = const { Cell::new(GNI_RC_SUCCESS) };
        static REGISTERED: Cell<u64> = const { Cell::new(0) };
        /// What the library says to the next calls, the last one first, and what was asked of it.
        static SAYS: RefCell<Vec<udreg_return_t>> = const { RefCell::new(Vec::new()) };
        static ASKED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
        static ENTRY: Cell<*mut udreg_entry_t> = const { Cell::new(null_mut()) };
    }

    /// A cache of one entry, which says what it was told to.
    fn says(call: &'static str) -> udreg_return_t {
        ASKED.with_borrow_mut(|asked| asked.push(call));
        SAYS.with_borrow_mut(|says| says.pop().unwrap_or(UDREG_RC_SUCCESS))
    }

    unsafe extern "C" fn mem_register(
        _: gni_nic_handle_t,
        address: u64,
        len: u64,
        _: gni_cq_handle_t,
        flags: u32,
        _: u32,
        handle: *mut gni_mem_handle_t,
    ) -> gni_return_t {
        assert_eq!(flags, GNI_MEM_RELAXED_PI_ORDERING);
        if REFUSAL.get() == GNI_RC_SUCCESS {
            REGISTERED.set(REGISTERED.get() + 1);
            // SAFETY: udreg.5: `register` hands the address of a handle of its own.
            unsafe { *handle = gni_mem_handle_t { qword1: address, qword2: len } };
        }
        REFUSAL.get()
    }

    unsafe extern "C" fn mem_deregister(_: gni_nic_handle_t, _: *mut gni_mem_handle_t) -> gni_return_t {
        REGISTERED.set(REGISTERED.get() - 1);
        GNI_RC_SUCCESS
    }

    unsafe extern "C" fn create(attributes: *mut udreg_cache_attr_t) -> udreg_return_t {
        // SAFETY: udreg.5: `open` hands attributes as large as this structure, of zeros and what it has set.
        let attributes = unsafe { &*attributes };
        assert_eq!((attributes.max_entries, attributes.cache_name[7], attributes.cache_name[8]), (7, 115, 0));
        says("create")
    }

    unsafe extern "C" fn access(_: *mut c_char, handle: *mut udreg_cache_handle_t) -> udreg_return_t {
        // SAFETY: udreg.5: `open` hands the address of its own field `handle`.
        unsafe { *handle = std::ptr::without_provenance_mut(1) };
        says("access")
    }

    unsafe extern "C" fn release(_: udreg_cache_handle_t) -> udreg_return_t {
        says("release")
    }

    unsafe extern "C" fn destroy(_: udreg_cache_handle_t) -> udreg_return_t {
        says("destroy")
    }

    unsafe extern "C" fn evict(_: udreg_cache_handle_t) -> udreg_return_t {
        says("evict")
    }

    unsafe extern "C" fn find(
        _: udreg_cache_handle_t,
        _: *mut c_void,
        _: u64,
        entry: *mut *mut udreg_entry_t,
    ) -> udreg_return_t {
        let code = says("register");
        if code == UDREG_RC_SUCCESS {
            // SAFETY: udreg.5: `take` hands the address of its own `entry`.
            unsafe { *entry = ENTRY.get() };
        }
        code
    }

    unsafe extern "C" fn leave(_: udreg_cache_handle_t, entry: *mut udreg_entry_t) -> udreg_return_t {
        assert_eq!(entry, ENTRY.get());
        says("leave")
    }

    const FAKE: Udreg = Udreg {
        UDREG_CacheCreate: create,
        UDREG_CacheAccess: access,
        UDREG_CacheRelease: release,
        UDREG_CacheDestroy: destroy,
        UDREG_Register: find,
        UDREG_Unregister: leave,
        UDREG_DecrRefcount: leave,
        UDREG_Evict: evict,
        UDREG_GetStat: None,
        UDREG_ResetStat: None,
    };

    fn device() -> Device {
        let nic = null_mut();
        let (flags, failed) = (GNI_MEM_RELAXED_PI_ORDERING, UDREG_DEVICE_REG_FAILED);
        let pinned = Pinned::new(4096, 4096);
        Device { register: mem_register, deregister: mem_deregister, nic, flags, failed, pinned }
    }

    fn asked() -> Vec<&'static str> {
        ASKED.take()
    }

    #[test]
    fn our_functions_say_why_there_is_no_registration() {
        let mut device = device();
        let context = (&raw mut device).cast();
        let ask = |refusal| {
            REFUSAL.set(refusal);
            // SAFETY: udreg.2: `context` is `device`, which lives until the test ends; this NIC does not look at the bytes.
            unsafe { register(std::ptr::without_provenance_mut(64), 9, context) }
        };
        assert!(ask(GNI_RC_ERROR_RESOURCE).is_null());
        assert_eq!(ask(GNI_RC_INVALID_PARAM), UDREG_DEVICE_REG_FAILED);
        assert_eq!(ask(GNI_RC_PERMISSION_ERROR), UDREG_DEVICE_REG_FAILED);
        let data = ask(GNI_RC_SUCCESS);
        // SAFETY: udreg.3: `register` has just returned `data`, and it was not given back yet.
        assert_eq!(unsafe { (*data.cast::<Registered>()).handle.qword2 }, 9);
        assert_eq!(REGISTERED.get(), 1);
        assert!(ask(GNI_RC_SUCCESS).is_null(), "no more may be pinned");
        // SAFETY: udreg.2: `context` is `device`, which is still there. udreg.3: `data` is given back here, once.
        assert_eq!(unsafe { deregister(data, context) }, GNI_RC_SUCCESS);
        assert_eq!(REGISTERED.get(), 0);
        let again = ask(GNI_RC_SUCCESS);
        // What was refused or is over pins nothing.
        // SAFETY: udreg.2: `context` is `device`, which is still there. udreg.3: `again` is another box, given back here, once.
        assert_eq!((again.is_null(), unsafe { deregister(again, context) }), (false, GNI_RC_SUCCESS));
    }

    #[test]
    fn what_is_kept_makes_room_until_there_is_nothing_left() {
        let handle = gni_mem_handle_t { qword1: 3, qword2: 4 };
        let mut registered = Registered { handle, pages: 0 };
        let mut entry = udreg_entry_t { device_data: (&raw mut registered).cast() };
        ENTRY.set(&raw mut entry);
        let mut cache = Cache::open((FAKE, SOFTWARE), device(), 7).expect("the library agrees");
        assert_eq!(asked(), ["create", "access"]);
        SAYS.set(vec![UDREG_RC_SUCCESS, UDREG_RC_SUCCESS, UDREG_RC_NO_SPACE]);
        // SAFETY: no bytes are named, and the fake library looks at none.
        let (found, number) = unsafe { cache.take(RawSlice::EMPTY) }.expect("there was room in the end");
        assert_eq!((found.words, asked()), ([3, 4], vec!["register", "evict", "register"]));
        SAYS.set(vec![UDREG_RC_NO_MATCH, UDREG_RC_NO_SPACE, UDREG_RC_SUCCESS, UDREG_RC_NO_SPACE]);
        // SAFETY: no bytes are named, and the fake library says that it has no room.
        assert_eq!(unsafe { cache.take(RawSlice::EMPTY) }, Err("UDREG_RC_NO_SPACE"));
        assert_eq!(asked(), ["register", "evict", "register", "evict"]);
        SAYS.set(vec![UDREG_RC_INVALID_PARAM]);
        // SAFETY: no bytes are named, and the fake library says that a parameter is wrong.
        assert_eq!(unsafe { cache.take(RawSlice::EMPTY) }, Err("UDREG_RC_INVALID_PARAM"));
        assert_eq!(asked(), ["register"], "what cannot be registered needs no room");
        // SAFETY: no bytes are named; the fake library gives `entry` again, which lives until the test ends.
        assert_eq!(unsafe { cache.take(RawSlice::EMPTY) }, Ok((found, number)), "it is found again");
        assert!(!cache.give(Use(number.0 + 1)));
        assert!(cache.give(number) && cache.give(number) && !cache.give(number), "as often as it was taken");
        assert_eq!(asked(), ["register", "leave", "leave"]);
        drop(cache);
        assert_eq!(asked(), ["release", "destroy"]);
    }

    #[test]
    fn a_cache_that_cannot_be_made_is_told_with_what_helps() {
        SAYS.set(vec![UDREG_RC_NO_SPACE]);
        let refused =
            Cache::open((FAKE, SOFTWARE), device(), 7).err().expect("the library refuses").to_string();
        for wanted in ["UDREG_CacheCreate() failed with rc=2", "GASNET_GNI_MEMREG", "7", "GASNET_USE_UDREG=0"]
        {
            assert!(refused.contains(wanted), "{refused}");
        }
        assert_eq!(asked(), ["create"], "what was not made is not ended");
    }
}
