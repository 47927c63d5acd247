//! Shared message queues.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_ugni_sim::msgq::Plan;
use gasworks_ugni_sim::nic::{Message, Received};

use super::datagram::limit;
use super::queue::await_one;
use crate::ugni::object::{Device, End, MESSAGES, Messages, Queue};
use crate::ugni::patience::PATIENCE;
use crate::ugni::raw::{self, Answer, Bytes, Context, Given, In, Known, Maybe, Out, Own, Told};
use crate::ugni::waiting::{AGAIN, over};

pub(super) fn size(In(attributes): In<gni_msgq_attr_t>, size: Out<u32>) -> Answer {
    size.set(Plan::of(&attributes)?.size() as u32);
    Ok(())
}

pub(super) fn init(
    device: Known<Device>,
    receive: Option<gni_msgq_rcv_cb_func>,
    context: Context,
    Maybe(events): Maybe<Queue>,
    In(attributes): In<gni_msgq_attr_t>,
    out: Out<gni_msgq_handle_t>,
) -> Answer {
    let receiver = context.receiving(receive.ok_or(GNI_RC_INVALID_PARAM)?);
    let (_memory, first) = raw::zeros(Plan::of(&attributes)?.size() as usize).map_err(|error| {
        say(&format!("libugni: {error}"));
        GNI_RC_ERROR_NOMEM
    })?;
    let queue = device.nic().msgq(&attributes, first, events.as_ref().map(|events| &events.cq))?;
    let (pool, blocking) = (attributes.rcv_pool_sz, attributes.modes & GNI_MSGQ_MODE_BLOCKING != 0);
    out.set(Messages::add(Arc::new(Messages { device, queue, _memory, events, receiver, pool, blocking }))?);
    Ok(())
}

pub(super) fn idle(messages: Known<Messages>) -> Answer {
    messages.queue.idle()
}

/// What is under way has to be over.
pub(super) fn release(Given(handle): Given<Messages>) -> Answer {
    MESSAGES.get(handle.addr()).ok_or(GNI_RC_INVALID_PARAM)?.queue.idle()?;
    Messages::remove(handle).map(drop)
}

pub(super) fn assign(
    messages: Known<Messages>,
    address: u32,
    out: Out<gni_msgq_ep_attr_t>,
    size: Out<u32>,
) -> Answer {
    let (told, bytes) = messages.queue.assign(address)?;
    out.set(told);
    size.set(bytes);
    Ok(())
}

pub(super) fn connect(messages: Known<Messages>, address: u32, Told(told): Told) -> Answer {
    messages.queue.connect(address, &told)
}

pub(super) fn disconnect(messages: Known<Messages>, address: u32) -> Answer {
    messages.queue.disconnect(address)
}

#[allow(clippy::too_many_arguments)] // the interface's
pub(super) fn send(
    messages: Known<Messages>,
    end: Known<End>,
    header: Bytes,
    header_length: u32,
    data: Bytes,
    data_length: u32,
    id: u32,
    tag: u8,
) -> Answer {
    let (header, data) = (header.place(header_length)?, data.place(data_length)?);
    messages.queue.send(&end.endpoint, &Message { header, data, id, tag })
}

/// The next message, waited for; nothing when the time is over. What is taken here cannot be taken again: it is not a try of the call.
fn next(messages: &Messages, timeout: u32) -> Result<Option<Received>, gni_return_t> {
    let next = loop {
        match await_one(limit(timeout), || messages.queue.next().transpose()) {
            Err(AGAIN) => {}
            found => break found,
        }
    };
    over();
    next.ok().transpose()
}

/// The function is called without a lock, for it may well send. Who waits does so for each message anew; where there are still
/// more than are taken at a time, or the function wants no more, that is `GNI_RC_NOT_DONE`.
pub(super) fn progress(messages: Known<Messages>, timeout: u32) -> Answer {
    for _ in 0..messages.pool {
        let next = match messages.blocking {
            true => next(&messages, timeout)?,
            false => messages.queue.next()?,
        };
        let Some(message) = next else {
            PATIENCE.in_vain();
            return Ok(());
        };
        PATIENCE.found();
        if !messages.receiver.call(&message) {
            break;
        }
    }
    Err(GNI_RC_NOT_DONE)
}
