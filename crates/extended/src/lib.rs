//! One-sided put and get, events and barriers.
#![deny(missing_docs)]
