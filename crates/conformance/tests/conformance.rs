//! The suite over simulated networks, a seed of each in each thread mode. The table `suite` has more of them, and the
//! same suite over shared memory between processes.

use gasworks::{Par, Seq};
use gasworks_conformance::conformance::SuiteMode;
use gasworks_conformance::conformance::special::{SPECIALS, suite_on};
use gasworks_conformance::simnet::{Faults, SimConfig};
use std::time::Duration;

fn run<M: SuiteMode>(ranks: u32, mapped: bool) {
    let config = SimConfig { mapped, ..SimConfig::varied(ranks, 1) };
    let ended = suite_on::<M>(config, "", &|_| ());
    assert!(ended.is_ok(), "{}", ended.err().map(|e| e.to_string()).unwrap_or_default());
}

#[test]
fn one_thread_mapped() {
    run::<Seq>(2, true);
}

#[test]
fn one_thread_unmapped() {
    run::<Seq>(3, false);
}

#[test]
fn several_threads_mapped() {
    run::<Par>(3, true);
}

#[test]
fn several_threads_unmapped() {
    run::<Par>(2, false);
}

#[test]
fn cases_with_jobs_of_their_own() {
    for (name, special) in SPECIALS {
        for seed in 5..8 {
            let ended = special(seed);
            assert!(
                ended.is_ok(),
                "{name}, seed {seed}: {}",
                ended.err().map(|e| e.to_string()).unwrap_or_default()
            );
        }
    }
}

/// A suite that passes over a network that loses, doubles or spoils messages would check nothing.
#[test]
fn the_suite_notices_what_no_transport_may_do() {
    let none = Faults::default();
    let moods = [
        ("spoils a message in 300", Faults { corrupt: 300, ..none }, true),
        ("spoils a transfer in 300", Faults { corrupt: 300, ..none }, false),
        ("doubles a message in 500", Faults { double: 500, ..none }, true),
        ("loses a message in 500", Faults { lose: 500, ..none }, true),
        ("fails a transfer in 500", Faults { nic_error: 500, ..none }, false),
    ];
    for (what, faults, mapped) in moods {
        for seed in [1, 2] {
            let watchdog = Duration::from_secs(5);
            let config = SimConfig { mapped, faults, watchdog, ..SimConfig::varied(2, seed) };
            assert!(suite_on::<Seq>(config, "", &|_| ()).is_err(), "a network that {what}, seed {seed}");
        }
    }
}
