//! Whose a cache is: one engine's, or that of several engines of a rank. What is registered is the rank's memory, and the system tells one
//! watcher of what happens to it; so engines that register the same memory have to do it together.

use super::{Cache, Lease, Refused, Registrations, System, Watch, page};
use crate::nic::{Direction, Key, Nic};
use crate::settings::Tuning;
use gasworks_sync::{Lock, Mode, Par, RawSlice};
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
    ///
    /// # Safety
    /// As for [`Cache::take`].
    pub unsafe fn take<N: Nic + ?Sized>(
        &mut self,
        nic: &N,
        bytes: RawSlice,
        direction: Direction,
    ) -> Result<Lease, Refused> {
        // SAFETY: the caller promises that the bytes stay mapped until the registration is given back.
        self.with(|cache| unsafe { cache.take(nic, bytes, direction) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::{Counting, Told};

    /// An engine's own, and that of two: whatever is asked of either is done by the cache in it. Miri would take three minutes,
    /// and sees the cache by its own tests.
    #[cfg(not(miri))]
    #[test]
    fn a_shelf_does_what_its_cache_does() {
        let mut bytes = vec![0u8; 3 * page()];
        let bytes = RawSlice::new(bytes.as_mut_ptr(), bytes.len());
        let tuning = Tuning::default();
        for nic_keeps in [false, true] {
            for is_shared in [false, true] {
                let (told, nic) = (Told::default(), Counting::default());
                let registry = Registry::watched(&tuning, nic_keeps, Box::new(told.clone()));
                let other = Shelf::Shared(registry.clone());
                let mut shelf = if is_shared {
                    Shelf::Shared(registry)
                } else {
                    let cache = Cache::new(&tuning, !nic_keeps, page(), Box::new(told.clone()));
                    Shelf::Own(Box::new(cache))
                };
                let shown = format!("{shelf:?}");
                assert_eq!(shown == "registrations of several engines", is_shared, "{shown}");
                assert_eq!(shown.starts_with("Cache {"), !is_shared, "{shown}");
                let (there, kept) =
                    (|| nic.made.borrow().iter().filter(|made| made.1).count(), usize::from(!nic_keeps));
                for hits in 0..2 {
                    // SAFETY: nothing but numbers is done with the bytes.
                    let lease = unsafe { shelf.take(&nic, bytes, Direction::Get) }.expect("registered");
                    let mut key = Key(vec![9; 3]);
                    shelf.copy_key(&lease, &mut key);
                    assert_eq!((Counting::number(&key), there()), (if nic_keeps { hits } else { 0 }, 1));
                    shelf.give(&nic, lease);
                    let hits = if nic_keeps { 0 } else { hits as u64 };
                    let counts = shelf.counts();
                    assert_eq!((counts.hits, counts.kept, there()), (hits, kept, kept));
                }
                told.knows().gone.push_back(crate::stale::Gone::All);
                shelf.tend(&nic);
                assert_eq!((there(), shelf.counts().stale), (0, kept as u64));
                // SAFETY: as before, nothing but numbers is done with the bytes.
                let lease = unsafe { shelf.take(&nic, bytes, Direction::Put) }.expect("registered");
                shelf.give(&nic, lease);
                // The last engine ends what is kept.
                shelf.close(&nic);
                assert_eq!(there(), if is_shared { kept } else { 0 });
                drop(other);
                shelf.close(&nic);
                assert_eq!((there(), told.knows().watched.len()), (0, 0));
            }
        }
    }
}
