//! Objects by handle. A handle is a number that looks like an address: it is looked up, and never followed, so that one that
//! is foreign, stale or of another kind is told from a good one.

use std::sync::Arc;

use parking_lot::RwLock;

/// A number of the upper half of all addresses, where nothing is mapped for programs.
const MARK: usize = 0xf6a5 << 48;
const KIND_SHIFT: u32 = 44;
const TURN_SHIFT: u32 = 24;
const TURNS: u32 = 1 << (KIND_SHIFT - TURN_SHIFT);
const MOST: usize = 1 << TURN_SHIFT;

/// The objects of one kind.
pub(super) struct Table<T> {
    kind: usize,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    /// How many objects have been here: a handle says of which it is.
    turn: u32,
    object: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty one; each kind has a number of its own, below 16.
    pub(super) const fn new(kind: usize) -> Self {
        Self { kind, slots: RwLock::new(Slots { all: Vec::new(), free: Vec::new() }) }
    }

    /// Takes an object in; its handle, or nothing if there are too many.
    pub(super) fn add(&self, object: Arc<T>) -> Option<usize> {
        let mut slots = self.slots.write();
        let at = match slots.free.pop() {
            Some(at) => at,
            None if slots.all.len() == MOST => return None,
            None => {
                slots.all.push(Slot { turn: 0, object: None });
                slots.all.len() - 1
            }
        };
        let slot = &mut slots.all[at];
        slot.turn = (slot.turn + 1) % TURNS;
        slot.object = Some(object);
        Some(MARK | self.kind << KIND_SHIFT | (slot.turn as usize) << TURN_SHIFT | at)
    }

    /// Where a handle leads, and to the object of which turn there; `None` if it is none of this kind.
    fn open(&self, handle: usize) -> Option<(usize, u32)> {
        let ours = handle >> KIND_SHIFT == (MARK >> KIND_SHIFT) | self.kind;
        ours.then_some((handle & (MOST - 1), (handle >> TURN_SHIFT) as u32 & (TURNS - 1)))
    }

    /// Where the object of a handle is, if there is one.
    fn find(&self, slots: &Slots<T>, handle: usize) -> Option<usize> {
        let (at, turn) = self.open(handle)?;
        slots.all.get(at).filter(|slot| slot.turn == turn && slot.object.is_some()).map(|_| at)
    }

    /// Whether a handle leads nowhere now, and led to an object once.
    pub(super) fn had(&self, handle: usize) -> bool {
        let slots = self.slots.read();
        let of = self.open(handle).and_then(|(at, turn)| Some((slots.all.get(at)?, turn)));
        of.is_some_and(|(slot, turn)| {
            (1..slot.turn).contains(&turn) || slot.turn == turn && slot.object.is_none()
        })
    }

    /// The object of a handle.
    pub(super) fn get(&self, handle: usize) -> Option<Arc<T>> {
        let slots = self.slots.read();
        slots.all[self.find(&slots, handle)?].object.clone()
    }

    /// Takes the object of a handle out.
    pub(super) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let mut slots = self.slots.write();
        let at = self.find(&slots, handle)?;
        slots.free.push(at);
        slots.all[at].object.take()
    }

    /// Takes all objects out of which something is true.
    pub(super) fn remove_all(&self, mut which: impl FnMut(&Arc<T>) -> bool) -> Vec<Arc<T>> {
        let mut slots = self.slots.write();
        let Slots { all, free } = &mut *slots;
        let taken =
            all.iter_mut().enumerate().filter(|(_, slot)| slot.object.as_ref().is_some_and(&mut which));
        taken
            .filter_map(|(at, slot)| {
                free.push(at);
                slot.object.take()
            })
            .collect()
    }

    /// Shows all objects.
    pub(super) fn each(&self, show: impl FnMut(&Arc<T>)) {
        self.slots.read().all.iter().filter_map(|slot| slot.object.as_ref()).for_each(show);
    }

    /// Whether something is true of any object.
    pub(super) fn any(&self, which: impl FnMut(&Arc<T>) -> bool) -> bool {
        self.slots.read().all.iter().filter_map(|slot| slot.object.as_ref()).any(which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_handle_leads_nowhere() {
        let (table, other) = (Table::new(1), Table::new(2));
        let first = table.add(Arc::new('a')).expect("room");
        let same_place = other.add(Arc::new('b')).expect("room");
        assert_eq!(table.get(first).as_deref(), Some(&'a'));
        assert!(table.get(same_place).is_none(), "another kind");
        for foreign in
            [0, 1, first + 1, first ^ 1 << TURN_SHIFT, first ^ 1 << 63, first & (MOST - 1), usize::MAX]
        {
            assert!(table.get(foreign).is_none() && table.remove(foreign).is_none(), "{foreign:#x}");
        }
        assert_eq!(table.remove(first).as_deref(), Some(&'a'));
        assert!(table.had(first));
        let second = table.add(Arc::new('c')).expect("room");
        assert_ne!(first, second, "the place is the same, and the turn another");
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        assert!(table.had(first) && !table.had(second) && !table.had(second + (1 << TURN_SHIFT)));
        assert!(!table.had(same_place) && !table.had(0));
        assert_eq!(table.get(second).as_deref(), Some(&'c'));
    }

    #[test]
    fn some_are_taken_out() {
        let table = Table::new(3);
        let handles: Vec<_> = (0..6).map(|i| table.add(Arc::new(i)).expect("room")).collect();
        let odd = table.remove_all(|i| **i % 2 == 1);
        assert_eq!(odd.iter().map(|i| **i).collect::<Vec<_>>(), [1, 3, 5]);
        assert!(table.any(|i| **i == 4) && !table.any(|i| **i == 5));
        let mut left = Vec::new();
        table.each(|i| left.push(**i));
        assert_eq!(left, [0, 2, 4]);
        assert_eq!(handles.iter().filter(|handle| table.get(**handle).is_some()).count(), 3);
    }
}
