//! The clock for single operations: the processor's counter, held against the system's clock.
//!
//! # Invariants
//! - clock.1: reading the counter touches no memory.

use std::time::{Duration, Instant};

/// The processor's counter.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: clock.1: the instruction reads a register, and every processor that this is compiled for has it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    crate::call::ticks()
}

/// Nanoseconds that a tick takes: counted over ten milliseconds.
pub fn nanoseconds_of_a_tick() -> f64 {
    let (begin, first) = (Instant::now(), ticks());
    while begin.elapsed() < Duration::from_millis(10) {
        std::hint::spin_loop();
    }
    let (took, last) = (begin.elapsed(), ticks());
    took.as_nanos() as f64 / last.wrapping_sub(first).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_with_the_clock() {
        let tick = nanoseconds_of_a_tick();
        let (begin, first) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(20));
        let slept = (ticks() - first) as f64 * tick;
        assert!(slept >= 19e6, "{slept} ns by the counter");
        assert!(slept <= 1.1 * begin.elapsed().as_nanos() as f64, "{slept} ns by the counter");
    }
}
