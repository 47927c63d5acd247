//! What the example programs share: a k-mer counter in parts, a random number generator and two small picture writers.
//!
//! The programs themselves are in `src/bin`. `hello`, `ring`, `dht`, `grid`, `gups`, `heat` and `sample-sort` are each a page
//! long; `kmer-count` is the one that does real work, and `kmer-serial` and `draw-reads` are its check and its input.
#![deny(missing_docs)]
#![deny(unsafe_code)]

pub mod draw;
pub mod kmer;
pub mod picture;
pub mod plot;
mod prefetch;
pub mod reads;
pub mod report;
pub mod rng;
pub mod serial;
pub mod spectrum;
pub mod table;

use std::process::ExitCode;

/// Ends a program: with success, or with its error as one line.
pub fn end(program: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
