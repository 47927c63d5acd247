//! A job of one thread is not shared between threads.
use gasworks::{Job, Seq};

fn share(job: &Job<Seq>) {
    std::thread::scope(|scope| {
        scope.spawn(|| job.rank());
    });
}

fn main() {}
