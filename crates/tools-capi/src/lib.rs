//! `libgasnet_tools`: what `include/gasnet_tools.h` declares and does not do inline.
//!
//! The library has no mode of its own: each of its functions may be called by several threads. The modes of a C program are
//! told apart by [`library`]'s symbols, of which an installed library keeps one.
//!
//! A panic inside a call ends the process: it cannot leave an `extern "C"` function.
#![deny(missing_docs)]

#[allow(unsafe_code)]
pub mod backtrace;
#[allow(unsafe_code)]
pub mod bytes;
#[allow(unsafe_code)]
pub mod crash;
#[allow(unsafe_code)]
pub mod diagnostics;
#[allow(unsafe_code)]
pub mod environ;
#[allow(unsafe_code)]
pub mod fatal;
#[allow(unsafe_code)]
pub mod formats;
#[allow(unsafe_code)]
pub mod freeze;
#[allow(unsafe_code)]
pub mod host;
#[allow(unsafe_code)]
pub mod library;
#[allow(unsafe_code)]
pub mod machine;
mod numbers;
#[allow(unsafe_code)]
pub mod process;
pub mod settings;
#[allow(unsafe_code)]
pub mod signals;
#[allow(unsafe_code)]
pub mod start;
#[allow(unsafe_code)]
mod text;
#[allow(unsafe_code)]
pub mod timer;
#[allow(unsafe_code)]
mod variable;

pub use settings::SETTINGS;
