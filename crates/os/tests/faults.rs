//! A fault on shared memory is reported by name, and still kills. Runs itself again as the process that dies.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use gasworks_os::{faults, jobs, memfd};
use gasworks_testkit::{Case, cases};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("child-named") => touch_beyond_a_cut_file(true),
        Some("child-unnamed") => touch_beyond_a_cut_file(false),
        _ => {
            let named =
                "gasworks: rank 2: segment of rank 1 (job X) cannot be backed with memory at byte 5000: ";
            let case = |name, child: &'static str, wanted: Option<&'static str>| {
                Case::check(name, move || check(child, wanted))
            };
            let named = case("a_fault_is_reported_by_name", "child-named", Some(named));
            let silent = case("a_fault_elsewhere_is_not_reported", "child-unnamed", None);
            return cases::main("os/faults", vec![named, silent]);
        }
    }
    ExitCode::SUCCESS
}

fn check(child: &str, wanted: Option<&str>) {
    let me = std::env::current_exe().expect("a path");
    let output = Command::new(me).arg(child).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(7), "{child} should die by SIGBUS: {:?} {text}", output.status);
    match wanted {
        Some(wanted) => {
            assert!(text.starts_with(wanted) && text.lines().count() == 1, "{child} said: {text}")
        }
        None => assert!(text.is_empty(), "{child} said: {text}"),
    }
}

fn touch_beyond_a_cut_file(named: bool) {
    let path = tempfile::NamedTempFile::new().expect("a file");
    let file = File::options().read(true).write(true).open(path.path()).expect("open");
    drop(path);
    file.set_len(8192).expect("sized");
    let map = memfd::map(file.as_fd(), 8192).expect("mapped");
    let other = memfd::create("other", 4096).expect("a memfd").map().expect("mapped");
    let bytes = map.bytes();
    let _me = jobs::enter("rank 2");
    let _other = faults::name_range(other.raw(), "another segment").expect("named");
    let _range = named.then(|| faults::name_range(map.raw(), "segment of rank 1 (job X)").expect("named"));
    file.set_len(4096).expect("cut");
    let mut byte = [0];
    bytes.slice(5000, 1).expect("inside").read(&mut byte);
    println!("the access was not refused: {byte:?}");
}
