//! A rank of a job that is there only to be started, for any launcher: `cargo xtask bench --launchers` measures
//! launchers by it.
//!
//! - `wireup fence` fences once. The launcher does that.
//! - `wireup ask BYTES`: each rank puts so many bytes, and asks for what each other rank has put. The launcher does all of it.
//! - `wireup exchange BYTES`: the same as a job of this library does it, the ranks of a host among themselves.
//!
//! Rank 0 prints what was done, how many ranks did it, and the nanoseconds from when all had come.

use std::error::Error;
use std::time::Instant;

use gasworks_bootstrap::{Bootstrap, Launched, Start, connect};

/// What `rank` gives: bytes that tell by whom they are and where they belong.
fn card(rank: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u32).wrapping_mul(31).wrapping_add(rank) as u8).collect()
}

/// A rank of the launcher's and of nobody else's: it meets no other.
fn plain() -> Result<Launched, Box<dyn Error>> {
    let start = Start::from_settings()?.ok_or("no launcher has started this process")?;
    Ok(Launched::join(start)?)
}

fn ask(job: &Launched, bytes: usize) -> Result<(), Box<dyn Error>> {
    job.put("card", &card(job.rank(), bytes))?;
    job.fence()?;
    for rank in 0..job.size() {
        check(rank, bytes, &job.get(rank, "card")?)?;
    }
    Ok(())
}

fn exchange(job: &dyn Bootstrap, bytes: usize) -> Result<(), Box<dyn Error>> {
    let all = job.exchange("card", &card(job.rank(), bytes))?;
    (0..).zip(all.iter()).try_for_each(|(rank, found)| check(rank, bytes, found))
}

fn check(rank: u32, bytes: usize, found: &[u8]) -> Result<(), Box<dyn Error>> {
    match found == card(rank, bytes) {
        true => Ok(()),
        false => Err(format!("what rank {rank} gave came otherwise").into()),
    }
}

/// Does it from when all ranks are there, says how long that took, and leaves.
fn timed(
    what: &str,
    job: &dyn Bootstrap,
    act: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    act()?;
    let took = begun.elapsed();
    if job.rank() == 0 {
        println!("{what} {} {}", job.size(), took.as_nanos());
    }
    Ok(job.finalize()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [_, "fence"] => {
            let job = plain()?;
            timed("fence", &job, || Ok(job.fence()?))
        }
        [_, "ask", bytes] => {
            let (job, bytes) = (plain()?, bytes.parse()?);
            job.fence()?;
            timed("ask", &job, || ask(&job, bytes))
        }
        [_, "exchange", bytes] => {
            let (job, bytes) = (connect()?, bytes.parse()?);
            timed("exchange", &*job, || exchange(&*job, bytes))
        }
        _ => Err("usage: wireup fence | wireup ask BYTES | wireup exchange BYTES".into()),
    }
}
