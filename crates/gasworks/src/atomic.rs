//! Atomic operations on values in segments.

use crate::agent::named;
use crate::{Agent, Error, Event, GlobalPtr, Implicit, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Engine, View};
use gasworks_extended::atomic::{By, Domain, Favor, Operation};
use gasworks_memory::atomic::{Change, Ops, Type, Update};

/// What atomic operations are done on: integers and floating-point numbers of 32 and 64 bits.
pub trait Atomic: Pod + Send + Sync + sealed::Sealed {
    #[doc(hidden)]
    const OF: Type;
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! atomic {
    ($($of:ty as $bits:ty: $number:ident, $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $of {}
        impl Atomic for $of {
            const OF: Type = Type::$number;
            #[inline]
            fn bits(self) -> u64 {
                let to: fn($of) -> $bits = $to;
                to(self).into()
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                let from: fn($bits) -> $of = $from;
                from(bits as $bits)
            }
        }
    )*};
}

atomic! {
    i32 as u32: I32, i32::cast_unsigned, u32::cast_signed;
    u32 as u32: U32, |number| number, |bits| bits;
    i64 as u64: I64, i64::cast_unsigned, u64::cast_signed;
    u64 as u64: U64, |number| number, |bits| bits;
    f32 as u32: F32, f32::to_bits, f32::from_bits;
    f64 as u64: F64, f64::to_bits, f64::from_bits;
}

/// What a value becomes by an atomic operation. Integers go round at the ends of their type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtomicOp<T> {
    /// The bits that this has too: of integers.
    And(T),
    /// The bits that either has: of integers.
    Or(T),
    /// The bits that one of them has: of integers.
    Xor(T),
    /// The sum.
    Add(T),
    /// It less this.
    Sub(T),
    /// The product.
    Mult(T),
    /// The smaller.
    Min(T),
    /// The greater.
    Max(T),
    /// One more.
    Inc,
    /// One less.
    Dec,
    /// This.
    Set(T),
    /// `new`, if its bits are those of `current`.
    CompareSwap {
        /// What it has to be.
        current: T,
        /// What it becomes.
        new: T,
    },
    /// What it was.
    Get,
}

impl<T: Atomic> AtomicOp<T> {
    #[inline(always)]
    fn update(self, fetches: bool) -> Update {
        let (change, operands) = match self {
            Self::And(by) => (Change::And, [by.bits(), 0]),
            Self::Or(by) => (Change::Or, [by.bits(), 0]),
            Self::Xor(by) => (Change::Xor, [by.bits(), 0]),
            Self::Add(by) => (Change::Add, [by.bits(), 0]),
            Self::Sub(by) => (Change::Sub, [by.bits(), 0]),
            Self::Mult(by) => (Change::Mult, [by.bits(), 0]),
            Self::Min(by) => (Change::Min, [by.bits(), 0]),
            Self::Max(by) => (Change::Max, [by.bits(), 0]),
            Self::Inc => (Change::Inc, [0; 2]),
            Self::Dec => (Change::Dec, [0; 2]),
            Self::Set(to) => (Change::Set, [to.bits(), 0]),
            Self::CompareSwap { current, new } => (Change::Cas, [current.bits(), new.bits()]),
            Self::Get => (Change::Get, [0; 2]),
        };
        Update { of: T::OF, change, fetches, operands }
    }
}

/// Atomic operations of one set on values of one type: the specification's atomic domain. [`Agent::atomics`] makes one.
///
/// While it is used on a value, nothing else touches that: no other domain, no put or get, no load or store; a barrier that all operations
/// went before comes between. What a rank wrote before an operation can be seen by whoever has seen what that did.
///
/// Pointers name the members of the team on whose agent it was made.
///
/// ```
/// # use gasworks::{AtomicOp, AtomicOps, Config, Favor, GlobalPtr, Job, Seq, Table};
/// # fn main() -> Result<(), gasworks::Error> {
/// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
/// let agent = job.agent()?;
/// let counter: GlobalPtr<u64> = job.alloc(1)?.on(0);
/// agent.barrier()?;
/// let counting = agent.atomics::<u64>(AtomicOps::FADD | AtomicOps::GET, Favor::Far)?;
/// let mine = counting.fetch(&agent, counter, AtomicOp::Add(1))?;
/// assert!(mine < counting.load(&agent, counter)?);
/// agent.barrier()?;
/// # job.close()
/// # }
/// ```
pub struct Atomics<'job, M: ThreadMode, T: Atomic> {
    engine: &'job Engine<M>,
    /// Of the agent that made it.
    view: View<'job>,
    domain: Domain,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Atomic operations on values of a type: all those that are going to be used, for each of which the specification has a bit. Every rank
    /// asks with the same arguments before it uses them, and waits for nobody; who does them, processors or the network, follows from these.
    ///
    /// # Errors
    /// They are not all operations on such values.
    pub fn atomics<T: Atomic>(&self, operations: Ops, favor: Favor) -> Result<Atomics<'job, M, T>, Error> {
        let engine = self.engine();
        let domain = Domain::new(engine, T::OF, operations, favor)?;
        Ok(Atomics { engine, view: self.view(), domain, of: std::marker::PhantomData })
    }
}

impl<'job, M: ThreadMode, T: Atomic> Atomics<'job, M, T> {
    /// Who does them.
    pub fn by(&self) -> By {
        self.domain.by()
    }

    /// Of a member, whose number is in the place of its rank.
    #[inline(always)]
    fn operation(&self, target: GlobalPtr<T>, change: AtomicOp<T>, fetches: bool) -> Operation {
        let fetches = fetches || matches!(change, AtomicOp::Get);
        let (rank, offset) = (target.rank(), target.offset());
        Operation { domain: self.domain, update: change.update(fetches), rank, offset }
    }

    /// The same of the member's rank, and the place there.
    #[cold]
    fn by_rank(&self, operation: Operation) -> Result<Operation, Error> {
        let (rank, offset) = self.view.place_of(operation.rank, operation.offset)?;
        Ok(Operation { rank, offset, ..operation })
    }

    #[inline(always)]
    fn done(&self, operation: Operation) -> Result<u64, Error> {
        match operation.apply_near(self.view.rows())? {
            Some(was) => Ok(was),
            None => self.done_far(operation),
        }
    }

    #[cold]
    #[inline(never)]
    fn done_far(&self, operation: Operation) -> Result<u64, Error> {
        let done = self.by_rank(operation)?.apply_far(self.engine);
        done.map_err(named(self.view, operation.rank))
    }

    /// Does an operation.
    ///
    /// # Errors
    /// It is not one of these, the rank or the place is wrong; or the network failed, and whether it was done is not known.
    #[inline(always)]
    pub fn apply(
        &self,
        _agent: &Agent<'_, M>,
        target: GlobalPtr<T>,
        change: AtomicOp<T>,
    ) -> Result<(), Error> {
        self.done(self.operation(target, change, false)).map(drop)
    }

    /// Does an operation, and returns what the value was.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply).
    #[inline(always)]
    pub fn fetch(
        &self,
        _agent: &Agent<'_, M>,
        target: GlobalPtr<T>,
        change: AtomicOp<T>,
    ) -> Result<T, Error> {
        self.done(self.operation(target, change, true)).map(T::from_bits)
    }

    /// What a value is.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply).
    #[inline(always)]
    pub fn load(&self, agent: &Agent<'_, M>, target: GlobalPtr<T>) -> Result<T, Error> {
        self.fetch(agent, target, AtomicOp::Get)
    }

    /// Starts an operation.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply).
    pub fn start(
        &self,
        _agent: &Agent<'_, M>,
        target: GlobalPtr<T>,
        change: AtomicOp<T>,
    ) -> Result<Event<'job, M, ()>, Error> {
        let operation = self.operation(target, change, false);
        if operation.apply_near(self.view.rows())?.is_some() {
            return Ok(Event::done(self.engine, ()));
        }
        let operation = self.by_rank(operation)?;
        // What comes back of a load goes nowhere, but it comes.
        let mut keep = (operation.update.fetches).then(|| vec![T::zeroed()]);
        let result = keep.as_mut().map_or(std::ptr::null_mut(), |keep| keep.as_mut_ptr().cast());
        // SAFETY: atomic.1 of `gasworks_extended`: `result` is null where nothing comes back; else it points into the vector on the heap
        // that the operation keeps.
        let started = unsafe { operation.start(self.engine, result, None, keep.map(M::keep), false) };
        let started = started.map_err(named(self.view, target.rank()))?;
        Ok(Event::new(self.engine, started, |_| Some(())))
    }

    /// Starts an operation, and gives what the value was when it is done.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply).
    pub fn start_fetch(
        &self,
        _agent: &Agent<'_, M>,
        target: GlobalPtr<T>,
        change: AtomicOp<T>,
    ) -> Result<Event<'job, M, T>, Error> {
        let operation = self.operation(target, change, true);
        if let Some(was) = operation.apply_near(self.view.rows())? {
            return Ok(Event::done(self.engine, T::from_bits(was)));
        }
        let operation = self.by_rank(operation)?;
        let mut was = vec![T::zeroed()];
        let result = was.as_mut_ptr().cast();
        // SAFETY: atomic.1 of `gasworks_extended`: `result` points to the one value of `was`, on the heap, which the operation keeps until
        // it is done.
        let started = unsafe { operation.start(self.engine, result, None, Some(M::keep(was)), false) };
        let started = started.map_err(named(self.view, target.rank()))?;
        Ok(Event::new(self.engine, started, |kept| {
            kept.and_then(M::unkeep::<Vec<T>>).and_then(|was| was.first().copied())
        }))
    }
}

impl<M: ThreadMode> Implicit<'_, M> {
    /// Starts an operation that fetches nothing: [`Set`](AtomicOp::Set) counts as a put, others as
    /// [`UPDATE`](crate::Categories::UPDATE).
    ///
    /// # Errors
    /// Those of [`Atomics::apply`]; or it is [`Get`](AtomicOp::Get), for which [`Atomics::start_fetch`] is there.
    #[inline(always)]
    pub fn atomic<T: Atomic>(
        &self,
        atomics: &Atomics<'_, M, T>,
        target: GlobalPtr<T>,
        change: AtomicOp<T>,
    ) -> Result<(), Error> {
        if matches!(change, AtomicOp::Get) {
            return Err(Error::Program(
                "an atomic load in a set of operations: nobody would have its value".into(),
            ));
        }
        let operation = atomics.operation(target, change, false);
        if operation.apply_near(atomics.view.rows())?.is_some() {
            return Ok(());
        }
        let operation = atomics.by_rank(operation)?;
        // SAFETY: atomic.1 of `gasworks_extended`: the operation is no `Get` and fetches nothing, so nothing is written to the null
        // pointer.
        let started =
            unsafe { operation.start(self.engine, std::ptr::null_mut(), Some(&self.set), None, false) };
        started.map(drop).map_err(named(atomics.view, target.rank()))
    }
}
