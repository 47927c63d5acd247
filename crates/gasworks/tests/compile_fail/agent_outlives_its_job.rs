//! An agent does not outlive its job.
use gasworks::{Error, Job, Seq};

fn escape(job: Job<Seq>) -> Result<(), Error> {
    let agent = job.agent()?;
    drop(job);
    agent.poll()?;
    Ok(())
}

fn main() {}
