//! Builds, tests and checks Gasworks.
fn main() {}
