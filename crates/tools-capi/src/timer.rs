//! Ticks, and how long one is.
//!
//! On x86-64 a tick is one of the processor's time stamp counter, elsewhere a nanosecond. The length is found once, when it is
//! first asked for: by comparing the counter with the clock for some milliseconds, or as `GASNET_TSC_RATE` says, which is
//! then checked in that way.
//!
//! # Invariants
//! - timer.1: the instruction that reads the counter touches no memory, and is there on every processor of its kind.

use std::sync::OnceLock;
use std::time::Duration;

use gasworks_os::{clock, say};

use crate::environ::{is_on, number_of, warn};
use crate::fatal::end;
use crate::{numbers, settings};

/// Bits behind the point of a length of a tick.
const FRACTION: u32 = 40;
/// Between two looks at the clock.
const STEP: Duration = Duration::from_millis(4);
const MOST_STEPS: usize = 16;
/// Two lengths that differ by less are one, whatever the tolerance.
const AGREED: f64 = 1e-5;

/// The length of a tick.
struct Rate {
    /// In nanoseconds, with a fraction of [`FRACTION`] bits.
    fixed: u64,
}

static RATE: OnceLock<Rate> = OnceLock::new();

/// Now, in ticks.
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_tools_ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: timer.1: this is compiled for x86-64 alone, whose processors all have the instruction; it reads a register.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return clock::monotonic();
}

/// How many nanoseconds so many ticks are.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_ticks_to_ns(ticks: u64) -> u64 {
    let rate = RATE.get_or_init(Rate::find);
    ((u128::from(ticks) * u128::from(rate.fixed)) >> FRACTION) as u64
}

/// How many microseconds so many ticks are.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_ticks_to_us(ticks: u64) -> u64 {
    gasnett_ticks_to_ns(ticks) / 1000
}

/// The time of day in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gettimeofday_us() -> u64 {
    clock::realtime() / 1000
}

/// The least difference of two readings that differ, in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_granularityus() -> f64 {
    const TRIES: usize = 1000;
    let least = (0..TRIES).map(|_| next_tick()).min().unwrap_or(0);
    microseconds(least)
}

/// What a reading takes, in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_overheadus() -> f64 {
    const READS: u32 = 10_000;
    let start = gasworks_tools_ticks();
    for _ in 1..READS {
        std::hint::black_box(gasworks_tools_ticks());
    }
    microseconds(gasworks_tools_ticks() - start) / f64::from(READS)
}

/// The ticks until a reading differs.
fn next_tick() -> u64 {
    let start = gasworks_tools_ticks();
    loop {
        let now = gasworks_tools_ticks();
        if now > start {
            return now - start;
        }
    }
}

fn microseconds(ticks: u64) -> f64 {
    const MANY: u64 = 1 << 32;
    // So few ticks may be no whole nanosecond: their length is that of many, divided.
    gasnett_ticks_to_ns(MANY) as f64 / MANY as f64 * ticks as f64 / 1000.0
}

impl Rate {
    fn of(ns: f64) -> Self {
        Self { fixed: (ns * (1u64 << FRACTION) as f64).round() as u64 }
    }

    fn find() -> Self {
        if !cfg!(target_arch = "x86_64") {
            return Self::of(1.0);
        }
        let measured = measure();
        let ns = match told() {
            Some((hertz, source)) => checked(1e9 / hertz, measured, &source),
            None => measured,
        };
        if is_on(&settings::TSC_RATE_VERBOSE) {
            say(&format!("the time stamp counter has {:.0} ticks a second, {ns:.6} ns each", 1e9 / ns));
        }
        Self::of(ns)
    }
}

/// The ticks in a second that the environment gives, and where it has them from.
fn told() -> Option<(f64, String)> {
    let text = settings::text(&settings::TSC_RATE)?;
    let hertz = match text.trim().to_ascii_lowercase().as_str() {
        "" | "walltime" => return None,
        "cpuinfo" => rate_of(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        number => number.parse().ok().or_else(|| numbers::parse(number, 0).map(|n| n as f64)),
    };
    match hertz.filter(|hertz| hertz.is_finite() && *hertz > 0.0) {
        Some(hertz) => Some((hertz, text)),
        None => {
            warn(&format!("GASNET_TSC_RATE is '{text}', which gives no rate; the clock is asked"));
            None
        }
    }
}

/// The rate that the system's description of the processors gives: the one of the model's name, else of the processor now.
fn rate_of(cpuinfo: &str) -> Option<f64> {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let nominal = || field("model name")?.rsplit_once('@')?.1.trim().strip_suffix("GHz")?.parse::<f64>().ok();
    let current = || field("cpu MHz")?.parse::<f64>().ok();
    nominal().map(|ghz| ghz * 1e9).or_else(|| current().map(|mhz| mhz * 1e6))
}

/// A length that was told, beside the one measured.
fn checked(told: f64, measured: f64, source: &str) -> f64 {
    let off = (told - measured).abs() / measured;
    let words = || format!("GASNET_TSC_RATE={source} is off by {:.3} % of what the clock says", off * 100.0);
    if off > number_of(&settings::TSC_RATE_HARD_TOLERANCE) {
        end(None, &words());
    }
    if off > number_of(&settings::TSC_RATE_TOLERANCE) {
        warn(&words());
    }
    told
}

/// The length of a tick by the clock, in nanoseconds: the mean since the start, once two of them agree.
fn measure() -> f64 {
    let start = moment();
    let mut last = 0.0;
    for _ in 0..MOST_STEPS {
        std::thread::sleep(STEP);
        let now = moment();
        let ns = (now.1 - start.1) as f64 / (now.0 - start.0) as f64;
        if (ns - last).abs() < AGREED * ns {
            return ns;
        }
        last = ns;
    }
    last
}

/// A moment in ticks and by the clock, the two as near to each other as they come.
fn moment() -> (u64, u64) {
    const TRIES: usize = 8;
    let tries = (0..TRIES).map(|_| {
        let before = gasworks_tools_ticks();
        let ns = clock::monotonic();
        let after = gasworks_tools_ticks();
        (after - before, (before + (after - before) / 2, ns))
    });
    tries.min_by_key(|(width, _)| *width).map(|(_, moment)| moment).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_with_the_clock() {
        let (ticks, ns) = moment();
        std::thread::sleep(Duration::from_millis(100));
        let (later, ns_later) = moment();
        let (by_ticks, by_clock) = (gasnett_ticks_to_ns(later - ticks), ns_later - ns);
        assert!(by_ticks.abs_diff(by_clock) < by_clock / 1000, "{by_ticks} ns, and {by_clock}");
        assert_eq!(gasnett_ticks_to_us(later - ticks), by_ticks / 1000);
    }

    #[test]
    fn long_times_keep_their_nanoseconds() {
        let rate = Rate::of(0.5);
        assert_eq!((u128::from(u64::MAX) * u128::from(rate.fixed)) >> FRACTION, u128::from(u64::MAX / 2));
    }

    #[test]
    fn a_rate_is_read_from_the_description() {
        let cpu = |model: &str| format!("processor : 0\nmodel name\t: {model}\ncpu MHz\t\t: 2095.078\n");
        assert_eq!(rate_of(&cpu("A Processor @ 2.10GHz")), Some(2.1e9));
        assert_eq!(rate_of(&cpu("A Processor")), Some(2_095_078_000.0));
        assert_eq!(rate_of("processor: 0\n"), None);
    }

    #[test]
    fn a_reading_is_short() {
        let (step, cost) = (gasnett_tick_granularityus(), gasnett_tick_overheadus());
        assert!(step > 0.0 && step < 100.0 && cost > 0.0 && cost < 100.0, "{step} us, {cost} us");
    }
}
