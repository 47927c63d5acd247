//! Communication for PGAS programs: active messages, one-sided put and get.
#![deny(missing_docs)]
