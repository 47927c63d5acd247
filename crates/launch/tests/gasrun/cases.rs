//! The cases.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use gasworks_testkit::Need;

use crate::harness::Case;

pub const CASES: &[Case] = &[
    ("codes", codes),
    ("labels", labels),
    ("lines_stay_whole", lines_stay_whole),
    ("standard_input", standard_input),
    ("a_terminal", a_terminal),
    ("a_question", a_question),
    ("a_terminal_that_stops_writers", a_terminal_that_stops_writers),
    ("a_rank_that_reads_the_terminal", a_rank_that_reads_the_terminal),
    ("what_is_typed_ahead", what_is_typed_ahead),
    ("a_job_is_suspended", a_job_is_suspended),
    ("addresses", addresses),
    ("environment", environment),
    ("binding", binding),
    ("many_ranks", many_ranks),
    ("a_process_is_in_a_thousand_jobs", a_process_is_in_a_thousand_jobs),
    ("a_closed_reader", a_closed_reader),
    ("a_slow_reader", a_slow_reader),
    ("nobody_reads", nobody_reads),
    ("full_streams", full_streams),
    ("not_startable", not_startable),
    ("timeout", timeout),
    ("stubborn_ranks", stubborn_ranks),
    ("signals_are_passed_on", signals_are_passed_on),
    ("a_signal_is_not_ignored_for_ever", a_signal_is_not_ignored_for_ever),
    ("values_are_exchanged", values_are_exchanged),
    ("without_a_launcher", without_a_launcher),
    ("failures_name_the_rank", failures_name_the_rank),
    ("the_owner_of_given_memory_is_killed", the_owner_of_given_memory_is_killed),
    ("hostile_ranks", hostile_ranks),
    ("nothing_is_left_at_the_end", nothing_is_left_at_the_end),
    ("a_chattering_leftover", a_chattering_leftover),
    ("nothing_is_left_after_a_failure", nothing_is_left_after_a_failure),
    ("nothing_is_left_when_gasrun_is_killed", nothing_is_left_when_gasrun_is_killed),
    ("no_daemon_is_left_when_gasrun_is_killed", no_daemon_is_left_when_gasrun_is_killed),
];

pub const WITH_NEEDS: &[(Need, Case)] =
    &[(Need::MemoryGroup, ("a_rank_killed_for_memory", a_rank_killed_for_memory))];

/// `gasrun` as a shell starts it in the foreground: where this program was started in the background, it ignores
/// interrupts, and `gasrun` would, too.
pub fn gasrun(words: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,QUIT", env!("CARGO_BIN_EXE_gasrun")])
        .args(words)
        .stdin(Stdio::null());
    command
}

pub fn run(words: &[&str]) -> Output {
    gasrun(words).output().expect("gasrun starts")
}

fn shell(ranks: &str, script: &str) -> Output {
    run(&["-n", ranks, "sh", "-c", script])
}

/// Runs this program as the ranks of a job.
fn act(ranks: &str, action: &str) -> Output {
    let me = std::env::current_exe().expect("a path");
    run(&["-n", ranks, me.to_str().expect("text"), "rank", action])
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub fn expect(output: &Output, code: i32, words: &[&str]) {
    let text = err(output);
    assert_eq!(output.status.code(), Some(code), "said: {text}");
    for word in words {
        assert!(text.contains(word), "{text:?} should say {word:?}");
    }
    let told = text.lines().filter(|line| line.starts_with("gasrun: ")).count();
    assert_eq!(told, usize::from(!words.is_empty()), "one message, if any: {text}");
}

/// Whose descriptors, threads, mappings and memory are as many after them as before.
fn a_process_is_in_a_thousand_jobs() {
    let me = std::env::current_exe().expect("a path");
    expect(&run(&["-n", "2", me.to_str().expect("text"), "program", "again"]), 0, &[]);
}

fn codes() {
    expect(&shell("3", "exit 0"), 0, &[]);
    expect(
        &shell("3", "test $PMI_RANK != 1 || exit 7; sleep 100"),
        7,
        &["rank 1 (pid ", ") exited with code 7"],
    );
    let killed = shell("3", "test $PMI_RANK != 2 || kill -9 $$; sleep 100");
    expect(&killed, 137, &["rank 2 (pid ", "was killed by signal 9 (SIGKILL)"]);
    assert!(!err(&killed).contains("lack of memory"));
    expect(&shell("1", "exit 3"), 3, &["rank 0 (pid "]);
    expect(&shell("2", "kill -SEGV $$"), 139, &["was killed by signal 11 (SIGSEGV)"]);
}

fn labels() {
    let output = run(&["-n", "3", "--label", "sh", "-c", "echo a $PMI_RANK; printf 'no end'; echo e >&2"]);
    let text = out(&output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] a 0", "[0] no end", "[1] a 1", "[1] no end", "[2] a 2", "[2] no end"]);
    assert_eq!(err(&output).lines().filter(|line| line.ends_with("] e")).count(), 3);
    assert_eq!(out(&run(&["-n", "1", "printf", "as it is"])), "as it is");
    assert_eq!(out(&run(&["-n", "1", "--label", "printf", "x"])), "[0] x\n");
}

fn lines_stay_whole() {
    let script =
        "i=0; while [ $i -lt 2000 ]; do echo $PMI_RANK-----------------------------$i; i=$((i+1)); done";
    let text = out(&shell("4", script));
    for rank in 0..4 {
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{rank}-"))).collect();
        assert_eq!(own.len(), 2000);
        let numbered = own.iter().enumerate().all(|(i, line)| line.ends_with(&format!("-{i}")));
        assert!(numbered, "lines of rank {rank} are torn or out of order");
    }
    assert_eq!(text.lines().count(), 8000);
}

fn standard_input() {
    feed(&mut gasrun(&["-n", "3", "--label", "cat"]));
}

/// Gives a job a long standard input, which rank 0 is to write out, labelled.
pub fn feed(job: &mut Command) {
    let mut child = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let text: String = (0..30_000).map(|i| format!("line {i}\n")).collect();
    let (mut pipe, sent) = (child.stdin.take().expect("a pipe"), text.clone());
    let writer = std::thread::spawn(move || pipe.write_all(sent.as_bytes()).expect("written"));
    let output = child.wait_with_output().expect("ended");
    writer.join().expect("no panic");
    let wanted: String = text.lines().map(|line| format!("[0] {line}\n")).collect();
    assert!(out(&output) == wanted, "rank 0 gets the input, nobody else");
}

/// Programs pass addresses of what they do not share: they are the same in all ranks, unless that is not wanted.
fn addresses() {
    let script = "exec grep -e ' r-xp ' -e ' rw-p ' /proc/self/maps | grep -v -e stack -e vvar";
    let laid_out = |wanted: &str| {
        let mut command = gasrun(&["-n", "2", "--label", "sh", "-c", script]);
        let output = command.env("GASWORKS_RANDOMIZE", wanted).output().expect("started");
        expect(&output, 0, &[]);
        let text = out(&output);
        let of = |label: &str| text.lines().filter_map(|line| line.strip_prefix(label)).collect::<Vec<_>>();
        let [first, second] = ["[0] ", "[1] "].map(of).map(|lines| lines.join("\n"));
        assert!(first.contains("grep") && second.contains("grep"), "{text}");
        first == second
    };
    assert!(laid_out("0"));
    assert!(!laid_out("1"));
}

fn environment() {
    let script = "echo $PMI_RANK $PMI_ID $PMI_SIZE ${PMI_PORT-none} $MPI_LOCALRANKID/$MPI_LOCALNRANKS; test -n \"$PMI_JOBID\" && test -S /proc/self/fd/$PMI_FD";
    let output = gasrun(&["-n", "2", "sh", "-c", script])
        .envs([("PMI_PORT", "host:1"), ("MPI_LOCALNRANKS", "9")])
        .output()
        .expect("started");
    expect(&output, 0, &[]);
    let mut lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["0 0 2 none 0/2", "1 1 2 none 1/2"]);
    // No other socket goes to the ranks than their own, and to rank 0 that by which the others find it; nothing of gasrun's; and
    // no signal is blocked in them.
    let text = out(&shell("3", "grep SigBlk /proc/self/status; exec ls -l /proc/self/fd"));
    assert_eq!(text.lines().filter(|line| line.contains("-> socket:")).count(), 4, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(".meeting (deleted)")).count(), 2, "{text}");
    assert!(!text.contains("anon_inode"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with("0000000000000000")).count(), 3, "{text}");
    let table = out(&run(&["--env"]));
    assert!(table.contains("GASWORKS_BOOTSTRAP_TIMEOUT = 60 (default)") && table.contains("PMI_FD = unset"));
    let wrong =
        [("GASNET_SPAWN_VERBOSE", "perhaps"), ("GASWORKS_BOOTSTRAP_TIMEOUT", "0"), ("PMI_RANK", "-1")];
    let table = out(&gasrun(&["--env"]).envs(wrong).output().expect("started"));
    for line in [
        "GASWORKS_SPAWN_VERBOSE = perhaps (set as GASNET_SPAWN_VERBOSE) (wrong: wanted 0 or 1)",
        "GASWORKS_BOOTSTRAP_TIMEOUT = 0 (set) (wrong: wanted a number of seconds from 0.1 to 1000000000)",
        "PMI_RANK = -1 (set) (wrong: wanted a whole number from 0 to 2147483647)",
    ] {
        assert!(table.lines().any(|l| l == line), "{table} should say {line}");
    }
    assert_eq!(table.matches("(wrong: ").count(), 3, "{table}");
    let output = gasrun(&["true"]).env("GASNET_SPAWN_VERBOSE", "perhaps").output().expect("started");
    expect(&output, 1, &["setting GASNET_SPAWN_VERBOSE=\"perhaps\": wanted 0 or 1"]);
    let output = gasrun(&["true"]).env("GASNET_SPAWN_VERBOSE", "1").output().expect("started");
    assert!(err(&output).contains("gasrun: started rank 0 as process "));
}

fn binding() {
    let allowed = gasworks_os::affinity::allowed().expect("processors");
    let list = "grep Cpus_allowed_list /proc/self/status";
    let text = out(&run(&["-n", "1", "--bind", "core", "sh", "-c", list]));
    assert_eq!(text.split_ascii_whitespace().last(), Some(allowed[0].to_string().as_str()));
    let more = (allowed.len() + 1).to_string();
    expect(&run(&["-n", &more, "--bind", "core", "true"]), 2, &["too few; use --bind none"]);
    let (free, bound) = (
        out(&run(&["-n", &more, "sh", "-c", list])),
        out(&run(&["-n", "1", "--bind", "none", "sh", "-c", list])),
    );
    assert!(free.lines().all(|line| line == bound.trim_end()), "{free} {bound}");
    // What is not asked for keeps nobody from moving: a rank's threads, nor the ranks of two jobs.
    let ranks = allowed.len().to_string();
    let begun = out(&run(&["-n", &ranks, "sh", "-c", list]));
    assert!(begun.lines().all(|line| line == bound.trim_end()), "{begun} {bound}");
}

fn many_ranks() {
    let output = run(&["-n", "300", "sh", "-c", "echo $PMI_RANK"]);
    expect(&output, 0, &[]);
    assert_eq!(out(&output).lines().count(), 300);
    assert_eq!(run(&["-n", "4097", "true"]).status.code(), Some(2));
    assert_eq!(run(&["-n", "0", "true"]).status.code(), Some(2));
    let script = format!("ulimit -n 100 && exec {} -n 50 true", env!("CARGO_BIN_EXE_gasrun"));
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    expect(&output, 1, &["start 50 ranks: that takes 214 open descriptors", "is 100"]);
    let script = format!("ulimit -Sn 100 && exec {} -n 50 sh -c 'ulimit -n'", env!("CARGO_BIN_EXE_gasrun"));
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    assert!(out(&output).lines().all(|line| line == "100") && output.status.success(), "{}", err(&output));
}

fn a_closed_reader() {
    let script = format!("{} -n 2 yes | head -n 1", env!("CARGO_BIN_EXE_gasrun"));
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    assert_eq!(out(&output), "y\n");
}

fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device").into()
}

fn full_streams() {
    const LOST: &str = "gasrun: write standard output: No space left on device";
    // The ranks have ended well when it comes out, or are stopped by it; or fail by themselves, which comes first.
    for (script, code) in [("echo x", 1), ("yes", 1), ("echo x; exit 7", 7)] {
        let mut command = gasrun(&["-n", "2", "sh", "-c", script]);
        let output = command.stdout(full()).output().expect("started");
        let text = err(&output);
        assert_eq!(text.matches(LOST).count(), 1, "{script}: {text}");
        // What is written and what ends are seen in any order.
        assert!([Some(code), Some(1)].contains(&output.status.code()), "{script}: {text}");
        assert!(text.lines().count() <= 2, "{script}: {text}");
    }
    let output = gasrun(&["--env"]).stdout(full()).output().expect("started");
    assert!(output.status.code() == Some(1) && err(&output).starts_with(LOST), "{}", err(&output));
    // Without standard error nothing can be told but the code.
    let ended = |words: &[&str]| gasrun(words).stderr(full()).status().expect("started").code();
    assert_eq!(ended(&["-n", "2", "sh", "-c", "echo x >&2"]), Some(1));
    assert_eq!(ended(&["-n", "2", "no-such-program-here"]), Some(127));
    assert_eq!(ended(&["-n", "2", "sh", "-c", "exit 7"]), Some(7));
}

fn a_slow_reader() {
    // Ten megabytes through a reader that sleeps first: nothing is lost, and gasrun holds only a part of it.
    let gasrun = env!("CARGO_BIN_EXE_gasrun");
    let script = format!("{gasrun} -n 2 head -c 5000000 /dev/zero | (sleep 0.5; wc -c)");
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    // Each rank's only line has no end, and gets one.
    assert_eq!(out(&output).trim(), "10000002");
}

fn not_startable() {
    expect(
        &run(&["-n", "2", "no-such-program-here"]),
        127,
        &["start rank 0: no-such-program-here: ", "looked for in PATH"],
    );
    expect(&run(&["-n", "2", "/no/such/program"]), 127, &["start rank 0: /no/such/program: "]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("text");
    std::fs::write(&file, "text").expect("written");
    expect(&run(&["-n", "2", file.to_str().expect("text")]), 126, &["is it an executable file?"]);
    std::fs::write(&file, "#!/no/such/interpreter\n").expect("written");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    expect(&run(&["-n", "2", file.to_str().expect("text")]), 127, &["the interpreter it names is not"]);
}

fn timeout() {
    let start = Instant::now();
    let output = run(&["-n", "4", "--timeout", "0.3", "sh", "-c", "test $PMI_RANK = 1 || exec sleep 100"]);
    expect(&output, 124, &["the job did not end within 0.3 s: still running: ranks 0, 2-3"]);
    assert!(start.elapsed() >= Duration::from_millis(300));
    expect(&run(&["-n", "2", "--timeout", "30", "true"]), 0, &[]);
}

fn stubborn_ranks() {
    // Rank 0 fails when the others are deaf to SIGTERM, not before.
    let dir = tempfile::tempdir().expect("a directory");
    let script = "trap '' TERM; touch $0/$PMI_RANK; test $PMI_RANK = 0 || { sleep 100; sleep 100; }; \
                  until test -e $0/1 -a -e $0/2; do sleep 0.01; done; exit 5";
    let start = Instant::now();
    let output = run(&["-n", "3", "sh", "-c", script, dir.path().to_str().expect("text")]);
    expect(&output, 5, &["rank 0 (pid ", "exited with code 5"]);
    assert!(start.elapsed() >= Duration::from_secs(2), "they have two seconds");
}

/// Whatever ends a job ends it also where nobody reads what its ranks write.
fn nobody_reads() {
    let full = "test $PMI_RANK = 0 || (sleep 0.7; kill -9 $$) & yes; sleep 100";
    let late = "yes | head -c 300000";
    for (script, words, signal, code, says) in [
        ("yes; sleep 100".to_owned(), &[][..], Some(Signal::SIGTERM), 143, ""),
        (full.to_owned(), &[], None, 137, "was killed by signal 9"),
        ("yes; sleep 100".to_owned(), &["--timeout", "1"], None, 124, "still running"),
        // The ranks have ended, well.
        (late.to_owned(), &[], Some(Signal::SIGTERM), 143, "its output was not read"),
        (late.to_owned(), &["--timeout", "1"], None, 124, "its output is not read"),
    ] {
        let words = [words, &["-n", "2", "sh", "-c", &script]].concat();
        let start = Instant::now();
        let mut child =
            gasrun(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        // It stays open, and is not read.
        let _unread = child.stdout.take();
        std::thread::sleep(Duration::from_millis(700));
        if let Some(signal) = signal {
            kill(Pid::from_raw(child.id() as i32), signal).expect("sent");
        }
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(err(&output).contains(says), "{}", err(&output));
        assert!(start.elapsed() < Duration::from_secs(15), "{script}: {:?}", start.elapsed());
    }
}

/// `gasrun` with these words in the foreground of a terminal, of which the other side is given.
fn at_terminal(words: &[&str], stop: bool) -> (Child, std::fs::File) {
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    if stop {
        let mut settings = nix::sys::termios::tcgetattr(&terminal.slave).expect("settings");
        settings.local_flags |= nix::sys::termios::LocalFlags::TOSTOP;
        let now = nix::sys::termios::SetArg::TCSANOW;
        nix::sys::termios::tcsetattr(&terminal.slave, now, &settings).expect("set");
    }
    let slave = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
    let child = Command::new("setsid")
        .args(["-c", "-w", env!("CARGO_BIN_EXE_gasrun")])
        .args(words)
        .stdin(slave())
        .stdout(slave())
        .stderr(slave())
        .spawn()
        .expect("started");
    (child, terminal.master.into())
}

/// What a terminal shows until `wanted` is there.
fn shown(terminal: &mut std::fs::File, wanted: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    while !text.contains(wanted) {
        let mut bytes = [0; 4096];
        let count = terminal.read(&mut bytes).expect("shown");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    text
}

/// A question without the end of a line is seen, and what others say stands on lines of its own.
fn a_question() {
    let script =
        "test $PMI_RANK = 1 && { sleep 0.5; echo other; exit; }; printf 'how many? '; read n; echo $n it is";
    let (mut child, mut terminal) = at_terminal(&["-n", "2", "sh", "-c", script], false);
    shown(&mut terminal, "how many? \r\nother");
    terminal.write_all(b"three\n").expect("typed");
    shown(&mut terminal, "three it is");
    assert!(child.wait().expect("ended").success());
}

fn a_terminal_that_stops_writers() {
    for ranks in ["1", "2"] {
        let (mut child, mut terminal) = at_terminal(&["-n", ranks, "echo", "here"], true);
        shown(&mut terminal, "here");
        assert!(child.wait().expect("ended").success());
    }
}

fn a_rank_that_reads_the_terminal() {
    for ranks in ["1", "2"] {
        let (mut child, mut terminal) = at_terminal(&["-n", ranks, "sh", "-c", "read x < /dev/tty"], false);
        shown(&mut terminal, "was stopped at the terminal");
        assert_eq!(child.wait().expect("ended").code(), Some(1));
    }
}

/// With `--no-input` what is typed stays for whoever reads next.
fn what_is_typed_ahead() {
    let script = format!(
        "{} --no-input -n 2 sh -c 'read x || echo nothing; sleep 0.3'; read line; echo left: $line",
        env!("CARGO_BIN_EXE_gasrun")
    );
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let child = Command::new("setsid")
        .args(["-c", "-w", "sh", "-c", &script])
        .stdin(Stdio::from(terminal.slave))
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    std::fs::File::from(terminal.master.try_clone().expect("a copy")).write_all(b"ls\n").expect("typed");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(out(&output), "nothing\nnothing\nleft: ls\n");
}

/// Sends SIGTSTP to a `gasrun`, whose processes then all stay as they are for so long, and lets it go on.
pub fn suspended(gasrun: i32, time: Duration) {
    let of_gasrun = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next().map(str::to_owned))
    };
    kill(Pid::from_raw(gasrun), Signal::SIGTSTP).expect("sent");
    let begun = Instant::now();
    while of_gasrun(&gasrun).as_deref() != Some("T") {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not stop");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(time);
    kill(Pid::from_raw(gasrun), Signal::SIGCONT).expect("sent");
}

/// Ctrl-Z: the ranks stop with `gasrun`, go on with it, and have no less time.
fn a_job_is_suspended() {
    use std::io::Read;
    let dir = tempfile::tempdir().expect("a directory");
    let ticks = dir.path().join("ticks");
    let script = format!("echo up; for i in 1 2 3 4 5; do sleep 0.1; echo x >> {}; done", ticks.display());
    let (child, mut reader) = started(&["--timeout", "2", "-n", "1", "--label", "sh", "-c", &script], 1);
    let count = || std::fs::read(&ticks).unwrap_or_default().len();
    std::thread::scope(|scope| {
        scope.spawn(|| suspended(child.id() as i32, Duration::from_millis(2500)));
        std::thread::sleep(Duration::from_millis(800));
        let stopped = count();
        std::thread::sleep(Duration::from_millis(1000));
        assert_eq!(count(), stopped, "the rank goes on");
        assert!(stopped < 10, "it was stopped too late");
    });
    reader.read_to_string(&mut String::new()).expect("read");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    assert_eq!(count(), 10);
}

/// A terminal: what is typed goes to rank 0 although that is not in the terminal's foreground.
fn a_terminal() {
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let slave = |fd: &std::os::fd::OwnedFd| Stdio::from(fd.try_clone().expect("a descriptor"));
    let child = Command::new("setsid")
        .args(["-c", "-w", env!("CARGO_BIN_EXE_gasrun"), "-n", "2", "--label", "cat"])
        .stdin(slave(&terminal.slave))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut typed = std::fs::File::from(terminal.master);
    typed.write_all(b"one\ntwo\n\x04").expect("typed");
    let output = child.wait_with_output().expect("ended");
    assert_eq!((out(&output).as_str(), err(&output).as_str()), ("[0] one\n[0] two\n", ""));
}

/// Starts a job and waits until each rank has said a word.
fn started(words: &[&str], ranks: usize) -> (Child, std::io::BufReader<std::process::ChildStdout>) {
    use std::io::BufRead;
    let mut child = gasrun(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    for _ in 0..ranks {
        reader.read_line(&mut String::new()).expect("a line");
    }
    (child, reader)
}

fn signals_are_passed_on() {
    use std::io::Read;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        let (child, mut reader) = started(&["-n", "3", "sh", "-c", "echo up; exec sleep 100"], 3);
        kill(Pid::from_raw(child.id() as i32), signal).expect("sent");
        let output = child.wait_with_output().expect("ended");
        drop(reader.read_to_string(&mut String::new()));
        // The sleepers die of it; a signal that is no order to end is a rank's death like any other.
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{}", err(&output));
        let number = format!("by signal {}", signal as i32);
        assert!(err(&output).lines().count() == 1 && err(&output).contains(&number), "{}", err(&output));
    }
    let script = "trap 'echo got $PMI_RANK; exit 0' USR2; echo up; while :; do sleep 0.02; done";
    let (child, mut reader) = started(&["-n", "3", "sh", "-c", script], 3);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGUSR2).expect("sent");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    assert_eq!(text.lines().filter(|line| line.starts_with("got ")).count(), 3, "{text}");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    // What gasrun was told to ignore is not passed on.
    let script =
        format!("trap '' HUP; exec {} -n 2 sh -c 'echo up; exec sleep 0.5'", env!("CARGO_BIN_EXE_gasrun"));
    let child =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("started");
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut reader, &mut String::new()).expect("a line");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGHUP).expect("sent");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
    // Nor does gasrun inherit a deaf ear for its own children.
    let words = ["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_gasrun"), "-n", "2", "sh", "-c", "exit 7"];
    let output = Command::new("env").args(words).output().expect("started");
    expect(&output, 7, &["exited with code 7"]);
    // A second order to end is not passed on but carried out.
    let (child, _reader) = started(&["-n", "2", "sh", "-c", "trap '' INT; echo up; sleep 100; sleep 100"], 2);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("sent");
    std::thread::sleep(Duration::from_millis(400));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("sent");
    expect(&child.wait_with_output().expect("ended"), 130, &["a second signal came (SIGINT)"]);
    // But one that comes twice within a moment, as timeout(1) sends it, is one.
    let script = "trap 'sleep 0.5; echo done; exit 0' TERM; echo up; while :; do sleep 0.02; done";
    let (child, mut reader) = started(&["-n", "2", "sh", "-c", script], 2);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("sent");
    std::thread::sleep(Duration::from_millis(10));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("sent");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    assert_eq!(text, "done\ndone\n");
    expect(&child.wait_with_output().expect("ended"), 0, &[]);
}

fn a_signal_is_not_ignored_for_ever() {
    for (signal, name) in [(Signal::SIGTERM, "SIGTERM"), (Signal::SIGHUP, "SIGHUP")] {
        let mut child =
            gasrun(&["-n", "2", "sh", "-c", "trap '' TERM INT QUIT HUP; echo up; sleep 100; sleep 100"])
                .env("GASWORKS_EXIT_TIMEOUT", "0.4")
                .env("GASNET_EXITTIMEOUT", "0.3")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("started");
        let mut reader = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        for _ in 0..2 {
            std::io::BufRead::read_line(&mut reader, &mut String::new()).expect("a line");
        }
        let sent = Instant::now();
        kill(Pid::from_raw(child.id() as i32), signal).expect("sent");
        let output = child.wait_with_output().expect("ended");
        let wanted =
            format!("the ranks did not end within 0.4 s of {name} (GASWORKS_EXIT_TIMEOUT): killing them");
        expect(&output, 128 + signal as i32, &[&wanted]);
        assert!(sent.elapsed() >= Duration::from_millis(400), "they have the time");
    }
    let output = gasrun(&["true"]).env("GASWORKS_EXIT_TIMEOUT", "0").output().expect("started");
    expect(&output, 1, &["setting GASWORKS_EXIT_TIMEOUT=\"0\": wanted a number of seconds from 0.1"]);
}

fn values_are_exchanged() {
    for ranks in ["1", "2", "7"] {
        let output = act(ranks, "exchange");
        expect(&output, 0, &[]);
        assert_eq!(
            out(&output)
                .lines()
                .filter(|line| line.ends_with(&format!(" of {ranks} is done")))
                .count()
                .to_string(),
            ranks
        );
    }
}

fn without_a_launcher() {
    let me = std::env::current_exe().expect("a path");
    let mut command = Command::new(&me);
    command.args(["rank", "exchange"]).env_remove("PMI_FD").env_remove("PMI_SIZE");
    let output = command.output().expect("started");
    assert_eq!(out(&output), "rank 0 of 1 is done\n", "{}", err(&output));
    for (fd, rank, wanted) in [
        ("77", "0", "read PMI_FD: PMI_FD=77 is no connection to the launcher ("),
        ("0", "0", "it is not a socket"),
        ("x", "0", "setting PMI_FD=\"x\": wanted a whole number"),
        ("3", "", "neither PMI_RANK nor PMI_ID"),
    ] {
        let mut command = Command::new(&me);
        command.args(["rank", "exchange"]).stdin(Stdio::null()).env("PMI_FD", fd).env("PMI_RANK", rank);
        let output = command.output().expect("started");
        assert_eq!(output.status.code(), Some(99));
        assert!(err(&output).contains(wanted), "{}", err(&output));
    }
}

fn failures_name_the_rank() {
    for (action, code, what) in [
        ("die-at-once", 137, "was killed by signal 9 (SIGKILL)"),
        ("die-greeted", 137, "was killed by signal 9 (SIGKILL)"),
        ("die-between-fences", 137, "was killed by signal 9 (SIGKILL)"),
        ("quit-between-fences", 1, "exited with code 0 without finalize"),
        ("absent", 1, "has ended, and rank "),
        ("early-end", 1, "has ended, and rank "),
        ("abort", 42, "aborted the job: no, moreof this"),
        ("abort-overtaken", 42, "aborted the job: so"),
    ] {
        for ranks in ["2", "4"] {
            expect(&act(ranks, action), code, &["rank 1 (pid ", what]);
        }
    }
    expect(&act("3", "hang-up"), 1, &["rank 1 (pid ", "closed its connection to gasrun before finalize"]);
    expect(&act("4", "fence-all"), 0, &[]);
    // Who ends the job with a code has said why.
    expect(&act("4", "exit-between-fences"), 7, &[]);
}

/// While another rank gets from it, by the system and by messages.
fn the_owner_of_given_memory_is_killed() {
    let me = std::env::current_exe().expect("a path");
    for by_process in ["1", "0"] {
        let mut job = gasrun(&["-n", "2", me.to_str().expect("text"), "program", "die-with-given-memory"]);
        let output = job.env("GASWORKS_PROCESS_VM", by_process).output().expect("started");
        expect(&output, 137, &["rank 1 (pid ", "was killed by signal 9 (SIGKILL)"]);
    }
}

fn hostile_ranks() {
    for (action, what) in [
        ("garbage", "does not keep to PMI: "),
        ("endless-line", "does not end within 1024 bytes"),
        ("cut-line", "has ended, and rank "),
        ("lying-length", "a message announces 999999 bytes"),
        ("second-init", "introduced itself a second time"),
    ] {
        expect(&act("3", action), 1, &["rank 1 (pid ", what]);
    }
    // A rank that asks without end and reads nothing only stops itself.
    let me = std::env::current_exe().expect("a path");
    let words = ["-n", "2", "--timeout", "1", me.to_str().expect("text"), "rank", "flood"];
    expect(&run(&words), 124, &["still running: ranks 0-1"]);
}

/// The processes that carry an entry in their environment.
pub fn marked(entry: &str) -> Vec<i32> {
    let pids =
        std::fs::read_dir("/proc").expect("/proc").filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&b| b == 0).any(|e| e == entry.as_bytes())
    })
    .collect()
}

#[track_caller]
pub fn expect_nobody(entry: &str, within: Duration) {
    let deadline = Instant::now() + within;
    loop {
        let left = marked(entry);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{entry}: processes {left:?} are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn mark(name: &str) -> (String, String) {
    let key = format!("GASRUN_TEST_{name}_{}", std::process::id());
    (key.clone(), format!("{key}=1"))
}

/// A rank that leaves a process in its group, one in a session of its own, and one whose parent ends.
const LITTER: &str = "sleep 100 & setsid sleep 100 & (setsid sh -c 'sleep 100 & sleep 100' &) & sleep 0.1; ";

fn nothing_is_left_at_the_end() {
    let (key, entry) = mark("END");
    let output = gasrun(&["-n", "2", "sh", "-c", LITTER]).env(key, "1").output().expect("started");
    expect(&output, 0, &[]);
    expect_nobody(&entry, Duration::ZERO);
}

fn a_chattering_leftover() {
    let (key, entry) = mark("CHATTER");
    let mut command = gasrun(&["-n", "2", "sh", "-c", "yes & test $PMI_RANK = 0 || sleep 0.3"]);
    let output = command.env(key, "1").stdout(Stdio::null()).output().expect("started");
    expect(&output, 0, &[]);
    expect_nobody(&entry, Duration::ZERO);
}

fn nothing_is_left_after_a_failure() {
    let (key, entry) = mark("FAIL");
    let script = format!("{LITTER} test $PMI_RANK != 1 || kill -9 $$; sleep 100");
    let output = gasrun(&["-n", "3", "sh", "-c", &script]).env(key, "1").output().expect("started");
    expect(&output, 137, &["rank 1 (pid "]);
    expect_nobody(&entry, Duration::ZERO);
}

fn nothing_is_left_when_gasrun_is_killed() {
    let (key, entry) = mark("KILL");
    let script = format!("{LITTER} echo up; sleep 100");
    let mut child = gasrun(&["-n", "3", "sh", "-c", &script])
        .env(key, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    for _ in 0..3 {
        std::io::BufRead::read_line(&mut reader, &mut String::new()).expect("a line");
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while marked(&entry).len() < 18 {
        assert!(Instant::now() < deadline, "ranks and what they left are not there: {:?}", marked(&entry));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("ended").signal(), Some(9));
    expect_nobody(&entry, Duration::from_secs(5));
}

/// What has a session of its own and an environment without anything is found as well.
fn no_daemon_is_left_when_gasrun_is_killed() {
    let script = "env -i setsid sleep 100 >/dev/null 2>&1 & echo $!; exec sleep 100";
    let mut child = gasrun(&["-n", "2", "sh", "-c", script]).stdout(Stdio::piped()).spawn().expect("started");
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let daemons = [(); 2].map(|()| {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).expect("a line");
        Pid::from_raw(line.trim().parse().expect("a pid"))
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_sleeping = |pid: &Pid| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x00100\x00")
    };
    while !daemons.iter().all(is_sleeping) {
        assert!(Instant::now() < deadline, "the daemons are not there");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    let deadline = Instant::now() + Duration::from_secs(5);
    while daemons.iter().any(is_sleeping) {
        if Instant::now() > deadline {
            let killed = daemons.map(|pid| kill(pid, Signal::SIGKILL));
            panic!("the daemons are left: {killed:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A control group of its own with little memory; it goes when this is dropped.
struct MemoryGroup(std::path::PathBuf);

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(&self.0));
    }
}

fn memory_group() -> Result<MemoryGroup, String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let one =
        own.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| format!("memory{path}")));
    let two = own.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned));
    let (path, limit) = match (one, two) {
        (Some(path), _) => (path, "memory.limit_in_bytes"),
        (None, Some(path)) => (path.trim_start_matches('/').to_owned(), "memory.max"),
        _ => return Err("no memory control group".into()),
    };
    let name = format!("gasrun-test-{}", std::process::id());
    let group = MemoryGroup(std::path::Path::new("/sys/fs/cgroup").join(path).join(name));
    std::fs::create_dir(&group.0).map_err(|e| format!("no right to make a memory control group: {e}"))?;
    std::fs::write(group.0.join(limit), "60000000")
        .map_err(|e| format!("no right to limit a control group: {e}"))?;
    Ok(group)
}

fn a_rank_killed_for_memory() {
    let group = memory_group().expect("a group");
    let me = std::env::current_exe().expect("a path");
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec {} -n 3 {} rank eat",
        group.0.display(),
        env!("CARGO_BIN_EXE_gasrun"),
        me.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    expect(
        &output,
        137,
        &["rank 1 (pid ", "was killed by signal 9 (SIGKILL), by the kernel for lack of memory"],
    );
}
