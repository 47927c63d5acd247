//! Communication domains, and their attachment to NICs.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_ugni_sim::near::{AttachError, Name, attach as attach_nic};
use gasworks_ugni_sim::post::Rules;
use parking_lot::Mutex;

use super::device;
use crate::pmi::state::{address as own_address, wire};
use crate::ugni::object::{CHANNELS, COLLECTIVES, DEVICES, Device, Domain, ENDS, ERRORS, MESSAGES, QUEUES};
use crate::ugni::raw::{self, Answer, Given, Known, Out, Own, Wanted};
use crate::ugni::settings;
use crate::{strict, trace};

pub(super) fn create(
    instance: u32,
    ptag: u8,
    cookie: u32,
    modes: u32,
    domain: Out<gni_cdm_handle_t>,
) -> Answer {
    let both = |pair| modes & pair == pair;
    if both(GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED)
        || both(GNI_CDM_MODE_MDD_DEDICATED | GNI_CDM_MODE_MDD_SHARED)
    {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let device = Mutex::default();
    domain.set(Domain::add(Arc::new(Domain { instance, ptag, cookie, modes, device }))?);
    Ok(())
}

/// With all that hangs on it.
pub(super) fn destroy(Given(handle): Given<Domain>) -> Answer {
    let domain = Domain::remove(handle)?;
    if let Some(device) = domain.device.lock().take() {
        let own = |other: &Arc<Device>| Arc::ptr_eq(other, &device);
        drop(MESSAGES.remove_all(|messages| own(&messages.device)));
        if strict::is_on() {
            QUEUES.each(|queue| {
                if own(&queue.device) {
                    queue.cq.check_requests()
                }
            });
            device.nic().check_registrations();
        }
        drop(COLLECTIVES.remove_all(|collective| own(&collective.device)));
        drop(ENDS.remove_all(|end| own(&end.device)));
        drop(QUEUES.remove_all(|queue| own(&queue.device)));
        let errors = ERRORS.remove_all(|errors| own(&errors.device));
        errors.iter().for_each(|errors| errors.subscription.close());
        drop(CHANNELS.remove_all(|chan| own(&chan.device)));
        drop(DEVICES.remove_all(own));
    }
    trace::flush();
    Ok(())
}

pub(super) fn attach(
    domain: Known<Domain>,
    device: u32,
    address: Wanted<u32>,
    nic: Out<gni_nic_handle_t>,
) -> Answer {
    device::is_there(device)?;
    let mut attached = domain.device.lock();
    if attached.is_some() {
        return Err(GNI_RC_INVALID_STATE);
    }
    let Domain { instance, cookie, ptag, modes, .. } = *domain;
    let chip = settings::chip().ok_or(GNI_RC_INVALID_PARAM)?;
    let mood = settings::mood().ok_or(GNI_RC_INVALID_PARAM)?;
    let faults = Arc::clone(settings::faults().ok_or(GNI_RC_INVALID_PARAM)?);
    if u64::from(instance) >> chip.instance_bits() != 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let ptag = device::found(chip, ptag, cookie)?;
    device::may_use(ptag, cookie)?;
    let failed = |error: &dyn std::fmt::Display| {
        say(&format!("libugni: {error}"));
        GNI_RC_ERROR_RESOURCE
    };
    let own = own_address().map_err(|error| failed(&error))?;
    let memory = raw::memory().map_err(|error| failed(&error))?;
    let name = Name { cookie, ptag, address: own, instance };
    let rules = Rules { chip, modes };
    let new =
        attach_nic(name, rules, Arc::new(memory), (mood, faults), &wire()).map_err(|error| match error {
            // Cookie, tag and instance are to be unique on a host.
            AttachError::Taken => GNI_RC_INVALID_PARAM,
            AttachError::NoDescriptor => GNI_RC_ERROR_RESOURCE,
            AttachError::Os(error) => failed(&error),
        })?;
    strict::watch(new.nic());
    trace::attached((own, instance));
    let new = Arc::new(Device { ptag, cookie, attached: new });
    nic.set(Device::add(Arc::clone(&new))?);
    address.set(own);
    *attached = Some(new);
    Ok(())
}
