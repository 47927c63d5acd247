//! Mutation of orderings: every ordering has a name, and a checker build can relax one of them.
//!
//! Outside a checker build (`gasworks_loom` or `gasworks_tsan`) [`ord!`](crate::ord) is the ordering itself. In one,
//! `GASWORKS_MUTATION=name` chooses at run time which ordering is relaxed. `cargo xtask` collects the names from the
//! sources and requires the checks to fail under each.

use crate::atomic::Ordering;

/// Whether the ordering `name` is to be relaxed.
#[cfg(any(gasworks_loom, gasworks_tsan))]
pub fn active(name: &str) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("GASWORKS_MUTATION").ok()).as_deref() == Some(name)
}

/// Whether the ordering `name` is to be relaxed: never outside a checker build.
#[cfg(not(any(gasworks_loom, gasworks_tsan)))]
#[inline(always)]
pub const fn active(_name: &str) -> bool {
    false
}

/// The ordering of the site `name`: as written, or relaxed where that is the mutation.
#[inline(always)]
pub fn ordering(name: &str, as_written: Ordering) -> Ordering {
    if active(name) { Ordering::Relaxed } else { as_written }
}

/// Names an ordering: `ord!("inbox.publish", Release)`.
#[macro_export]
macro_rules! ord {
    ($site:literal, $order:ident) => {
        $crate::mutation::ordering($site, $crate::atomic::Ordering::$order)
    };
}
