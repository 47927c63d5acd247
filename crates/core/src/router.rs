//! Which transport reaches which peer.
//!
//! # Invariants
//! - router.1: a wire stays at its address, and is only borrowed shared, from when the router was made until it is dropped. `queues` was
//!   borrowed of one of them.
//! - router.2: `route` is borrowed of `_reserved`, of which it is all, and which nobody writes: it stays until the router is dropped.

use crate::sleep::WaitSet;
use crate::wire::Attributes;
use crate::{CoreMode, Limits, Rank, Wire, WireError};
use gasworks_os::Reserved;
use gasworks_shmem::queues::Queues;
use std::ptr::NonNull;
use std::time::Duration;

/// The transports of a job and, for each peer, the one that reaches it.
pub(crate) struct Router<M: CoreMode> {
    /// The queues of the first transport that has some mapped, asked once, and that transport's number. Messages of another that has some
    /// go by calls.
    queues: Option<NonNull<Queues<'static, M>>>,
    mapped: u8,
    /// The same queues where there is no other transport, so that a look at them tells whether anything has come.
    all: Option<NonNull<Queues<'static, M>>>,
    /// For each rank the number of the wire that reaches it. Those of which that is 0 take no memory here.
    route: &'static [u8],
    /// It is here for router.2.
    _reserved: Reserved<u8>,
    /// Each made by `Box::leak`.
    wires: Box<[NonNull<M::Wire>]>,
    /// What each said of itself when it was asked.
    attributes: Box<[Attributes]>,
    waits: WaitSet,
}

// SAFETY: router.1: it owns the wires, as boxes would, and its pointer to queues leads into one of them.
unsafe impl<M: CoreMode> Send for Router<M> where Box<M::Wire>: Send {}
// SAFETY: router.1: what a shared router gives away are shared borrows of the wires and of what is in one of them.
unsafe impl<M: CoreMode> Sync for Router<M> where Box<M::Wire>: Sync {}

impl<M: CoreMode> Drop for Router<M> {
    fn drop(&mut self) {
        for &wire in &self.wires {
            // SAFETY: router.1: made by `Box::leak` in `new`, freed only here; who borrows a wire borrows the router.
            drop(unsafe { Box::from_raw(wire.as_ptr()) });
        }
    }
}

impl<M: CoreMode> Router<M> {
    /// `route[rank]` is the number of a wire. Without `mapped`, all messages go by calls.
    pub(crate) fn new(wires: Vec<Box<M::Wire>>, route: Vec<u8>, mapped: bool) -> Self {
        assert!(
            route.iter().all(|&wire| usize::from(wire) < wires.len()),
            "a route to a wire that is not there"
        );
        let wires: Box<[_]> = wires.into_iter().map(|wire| NonNull::from(Box::leak(wire))).collect();
        let reserved = Reserved::from(&route[..]);
        let mut this = Self {
            queues: None,
            mapped: u8::MAX,
            all: None,
            // SAFETY: router.2: the router keeps `reserved`, whose values stay where they are, and gives none of them away for longer.
            route: unsafe { std::slice::from_raw_parts(reserved.as_ptr(), reserved.len()) },
            _reserved: reserved,
            wires,
            attributes: Box::default(),
            waits: WaitSet::new(),
        };
        this.attributes = this.wires().map(|wire| within(wire.attributes())).collect();
        let found = (0..)
            .zip(this.wires().filter(|_| mapped))
            .find_map(|(number, wire)| Some((NonNull::from(wire.queues()?).cast(), number)));
        if let Some((queues, number)) = found {
            (this.queues, this.mapped) = (Some(queues), number);
            this.all = this.queues.filter(|_| this.wires.len() == 1);
        }
        this
    }

    /// The wire that reaches `rank`, which exists: the engine has checked.
    #[inline]
    pub(crate) fn to(&self, rank: Rank) -> &M::Wire {
        // SAFETY: router.1: it is there as long as the router, which is borrowed.
        unsafe { self.wires[usize::from(self.route[rank as usize])].as_ref() }
    }

    /// For each rank the number of the wire that reaches it.
    pub(crate) fn route(&self) -> &[u8] {
        self.route
    }

    /// What each wire is like.
    pub(crate) fn attributes(&self) -> &[Attributes] {
        &self.attributes
    }

    /// What the wire is like that reaches `rank`, which exists.
    #[inline]
    pub(crate) fn attributes_to(&self, rank: Rank) -> &Attributes {
        &self.attributes[usize::from(self.route[rank as usize])]
    }

    /// What every wire admits.
    pub(crate) fn least(&self) -> Limits {
        let limits = self.attributes.iter().map(|attributes| attributes.limits);
        limits.reduce(Limits::min).unwrap_or(Limits { max_medium: 0, max_long: 0, packed_long: 0 })
    }

    #[inline]
    fn queues(&self) -> Option<&Queues<'_, M>> {
        // SAFETY: router.1: borrowed of a wire, which is there as long as the router, which is borrowed.
        self.queues.map(|queues| unsafe { queues.as_ref() })
    }

    /// The queues of `rank`, which exists, if they are mapped.
    #[inline]
    pub(crate) fn queues_to(&self, rank: Rank) -> Option<&Queues<'_, M>> {
        self.queues().filter(|_| self.route[rank as usize] == self.mapped)
    }

    /// The queues of which the messages of the wire with this number are taken.
    #[inline]
    pub(crate) fn queues_of(&self, wire: usize) -> Option<&Queues<'_, M>> {
        self.queues().filter(|_| wire == usize::from(self.mapped))
    }

    /// The one wire that there is and its queues, if these are mapped.
    #[inline]
    pub(crate) fn only(&self) -> Option<(&M::Wire, &Queues<'_, M>)> {
        // SAFETY: router.1: borrowed of a wire, which is there as long as the router, which is borrowed.
        let queues = self.all.map(|queues| unsafe { queues.as_ref() })?;
        // SAFETY: router.1: it is there as long as the router, which is borrowed.
        Some((unsafe { self.wires.first()?.as_ref() }, queues))
    }

    /// Whether nothing has come, as far as a look can tell.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // SAFETY: router.1: borrowed of a wire, which is there as long as the router, which is borrowed.
        self.all.is_some_and(|queues| unsafe { queues.as_ref() }.is_idle())
    }

    /// All of them.
    #[inline]
    pub(crate) fn wires(&self) -> impl Iterator<Item = &M::Wire> + Clone {
        // SAFETY: router.1: they are there as long as the router, which is borrowed.
        self.wires.iter().map(|wire| unsafe { wire.as_ref() })
    }

    /// Sleeps until any wire has something, or until [`wake`](Self::wake) is called; whether it has slept.
    pub(crate) fn sleep(&self, limit: Duration, stay: &dyn Fn() -> bool) -> Result<bool, WireError> {
        self.waits.sleep(self.wires(), limit, stay)
    }

    /// Wakes this rank's sleeping threads.
    pub(crate) fn wake(&self) {
        self.waits.wake(self.wires());
    }
}

/// What is said of a wire, where one thing said bounds another.
fn within(mut said: Attributes) -> Attributes {
    said.limits.packed_long = said.limits.packed_long.min(said.limits.max_medium);
    said.flow = said.flow.within(said.limits.max_medium);
    said
}
