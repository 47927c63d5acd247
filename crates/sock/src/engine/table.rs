//! The socks of a set by their numbers.

use std::sync::Arc;

use crate::SockId;

/// Places that are used again, each time with the next generation, so that a number is never given twice.
pub(crate) struct Table<S> {
    places: Vec<Place<S>>,
    free: Vec<u32>,
    used: usize,
}

struct Place<S> {
    generation: u32,
    sock: Option<Arc<S>>,
}

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<S> Table<S> {
    pub(crate) fn insert(&mut self, make: impl FnOnce(SockId) -> Arc<S>) -> Arc<S> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, sock: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.generation += 1;
        let sock = make(SockId(u64::from(place.generation) << 32 | u64::from(index)));
        place.sock = Some(Arc::clone(&sock));
        self.used += 1;
        sock
    }

    pub(crate) fn get(&self, id: SockId) -> Option<Arc<S>> {
        let place = self.places.get(id.0 as u32 as usize)?;
        place.sock.as_ref().filter(|_| place.generation == (id.0 >> 32) as u32).cloned()
    }

    pub(crate) fn remove(&mut self, id: SockId) {
        let index = id.0 as u32;
        let Some(place) = self.places.get_mut(index as usize) else { return };
        if place.sock.take().is_none() {
            return;
        }
        self.used -= 1;
        // A place whose generations are used up is not used again.
        if place.generation < u32::MAX {
            self.free.push(index);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.used
    }

    pub(crate) fn socks(&self) -> impl Iterator<Item = &Arc<S>> {
        self.places.iter().filter_map(|place| place.sock.as_ref())
    }
}
