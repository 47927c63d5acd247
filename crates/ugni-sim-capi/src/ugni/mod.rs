//! `libugni`, declared by `include/gni_pub.h`.
//!
//! - `settings`: which chip it is, and how kind.
//! - `table`: objects, by handles that are looked up and never followed.
//! - `object`: what handles stand for.
//! - `patience`: what becomes of clients that look in vain.
//! - `waiting`: calls that wait, and threads that are ended in them.
//! - `raw`: what C programs pass: the only place that touches it.
//! - `calls`: the functions, in safe code but for their declarations.

#[allow(unsafe_code)]
mod calls;
mod object;
mod patience;
#[allow(unsafe_code)]
mod raw;
mod settings;
mod table;
#[allow(unsafe_code)]
mod waiting;

use gasworks_gni_sys::{CONSTANTS, gni_return_t};

pub(crate) use settings::{always_sock, is_due};

/// What was asked of each function.
pub(crate) fn all_calls() -> &'static [crate::witness::Calls] {
    &calls::CALLS
}

/// Shows the NICs that this process is attached to.
pub(crate) fn each_nic(mut show: impl FnMut(&gasworks_ugni_sim::nic::Nic)) {
    object::DEVICES.each(|device| show(device.nic()));
}

/// Sees what this process leaves behind.
pub(crate) fn check_all() {
    object::QUEUES.each(|queue| queue.cq.check_requests());
    object::DEVICES.each(|device| device.nic().check_registrations());
}

fn named(value: i64, start: &str) -> Option<&'static str> {
    let found = CONSTANTS.iter().find(|(name, other)| *other == value && name.starts_with(start));
    found.map(|(name, _)| *name)
}

/// The names of the codes, in the order of their numbers.
pub(crate) fn code_names() -> impl Iterator<Item = &'static str> {
    (0..).map_while(|code| named(code, "GNI_RC_"))
}

/// The code of this name, without what all begin with.
fn code_named(name: &str) -> Option<gni_return_t> {
    (0..)
        .zip(code_names())
        .find(|(_, other)| other.strip_prefix("GNI_RC_") == Some(name))
        .map(|(code, _)| code)
}

/// What a statistic is called.
pub(crate) fn statistic_name(which: u32) -> &'static str {
    named(which.into(), "GNI_STAT_").unwrap_or("?")
}

/// What a type of post is called.
pub(crate) fn post_name(kind: u32) -> &'static str {
    const TYPES: [&str; 4] = ["GNI_POST_RDMA", "GNI_POST_FMA", "GNI_POST_AMO", "GNI_POST_C"];
    TYPES.iter().find_map(|start| named(kind.into(), start)).unwrap_or("?")
}
