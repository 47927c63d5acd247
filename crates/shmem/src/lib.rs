//! Structures that live in shared memory.
#![deny(missing_docs)]
