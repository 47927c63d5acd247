//! Event-driven socket engine.
#![deny(missing_docs)]
