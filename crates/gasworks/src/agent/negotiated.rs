//! Active messages whose payload is made in place, in room that was agreed on first.

use super::{Agent, named};
use crate::index::{Args, LongRequest, MediumRequest};
use crate::{Error, GlobalPtr, ThreadMode};
use gasworks_core::{Ask, Category, Commit, Prepared};
use std::ops::RangeInclusive;

/// Room for the payload of a Medium request. Dropped without a commit, it is given back.
#[must_use = "room is held until it is committed or cancelled"]
pub struct PreparedMedium<'job, 'a, M: ThreadMode> {
    prepared: Prepared<'job, M>,
    source: Option<&'a [u8]>,
}

/// Room for the payload of a Long request. Dropped without a commit, it is given back.
#[must_use = "room is held until it is committed or cancelled"]
pub struct PreparedLong<'job, 'a, M: ThreadMode> {
    prepared: Prepared<'job, M>,
    source: Option<&'a [u8]>,
    landing: GlobalPtr<u8>,
}

macro_rules! room {
    ($name:ident) => {
        impl<M: ThreadMode> $name<'_, '_, M> {
            /// How many bytes of payload were granted: between the least and the most that was asked for.
            pub fn granted(&self) -> usize {
                self.prepared.granted()
            }

            /// Copies `bytes` into the room, from `offset` on.
            ///
            /// # Errors
            /// They are not all inside, or the payload is the program's own buffer.
            pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
                let place = self.prepared.room().slice(offset, bytes.len());
                let place = place.ok_or_else(|| {
                    let (len, room) = (bytes.len(), self.prepared.room().len());
                    Error::Pointer(format!("bytes {offset} to {offset}+{len} of room for {room} bytes"))
                })?;
                place.write(bytes);
                Ok(())
            }

            /// Where the room is, for a payload that is made by other means: [`granted`](Self::granted) bytes, which may
            /// be written until the commit. Null where the payload is the program's own buffer.
            pub fn as_mut_ptr(&mut self) -> *mut u8 {
                let room = self.prepared.room();
                if room.is_empty() { std::ptr::null_mut() } else { room.as_ptr() }
            }

            /// Gives the room back, as dropping it does.
            pub fn cancel(self) {}
        }
    };
}

room!(PreparedMedium);
room!(PreparedLong);

impl<M: ThreadMode> PreparedMedium<'_, '_, M> {
    /// Sends the request with the first `len` bytes of payload.
    ///
    /// # Errors
    /// `len` is more than was granted, or the peer is gone.
    pub fn commit<A: Args>(self, handler: MediumRequest<A>, args: A, len: usize) -> Result<(), Error> {
        let (args, source) = (bytemuck::bytes_of(&args), self.source);
        Ok(self.prepared.commit(&Commit { handler: handler.index(), args, len, landing: 0, source })?)
    }
}

impl<M: ThreadMode> PreparedLong<'_, '_, M> {
    /// Sends the request with the first `len` bytes of payload.
    ///
    /// # Errors
    /// `len` is more than was granted, or the peer is gone.
    pub fn commit<A: Args>(self, handler: LongRequest<A>, args: A, len: usize) -> Result<(), Error> {
        let (args, landing, source) = (bytemuck::bytes_of(&args), self.landing.offset(), self.source);
        Ok(self.prepared.commit(&Commit { handler: handler.index(), args, len, landing, source })?)
    }
}

fn ask(category: Category, bytes: &RangeInclusive<usize>, landing: Option<GlobalPtr<u8>>) -> Ask {
    let landing = landing.map(GlobalPtr::offset);
    Ask { category, least: *bytes.start(), most: *bytes.end(), landing, source: None }
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    fn prepare(&self, to: u32, ask: &Ask) -> Result<Prepared<'job, M>, Error> {
        self.engine().prepare(self.view.rank_of(to)?, ask).map_err(named(self.view, to))
    }

    fn try_prepare(&self, to: u32, ask: &Ask) -> Result<Prepared<'job, M>, Error> {
        self.engine().try_prepare(self.view.rank_of(to)?, ask).map_err(named(self.view, to))
    }

    /// Agrees on room for a Medium request to `to` with as many bytes of payload as may be had within `bytes`, polling
    /// while it is short. It lies where the payload travels, so a payload that is made there is not copied to be sent.
    ///
    /// # Errors
    /// The least is more than a Medium carries, there is no such rank, or a poll finds something wrong.
    pub fn prepare_medium(
        &self,
        to: u32,
        bytes: RangeInclusive<usize>,
    ) -> Result<PreparedMedium<'job, 'static, M>, Error> {
        let prepared = self.prepare(to, &ask(Category::Medium, &bytes, None))?;
        Ok(PreparedMedium { prepared, source: None })
    }

    /// As [`prepare_medium`](Self::prepare_medium), or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`prepare_medium`](Self::prepare_medium).
    pub fn try_prepare_medium(
        &self,
        to: u32,
        bytes: RangeInclusive<usize>,
    ) -> Result<PreparedMedium<'job, 'static, M>, Error> {
        let prepared = self.try_prepare(to, &ask(Category::Medium, &bytes, None))?;
        Ok(PreparedMedium { prepared, source: None })
    }

    /// Agrees on a Medium request whose payload is the start of `source`, at least `least` bytes of it.
    ///
    /// # Errors
    /// Those of [`prepare_medium`](Self::prepare_medium).
    pub fn prepare_medium_from<'a>(
        &self,
        to: u32,
        source: &'a [u8],
        least: usize,
    ) -> Result<PreparedMedium<'job, 'a, M>, Error> {
        let ask = Ask { source: Some(source.len()), ..ask(Category::Medium, &(least..=source.len()), None) };
        Ok(PreparedMedium { prepared: self.prepare(to, &ask)?, source: Some(source) })
    }

    /// Agrees on room for a Long request that lands at `landing`. Where that rank is mapped, the room is its segment
    /// itself: the payload is made where it will be read.
    ///
    /// # Errors
    /// The least is more than can be granted, the place is not inside the segment, there is no such rank, or a poll finds
    /// something wrong.
    pub fn prepare_long(
        &self,
        landing: GlobalPtr<u8>,
        bytes: RangeInclusive<usize>,
    ) -> Result<PreparedLong<'job, 'static, M>, Error> {
        let landing = landing.known(self.view)?;
        let prepared = self.prepare(landing.rank(), &ask(Category::Long, &bytes, Some(landing)))?;
        Ok(PreparedLong { prepared, source: None, landing })
    }

    /// As [`prepare_long`](Self::prepare_long), or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`prepare_long`](Self::prepare_long).
    pub fn try_prepare_long(
        &self,
        landing: GlobalPtr<u8>,
        bytes: RangeInclusive<usize>,
    ) -> Result<PreparedLong<'job, 'static, M>, Error> {
        let landing = landing.known(self.view)?;
        let prepared = self.try_prepare(landing.rank(), &ask(Category::Long, &bytes, Some(landing)))?;
        Ok(PreparedLong { prepared, source: None, landing })
    }

    /// Agrees on a Long request whose payload is the start of `source`, at least `least` bytes of it.
    ///
    /// # Errors
    /// Those of [`prepare_long`](Self::prepare_long).
    pub fn prepare_long_from<'a>(
        &self,
        landing: GlobalPtr<u8>,
        source: &'a [u8],
        least: usize,
    ) -> Result<PreparedLong<'job, 'a, M>, Error> {
        let landing = landing.known(self.view)?;
        let ask = ask(Category::Long, &(least..=source.len()), Some(landing));
        let prepared = self.prepare(landing.rank(), &Ask { source: Some(source.len()), ..ask })?;
        Ok(PreparedLong { prepared, source: Some(source), landing })
    }
}
