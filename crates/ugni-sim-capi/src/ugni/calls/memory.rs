//! Registered memory.

use std::ffi::c_int;
use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::maps::{self, Access, InFile};
use gasworks_ugni_sim::handle::{Flags, Handle};
use gasworks_ugni_sim::nic::{Bytes, rebuilt};

use crate::ugni::object::{Device, Queue};
use crate::ugni::raw::{Answer, In, InOut, Known, Maybe, Out, Room, Wanted};
use crate::witness;

/// More segments than a NIC has descriptors for.
const MOST_SEGMENTS: usize = 1 << 12;
/// Stands for no virtual descriptor.
const NONE: u32 = u32::MAX;

pub(super) fn register(
    device: Known<Device>,
    address: u64,
    length: u64,
    Maybe(queue): Maybe<Queue>,
    flags: u32,
    virtual_descriptor: u32,
    handle: Out<gni_mem_handle_t>,
) -> Answer {
    if queue.as_ref().is_some_and(|queue| !Arc::ptr_eq(&queue.device, &device)) || length == 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    if flags & GNI_MEM_UPDATE_REGION != 0 {
        is_mapped(address, length, flags)?;
        return device.nic().update(&handle.before(), (address, length));
    }
    // What is reserved is mapped later, and the client says when.
    let is_there = flags & GNI_MEM_RESERVE_REGION == 0;
    let lies = if is_there { is_mapped(address, length, flags)? } else { None };
    let bytes = Bytes { first: address, len: length, lies };
    let (nic, queue) = (device.nic(), queue.as_ref().map(|queue| &queue.cq));
    handle.set(match (flags & GNI_MEM_USE_VMDH != 0, virtual_descriptor) {
        (false, NONE) => nic.register(bytes, queue, flags)?,
        (true, place) => nic.register_virtually(place, bytes, queue, flags)?,
        (false, _) => return Err(GNI_RC_INVALID_PARAM),
    });
    witness::registered(length);
    Ok(())
}

/// In which file bytes lie, if they do.
///
/// # Errors
/// `GNI_RC_INVALID_PARAM`: they are not mapped; `GNI_RC_PERMISSION_ERROR`: they are not to be written.
fn is_mapped(address: u64, length: u64, flags: u32) -> Result<Option<InFile>, gni_return_t> {
    let found = maps::look(address, length);
    match found.access {
        Access::Write => Ok(found.lies),
        Access::Read if flags & GNI_MEM_READ_ONLY != 0 => Ok(None),
        Access::Read => Err(GNI_RC_PERMISSION_ERROR),
        Access::None => Err(GNI_RC_INVALID_PARAM),
    }
}

pub(super) fn register_segments(
    device: Known<Device>,
    segments: Room<gni_mem_segment_t>,
    count: u32,
    Maybe(queue): Maybe<Queue>,
    flags: u32,
    virtual_descriptor: u32,
    handle: Out<gni_mem_handle_t>,
) -> Answer {
    if queue.as_ref().is_some_and(|queue| !Arc::ptr_eq(&queue.device, &device)) {
        return Err(GNI_RC_INVALID_PARAM);
    }
    if count as usize > MOST_SEGMENTS {
        return Err(GNI_RC_ERROR_RESOURCE);
    }
    let segments = segments.read(count as usize);
    let pieces: Vec<(u64, u64)> = segments.iter().map(|segment| (segment.address, segment.length)).collect();
    for &(address, length) in &pieces {
        if length == 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        is_mapped(address, length, flags)?;
    }
    let place = match (flags & GNI_MEM_USE_VMDH != 0, virtual_descriptor) {
        (false, NONE) => None,
        (true, place) => Some(place),
        (false, _) => return Err(GNI_RC_INVALID_PARAM),
    };
    let queue = queue.as_ref().map(|queue| &queue.cq);
    handle.set(device.nic().register_pieces(place, &pieces, queue, flags)?);
    witness::registered(pieces.iter().map(|piece| piece.1).sum());
    Ok(())
}

pub(super) fn deregister(device: Known<Device>, In(handle): In<gni_mem_handle_t>) -> Answer {
    device.nic().deregister(&handle)?;
    witness::deregistered();
    Ok(())
}

pub(super) fn set_apart(device: Known<Device>, count: u32) -> Answer {
    device.nic().set_apart(count)
}

pub(super) fn rebuild(In(handle): In<gni_mem_handle_t>, place: u32, out: Out<gni_mem_handle_t>) -> Answer {
    out.set(rebuilt(&handle, place)?);
    Ok(())
}

/// An empty handle asks for the first. The NIC is named by its handle alone: this one has no file that a process could open.
pub(super) fn next(
    device: Known<Device>,
    _descriptor: c_int,
    InOut(before, handle): InOut<gni_mem_handle_t>,
    address: Wanted<u64>,
    length: Wanted<u64>,
) -> Answer {
    let begun = (before.qword1, before.qword2) != (0, 0);
    let (next, first, len) = device.nic().registration_after(begun.then_some(&before))?;
    handle.set(next);
    address.set(first);
    length.set(len);
    Ok(())
}

pub(super) fn has_attribute(In(handle): In<gni_mem_handle_t>, attribute: u32, answer: Out<c_int>) -> Answer {
    let flag = match attribute {
        GNI_MEMHNDL_ATTR_READONLY => Flags::READ_ONLY,
        GNI_MEMHNDL_ATTR_VMDH => Flags::VMDH,
        GNI_MEMHNDL_ATTR_MRT => Flags::MRT,
        GNI_MEMHNDL_ATTR_GART => Flags::GART,
        GNI_MEMHNDL_ATTR_IOMMU => Flags::IOMMU,
        GNI_MEMHNDL_ATTR_PCI_IOMMU => Flags::PCI_IOMMU,
        GNI_MEMHNDL_ATTR_CLONE => Flags::CLONE,
        _ => return Err(GNI_RC_INVALID_PARAM),
    };
    let handle = Handle::open(&handle).map_err(|_| GNI_RC_INVALID_PARAM)?;
    answer.set(handle.flags.has(flag).into());
    Ok(())
}
