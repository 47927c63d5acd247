//! A job whose threads take turns is not shared between threads.
use gasworks::{Job, ParSync};

fn share(job: &Job<ParSync>) {
    std::thread::scope(|scope| {
        scope.spawn(|| job.rank());
    });
}

fn main() {}
