//! A view of a segment goes with its job.

use gasworks::{Job, Local, Seq};

fn kept(job: Job<Seq>) -> Local<'static, u64> {
    let agent = job.agent().unwrap();
    agent.local(job.segment().at(0, 1).unwrap(), 1).unwrap()
}

fn main() {
    let _ = kept;
}
