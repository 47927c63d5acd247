//! Atomics, fences and the spin hint: the standard library's, or loom's under `--cfg gasworks_loom`.

#[cfg(not(gasworks_loom))]
use core::sync::atomic as inner;
#[cfg(gasworks_loom)]
use loom::sync::atomic as inner;

pub use inner::Ordering;

/// Types of our own, so that naming any other atomic can be forbidden everywhere else.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $int:ty;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Default)]
        #[cfg_attr(not(gasworks_loom), derive(bytemuck::Zeroable))]
        pub struct $name(inner::$name);

        impl $name {
            /// Holds `value`.
            #[cfg(not(gasworks_loom))]
            #[inline(always)]
            pub const fn new(value: $int) -> Self {
                Self(inner::$name::new(value))
            }

            /// Holds `value`.
            #[cfg(gasworks_loom)]
            pub fn new(value: $int) -> Self {
                Self(inner::$name::new(value))
            }

            /// The value.
            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $int {
                self.0.load(order)
            }

            /// Replaces the value.
            #[inline(always)]
            pub fn store(&self, value: $int, order: Ordering) {
                self.0.store(value, order);
            }

            /// Replaces the value and gives the old one.
            #[inline(always)]
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                self.0.swap(value, order)
            }

            /// Replaces `current` by `new`.
            ///
            /// # Errors
            /// The value that was there instead.
            #[inline(always)]
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange(current, new, success, failure)
            }

            /// Like [`compare_exchange`](Self::compare_exchange), and may fail for no reason.
            ///
            /// # Errors
            /// The value that was there.
            #[inline(always)]
            pub fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange_weak(current, new, success, failure)
            }

            /// Applies `f` until no other thread comes between, or it gives `None`.
            ///
            /// # Errors
            /// The value for which `f` gave `None`.
            #[inline(always)]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                f: impl FnMut($int) -> Option<$int>,
            ) -> Result<$int, $int> {
                self.0.fetch_update(set, fetch, f)
            }

            /// The value, through an exclusive reference.
            #[cfg(not(gasworks_loom))]
            pub fn get_mut(&mut self) -> &mut $int {
                self.0.get_mut()
            }

            /// Where the value is.
            #[cfg(not(gasworks_loom))]
            pub const fn as_ptr(&self) -> *mut $int {
                self.0.as_ptr()
            }
        }
    )*};
}

macro_rules! arithmetic {
    ($($name:ident: $int:ty;)*) => {$(
        impl $name {
            /// Adds, wrapping round, and gives the old value.
            #[inline(always)]
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_add(value, order)
            }

            /// Subtracts, wrapping round, and gives the old value.
            #[inline(always)]
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_sub(value, order)
            }

            /// Keeps the greater value, and gives the old one.
            #[inline(always)]
            pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_max(value, order)
            }

            /// Keeps the lesser value, and gives the old one.
            #[inline(always)]
            pub fn fetch_min(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_min(value, order)
            }
        }
    )*};
}

macro_rules! bits {
    ($($name:ident: $int:ty;)*) => {$(
        impl $name {
            /// Clears the bits that `value` has not, and gives the old value.
            #[inline(always)]
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_and(value, order)
            }

            /// Sets the bits that `value` has, and gives the old value.
            #[inline(always)]
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_or(value, order)
            }

            /// Flips the bits that `value` has, and gives the old value.
            #[inline(always)]
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_xor(value, order)
            }
        }
    )*};
}

integers! {
    /// A shared boolean.
    AtomicBool: bool;
    /// A shared byte.
    AtomicU8: u8;
    /// A shared 16-bit number.
    AtomicU16: u16;
    /// A shared 32-bit number.
    AtomicU32: u32;
    /// A shared 64-bit number.
    AtomicU64: u64;
    /// A shared size or address.
    AtomicUsize: usize;
    /// A shared signed 32-bit number.
    AtomicI32: i32;
    /// A shared signed 64-bit number.
    AtomicI64: i64;
}

arithmetic! {
    AtomicU8: u8; AtomicU16: u16; AtomicU32: u32; AtomicU64: u64; AtomicUsize: usize; AtomicI32: i32; AtomicI64: i64;
}

bits! {
    AtomicBool: bool;
    AtomicU8: u8; AtomicU16: u16; AtomicU32: u32; AtomicU64: u64; AtomicUsize: usize; AtomicI32: i32; AtomicI64: i64;
}

/// A memory fence. A `Relaxed` one (only a mutation of `ord!` asks for it) does nothing.
///
/// Under the thread sanitizer, which does not model fences, it is a read-modify-write of one shared word: that
/// orders at least as much for the sanitizer as the fence does for the machine.
#[inline(always)]
pub fn fence(order: Ordering) {
    if matches!(order, Ordering::Relaxed) {
        return;
    }
    #[cfg(all(not(gasworks_loom), gasworks_tsan))]
    {
        static ANCHOR: AtomicU32 = AtomicU32::new(0);
        ANCHOR.fetch_add(1, Ordering::AcqRel);
    }
    inner::fence(order);
}

/// A [`fence`] right behind a read-modify-write of this thread, to whatever word and in whatever order. x86 does not let any access pass such an
/// instruction, so that there only the compiler is told.
#[inline(always)]
pub fn fence_behind_rmw(order: Ordering) {
    #[cfg(all(target_arch = "x86_64", not(gasworks_loom), not(gasworks_tsan), not(miri)))]
    if !matches!(order, Ordering::Relaxed) {
        core::sync::atomic::compiler_fence(order);
    }
    #[cfg(not(all(target_arch = "x86_64", not(gasworks_loom), not(gasworks_tsan), not(miri))))]
    fence(order);
}

/// Tells the processor, or the model checker, that this thread waits for another.
#[inline(always)]
pub fn spin() {
    #[cfg(gasworks_loom)]
    loom::thread::yield_now();
    #[cfg(all(not(gasworks_loom), miri))]
    std::thread::yield_now();
    #[cfg(all(not(gasworks_loom), not(miri)))]
    core::hint::spin_loop();
}
