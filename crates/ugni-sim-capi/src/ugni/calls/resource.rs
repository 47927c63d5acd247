//! What a device has, and what a job may do with it.
//!
//! Behind this NIC is no driver that would keep anything for all processes of a host. So what is used of a resource is what this
//! process uses. And nobody configures jobs, node translation or balanced
//! injection, root no more than others: who asks is told what a user of the genuine library is told, once what it asks makes
//! sense. Nothing is translated or throttled, and that is what is read.

use std::ffi::{CStr, c_char, c_int};

use gasworks_gni_sys::*;
use gasworks_ugni_sim::chip::Chip;

use super::device;
use crate::ugni::object::Device;
use crate::ugni::object::{DEVICES, QUEUES};
use crate::ugni::raw::{Answer, In, Known, Out, Wanted};
use crate::ugni::settings;

/// The names of the resources of a device, from `GNI_DEV_RES_FIRST` on.
const OF_DEVICE: [&CStr; 9] = [c"FIRST", c"MDD", c"MRT", c"CQ", c"FMA", c"CE", c"DLA", c"TCR", c"DVA"];
/// Those of a job, from `GNI_JOB_RES_FIRST` on.
const OF_JOB: [&CStr; 14] = [
    c"FIRST",
    c"MDD",
    c"MRT",
    c"IOMMU",
    c"GART",
    c"CQ",
    c"FMA",
    c"RDMA",
    c"CE",
    c"DLA",
    c"SFMA",
    c"DIRECT",
    c"PCI_IOMMU",
    c"NONVMDH",
];

/// The name of a resource; that of the first place is none's.
fn name(names: &[&'static CStr], resource: u32) -> Option<&'static CStr> {
    names.get(resource as usize).copied().filter(|_| resource != 0)
}

pub(super) fn is_of_device(resource: gni_dev_res_t) -> u32 {
    name(&OF_DEVICE, resource).is_some().into()
}

pub(super) fn device_text(resource: gni_dev_res_t) -> *const c_char {
    name(&OF_DEVICE, resource).unwrap_or(c"UNKNOWN").as_ptr()
}

pub(super) fn is_of_job(resource: gni_job_res_t) -> u32 {
    name(&OF_JOB, resource).is_some().into()
}

pub(super) fn job_text(resource: gni_job_res_t) -> *const c_char {
    name(&OF_JOB, resource).unwrap_or(c"UNKNOWN").as_ptr()
}

/// What is counted of the resources.
#[derive(Clone, Copy)]
enum Counted {
    /// Memory descriptors: one for each registration that has its own, and one for all that share.
    Descriptors,
    Registrations,
    Queues,
    Fma,
}

impl Counted {
    fn total(self, chip: Chip) -> u64 {
        match self {
            Self::Descriptors | Self::Registrations => chip.descriptors() as u64,
            Self::Queues => chip.queues() as u64,
            Self::Fma => chip.fma_descriptors().into(),
        }
    }

    /// What this process uses of it, or the part of it that has a tag.
    fn used(self, ptag: Option<u8>) -> u64 {
        let (mut used, of) = (0, |device: &Device| ptag.is_none_or(|ptag| device.ptag == ptag));
        match self {
            Self::Descriptors | Self::Registrations => DEVICES.each(|device| {
                let (all, shared) = if of(device) { device.nic().registrations() } else { (0, 0) };
                let counted =
                    if matches!(self, Self::Descriptors) { all - shared + shared.min(1) } else { all };
                used += counted as u64;
            }),
            Self::Queues => QUEUES.each(|queue| used += u64::from(of(&queue.device))),
            Self::Fma => {
                DEVICES.each(|device| used += u64::from(of(device) && device.attached.has_fma_descriptor()));
            }
        }
        used
    }
}

/// # Errors
/// `GNI_RC_INVALID_PARAM`: there is no such device.
fn known(device: u32) -> Answer {
    device::is_there(device).map_err(|_| GNI_RC_INVALID_PARAM)
}

/// `GNI_RC_ERROR_RESOURCE`: this NIC has no such thing, or does not count it.
pub(super) fn of_device(device: u32, resource: gni_dev_res_t, out: Out<gni_dev_res_desc_t>) -> Answer {
    known(device)?;
    let counted = match resource {
        GNI_DEV_RES_MDD => Counted::Descriptors,
        GNI_DEV_RES_MRT => Counted::Registrations,
        GNI_DEV_RES_CQ => Counted::Queues,
        GNI_DEV_RES_FMA => Counted::Fma,
        _ if is_of_device(resource) == 1 => return Err(GNI_RC_ERROR_RESOURCE),
        _ => return Err(GNI_RC_INVALID_PARAM),
    };
    let total = counted.total(settings::chip().ok_or(GNI_RC_ERROR_RESOURCE)?);
    let used = counted.used(None);
    out.set(gni_dev_res_desc_t { available: total.saturating_sub(used), reserved: 0, held: 0, total });
    Ok(())
}

/// # Errors
/// `GNI_RC_INVALID_PARAM`: no job has this tag, or there is no such resource.
fn of_some_job(ptag: u8, resource: gni_job_res_t) -> Answer {
    if ptag == GNI_FIND_ALLOC_PTAG || ptag == 0 || is_of_job(resource) == 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    Ok(())
}

/// `GNI_RC_ERROR_RESOURCE`: as [`of_device`]. No job has less than the device.
pub(super) fn of_job(device: u32, ptag: u8, resource: gni_job_res_t, out: Out<gni_job_res_desc_t>) -> Answer {
    known(device)?;
    of_some_job(ptag, resource)?;
    let counted = match resource {
        GNI_JOB_RES_MDD => Counted::Descriptors,
        GNI_JOB_RES_MRT => Counted::Registrations,
        GNI_JOB_RES_CQ => Counted::Queues,
        GNI_JOB_RES_FMA => Counted::Fma,
        _ => return Err(GNI_RC_ERROR_RESOURCE),
    };
    let limit = counted.total(settings::chip().ok_or(GNI_RC_ERROR_RESOURCE)?);
    out.set(gni_job_res_desc_t { used: counted.used(Some(ptag)), limit });
    Ok(())
}

pub(super) fn set_of_job(device: u32, ptag: u8, resource: gni_job_res_t, _value: u64) -> Answer {
    known(device)?;
    of_some_job(ptag, resource)?;
    Err(GNI_RC_PERMISSION_ERROR)
}

pub(super) fn suspend(device: u32, job: u64, ptag: u8, cookie: u32, _timeout: u32) -> Answer {
    resume(device, job, ptag, cookie)
}

pub(super) fn resume(device: u32, _job: u64, ptag: u8, _cookie: u32) -> Answer {
    known(device)?;
    of_some_job(ptag, GNI_JOB_RES_MDD)?;
    Err(GNI_RC_PERMISSION_ERROR)
}

pub(super) fn configure_translation(
    device: c_int,
    _table: In<gni_ntt_descriptor_t>,
    _base: Wanted<u32>,
) -> Answer {
    device::is_there(device as u32)?;
    Err(GNI_RC_PERMISSION_ERROR)
}

pub(super) fn configure_job(
    device: u32,
    _job: u64,
    ptag: u8,
    _cookie: u32,
    _limits: In<gni_job_limits_t>,
) -> Answer {
    device::is_there(device)?;
    of_some_job(ptag, GNI_JOB_RES_MDD)?;
    Err(GNI_RC_PERMISSION_ERROR)
}

pub(super) fn configure_both(
    device: c_int,
    job: u64,
    ptag: u8,
    cookie: u32,
    limits: In<gni_job_limits_t>,
    _table: In<gni_ntt_descriptor_t>,
    _base: Wanted<u32>,
) -> Answer {
    configure_job(device as u32, job, ptag, cookie, limits)
}

/// Where nothing is translated each NIC stands for itself.
pub(super) fn granularity(device: u32, out: Out<u32>) -> Answer {
    known(device)?;
    out.set(1);
    Ok(())
}

pub(super) fn set_injection(device: u32, bandwidth: u16, other: u16, modes: u16) -> Answer {
    const ALL: u16 = GNI_BI_FLAG_APPLY_NOW
        | GNI_BI_FLAG_APPLY_AFTER_THROTTLE
        | GNI_BI_FLAG_USE_DEFAULT_SETTINGS
        | GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES;
    known(device)?;
    let has = |flag| modes & flag != 0;
    let entries = has(GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES);
    let most = if entries { GNI_BI_INJECT_BW_ORB_MAX } else { GNI_BI_INJECT_BW_MAX };
    let both = has(GNI_BI_FLAG_APPLY_NOW) && has(GNI_BI_FLAG_APPLY_AFTER_THROTTLE);
    if bandwidth.max(other) > most || has(!ALL) || both {
        return Err(GNI_RC_INVALID_PARAM);
    }
    Err(GNI_RC_PERMISSION_ERROR)
}

/// All of the bandwidth is there for all.
pub(super) fn injection(device: u32, out: Out<gni_bi_desc_t>) -> Answer {
    known(device)?;
    let all = GNI_BI_INJECT_BW_MAX;
    out.set(gni_bi_desc_t {
        current_bw: all,
        current_aot_bw: all,
        flags: GNI_BI_FLAG_USE_DEFAULT_SETTINGS,
        sys_def_bw: all,
        sys_def_aot_bw: all,
        ..gni_bi_desc_t::zeroed()
    });
    Ok(())
}

/// No change is ever on its way.
pub(super) fn await_injection(device: u32, _timeout: u32) -> Answer {
    known(device)
}

pub(super) fn statistic(device: Known<Device>, which: gni_statistic_t, value: Out<u32>) -> Answer {
    value.set(device.nic().statistic(which)?);
    Ok(())
}

pub(super) fn forget_statistic(device: Known<Device>, which: gni_statistic_t) -> Answer {
    device.nic().forget_statistic(which)
}
