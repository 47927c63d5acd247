//! The client of PMI-2 against the real server's state machine, and against servers that are broken or hostile.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gasworks_bootstrap::server::{Output, Server};
use gasworks_bootstrap::{Bootstrap, Dialect, Launched, Start, Stream, Way, Wire};
use nix::poll::{PollFd, PollFlags, poll};
use script::{Rank, message, script};

mod script;

const HELLO: &[u8] = b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";

fn start(socket: UnixStream, rank: u32, timeout: Duration) -> Start {
    let (stream, dialect) = (Stream::Descriptor(socket.into()), Some(Dialect::Pmi2));
    Start { way: Way::Wire(Wire { stream, rank, size: None, job: None, dialect }), timeout }
}

/// Serves `size` ranks until all have closed their connections.
fn serve(mut sockets: Vec<UnixStream>) {
    let mut server = Server::new(sockets.len() as u32, "job.7");
    let mut inboxes = vec![Vec::new(); sockets.len()];
    let mut open = vec![true; sockets.len()];
    while open.contains(&true) {
        let watched: Vec<usize> = (0..sockets.len()).filter(|&rank| open[rank]).collect();
        let mut polled: Vec<_> =
            watched.iter().map(|&rank| PollFd::new(sockets[rank].as_fd(), PollFlags::POLLIN)).collect();
        assert!(poll(&mut polled, 20_000u16).is_ok_and(|n| n > 0), "the ranks are silent");
        let speaks: Vec<bool> = polled.iter().map(|fd| fd.any() == Some(true)).collect();
        for (rank, _) in watched.into_iter().zip(speaks).filter(|(_, speaks)| *speaks) {
            let mut chunk = [0; 1000];
            match sockets[rank].read(&mut chunk).expect("read") {
                0 => open[rank] = false,
                n => inboxes[rank].extend_from_slice(&chunk[..n]),
            }
            let mut out = Vec::new();
            server.feed(rank as u32, &mut inboxes[rank], &mut out);
            for output in out {
                if let Output::Send { rank, bytes } = output {
                    sockets[rank as usize].write_all(&bytes).expect("sent");
                }
            }
        }
    }
}

#[test]
fn ranks_exchange_values_of_all_lengths() {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..3).map(|_| UnixStream::pair().expect("a pair")).unzip();
    std::thread::scope(|scope| {
        scope.spawn(|| serve(ours));
        for (rank, socket) in (0u32..).zip(theirs) {
            scope.spawn(move || {
                let client = Launched::join(start(socket, rank, Duration::from_secs(20))).expect("joined");
                assert_eq!((client.rank(), client.size(), client.job()), (rank, 3, "job.7"));
                for len in [0, 1, 383, 384, 385, 5000] {
                    let bytes = |r: u32| (0..len * (r + 1)).map(|i| (i * 7 + r) as u8).collect::<Vec<u8>>();
                    let all: Vec<_> = (0..3).map(bytes).collect();
                    client.put(&format!("v{len}"), &bytes(rank)).expect("put");
                    client.fence().expect("passed");
                    let got = (0..3).map(|other| client.get(other, &format!("v{len}")).expect("got"));
                    assert!(got.eq(all.iter().cloned()));
                    let exchanged = client.exchange(&format!("x{len}"), &bytes(rank)).expect("exchanged");
                    assert_eq!(exchanged.to_vec(), all);
                }
                let twice = client.put("v0", b"").expect_err("put twice").to_string();
                assert!(twice.contains("the key v0 was put before"), "{twice}");
                for key in ["", "a;b", "a b", "a=b", &"k".repeat(36)] {
                    let error = client.put(key, b"x").expect_err(key).to_string();
                    assert!(error.contains("must be 1 to 35 letters, digits, '.', '_' or '-'"), "{error}");
                }
                // With the numbers of a job, a rank and a piece this is the longest key that launchers take.
                client.put(&"k".repeat(35), b"x").expect("put");
                let beyond = client.get(3, "v0").expect_err("no such rank").to_string();
                assert!(beyond.contains("there is no rank 3 in a job of 3"), "{beyond}");
                client.started();
                client.fence().expect("passed");
                client.finalize().expect("ended");
                client.finalize().expect("ended once");
            });
        }
    });
}

fn meet(bytes: &[u8], close: bool) -> String {
    one().meet(bytes, close).outcome
}

#[test]
fn after_the_start_a_fence_waits_for_the_slowest() {
    const LIMIT: Duration = Duration::from_millis(50);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let joined = message("cmd=fullinit-response;rc=0;rank=1;size=2;launcher=gasrun;");
    let job = message("cmd=job-getid-response;jobid=j;rc=0;");
    ours.write_all(&script(&[HELLO, &joined, &job])).expect("sent");
    let rank = Launched::join(start(theirs, 1, LIMIT)).expect("joined");
    let error = rank.fence().expect_err("nobody comes").to_string();
    assert!(error.starts_with("wait for all ranks: nothing came for 0 s"), "{error}");
    rank.started();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(3 * LIMIT);
            ours.write_all(&message("cmd=kvs-fence-response;rc=0;")).expect("sent");
        });
        rank.fence().expect("passed");
    });
}

#[test]
fn a_launcher_that_does_not_read_is_given_up() {
    let joined = message("cmd=fullinit-response;rc=0;rank=1;size=2;");
    let job = message("cmd=job-getid-response;jobid=j;rc=0;");
    // It has answered more puts than there is room for in the socket.
    let puts = message("cmd=kvs-put-response;rc=0;").repeat(2000);
    let met = one().meet_with(&script(&[HELLO, &joined, &job, &puts]), false, &vec![7; 750_000]);
    assert_eq!(met.outcome, "timed out: put a value: nothing came for 0 s (GASWORKS_BOOTSTRAP_TIMEOUT)");
}

fn one() -> Rank {
    Rank { job: Some("j"), ..Rank::speaking(Dialect::Pmi2) }
}

#[test]
fn every_bad_server_ends_in_one_clear_error() {
    let joined = message("cmd=fullinit-response;rc=0;rank=1;size=2;appnum=0;");
    let job = message("cmd=job-getid-response;jobid=j;rc=0;");
    let (put, fence) = (message("cmd=kvs-put-response;rc=0;"), message("cmd=kvs-fence-response;rc=0;"));
    let value = message("cmd=kvs-get-response;found=TRUE;value=1.Ynl0ZXM;rc=0;");
    let end = message("cmd=finalize-response;rc=0;");
    let up_to_get = script(&[HELLO, &joined, &job, &put, &fence]);
    let whole = script(&[&up_to_get, &value, &end]);
    let met = one().meet(&whole, true);
    assert_eq!(met.outcome, "all well");
    assert!(
        met.said.ends_with("    38cmd=kvs-get;jobid=j;srcid=0;key=key-0;    13cmd=finalize;"),
        "{}",
        met.said
    );

    // A conversation that is cut anywhere is an error that says where, and one that stops there is a time-out.
    for cut in 0..whole.len() {
        let error = meet(&whole[..cut], true);
        assert!(error.contains("the launcher closed the connection"), "cut at {cut}: {error}");
    }
    for cut in [0, 20, HELLO.len(), HELLO.len() + 3, up_to_get.len() - 1] {
        let error = meet(&whole[..cut], false);
        assert!(
            error.starts_with("timed out: ")
                && error.ends_with("nothing came for 0 s (GASWORKS_BOOTSTRAP_TIMEOUT)"),
            "stopped at {cut}: {error}"
        );
    }

    let join = |text: &str| script(&[HELLO, &message(text)]);
    let get = |text: &str| script(&[&up_to_get, &message(text)]);
    for (bytes, wanted) in [
        (
            b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
            "join the job: the launcher does not keep to PMI: \"HTTP/1.1\"",
        ),
        (vec![b'x'; 2000], "does not end within 1024 bytes"),
        (
            b"cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n".to_vec(),
            "rc=-1 and version 1 to PMI version 2: GASWORKS_BOOTSTRAP asks for it",
        ),
        (b"cmd=barrier_out\n".to_vec(), "\"barrier_out\" came where response_to_init belongs"),
        (b"cmd=response_to_init rc=zero pmi_version=2\n".to_vec(), "rc=\"zero\" is no whole number"),
        (script(&[HELLO, b"999999cmd=x;"]), "a message announces 999999 bytes"),
        (script(&[HELLO, b"hello there"]), "\"hello \" stands where the length"),
        (join("cmd=fullinit-response;rc=0;rank=1"), "has no ';' after the value of \"rank\""),
        (
            join("cmd=kvs-put-response;rc=0;"),
            "\"kvs-put-response\" came where the answer to fullinit belongs",
        ),
        (join("cmd=fullinit-response;rank=1;size=2;"), "came without rc"),
        (join("cmd=fullinit-response;rc=14;errmsg=not today;"), "refuses the fullinit, rc=14: \"not today\""),
        (
            join("cmd=fullinit-response;rc=0;rank=0;size=2;"),
            "the launcher says rank 0 of 2, its settings said rank 1",
        ),
        (join("cmd=fullinit-response;rc=0;rank=1;size=1;"), "rank 1 of 1"),
        (join("cmd=fullinit-response;rc=0;rank=1;size=-5;"), "rank 1 of -5"),
        (join("cmd=fullinit-response;rc=0;rank=1;size=99999999999;"), "rank 1 of 99999999999"),
        (join("cmd=fullinit-response;rc=0;rank=x;size=2;"), "rank=\"x\" is no whole number"),
        (script(&[HELLO, &joined, &message("cmd=job-getid-response;rc=0;")]), "ask for the job's name: "),
        (
            script(&[HELLO, &joined, &job, &message("cmd=kvs-put-response;rc=2;")]),
            "refuses the kvs-put of the key key-1",
        ),
        (
            script(&[HELLO, &joined, &job, &put, &message("cmd=kvs-fence-response;rc=-1;")]),
            "wait for all ranks: ",
        ),
        (get("cmd=kvs-get-response;rc=0;found=FALSE;"), "does not know the key key-0, which rank 0 has put"),
        (get("cmd=kvs-get-response;rc=1;"), "refuses the kvs-get of the key key-0, rc=1"),
        (get("cmd=kvs-get-response;rc=0;found=TRUE;"), "came without value"),
        (get("cmd=kvs-get-response;rc=0;value=(null);"), "damaged the value of the key key of rank 0: "),
        (get("cmd=kvs-get-response;rc=0;value=1.Ynl0Z X;"), "holds a character that was not sent"),
        (get("cmd=kvs-get-response;rc=0;value=1.Ynl0Z;"), "was cut"),
    ] {
        let error = meet(&bytes, true);
        assert!(error.contains(wanted), "{error:?} should say {wanted:?}");
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_the_settings_said_is_checked() {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    ours.write_all(HELLO).expect("sent");
    ours.write_all(&message("cmd=fullinit-response;rc=0;rank=1;size=2;")).expect("sent");
    let (stream, job) = (Stream::Descriptor(theirs.into()), Some("j;1".into()));
    let wire = Wire { stream, rank: 1, size: Some(3), job, dialect: Some(Dialect::Pmi2) };
    let told = Start { way: Way::Wire(wire), timeout: Duration::from_secs(5) };
    let error = Launched::join(told).expect_err("another size").to_string();
    assert!(error.contains("rank 1 of 2, its settings said rank 1 of 3"), "{error}");
    let mut said = [0; 200];
    let n = ours.read(&mut said).expect("read");
    let said = String::from_utf8_lossy(&said[..n]).into_owned();
    assert_eq!(
        said,
        "cmd=init pmi_version=2 pmi_subversion=0\n    52cmd=fullinit;pmijobid=j;;1;pmirank=1;threaded=FALSE;"
    );
}
