//! Messages of a rank to itself: no transport carries them, and they take no credit. Their handlers have run when the call returns, those of
//! their replies when the reply returns.

use super::{Engine, Incoming, Outgoing, Received};
use crate::message::{First, Returned, first_word};
use crate::wire::{Arrived, Class, Own, Wire, head_of};
use crate::{Category, CoreMode, Error};
use gasworks_sync::Lent;
use gasworks_sync::room::with_copy;
use std::cell::Cell;

impl<M: CoreMode> Engine<M> {
    /// Handles a message of this rank to itself.
    ///
    /// # Errors
    /// The message is not one that can be sent. What its handler says went wrong the next poll tells.
    #[inline(never)]
    pub(super) fn to_itself(&self, class: Class, message: &Outgoing<'_>) -> Result<(), Error> {
        let &Outgoing { category, payload, landing, .. } = message;
        self.fits(self.rank, message)?;
        match category {
            Category::Short => self.handle_own(class, message, Received::Nothing),
            Category::Medium => {
                // A copy, as any other receiver has: the handler may write to what the payload was made of.
                let handled =
                    with_copy(payload, |copy| self.handle_own(class, message, Received::Payload(copy)));
                handled.unwrap_or(Err(Error::NoMemory { len: payload.len() }))
            }
            Category::Long => {
                if let Some(target) = self.landing(self.rank, landing, payload.len())? {
                    target.write(payload);
                }
                self.handle_own(
                    class,
                    message,
                    Received::Landed { offset: landing, len: payload.len() as u64 },
                )
            }
        }
    }

    /// Handles a message of this rank to itself whose payload is where its handler looks for it.
    pub(super) fn handle_own(
        &self,
        class: Class,
        message: &Outgoing<'_>,
        received: Received<'_>,
    ) -> Result<(), Error> {
        let &Outgoing { category, handler, args, .. } = message;
        let (reply, replied) = (class == Class::Reply, Cell::new(false));
        let word = first_word(category, reply, handler, args.len() / 4, Returned::default());
        let Some(entry) = self.handlers.taking(First::new(word)) else {
            let (head, len) = head_of(word, args);
            let empty = Lent::new(gasworks_sync::RawBytes::EMPTY);
            return Err(*self.refused(Arrived { from: self.rank, head: &head[..len], payload: empty }));
        };
        let bytes = match received {
            Received::Nothing => 0,
            Received::Payload(bytes) => bytes.len(),
            Received::Landed { len, .. } => len as usize,
        };
        self.router.to(self.rank).own(Own { category, reply, handler, bytes }, &mut || {
            let outcome = Self::run(self.rank, entry, || Incoming {
                engine: self,
                source: self.rank,
                args,
                handler,
                received,
                request: (!reply).then_some((0, &replied)),
                signature: &entry.signature,
            });
            outcome.unwrap_or_else(|error| self.fail_later(*error));
        });
        self.note_work();
        Ok(())
    }
}
