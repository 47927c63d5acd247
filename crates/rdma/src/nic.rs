//! The port: what a network must do to move bytes one-sidedly.
//!
//! A NIC moves bytes between registered memory of two ranks without the target's help. It does not queue, retry or
//! bounce: the engine does, once, for every NIC. It may refuse for lack of resources ([`NicError::Busy`]); that is a
//! value, never a wait.

use gasworks_memory::atomic::{Ops, Type, Update};
use gasworks_sync::RawSlice;
use thiserror::Error;

/// A NIC's key for registered memory: opaque bytes of any length, good in any rank of the job.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Key(pub Vec<u8>);

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this rank to the peer.
    Put,
    /// From the peer to this rank.
    Get,
    /// Both: the operands go to a word of the peer's, which changes, and what it was comes here, if that is fetched.
    Update(Update),
}

/// By what a NIC moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The processor hands them to it, or is handed them: sooner there, but the processor's work (uGNI's FMA). The local bytes
    /// of a put need not be registered.
    Short,
    /// It fetches or stores them by itself (uGNI's BTE).
    Bulk,
}

/// A transfer, as it is handed to a NIC: the port's descriptor type.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// Which way they go.
    pub direction: Direction,
    /// By what.
    pub way: Way,
    /// The other rank.
    pub peer: u32,
    /// The bytes here. They stay mapped and unchanged until the transfer completes locally. Of an update: room for the word.
    pub local: RawSlice,
    /// The key of the registration that holds `local`; empty where the NIC does not need one, or for a short put.
    pub local_key: &'a Key,
    /// The address in the peer's process at which the registration begins that `remote_key` names, as far as is known: for NICs to which
    /// memory is named by addresses (`FI_MR_VIRT_ADDR` in libfabric).
    pub remote_base: u64,
    /// The bytes there: an offset from the start of that registration.
    pub remote_offset: u64,
    /// The key of the peer's registration.
    pub remote_key: &'a Key,
    /// Whether the NIC is to say of a put when its source may be used again ([`Stage::Source`]), if it can.
    pub source_apart: bool,
    /// Of a put: the number that its target is told once the bytes can be seen there ([`Nic::tell`]), by this very post.
    pub tells: Option<u32>,
    /// Comes back in the completion.
    pub token: u64,
}

/// How far a transfer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The local bytes of a put may be used again, and it is not over.
    Source,
    /// It is over: the bytes of a put can be seen at the target.
    Whole,
}

/// A transfer that has completed, or has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The post's token.
    pub token: u64,
    /// How far.
    pub stage: Stage,
    /// Whether it worked.
    pub result: Result<(), NicError>,
}

/// Why a NIC did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NicError {
    /// It is no operation of the network's, and failed for a reason that a poll has given.
    #[error("the operation failed, for the reason that a poll has given")]
    Failed,
    /// No resources now: make progress and try again.
    #[error("the network has no room for the operation now")]
    Busy,
    /// Memory could not be registered: it is not of the kind, or there are too many registrations.
    #[error("{len} bytes could not be registered with the network: {why}")]
    Registration {
        /// How many.
        len: usize,
        /// What the network says of it.
        why: &'static str,
    },
    /// A key names nothing, or not these bytes.
    #[error("the key of rank {peer} does not cover the bytes of the transfer")]
    BadKey {
        /// Whose key.
        peer: u32,
    },
    /// Bytes of the transfer cannot be read or written, here or at the peer. Some may have been moved.
    #[error("bytes of the transfer with rank {peer} are not mapped, or not to be used so, there or here")]
    Fault {
        /// With whom.
        peer: u32,
    },
    /// An atomic operation failed on the way: nobody knows whether it was done, so it is not tried again.
    #[error(
        "whether an atomic operation on rank {peer} was done is not known: the network lost it, or its answer"
    )]
    InDoubt {
        /// On whom.
        peer: u32,
    },
    /// The transfer breaks a rule of the NIC (alignment, length).
    #[error("a transfer of {len} bytes at offset {offset} breaks the network's rules")]
    BadShape {
        /// Its length.
        len: usize,
        /// Its remote offset.
        offset: u64,
    },
    /// It had no room, time and again, with nothing under way that could have made some.
    #[error("the network refused an operation {times} times for lack of room, with none under way")]
    Starved {
        /// How often.
        times: u32,
    },
    /// A transfer failed, and the network says why.
    #[error("rank {peer} cannot be reached any more: {why}")]
    Unreachable {
        /// Whom it was with.
        peer: u32,
        /// In the network's words.
        why: &'static str,
    },
    /// The peer is gone.
    #[error("rank {peer} cannot be reached any more")]
    PeerGone {
        /// Which.
        peer: u32,
    },
}

/// The atomic operations that a NIC does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomics {
    /// Which, for each type by its number.
    pub of: [Ops; Type::ALL.len()],
    /// Whether the processor's operations on the same words may go on at the same time.
    pub mixes: bool,
}

impl Atomics {
    /// None.
    pub const NONE: Self = Self { of: [Ops::empty(); Type::ALL.len()], mixes: false };

    /// Those on words of a type.
    pub const fn on(&self, of: Type) -> Ops {
        self.of[of as usize]
    }
}

/// What a NIC can do, as data.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// The longest transfer, in bytes.
    pub largest: usize,
    /// Offsets and lengths of a get are multiples of this.
    pub get_alignment: usize,
    /// Offsets and lengths of a put are multiples of this.
    pub put_alignment: usize,
    /// Local addresses of a get are multiples of this.
    pub local_alignment: usize,
    /// The longest transfer of [`Way::Short`]; 0 where there is no such way.
    pub short: usize,
    /// Whether local memory must be registered, but for short puts.
    pub registers_local: bool,
    /// Whether it says of a put of [`Way::Bulk`] when the source may be used again ([`Stage::Source`]).
    pub tells_source: bool,
    /// Whether it keeps registrations itself, as a library over it may (UDREG): it is then asked for each transfer, and the engine keeps
    /// none.
    pub keeps_registrations: bool,
    /// How many transfers may be under way at once.
    pub depth: usize,
    /// How many completions a poll takes at most: more wait for the next one.
    pub burst: usize,
    /// Which atomic operations it does.
    pub atomics: Atomics,
}

impl Abilities {
    /// Those of a NIC without rules, of one way, on which one transfer after the other goes.
    pub const PLAIN: Self = Self {
        largest: usize::MAX,
        get_alignment: 1,
        put_alignment: 1,
        local_alignment: 1,
        short: 0,
        registers_local: false,
        tells_source: false,
        keeps_registrations: false,
        depth: 1,
        burst: 20,
        atomics: Atomics::NONE,
    };
}

impl Default for Abilities {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// A network interface.
pub trait Nic {
    /// The NIC's name in reports.
    fn name(&self) -> &'static str;
    /// What it can do.
    fn abilities(&self) -> Abilities;
    /// Registers memory, so that it may be the local side of transfers here and the remote side from any rank. It begins at a multiple
    /// of 8, and may end anywhere: a get that is rounded up to [`Abilities::get_alignment`] reaches fewer bytes than that beyond its end, and may
    /// bring anything in place of these.
    ///
    /// # Safety
    /// The bytes are mapped, and stay so while a post names them, here or in a peer. Once they are not, nothing but
    /// [`deregister`](Self::deregister) is asked of the registration.
    ///
    /// # Errors
    /// [`NicError::Registration`].
    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError>;
    /// Registers memory for the local side of one transfer. A NIC that keeps registrations may have one.
    ///
    /// # Safety
    /// As [`register`](Self::register).
    ///
    /// # Errors
    /// [`NicError::Registration`].
    unsafe fn register_local(&self, bytes: RawSlice) -> Result<Key, NicError> {
        // SAFETY: the caller promises of the bytes what `register` asks: they are mapped, and stay so while a post names them.
        unsafe { self.register(bytes) }
    }
    /// Registers memory that may only be read, for the source of one put.
    ///
    /// # Safety
    /// As [`register`](Self::register).
    ///
    /// # Errors
    /// [`NicError::Registration`]; also of a NIC that knows no such registrations.
    unsafe fn register_source(&self, bytes: RawSlice) -> Result<Key, NicError> {
        Err(NicError::Registration { len: bytes.len(), why: "it is registered to be written or not at all" })
    }
    /// Ends a registration of this rank.
    ///
    /// # Errors
    /// [`NicError::BadKey`].
    fn deregister(&self, key: &Key) -> Result<(), NicError>;
    /// Starts a transfer.
    ///
    /// # Safety
    /// `post.local` stays mapped until the completion with its token has been polled; for a get nobody else uses it
    /// meanwhile.
    ///
    /// # Errors
    /// Any of [`NicError`]; nothing was started then.
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError>;
    /// Tells a peer's transport a number, once: what it expects by that has landed, or will not. Numbers come from that transport, so a NIC
    /// whose transport gives none is never asked.
    fn tell(&self, _peer: u32, _number: u32, _landed: bool) {}
    /// Hands up to `burst` completions to `sink`; returns how many.
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize;
}
