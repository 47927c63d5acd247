//! Polling: arrived messages are checked and handed to their handlers; everything else gets its turn.

use super::thread::{self, Handling, may_communicate};
use super::{Engine, Incoming, Received};
use crate::handlers::Placed;
use crate::message::{Decoded, First, Head, Landing, Returned, decode};
use crate::wire::{Arrived, Class, Wire, WireError, no_such_block};
use crate::{Category, CoreMode, Entry, Error, Rank, Signature};
use gasworks_memory::Rights;
use gasworks_shmem::inbox::Line;
use gasworks_shmem::queues::{NoLine, Queues};
use gasworks_sync::VolatileSlice;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the messages of one poll leave behind.
#[derive(Default)]
struct Batch {
    /// The first thing that was wrong with one.
    problem: Option<Box<Error>>,
    /// What became of a transport.
    broken: Option<Box<WireError>>,
}

impl Batch {
    #[inline]
    fn keep(&mut self, outcome: Result<(), Box<Error>>) {
        if let Err(error) = outcome {
            self.problem.get_or_insert(error);
        }
    }

    fn is_spoilt(&self) -> bool {
        self.problem.is_some() || self.broken.is_some()
    }
}

impl<M: CoreMode> Engine<M> {
    /// Makes progress: dispatches arrived messages, moves transfers on, returns credits. Returns how many messages
    /// were dispatched and transfers completed.
    ///
    /// # Errors
    /// A peer's message or memory is not what it must be, a handler's reply failed, or this is called in a handler.
    #[inline]
    pub fn poll(&self) -> Result<usize, Error> {
        if self.poll_idle() { Ok(0) } else { self.poll_more().map_err(|error| *error) }
    }

    /// Polls if nothing has come and there is nothing else to do; whether it was so. If not, a [`poll`](Self::poll) is still to be done.
    #[inline(always)]
    pub fn poll_idle(&self) -> bool {
        // Most polls of a rank that waits. The shorter it looks away, the sooner it sees what it waits for.
        let is_quiet = thread::is_free()
            && self.router.is_idle()
            && !self.pace.is_restless()
            && !self.account.owed().owes();
        if is_quiet {
            self.pace.idle();
        }
        is_quiet
    }

    /// A poll where there is something to do, or which is not allowed.
    #[inline(never)]
    fn poll_more(&self) -> Result<usize, Box<Error>> {
        may_communicate("poll")?;
        self.poll_all()
    }

    /// From now on this thread is there for the others: it sees to messages in every poll, whichever domain would be its turn.
    pub fn serve() {
        thread::serve();
    }

    #[inline(always)]
    fn poll_all(&self) -> Result<usize, Box<Error>> {
        let burst = self.pace.burst();
        let mut batch = Batch::default();
        let look = self.transfers.rdma().look();
        let mut handled = self.take_batch(burst as usize, look.messages, &mut batch);
        self.pace.took(handled, burst);
        if handled > 0 || batch.is_spoilt() {
            // Also where something failed: what went well before may be what another thread sleeps for.
            self.note_work();
        }
        if batch.is_spoilt() || self.pace.is_restless() {
            handled += self.see_to_the_rest(batch, look.around)?;
        } else {
            // It has nothing to free, which to find out would be a call.
            std::mem::forget(batch);
        }
        // Credits ride on other messages where there are any; an idle rank returns them at once, a busy one now and
        // then, so that nobody starves on credits that many ranks hold a few of.
        let is_due = self.pace.count();
        if handled == 0 || is_due {
            self.return_all_credits()?;
        }
        Ok(handled)
    }

    /// What a poll does besides messages, where there is anything: transfers, failures, machines. Returns how many transfers
    /// completed.
    #[inline(never)]
    fn see_to_the_rest(&self, batch: Batch, around: bool) -> Result<usize, Box<Error>> {
        let Batch { problem, broken } = batch;
        // Also where a transport failed: a borrowed buffer is given back only when its transfer is over.
        let completed = self.poll_rdma(around);
        match (problem.or_else(|| self.failure.take()), broken) {
            (Some(first), second) => {
                // The next poll tells of the other.
                second.into_iter().for_each(|second| self.fail_later(Error::Wire(*second)));
                return Err(first);
            }
            (None, Some(broken)) => return Err(Box::new(Error::Wire(*broken))),
            (None, None) => {}
        }
        self.turn_machines()?;
        Ok(completed)
    }

    /// Takes up to `burst` messages of each transport and handles them; returns how many. Not those that come by the first of several
    /// domains, unless they are `all` to be seen to.
    #[inline]
    fn take_batch(&self, burst: usize, all: bool, batch: &mut Batch) -> usize {
        if let Some((wire, queues)) = self.router.only() {
            return self.take_lines(wire, queues, burst, batch);
        }
        self.take_of_several(burst, all, batch)
    }

    #[inline(never)]
    fn take_of_several(&self, burst: usize, all: bool, batch: &mut Batch) -> usize {
        let mut taken = 0;
        for ((number, wire), attributes) in self.router.wires().enumerate().zip(self.router.attributes()) {
            if !all && attributes.is_of_first_domain {
                continue;
            }
            taken += match self.router.queues_of(number) {
                Some(queues) => self.take_lines(wire, queues, burst, batch),
                None => self.take_any(wire, burst.min(attributes.burst as usize), batch),
            };
        }
        taken
    }

    /// Takes up to `burst` messages from the queues of peers that are mapped, and handles them; returns how many.
    #[inline(always)]
    fn take_lines(&self, wire: &M::Wire, queues: &Queues<'_, M>, burst: usize, batch: &mut Batch) -> usize {
        for taken in 0..burst {
            match queues.take_line() {
                Ok(Some(line)) if line.names_block => self.handle_block(wire, queues, line, batch),
                Ok(Some(line)) => self.handle_line(queues.rank(line.from), line, batch),
                Ok(None) => return taken,
                // What is longer, or wrong, is the transport's.
                Err(NoLine) => return taken + self.take_any(wire, burst - taken, batch),
            }
        }
        burst
    }

    /// Handles a message that was copied out whole, so that its room is free.
    #[inline(always)]
    fn handle_line(&self, from: Rank, mut line: Line, batch: &mut Batch) {
        let (head, payload) = line.parts();
        let mut credits = None;
        batch.keep(
            self.dispatch(&Arrived { from, head, payload: VolatileSlice::from_mut(payload) }, &mut credits),
        );
        batch.keep(self.take_credits(credits));
    }

    /// Handles a message whose payload is read where it lies: that room is free once the handler has run, and then what the message returns
    /// may be used.
    #[inline(never)]
    fn handle_block(&self, wire: &M::Wire, queues: &Queues<'_, M>, mut line: Line, batch: &mut Batch) {
        let (sender, block) = (line.from, line.block());
        let (from, head) = (queues.rank(sender), line.parts().0);
        let class = if First::of(head).is_some_and(First::is_reply) { Class::Reply } else { Class::Request };
        let Some(lent) = wire.lend(sender, class, block) else {
            let broken = no_such_block(self.router.attributes_to(from).name, self.rank, from, class, block);
            batch.broken.get_or_insert_with(|| Box::new(broken));
            return;
        };
        let arrived = Arrived { from, head, payload: lent.bytes() };
        let mut credits = None;
        batch.keep(self.dispatch_lent(&arrived, &mut credits));
        drop(lent);
        batch.keep(self.take_credits(credits));
    }

    /// Has a transport hand over up to `burst` messages of any kind, and handles them.
    fn take_any(&self, wire: &M::Wire, burst: usize, batch: &mut Batch) -> usize {
        // A message's credits are taken once its room is free again, that is, after the transport's sink has returned:
        // with a credit goes the right to that room.
        let mut credits = None;
        let taken = self.poll_by_call(wire, burst, &mut |arrived| {
            batch.keep(self.take_credits(credits.take()));
            batch.keep(self.dispatch_lent(&arrived, &mut credits));
        });
        batch.keep(self.take_credits(credits));
        taken.unwrap_or_else(|broken| {
            batch.broken.get_or_insert_with(|| Box::new(broken));
            0
        })
    }

    /// Dispatches a message that lies in the transport's room.
    #[inline(never)]
    fn dispatch_lent(
        &self,
        arrived: &Arrived<'_>,
        credits: &mut Option<(Rank, Returned)>,
    ) -> Result<(), Box<Error>> {
        self.dispatch(arrived, credits)
    }

    /// Takes back credits that a peer returned.
    #[inline]
    fn take_credits(&self, credits: Option<(Rank, Returned)>) -> Result<(), Box<Error>> {
        let Some((from, returned)) = credits else { return Ok(()) };
        self.account
            .take_back(from, returned)
            .map_err(|over| bad_message(from, format!("it returns credits that it never had: {over}")))
    }

    #[inline(always)]
    fn dispatch(
        &self,
        arrived: &Arrived<'_>,
        credits: &mut Option<(Rank, Returned)>,
    ) -> Result<(), Box<Error>> {
        let (from, packet) = (arrived.from, arrived.payload);
        // One word says whether it is what a handler of the table takes.
        let first = First::of(arrived.head);
        let taking = first.and_then(|first| Some((first, self.handlers.taking(first)?)));
        let (first, placed, args, received) = match taking {
            Some((first, placed)) => match (first.category(), first.args(arrived.head)) {
                (Some(Category::Short), Some(args)) if packet.is_empty() => {
                    (first, placed, args, Received::Nothing)
                }
                (Some(Category::Medium), Some(args)) => (first, placed, args, Received::Payload(packet)),
                _ => {
                    let (args, received) = self.long_or_wrong(*arrived)?;
                    (first, placed, args, received)
                }
            },
            _ if packet.is_empty() && first.is_some_and(|first| first.is_credits(arrived.head)) => {
                *credits = first.map(|first| (from, first.returned())).filter(|(_, r)| r.count > 0);
                return Ok(());
            }
            _ => return Err(self.refused(*arrived)),
        };
        let (returned, reply) = (first.returned(), first.is_reply());
        if returned.count > 0 {
            *credits = Some((from, returned));
        } else if reply {
            return Err(bad_message(from, "a reply that answers no request".into()));
        }
        let replied = Cell::new(false);
        let incoming = Incoming {
            engine: self,
            source: from,
            args,
            handler: first.handler(),
            received,
            request: (!reply).then_some((packet.len() as u32, &replied)),
            signature: &placed.entry.signature,
        };
        // A poll is allowed only where this succeeds.
        let Some(handling) = Handling::begin(incoming.address()) else {
            return Err(Box::new(Error::InHandler("poll")));
        };
        let outcome = Self::run(placed, &incoming, handling);
        if !reply && !replied.get() {
            let owed = self.account.owed().owe(from, packet.len() as u32);
            if self.account.may_be_much(owed) {
                return outcome.and(self.return_much(from));
            }
        }
        outcome
    }

    /// Runs a handler, for which this thread is marked. A panic must not unwind through the transport, nor through a wait for a borrowed buffer.
    #[inline(always)]
    pub(super) fn run(
        placed: &Placed<M>,
        incoming: &Incoming<'_, M>,
        _handling: Handling,
    ) -> Result<(), Box<Error>> {
        if placed.unwinds {
            return Self::run_caught(placed, incoming);
        }
        let unwinding = AbortOnUnwind;
        let outcome = (placed.entry.function)(incoming);
        std::mem::forget(unwinding);
        outcome
    }

    fn run_caught(placed: &Placed<M>, incoming: &Incoming<'_, M>) -> Result<(), Box<Error>> {
        let Entry { signature, function } = &placed.entry;
        let outcome = catch_unwind(AssertUnwindSafe(|| function(incoming)));
        outcome.unwrap_or_else(|panic| Err(panicked(incoming.source(), signature, &*panic)))
    }

    /// A Long, or something that is wrong with a message whose first word fits its handler.
    #[inline(never)]
    fn long_or_wrong<'a>(&self, arrived: Arrived<'a>) -> Result<(&'a [u8], Received<'static>), Box<Error>> {
        match First::of(arrived.head).and_then(|first| first.landing(arrived.head)) {
            Some((landing, args)) => Ok((args, self.land(arrived.from, landing, arrived.payload)?)),
            None => Err(wrong(arrived)),
        }
    }

    /// What is wrong with a message that fits no handler.
    #[cold]
    pub(super) fn refused(&self, arrived: Arrived<'_>) -> Box<Error> {
        let what = match decode(arrived.head) {
            Err(what) => what,
            Ok(Decoded { head: Head::Credits, .. }) => "credits that bring something else".into(),
            Ok(Decoded { head: Head::Message { category, reply, handler, .. }, args, .. }) => {
                let (way, count) = (if reply { "reply" } else { "request" }, args.len() / 4);
                match self.handlers.get(handler) {
                    None => format!("no handler is registered at index {handler}"),
                    Some(Entry {
                        signature: Signature { name, category: takes, reply, nargs, .. }, ..
                    }) => {
                        let takes_way = if *reply { "reply" } else { "request" };
                        format!(
                            "a {category} {way} with {count} arguments for handler {handler} ({name:?}), which takes a \
                             {takes} {takes_way} with {nargs}"
                        )
                    }
                }
            }
        };
        bad_message(arrived.from, what)
    }

    /// Brings a Long's payload to its place, or checks that it is there.
    #[inline]
    fn land(
        &self,
        from: Rank,
        landing: Landing,
        packet: VolatileSlice<'_>,
    ) -> Result<Received<'static>, Box<Error>> {
        let Landing { offset, len, in_packet } = landing;
        let carried = if in_packet { len } else { 0 };
        if carried != packet.len() as u64 {
            let packet = packet.len();
            let what = format!("a long message of {len} bytes with {packet} bytes in its packet");
            return Err(bad_message(from, what));
        }
        if len == 0 {
            return Ok(Received::Landed { offset, len });
        }
        let place = match self.peers.reach(self.rank, offset, len as usize, Rights::WRITE) {
            Ok(Some(place)) => place,
            Ok(None) => return Err(bad_message(from, "a long message to a rank without a segment".into())),
            Err(cause) => return Err(bad_message(from, format!("a long message: {cause}"))),
        };
        if in_packet {
            packet.copy_to(place);
        }
        Ok(Received::Landed { offset, len })
    }
}

/// Ends the process where a panic comes out of a function that was said not to unwind.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    #[cold]
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// What is wrong with a message whose first word fits its handler.
#[cold]
fn wrong(arrived: Arrived<'_>) -> Box<Error> {
    let what = match decode(arrived.head) {
        Err(what) => what,
        Ok(Decoded { head: Head::Message { category: Category::Short, .. }, .. }) => {
            format!("a short message with {} bytes of payload", arrived.payload.len())
        }
        Ok(_) => "a message that is neither long nor whole".into(),
    };
    bad_message(arrived.from, what)
}

#[cold]
fn panicked(from: Rank, signature: &Signature, panic: &(dyn Any + Send)) -> Box<Error> {
    let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Box::new(Error::Handler { from, what: format!("handler {:?} panicked: {said}", signature.name) })
}

#[cold]
fn bad_message(from: Rank, what: String) -> Box<Error> {
    Box::new(Error::BadMessage { from, what })
}
