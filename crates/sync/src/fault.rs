//! Places at which a test kills the process, makes it panic, or abandons a structure half-way.
//!
//! [`kill_point!`](crate::kill_point) does nothing in a build without debug assertions. In a build with them a process
//! dies by `SIGKILL` when it passes the point that `GASWORKS_KILL_AT=name@rank` names (the rank is read from `PMI_RANK`,
//! absent means 0; `name@rank#n` waits for the n-th passage, and `start*@rank#n` for that of any point whose name begins so), or panics where `GASWORKS_PANIC_AT` names it, and a thread
//! whose test has installed a hook calls that instead.
//!
//! # Invariants
//! - fault.1: `raise(SIGKILL)` is given no pointer and does not return.

/// Names a place at which a process may be killed: `kill_point!("pshm.attach.sent")`.
#[macro_export]
macro_rules! kill_point {
    ($name:literal) => {
        $crate::fault::point($name)
    };
}

#[cfg(debug_assertions)]
mod live {
    use std::cell::RefCell;
    use std::sync::{Mutex, OnceLock};

    type Hook = Box<dyn FnMut(&'static str)>;
    thread_local! { static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) }; }
    /// How often this process's target was passed.
    static PASSED: Mutex<u64> = Mutex::new(0);

    struct Target {
        name: String,
        nth: u64,
        panics: bool,
    }

    impl Target {
        fn is_named(&self, name: &str) -> bool {
            self.name.strip_suffix('*').map_or(self.name == name, |start| name.starts_with(start))
        }
    }

    fn target() -> Option<&'static Target> {
        static TARGET: OnceLock<Option<Target>> = OnceLock::new();
        TARGET
            .get_or_init(|| {
                let of = |variable, panics| Some((std::env::var(variable).ok()?, panics));
                let (spec, panics) =
                    of("GASWORKS_KILL_AT", false).or_else(|| of("GASWORKS_PANIC_AT", true))?;
                let (name, rest) = spec.split_once('@')?;
                let (rank, nth) = rest.split_once('#').unwrap_or((rest, "1"));
                let mine = std::env::var("PMI_RANK").unwrap_or_else(|_| "0".into());
                (mine == rank).then(|| Target { name: name.into(), nth: nth.parse().unwrap_or(1), panics })
            })
            .as_ref()
    }

    /// Passes the point `name`.
    pub fn point(name: &'static str) {
        // A thread that ends, or a process in its exit handlers, has no hook any more.
        let hooked = HOOK.try_with(|hook| match hook.try_borrow_mut() {
            Ok(mut hook) => match hook.as_mut() {
                Some(hook) => {
                    hook(name);
                    true
                }
                None => false,
            },
            Err(_) => true,
        });
        if hooked.unwrap_or(false) {
            return;
        }
        let Some(target) = target() else { return };
        if !target.is_named(name) {
            return;
        }
        let mut passed = PASSED.lock().unwrap_or_else(|e| e.into_inner());
        *passed += 1;
        let is_it = *passed == target.nth;
        drop(passed);
        if is_it && target.panics {
            panic!("asked to at {name}");
        }
        if is_it {
            // SAFETY: fault.1: it is given the number of a signal, which ends the process here.
            unsafe { libc::raise(libc::SIGKILL) };
        }
    }

    /// Runs `body` with `hook` called at every point this thread passes.
    pub fn with_hook<R>(hook: impl FnMut(&'static str) + 'static, body: impl FnOnce() -> R) -> R {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                HOOK.with(|h| h.take());
            }
        }
        HOOK.with(|h| h.replace(Some(Box::new(hook))));
        let _reset = Reset;
        body()
    }
}

#[cfg(debug_assertions)]
pub use live::{point, with_hook};

/// Passes the point `name`: nothing, in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn point(_name: &'static str) {}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn a_hook_sees_the_points_of_its_thread_until_its_body_ends() {
        let passed = Rc::new(RefCell::new(Vec::new()));
        let record = || {
            let passed = passed.clone();
            move |name: &'static str| {
                passed.borrow_mut().push(name);
                // What the hook itself passes is no passage.
                point("inside");
            }
        };
        let body = || {
            point("first");
            point("second");
            std::thread::scope(|scope| _ = scope.spawn(|| point("another thread's")));
            7
        };
        assert_eq!(with_hook(record(), body), 7);
        point("after");
        let unwound = catch_unwind(AssertUnwindSafe(|| with_hook(record(), || panic!("as a hook may"))));
        assert!(unwound.is_err());
        point("after the panic");
        assert_eq!(*passed.borrow(), ["first", "second"]);
    }
}
