//! Thin safe wrappers over the operating system for Gasworks.
#![deny(missing_docs)]

pub mod settings;
