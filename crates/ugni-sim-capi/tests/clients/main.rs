//! The libraries as clients in C see them.

mod alps;
mod calls;
mod pmi;
mod program;
mod udreg;
mod ugni;
