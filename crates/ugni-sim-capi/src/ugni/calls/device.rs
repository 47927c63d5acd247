//! What is known of this host's NIC without a domain.

use std::ffi::{c_char, c_int};

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_os::settings::Setting;
use gasworks_ugni_sim::chip::Chip;

use crate::pmi::state::address as own_address;
use crate::ugni::object::DEVICES;
use crate::ugni::raw::{Answer, Out, Room, Wanted};
use crate::ugni::settings;

/// The NIC: a host has one.
const DEVICE: u32 = 0;
/// Whichever is near.
const NEAREST: u32 = u32::MAX;

/// Whether there is such a device.
///
/// # Errors
/// `GNI_RC_NO_MATCH`: there is not.
pub(super) fn is_there(device: u32) -> Answer {
    if [DEVICE, NEAREST].contains(&device) { Ok(()) } else { Err(GNI_RC_NO_MATCH) }
}

pub(super) fn address(device: u32, address: Out<u32>, processor: Wanted<u32>) -> Answer {
    is_there(device)?;
    address.set(own_address().map_err(|error| {
        say(&format!("libugni: {error}"));
        GNI_RC_NO_MATCH
    })?);
    processor.set(0);
    Ok(())
}

pub(super) fn count(count: Out<c_int>) -> Answer {
    count.set(1);
    Ok(())
}

pub(super) fn list(length: c_int, devices: Room<c_int>) -> Answer {
    if length < 1 {
        return Err(GNI_RC_INVALID_PARAM);
    }
    devices.write(&[DEVICE as c_int]);
    Ok(())
}

pub(super) fn version(version: Out<u32>) -> Answer {
    version.set(GNI_VERSION);
    Ok(())
}

pub(super) fn version_information(information: Out<gni_version_info_t>) -> Answer {
    let build = |text: &str, room: &mut [c_char]| {
        let end = room.len() - 1;
        room[..end].iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
    };
    let mut all = gni_version_info_t::zeroed();
    (all.ugni_version, all.kgni_version) = (GNI_VERSION, GNI_VERSION);
    let text = concat!("Gasworks ", env!("CARGO_PKG_VERSION"));
    build(text, &mut all.ugni_build_string);
    build(text, &mut all.kgni_build_string);
    information.set(all);
    Ok(())
}

pub(super) fn kind(kind: Out<gni_nic_device_t>) -> Answer {
    kind.set(settings::chip().ok_or(GNI_RC_ERROR_RESOURCE)?.device());
    Ok(())
}

/// The tags and cookies of this process's job, where a launcher has said them.
fn given() -> Vec<(u8, u32)> {
    let numbers = |setting: &Setting| -> Vec<u32> {
        setting.text().split(':').filter_map(|word| word.parse().ok()).collect()
    };
    let (tags, cookies) = (numbers(&settings::TAGS), numbers(&settings::COOKIES));
    tags.into_iter()
        .zip(cookies)
        .filter_map(|(tag, cookie)| Some((u8::try_from(tag).ok()?, cookie)))
        .collect()
}

/// Whether this process may use a tag with a cookie.
///
/// # Errors
/// `GNI_RC_PERMISSION_ERROR`: the tag is the job's, and goes with another cookie.
pub(super) fn may_use(ptag: u8, cookie: u32) -> Answer {
    let given = given();
    let wrong = given.iter().any(|(tag, _)| *tag == ptag) && !given.contains(&(ptag, cookie));
    if wrong { Err(GNI_RC_PERMISSION_ERROR) } else { Ok(()) }
}

/// The tag of a domain: where that leaves it to the driver, which Aries alone does, the one that the launcher has said for the
/// cookie, or one that follows from the cookie and goes with no other, so that the processes of a job find the same.
///
/// # Errors
/// `GNI_RC_INVALID_PARAM`: the driver of this chip finds none.
pub(super) fn found(chip: Chip, ptag: u8, cookie: u32) -> Result<u8, gni_return_t> {
    const TAGS: u32 = GNI_PTAG_USER_END - GNI_PTAG_USER_START + 1;
    if ptag != GNI_FIND_ALLOC_PTAG {
        return Ok(ptag);
    }
    if chip == Chip::Gemini {
        return Err(GNI_RC_INVALID_PARAM);
    }
    let given = given();
    let said = given.iter().find(|(_, other)| *other == cookie).map(|(tag, _)| *tag);
    let any = (0..TAGS).map(|at| GNI_PTAG_USER_START as u8 + (cookie.wrapping_add(at) % TAGS) as u8);
    let mut free = any.filter(|tag| given.iter().all(|(other, _)| other != tag));
    said.or_else(|| free.next()).ok_or(GNI_RC_ERROR_RESOURCE)
}

pub(super) fn ptag(device: u32, cookie: u32, ptag: Out<u8>) -> Answer {
    is_there(device)?;
    let mut found = given().into_iter().find(|(_, other)| *other == cookie).map(|(tag, _)| tag);
    // Those that were found for domains of this process.
    DEVICES.each(|device| found = found.or((device.cookie == cookie).then_some(device.ptag)));
    ptag.set(found.ok_or(GNI_RC_NO_MATCH)?);
    Ok(())
}
