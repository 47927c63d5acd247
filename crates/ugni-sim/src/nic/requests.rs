//! The transactions that a client is still to hear of.

use std::sync::Arc;

use super::endpoint::Outstanding;
use super::smsg::Errand;
use super::strict::Guard;
use crate::entry::Status;
use crate::post::Wishes;

/// A transaction between its post and the last word of it.
pub(super) struct Request {
    pub(super) purpose: Purpose,
    /// The value of its events here.
    pub(super) value: u32,
    /// Events that are still to come.
    pub(super) awaited: Wishes,
    /// Events that were taken, and not answered by the client.
    pub(super) unclaimed: u32,
    /// Its endpoint is gone: nobody is to hear of it.
    pub(super) cancelled: bool,
    /// How it ended.
    pub(super) status: Status,
    /// Counts what the endpoint waits for.
    pub(super) outstanding: Arc<Outstanding>,
    /// The source of a put, where the client is held to leave it alone.
    pub(super) source: Option<Box<Guard>>,
}

/// What a request is for.
pub(super) enum Purpose {
    /// A post.
    Post {
        /// By what the client knows the descriptor.
        token: u64,
        /// What the client called it.
        id: u64,
    },
    /// Mailboxes.
    Smsg(Errand),
}

impl Request {
    pub(super) fn new(purpose: Purpose, value: u32, awaited: Wishes, outstanding: &Arc<Outstanding>) -> Self {
        let (unclaimed, cancelled, status) = (0, false, Status::Ok);
        let outstanding = Arc::clone(outstanding);
        Self { purpose, value, awaited, unclaimed, cancelled, status, outstanding, source: None }
    }

    /// The same, whose source is watched.
    pub(super) fn watching(self, source: Option<Box<Guard>>) -> Self {
        Self { source, ..self }
    }

    /// Whose it is, in the client's words.
    pub(super) fn whose(&self) -> String {
        match &self.purpose {
            Purpose::Post { token, id } => format!("descriptor {token:#x} with post_id {id:#x}"),
            Purpose::Smsg(errand) => {
                errand.message().map_or_else(String::new, |(_, id)| format!("message {id:#x}"))
            }
        }
    }
}

/// A table of as many requests as a queue has entries for.
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    most: u32,
}

impl Requests {
    pub(super) fn new(most: u32) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), most }
    }

    /// The number of a new request; `None` if there is no room.
    pub(super) fn add(&mut self, request: Request) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(request);
            return Some(number);
        }
        let number = u32::try_from(self.slots.len()).ok().filter(|number| *number < self.most)?;
        self.slots.push(Some(request));
        Some(number)
    }

    /// Those of the client's own: not what mailboxes do for themselves.
    pub(super) fn open(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().flatten().filter(|request| match &request.purpose {
            Purpose::Post { .. } => true,
            Purpose::Smsg(errand) => errand.message().is_some(),
        })
    }

    /// Those with a source that is watched.
    pub(super) fn watched(&mut self) -> impl Iterator<Item = &mut Request> {
        self.slots.iter_mut().flatten().filter(|request| !request.cancelled && request.source.is_some())
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&mut Request> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Request> {
        let request = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(request)
    }

    /// Forgets all requests of an endpoint; the numbers of those whose events are still to come stay taken until then.
    pub(super) fn cancel(&mut self, outstanding: &Arc<Outstanding>) {
        for number in 0..self.slots.len() {
            let Some(request) = &mut self.slots[number] else { continue };
            if Arc::ptr_eq(&request.outstanding, outstanding) {
                request.cancelled = true;
                if request.awaited.here() == 0 {
                    self.remove(number as u32);
                }
            }
        }
    }
}
