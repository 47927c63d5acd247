//! Planted bugs: every ordering and some branches have a name, and a checker build can spoil one of them.
//!
//! Outside a checker build (`gasworks_loom`, `gasworks_faults` or `gasworks_tsan`) the macros are the ordering
//! itself and `false`. In one, the mutation is chosen at run time by `GASWORKS_MUTATION=name`. `cargo xtask`
//! collects the names from the sources and requires the checks to fail under each.

use crate::atomic::Ordering;

/// Whether the planted bug `name` is switched on.
#[cfg(any(gasworks_loom, gasworks_faults, gasworks_tsan))]
pub fn active(name: &str) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("GASWORKS_MUTATION").ok()).as_deref() == Some(name)
}

/// Whether the planted bug `name` is switched on: never outside a checker build.
#[cfg(not(any(gasworks_loom, gasworks_faults, gasworks_tsan)))]
#[inline(always)]
pub const fn active(_name: &str) -> bool {
    false
}

/// The ordering of the site `name`: as written, or relaxed where that is the planted bug.
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

/// Names a bug that is not there: `if planted!("inbox.forget_wake") { ... }`.
#[macro_export]
macro_rules! planted {
    ($site:literal) => {
        $crate::mutation::active($site)
    };
}
