//! Short messages.

use std::ffi::{c_uint, c_void};

use gasworks_gni_sys::*;
use gasworks_ugni_sim::mailbox;
use gasworks_ugni_sim::nic::Message;

use crate::call::MessageId;
use crate::trace;
use crate::ugni::object::{Device, End};
use crate::ugni::patience::PATIENCE;
use crate::ugni::raw::{Answer, Bytes, In, InOut, Known, Out};

pub(super) fn size_needed(In(attributes): In<gni_smsg_attr_t>, size: Out<c_uint>) -> Answer {
    size.set(mailbox::size_needed(&attributes)?);
    Ok(())
}

pub(super) fn init(end: Known<End>, In(here): In<gni_smsg_attr_t>, In(there): In<gni_smsg_attr_t>) -> Answer {
    end.endpoint.smsg_init(&here, &there)
}

pub(super) fn set_delivery(device: Known<Device>, mode: u16) -> Answer {
    device.nic().set_smsg_delivery(mode)
}

pub(super) fn set_retransmissions(device: Known<Device>, most: u16) -> Answer {
    device.nic().set_smsg_retransmissions(most);
    Ok(())
}

pub(super) fn send(
    end: Known<End>,
    header: Bytes,
    header_length: u32,
    data: Bytes,
    data_length: u32,
    id: MessageId,
) -> Answer {
    send_tagged(end, header, header_length, data, data_length, id, 0)
}

pub(super) fn send_tagged(
    end: Known<End>,
    header: Bytes,
    header_length: u32,
    data: Bytes,
    data_length: u32,
    id: MessageId,
    tag: u8,
) -> Answer {
    let (header, data) = (header.place(header_length)?, data.place(data_length)?);
    end.endpoint.smsg_send(&Message { header, data, id: id.0, tag })?;
    trace::sent(&end.endpoint, id.0, u64::from(header_length) + u64::from(data_length));
    Ok(())
}

/// The next message of a tag, and where it is; whoever reads it does so in its mailbox.
fn find(end: &End, wanted: u8, message: &Out<*mut c_void>) -> Result<u8, gni_return_t> {
    let found = end.endpoint.smsg_next(wanted);
    if found.is_ok() {
        PATIENCE.found();
    }
    let address = found.map_or(0, |(address, _)| address);
    message.set(std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0)));
    found.map(|(_, tag)| tag)
}

pub(super) fn next(end: Known<End>, message: Out<*mut c_void>) -> Answer {
    find(&end, GNI_SMSG_ANY_TAG, &message).map(drop)
}

pub(super) fn next_tagged(end: Known<End>, message: Out<*mut c_void>, InOut(tag, out): InOut<u8>) -> Answer {
    out.set(find(&end, tag, &message)?);
    Ok(())
}

pub(super) fn release(end: Known<End>) -> Answer {
    end.endpoint.smsg_release()?;
    trace::got(&end.endpoint);
    Ok(())
}
