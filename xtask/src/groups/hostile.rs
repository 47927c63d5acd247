//! A rank whose launcher is broken or hostile: one clear error, and in bounded time. What each message may look like is
//! among the tests of the package `bootstrap`; here a whole program meets a few of each kind.

use super::input::told_once;
use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};
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
    Dawdles,
}

/// A lie: the row's name, and what the rank is to say of it.
struct Lie {
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
use Then::{Dawdles, HangsUp, Listens};

const HELLO: &str = "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
const KNOWN: &str = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=99\ncmd=set debug=0\n\
                     cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n\
                     cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024\n";
const JOINED: &str = "cmd=fullinit-response;rc=0;rank=0;size=2;appnum=0;";
const NAMED: &str = "cmd=job-getid-response;jobid=j;rc=0;";
const PUT: &str = "cmd=kvs-put-response;rc=0;";

/// What the ranks are told of time, so that silence is an error soon, and how long each may take.
const PATIENCE: &str = "2";
const SILENCE: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(10);
const SILENT: &str = "nothing came for 2 s (GASWORKS_BOOTSTRAP_TIMEOUT)";
const CLOSED: &str = "the launcher closed the connection";

const LIES: &[Lie] = &[
    lie("talks-nonsense", Descriptor, "no line that PMI-2 knows\n", &[], Listens, "no line that"),
    lie("hangs-up", Descriptor, "", &[], HangsUp, CLOSED),
    lie("cuts-a-message", Descriptor, HELLO, &["    90cmd=full"], HangsUp, CLOSED),
    lie("never-answers", Descriptor, "", &[], Listens, SILENT),
    lie("stops-answering", Descriptor, HELLO, &[JOINED, NAMED, PUT, ""], Listens, SILENT),
    lie("never-ends-a-line", Descriptor, "cmd=response_to_init", &[], Dawdles, SILENT),
    lie("never-ends-a-message", Descriptor, HELLO, &["   500cmd=x"], Dawdles, SILENT),
    lie(
        "announces-too-much",
        Descriptor,
        HELLO,
        &["999999cmd=x;"],
        Listens,
        "a message announces 999999 bytes",
    ),
    lie(
        "announces-too-little",
        Descriptor,
        HELLO,
        &["    19cmd=fullinit-response;rc=0;"],
        Listens,
        "the launcher",
    ),
    lie(
        "gives-a-wrong-rank",
        Descriptor,
        HELLO,
        &["cmd=fullinit-response;rc=0;rank=99;size=4;", ""],
        Listens,
        "rank 99 of 4",
    ),
    lie("talks-nonsense-at-a-port", Port, "HTTP/1.1 400 Bad Request\r\n", &[], Listens, "\"HTTP/1.1\""),
    lie("gives-a-wrong-rank-at-a-port", Port, KNOWN, &[], Listens, "rank 99 of 4"),
    lie("hangs-up-at-a-port", Port, "cmd=initack rc=0\n", &[], HangsUp, CLOSED),
    lie("never-answers-at-a-port", Port, "", &[], Listens, SILENT),
    lie("is-not-at-its-port", Nowhere, "", &[], HangsUp, "Connection refused"),
];

const fn lie(
    name: &'static str,
    at: At,
    lines: &'static str,
    messages: &'static [&'static str],
    then: Then,
    error: &'static str,
) -> Lie {
    Lie { name, at, lines, messages, then, error }
}

pub fn rows() -> Vec<Row> {
    let row = |lie: &'static Lie| {
        Row::new(format!("bad-input/launcher-{}", lie.name), move |world, log| meet(world, log, lie))
    };
    LIES.iter().map(row).collect()
}

impl Lie {
    fn words(&self) -> String {
        let Some((last, messages)) = self.messages.split_last() else { return self.lines.into() };
        let counted: String = messages.iter().map(|text| format!("{:>6}{text}", text.len())).collect();
        format!("{}{counted}{last}", self.lines)
    }

    /// Says it all, whatever is asked, and stays until the rank has gone, if it does not go first.
    fn tell(&self, mut rank: impl Read + Write) {
        let said = rank.write_all(self.words().as_bytes());
        match self.then {
            HangsUp => return,
            Listens => {}
            Dawdles => {
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

fn meet(world: &World, log: &Log, lie: &'static Lie) -> Result<()> {
    let leftovers = Leftovers::before();
    let rank = Cmd::new(world.built(Build::Debug)?.program("hello")?).limit(60);
    let rank = rank.env("GASWORKS_BOOTSTRAP_TIMEOUT", PATIENCE);
    let ended = match lie.at {
        Descriptor => {
            let (theirs, ours) = UnixStream::pair().context("a pair of sockets")?;
            std::thread::scope(|scope| {
                scope.spawn(|| lie.tell(ours));
                let rank = rank.env("PMI_FD", "0").env("PMI_RANK", "0").env("PMI_SIZE", "2");
                // Where there is one, PMI-2 is asked for at once.
                let rank = rank.env("PMI_JOBID", "j");
                log.run(&rank.socket(theirs))
            })
        }
        Port | Nowhere => {
            let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
            let address = listener.local_addr().context("its address")?;
            let listener = Some(listener).filter(|_| lie.at == Port);
            std::thread::scope(|scope| {
                let _launcher = listener.map(|listener| {
                    scope.spawn(move || listener.accept().map(|(stream, _)| lie.tell(stream)))
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
    told_once(&ended.output, &[lie.error])?;
    ensure!(ended.took <= LONGEST, "it took {:.1} s", ended.took.as_secs_f64());
    let patient = lie.error != SILENT || ended.took >= SILENCE;
    ensure!(patient, "it waited {:.1} s, not {PATIENCE} s", ended.took.as_secs_f64());
    leftovers.check()
}
