//! The NIC: programs as clients of the genuine library write them, on both chips and in all moods, as several processes.

use super::program::{Programs, run};

/// Runs a program with so many ranks on both chips, in the plain mood and as many adversarial ones.
fn go(programs: &Programs, form: &str, ranks: &[u32], seeds: u32) {
    for chip in ["gemini", "aries"] {
        for ranks in ranks {
            for seed in 0..=seeds {
                let mood = if seed == 0 { "plain" } else { "adversarial" };
                let mut command = programs.ranks(form, *ranks);
                command.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", mood);
                assert_eq!(run(command.env("GASWORKS_UGNI_SEED", seed.to_string())), "all is well\n");
            }
        }
    }
}

fn of(name: &str) -> Programs {
    Programs::of(name, &["ugni", "pmi"])
}

/// Data that goes around at every alignment, with its events and flags.
#[test]
fn transfers() {
    let programs = of("transfers");
    go(&programs, "shared", &[2, 3], 2);
    go(&programs, "static", &[2], 0);
}

#[test]
fn atomics() {
    go(&of("atomics"), "shared", &[2, 8], 1);
}

#[test]
fn overrun_and_recovery() {
    go(&of("overrun"), "shared", &[2, 5], 4);
}

#[test]
fn errors() {
    go(&of("errors"), "shared", &[2, 3], 4);
}

#[test]
fn waiting() {
    go(&of("waiting"), "shared", &[2, 4], 4);
}

/// A rendezvous.
#[test]
fn datagrams() {
    go(&of("datagrams"), "shared", &[3, 8], 2);
}

/// Short messages around a ring, with tags, credits and all.
#[test]
fn messages() {
    go(&of("messages"), "shared", &[2, 5], 4);
}

#[test]
fn chains() {
    go(&of("chains"), "shared", &[2, 4], 4);
}
