//! Tests of the engine over fake transports and a fake network. A whole job runs in one process ([`fake`]).

#[allow(unsafe_code)]
mod domains;
#[allow(unsafe_code)]
mod fake;
mod handlers;
mod messages;
mod observed;
#[allow(unsafe_code)]
mod prepared;
#[allow(unsafe_code)]
mod progress;
#[allow(unsafe_code)]
mod transfers;

/// Checks something in every thread mode.
macro_rules! in_every_mode {
    ($check:ident) => {
        $check::<gasworks_sync::Seq>();
        $check::<gasworks_sync::ParSync>();
        $check::<gasworks_sync::Par>();
    };
}
pub(crate) use in_every_mode;
