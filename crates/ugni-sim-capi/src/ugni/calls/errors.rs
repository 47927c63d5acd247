//! Subscriptions to errors.

use std::sync::Arc;
use std::time::Duration;

use gasworks_gni_sys::*;
use gasworks_ugni_sim::nic::Report;

use super::device;
use crate::ugni::object::{Device, Errors};
use crate::ugni::raw::{Answer, Given, Known, Out, Own, Room, Wanted};

/// What C sees of a report; the registers of the genuine chips are not there to be shown.
fn event(errors: &Errors, report: &Report) -> gni_error_event_t {
    gni_error_event_t {
        error_code: report.status as u16,
        error_category: report.category,
        ptag: errors.device.ptag,
        serial_number: report.serial,
        timestamp: report.at,
        info_mmrs: [0; 4],
    }
}

pub(super) fn subscribe(
    nic: Known<Device>,
    device: u32,
    mask: gni_error_mask_t,
    room: u32,
    out: Out<gni_err_handle_t>,
) -> Answer {
    device::is_there(device)?;
    let subscription = nic.nic().subscribe(mask, room);
    out.set(Errors::add(Arc::new(Errors { device: nic, subscription }))?);
    Ok(())
}

pub(super) fn release(Given(handle): Given<Errors>) -> Answer {
    let errors = Errors::find(handle)?;
    errors.subscription.release()?;
    Errors::remove(handle).map(drop)
}

pub(super) fn mask(errors: Known<Errors>, mask: Out<gni_error_mask_t>) -> Answer {
    mask.set(errors.subscription.mask());
    Ok(())
}

pub(super) fn set_mask(
    errors: Known<Errors>,
    mask: gni_error_mask_t,
    before: Wanted<gni_error_mask_t>,
) -> Answer {
    before.set(errors.subscription.set_mask(mask));
    Ok(())
}

pub(super) fn next(errors: Known<Errors>, out: Out<gni_error_event_t>) -> Answer {
    let report = errors.subscription.next().ok_or(GNI_RC_NOT_DONE)?;
    out.set(event(&errors, &report));
    Ok(())
}

pub(super) fn wait(
    errors: Known<Errors>,
    events: Room<gni_error_event_t>,
    room: u32,
    timeout: u32,
    count: Out<u32>,
) -> Answer {
    count.set(0);
    let linger = Duration::from_millis(timeout.into());
    let (reports, late) = errors.subscription.wait(room as usize, linger)?;
    let all: Vec<_> = reports.iter().map(|report| event(&errors, report)).collect();
    events.write(&all);
    count.set(all.len() as u32);
    if late { Err(GNI_RC_TIMEOUT) } else { Ok(()) }
}

/// Other jobs' errors are for whoever runs the machine, which is nobody here.
pub(super) fn set_tag(errors: Known<Errors>, ptag: u8) -> Answer {
    if ptag == errors.device.ptag { Ok(()) } else { Err(GNI_RC_PERMISSION_ERROR) }
}
