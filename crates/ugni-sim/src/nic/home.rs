//! A NIC at home: what it shows to others, and its client's memory.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::chip::Chip;
use crate::letter::Letter;
use crate::memory::Memory;
use crate::shares::Shares;
use crate::station::Shown;
use crate::table::Place;
use crate::window::{Shape, Window};

/// The entries of which each queue of a window on the heap may have.
const HEAP_ENTRIES: u32 = 128;

/// Letters that may lie unread; who is refused sends its own again later.
const UNREAD: usize = 1 << 16;

/// A NIC's window and its client's memory.
pub struct Home {
    window: Window,
    memory: Arc<dyn Memory>,
    /// Its own, which others map too.
    shares: Option<Shares>,
    made: Mutex<Made>,
    /// What nobody has read.
    letters: Mutex<Vec<Letter>>,
}

/// Which queues there are.
#[derive(Default)]
struct Made {
    queues: u16,
    lines: u64,
    /// Those that are not used any more, with their limits: each may be used again by its like alone, for others may still
    /// write into it.
    free: Vec<(u16, u32)>,
}

impl Home {
    /// One of a process alone, with room for so many registrations and queues at most.
    pub fn new(chip: Chip, memory: Arc<dyn Memory>, registrations: usize, queues: usize) -> Self {
        let lines = queues * Window::lines_of(HEAP_ENTRIES) as usize;
        Self::of(Window::on_heap(chip, Shape { registrations, queues, lines }), memory)
    }

    /// One that shows an empty window.
    pub fn of(window: Window, memory: Arc<dyn Memory>) -> Self {
        let (made, letters) = (Mutex::default(), Mutex::default());
        let shares = memory.process().map(|process| Shares::of(process.remote()));
        Self { window, memory, shares, made, letters }
    }

    pub(super) fn descriptors(&self) -> u16 {
        u16::try_from(self.window.shape().registrations).unwrap_or(u16::MAX)
    }

    pub(super) fn open(&self, descriptor: u16, place: &Place) {
        if let Some(registration) = self.window.registration(descriptor) {
            registration.open(place);
        }
    }

    pub(super) fn close(&self, descriptor: u16, looks: u64) -> bool {
        self.window.registration(descriptor).is_some_and(|registration| registration.close(looks))
    }

    /// The number of a new queue; `None` if there is no room.
    pub(super) fn make_queue(&self, limit: u32) -> Option<u16> {
        let mut made = self.made.lock();
        if let Some(at) = made.free.iter().position(|free| free.1 == limit) {
            return Some(made.free.swap_remove(at).0);
        }
        let (number, line) = (made.queues, u32::try_from(made.lines).ok()?);
        self.window.make_queue(number, line, limit).then(|| {
            made.queues += 1;
            made.lines += Window::lines_of(limit);
            number
        })
    }

    /// A queue of this limit is not used any more.
    pub(super) fn leave_queue(&self, number: u16, limit: u32) {
        if let Some(queue) = self.window.queue(number) {
            while queue.pop().is_some() {}
            let _ = queue.overrun();
        }
        self.made.lock().free.push((number, limit));
    }

    pub(super) fn holds_letters(&self) -> bool {
        !self.letters.lock().is_empty()
    }

    pub(super) fn take_letters(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.letters.lock())
    }
}

impl Shown for Home {
    fn window(&self) -> &Window {
        &self.window
    }

    fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    fn shares(&self) -> Option<&Shares> {
        self.shares.as_ref()
    }

    fn take_in(&self, letter: &Letter) -> bool {
        let mut letters = self.letters.lock();
        let room = letters.len() < UNREAD;
        if room {
            letters.push(letter.clone());
        }
        room
    }
}
