//! `libudreg`: the cache of registrations. What its header could not say is decided in `include/udreg_pub.h`.

pub mod cache;
#[allow(unsafe_code)]
pub mod calls;
