//! The socket engine as its users meet it.
#![cfg(not(gasworks_loom))]
#![allow(clippy::disallowed_methods)] // a case that runs inside a namespace is told so through the environment

mod book;
mod common;
#[allow(unsafe_code)]
mod events;
#[allow(unsafe_code)]
mod faults;
mod namespaces;
mod states;
mod threads;
