//! Endpoints that work by FIFOs: what all endpoints do, and what is in their files.

#[path = "../endpoint/main.rs"]
mod endpoint;
mod ends;
mod frames;
mod hostile;
mod peer;
