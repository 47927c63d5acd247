//! What C programs pass to the library.
//!
//! # Invariants
//! - raw.1: a pointer for a result is null, which is refused, or valid for a write of its type.
//! - raw.2: a pointer to a structure, an array or a buffer is null, which is refused, or valid for reads of it; its length comes with
//!   it.
//! - raw.3: a descriptor that was posted stays valid for reads and writes until the last of its events is taken: the library's
//!   specification asks that of its callers.
//! - raw.4: a function that is given with a queue can be called, with what was given with it, as long as the queue is there; so can one
//!   that is given with a shared message queue, with a message besides, which is its own until it returns.
//! - raw.5: a pointer to what a collective engine delivers is null, which is refused, or valid for atomic reads.
//! - raw.6: memory that is registered, or posted, is the caller's to be written to (process.1 of `gasworks_ugni_sim`).

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::OsError;
use gasworks_os::memfd::{self, Mapping};
use gasworks_sync::atomic::{AtomicU64, Ordering::Acquire};
use gasworks_ugni_sim::nic::{Part, Received};
use gasworks_ugni_sim::process::Process;

use crate::call::{self, MessageId};
use crate::strict;

use super::object::{
    CHANNELS, COLLECTIVES, Chan, Collective, DEVICES, DOMAINS, Device, Domain, ENDS, ERRORS, End, Errors,
    MESSAGES, Messages, QUEUES, Queue,
};

/// What a call gives: nothing, or a code.
pub(super) type Answer = Result<(), gni_return_t>;

/// How an argument of C becomes one of ours.
pub(super) trait Argument: Sized {
    /// What C passes.
    type Raw;

    /// Takes it.
    ///
    /// # Safety
    /// The invariants of this module.
    ///
    /// # Errors
    /// What the call gives for it.
    unsafe fn take(raw: Self::Raw) -> Result<Self, gni_return_t>;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            type Raw = Self;

            unsafe fn take(raw: Self) -> Result<Self, gni_return_t> {
                Ok(raw)
            }
        }
    )*};
}

plain!(u8, u16, u32, u64, c_int);

impl Argument for MessageId {
    type Raw = u32;

    unsafe fn take(raw: u32) -> Result<Self, gni_return_t> {
        call::concerns(raw.into());
        Ok(Self(raw))
    }
}

/// Where a result goes.
pub(super) struct Out<T>(*mut T);

impl<T> Argument for Out<T> {
    type Raw = *mut T;

    unsafe fn take(raw: *mut T) -> Result<Self, gni_return_t> {
        if raw.is_null() { Err(GNI_RC_INVALID_PARAM) } else { Ok(Self(raw)) }
    }
}

impl<T> Out<T> {
    /// Writes it.
    pub(super) fn set(&self, value: T) {
        // SAFETY: raw.1: it was seen not to be null when it was taken, so it is valid for one write, but may lie at any address.
        unsafe { self.0.write_unaligned(value) }
    }

    /// What is there before, where the call asks for that.
    pub(super) fn before(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: raw.2: the call reads what it then writes, so it is valid for a read as well; it may lie at any address.
        unsafe { self.0.read_unaligned() }
    }
}

/// Where a result goes that not everybody wants.
pub(super) struct Wanted<T>(Option<Out<T>>);

impl<T> Argument for Wanted<T> {
    type Raw = *mut T;

    unsafe fn take(raw: *mut T) -> Result<Self, gni_return_t> {
        Ok(Self((!raw.is_null()).then_some(Out(raw))))
    }
}

impl<T> Wanted<T> {
    /// Writes it.
    pub(super) fn set(&self, value: T) {
        if let Some(out) = &self.0 {
            out.set(value);
        }
    }
}

/// A structure, copied when the call begins.
pub(super) struct In<T>(pub(super) T);

impl<T: Copy> Argument for In<T> {
    type Raw = *mut T;

    unsafe fn take(raw: *mut T) -> Result<Self, gni_return_t> {
        if raw.is_null() {
            return Err(GNI_RC_INVALID_PARAM);
        }
        // SAFETY: raw.2: `raw` is not null, so it is valid for a read, which copies it; it may lie at any address.
        Ok(Self(unsafe { raw.read_unaligned() }))
    }
}

/// A structure that the call changes.
pub(super) struct InOut<T>(pub(super) T, pub(super) Out<T>);

impl<T: Copy> Argument for InOut<T> {
    type Raw = *mut T;

    unsafe fn take(raw: *mut T) -> Result<Self, gni_return_t> {
        // SAFETY: raw.1 and raw.2: the caller promises that `raw` is null, which is refused, or valid for a read and a write.
        unsafe { Ok(Self(In::take(raw)?.0, Out::take(raw)?)) }
    }
}

/// The first word of what a collective engine delivers. Who has read it there may read the others.
pub(super) struct Control(pub(super) u64);

impl Argument for Control {
    type Raw = *mut gni_ce_result_t;

    unsafe fn take(raw: *mut gni_ce_result_t) -> Result<Self, gni_return_t> {
        if raw.is_null() || !raw.is_aligned() {
            return Err(GNI_RC_INVALID_PARAM);
        }
        // SAFETY: raw.5: `raw` is aligned and not null, so its first field, the word of control, may be read atomically; the reference
        // ends before this returns.
        let control = unsafe { &*raw.cast::<AtomicU64>() };
        Ok(Self(control.load(Acquire)))
    }
}

/// Memory that comes with a length, in another argument.
pub(super) struct Room<T>(*mut T);

impl<T> Argument for Room<T> {
    type Raw = *mut T;

    unsafe fn take(raw: *mut T) -> Result<Self, gni_return_t> {
        if raw.is_null() { Err(GNI_RC_INVALID_PARAM) } else { Ok(Self(raw)) }
    }
}

impl<T: Copy> Room<T> {
    /// Copies so many out.
    pub(super) fn read(&self, len: usize) -> Vec<T> {
        // SAFETY: raw.2: C says that `len` elements are there, which are read one by one; they may lie at any address.
        (0..len).map(|at| unsafe { self.0.add(at).read_unaligned() }).collect()
    }

    /// Fills the first of them.
    pub(super) fn write(&self, values: &[T]) {
        for (at, value) in values.iter().enumerate() {
            // SAFETY: raw.1: the caller has seen that C gave room for all of `values`; they may lie at any address.
            unsafe { self.0.add(at).write_unaligned(*value) };
        }
    }
}

/// A buffer for text, whose length comes in another argument.
pub(super) struct Text(*mut c_void);

impl Argument for Text {
    type Raw = *mut c_void;

    unsafe fn take(raw: *mut c_void) -> Result<Self, gni_return_t> {
        if raw.is_null() { Err(GNI_RC_INVALID_PARAM) } else { Ok(Self(raw)) }
    }
}

impl Text {
    /// Writes a text with a zero byte after it; `len` bytes are there.
    ///
    /// # Errors
    /// `GNI_RC_SIZE_ERROR`: they are too few.
    pub(super) fn set(&self, text: &str, len: u32) -> Answer {
        if text.len() >= len as usize {
            return Err(GNI_RC_SIZE_ERROR);
        }
        let all: Vec<c_char> = text.bytes().chain([0]).map(|byte| byte as c_char).collect();
        Room(self.0.cast()).write(&all);
        Ok(())
    }
}

/// Memory of any kind, or null, that comes with a length in another argument. What is to be written there later lives as long as
/// the specification asks for.
#[derive(Clone, Copy)]
pub(super) struct Bytes(*mut c_void);

// SAFETY: raw.2: an address, which is followed in calls of the client alone: it says from which threads its buffer is used.
unsafe impl Send for Bytes {}
// SAFETY: raw.2: threads share an address, which none changes; it is followed in calls of the client alone.
unsafe impl Sync for Bytes {}

impl Argument for Bytes {
    type Raw = *mut c_void;

    unsafe fn take(raw: *mut c_void) -> Result<Self, gni_return_t> {
        Ok(Self(raw))
    }
}

impl Bytes {
    /// Copies them out.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is null, and there should be some.
    pub(super) fn read(self, len: usize) -> Result<Vec<u8>, gni_return_t> {
        match (self.0.is_null(), len) {
            (_, 0) => Ok(Vec::new()),
            (true, _) => Err(GNI_RC_INVALID_PARAM),
            (false, _) => Ok(Room(self.0.cast()).read(len)),
        }
    }

    /// Whether so many may be written there.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is null, and there should be some.
    pub(super) fn has_room(self, len: usize) -> Answer {
        if self.0.is_null() && len > 0 { Err(GNI_RC_INVALID_PARAM) } else { Ok(()) }
    }

    /// Where they are.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is null, and there should be some.
    pub(super) fn place(self, len: u32) -> Result<(u64, u32), gni_return_t> {
        self.has_room(len as usize)?;
        Ok((self.0.expose_provenance() as u64, len))
    }

    /// Writes them; the caller has seen that there is room.
    pub(super) fn write(self, bytes: &[u8]) {
        Room(self.0.cast()).write(bytes);
    }
}

/// An object by its handle.
pub(super) type Known<T> = Arc<T>;

/// An object by its handle, or none.
pub(super) struct Maybe<T>(pub(super) Option<Arc<T>>);

macro_rules! objects {
    ($($handle:ident is $object:ident of $table:ident, a $kind:literal;)*) => {$(
        impl Argument for Arc<$object> {
            type Raw = $handle;

            unsafe fn take(raw: $handle) -> Result<Self, gni_return_t> {
                <$object>::find(raw)
            }
        }

        impl Argument for Maybe<$object> {
            type Raw = $handle;

            unsafe fn take(raw: $handle) -> Result<Self, gni_return_t> {
                match raw.is_null() {
                    true => Ok(Self(None)),
                    // SAFETY: the caller promises the invariants of this module; `take` looks the handle up, and follows no pointer.
                    false => unsafe { Arc::take(raw) }.map(|object| Self(Some(object))),
                }
            }
        }

        impl Own for $object {
            type Handle = $handle;

            fn find(raw: $handle) -> Result<Arc<Self>, gni_return_t> {
                call::names(raw.addr());
                let found = $table.get(raw.addr());
                found.ok_or_else(|| stale($kind, $table.had(raw.addr())))
            }

            fn remove(raw: $handle) -> Result<Arc<Self>, gni_return_t> {
                call::names(raw.addr());
                let found = $table.remove(raw.addr());
                found.ok_or_else(|| stale($kind, $table.had(raw.addr())))
            }

            fn add(object: Arc<Self>) -> Result<$handle, gni_return_t> {
                $table.add(object).map(std::ptr::without_provenance_mut).ok_or(GNI_RC_ERROR_NOMEM)
            }
        }
    )*};
}

/// A handle leads nowhere, as one that did once: what the call gives.
fn stale(kind: &str, was: bool) -> gni_return_t {
    strict::led_nowhere(kind, was);
    GNI_RC_INVALID_PARAM
}

/// What has a handle.
pub(super) trait Own: Sized {
    /// Its type.
    type Handle;
    /// The object of a handle.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there is none.
    fn find(raw: Self::Handle) -> Result<Arc<Self>, gni_return_t>;
    /// Takes the object of a handle away from C.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn remove(raw: Self::Handle) -> Result<Arc<Self>, gni_return_t>;
    /// Gives an object a handle.
    ///
    /// # Errors
    /// `GNI_RC_ERROR_NOMEM`: there are too many.
    fn add(object: Arc<Self>) -> Result<Self::Handle, gni_return_t>;
}

objects! {
    gni_cdm_handle_t is Domain of DOMAINS, a "communication domain";
    gni_nic_handle_t is Device of DEVICES, a "NIC";
    gni_cq_handle_t is Queue of QUEUES, a "completion queue";
    gni_ep_handle_t is End of ENDS, a "endpoint";
    gni_err_handle_t is Errors of ERRORS, a "subscription to errors";
    gni_comp_chan_handle_t is Chan of CHANNELS, a "completion channel";
    gni_msgq_handle_t is Messages of MESSAGES, a "shared message queue";
    gni_ce_handle_t is Collective of COLLECTIVES, a "collective engine";
}

/// A handle that is given back.
pub(super) struct Given<T: Own>(pub(super) T::Handle);

impl<T: Own> Argument for Given<T> {
    type Raw = T::Handle;

    unsafe fn take(raw: T::Handle) -> Result<Self, gni_return_t> {
        Ok(Self(raw))
    }
}

/// The most links of a chain.
const MOST_LINKS: usize = 1 << 16;

/// A descriptor that is posted.
pub(super) struct Posted(*mut gni_post_descriptor_t);

impl Argument for Posted {
    type Raw = *mut gni_post_descriptor_t;

    unsafe fn take(raw: *mut gni_post_descriptor_t) -> Result<Self, gni_return_t> {
        call::concerns(raw.addr() as u64);
        if raw.is_null() || !raw.is_aligned() { Err(GNI_RC_INVALID_PARAM) } else { Ok(Self(raw)) }
    }
}

impl Posted {
    /// What it says now.
    pub(super) fn read(&self) -> gni_post_descriptor_t {
        // SAFETY: raw.2: `take` has refused null and what is not aligned, so the descriptor is valid for a read, which copies it.
        unsafe { self.0.read() }
    }

    /// The links that follow it, with the endpoints that they name.
    ///
    /// # Errors
    /// `GNI_RC_SIZE_ERROR`: there are more than [`MOST_LINKS`], or they go round and round. `GNI_RC_INVALID_PARAM`: its kind has none.
    pub(super) fn links(
        &self,
        first: &gni_post_descriptor_t,
    ) -> Result<Vec<(gni_ep_handle_t, Part)>, gni_return_t> {
        let (mut next, mut links) = (first.next_descr, Vec::new());
        while !next.is_null() {
            if links.len() == MOST_LINKS {
                return Err(GNI_RC_SIZE_ERROR);
            }
            macro_rules! link {
                ($part:ident, $type:ty) => {{
                    // SAFETY: raw.2: `next` is not null, and a link is of the kind that the first says; it may lie at any address.
                    let link = unsafe { next.cast::<$type>().read_unaligned() };
                    next = link.next_descr;
                    links.push((link.ep_hndl, Part::$part(link)));
                }};
            }
            match first.r#type {
                GNI_POST_FMA_PUT => link!(Put, gni_ct_put_post_descriptor_t),
                GNI_POST_FMA_GET => link!(Get, gni_ct_get_post_descriptor_t),
                GNI_POST_AMO => link!(Atomic, gni_ct_amo_post_descriptor_t),
                GNI_POST_CQWRITE => link!(CqWrite, gni_ct_cqw_post_descriptor_t),
                _ => return Err(GNI_RC_INVALID_PARAM),
            }
        }
        Ok(links)
    }

    /// The number by which the NIC knows it.
    pub(super) fn token(&self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The descriptor of a token that a NIC gives back: none that was not posted to it.
    pub(super) fn of(token: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(usize::try_from(token).unwrap_or(0)))
    }

    /// Says how its transaction ended, and gives it its name back.
    pub(super) fn finish(&self, status: gni_return_t, id: u64) {
        // SAFETY: raw.3: this is on behalf of one of its events, so it is valid for writes. No reference is made, for its other fields
        // may be in use.
        unsafe {
            (&raw mut (*self.0).status).write(status.into());
            (&raw mut (*self.0).post_id).write(id);
        }
    }

    /// The pointer, for C.
    pub(super) fn pointer(&self) -> *mut gni_post_descriptor_t {
        self.0
    }
}

/// A function that is called with each event that is taken from a queue, and what it is called with.
#[derive(Clone, Copy)]
pub(super) struct Handler(gni_cq_handler_t, *mut c_void);

// SAFETY: raw.4: it is called where its client takes events, which says from which threads that is done.
unsafe impl Send for Handler {}
// SAFETY: raw.4: nothing here changes; clients that take events in several threads let them call it at the same time.
unsafe impl Sync for Handler {}

impl Handler {
    pub(super) fn call(&self, mut event: gni_cq_entry_t) {
        // SAFETY: raw.4: the queue is there, since an event of it is being taken; `event` is a copy, which lives until it returns.
        unsafe { (self.0)(&raw mut event, self.1) }
    }
}

impl Argument for Option<gni_cq_handler_t> {
    type Raw = Self;

    unsafe fn take(raw: Self) -> Result<Self, gni_return_t> {
        Ok(raw)
    }
}

/// A function that is called with each message of a shared message queue, and what it is called with.
#[derive(Clone, Copy)]
pub(super) struct Receiver(gni_msgq_rcv_cb_func, *mut c_void);

// SAFETY: raw.4: it is called where its client takes messages, which says from which threads that is done.
unsafe impl Send for Receiver {}
// SAFETY: raw.4: nothing here changes; clients that take messages in several threads let them call it at the same time.
unsafe impl Sync for Receiver {}

impl Receiver {
    /// Whether it wants more.
    pub(super) fn call(&self, message: &Received) -> bool {
        let Received { address, instance, tag, data } = message;
        // As large and as aligned as any message, whatever the client takes this one for.
        let mut room = Letter([0; GNI_MSGQ_MSG_SZ_MAX as usize]);
        room.0.iter_mut().zip(data).for_each(|(to, byte)| *to = *byte);
        // SAFETY: raw.4: the queue is there, since a message of it is being taken; `room` is a copy, the function's until it returns.
        unsafe { (self.0)(*instance, *address, (&raw mut room).cast(), *tag, self.1) != 0 }
    }
}

/// Room for a message.
#[repr(C, align(64))]
struct Letter([u8; GNI_MSGQ_MSG_SZ_MAX as usize]);

impl Argument for Option<gni_msgq_rcv_cb_func> {
    type Raw = Self;

    unsafe fn take(raw: Self) -> Result<Self, gni_return_t> {
        Ok(raw)
    }
}

/// What a node says of its end of a shared message queue. Of its list no more is read than it says that there is.
pub(super) struct Told(pub(super) gni_msgq_ep_attr_t);

impl Argument for Told {
    type Raw = *mut gni_msgq_ep_attr_t;

    unsafe fn take(raw: *mut gni_msgq_ep_attr_t) -> Result<Self, gni_return_t> {
        // SAFETY: raw.2: `raw` is null, which is refused, or leads to four numbers, and as many instances as the last says.
        let In(numbers) = unsafe { In::<[u32; 4]>::take(raw.cast()) }?;
        let [pe_addr, max_msg_sz, smsg_q_sz, num_insts] = numbers;
        let mut told =
            gni_msgq_ep_attr_t { pe_addr, max_msg_sz, smsg_q_sz, num_insts, ..gni_msgq_ep_attr_t::zeroed() };
        let list = raw.cast::<gni_msgq_rem_inst_t>().wrapping_byte_add(offset_of!(gni_msgq_ep_attr_t, insts));
        let there = told.insts.get_mut(..num_insts as usize).ok_or(GNI_RC_INVALID_PARAM)?;
        there.copy_from_slice(&Room(list).read(num_insts as usize));
        Ok(Self(told))
    }
}

/// What a function that the caller gives is called with.
pub(super) struct Context(*mut c_void);

impl Argument for Context {
    type Raw = *mut c_void;

    unsafe fn take(raw: *mut c_void) -> Result<Self, gni_return_t> {
        Ok(Self(raw))
    }
}

impl Context {
    /// The function with it.
    pub(super) fn of(self, function: gni_cq_handler_t) -> Handler {
        Handler(function, self.0)
    }

    /// The function for messages with it.
    pub(super) fn receiving(self, function: gni_msgq_rcv_cb_func) -> Receiver {
        Receiver(function, self.0)
    }
}

/// New memory of zeros, for a NIC, and where it begins.
///
/// # Errors
/// There is none.
pub(super) fn zeros(size: usize) -> Result<(Mapping, u64), OsError> {
    let memory = memfd::create("gasworks-msgq", size)?.map()?;
    let first = memory.as_ptr().expose_provenance() as u64;
    Ok((memory, first))
}

/// This process's memory, for a NIC.
///
/// # Errors
/// The system does not let it be reached.
pub(super) fn memory() -> Result<Process, OsError> {
    // SAFETY: raw.6: the client registers and posts what is its own to be written to. Besides that, the library registers what `zeros`
    // gives, to which it has no reference.
    unsafe { Process::own() }
}
