//! A region, and a view of this rank's part of it, go with the job.

use gasworks::{Job, Local, Region, Seq};

fn kept(job: Job<Seq>) -> Region<'static, Seq> {
    job.create_region(8).unwrap()
}

fn viewed(job: Job<Seq>) -> Local<'static, u64> {
    let region = job.create_region(8).unwrap();
    job.agent().unwrap().local(region.at(0, 0, 1).unwrap(), 1).unwrap()
}

fn main() {
    let _ = (kept, viewed);
}
