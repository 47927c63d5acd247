//! The system's clocks, in nanoseconds (`clock_gettime(2)`).

use nix::time::{ClockId, clock_gettime};

/// The clock that never goes back and starts at boot: one for all processes of a host (of a time name space).
#[inline]
pub fn monotonic() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The time of day, since 1970: comparable between hosts, as well as they keep time.
pub fn realtime() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux, so there is no failure to tell of.
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_goes_on() {
        let (before, day) = (super::monotonic(), super::realtime());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = super::monotonic() - before;
        assert!((2_000_000..60_000_000_000).contains(&passed), "{passed} ns");
        // Later than the year 2020, and not by centuries.
        assert!((1_577_836_800_000_000_000..8_000_000_000_000_000_000).contains(&day), "{day}");
    }
}
