//! Collective engines, and what they deliver.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::reduction;

use crate::ugni::object::{Collective, Device, End, Queue};
use crate::ugni::patience::PATIENCE;
use crate::ugni::raw::{Answer, Control, Given, Known, Maybe, Out, Own, Room};
use crate::ugni::settings;

pub(super) fn create(device: Known<Device>, collective: Out<gni_ce_handle_t>) -> Answer {
    let engine = device.nic().engine()?;
    collective.set(Collective::add(Arc::new(Collective { device, engine }))?);
    Ok(())
}

pub(super) fn number(collective: Known<Collective>, number: Out<u32>) -> Answer {
    number.set(collective.engine.name());
    Ok(())
}

pub(super) fn destroy(Given(handle): Given<Collective>) -> Answer {
    Collective::remove(handle).map(drop)
}

pub(super) fn set_attributes(end: Known<End>, engine: u32, child: u32, kind: gni_ce_child_t) -> Answer {
    end.endpoint.set_attributes(engine, child, kind)
}

pub(super) fn configure(
    collective: Known<Collective>,
    children: Room<gni_ep_handle_t>,
    count: u32,
    Maybe(parent): Maybe<End>,
    Maybe(queue): Maybe<Queue>,
    modes: u32,
) -> Answer {
    // No more of the array is read than may be.
    if count > GNI_CE_MAX_CHILDREN {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let find = |handle: gni_ep_handle_t| End::find(handle);
    let ends = children.read(count as usize).into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let children: Vec<_> = ends.iter().map(|end| &end.endpoint).collect();
    let parent = parent.as_ref().map(|end| &end.endpoint);
    collective.engine.configure(&children, parent, queue.as_ref().map(|queue| &queue.cq), modes)
}

/// The length says nothing on Aries.
pub(super) fn check(Control(control): Control, _length: u32) -> Answer {
    if settings::chip() != Some(Chip::Aries) {
        return Err(GNI_RC_ILLEGAL_OP);
    }
    if !reduction::is_whole(control) {
        return Err(GNI_RC_NOT_DONE);
    }
    PATIENCE.found();
    if status(control) == 0 && exceptions(control) == 0 { Ok(()) } else { Err(GNI_RC_TRANSACTION_ERROR) }
}

pub(super) fn status(control: u64) -> u64 {
    reduction::status(control)
}

pub(super) fn is_ok(control: u64) -> u64 {
    (reduction::is_whole(control) && status(control) == Status::Ok as u64).into()
}

pub(super) fn exceptions(control: u64) -> u64 {
    reduction::exceptions(control)
}

pub(super) fn name(control: u64) -> u64 {
    reduction::name(control)
}
