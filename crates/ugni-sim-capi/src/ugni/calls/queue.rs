//! Completion queues, and waiting for them.

use std::sync::Arc;
use std::time::Duration;

use gasworks_gni_sys::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::nic::{Event, Next};
use parking_lot::{Mutex, MutexGuard};

use super::entry;
use crate::ugni::object::{Device, ENDS, MESSAGES, Queue};
use crate::ugni::patience::PATIENCE;
use crate::ugni::raw::{Answer, Context, Given, Known, Out, Own, Posted, Room};
use crate::ugni::waiting::{is_first, not_yet};
use crate::{strict, trace, witness};

/// Stands for a wait without an end.
pub(super) const FOREVER: u64 = u64::MAX;

pub(super) fn create(
    device: Known<Device>,
    entries: u32,
    // When others hear of events that are taken is nothing that a client sees.
    _delay: u32,
    modes: u32,
    handler: Option<gni_cq_handler_t>,
    context: Context,
    queue: Out<gni_cq_handle_t>,
) -> Answer {
    let cq = device.nic().queue(entries)?;
    let handler = handler.map(|function| context.of(function));
    let blocking = modes & GNI_CQ_BLOCKING != 0;
    let (masks, channel) = (Mutex::default(), Mutex::default());
    queue.set(Queue::add(Arc::new(Queue { device, cq, blocking, handler, masks, channel }))?);
    Ok(())
}

pub(super) fn destroy(Given(handle): Given<Queue>) -> Answer {
    let queue = Queue::find(handle)?;
    let same = |other: &Option<Arc<Queue>>| other.as_ref().is_some_and(|other| Arc::ptr_eq(other, &queue));
    if ENDS.any(|end| same(&end.queue)) || MESSAGES.any(|messages| same(&messages.events)) {
        return Err(GNI_RC_ERROR_RESOURCE);
    }
    if strict::is_on() {
        queue.cq.check_requests();
    }
    Queue::remove(handle).map(drop)
}

/// Gives an event that was taken to the client.
fn deliver(queue: &Queue, event: Event, out: &Out<gni_cq_entry_t>) -> Answer {
    witness::took(&event);
    strict::took(&event);
    trace::took(&event, entry::said(event.word));
    let failed = event.status != Status::Ok;
    if let Some((token, id)) = event.transaction {
        Posted::of(token).finish(if failed { GNI_RC_TRANSACTION_ERROR } else { GNI_RC_SUCCESS }, id);
    }
    out.set(event.word);
    PATIENCE.found();
    if let Some(handler) = &queue.handler {
        handler.call(event.word);
    }
    if event.overrun {
        return Err(GNI_RC_ERROR_RESOURCE);
    }
    if failed { Err(GNI_RC_TRANSACTION_ERROR) } else { Ok(()) }
}

pub(super) fn get(queue: Known<Queue>, event: Out<gni_cq_entry_t>) -> Answer {
    match queue.cq.next() {
        Next::Event(next) => deliver(&queue, next, &event),
        Next::Nothing => {
            event.set(0);
            Err(GNI_RC_NOT_DONE)
        }
    }
}

pub(super) fn test(queue: Known<Queue>) -> Answer {
    if queue.cq.holds_event() { Ok(()) } else { Err(GNI_RC_NOT_DONE) }
}

/// Looks whether there is something; a call that waits for that is tried again until there is, or `timeout` milliseconds are over.
///
/// # Errors
/// `GNI_RC_TIMEOUT`, or [`AGAIN`](crate::ugni::waiting::AGAIN).
pub(super) fn await_one<T>(timeout: u64, look: impl FnOnce() -> Option<T>) -> Result<T, gni_return_t> {
    let limit = (timeout != FOREVER).then(|| Duration::from_millis(timeout));
    look().ok_or_else(|| not_yet(limit))
}

pub(super) fn wait(queue: Known<Queue>, timeout: u64, event: Out<gni_cq_entry_t>) -> Answer {
    if !queue.blocking {
        return Err(GNI_RC_ERROR_RESOURCE);
    }
    let next = await_one(timeout, || match queue.cq.next() {
        Next::Event(next) => Some(next),
        Next::Nothing => None,
    })?;
    deliver(&queue, next, &event)
}

/// # Errors
/// `GNI_RC_ERROR_RESOURCE`: nobody can wait for its events, so there are no interrupts.
fn interrupts(queue: &Queue) -> Result<MutexGuard<'_, u32>, gni_return_t> {
    if queue.blocking { Ok(queue.masks.lock()) } else { Err(GNI_RC_ERROR_RESOURCE) }
}

pub(super) fn mask(queue: Known<Queue>) -> Answer {
    *interrupts(&queue)? += 1;
    Ok(())
}

/// What is not masked is not unmasked, which is `GNI_RC_NOT_DONE`.
pub(super) fn unmask(queue: Known<Queue>) -> Answer {
    let mut masks = interrupts(&queue)?;
    *masks = masks.checked_sub(1).ok_or(GNI_RC_NOT_DONE)?;
    Ok(())
}

/// The queues of a vector, each of which one may wait for.
///
/// # Errors
/// `GNI_RC_INVALID_PARAM`: there are none, or one is none. `GNI_RC_ERROR_RESOURCE`: one is not to be waited for.
/// `GNI_RC_NOT_DONE`: the interrupts of one are masked.
fn vector(queues: &Room<gni_cq_handle_t>, count: u32) -> Result<Vec<Arc<Queue>>, gni_return_t> {
    if count == 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let find = |handle: gni_cq_handle_t| {
        let queue = Queue::find(handle)?;
        let masked = *interrupts(&queue)? > 0;
        if masked { Err(GNI_RC_NOT_DONE) } else { Ok(queue) }
    };
    queues.read(count as usize).into_iter().map(find).collect()
}

pub(super) fn wait_for_any(
    queues: Room<gni_cq_handle_t>,
    count: u32,
    timeout: u64,
    event: Out<gni_cq_entry_t>,
    which: Out<u32>,
) -> Answer {
    let queues = vector(&queues, count)?;
    let (at, next) = await_one(timeout, || {
        queues.iter().zip(0..).find_map(|(queue, at)| match queue.cq.next() {
            Next::Event(next) => Some((at, next)),
            Next::Nothing => None,
        })
    })?;
    which.set(at);
    deliver(&queues[at as usize], next, &event)
}

pub(super) fn monitor(queues: Room<gni_cq_handle_t>, count: u32, timeout: u64, which: Out<u32>) -> Answer {
    let queues = vector(&queues, count)?;
    if is_first() && queues[0].device.nic().wakes_falsely() {
        which.set(0);
        return Ok(());
    }
    which.set(await_one(timeout, || {
        // Who only watches moves nothing on by it, so the NICs are moved on here.
        queues.iter().for_each(|queue| queue.device.nic().progress());
        queues.iter().zip(0..).find_map(|(queue, at)| queue.cq.holds_event().then_some(at))
    })?);
    Ok(())
}
