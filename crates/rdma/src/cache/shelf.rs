//! Whose a cache is: one engine's, or that of several engines of a rank. What is registered is the rank's memory, and the system tells one
//! watcher of what happens to it; so engines that register the same memory have to do it together.

use super::{Cache, Lease, Refused, Registrations, System, Watch, page};
use crate::nic::{Key, Nic};
use crate::settings::Tuning;
use gasworks_sync::{Lock, Mode, Par, RawBytes};
use std::sync::Arc;

type Shared = Arc<<Par as Mode>::Lock<Cache>>;

/// Registrations for transfers that several engines of a rank make and find together. Their NICs' keys are good for all of them, and
/// any may end what another has registered.
#[derive(Clone)]
pub struct Registry(Shared);

impl Registry {
    /// None yet: for engines tuned like that, over NICs of which none [keeps registrations](crate::Abilities::keeps_registrations), or all.
    pub fn new(tuning: &Tuning, nic_keeps: bool) -> Self {
        Self::watched(tuning, nic_keeps, Box::new(System::Unasked))
    }

    /// The same, told by `watch` what happens to memory.
    pub(crate) fn watched(tuning: &Tuning, nic_keeps: bool, watch: Box<dyn Watch>) -> Self {
        Self(Arc::new(Lock::new(Cache::new(tuning, !nic_keeps, page(), watch))))
    }
}

/// The cache, as an engine has it.
pub(crate) enum Shelf {
    Own(Box<Cache>),
    Shared(Registry),
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own(cache) => cache.fmt(f),
            Self::Shared(_) => f.write_str("registrations of several engines"),
        }
    }
}

impl Shelf {
    fn with<R>(&mut self, f: impl FnOnce(&mut Cache) -> R) -> R {
        match self {
            Self::Own(cache) => f(cache),
            Self::Shared(Registry(cache)) => cache.with(f),
        }
    }

    /// See [`Cache::take`].
    pub fn take<N: Nic + ?Sized>(&mut self, nic: &N, bytes: RawBytes) -> Result<Lease, Refused> {
        self.with(|cache| cache.take(nic, bytes))
    }

    /// The key of a registration that is in use, put into `key`, whose capacity stays.
    pub fn copy_key(&mut self, lease: &Lease, key: &mut Key) {
        key.0.clear();
        self.with(|cache| key.0.extend(cache.key(lease).into_iter().flat_map(|key| &key.0)));
    }

    /// See [`Cache::give`].
    pub fn give<N: Nic + ?Sized>(&mut self, nic: &N, lease: Lease) {
        self.with(|cache| cache.give(nic, lease));
    }

    /// See [`Cache::tend`]. Whoever is at it just now does it, too, before it finds anything.
    pub fn tend<N: Nic + ?Sized>(&mut self, nic: &N) {
        match self {
            Self::Own(cache) => cache.tend(nic),
            Self::Shared(Registry(cache)) => _ = cache.try_with(|cache| cache.tend(nic)),
        }
    }

    /// See [`Cache::close`]: the last engine does it.
    pub fn close<N: Nic + ?Sized>(&mut self, nic: &N) {
        match self {
            Self::Own(cache) => cache.close(nic),
            Self::Shared(Registry(cache)) if Arc::strong_count(cache) == 1 => {
                cache.with(|cache| cache.close(nic))
            }
            Self::Shared(_) => {}
        }
    }

    /// See [`Cache::counts`].
    pub fn counts(&mut self) -> Registrations {
        self.with(|cache| cache.counts())
    }
}
