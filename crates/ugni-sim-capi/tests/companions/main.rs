//! The libraries beside `libugni`, from C.

mod alps;
mod pmi;
mod program;
mod udreg;
