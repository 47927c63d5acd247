//! A rank whose launcher vanishes says so and ends, even while it computes, and even where it cannot say so. Runs
//! itself again as that rank.

use std::error::Error;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::server::{Output, Phase, Server};
use gasworks_os::inherited;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("compute") => compute(false),
        Some("finish") => compute(true),
        Some("abort") => gasworks_bootstrap::connect().expect("joined").abort(42, "no more"),
        Some("connect") => match gasworks_bootstrap::connect() {
            Ok(rank) => println!("rank {} of {}", rank.rank(), rank.size()),
            Err(e) => println!("{e} / {}", e.source().map_or("no source".into(), ToString::to_string)),
        },
        _ => {
            a_job_of_several_is_not_many_jobs_of_one();
            println!("test a_job_of_several_is_not_many_jobs_of_one ... ok");
            a_full_standard_error_changes_nothing();
            println!("test a_full_standard_error_changes_nothing ... ok");
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

fn me(action: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.arg(action).env_remove("PMI_FD").env_remove("PMI_SIZE");
    command
}

fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device").into()
}

/// Starts a rank and serves it up to a phase.
fn serve(action: &str, until: Phase, stderr: Stdio) -> (Child, UnixStream) {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    inherited::let_pass(&theirs).expect("passed on");
    let child = me(action)
        .env("PMI_FD", theirs.as_raw_fd().to_string())
        .env("PMI_RANK", "0")
        .stdout(Stdio::piped())
        .stderr(stderr)
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

fn a_job_of_several_is_not_many_jobs_of_one() {
    let said = |variable: &str, value: &str| {
        let output = me("connect").env(variable, value).output().expect("started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(said("PMI_SIZE", "1"), "rank 0 of 1\n");
    assert_eq!(
        said("PMI_SIZE", "2"),
        "join the job: PMI_SIZE=2 says there are other ranks, but PMI_FD is not set: this launcher does not speak \
         PMI-2 over a descriptor; unset PMI_SIZE to run alone / no source\n"
    );
    // The system's cause is told once.
    let refused = said("PMI_FD", "0");
    assert!(refused.contains("neither PMI_RANK nor PMI_ID"), "{refused}");
    let output = me("connect").env("PMI_FD", "77").env("PMI_RANK", "0").output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("use the inherited descriptor: 77: "), "{text}");
    assert!(text.matches("os error").count() <= 1 && text.ends_with(" / no source\n"), "{text}");
    // A wait that is none is refused by name.
    let (_ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = me("connect");
    command.stdin(OwnedFd::from(theirs)).envs([("PMI_FD", "0"), ("PMI_RANK", "0")]);
    let output = command.env("GASWORKS_BOOTSTRAP_TIMEOUT", "0").output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("setting GASWORKS_BOOTSTRAP_TIMEOUT=\"0\": wanted a number of"), "{text}");
}

fn a_full_standard_error_changes_nothing() {
    let ended = me("abort").stderr(full()).status().expect("started");
    assert_eq!(ended.code(), Some(42));
    let (mut child, connection) = serve("compute", Phase::Joined, full());
    drop(connection);
    assert_eq!(child.wait().expect("ended").code(), Some(1));
}

fn a_computing_rank_ends_with_its_launcher() {
    let (child, connection) = serve("compute", Phase::Joined, Stdio::piped());
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
    let (child, connection) = serve("finish", Phase::Finalized, Stdio::piped());
    drop(connection);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
}
