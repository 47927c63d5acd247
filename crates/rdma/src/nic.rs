//! The port: what a network must do to move bytes one-sidedly.
//!
//! A NIC moves bytes between registered memory of two ranks without the target's help. It does not queue, retry or
//! bounce: the engine does, once, for every NIC. It may refuse for lack of resources ([`NicError::Busy`]); that is a
//! value, never a wait.

use gasworks_sync::RawBytes;
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
}

/// A transfer, as it is handed to a NIC: the port's descriptor type.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// Which way.
    pub direction: Direction,
    /// The other rank.
    pub peer: u32,
    /// The bytes here. They stay mapped and unchanged until the transfer completes locally.
    pub local: RawBytes,
    /// The key of the registration that holds `local`; empty where the NIC does not need one.
    pub local_key: &'a Key,
    /// The bytes there: an offset from the start of the registration that `remote_key` names.
    pub remote_offset: u64,
    /// The key of the peer's registration.
    pub remote_key: &'a Key,
    /// Comes back in the completion.
    pub token: u64,
}

/// A transfer that has completed. A put is complete when its bytes can be seen at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The post's token.
    pub token: u64,
    /// Whether it worked.
    pub result: Result<(), NicError>,
}

/// Why a NIC did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NicError {
    /// No resources now: make progress and try again.
    #[error("the network has no room for the operation now")]
    Busy,
    /// Memory could not be registered.
    #[error("{len} bytes could not be registered with the network")]
    Registration {
        /// How many.
        len: usize,
    },
    /// A key names nothing, or not these bytes.
    #[error("the key of rank {peer} does not cover the bytes of the transfer")]
    BadKey {
        /// Whose key.
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
    /// The peer is gone.
    #[error("rank {peer} cannot be reached any more")]
    PeerGone {
        /// Which.
        peer: u32,
    },
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
    /// Whether local memory must be registered.
    pub registers_local: bool,
    /// How many transfers may be under way at once.
    pub depth: usize,
}

/// A network interface.
pub trait Nic {
    /// The NIC's name in reports.
    fn name(&self) -> &'static str;
    /// What it can do.
    fn abilities(&self) -> Abilities;
    /// Registers memory, so that it may be the local side of transfers here and the remote side from any rank.
    ///
    /// # Safety
    /// The bytes stay mapped until [`deregister`](Self::deregister).
    ///
    /// # Errors
    /// [`NicError::Registration`].
    unsafe fn register(&self, bytes: RawBytes) -> Result<Key, NicError>;
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
    /// Hands up to `burst` completions to `sink`; returns how many.
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize;
}
