//! Completion channels.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_ugni_sim::nic::Channel;

use crate::ugni::object::{Chan, Device, QUEUES, Queue};
use crate::ugni::raw::{Answer, Given, Known, Out, Own, Room};

pub(super) fn create(device: Known<Device>, out: Out<gni_comp_chan_handle_t>) -> Answer {
    let channel = Channel::new().map_err(|error| {
        say(&format!("libugni: {error}"));
        GNI_RC_ERROR_NOMEM
    })?;
    out.set(Chan::add(Arc::new(Chan { device, channel: Arc::new(channel) }))?);
    Ok(())
}

/// Queues that are attached to it are told of no more.
pub(super) fn destroy(Given(handle): Given<Chan>) -> Answer {
    let chan = Chan::remove(handle)?;
    QUEUES.each(|queue| {
        queue.channel.lock().take_if(|other| Arc::ptr_eq(other, &chan));
    });
    Ok(())
}

pub(super) fn descriptor(chan: Known<Chan>, out: Out<c_int>) -> Answer {
    out.set(chan.channel.as_fd().as_raw_fd());
    Ok(())
}

pub(super) fn next(chan: Known<Chan>, out: Out<gni_cq_handle_t>) -> Answer {
    loop {
        let handle = chan.channel.next()? as usize;
        // It may have been destroyed meanwhile.
        if QUEUES.get(handle).is_some() {
            out.set(std::ptr::without_provenance_mut(handle));
            return Ok(());
        }
    }
}

pub(super) fn attach(queue: Known<Queue>, chan: Known<Chan>) -> Answer {
    if !Arc::ptr_eq(&queue.device, &chan.device) {
        return Err(GNI_RC_INVALID_PARAM);
    }
    *queue.channel.lock() = Some(chan);
    Ok(())
}

/// All of them, or none where one cannot be.
pub(super) fn arm(queues: Room<gni_cq_handle_t>, count: u32) -> Answer {
    if count == 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let find = |handle: gni_cq_handle_t| {
        let queue = QUEUES.get(handle.addr())?;
        let chan = queue.channel.lock().clone()?;
        Some((handle.addr() as u64, queue, chan))
    };
    let found: Option<Vec<_>> = queues.read(count as usize).into_iter().map(find).collect();
    for (name, queue, chan) in found.ok_or(GNI_RC_INVALID_PARAM)? {
        queue.device.attached.arm(&queue.cq, &chan.channel, name);
    }
    Ok(())
}
