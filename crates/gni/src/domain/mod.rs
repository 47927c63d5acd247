//! A communication domain: the only place that calls uGNI, but for what a cache registers (`udreg`).
//!
//! The library is not made for several threads at once, so all calls take the domain for themselves, and the lock is its owner's.
//! A queue at the source has room for all events of all posts that there are descriptors for, so it is never overrun; if it says so all the
//! same, events are lost, and with them the domain.
//!
//! # Invariants
//! - domain.1: handles are the library's, and are not used after they were destroyed: that happens once, in `release` (of the module of
//!   that name), which `given_up` tells.
//! - domain.2: a call's pointers are to values of this thread, or to descriptors (domain.3).
//! - domain.3: a descriptor stays where it is from its post until its last event was taken, and nothing else uses it meanwhile. The
//!   descriptors are freed only if none is with the library.
//! - domain.4: a function that is given an event, and no handle, looks at that number alone.
//! - domain.5: the local bytes of a post stay as [`Domain::post`] wants it.
//! - domain.6: `GNI_CqTestEvent` alone may be called while another thread uses the domain.

mod channel;
mod engine;
mod release;

pub(crate) use engine::{EngineOf, FIRST, Place, RESULT};

use crate::error::{GniError, Texts, code_name};
use crate::handle::Handle;
use crate::kept::Closed;
use crate::pinned::Pinned;
use crate::udreg::{Cache, Device, Known};
use channel::Channel;
use gasworks_core::WordOp;
use gasworks_gni_sys::*;
use gasworks_os::{Reserved, memfd};
use gasworks_rdma::{Completion, NicError, Stage};
use gasworks_sync::{RawSlice, VolatileSlice};
use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;

/// What a domain is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The domain's number in the job.
    pub instance: u32,
    pub ranks: u32,
    pub device: u32,
    pub tag: u8,
    pub cookie: u32,
    /// `GNI_CDM_MODE_*`.
    pub modes: u32,
    /// How many posts may be with the library at once.
    pub posts: u32,
    /// How many notifications may wait; 0: nobody writes what this domain has registered.
    pub arrivals: u32,
    /// `GNI_DLVMODE_*` of what is large.
    pub delivery: u16,
    /// How many bytes may be registered.
    pub pinned: u64,
}

/// A command of the NIC's atomic unit, with its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub number: gni_fma_cmd_type_t,
    pub operands: [u64; 2],
}

/// By what bytes go, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The processor hands them over; the receiver is called if `call` says so.
    Put,
    /// So, and behind them a word is written there.
    PutFlagged { at: u64, value: u64 },
    /// This word, without local bytes.
    PutWord(u64),
    /// The processor is handed them.
    Get,
    /// The NIC fetches them here; `apart`: it says when they have been read.
    BulkPut { apart: bool },
    /// The NIC stores them here.
    BulkGet,
    /// Its atomic unit changes a word there, and stores here what that was.
    Atomic(Command),
    /// This word goes to a collective engine of the NIC, for the reduction with this number, which combines all words and stores the result here.
    Give { to: EngineOf, op: WordOp, number: u64, word: u64 },
}

/// What a post is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A transfer of the engine's.
    Transfer { token: u64 },
    /// An atomic operation of the engine's.
    Update { token: u64 },
    /// A request that lies in this slot.
    Request { slot: u16 },
    /// A reply that lies in this place.
    Reply { number: u32 },
    /// A message that is fetched to this place.
    Fetch { number: u32 },
    /// A word that needs no place.
    Word,
    /// What the collective engine was given.
    Given,
}

/// A post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub kind: Kind,
    pub peer: u32,
    pub local: RawSlice,
    pub local_handle: Handle,
    pub remote: u64,
    pub remote_handle: Handle,
    /// What the receiver's event carries, if it is to have one.
    pub call: Option<u32>,
    pub owner: Owner,
}

/// Why something was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no room now.
    Busy,
    /// The code that says why.
    Code(gni_return_t),
}

/// A post that has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub owner: Owner,
    pub peer: u32,
    pub stage: Stage,
    /// In the library's words, if it failed.
    pub failed: Option<&'static str>,
    /// What the receiver was to be called with, and was not: its queue had no room.
    pub unheard: Option<u32>,
}

impl Done {
    /// What the engine is told, if it was its transfer.
    pub fn completion(&self) -> Option<Completion> {
        let (Owner::Transfer { token } | Owner::Update { token }) = self.owner else { return None };
        let (peer, is_transfer) = (self.peer, matches!(self.owner, Owner::Transfer { .. }));
        let result = match self.failed {
            Some(why) if is_transfer => Err(NicError::Unreachable { peer, why }),
            Some(_) => Err(NicError::InDoubt { peer }),
            None => Ok(()),
        };
        Some(Completion { token, stage: self.stage, result })
    }
}

/// What the queue of notifications says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Nothing,
    /// What a sender's event carries.
    Call(u64),
    /// Some were lost, before this one if there is one.
    Overrun(Option<u64>),
}

/// What a descriptor is used for.
struct Posted {
    descriptor: gni_post_descriptor_t,
    /// The local bytes of a post without any.
    word: u64,
    owner: Owner,
    peer: u32,
    call: Option<u32>,
    /// Events that have not been taken.
    left: u8,
    /// How often it has failed, and was posted once more.
    tries: u8,
}

impl Owner {
    /// Whether it does no harm to do it twice: a message that was lost may have arrived, and a word may have been changed.
    fn is_repeatable(self) -> bool {
        matches!(self, Self::Transfer { .. } | Self::Fetch { .. })
    }
}

impl Post {
    /// Which way it goes, where this one was asked for. Messages, their letters and what else is a word go as the network likes, whatever
    /// is asked for: nothing relies on their order, and nothing is to come to. But of a transfer that calls the bytes are looked at because of
    /// the call alone, which must not overtake any.
    fn delivery(&self, asked: u16) -> u16 {
        match self.owner {
            Owner::Transfer { .. } if self.call.is_some() => GNI_DLVMODE_IN_ORDER,
            Owner::Transfer { .. } | Owner::Update { .. } | Owner::Fetch { .. } => asked,
            Owner::Request { .. } | Owner::Reply { .. } | Owner::Word | Owner::Given => {
                GNI_DLVMODE_PERFORMANCE
            }
        }
    }
}

/// Bytes of what a domain keeps for each rank, before it is talked to.
pub(crate) const EACH: usize = size_of::<u32>();

/// A domain with its queues and endpoints.
pub(crate) struct Domain {
    ugni: Ugni,
    wanted: Wanted,
    cdm: gni_cdm_handle_t,
    nic: gni_nic_handle_t,
    /// Of what was posted here.
    source: gni_cq_handle_t,
    /// Of what others have written here.
    arrivals: gni_cq_handle_t,
    /// What tells of them by a descriptor, if it was opened.
    channel: Option<Channel>,
    address: u32,
    /// The addresses of all NICs, and the endpoints of those that were talked to.
    addresses: Arc<[u32]>,
    endpoints: Reserved<gni_ep_handle_t>,
    /// [`Wanted::posts`] of them.
    posts: *mut Posted,
    free: Vec<u32>,
    /// What is registered, and how many bytes that pins.
    registered: HashMap<Handle, u64>,
    pinned: Pinned,
    /// What keeps registrations for transfers, if the library is to.
    pub kept: Option<Cache>,
    /// The collective engines that it has taken, by what they are for.
    engines: [Option<engine::Engine>; 2],
    /// Events of posts were lost.
    lost: bool,
    /// What it has said of posts that failed.
    texts: Texts,
    closed: Closed,
    /// It was given up: there is nothing of the library's any more.
    given_up: bool,
}

/// What messages ask of a domain.
pub(crate) trait Network {
    /// Registers memory; with `calls`, what is written there may call this rank.
    ///
    /// # Errors
    /// The code.
    ///
    /// # Safety
    /// The bytes stay mapped until the registration is ended, or until the domain's end.
    unsafe fn register(&mut self, bytes: RawSlice, calls: bool, flags: u32) -> Result<Handle, gni_return_t>;
    /// Posts, once.
    ///
    /// # Errors
    /// [`Refused`]: nothing was posted then.
    ///
    /// # Safety
    /// domain.5: the local bytes stay mapped until the post is over, those of a put unchanged until their source is free, and those
    /// of a get nobody else's.
    unsafe fn post(&mut self, post: &Post) -> Result<(), Refused>;
    /// The next event of what was posted here.
    fn next_done(&mut self) -> Option<Done>;
    /// The next notification.
    fn next_arrival(&mut self) -> Arrival;
    /// How many posts are with the library.
    fn under_way(&self) -> usize;
    /// Whether there is a descriptor for a post.
    fn has_room(&self) -> bool;
    /// Whether events of posts were lost.
    fn is_lost(&self) -> bool;
    /// Looks at these bytes, where the result of what was given lies once it is there: `None` until then.
    ///
    /// # Errors
    /// The code: it failed.
    fn gathered(&mut self, place: VolatileSlice<'_>) -> Option<Result<(), gni_return_t>>;
}

/// Looks whether something has arrived, without the domain.
pub(crate) struct Bell {
    test: unsafe extern "C" fn(gni_cq_handle_t) -> gni_return_t,
    arrivals: gni_cq_handle_t,
}

// SAFETY: domain.6: a bell calls nothing but `GNI_CqTestEvent`, which any thread may call at any time.
unsafe impl Send for Bell {}
// SAFETY: domain.6: threads that share a bell call `GNI_CqTestEvent` alone, which needs no lock.
unsafe impl Sync for Bell {}

impl Bell {
    /// Whether there is no event. An overrun is something, too.
    ///
    /// # Safety
    /// domain.1: the domain has not been dropped.
    pub unsafe fn is_silent(&self) -> bool {
        // SAFETY: domain.1: the caller promises that the domain, whose queue it is, was not dropped. domain.6: others may use it.
        unsafe { (self.test)(self.arrivals) == GNI_RC_NOT_DONE }
    }
}

// SAFETY: domain.1: its handles may be used by any thread, and so may its descriptors: by one at a time, for it is not `Sync`.
unsafe impl Send for Domain {}

/// How often a post is tried again that has failed.
const MOST_TRIES: u8 = 5;

/// How many events here a post has of this mode.
fn events_of(mode: u16) -> u8 {
    if mode & GNI_CQMODE_DUAL_EVENTS == GNI_CQMODE_DUAL_EVENTS { 2 } else { 1 }
}

fn check(call: &'static str, code: gni_return_t) -> Result<(), GniError> {
    if code == GNI_RC_SUCCESS { Ok(()) } else { Err(GniError::Call { call, code: code_name(code) }) }
}

/// The two chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chip {
    /// Of the XE and XK systems.
    Gemini,
    /// Of the XC systems.
    Aries,
}

impl Chip {
    /// Which of them the NIC is of.
    ///
    /// # Errors
    /// [`GniError::Chip`], [`GniError::Call`].
    pub(crate) fn of(ugni: &Ugni) -> Result<Self, GniError> {
        let mut number = 0;
        // SAFETY: domain.2: it writes one number, to `number`, of this call.
        check("GNI_GetDeviceType", unsafe { (ugni.GNI_GetDeviceType)(&raw mut number) })?;
        match number {
            GNI_DEVICE_GEMINI => Ok(Self::Gemini),
            GNI_DEVICE_ARIES => Ok(Self::Aries),
            number => Err(GniError::Chip { number }),
        }
    }
}

impl Domain {
    /// Attaches to the NIC.
    ///
    /// # Errors
    /// [`GniError::Call`], [`GniError::Dedicated`].
    pub fn open(ugni: Ugni, wanted: Wanted, closed: Closed) -> Result<Self, GniError> {
        let posts = (0..wanted.posts).map(|_| Posted {
            descriptor: gni_post_descriptor_t::zeroed(),
            word: 0,
            owner: Owner::Word,
            peer: 0,
            call: None,
            left: 0,
            tries: 0,
        });
        let posts: Box<[Posted]> = posts.collect();
        // From here on `drop` ends what was begun.
        let mut this = Self {
            ugni,
            wanted,
            cdm: null_mut(),
            nic: null_mut(),
            source: null_mut(),
            arrivals: null_mut(),
            channel: None,
            address: 0,
            addresses: Arc::default(),
            endpoints: Reserved::new(wanted.ranks as usize),
            posts: Box::into_raw(posts).cast(),
            free: (0..wanted.posts).rev().collect(),
            registered: HashMap::new(),
            pinned: Pinned::new(wanted.pinned, memfd::page_size()),
            kept: None,
            engines: [None, None],
            lost: false,
            texts: Texts::default(),
            closed,
            given_up: false,
        };
        let Wanted { instance, device, tag, cookie, modes, .. } = wanted;
        // SAFETY: domain.1: no handle is used yet. domain.2: the new one is written to `this.cdm`, of this call.
        let code = unsafe { (ugni.GNI_CdmCreate)(instance, tag, cookie, modes, &raw mut this.cdm) };
        check("GNI_CdmCreate", code)?;
        // SAFETY: domain.1: `this.cdm` was made just now. domain.2: address and handle are written to `this`, of this call.
        let code =
            unsafe { (ugni.GNI_CdmAttach)(this.cdm, device, &raw mut this.address, &raw mut this.nic) };
        if code == GNI_RC_ERROR_RESOURCE && modes & GNI_CDM_MODE_FMA_DEDICATED != 0 {
            return Err(GniError::Dedicated);
        }
        check("GNI_CdmAttach", code)?;
        // A put of the NIC's may have two events.
        this.source = this.queue(wanted.posts.saturating_mul(2))?;
        if wanted.arrivals > 0 {
            this.arrivals = this.queue(wanted.arrivals)?;
        }
        Ok(this)
    }

    fn queue(&mut self, entries: u32) -> Result<gni_cq_handle_t, GniError> {
        let (mut queue, none) = (null_mut(), null_mut());
        // SAFETY: domain.1: `open` has attached the NIC. domain.2: there is no handler, and the handle is written to `queue`.
        let code = unsafe {
            (self.ugni.GNI_CqCreate)(self.nic, entries.max(2), 0, GNI_CQ_NOBLOCK, None, none, &raw mut queue)
        };
        check("GNI_CqCreate", code)?;
        Ok(queue)
    }

    /// What looks without it.
    pub fn bell(&self) -> Bell {
        Bell { test: self.ugni.GNI_CqTestEvent, arrivals: self.arrivals }
    }

    /// The address of this rank's NIC.
    pub fn address(&self) -> u32 {
        self.address
    }

    /// The job to which it is for the NIC: its tag and its cookie.
    pub fn job(&self) -> u64 {
        u64::from(self.wanted.cookie) | u64::from(self.wanted.tag) << 32
    }

    /// Tells the addresses of all ranks' NICs.
    pub fn meet(&mut self, addresses: Arc<[u32]>) {
        self.addresses = addresses;
    }

    /// Those that it was told.
    pub fn addresses(&self) -> Arc<[u32]> {
        self.addresses.clone()
    }

    /// Events of posts were lost, here or in another domain of this rank.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// Has registrations for transfers kept by UDREG: so many.
    ///
    /// # Errors
    /// [`GniError::Udreg`].
    pub fn keep(&mut self, (udreg, layout): Known, flags: u32, entries: u32) -> Result<(), GniError> {
        let Ugni { GNI_MemRegister: register, GNI_MemDeregister: deregister, .. } = self.ugni;
        let failed = std::ptr::without_provenance_mut(layout.failed as usize);
        let pinned = self.pinned.clone();
        let device = Device { register, deregister, nic: self.nic, flags, failed, pinned };
        self.kept = Some(Cache::open((udreg, layout), device, entries)?);
        Ok(())
    }

    /// The endpoint of a rank, which is made when it is first talked to.
    fn endpoint(&mut self, peer: u32) -> Result<gni_ep_handle_t, Refused> {
        let index = peer as usize;
        let (Some(&known), Some(&address)) = (self.endpoints.get(index), self.addresses.get(index)) else {
            return Err(Refused::Code(GNI_RC_NO_MATCH));
        };
        if !known.is_null() {
            return Ok(known);
        }
        let mut endpoint = null_mut();
        // SAFETY: domain.1: NIC and queue are there: the domain was not given up. domain.2: the handle is written to `endpoint`.
        let mut code = unsafe { (self.ugni.GNI_EpCreate)(self.nic, self.source, &raw mut endpoint) };
        if code == GNI_RC_SUCCESS {
            // SAFETY: domain.1: `endpoint` was made just now, and is bound for the first time.
            code = unsafe { (self.ugni.GNI_EpBind)(endpoint, address, peer) };
            if code != GNI_RC_SUCCESS {
                // SAFETY: domain.1: `endpoint` was made just now, nobody else has it, and it is forgotten after this.
                unsafe { (self.ugni.GNI_EpDestroy)(endpoint) };
            }
        }
        match code {
            GNI_RC_SUCCESS => {
                self.endpoints[index] = endpoint;
                Ok(endpoint)
            }
            GNI_RC_ERROR_RESOURCE => Err(Refused::Busy),
            code => Err(Refused::Code(code)),
        }
    }

    /// Gives a descriptor to the library.
    ///
    /// # Safety
    /// domain.3: the descriptor is whole, and not with the library. domain.5: its local bytes stay as they have to.
    unsafe fn hand_over(&mut self, endpoint: gni_ep_handle_t, number: u32) -> Result<(), Refused> {
        let posted = self.place(number);
        // SAFETY: domain.3: the caller promises that the descriptor is not with the library, so nobody writes to it now.
        let bulk = unsafe { matches!((*posted).descriptor.r#type, GNI_POST_RDMA_PUT | GNI_POST_RDMA_GET) };
        let call = if bulk { self.ugni.GNI_PostRdma } else { self.ugni.GNI_PostFma };
        // SAFETY: domain.1: `endpoint` is bound. domain.3: the descriptor stays where it is. domain.5: so do its bytes, by promise.
        match unsafe { call(endpoint, &raw mut (*posted).descriptor) } {
            GNI_RC_SUCCESS => Ok(()),
            GNI_RC_ERROR_RESOURCE => Err(Refused::Busy),
            code => Err(Refused::Code(code)),
        }
    }

    /// Posts once more what has failed and may work the next time. Whether that is so.
    fn repeat(&mut self, event: gni_cq_entry_t, number: u32) -> bool {
        let posted = self.place(number);
        // SAFETY: domain.3: the post has failed, so the library is done with its descriptor, and this thread has the domain.
        let (owner, tries, peer) = unsafe { ((*posted).owner, (*posted).tries, (*posted).peer) };
        // Who was called may have been, and a second call might be taken for another's.
        // SAFETY: domain.3: `call` is a field of the same descriptor, with which the library is done.
        let calls = unsafe { (*posted).call.is_some() };
        let mut recoverable = 0;
        // SAFETY: domain.2: the answer is written to `recoverable`, of this call. domain.4: `event` is a number.
        let code = unsafe { (self.ugni.GNI_CqErrorRecoverable)(event, &raw mut recoverable) };
        let may_work = code == GNI_RC_SUCCESS && recoverable != 0;
        if !may_work || calls || !owner.is_repeatable() || tries == MOST_TRIES || self.lost {
            return false;
        }
        let Ok(endpoint) = self.endpoint(peer) else { return false };
        // SAFETY: domain.3: the library is done with the descriptor, and knows nothing of `tries` beside it.
        unsafe { (*posted).tries = tries + 1 };
        // SAFETY: domain.3: it is whole, as it was posted before, and came back. domain.5: its owner was not told of an end.
        unsafe { self.hand_over(endpoint, number) }.is_ok()
    }

    /// What the library says of an event of a post that failed.
    fn words(&mut self, event: gni_cq_entry_t) -> &'static str {
        let mut text = [0u8; 256];
        // SAFETY: domain.2: the words go to `text`, of this call, whose length is told. domain.4: `event` is a number.
        let code = unsafe { (self.ugni.GNI_CqErrorStr)(event, text.as_mut_ptr().cast(), text.len() as u32) };
        let text = CStr::from_bytes_until_nul(&text).ok().and_then(|text| text.to_str().ok());
        let known = text.filter(|text| code == GNI_RC_SUCCESS && !text.is_empty());
        known.map_or("the NIC does not say why", |text| self.texts.keep(text))
    }

    fn place(&self, number: u32) -> *mut Posted {
        assert!(number < self.wanted.posts, "a descriptor that there is not");
        // SAFETY: `number` is less than `wanted.posts`, as was just checked: so many descriptors lie there until the domain is dropped.
        unsafe { self.posts.add(number as usize) }
    }
}

impl Network for Domain {
    unsafe fn register(&mut self, bytes: RawSlice, calls: bool, flags: u32) -> Result<Handle, gni_return_t> {
        if self.given_up {
            return Err(GNI_RC_INVALID_STATE);
        }
        let queue = if calls { self.arrivals } else { null_mut() };
        let mut handle = gni_mem_handle_t::zeroed();
        let (address, len) = (bytes.as_ptr().addr() as u64, bytes.len() as u64);
        let pages = self.pinned.take(address, len).ok_or(GNI_RC_ERROR_RESOURCE)?;
        // SAFETY: domain.1: the NIC is attached, and the queue is its own or null. domain.2: the handle is written to `handle`.
        // The caller promises that the bytes stay mapped until the registration is ended, or the domain.
        let code = unsafe {
            (self.ugni.GNI_MemRegister)(self.nic, address, len, queue, flags, u32::MAX, &raw mut handle)
        };
        if code != GNI_RC_SUCCESS {
            self.pinned.give(pages);
            return Err(code);
        }
        let handle = Handle { words: [handle.qword1, handle.qword2] };
        self.registered.insert(handle, pages);
        Ok(handle)
    }

    unsafe fn post(&mut self, post: &Post) -> Result<(), Refused> {
        if self.lost {
            return Err(Refused::Code(GNI_RC_TRANSACTION_ERROR));
        }
        if self.given_up {
            return Err(Refused::Busy);
        }
        let endpoint = match post.kind {
            Kind::Give { to, .. } => {
                let end = self.engines[to as usize].as_ref().and_then(engine::Engine::end);
                end.ok_or(Refused::Code(GNI_RC_INVALID_STATE))?
            }
            _ => self.endpoint(post.peer)?,
        };
        let number = self.free.pop().ok_or(Refused::Busy)?;
        let posted = self.place(number);
        // What they have in common; what each kind has of its own comes after.
        let mut descriptor = gni_post_descriptor_t {
            post_id: number.into(),
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            dlvr_mode: post.delivery(self.wanted.delivery),
            local_addr: post.local.as_ptr().addr() as u64,
            local_mem_hndl: post.local_handle.raw(),
            remote_addr: post.remote,
            remote_mem_hndl: post.remote_handle.raw(),
            length: post.local.len() as u64,
            ..gni_post_descriptor_t::zeroed()
        };
        descriptor.r#type = match post.kind {
            Kind::Put => GNI_POST_FMA_PUT,
            Kind::PutFlagged { at, value } => {
                (descriptor.sync_flag_addr, descriptor.sync_flag_value) = (at, value);
                GNI_POST_FMA_PUT_W_SYNCFLAG
            }
            Kind::PutWord(word) => {
                // SAFETY: domain.3: its number was among the free ones, so the library does not have it.
                unsafe { (*posted).word = word };
                // SAFETY: `posted` lies among the domain's descriptors, and only the address of its word is taken.
                descriptor.local_addr = unsafe { &raw mut (*posted).word }.addr() as u64;
                descriptor.length = 8;
                GNI_POST_FMA_PUT
            }
            Kind::Get => GNI_POST_FMA_GET,
            Kind::BulkPut { apart } => {
                if apart {
                    descriptor.cq_mode = GNI_CQMODE_DUAL_EVENTS;
                }
                GNI_POST_RDMA_PUT
            }
            Kind::BulkGet => GNI_POST_RDMA_GET,
            Kind::Atomic(Command { number, operands: [first, second] }) => {
                descriptor.amo_cmd = number;
                (descriptor.first_operand, descriptor.second_operand) = (first, second);
                GNI_POST_AMO
            }
            Kind::Give { op, number, word, .. } => {
                (descriptor.ce_cmd, descriptor.ce_red_id) = (engine::command(op), number);
                descriptor.first_operand = word;
                GNI_POST_CE
            }
        };
        let left = events_of(descriptor.cq_mode);
        if let Some(call) = post.call {
            descriptor.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
            // SAFETY: domain.1: `endpoint` is one that `endpoint` or `join_tree` has bound, and is not ended before the domain.
            unsafe { (self.ugni.GNI_EpSetEventData)(endpoint, post.peer, call) };
        }
        // SAFETY: domain.3: its number was among the free ones: neither the library nor another post has it.
        unsafe {
            (*posted).descriptor = descriptor;
            ((*posted).owner, (*posted).peer, (*posted).left) = (post.owner, post.peer, left);
            ((*posted).call, (*posted).tries) = (post.call, 0);
        }
        // SAFETY: domain.3: it was filled in just now. domain.5: the caller promises it; the bytes of a word lie in the descriptor.
        unsafe { self.hand_over(endpoint, number) }.inspect_err(|_| self.free.push(number))
    }

    fn next_done(&mut self) -> Option<Done> {
        if self.given_up {
            return None;
        }
        loop {
            let mut event = 0;
            // SAFETY: domain.1: `source` is there: the domain was not given up. domain.2: the event is written to `event`, of this call.
            let code = unsafe { (self.ugni.GNI_CqGetEvent)(self.source, &raw mut event) };
            match code {
                GNI_RC_SUCCESS | GNI_RC_TRANSACTION_ERROR => {}
                GNI_RC_ERROR_RESOURCE => {
                    self.lost = true;
                    continue;
                }
                _ => return None,
            }
            let mut descriptor = null_mut();
            // SAFETY: domain.1: it is the queue that `event` came from. domain.2: the address is written to `descriptor`, of this call.
            let completed = unsafe { (self.ugni.GNI_GetCompleted)(self.source, event, &raw mut descriptor) };
            if descriptor.is_null() {
                continue; // of nothing that was posted here
            }
            // SAFETY: domain.3: it is not null, so the library gives back a descriptor that it was given, and that is still there.
            let number = unsafe { (*descriptor).post_id } as u32;
            let posted = self.place(number);
            let failed = code != GNI_RC_SUCCESS || completed != GNI_RC_SUCCESS;
            // SAFETY: domain.3: one of its events has been taken; the library changes neither `left` nor `cq_mode`.
            let is_first = unsafe { (*posted).left == events_of((*posted).descriptor.cq_mode) };
            if failed && is_first && self.repeat(event, number) {
                continue;
            }
            let failed = failed.then(|| self.words(event));
            // SAFETY: domain.3: the library is done with it, or will look at the descriptor alone, beside which these fields lie.
            let (owner, peer, left, call) = unsafe {
                (*posted).left = (*posted).left.saturating_sub(1);
                ((*posted).owner, (*posted).peer, (*posted).left, (*posted).call)
            };
            let stage = if left > 0 && failed.is_none() { Stage::Source } else { Stage::Whole };
            if stage == Stage::Whole {
                self.free.push(number);
            }
            // SAFETY: domain.4: the function is given `event`, a number, and nothing else.
            let deaf = self.ugni.gni_cq_rem_overrun.is_some_and(|overrun| unsafe { overrun(event) } != 0);
            let unheard = call.filter(|_| deaf && stage == Stage::Whole);
            return Some(Done { owner, peer, stage, failed, unheard });
        }
    }

    fn next_arrival(&mut self) -> Arrival {
        if self.given_up {
            return Arrival::Nothing;
        }
        let mut event = 0;
        // SAFETY: domain.1: `arrivals` is there, or null: the domain was not given up. domain.2: the event is written to `event`.
        let code = unsafe { (self.ugni.GNI_CqGetEvent)(self.arrivals, &raw mut event) };
        // SAFETY: domain.4: the function reads the sender's word out of `event`, a number.
        let call = || unsafe { (self.ugni.gni_cq_get_rem_inst_id)(event) };
        match code {
            GNI_RC_SUCCESS => Arrival::Call(call()),
            GNI_RC_NOT_DONE => Arrival::Nothing,
            GNI_RC_ERROR_RESOURCE => Arrival::Overrun(Some(call())),
            // What came with a bad status told of something, too.
            _ => Arrival::Overrun(None),
        }
    }

    fn under_way(&self) -> usize {
        self.wanted.posts as usize - self.free.len()
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    fn is_lost(&self) -> bool {
        self.lost
    }

    fn gathered(&mut self, place: VolatileSlice<'_>) -> Option<Result<(), gni_return_t>> {
        self.result_at(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_alone_go_by_the_ways_that_were_asked_for() {
        let asked = GNI_DLVMODE_MIN_HASH;
        let goes = |owner, call| {
            let (local, local_handle, remote_handle) =
                (RawSlice::EMPTY, Handle::default(), Handle::default());
            let post =
                Post { kind: Kind::Put, peer: 0, local, local_handle, remote: 0, remote_handle, call, owner };
            post.delivery(asked)
        };
        for owner in [Owner::Transfer { token: 1 }, Owner::Fetch { number: 1 }] {
            assert_eq!(goes(owner, None), asked);
        }
        for owner in [Owner::Request { slot: 1 }, Owner::Reply { number: 1 }, Owner::Word, Owner::Given] {
            assert_eq!([goes(owner, None), goes(owner, Some(1))], [GNI_DLVMODE_PERFORMANCE; 2]);
        }
        assert_eq!(goes(Owner::Transfer { token: 1 }, Some(1)), GNI_DLVMODE_IN_ORDER, "its bytes come first");
    }
}
