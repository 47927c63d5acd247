//! The clock: what a run would have taken on the machine that the software NIC plays.
//!
//! Each process writes down what it posts and which events it takes; what it computes in between is left out. The records of all
//! are played through a model of the LogGP kind, whose figures are in files, each with its source.
//!
//! - [`model`]: the figures, and the published points beside them.
//! - [`trace`]: the records.
//! - [`replay`]: their way through the model.
//! - [`report`]: what came of it.
//! - [`curve`]: what the model gives against size, beside the points.

pub mod curve;
pub mod model;
pub mod replay;
pub mod report;
pub mod trace;
