//! Endpoints.

use std::sync::Arc;

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use crate::strict;
use crate::ugni::object::{Device, End, Queue};
use crate::ugni::raw::{Answer, Given, Known, Maybe, Out, Own};

pub(super) fn create(device: Known<Device>, Maybe(queue): Maybe<Queue>, end: Out<gni_ep_handle_t>) -> Answer {
    if queue.as_ref().is_some_and(|queue| !Arc::ptr_eq(&queue.device, &device)) {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let endpoint = device.nic().endpoint(queue.as_ref().map(|queue| &queue.cq))?;
    end.set(End::add(Arc::new(End { device, endpoint, queue, answer: Mutex::default() }))?);
    Ok(())
}

pub(super) fn set_event_data(end: Known<End>, here: u32, there: u32) -> Answer {
    end.endpoint.set_values(here, there);
    Ok(())
}

pub(super) fn bind(end: Known<End>, address: u32, instance: u32) -> Answer {
    end.endpoint.bind(address, instance)
}

pub(super) fn unbind(end: Known<End>) -> Answer {
    end.endpoint.unbind()
}

pub(super) fn idle(end: Known<End>) -> Answer {
    end.endpoint.idle()
}

pub(super) fn destroy(Given(handle): Given<End>) -> Answer {
    let end = End::remove(handle)?;
    if strict::is_on() {
        end.endpoint.check_answers();
    }
    Ok(())
}
