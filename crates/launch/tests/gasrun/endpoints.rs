//! The endpoints of this machine, as `gasrun --endpoints` lists them.

use crate::cases::{err, gasrun, out};
use crate::harness::Case;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig};

pub const CASES: &[Case] = &[
    ("endpoints_are_listed", endpoints_are_listed),
    ("endpoints_of_a_default_directory_are_listed", endpoints_of_a_default_directory_are_listed),
    ("endpoints_in_no_directory", endpoints_in_no_directory),
];

/// A living endpoint and one that a killed process has left.
fn endpoints_are_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let base = directory.path().to_str().expect("text");
    let config = || EndpointConfig { base: base.into(), ..EndpointConfig::default() };
    let alive = Endpoint::create(config()).expect("an endpoint");
    let left = directory.path().join("1").join("7");
    std::fs::create_dir_all(&left).expect("a directory");
    std::fs::write(left.join("lock"), "").expect("a lock");
    let output = gasrun(&["--endpoints", base]).output().expect("it runs");
    let lines: Vec<Vec<String>> =
        out(&output).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    let program = std::fs::read_to_string("/proc/self/comm").expect("text");
    assert_eq!(lines[0], ["ENDPOINT", "STATE", "PROGRAM"]);
    assert_eq!(lines[1], [format!("sm://{base}/1/7"), "dead".into(), "-".into()]);
    assert_eq!(lines[2], [alive.uri().to_string(), "alive".into(), program.trim().into()]);
    assert_eq!(lines.len(), 3);
}

fn endpoints_of_a_default_directory_are_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = format!("{}/cci-77/sm", directory.path().display());
    let config = EndpointConfig { base: own, ..EndpointConfig::default() };
    let alive = Endpoint::create(config).expect("an endpoint");
    std::fs::create_dir(directory.path().join("cci-78")).expect("a directory");
    let output = gasrun(&["--endpoints"]).env("TMPDIR", directory.path()).output().expect("it runs");
    assert!(out(&output).contains(&format!("{}  alive", alive.uri())), "{}", out(&output));
    assert_eq!(out(&output).lines().count(), 2);
}

fn endpoints_in_no_directory() {
    let output = gasrun(&["--endpoints", "/nowhere/at/all"]).output().expect("it runs");
    assert!(output.status.success() && out(&output).lines().count() == 1, "{}", err(&output));
}
