//! What a handler is given: its message by value, its payload by accessor.

use crate::index::{Args, LongReply, MediumReply, ShortReply};
use crate::{Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Ask, Category, Commit, Incoming, Outgoing, Token};
use gasworks_sync::VolatileSlice;
use std::marker::PhantomData;

/// A request in its handler's hands. It can be replied to once, by value; a handler that does not reply lets it drop.
pub struct Request<'a, M: ThreadMode>(pub(crate) &'a Incoming<'a, M>);

impl<M: ThreadMode> Request<'_, M> {
    /// Who sent it.
    pub fn source(&self) -> u32 {
        self.0.source()
    }

    /// The rank that handles it.
    pub fn rank(&self) -> u32 {
        self.0.rank()
    }

    /// Replies with a Short.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn reply_short<B: Args>(self, handler: ShortReply<B>, args: B) -> Result<(), Error> {
        self.reply(Category::Short, handler.index(), &args, &[], 0)
    }

    /// Replies with a Medium.
    ///
    /// # Errors
    /// The payload is larger than the largest Medium, or the peer is gone.
    pub fn reply_medium<B: Args>(
        self,
        handler: MediumReply<B>,
        args: B,
        payload: &[u8],
    ) -> Result<(), Error> {
        self.reply(Category::Medium, handler.index(), &args, payload, 0)
    }

    /// Replies with a Long, whose payload lands in the requester's segment.
    ///
    /// # Errors
    /// The place is not in the requester's segment, or the peer is gone.
    pub fn reply_long<B: Args>(
        self,
        handler: LongReply<B>,
        args: B,
        payload: &[u8],
        landing: GlobalPtr<u8>,
    ) -> Result<(), Error> {
        if landing.rank() != self.source() {
            let source = self.source();
            return Err(Error::Pointer(format!("a long reply to rank {source} cannot land at {landing:?}")));
        }
        self.reply(Category::Long, handler.index(), &args, payload, landing.offset())
    }

    /// Replies with a Medium whose payload `fill` makes in place: it is given room for at most `most` bytes and returns
    /// how many it has filled, or `None` to send no reply after all.
    ///
    /// # Errors
    /// `most` is more than a Medium carries, `fill` claims more than that, or the peer is gone.
    pub fn reply_medium_in_place<B: Args>(
        self,
        handler: MediumReply<B>,
        args: B,
        most: usize,
        fill: impl FnOnce(&Room<'_>) -> Option<usize>,
    ) -> Result<(), Error> {
        let ask = Ask { category: Category::Medium, least: most, most, landing: None, source: None };
        let args = bytemuck::bytes_of(&args);
        Ok(self.0.reply_prepared(&ask, |prepared| {
            let len = fill(&Room { bytes: prepared.room() })?;
            Some(Commit { handler: handler.index(), args, len, landing: 0, source: None })
        })?)
    }

    /// What is known of it besides its content.
    pub fn token(&self) -> Token<'_> {
        self.0.token()
    }

    #[inline(always)]
    fn reply<B: Args>(
        self,
        category: Category,
        handler: u8,
        args: &B,
        payload: &[u8],
        landing: u64,
    ) -> Result<(), Error> {
        let message = Outgoing { category, handler, args: bytemuck::bytes_of(args), payload, landing };
        Ok(self.0.reply(&message)?)
    }
}

/// A reply in its handler's hands. There is nothing to answer.
pub struct Reply<'a> {
    pub(crate) source: u32,
    pub(crate) rank: u32,
    pub(crate) of: PhantomData<&'a ()>,
}

impl Reply<'_> {
    /// Who sent it.
    pub fn source(&self) -> u32 {
        self.source
    }

    /// The rank that handles it.
    pub fn rank(&self) -> u32 {
        self.rank
    }
}

/// Room in which the payload of a reply is made.
pub struct Room<'a> {
    bytes: VolatileSlice<'a>,
}

impl Room<'_> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies `bytes` into it, from `offset` on.
    ///
    /// # Errors
    /// They are not all inside.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let outside = || {
            let (len, room) = (bytes.len(), self.len());
            Error::Pointer(format!("bytes {offset} to {offset}+{len} of room for {room} bytes"))
        };
        self.bytes.slice(offset, bytes.len()).ok_or_else(outside)?.write(bytes);
        Ok(())
    }
}

/// A Medium's payload, where it lies. It goes when the handler returns; what is wanted longer is copied out.
pub struct Payload<'a> {
    pub(crate) bytes: VolatileSlice<'a>,
}

impl Payload<'_> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies its first bytes out, as many as `target` has.
    ///
    /// # Panics
    /// If `target` is longer than the payload.
    pub fn copy_to(&self, target: &mut [u8]) {
        self.bytes.read(target);
    }

    /// Copies `target.len()` values from byte `offset` on.
    ///
    /// # Errors
    /// They are not all inside the payload.
    pub fn copy_range_to<T: Pod>(&self, offset: usize, target: &mut [T]) -> Result<(), Error> {
        let target = bytemuck::cast_slice_mut(target);
        let outside = || {
            let (wanted, len) = (target.len(), self.len());
            Error::Pointer(format!("bytes {offset} to {offset}+{wanted} of a payload of {len} bytes"))
        };
        let bytes = self.bytes.slice(offset, target.len()).ok_or_else(outside)?;
        bytes.read(target);
        Ok(())
    }

    /// All of it, copied, as values of `T`; bytes that do not fill a last value are left out.
    pub fn to_vec<T: Pod>(&self) -> Vec<T> {
        let mut values = vec![T::zeroed(); self.len() / size_of::<T>().max(1)];
        self.bytes.read(bytemuck::cast_slice_mut(&mut values));
        values
    }

    /// Where it lies. A peer that misbehaves may still be writing there: read it by raw copies only, before the
    /// handler returns.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// A Long's payload: it is in this rank's segment already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Where.
    pub at: GlobalPtr<u8>,
    /// Its length in bytes.
    pub len: u64,
}

/// What a handler may return: nothing, or whether it worked. A failure comes out of the poll that ran the handler.
pub trait Outcome {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), Error>;
}

impl Outcome for () {
    fn into_result(self) -> Result<(), Error> {
        Ok(())
    }
}

impl Outcome for Result<(), Error> {
    fn into_result(self) -> Result<(), Error> {
        self
    }
}
