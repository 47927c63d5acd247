//! Connected endpoints beside what the machine does without them: lines of cache passed between two processors, wake-ups by a FIFO and a socket, the system's copies to another process,
//! `memcpy`. Blocks take turns, and each is compared with the plain one of its turn: a ratio above 1 is slower. Then what 10,000 connections to one endpoint cost.
//!
//! `cargo bench -p gasworks-cci --bench endpoints [-- --short] [--only WORD]`
#![cfg(not(gasworks_loom))]
#![allow(unsafe_code)]

mod crowd;
mod messages;
mod transfers;

use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event};
use gasworks_cci::header::ConnectionId;
use gasworks_testkit::stats::{Interval, median};
use std::process::ExitCode;

/// What one turn of a row yields: nanoseconds of an operation, ours and plain.
type Turn<'a> = &'a mut dyn FnMut() -> [f64; 2];

/// What is measured, and how thoroughly.
struct Bench {
    turns: usize,
    scale: usize,
    only: Option<String>,
}

impl Bench {
    /// Measures a row, if it is wanted.
    fn row(&self, name: &str, plain: &str, unit: (&str, f64), limit: f64, turn: Turn<'_>) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        // The first turn warms caches, buffers, and what is decided at the first use.
        turn();
        let figures: Vec<[f64; 2]> = (0..self.turns).map(|_| turn()).collect();
        let ratios: Vec<f64> = figures.iter().map(|[ours, plain]| ours / plain).collect();
        let of =
            |at: usize| median(&figures.iter().map(|turn| turn[at]).collect::<Vec<_>>()).unwrap_or(f64::NAN);
        let (name_of_unit, share) = unit;
        let interval = Interval::of(&ratios).map_or("too few turns".into(), |ratio| {
            format!("{:.2} [{:.2} to {:.2}]", ratio.median, ratio.low, ratio.high)
        });
        let show = |ns: f64| if share > 0.0 { share / ns } else { ns };
        println!(
            "{name:34} {:>9.1} {name_of_unit:5} {plain:28} {:>9.1} {name_of_unit:5}  {interval:26} limit {limit}",
            show(of(0)),
            show(of(1)),
        );
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    if let [word, rest @ ..] = words.as_slice()
        && word == "clients"
    {
        crowd::clients(rest);
        return ExitCode::SUCCESS;
    }
    // The test harness of cargo asks for the names of the tests.
    if has("--list") {
        return ExitCode::SUCCESS;
    }
    let only = words.iter().position(|word| word == "--only").and_then(|at| words.get(at + 1)).cloned();
    let known = |word: &&String| {
        ["--short", "--only", "--bench"].contains(&word.as_str()) || only.as_ref() == Some(word)
    };
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        eprintln!("endpoints: {unknown:?} is none of --short, --only WORD");
        return ExitCode::FAILURE;
    }
    let bench = if has("--short") {
        Bench { turns: 3, scale: 20, only }
    } else {
        Bench { turns: 31, scale: 1, only }
    };
    println!("{} turns; medians, and ratios to the plain way", bench.turns);
    messages::measure(&bench);
    transfers::measure(&bench);
    crowd::measure(&bench);
    ExitCode::SUCCESS
}

/// Runs the calling thread on one processor.
fn pin(processor: usize) {
    let mut set = nix::sched::CpuSet::new();
    // A machine of one processor measures there.
    if set.set(processor).is_ok() {
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
}

/// A new directory for endpoints, as their base.
fn base() -> (tempfile::TempDir, String) {
    let directory = tempfile::Builder::new().prefix("cci").tempdir().expect("a directory");
    let base = directory.path().to_str().expect("text").to_owned();
    (directory, base)
}

/// An endpoint and its connection.
type End = (Endpoint, ConnectionId);

/// Two endpoints that are connected: the client's and the server's.
fn pair(change: impl Fn(&mut EndpointConfig)) -> (tempfile::TempDir, End, End) {
    let (directory, base) = base();
    let [mut client, mut server] = [(); 2].map(|()| {
        let mut config = EndpointConfig { base: base.clone(), ..EndpointConfig::default() };
        change(&mut config);
        Endpoint::create(config).expect("an endpoint")
    });
    let uri = server.uri().to_string();
    let asked = client.connect(&uri, &[], Attribute::ReliableOrdered, 0, None).expect("asked");
    let (mut accepted, mut is_there) = (None, false);
    while !is_there || accepted.is_none() {
        match client.event().expect("no error") {
            Some(Event::Connected { result: Ok(()), .. }) => is_there = true,
            None => {}
            other => panic!("{other:?}"),
        }
        match server.event().expect("no error") {
            Some(Event::Requested(request)) => drop(server.accept(request.id, 0).expect("accepted")),
            Some(Event::Accepted { connection, result: Ok(()), .. }) => accepted = Some(connection),
            None => {}
            other => panic!("{other:?}"),
        }
    }
    (directory, (client, asked), (server, accepted.expect("it was accepted")))
}
