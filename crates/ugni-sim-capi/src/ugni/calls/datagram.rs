//! Datagrams.

use gasworks_gni_sys::*;
use gasworks_ugni_sim::nic::Outcome;

use super::queue::{FOREVER, await_one};
use crate::strict;
use crate::ugni::object::{Device, End};
use crate::ugni::raw::{Answer, Bytes, Known, Out, Wanted};

/// No name.
const NONE: u64 = u64::MAX;

fn post_any(end: &End, (data, length): (Bytes, u16), answer: (Bytes, u16), id: Option<u64>) -> Answer {
    if u32::from(length) > GNI_DATAGRAM_MAXSIZE {
        return Err(GNI_RC_SIZE_ERROR);
    }
    let data = data.read(length.into())?;
    answer.0.has_room(answer.1.into())?;
    let mut place = end.answer.lock();
    end.endpoint.post_datagram(&data, id)?;
    *place = Some(answer);
    Ok(())
}

pub(super) fn post(end: Known<End>, data: Bytes, length: u16, answer: Bytes, room: u16) -> Answer {
    post_any(&end, (data, length), (answer, room), None)
}

pub(super) fn post_named(
    end: Known<End>,
    data: Bytes,
    length: u16,
    answer: Bytes,
    room: u16,
    id: u64,
) -> Answer {
    if id == NONE {
        return Err(GNI_RC_INVALID_PARAM);
    }
    post_any(&end, (data, length), (answer, room), Some(id))
}

/// What becomes of a datagram; the other's is where it was wished for, if it is there.
fn look(end: &End, id: Option<u64>) -> Result<Outcome, gni_return_t> {
    let place = end.answer.lock();
    let (answer, room) = place.ok_or(GNI_RC_NO_MATCH)?;
    let outcome = end.endpoint.test_datagram(id, room.into())?;
    answer.write(&outcome.data);
    strict::was_told();
    Ok(outcome)
}

fn tell(
    outcome: &Outcome,
    state: &Out<gni_post_state_t>,
    address: &Wanted<u32>,
    instance: &Wanted<u32>,
) -> Answer {
    state.set(outcome.state);
    if let Some((from, number)) = outcome.peer {
        address.set(from);
        instance.set(number);
    }
    Ok(())
}

pub(super) fn test(
    end: Known<End>,
    state: Out<gni_post_state_t>,
    address: Wanted<u32>,
    instance: Wanted<u32>,
) -> Answer {
    tell(&look(&end, None)?, &state, &address, &instance)
}

pub(super) fn test_named(
    end: Known<End>,
    id: u64,
    state: Out<gni_post_state_t>,
    address: Wanted<u32>,
    instance: Wanted<u32>,
) -> Answer {
    tell(&look(&end, Some(id))?, &state, &address, &instance)
}

/// In milliseconds; all bits set are no limit.
pub(super) fn limit(timeout: u32) -> u64 {
    if timeout == u32::MAX { FOREVER } else { timeout.into() }
}

fn wait_any(end: &End, id: Option<u64>, timeout: u32) -> Result<Outcome, gni_return_t> {
    if timeout == 0 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    await_one(limit(timeout), || match look(end, id) {
        Ok(outcome) if outcome.state == GNI_POST_PENDING => None,
        other => Some(other),
    })?
}

pub(super) fn wait(
    end: Known<End>,
    timeout: u32,
    state: Out<gni_post_state_t>,
    address: Wanted<u32>,
    instance: Wanted<u32>,
) -> Answer {
    tell(&wait_any(&end, None, timeout)?, &state, &address, &instance)
}

pub(super) fn wait_named(
    end: Known<End>,
    id: u64,
    timeout: u32,
    state: Out<gni_post_state_t>,
    address: Wanted<u32>,
    instance: Wanted<u32>,
) -> Answer {
    tell(&wait_any(&end, Some(id), timeout)?, &state, &address, &instance)
}

pub(super) fn cancel(end: Known<End>) -> Answer {
    end.endpoint.cancel_datagram(None)
}

pub(super) fn cancel_named(end: Known<End>, id: u64) -> Answer {
    end.endpoint.cancel_datagram(Some(id))
}

pub(super) fn probe(device: Known<Device>, address: Out<u32>, instance: Out<u32>) -> Answer {
    let peer = device.nic().probe_datagrams(false).and_then(|outcome| outcome.peer);
    let (from, number) = peer.ok_or(GNI_RC_NO_MATCH)?;
    address.set(from);
    instance.set(number);
    Ok(())
}

fn named(device: &Device) -> Option<u64> {
    device.nic().probe_datagrams(true)?.id
}

pub(super) fn probe_named(device: Known<Device>, id: Out<u64>) -> Answer {
    id.set(named(&device).ok_or(GNI_RC_NO_MATCH)?);
    Ok(())
}

pub(super) fn wait_for_any(device: Known<Device>, timeout: u32, id: Out<u64>) -> Answer {
    id.set(await_one(limit(timeout), || named(&device))?);
    Ok(())
}
