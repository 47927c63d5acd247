//! A rank whose launcher vanishes says so and ends, even while it computes. Runs itself again as that rank.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::server::{Output, Phase, Server};
use gasworks_os::inherited;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("compute") => compute(false),
        Some("finish") => compute(true),
        _ => {
            a_computing_rank_ends_with_its_launcher();
            println!("test a_computing_rank_ends_with_its_launcher ... ok");
            a_finished_rank_does_not_care();
            println!("test a_finished_rank_does_not_care ... ok");
        }
    }
    ExitCode::SUCCESS
}

fn compute(finish: bool) {
    let rank = gasworks_bootstrap::connect().expect("joined");
    let started = Instant::now();
    if finish {
        rank.finalize().expect("ended");
    }
    let length = if finish { Duration::from_millis(600) } else { Duration::from_secs(30) };
    while started.elapsed() < length {
        std::hint::spin_loop();
    }
    println!("done");
}

/// Starts a rank and serves it up to a phase.
fn serve(action: &str, until: Phase) -> (Child, UnixStream) {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    inherited::let_pass(&theirs).expect("passed on");
    let child = Command::new(std::env::current_exe().expect("a path"))
        .arg(action)
        .env("PMI_FD", theirs.as_raw_fd().to_string())
        .env("PMI_RANK", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(theirs);
    let mut server = Server::new(1, "watched");
    let (mut inbox, mut jobid_asked) = (Vec::new(), false);
    ours.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    while server.phase(0) != until || !jobid_asked {
        let mut chunk = [0; 1000];
        let n = ours.read(&mut chunk).expect("the rank speaks");
        assert!(n > 0, "the rank ended early");
        inbox.extend_from_slice(&chunk[..n]);
        jobid_asked |= String::from_utf8_lossy(&inbox).contains("job-getid");
        let mut out = Vec::new();
        server.feed(0, &mut inbox, &mut out);
        for output in out {
            if let Output::Send { bytes, .. } = output {
                ours.write_all(&bytes).expect("sent");
            }
        }
    }
    (child, ours)
}

fn a_computing_rank_ends_with_its_launcher() {
    let (child, connection) = serve("compute", Phase::Joined);
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    drop(connection);
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text, "gasworks: rank 0: the launcher is gone (it closed the connection): this rank ends\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
}

fn a_finished_rank_does_not_care() {
    let (child, connection) = serve("finish", Phase::Finalized);
    drop(connection);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
}
