//! The tables of a NIC, in the memory of the process that it belongs to.

use std::sync::{Arc, OnceLock};

use gasworks_sync::atomic::AtomicU64;
use parking_lot::Mutex;

use crate::chip::Chip;
use crate::memory::Memory;
use crate::queue::{Control, Queue};
use crate::station::Station;
use crate::table::{Place, Registration};

/// A NIC's tables and its client's memory.
pub struct Home {
    chip: Chip,
    memory: Arc<dyn Memory>,
    registrations: Box<[Registration]>,
    queues: Box<[OnceLock<Places>]>,
    /// Held during an atomic.
    alone: Mutex<()>,
    /// Queues that are not used any more.
    free: Mutex<Vec<u16>>,
}

/// The memory of a queue.
struct Places {
    control: Control,
    places: Box<[AtomicU64]>,
    limit: u64,
}

impl Home {
    /// Empty tables of a chip, for so many registrations and queues at most.
    pub fn new(chip: Chip, memory: Arc<dyn Memory>, registrations: usize, queues: usize) -> Self {
        let registrations = registrations.min(chip.descriptors());
        Self {
            chip,
            memory,
            registrations: (0..registrations).map(|_| Registration::new()).collect(),
            queues: (0..queues.min(chip.queues())).map(|_| OnceLock::new()).collect(),
            alone: Mutex::default(),
            free: Mutex::default(),
        }
    }

    pub(super) fn descriptors(&self) -> u16 {
        u16::try_from(self.registrations.len()).unwrap_or(u16::MAX)
    }

    pub(super) fn open(&self, descriptor: u16, place: &Place) {
        self.registrations[usize::from(descriptor)].open(place);
    }

    pub(super) fn close(&self, descriptor: u16, looks: u64) -> bool {
        self.registrations[usize::from(descriptor)].close(looks)
    }

    /// The number of a new queue; `None` if there are no more.
    pub(super) fn make_queue(&self, limit: u64) -> Option<u16> {
        let mut free = self.free.lock();
        // One that was left may be used again by its like alone: others may still write into it.
        let same =
            |number: &u16| self.queues[usize::from(*number)].get().is_some_and(|queue| queue.limit == limit);
        if let Some(at) = free.iter().position(same) {
            return Some(free.swap_remove(at));
        }
        let places = usize::try_from(limit).ok()?.checked_next_power_of_two()?;
        let mut made = Some(Places {
            control: Control::new(),
            places: (0..places).map(|_| AtomicU64::new(0)).collect(),
            limit,
        });
        let number = self.queues.iter().position(|slot| {
            made.take().is_some_and(|places| slot.set(places).map_err(|places| made = Some(places)).is_ok())
        })?;
        u16::try_from(number).ok()
    }

    /// A queue is not used any more.
    pub(super) fn leave_queue(&self, number: u16) {
        if let Some(queue) = self.queue(number) {
            while queue.pop().is_some() {}
            let _ = queue.overrun();
        }
        self.free.lock().push(number);
    }
}

impl Station for Home {
    fn chip(&self) -> Chip {
        self.chip
    }

    fn registration(&self, descriptor: u16) -> Option<&Registration> {
        self.registrations.get(usize::from(descriptor))
    }

    fn queue(&self, number: u16) -> Option<Queue<'_>> {
        let places = self.queues.get(usize::from(number))?.get()?;
        Queue::new(&places.control, &places.places, places.limit)
    }

    fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    fn alone(&self, act: &mut dyn FnMut()) {
        let _alone = self.alone.lock();
        act();
    }
}
