//! The libraries as clients in C see them.

mod alps;
mod pmi;
mod program;
mod udreg;
mod ugni;
