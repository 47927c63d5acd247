//! A rank whose launcher is broken or hostile: one clear error, and in bounded time. What each message may look like is
//! among the tests of the package `bootstrap`; here a whole program meets a few of each kind.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::output::told_once;
use gasworks_testkit::{Case, Cmd, Log, programs};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Where the launcher is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// On a descriptor (`PMI_FD`).
    Descriptor,
    /// At a port (`PMI_PORT`).
    Port,
    /// At one where nobody listens.
    Nowhere,
}

/// What the launcher does when it has said what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    HangsUp,
    Listens,
    /// It adds a byte now and then.
    Trickles,
}

/// What a launcher does wrong, and what the rank must say of it.
struct Fault {
    /// The case's name.
    name: &'static str,
    at: At,
    /// Lines of PMI-1, or of the beginning of PMI-2.
    lines: &'static str,
    /// Messages of PMI-2, which get their lengths in front; but the last, which is said as it stands.
    messages: &'static [&'static str],
    then: Then,
    error: &'static str,
}

use At::{Descriptor, Nowhere, Port};
use Then::{HangsUp, Listens, Trickles};

const HELLO: &str = "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
const KNOWN: &str = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=99\ncmd=set debug=0\n\
                     cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n\
                     cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024\n";
const JOINED: &str = "cmd=fullinit-response;rc=0;rank=0;size=2;appnum=0;";
const NAMED: &str = "cmd=job-getid-response;jobid=j;rc=0;";
const PUT: &str = "cmd=kvs-put-response;rc=0;";

/// The time-out that the ranks are given, so that silence is an error soon.
const TIMEOUT: &str = "2";
const SILENCE: Duration = Duration::from_secs(2);
const SILENT: &str = "nothing came for 2 s (GASWORKS_BOOTSTRAP_TIMEOUT)";
const CLOSED: &str = "the launcher closed the connection";

const FAULTS: &[Fault] = &[
    fault("talks-nonsense", Descriptor, "no line that PMI-2 knows\n", &[], Listens, "no line that"),
    fault("hangs-up", Descriptor, "", &[], HangsUp, CLOSED),
    fault("cuts-a-message", Descriptor, HELLO, &["    90cmd=full"], HangsUp, CLOSED),
    fault("never-answers", Descriptor, "", &[], Listens, SILENT),
    fault("stops-answering", Descriptor, HELLO, &[JOINED, NAMED, PUT, ""], Listens, SILENT),
    fault("never-ends-a-line", Descriptor, "cmd=response_to_init", &[], Trickles, SILENT),
    fault("never-ends-a-message", Descriptor, HELLO, &["   500cmd=x"], Trickles, SILENT),
    fault(
        "announces-too-much",
        Descriptor,
        HELLO,
        &["999999cmd=x;"],
        Listens,
        "a message announces 999999 bytes",
    ),
    fault(
        "announces-too-little",
        Descriptor,
        HELLO,
        &["    19cmd=fullinit-response;rc=0;"],
        Listens,
        "the launcher does not keep to PMI: \"cmd=fullinit-respon\"",
    ),
    fault(
        "gives-a-wrong-rank",
        Descriptor,
        HELLO,
        &["cmd=fullinit-response;rc=0;rank=99;size=4;", ""],
        Listens,
        "rank 99 of 4",
    ),
    fault("talks-nonsense-at-a-port", Port, "HTTP/1.1 400 Bad Request\r\n", &[], Listens, "\"HTTP/1.1\""),
    fault("gives-a-wrong-rank-at-a-port", Port, KNOWN, &[], Listens, "rank 99 of 4"),
    fault("hangs-up-at-a-port", Port, "cmd=initack rc=0\n", &[], HangsUp, CLOSED),
    fault("never-answers-at-a-port", Port, "", &[], Listens, SILENT),
    fault("is-not-at-its-port", Nowhere, "", &[], HangsUp, "Connection refused"),
];

const fn fault(
    name: &'static str,
    at: At,
    lines: &'static str,
    messages: &'static [&'static str],
    then: Then,
    error: &'static str,
) -> Fault {
    Fault { name, at, lines, messages, then, error }
}

/// A case for each fault.
pub fn cases() -> Vec<Case> {
    FAULTS.iter().map(|fault| Case::new(format!("launcher-{}", fault.name), |log| meet(log, fault))).collect()
}

impl Fault {
    fn words(&self) -> String {
        let Some((last, messages)) = self.messages.split_last() else { return self.lines.into() };
        let counted: String = messages.iter().map(|text| format!("{:>6}{text}", text.len())).collect();
        format!("{}{counted}{last}", self.lines)
    }

    /// Plays the launcher: sends everything, whatever the rank asks, and stays until the rank has gone, unless it hangs up.
    fn play(&self, mut rank: impl Read + Write) {
        let said = rank.write_all(self.words().as_bytes());
        match self.then {
            HangsUp => return,
            Listens => {}
            Trickles => {
                while rank.write_all(b"x").is_ok() {
                    std::thread::sleep(SILENCE / 40);
                }
            }
        }
        if said.is_ok() {
            // The rank's end, in whatever way it comes.
            let _ = std::io::copy(&mut rank, &mut std::io::sink());
        }
    }
}

/// Starts a rank whose launcher is this program.
fn meet(log: &Log, fault: &Fault) -> Result<()> {
    let rank = Cmd::new(programs::debug()?.program("hello")?).limit(30).job();
    let rank = rank.env("GASWORKS_BOOTSTRAP_TIMEOUT", TIMEOUT);
    let ended = match fault.at {
        Descriptor => {
            let (theirs, ours) = UnixStream::pair().context("a pair of sockets")?;
            std::thread::scope(|scope| {
                scope.spawn(|| fault.play(ours));
                let rank = rank.env("PMI_FD", "0").env("PMI_RANK", "0").env("PMI_SIZE", "2");
                // Where there is one, PMI-2 is asked for at once.
                let rank = rank.env("PMI_JOBID", "j");
                log.run(&rank.socket(theirs))
            })
        }
        Port | Nowhere => {
            let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
            let address = listener.local_addr().context("its address")?;
            let listener = Some(listener).filter(|_| fault.at == Port);
            std::thread::scope(|scope| {
                let _launcher = listener.map(|listener| {
                    scope.spawn(move || listener.accept().map(|(stream, _)| fault.play(stream)))
                });
                let ended = log.run(&rank.env("PMI_PORT", address.to_string()).env("PMI_ID", "0"));
                // If the rank did not come the launcher still waits for it.
                drop(TcpStream::connect(address));
                ended
            })
        }
    }?;
    ensure!(ended.status.is_some_and(|status| status.code() == Some(1)), "{}, not exit code 1", ended.how());
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    told_once(&ended.output, &[fault.error])?;
    let has_waited = fault.error != SILENT || ended.took >= SILENCE;
    ensure!(has_waited, "it waited {:.1} s, not {TIMEOUT} s", ended.took.as_secs_f64());
    Ok(())
}
