//! The libraries as clients in C see them.

mod alps;
#[allow(unsafe_code)]
mod calls;
mod pmi;
mod program;
mod udreg;
mod ugni;
