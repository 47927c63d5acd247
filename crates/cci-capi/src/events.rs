//! The events of an endpoint that its program holds. Their objects are used again, so that a warm endpoint allocates nothing for an event.

use crate::abi::CEvent;
use crate::slab::{Owner, Slab};
use gasworks_cci::endpoint::{Message, Request};
use std::collections::VecDeque;

/// How many returned events wait at least, so that one that is returned twice is recognised.
const WAITING: usize = 32;

/// An event, and whose it is.
#[repr(C)]
#[derive(Default)]
pub struct EventObject {
    public: CEvent,
    pub(crate) owner: Owner,
}

/// The events of all endpoints.
pub static EVENTS: Slab<EventObject> = Slab::new();

/// What stands behind an event.
pub enum Held {
    /// The program does not hold it.
    Nothing,
    /// Nothing more.
    Plain,
    /// A message.
    Message(Message),
    /// A client's request.
    Request {
        /// Which.
        request: Box<Request>,
        /// Whether it was accepted or rejected.
        is_answered: bool,
    },
}

/// An event's object, and what stands behind it.
struct Entry {
    object: &'static EventObject,
    /// The object's number.
    number: u32,
    held: Held,
}

/// The events of an endpoint.
pub struct Events {
    /// The endpoint's number.
    endpoint: u32,
    entries: Vec<Entry>,
    /// The entries that the program does not hold, in the order in which they were returned.
    free: VecDeque<u32>,
}

impl Events {
    /// None.
    pub fn new(endpoint: u32) -> Self {
        Self { endpoint, entries: Vec::new(), free: VecDeque::new() }
    }

    /// Makes an event and gives its address.
    pub fn add(&mut self, held: Held, event_type: u32, second: u32, third: u64, fourth: u64) -> usize {
        let reused = if self.free.len() > WAITING { self.free.pop_front() } else { None };
        let number = reused.unwrap_or_else(|| {
            let (taken, number) = (EVENTS.take(), self.entries.len() as u32);
            let object = EVENTS.get(taken);
            object.owner.set(self.endpoint, number.into());
            self.entries.push(Entry { object, number: taken, held: Held::Nothing });
            number
        });
        let entry = &mut self.entries[number as usize];
        entry.held = held;
        entry.object.public.set(event_type, second, third, fourth);
        std::ptr::from_ref(entry.object).expose_provenance()
    }

    /// What stands behind an event.
    pub fn held(&mut self, number: u64) -> Option<&mut Held> {
        self.entries.get_mut(usize::try_from(number).ok()?).map(|entry| &mut entry.held)
    }

    /// Takes an event back: what stood behind it, or `None` where the program may not return it.
    pub fn take_back(&mut self, number: u64) -> Option<Held> {
        let held = self.held(number)?;
        if matches!(held, Held::Nothing | Held::Request { is_answered: false, .. }) {
            return None;
        }
        let held = std::mem::replace(held, Held::Nothing);
        self.free.push_back(number as u32);
        Some(held)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for entry in &self.entries {
            entry.object.owner.clear();
            EVENTS.release(entry.number);
        }
    }
}
