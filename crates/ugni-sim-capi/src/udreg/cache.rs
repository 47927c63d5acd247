//! What is registered and who uses it: the logic of a cache of registrations, without any pointer.
//!
//! A registration serves every request for bytes that it covers. It may be *idle*: nobody uses it, and it waits to be used
//! again or thrown out, the one that has waited longest first.

use std::collections::{BTreeMap, BTreeSet};

/// What a cache counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Requests that a registration was there for.
    Hit,
    /// Requests that none was there for.
    Miss,
    /// Registrations that were thrown out.
    Evicted,
}

/// Why a registration cannot be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotUsed {
    /// The cache has no such registration.
    Unknown,
    /// Nobody uses it.
    Idle,
}

/// What becomes of a registration that nobody uses any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is idle.
    Keep,
    /// It is idle, and if the cache is full one that is idle is thrown out.
    KeepOrMakeRoom,
    /// It goes at once.
    Drop,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    /// One behind the last byte.
    end: u64,
    users: u64,
    /// When the last user left, counted in such ends.
    idle_since: u64,
}

/// A cache of registrations that are known as `K`.
#[derive(Debug)]
pub struct Cache<K> {
    /// How many there may be.
    room: usize,
    /// Places that are promised to registrations that are being made.
    promised: usize,
    entries: BTreeMap<K, Entry>,
    /// The entries in the order of their first bytes.
    starts: BTreeSet<(u64, K)>,
    ends: u64,
    stats: [u64; 3],
}

impl<K: Copy + Ord> Cache<K> {
    /// An empty cache for so many registrations.
    pub fn new(room: usize) -> Self {
        Self { room, promised: 0, entries: BTreeMap::new(), starts: BTreeSet::new(), ends: 0, stats: [0; 3] }
    }

    /// One more use of a registration that covers the bytes from `start` to `end`, if there is one: of those, the one that
    /// begins last. It counts as a hit or a miss.
    pub fn find(&mut self, start: u64, end: u64) -> Option<K> {
        let before = self.starts.iter().rev().skip_while(|(from, _)| *from > start);
        let found = before.map(|(_, key)| *key).find(|key| self.entries[key].end >= end);
        self.count(if found.is_some() { Stat::Hit } else { Stat::Miss });
        if let Some(entry) = found.and_then(|key| self.entries.get_mut(&key)) {
            entry.users += 1;
        }
        found
    }

    /// Promises a place to a registration that is about to be made. `false`: the cache is full.
    pub fn promise(&mut self) -> bool {
        let free = !self.is_full();
        self.promised += usize::from(free);
        free
    }

    /// Takes a promise back: the registration was not made.
    pub fn take_back(&mut self) {
        self.promised -= 1;
    }

    /// Enters a registration that was made, with its first use, into the place that was promised.
    pub fn enter(&mut self, key: K, start: u64, end: u64) {
        self.promised -= 1;
        self.entries.insert(key, Entry { start, end, users: 1, idle_since: 0 });
        self.starts.insert((start, key));
    }

    /// One use less. Gives the registration that has gone therefore, if one has.
    ///
    /// # Errors
    /// It is not used.
    pub fn leave(&mut self, key: K, then: Then) -> Result<Option<K>, NotUsed> {
        let entry = self.entries.get_mut(&key).ok_or(NotUsed::Unknown)?;
        entry.users = entry.users.checked_sub(1).ok_or(NotUsed::Idle)?;
        if entry.users == 0 {
            self.ends += 1;
            entry.idle_since = self.ends;
        }
        match (entry.users, then) {
            (0, Then::Drop) => {
                self.remove(key);
                Ok(Some(key))
            }
            (0, Then::KeepOrMakeRoom) if self.is_full() => Ok(self.evict()),
            _ => Ok(None),
        }
    }

    /// Throws out the idle registration that has waited longest.
    pub fn evict(&mut self) -> Option<K> {
        let idle = self.entries.iter().filter(|(_, entry)| entry.users == 0);
        let (&key, _) = idle.min_by_key(|(_, entry)| entry.idle_since)?;
        self.remove(key);
        self.count(Stat::Evicted);
        Some(key)
    }

    /// All registrations; the cache is empty then.
    pub fn drain(&mut self) -> Vec<K> {
        self.starts.clear();
        std::mem::take(&mut self.entries).into_keys().collect()
    }

    /// What was counted since the last [`reset`](Self::reset).
    pub fn stat(&self, stat: Stat) -> u64 {
        self.stats[stat as usize]
    }

    /// Counts from 0 again.
    pub fn reset(&mut self, stat: Stat) {
        self.stats[stat as usize] = 0;
    }

    fn is_full(&self) -> bool {
        self.entries.len() + self.promised >= self.room
    }

    fn count(&mut self, stat: Stat) {
        self.stats[stat as usize] += 1;
    }

    fn remove(&mut self, key: K) {
        if let Some(entry) = self.entries.remove(&key) {
            self.starts.remove(&(entry.start, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A use of the bytes, of a registration that is there or of `key`. `None`: the cache is full.
    fn register(cache: &mut Cache<u32>, key: u32, start: u64, end: u64) -> Option<u32> {
        if let Some(found) = cache.find(start, end) {
            return Some(found);
        }
        cache.promise().then(|| {
            cache.enter(key, start, end);
            key
        })
    }

    #[test]
    fn only_what_covers_all_of_the_bytes_serves_them() {
        let mut cache = Cache::new(8);
        assert_eq!(register(&mut cache, 1, 100, 200), Some(1));
        for (start, end, wanted) in
            [(100, 200, 1), (100, 101, 1), (199, 200, 1), (99, 200, 2), (100, 201, 3), (150, 160, 3)]
        {
            assert_eq!(register(&mut cache, wanted, start, end), Some(wanted), "{start} to {end}");
        }
        assert_eq!((cache.stat(Stat::Hit), cache.stat(Stat::Miss)), (4, 3));
        cache.reset(Stat::Hit);
        assert_eq!((cache.stat(Stat::Hit), cache.stat(Stat::Miss)), (0, 3));
    }

    #[test]
    fn a_promise_takes_room_until_it_is_kept_or_taken_back() {
        let mut cache = Cache::new(2);
        assert!(cache.promise() && cache.promise() && !cache.promise());
        cache.take_back();
        assert!(cache.promise());
        cache.enter(1, 0, 1);
        cache.take_back();
        assert_eq!(register(&mut cache, 2, 10, 20), Some(2));
        assert_eq!(register(&mut cache, 3, 20, 30), None);
    }

    #[test]
    fn what_nobody_uses_goes_as_it_is_asked_to() {
        let mut cache = Cache::new(2);
        register(&mut cache, 1, 0, 10);
        register(&mut cache, 2, 10, 20);
        assert_eq!(cache.evict(), None);
        assert_eq!(cache.leave(1, Then::Drop), Ok(Some(1)));
        assert_eq!(cache.leave(1, Then::Drop), Err(NotUsed::Unknown));
        assert_eq!(cache.leave(2, Then::KeepOrMakeRoom), Ok(None), "there is room");
        assert_eq!(cache.leave(2, Then::Keep), Err(NotUsed::Idle));
        register(&mut cache, 3, 30, 40);
        assert_eq!(
            cache.leave(3, Then::KeepOrMakeRoom),
            Ok(Some(2)),
            "there is none, and 2 has waited longer"
        );
        assert_eq!(cache.stat(Stat::Evicted), 1);
        assert_eq!(cache.drain(), [3]);
        assert_eq!(cache.find(30, 40), None);
    }

    /// A cache as one would write it down: what is where, how many use it; the last that was left stands last.
    #[derive(Debug, Default)]
    struct Model {
        entries: Vec<(u32, u64, u64, u64)>,
        stats: [u64; 3],
    }

    impl Model {
        fn register(&mut self, room: usize, key: u32, start: u64, end: u64) -> Option<u32> {
            let covers = |&(_, from, to, _): &(u32, u64, u64, u64)| from <= start && end <= to;
            let best = self.entries.iter().filter(|e| covers(e)).map(|&(key, from, ..)| (from, key)).max();
            self.stats[usize::from(best.is_none())] += 1;
            if let Some((_, found)) = best {
                self.entries.iter_mut().find(|e| e.0 == found)?.3 += 1;
                return Some(found);
            }
            (self.entries.len() < room).then(|| {
                self.entries.push((key, start, end, 1));
                key
            })
        }

        fn evict(&mut self) -> Option<u32> {
            let at = self.entries.iter().position(|e| e.3 == 0)?;
            self.stats[2] += 1;
            Some(self.entries.remove(at).0)
        }

        fn leave(&mut self, room: usize, key: u32, then: Then) -> Result<Option<u32>, NotUsed> {
            let at = self.entries.iter().position(|e| e.0 == key).ok_or(NotUsed::Unknown)?;
            let (key, start, end, users) = self.entries[at];
            let users = users.checked_sub(1).ok_or(NotUsed::Idle)?;
            self.entries[at].3 = users;
            if users == 0 {
                self.entries.remove(at);
                self.entries.push((key, start, end, 0));
            }
            Ok(match (users, then) {
                (0, Then::Drop) => self.entries.pop().map(|e| e.0),
                (0, Then::KeepOrMakeRoom) if self.entries.len() == room => self.evict(),
                _ => None,
            })
        }
    }

    proptest! {
        #[test]
        fn it_does_what_the_plain_model_does(
            room in 1usize..6,
            calls in prop::collection::vec((0u8..8, 0u64..24, 1u64..12, 0u32..40), 1..120),
        ) {
            let (mut cache, mut model) = (Cache::new(room), Model::default());
            for (at, (call, start, len, key)) in (0u32..).zip(calls) {
                match call {
                    0..4 => prop_assert_eq!(
                        register(&mut cache, at, start, start + len),
                        model.register(room, at, start, start + len)
                    ),
                    4..7 => {
                        let then = [Then::Keep, Then::KeepOrMakeRoom, Then::Drop][usize::from(call) - 4];
                        prop_assert_eq!(cache.leave(key, then), model.leave(room, key, then));
                    }
                    _ => prop_assert_eq!(cache.evict(), model.evict()),
                }
                for (stat, counted) in [Stat::Hit, Stat::Miss, Stat::Evicted].into_iter().zip(model.stats) {
                    prop_assert_eq!(cache.stat(stat), counted);
                }
            }
            let mut left: Vec<u32> = model.entries.iter().map(|e| e.0).collect();
            left.sort_unstable();
            prop_assert_eq!(cache.drain(), left);
        }
    }
}
