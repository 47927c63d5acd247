//! The pool under loom: all interleavings of two or three threads, and all that the orderings admit.
#![cfg(gasworks_loom)]

use gasworks_rdma::pool::Pool;
use gasworks_sync::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Things {
    pool: Pool,
    /// Whose number is out may use its own.
    things: [UnsafeCell<u32>; 3],
}

// SAFETY: that nobody uses a thing while another thread does is what the models check.
unsafe impl Sync for Things {}

impl Things {
    fn of(count: u32) -> Arc<Self> {
        Arc::new(Self { pool: Pool::new(count), things: std::array::from_fn(|_| UnsafeCell::new(0)) })
    }

    fn take(&self) -> Option<u32> {
        let number = self.pool.take()?;
        // SAFETY: it was taken.
        self.things[number as usize].with_mut(|thing| unsafe { *thing += 1 });
        Some(number)
    }

    fn give(&self, number: u32) {
        // SAFETY: it is still out.
        self.things[number as usize].with_mut(|thing| unsafe { *thing += 1 });
        self.pool.give(number);
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

#[test]
fn pool_gives_each_number_to_one() {
    model(|| {
        let things = Things::of(2);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let things = Arc::clone(&things);
                thread::spawn(move || things.take().into_iter().for_each(|number| things.give(number)))
            })
            .collect();
        things.take().into_iter().for_each(|number| things.give(number));
        others.into_iter().for_each(|other| other.join().expect("it ends well"));
        let all = [things.take(), things.take(), things.take()];
        assert!(all[0] != all[1] && all[0].is_some() && all[1].is_some() && all[2].is_none(), "{all:?}");
    });
}

/// Somebody looks at the topmost; meanwhile others take it, and one below, and give the topmost back.
#[test]
fn pool_is_not_mistaken_for_what_it_was() {
    model(|| {
        let things = Things::of(3);
        let other = {
            let things = Arc::clone(&things);
            thread::spawn(move || {
                let (first, second) = (things.take(), things.take());
                first.into_iter().for_each(|number| things.give(number));
                second
            })
        };
        let mine = [things.take(), things.take()];
        let theirs = other.join().expect("it ends well");
        let mut out: Vec<u32> = mine.into_iter().flatten().chain(theirs).collect();
        out.sort_unstable();
        let before = out.len();
        out.dedup();
        assert_eq!(out.len(), before, "{mine:?} and {theirs:?}");
    });
}
