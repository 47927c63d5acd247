//! Tests of the transport with threads as ranks and real memory files.

mod corrupt;
mod fake;
mod growth;
mod messages;
mod opening;
#[allow(unsafe_code)]
mod regions;
mod seals;
mod stress;
mod teams;
