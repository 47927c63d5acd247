//! Registered memory.

use std::ffi::c_int;
use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::maps::{self, Access};
use gasworks_ugni_sim::handle::{Flags, Handle};

use crate::ugni::object::{Device, Queue};
use crate::ugni::raw::{Answer, In, Known, Maybe, Out};

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
    if queue.as_ref().is_some_and(|queue| !Arc::ptr_eq(&queue.device, &device))
        || virtual_descriptor != NONE
        || flags & GNI_MEM_USE_VMDH != 0
        || length == 0
    {
        return Err(GNI_RC_INVALID_PARAM);
    }
    match maps::access(address, length) {
        Access::Write => {}
        Access::Read if flags & GNI_MEM_READ_ONLY != 0 => {}
        Access::Read => return Err(GNI_RC_PERMISSION_ERROR),
        Access::None => return Err(GNI_RC_INVALID_PARAM),
    }
    handle.set(device.nic().register((address, length), queue.as_ref().map(|queue| &queue.cq), flags)?);
    Ok(())
}

pub(super) fn deregister(device: Known<Device>, In(handle): In<gni_mem_handle_t>) -> Answer {
    device.nic().deregister(&handle)
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
