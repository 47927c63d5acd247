//! What has a connection id: a table whose names are given out again late, with another generation.

use crate::header::ConnectionId;
use std::collections::VecDeque;
use std::time::Duration;

/// Names that there are.
const MAX: usize = 1 << 16;
/// How long a name rests before it is given out again: longer than a header is under way.
const QUARANTINE: u64 = Duration::from_secs(1).as_nanos() as u64;

/// Values by id.
#[derive(Debug)]
pub(crate) struct Table<T> {
    places: Vec<(u8, Option<T>)>,
    /// Free ones, with the times from which they may be given out again, the earliest first.
    free: VecDeque<(u64, u16)>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: VecDeque::new() }
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Keeps a value; `None` if there is no name for it now. `now` is in nanoseconds.
    pub(crate) fn insert(&mut self, now: u64, value: T) -> Option<ConnectionId> {
        let rested = self.free.front().is_some_and(|(from, _)| *from <= now);
        if let Some((_, index)) = rested.then(|| self.free.pop_front()).flatten() {
            let (generation, place) = &mut self.places[usize::from(index)];
            *place = Some(value);
            return Some(ConnectionId { index, generation: *generation });
        }
        let index = u16::try_from(self.places.len()).ok().filter(|_| self.places.len() < MAX)?;
        self.places.push((0, Some(value)));
        Some(ConnectionId { index, generation: 0 })
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&T> {
        let (generation, value) = self.places.get(usize::from(id.index))?;
        value.as_ref().filter(|_| *generation == id.generation)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let (generation, value) = self.places.get_mut(usize::from(id.index))?;
        value.as_mut().filter(|_| *generation == id.generation)
    }

    /// The id of what has this index.
    pub(crate) fn id(&self, index: usize) -> Option<ConnectionId> {
        let (generation, value) = self.places.get(index)?;
        value.as_ref()?;
        Some(ConnectionId { index: u16::try_from(index).ok()?, generation: *generation })
    }

    /// Takes a value out. Its name rests from now on.
    pub(crate) fn remove(&mut self, id: ConnectionId, now: u64) -> Option<T> {
        let (generation, value) = self.places.get_mut(usize::from(id.index))?;
        let value = value.take_if(|_| *generation == id.generation)?;
        *generation = generation.wrapping_add(1);
        self.free.push_back((now + QUARANTINE, id.index));
        Some(value)
    }

    /// The ids of all.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        (0..self.places.len()).filter_map(|index| self.id(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_rests_and_comes_back_with_another_generation() {
        let mut table = Table::new();
        let [one, two] = [1, 2].map(|value| table.insert(0, value).expect("a name"));
        assert_eq!((table.get(one), table.get(two), table.len()), (Some(&1), Some(&2), 2));
        assert_eq!(table.remove(one, 10), Some(1));
        assert_eq!((table.remove(one, 10), table.get(one), table.len()), (None, None, 1));
        let three = table.insert(10, 3).expect("a name");
        assert_eq!(three.index, 2, "the first name rests");
        let again = table.insert(10 + QUARANTINE, 4).expect("a name");
        assert_eq!(again, ConnectionId { index: one.index, generation: 1 });
        assert_eq!((table.get(one).copied(), table.get_mut(again).copied()), (None, Some(4)));
        assert_eq!(table.ids().collect::<Vec<_>>(), [again, two, three]);
    }

    #[test]
    fn there_are_as_many_names_as_the_header_has_room_for() {
        let mut table = Table::new();
        let ids: Vec<_> = (0..MAX).map(|value| table.insert(0, value).expect("a name")).collect();
        assert_eq!(table.insert(0, 0), None);
        table.remove(ids[MAX - 1], 0);
        assert_eq!(table.insert(0, 0), None, "it rests");
        assert_eq!(table.insert(QUARANTINE, 7).map(|id| (id.index, id.generation)), Some((u16::MAX, 1)));
    }
}
