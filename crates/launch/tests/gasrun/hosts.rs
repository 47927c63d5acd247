//! Jobs over several hosts, which are pretended: the remote command starts everything on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cases::{err, expect, expect_nobody, feed, gasrun, mark, marked, out};
use crate::foreign::{is_sent_away, mpich};
use crate::harness::Case;
use gasworks_testkit::Need;

pub const CASES: &[Case] = &[
    ("hosts_have_their_ranks", hosts_have_their_ranks),
    ("ranks_elsewhere_are_as_here", ranks_elsewhere_are_as_here),
    ("values_are_exchanged_between_hosts", values_are_exchanged_between_hosts),
    ("failures_name_rank_and_host", failures_name_rank_and_host),
    ("agents_that_do_not_come", agents_that_do_not_come),
    ("a_tree_of_agents", a_tree_of_agents),
    ("streams_over_hosts", streams_over_hosts),
    ("signals_over_hosts", signals_over_hosts),
    ("an_agent_is_killed", an_agent_is_killed),
    ("nodes_that_are_stopped_are_waited_for", nodes_that_are_stopped_are_waited_for),
    ("a_job_over_hosts_is_suspended", a_job_over_hosts_is_suspended),
    ("nothing_is_left_when_gasrun_is_killed_over_hosts", nothing_is_left_when_gasrun_is_killed_over_hosts),
    ("strangers_at_the_gate", strangers_at_the_gate),
    ("a_range_of_ports", a_range_of_ports),
    ("strict_jobs", strict_jobs),
    ("another_launcher", another_launcher),
];

pub const WITH_NEEDS: &[(Need, Case)] = &[
    (Need::Mpicc, ("an_mpich_program_over_hosts", an_mpich_program_over_hosts)),
    (Need::Hosts, ("hosts_that_have_ipv6_alone", hosts_that_have_ipv6_alone)),
];

/// A remote command that starts what it is given here, with `$FAKE_HOST` set; what `first` says is done before.
pub struct Pretend {
    dir: tempfile::TempDir,
}

impl Pretend {
    pub fn new(first: &str) -> Self {
        let pretend = Self { dir: tempfile::tempdir().expect("a directory") };
        let script = format!("#!/bin/sh\nexport FAKE_HOST=$1\nshift\n{first}\nexec sh -c \"$*\"\n");
        std::fs::write(pretend.command(), script).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(pretend.command(), mode).expect("set");
        pretend
    }

    fn command(&self) -> String {
        self.dir.path().join("rsh").display().to_string()
    }

    pub fn gasrun(&self, hosts: &str, words: &[&str]) -> Command {
        let mut command = gasrun(&[&["--hosts", hosts, "--rsh", &self.command()], words].concat());
        // These hosts share the processors of one machine, so that one may be silent for long beside other tests.
        command.env("GASWORKS_LOST_AFTER", LOST_AFTER.to_string());
        command
    }

    pub fn run(&self, hosts: &str, words: &[&str]) -> Output {
        self.gasrun(hosts, words).output().expect("gasrun starts")
    }
}

pub fn me() -> String {
    std::env::current_exe().expect("a path").display().to_string()
}

fn sorted(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = out(output).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn hosts_have_their_ranks() {
    let pretend = Pretend::new("");
    let script = "echo $PMI_RANK of $PMI_SIZE at $FAKE_HOST";
    let output = pretend.run("a,b:2,c", &["-n", "4", "--label", "sh", "-c", script]);
    expect(&output, 0, &[]);
    assert_eq!(sorted(&output), ["[0] 0 of 4 at a", "[1] 1 of 4 at b", "[2] 2 of 4 at b", "[3] 3 of 4 at c"]);
    let file = pretend.dir.path().join("hosts");
    std::fs::write(&file, "# two\na slots=2\nb\n").expect("written");
    let rsh = pretend.command();
    let words = ["--hostfile", file.to_str().expect("text"), "-n", "3", "sh", "-c", script];
    let output = gasrun(&words).env("GASWORKS_RSH", &rsh).output().expect("started");
    assert_eq!(sorted(&output), ["0 of 3 at a", "1 of 3 at a", "2 of 3 at b"], "{}", err(&output));
    let output = pretend.run("a,b", &["--ppn", "2", "-n", "5", "sh", "-c", script]);
    assert_eq!(sorted(&output), ["0 of 5 at a", "1 of 5 at a", "2 of 5 at b", "3 of 5 at b", "4 of 5 at a"]);
    let script = "echo $PMI_RANK: $MPI_LOCALRANKID of $MPI_LOCALNRANKS";
    let output = pretend.run("a,b:2", &["-n", "3", "sh", "-c", script]);
    assert_eq!(sorted(&output), ["0: 0 of 1", "1: 0 of 2", "2: 1 of 2"]);
    for (hosts, wanted) in
        [("a:0", "wanted a whole number from 1"), ("a;b", "no name of a host"), ("", "empty")]
    {
        expect(&pretend.run(hosts, &["true"]), 2, &[wanted]);
    }
}

/// In a network where nothing has an address of the older kind; agents are told where their parent is, and come.
fn hosts_that_have_ipv6_alone() {
    const NETWORK: &str =
        "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; ip address delete 127.0.0.1/8 dev lo
        ip link add one type veth peer name two; ip link set one up; ip link set two up
        for n in 1 2 3; do ip address add fd78::$n/64 dev one nodad; done; exec \"$@\"";
    let pretend = Pretend::new("");
    let script = "echo $PMI_RANK at $FAKE_HOST";
    let command = pretend.gasrun("[fd78::1],[fd78::2]:2,[fd78::3]", &["-n", "4", "sh", "-c", script]);
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--net", "sh", "-ec", NETWORK, "sh"]);
    unshare.arg(command.get_program()).args(command.get_args());
    let output = unshare.output().expect("started");
    expect(&output, 0, &[]);
    assert_eq!(sorted(&output), ["0 at fd78::1", "1 at fd78::2", "2 at fd78::2", "3 at fd78::3"]);
}

fn ranks_elsewhere_are_as_here() {
    let pretend =
        Pretend::new("unset GASNET_X_TEST GASWORKS_X_TEST PLAIN NAMED; cd /; umask 0; ulimit -Sc 0");
    let dir = pretend.dir.path().join("a directory");
    std::fs::create_dir(&dir).expect("made");
    let script =
        "pwd; umask; ulimit -Sn; ulimit -Sc; echo $GASNET_X_TEST $GASWORKS_X_TEST ${PLAIN-no} $NAMED $VALUED";
    let words = ["-x", "NAMED", "-x", "VALUED=a b", "-x", "ABSENT", "sh", "-c", script];
    let command = pretend.gasrun("a", &words);
    // The limits are those of the shell that starts gasrun.
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "umask 027; ulimit -Sn 321; ulimit -Sc 7 2>/dev/null; ulimit -Sc >core; exec \"$0\" \"$@\"",
    ]);
    shell.arg(command.get_program()).args(command.get_args()).current_dir(&dir).stdin(Stdio::null());
    shell.envs([("GASNET_X_TEST", "one"), ("GASWORKS_X_TEST", "two"), ("PLAIN", "x"), ("NAMED", "three")]);
    let output = shell.output().expect("started");
    expect(&output, 0, &[]);
    let core = std::fs::read_to_string(dir.join("core")).expect("a limit");
    let wanted = format!("{}\n0027\n321\n{core}one two no three a b\n", dir.display());
    assert_eq!(out(&output), wanted);
    // A directory that is not there.
    let gone = pretend.dir.path().join("gone");
    let pretend = Pretend::new(&format!("rmdir {}", gone.display()));
    std::fs::create_dir(&gone).expect("made");
    let output = pretend.gasrun("a,b", &["-n", "1", "true"]).current_dir(&gone).output().expect("started");
    expect(&output, 1, &["enter the working directory", "gone", "on a"]);
}

fn values_are_exchanged_between_hosts() {
    let pretend = Pretend::new("");
    for ranks in ["1", "2", "7"] {
        for port in [&[][..], &["--pmi-port"]] {
            let action = if port.is_empty() { "exchange" } else { "port-one" };
            if !port.is_empty() && ranks == "1" {
                continue;
            }
            let output = pretend.run("a,b:2,c", &[port, &["-n", ranks, &me(), "rank", action]].concat());
            expect(&output, 0, &[]);
            assert_eq!(out(&output).lines().count().to_string(), ranks, "{}", out(&output));
        }
    }
    let listed = pretend.run("a,b:2,c", &["-n", "5", "--pmi-port", &me(), "rank", "port-mapping"]);
    let mapping = "(vector,(0,1,1),(1,1,2),(2,1,1),(0,1,1))";
    assert_eq!(out(&listed).lines().filter(|line| line.ends_with(mapping)).count(), 5, "{}", out(&listed));
}

fn failures_name_rank_and_host() {
    let pretend = Pretend::new("");
    for (action, code, what) in [
        ("exit-between-fences", 7, ""),
        ("die-at-once", 137, "was killed by signal 9 (SIGKILL)"),
        ("die-between-fences", 137, "was killed by signal 9 (SIGKILL)"),
        ("quit-between-fences", 1, "exited with code 0 without finalize"),
        ("absent", 1, "has ended, and rank "),
        ("early-end", 1, "has ended, and rank "),
        ("abort", 42, "aborted the job: no, moreof this"),
        ("garbage", 1, "does not keep to PMI"),
    ] {
        let (key, entry) = mark("HOSTS");
        let mut command = pretend.gasrun("a,b,c", &["-n", "3", "-x", &key, &me(), "rank", action]);
        let output = command.env(&key, "1").output().expect("started");
        // Who ends the job with a code has said why.
        let words = ["rank 1 (", " on b)", what];
        expect(&output, code, if what.is_empty() { &[] } else { &words });
        expect_nobody(&entry, Duration::from_secs(2));
    }
    let output =
        pretend.run("a,b", &["-n", "2", "--timeout", "0.5", "sh", "-c", "test $PMI_RANK = 0 || sleep 100"]);
    expect(&output, 124, &["did not end within 0.5 s: still running: rank 1"]);
    expect(&pretend.run("a,b", &["-n", "2", "no-such-program-here"]), 127, &["looked for in PATH", " on "]);
}

fn agents_that_do_not_come() {
    let words = ["-n", "2", "true"];
    let run = |rsh: &str| {
        gasrun(&[&["--hosts", "a,b", "--rsh", rsh], &words[..]].concat()).output().expect("started")
    };
    expect(&run("/no/such/command"), 1, &["start /no/such/command for host a"]);
    expect(&run("false"), 1, &["is lost: the remote command exited with code 1 before the agent came"]);
    assert_eq!(run("'").status.code(), Some(2));
    // As ssh ends, and as a shell does that does not find gasrun.
    expect(
        &run("sh -c 'exit 255' x"),
        1,
        &["is lost", " (to see by hand why: sh -c 'exit 255' x ", " true)"],
    );
    let there = format!(" (gasrun is to be there as {})", env!("CARGO_BIN_EXE_gasrun"));
    expect(&run("sh -c 'exit 127' x"), 1, &["is lost", &there]);
    // One comes late, when the job has failed, and one hangs when gasrun is told to end.
    let (key, entry) = mark("LATE");
    let pretend = Pretend::new("test $FAKE_HOST = a || { sleep 0.5; exit 1; }");
    let output =
        pretend.gasrun("a,b", &["-n", "2", "sleep", "100"]).env(&key, "1").output().expect("started");
    expect(&output, 1, &["host b is lost: the remote command exited with code 1"]);
    let pretend = Pretend::new("test $FAKE_HOST = a || sleep 1");
    let script = "test $PMI_RANK = 1 || exit 7; sleep 100";
    let output = pretend.gasrun("a,b", &["-n", "2", "sh", "-c", script]).env(&key, "1").output();
    expect(&output.expect("started"), 7, &["rank 0 (pid ", " on a) exited with code 7"]);
    let pretend = Pretend::new("test $FAKE_HOST = a || sleep 100");
    let words = ["-n", "2", "sh", "-c", "echo up; exec sleep 100"];
    let (child, _reader) = started(pretend.gasrun("a,b", &words).env(&key, "1"), 1);
    kill(pid(&child), Signal::SIGTERM).expect("sent");
    expect(&child.wait_with_output().expect("ended"), 143, &["ended by SIGTERM while it started"]);
    expect_nobody(&entry, Duration::from_secs(5));
    // Somebody calls it by hand.
    let output = gasrun(&["--agent"]).output().expect("started");
    expect(&output, 1, &["begin as an agent", "for gasrun itself"]);
    let mut child =
        gasrun(&["--agent"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let zeros = "0".repeat(32);
    let ticket = format!("gasrun-agent-1\n1\n{zeros}\n{zeros}\nnonsense\n\n");
    child.stdin.take().expect("a pipe").write_all(ticket.as_bytes()).expect("written");
    assert_eq!(child.wait_with_output().expect("ended").status.code(), Some(1));
}

fn a_tree_of_agents() {
    // More than one process starts itself.
    let pretend = Pretend::new("");
    let hosts: Vec<String> = (0..19).map(|i| format!("h{i}")).collect();
    let words = ["-n", "19", &me(), "rank", "exchange"];
    let output = pretend.run(&hosts.join(","), &words);
    expect(&output, 0, &[]);
    assert_eq!(out(&output).lines().count(), 19);
    // A failure at the far end, and an abort.
    let words = ["-n", "19", "sh", "-c", "test $PMI_RANK != 18 || exit 9; sleep 100"];
    expect(&pretend.run(&hosts.join(","), &words), 9, &["rank 18 (pid ", " on h18) exited with code 9"]);
}

fn streams_over_hosts() {
    let pretend = Pretend::new("");
    let script =
        "i=0; while [ $i -lt 2000 ]; do echo $PMI_RANK-----------------------------$i; i=$((i+1)); done";
    let output = pretend.run("a,b", &["-n", "4", "sh", "-c", script]);
    expect(&output, 0, &[]);
    let text = out(&output);
    for rank in 0..4 {
        let own: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{rank}-"))).collect();
        let strange = own.iter().zip(0..).find(|(line, i)| !line.ends_with(&format!("-{i}")));
        assert_eq!((own.len(), strange), (2000, None), "rank {rank}");
    }
    // Standard input goes to rank 0, which may be slow.
    feed(&mut pretend.gasrun("a,b", &["-n", "2", "--label", "sh", "-c", "sleep 0.3; exec cat"]));
    // A slow reader, and one that goes away.
    let gasrun = format!("{} --hosts a,b --rsh {} -n 2", env!("CARGO_BIN_EXE_gasrun"), pretend.command());
    let shell = |script: &str| Command::new("sh").args(["-c", script]).output().expect("started");
    let output = shell(&format!("{gasrun} head -c 5000000 /dev/zero | (sleep 0.5; wc -c)"));
    assert_eq!(out(&output).trim(), "10000002", "{}", err(&output));
    assert_eq!(out(&shell(&format!("{gasrun} yes | head -n 1"))), "y\n");
}

/// Starts a job and waits until each rank has said a word.
fn started(command: &mut Command, ranks: usize) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    for rank in 0..ranks {
        if reader.read_line(&mut String::new()).expect("a line") == 0 {
            let output = child.wait_with_output().expect("ended");
            panic!("it ended when {rank} of {ranks} ranks had said something: {}", err(&output));
        }
    }
    (child, reader)
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid"))
}

fn signals_over_hosts() {
    let pretend = Pretend::new("");
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut command = pretend.gasrun("a,b", &["-n", "3", "sh", "-c", "echo up; exec sleep 100"]);
        let (child, _reader) = started(&mut command, 3);
        kill(pid(&child), signal).expect("sent");
        let output = child.wait_with_output().expect("ended");
        expect(&output, 128 + signal as i32, &[&format!("the job was ended by signal {}", signal as i32)]);
    }
    let script = "trap 'echo got $PMI_RANK; exit 0' USR2; echo up; while :; do sleep 0.02; done";
    let (child, mut reader) = started(&mut pretend.gasrun("a,b", &["-n", "3", "sh", "-c", script]), 3);
    kill(pid(&child), Signal::SIGUSR2).expect("sent");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    assert_eq!(text.lines().filter(|line| line.starts_with("got ")).count(), 3, "{text}");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    // A second order to end is carried out.
    let script = "trap '' INT; echo up; sleep 100; sleep 100";
    let (child, _reader) = started(&mut pretend.gasrun("a,b", &["-n", "2", "sh", "-c", script]), 2);
    kill(pid(&child), Signal::SIGINT).expect("sent");
    std::thread::sleep(Duration::from_millis(400));
    kill(pid(&child), Signal::SIGINT).expect("sent");
    expect(&child.wait_with_output().expect("ended"), 130, &["a second signal came (SIGINT)"]);
}

/// The processes that are agents of a job whose environment has `entry`.
fn agents(entry: &str) -> Vec<i32> {
    let is_agent = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&b| b == 0).collect();
        // A guardian is a copy of its agent, and has a session of its own.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let session =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(3)?.parse().ok());
        words.get(1) == Some(&&b"--agent"[..]) && session != Some(*pid)
    };
    marked(entry).into_iter().filter(is_agent).collect()
}

/// The agent of a host that is pretended, of a job whose environment has `entry`.
pub fn agent_of(host: &str, entry: &str) -> Pid {
    let there = marked(&format!("FAKE_HOST={host}"));
    Pid::from_raw(agents(entry).into_iter().find(|pid| there.contains(pid)).expect("an agent"))
}

fn an_agent_is_killed() {
    let pretend = Pretend::new("");
    let (key, entry) = mark("AGENT");
    let script = "sleep 100 & echo up; exec sleep 100";
    let mut command = pretend.gasrun("a,b,c", &["-n", "6", "--ppn", "2", "sh", "-c", script]);
    let (child, _reader) = started(command.env(&key, "1"), 6);
    let found = agents(&entry);
    assert_eq!(found.len(), 3);
    kill(Pid::from_raw(found[1]), Signal::SIGKILL).expect("killed");
    let output = child.wait_with_output().expect("ended");
    // These hosts are one machine: what is left of the agent ends all that carries the job's name, and that may be heard
    // of first.
    match output.status.code() {
        Some(137) => expect(&output, 137, &["was killed by signal 9"]),
        _ => expect(&output, 1, &["gasrun: host ", " is lost"]),
    }
    expect_nobody(&entry, Duration::from_secs(5));
}

/// Seconds that a pretended host may be silent before it is lost, and longer than that.
const LOST_AFTER: u64 = 3;
const SILENCE: Duration = Duration::from_millis(3500);

/// Of a process that is stopped its system still acknowledges what it is sent: it is not lost, be it an agent or `gasrun`.
fn nodes_that_are_stopped_are_waited_for() {
    let pretend = Pretend::new("");
    let (key, entry) = mark("SILENT");
    let script = "echo up; read line; echo $line $PMI_RANK; sleep 0.1";
    let mut command = pretend.gasrun("a,b", &["-n", "2", "sh", "-c", script]);
    let (child, mut reader) = started(command.env(&key, "1"), 2);
    for stopped in [agents(&entry)[1], child.id() as i32] {
        let script = format!("kill -STOP {stopped}; sleep {}; kill -CONT {stopped}", SILENCE.as_secs_f64());
        let done = Command::new("sh").args(["-c", &script]).status().expect("started");
        assert!(done.success());
    }
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    assert_eq!(text.lines().count(), 2, "{text}");
    expect_nobody(&entry, Duration::from_secs(5));
}

/// Ctrl-Z: `gasrun` stops, with it the ranks on all hosts, and they go on when it does.
fn a_job_over_hosts_is_suspended() {
    let pretend = Pretend::new("");
    let script = "echo up; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; echo $i; done";
    let (child, mut reader) = started(&mut pretend.gasrun("a,b", &["-n", "2", "sh", "-c", script]), 2);
    crate::cases::suspended(pid(&child).as_raw(), SILENCE);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    assert_eq!(text.lines().count(), 20, "{text}");
}

fn nothing_is_left_when_gasrun_is_killed_over_hosts() {
    let pretend = Pretend::new("");
    let (key, entry) = mark("ROOT");
    let mut command = pretend.gasrun("a,b", &["-n", "4", "sh", "-c", "sleep 100 & echo up; exec sleep 100"]);
    let (mut child, _reader) = started(command.env(&key, "1"), 4);
    child.kill().expect("killed");
    child.wait().expect("ended");
    expect_nobody(&entry, Duration::from_secs(10));
}

fn strangers_at_the_gate() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go").display().to_string();
    let pretend = Pretend::new(&format!("until test -e {go}; do sleep 0.02; done"));
    let mut job = pretend
        .gasrun("a,b", &["-v", "-n", "2", "echo", "done"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut reader = BufReader::new(job.stderr.take().expect("a pipe"));
    let mut text = String::new();
    let port: u16 = loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("read") > 0, "no port was told");
        text.push_str(&line);
        if let Some((_, port)) = line.trim_end().split_once("are to come to port ") {
            break port.parse().expect("a port");
        }
    };
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
    for _ in 0..20 {
        drop(connect());
    }
    let zeros = "0".repeat(32);
    for text in [format!("gasrun1\n{zeros}\u{1}\0\0\0"), "x".repeat(5000), "GET / HTTP/1.1\r\n".repeat(9)] {
        let mut stream = connect();
        stream.write_all(text.as_bytes()).expect("sent");
        assert!(is_sent_away(stream, 20));
    }
    // One that says less than a cookie has its time.
    let start = Instant::now();
    let mut silent = connect();
    silent.write_all(b"gasrun1\n").expect("sent");
    assert!(is_sent_away(silent, 20) && start.elapsed() >= Duration::from_secs(4));
    std::fs::write(&go, "").expect("written");
    reader.read_to_string(&mut text).expect("read");
    let output = job.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(0), "done\ndone\n"), "{text}");
    for wanted in ["does not know the job's cookie", "showed no cookie within 5 s", "sent away 24 strangers"]
    {
        assert!(text.contains(wanted), "{text} should say {wanted}");
    }
}

fn a_range_of_ports() {
    let pretend = Pretend::new("");
    // A range that is taken is told of; one that has room is used.
    let taken = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let mut command = pretend.gasrun("a", &["true"]);
    let output = command.env("GASWORKS_PORT_RANGE", format!("{port}:{port}")).output().expect("started");
    expect(&output, 1, &["listen for agents"]);
    drop(taken);
    let mut command = pretend.gasrun("a,b", &["-v", "-n", "2", "true"]);
    let (low, high) = (port.min(65_000), port.min(65_000) + 300);
    let output = command.env("GASWORKS_PORT_RANGE", format!("{low}:{high}")).output().expect("started");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = err(&output);
    let used = text.lines().find_map(|line| line.split_once("come to port ")?.1.trim().parse::<u16>().ok());
    assert!(used.is_some_and(|used| (low..=high).contains(&used)), "{text}");
    let mut command = pretend.gasrun("a", &["true"]);
    let output = command.env("GASWORKS_PORT_RANGE", "9:1").output().expect("started");
    expect(&output, 1, &["GASWORKS_PORT_RANGE"]);
}

fn strict_jobs() {
    for hosts in [&[][..], &["--hosts", "a,b"]] {
        let pretend = Pretend::new("");
        let rsh = pretend.command();
        let words = [hosts, &["--rsh", &rsh, "--strict", "-n", "2"]].concat();
        let run = |program: &[&str]| gasrun(&[&words[..], program].concat()).output().expect("started");
        // Killed at once: no trap is heard.
        let script = "trap 'echo heard' TERM; test $PMI_RANK = 0 && exit 0; sleep 100; sleep 100";
        let output = run(&["sh", "-c", script]);
        expect(&output, 1, &["rank 0 (pid ", "exited with code 0 without finalize"]);
        assert_eq!(out(&output), "");
        expect(&run(&[&me(), "rank", "fence-all"]), 0, &[]);
    }
}

fn an_mpich_program_over_hosts() {
    let (_dir, ring) = mpich("ring");
    let pretend = Pretend::new("");
    for way in [&[][..], &["--pmi-port"]] {
        let output = pretend.run("a,b", &[way, &["-n", "4", "--ppn", "2", &ring]].concat());
        expect(&output, 0, &[]);
        assert_eq!(out(&output).lines().filter(|line| line.ends_with("sum 6, word 4711")).count(), 4);
    }
}

fn another_launcher() {
    let run =
        |template: &str, words: &[&str]| gasrun(words).env("PMIRUN_CMD", template).output().expect("started");
    let output = run("srun -K0 -W60 %V -mblock -n %N %C", &["--dry-run", "-v", "-n", "6", "prog", "a b"]);
    assert_eq!(out(&output), "srun -K0 -W60 -v -mblock -n 6 prog 'a b'\n");
    assert_eq!(out(&run("aprun", &["--dry-run", "-n", "2", "prog"])), "aprun -n 2 prog\n");
    // It becomes that launcher: output and code are its own.
    let output = run("sh -c 'echo \"$@\"; exit 3' x %N %C", &["-n", "5", "prog", "-q"]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(3), "5 prog -q\n"));
    expect(&run("no-such-launcher %C", &["prog"]), 2, &["start the job by PMIRUN_CMD: no-such-launcher"]);
    // It leads back here, by a program between.
    let round = format!("sh -c '{} -n \"$@\"' x %N %C", env!("CARGO_BIN_EXE_gasrun"));
    expect(&run(&round, &["prog"]), 2, &["leads back to gasrun, and starts no ranks"]);
    expect(&run("srun -n %N", &["prog"]), 2, &["has no %C"]);
    expect(&run("srun", &["--hosts", "a", "prog"]), 2, &["--hosts is for jobs that gasrun starts itself"]);
    let output =
        gasrun(&["--dry-run", "--hosts", "a,b", "-n", "3", "--ppn", "2", "prog"]).output().expect("started");
    let text = out(&output);
    assert!(
        text.starts_with("ssh -o BatchMode=yes a ")
            && text.contains(" --agent, which starts as ranks 0-1: prog\nssh -o BatchMode=yes b "),
        "{text}"
    );
    assert_eq!(out(&gasrun(&["--dry-run", "-n", "3", "prog"]).output().expect("started")), "3 times: prog\n");
}
