//! An event does not outlive its job.
use gasworks::{Error, GlobalPtr, Job, Seq};

fn escape(job: Job<Seq>, place: GlobalPtr<u64>) -> Result<(), Error> {
    let event = job.agent()?.get_owned(place, 8)?;
    drop(job);
    drop(event);
    Ok(())
}

fn main() {}
