//! `gasrun` starts the ranks of a job.
fn main() {}
