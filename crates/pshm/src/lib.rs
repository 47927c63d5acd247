//! Shared-memory transport between the ranks of a host.
#![deny(missing_docs)]
