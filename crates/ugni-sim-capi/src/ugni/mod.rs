//! `libugni`, declared by `include/gni_pub.h`.
//!
//! - `settings`: which chip it is, and how kind.
//! - `table`: objects, by handles that are looked up and never followed.
//! - `object`: what handles stand for.
//! - `raw`: what C programs pass: the only place that touches it.
//! - `calls`: the functions, in safe code but for their declarations.

#[allow(unsafe_code)]
mod calls;
mod object;
#[allow(unsafe_code)]
mod raw;
mod settings;
mod table;
