//! Other people's programs: MPICH's, and whoever comes to `PMI_PORT`.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cases::{err, expect, gasrun, out, run};
use crate::harness::Case;
use gasworks_testkit::Need;

pub const CASES: &[Case] = &[
    ("ranks_come_to_the_port", ranks_come_to_the_port),
    ("strangers_at_the_port", strangers_at_the_port),
    ("a_stranger_that_stops_reading", a_stranger_that_stops_reading),
];

pub const WITH_NEEDS: &[(Need, Case)] = &[(Need::Mpicc, ("an_mpich_program", an_mpich_program))];

/// Compiles a program of `tests/programs` with MPICH's compiler.
pub fn mpich(program: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let source = format!("{}/tests/programs/{program}.c", env!("CARGO_MANIFEST_DIR"));
    let binary = dir.path().join(program).display().to_string();
    let compiled =
        Command::new("mpicc.mpich").args(["-O1", "-o", &binary, &source]).output().expect("started");
    assert!(compiled.status.success(), "mpicc.mpich: {}", err(&compiled));
    (dir, binary)
}

fn an_mpich_program() {
    let (_dir, ring) = mpich("ring");
    for way in [&[][..], &["--pmi-port"]] {
        for ranks in ["1", "2", "5"] {
            let words = [way, &["-n", ranks, &ring]].concat();
            let output = run(&words);
            expect(&output, 0, &[]);
            let size: usize = ranks.parse().expect("a number");
            let mut lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
            lines.sort_unstable();
            let sum = size * (size - 1) / 2;
            let wanted: Vec<String> =
                (0..size).map(|rank| format!("rank {rank} of {size}: sum {sum}, word 4711")).collect();
            assert_eq!(lines, wanted, "{way:?}");
        }
        let output = run(&[way, &["-n", "3", &ring, "5"]].concat());
        let text = err(&output);
        assert_eq!(output.status.code(), Some(5), "{text}");
        assert!(text.contains("rank 1 (pid ") && text.contains("aborted the job"), "{text}");
    }
}

/// Runs this program as the ranks of a job with a port.
fn act(words: &[&str], action: &str) -> std::process::Output {
    let me = std::env::current_exe().expect("a path");
    run(&[&["--pmi-port"], words, &[me.to_str().expect("text"), "rank", action]].concat())
}

fn ranks_come_to_the_port() {
    let script = "echo $PMI_ID ${PMI_FD-none} ${PMI_PORT%:*} $PMI_SIZE";
    let output = gasrun(&["--pmi-port", "-n", "2", "sh", "-c", script]).env("PMI_FD", "7").output();
    let output = output.expect("started");
    expect(&output, 0, &[]);
    let mut lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 none 127.0.0.1 2", "1 none 127.0.0.1 2"]);
    // Two ranks of PMI-1, written down to the byte.
    let output = act(&["-n", "2"], "port-one");
    expect(&output, 0, &[]);
    assert_eq!(out(&output).lines().filter(|line| line.ends_with("value=v1")).count(), 2, "{}", out(&output));
    for (action, code, what) in [
        ("port-die", 137, "was killed by signal 9 (SIGKILL)"),
        ("port-abort", 6, "aborted the job"),
        ("port-quit", 1, "exited with code 0 without finalize"),
        ("port-garbage", 1, "does not keep to PMI"),
    ] {
        expect(&act(&["-n", "3"], action), code, &["rank 1 (pid ", what]);
    }
}

#[allow(clippy::zombie_processes)] // who starts it waits for it; a failed test ends with the process
/// A job whose ranks come to the port when `go` is there; its address.
fn waiting_job(dir: &std::path::Path) -> (std::process::Child, SocketAddr) {
    let me = std::env::current_exe().expect("a path");
    let script = format!(
        "echo $PMI_PORT >$0/port.$PMI_ID; until test -e $0/go; do sleep 0.02; done; exec {} rank port-one",
        me.display()
    );
    let words = ["-v", "--pmi-port", "-n", "2", "sh", "-c", &script, dir.to_str().expect("text")];
    let job = gasrun(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(dir.join("port.1")).unwrap_or_default();
        if let Ok(address) = text.trim().parse() {
            return (job, address);
        }
        assert!(Instant::now() < deadline, "no rank wrote its port");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the other side hangs up within some seconds.
pub fn is_sent_away(mut stream: TcpStream, within: u64) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(within))).expect("set");
    match stream.read(&mut [0; 100]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn strangers_at_the_port() {
    let dir = tempfile::tempdir().expect("a directory");
    let (job, address) = waiting_job(dir.path());
    assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
    // A port scan.
    for _ in 0..20 {
        drop(TcpStream::connect(address).expect("connected"));
    }
    let say = |text: &str| {
        let mut stream = TcpStream::connect(address).expect("connected");
        stream.write_all(text.as_bytes()).expect("sent");
        stream
    };
    for text in [
        "cmd=initack pmiid=2\n",
        "cmd=initack pmiid=-1\n",
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "GET / HTTP/1.0\r\n\r\n",
        &"x".repeat(5000),
    ] {
        assert!(is_sent_away(say(text), 20), "{text:?}");
    }
    // Silent ones, more than there is room for: the ranks come in all the same.
    let silent: Vec<TcpStream> = (0..60).map(|_| say("cmd=initack")).collect();
    std::fs::write(dir.path().join("go"), "").expect("written");
    for stream in silent {
        assert!(is_sent_away(stream, 20), "a silent one stays");
    }
    let output = job.wait_with_output().expect("ended");
    let text = err(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(out(&output).lines().filter(|line| line.ends_with("value=v1")).count(), 2);
    for wanted in [
        "calls itself rank 2, which is not expected here",
        "it went without a word",
        "\"init\" instead of initack",
        "it took long, and others wanted its place",
    ] {
        assert!(text.contains(wanted), "{text} should say {wanted}");
    }
    // Those that were still silent at the end went with the job.
    let told =
        text.lines().find_map(|l| l.strip_prefix("gasrun: sent away ")?.split(' ').next()?.parse().ok());
    assert!(told.is_some_and(|count: usize| (50..=85).contains(&count)), "{text}");
}

fn a_stranger_that_stops_reading() {
    let dir = tempfile::tempdir().expect("a directory");
    let (job, address) = waiting_job(dir.path());
    // One that says nothing has its time, and no more.
    let start = Instant::now();
    assert!(is_sent_away(TcpStream::connect(address).expect("connected"), 20));
    assert!(start.elapsed() >= Duration::from_secs(4));
    // One that has taken rank 0's place: the real one is sent away, and the job ends with an error, not never.
    let mut thief = TcpStream::connect(address).expect("connected");
    thief.write_all(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n").expect("sent");
    std::fs::write(dir.path().join("go"), "").expect("written");
    let output = job.wait_with_output().expect("ended");
    let text = err(&output);
    assert_ne!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("rank 0, which has come already"), "{text}");
}
