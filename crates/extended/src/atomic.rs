//! Atomic operations on words of segments: the specification's atomic domains.
//!
//! A word is changed by the processor of whoever asks, where its rank is mapped; by the NIC; or by the processor of the rank whose it is, which a
//! message asks for it. The NIC's operations and the processors' may not mix on one word. So there are [`Domain`]s: each rank makes one with
//! the same arguments, and with these the same choice. While one of them is used on a word, nothing else touches it: no other domain, no put
//! or get, no load or store.
//!
//! What a rank wrote before an operation can be seen by whoever sees what that did.
//!
//! # Invariants
//! - atomic.1: the place for what a word was stays mapped and is not used otherwise until the operation has completed: a blocking call
//!   does not return before; a non-blocking one passes the obligation to its caller, or keeps the place in the operation.

use crate::Error;
use crate::event::{self, Event, Kept};
use crate::implicit::Implicit;
use gasworks_core::engine::query::{NUMBER, word};
use gasworks_core::ops::{Answer, NotStarted};
use gasworks_core::{Category, CoreMode, Engine, Handlers, Incoming, OpId, Outgoing, Transfer, counts_of};
use gasworks_memory::atomic::{NotAWord, Ops, Type, Update};
use gasworks_memory::{Access, Rights, Rows};
use gasworks_rdma::{Direction, NicError};
use gasworks_sync::{RawSlice, VolatileSlice};

/// For which words a domain is to be fast: the specification's `GEX_FLAG_AD_FAVOR_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Favor {
    /// Those of ranks on other hosts: the NIC does them where it can.
    #[default]
    Far,
    /// Those of this rank or its host: no NIC does them.
    Near,
}

/// Who does a domain's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Processors.
    Processor,
    /// The NIC, whatever the rank.
    Nic,
    /// Processors where ranks are mapped and the NIC elsewhere, which do not get into each other's way.
    Either,
}

/// Operations on words of a type, and who does them: the specification's `gex_AD_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    of: Type,
    operations: Ops,
    by: By,
}

impl Domain {
    /// A domain of these operations. Every rank makes it with the same arguments; nobody waits for the others.
    ///
    /// # Errors
    /// The type does not have all of these operations.
    pub fn new<M: CoreMode>(
        engine: &Engine<M>,
        of: Type,
        operations: Ops,
        favor: Favor,
    ) -> Result<Self, Error> {
        let none = operations.difference(of.operations());
        if !none.is_empty() {
            return Err(Error::Operations { of, operations: none });
        }
        let (nic, peers) = (engine.atomics(), engine.peers());
        let is_offered = nic.on(of).contains(operations);
        // Those who reach all are all of them, or none is: who is mapped is so both ways.
        let far = favor == Favor::Far && (0..engine.ranks()).any(|rank| !peers.reaches(rank));
        let by = match () {
            () if !is_offered || !far => By::Processor,
            () if nic.mixes => By::Either,
            () => By::Nic,
        };
        Ok(Self { of, operations, by })
    }

    /// What its words hold.
    pub fn of(&self) -> Type {
        self.of
    }

    /// Its operations.
    pub fn operations(&self) -> Ops {
        self.operations
    }

    /// Who does them.
    pub fn by(&self) -> By {
        self.by
    }
}

/// An operation of a domain's on a word.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Whose it is.
    pub domain: Domain,
    /// What it does.
    pub update: Update,
    /// The rank in whose segment the word is.
    pub rank: u32,
    /// Where in that.
    pub offset: u64,
}

impl Operation {
    #[inline(always)]
    fn check(&self) -> Result<(), Error> {
        let Domain { of: domain_of, operations: made_for, .. } = self.domain;
        let Update { of, .. } = self.update;
        let operation = self.update.bit();
        if of == domain_of && made_for.contains(operation) {
            return Ok(());
        }
        Err(Error::NotOfDomain { operation, of, made_for, domain_of })
    }

    fn unaligned(&self) -> Error {
        Error::UnalignedWord { rank: self.rank, offset: self.offset, width: self.update.width() }
    }

    /// Does it, and returns what the word was: 0 where that is not fetched.
    ///
    /// # Errors
    /// It is not one of the domain's; the rank or the place is wrong; or the network failed, and whether it was done is not known.
    #[inline(always)]
    pub fn apply<M: CoreMode>(&self, engine: &Engine<M>) -> Result<u64, Error> {
        match self.apply_near(engine.peers().rows())? {
            Some(was) => Ok(was),
            None => self.apply_far(engine),
        }
    }

    /// Does it if this processor can at once, and returns what the word was, as [`apply`](Self::apply). If not, it is still to be done. Its
    /// `rank` is the number of a row here.
    ///
    /// # Errors
    /// It is not one of the domain's.
    #[inline(always)]
    pub fn apply_near(&self, rows: Rows<'_>) -> Result<Option<u64>, Error> {
        if self.domain.by == By::Nic {
            return Ok(None);
        }
        self.check()?;
        let place = rows.open_value(self.rank, self.offset, self.update.width());
        Ok(place.and_then(|place| self.update.at(place).ok()))
    }

    /// As [`apply`](Self::apply), what is more than an operation of this processor's, or nowhere.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply).
    #[cold]
    #[inline(never)]
    pub fn apply_far<M: CoreMode>(&self, engine: &Engine<M>) -> Result<u64, Error> {
        let mut was = 0u64;
        let result = (&raw mut was).cast();
        if self.reach(engine)?.is_none() && self.domain.by != By::Processor {
            self.note(engine, &mut || ());
            // SAFETY: atomic.1: `result` points to `was` of this function, and the call returns when the operation is over.
            unsafe { engine.transfer_and_wait(&self.transfer(result, None), false) }?;
        } else {
            // SAFETY: atomic.1: `result` points to `was` of this function, which waits below until the operation is over.
            let (event, _) = unsafe { self.start(engine, result, None, None, false) }?;
            event::finish_borrowed(engine, &event)?;
        }
        Ok(was)
    }

    /// Where the word is, if the processor is to change it and can; `None` if somebody else is to.
    fn reach<'a, M: CoreMode>(&self, engine: &'a Engine<M>) -> Result<Option<VolatileSlice<'a>>, Error> {
        self.check()?;
        let &Self { update, rank, offset, .. } = self;
        let wrong = |cause| Error::Core(gasworks_core::Error::Memory { during: "atomic operation", cause });
        let reached = engine.peers().reach(rank, offset, update.width(), Rights::ATOMIC).map_err(wrong)?;
        if !engine.peers().address(rank, offset).is_multiple_of(update.width() as u64) {
            return Err(self.unaligned());
        }
        Ok(reached.filter(|_| self.domain.by != By::Nic))
    }

    /// Does `act`, and notes the operation in a job that is observed.
    fn note<M: CoreMode>(&self, engine: &Engine<M>, act: &mut dyn FnMut()) {
        match engine.peers().watch() {
            Some(watch) => watch.accesses(Access::Update, self.rank, self.update.width(), act),
            None => act(),
        }
    }

    /// As the network's, with the place for what the word was.
    fn transfer(&self, local: *mut u8, set: Option<OpId>) -> Transfer {
        let &Self { update, rank: peer, offset, .. } = self;
        let direction = Direction::Update(update);
        Transfer { direction, peer, offset, local, len: update.width(), set, local_apart: false }
    }

    /// Starts it. When its event is done, what the word was lies at `result`, in as many bytes as it has, if it fetches. `keep` lives until
    /// then. With a set it is part of that and has no event: one that only writes counts as a put, one that only reads as a get, others as
    /// [`UPDATE`](gasworks_core::Categories::UPDATE).
    ///
    /// # Safety
    /// atomic.1, for `result`, if it fetches.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply); if `immediate`, also [`Error::is_busy`].
    pub unsafe fn start<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        result: *mut u8,
        set: Option<&Implicit>,
        mut keep: Option<Box<M::Keep>>,
        immediate: bool,
    ) -> Result<(Event, Kept<M>), Error> {
        let &Self { domain, update, .. } = self;
        let reached = self.reach(engine)?;
        // Where nothing comes back these are no bytes.
        let place = RawSlice::new(result, if update.fetches { update.width() } else { 0 });
        if let Some(word) = reached {
            // It lies there as it does in the segment, which begins at a page.
            let mut was = Err(NotAWord);
            self.note(engine, &mut || was = update.at(word));
            let was = was.map_err(|NotAWord| self.unaligned())?;
            // SAFETY: atomic.1: the caller promises `place`, as many bytes as the word has, for nobody else's use now; or it has no bytes.
            unsafe { place.borrow() }.write(&was.to_le_bytes()[..place.len()]);
            return Ok((Event::DONE, keep));
        }
        self.note(engine, &mut || ());
        let set = set.map(|set| set.joined(engine));
        let transfer = self.transfer(result, set);
        let mut sleeper = engine.sleeper();
        loop {
            let started = match domain.by {
                // SAFETY: atomic.1: the caller promises `place` until the operation has completed: the event's end, or the set's.
                By::Processor => unsafe { self.ask(engine, place, set, keep) },
                // SAFETY: atomic.1: the caller promises `result`, which `transfer` names, until the operation has completed, if it fetches.
                By::Nic | By::Either => unsafe { engine.transfer(&transfer, keep) },
            };
            match started {
                Ok(_) if set.is_some() => return Ok((Event::DONE, None)),
                Ok(id) => return Ok((Event(Some(id)), None)),
                Err((error, kept)) if error.is_busy() && !immediate => {
                    keep = kept;
                    engine.turn(&mut sleeper)?;
                }
                Err((error, _)) => return Err(error.into()),
            }
        }
    }

    /// Has the rank do it whose word it is.
    ///
    /// # Safety
    /// atomic.1, for `place`.
    unsafe fn ask<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        place: RawSlice,
        set: Option<OpId>,
        keep: Option<Box<M::Keep>>,
    ) -> Result<OpId, NotStarted<M>> {
        let Update { of, operands: [first, second], .. } = self.update;
        let what = u64::from(self.update.bit().bits()) | (of as u64) << 32;
        let mut args = [0u8; ASKED];
        let words = args[NUMBER..].chunks_exact_mut(8).zip([what, self.offset, first, second]);
        words.for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        let counts = counts_of(&self.update);
        // SAFETY: atomic.1: the caller promises that `place` stays mapped and is not used otherwise until the operation has completed.
        unsafe { engine.query(self.rank, (ASK, &mut args), place, counts, set, keep) }
    }
}

/// The library's handler indices for an operation that is asked for, and for the answer.
const ASK: u8 = 2;
const ANSWER: u8 = 3;
/// Bytes of their arguments: the number; the operation, the place and the operands; or whether it was done, and what the word was.
const ASKED: usize = NUMBER + 4 * 8;
const ANSWERED: usize = NUMBER + 2 * 8;

/// Enters the handlers for what other ranks ask for, and what they answer.
///
/// # Errors
/// An index is taken.
pub fn register<M: CoreMode>(handlers: &Handlers<M>) -> Result<(), gasworks_core::Error> {
    let short = |reply, bytes| (Category::Short, reply, bytes);
    handlers.register_internal(ASK, "gasworks.atomic", short(false, ASKED), M::box_function(serve))?;
    handlers.register_internal(ANSWER, "gasworks.atomic.answer", short(true, ANSWERED), M::box_function(hear))
}

/// Does what another rank has asked for, and answers. What cannot be done is said to be so: whose mistake it is has the error.
///
/// # Errors
/// The peer is gone.
fn serve<M: CoreMode>(asked: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    let args = asked.args();
    let [what, offset, first, second] = [1, 2, 3, 4].map(|number| word(args, number));
    let update = Type::from_number((what >> 32) as u32)
        .and_then(|of| Update::new(of, Ops::from_bits_retain(what as u32), [first, second]));
    let was = update.and_then(|update| {
        let place = asked.engine().peers().reach(asked.rank(), offset, update.width(), Rights::ATOMIC);
        let place = place.ok().flatten()?;
        update.at(place).ok()
    });
    let mut answer = [0u8; ANSWERED];
    answer[..NUMBER].copy_from_slice(&args[..NUMBER]);
    answer[NUMBER] = u8::from(was.is_some());
    answer[NUMBER + 8..].copy_from_slice(&was.unwrap_or(0).to_le_bytes());
    let message =
        Outgoing { category: Category::Short, handler: ANSWER, args: &answer, payload: &[], landing: 0 };
    Ok(asked.reply(&message)?)
}

/// Takes the answer.
///
/// # Errors
/// Nobody has asked.
fn hear<M: CoreMode>(answer: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    let (args, peer) = (answer.args(), answer.source());
    let was_done = args.get(NUMBER).is_some_and(|done| *done == 1);
    let was = if was_done { Ok(Answer::Plain(&args[NUMBER + 8..])) } else { Err(NicError::BadKey { peer }) };
    Ok(answer.engine().answered(peer, word(args, 0), was)?)
}
