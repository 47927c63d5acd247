//! Polling: arrived messages are checked and handed to their handlers; everything else gets its turn.

use super::thread::{Handling, may_communicate};
use super::{BURST, Engine, Incoming, RETURN_EVERY, Received};
use crate::message::{Decoded, Head, Landing, Returned, decode};
use crate::wire::Arrived;
use crate::{Category, CoreMode, Error, Rank};
use gasworks_memory::Rights;
use gasworks_sync::atomic::Ordering;
use gasworks_sync::{Lent, Lock};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<M: CoreMode> Engine<M> {
    /// Makes progress: dispatches arrived messages, moves transfers on, returns credits. Returns how many messages
    /// were dispatched and transfers completed.
    ///
    /// # Errors
    /// A peer's message or memory is not what it must be, a handler's reply failed, or this is called in a handler.
    #[inline]
    pub fn poll(&self) -> Result<usize, Error> {
        may_communicate("poll")?;
        let mut problem = None;
        let mut keep_first = |outcome: Result<(), Error>| {
            if let Err(error) = outcome {
                problem.get_or_insert(error);
            }
        };
        // A message's credits are taken once its room is free again, that is, after the transport's sink has returned:
        // with a credit goes the right to that room.
        let mut credits = None;
        let handled = self.router.poll(BURST, &mut |arrived| {
            keep_first(self.take_credits(credits.take()));
            keep_first(self.dispatch(&arrived, &mut credits));
        });
        keep_first(self.take_credits(credits.take()));
        // Also where a transport failed: a borrowed buffer is given back only when its transfer is over.
        let completed = self.poll_rdma();
        if let Some(error) = problem {
            return Err(error);
        }
        if self.failed.load(Ordering::Relaxed) {
            self.earlier_failure()?;
        }
        let handled = handled? + completed?;
        if handled > 0 {
            self.note_work();
        }
        self.tasks.turn(self)?;
        // Credits ride on other messages where there are any; an idle rank returns them at once, a busy one now and
        // then, so that nobody starves on credits that many ranks hold a few of.
        let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        if handled == 0 || polls.is_multiple_of(RETURN_EVERY) {
            self.return_all_credits()?;
        }
        Ok(handled)
    }

    fn return_all_credits(&self) -> Result<(), Error> {
        let mut from = 0;
        while let Some(peer) = self.owed.next_owing(from) {
            self.return_credits(peer)?;
            from = peer + 1;
        }
        Ok(())
    }

    /// Records a failure that nobody is there to be told of; the next poll returns it.
    pub fn fail_later(&self, error: Error) {
        self.failure.with(|slot| {
            slot.get_or_insert(error);
        });
        // Relaxed: the lock orders what it holds; a poll that comes too early leaves it to the next.
        self.failed.store(true, Ordering::Relaxed);
    }

    #[cold]
    fn earlier_failure(&self) -> Result<(), Error> {
        let error = self.failure.with(|slot| {
            self.failed.store(false, Ordering::Relaxed);
            slot.take()
        });
        error.map_or(Ok(()), Err)
    }

    /// Takes back credits that a peer returned.
    fn take_credits(&self, credits: Option<(Rank, Returned)>) -> Result<(), Error> {
        let Some((from, returned)) = credits else { return Ok(()) };
        self.credits.give(from, u32::from(returned.count), u64::from(returned.bytes)).map_err(|over| {
            Error::BadMessage { from, what: format!("it returns credits that it never had: {over}") }
        })
    }

    fn dispatch(&self, arrived: &Arrived<'_>, credits: &mut Option<(Rank, Returned)>) -> Result<(), Error> {
        let from = arrived.from;
        let bad = |what: String| Error::BadMessage { from, what };
        let Decoded { head, source, returned, args } = decode(arrived.head).map_err(bad)?;
        if source != from || from >= self.ranks() {
            return Err(bad(format!("it claims to come from rank {source}")));
        }
        if returned.count > 0 {
            *credits = Some((from, returned));
        }
        let Head::Message { category, reply, handler, landing } = head else { return Ok(()) };
        if reply && returned.count == 0 {
            return Err(bad("a reply that answers no request".into()));
        }
        let entry = self.handlers.get(handler);
        let entry = entry.ok_or_else(|| bad(format!("no handler is registered at index {handler}")))?;
        let expected = &entry.signature;
        if expected.category != category || expected.reply != reply || expected.nargs != args.len() / 4 {
            let way = if reply { "reply" } else { "request" };
            return Err(bad(format!(
                "a {category} {way} with {} arguments for handler {handler} ({:?}), which takes a {} {} with {}",
                args.len() / 4,
                expected.name,
                expected.category,
                if expected.reply { "reply" } else { "request" },
                expected.nargs,
            )));
        }
        let packet = arrived.payload;
        let received = match (category, landing) {
            (Category::Long, Some(landing)) => self.land(from, landing, packet)?,
            (Category::Medium, _) => Received::Payload(packet),
            (_, _) if packet.is_empty() => Received::Nothing,
            (_, _) => return Err(bad(format!("a short message with {} bytes of payload", packet.len()))),
        };
        let replied = Cell::new(false);
        let request = (!reply).then_some((packet.len() as u32, &replied));
        let message =
            Incoming { engine: self, source: from, args, handler, received, request, signature: expected };
        let outcome = {
            let _handling = Handling::begin();
            // A panic must not unwind through the transport, nor through a wait for a borrowed buffer.
            catch_unwind(AssertUnwindSafe(|| (entry.function)(message)))
        };
        let outcome = outcome.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(Error::Handler { from, what: format!("handler {:?} panicked: {said}", expected.name) })
        });
        if !reply && !replied.get() && self.owed.owe(from, packet.len() as u32) >= self.return_at {
            return outcome.and(self.return_credits(from));
        }
        outcome
    }

    /// Brings a Long's payload to its place, or checks that it is there.
    fn land(&self, from: Rank, landing: Landing, packet: Lent<'_>) -> Result<Received<'static>, Error> {
        let Landing { offset, len, in_packet } = landing;
        let bad = |what: String| Error::BadMessage { from, what };
        let carried = if in_packet { len } else { 0 };
        if carried != packet.len() as u64 {
            return Err(bad(format!(
                "a long message of {len} bytes with {} bytes in its packet",
                packet.len()
            )));
        }
        if len == 0 {
            return Ok(Received::Landed { offset, len });
        }
        let own = self.own.ok_or_else(|| bad("a long message to a rank without a segment".into()))?;
        // The table knows the room that the segment has; how much of that is in use, the peer table.
        let inside = self.peers.locate(self.rank, offset, len as usize);
        let place = inside.and_then(|_| self.segments.locate(own, self.rank, offset, len, Rights::WRITE));
        let place = place.map_err(|cause| bad(format!("a long message: {cause}")))?;
        if in_packet {
            // SAFETY: both runs are mapped for `len` bytes (Y1 of gasworks_sync::racy): the packet until the sink
            // returns, the segment by invariant T1 of gasworks_memory's table; the one is the library's buffer, the
            // other the client's segment, so they do not overlap.
            unsafe { gasworks_sync::racy::copy(place.as_ptr(), packet.as_ptr(), packet.len()) };
        }
        Ok(Received::Landed { offset, len })
    }
}
