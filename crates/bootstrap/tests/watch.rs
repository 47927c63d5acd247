//! A rank whose launcher vanishes says so and ends, even while it computes, and even where it cannot say so; and what
//! ranks make of each other's ends under a launcher that leaves them alone. Runs itself again as those ranks.
#![allow(unsafe_code)]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::Bootstrap;
use gasworks_bootstrap::server::{Output, Server};
use gasworks_os::inherited;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;

mod cases;
#[path = "watch/ends.rs"]
mod ends;

use ends::*;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("compute") => compute(false),
        Some("finish") => compute(true),
        Some("finish-as-cray") => {
            gasworks_bootstrap::connect_as_cray().expect("joined").finalize().expect("ended");
            std::io::stdin().read_line(&mut String::new()).expect("told");
        }
        Some("abort") => {
            gasworks_bootstrap::connect().expect("joined").abort(42, &format!("no more\n{}", "!".repeat(200)))
        }
        Some("abort-unwatched") => {
            let start =
                gasworks_bootstrap::Start::from_settings().expect("sound settings").expect("a launcher");
            let rank = gasworks_bootstrap::Launched::join(start).expect("joined");
            rank.abort(42, &format!("no more\n{}", "!".repeat(200)))
        }
        Some("connect") => match gasworks_bootstrap::connect() {
            Ok(rank) => println!("rank {} of {}", rank.rank(), rank.size()),
            Err(e) => println!("{e} / {}", e.source().map_or("no source".into(), ToString::to_string)),
        },
        Some("told") => println!("{:?}", gasworks_bootstrap::Told::as_cray().map_err(|e| e.to_string())),
        Some("exit-time-outs") => {
            let timeout = gasworks_bootstrap::ExitTimeout::of_environment().expect("sound settings");
            println!("{:?}", [1, 20, 1000].map(|ranks| timeout.of(ranks)));
        }
        Some("meet") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::thread::sleep(FOR_EVER);
        }
        Some("exit") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            gasworks_bootstrap::exit(operand());
        }
        Some("finish-and-end") => {
            gasworks_bootstrap::connect().expect("joined").finalize().expect("ended");
            std::process::exit(operand());
        }
        Some("handle") => {
            let handler: extern "C" fn(i32) = if operand() == 11 { end_with_11 } else { never_return };
            // SAFETY: the thread that handles the signal raises it itself and holds no lock, so the handlers may make
            // any call.
            let installed =
                unsafe { nix::sys::signal::signal(Signal::SIGQUIT, SigHandler::Handler(handler)) };
            installed.expect("installed");
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::thread::sleep(FOR_EVER);
        }
        Some("be-terminated") => {
            // SAFETY: `never_return` only sleeps, and `say_terminated` writes by one call: both may run in any thread at any time.
            unsafe {
                nix::sys::signal::signal(Signal::SIGQUIT, SigHandler::Handler(never_return))
                    .expect("installed");
                nix::sys::signal::signal(Signal::SIGTERM, SigHandler::Handler(say_terminated))
                    .expect("installed");
            }
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::thread::sleep(FOR_EVER);
        }
        Some("without-room") => {
            let pages = std::fs::read_to_string("/proc/self/statm").expect("read");
            let pages: u64 = pages.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
            // None for the stack of a thread.
            let bytes = pages * gasworks_os::memfd::page_size() as u64 + (64 << 10);
            let (_, hard) = getrlimit(Resource::RLIMIT_AS).expect("a limit");
            setrlimit(Resource::RLIMIT_AS, bytes, hard).expect("lowered");
            let error = gasworks_bootstrap::connect().map(drop).expect_err("there is no room for a thread");
            eprintln!("{error}");
            return ExitCode::from(5);
        }
        Some("close-all") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            close_all();
            std::thread::sleep(FOR_EVER);
        }
        Some("close-all-at-the-end") => {
            gasworks_bootstrap::connect().expect("joined").finalize().expect("ended");
            close_all();
            std::thread::sleep(2 * LOOK);
            let used = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
            eprintln!("{}", Duration::from(used.expect("a clock")) < LOOK / 2);
        }
        Some("exit-when-told") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::io::stdin().read_line(&mut String::new()).expect("told");
            gasworks_bootstrap::exit(7);
        }
        Some("exit-early") => {
            std::thread::spawn(|| {
                std::io::stdin().read_line(&mut String::new()).expect("told");
                gasworks_bootstrap::exit(0);
            });
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
        }
        Some("exit-from-fence") => {
            let rank = gasworks_bootstrap::connect().expect("joined");
            std::thread::spawn(|| {
                std::io::stdin().read_line(&mut String::new()).expect("told");
                gasworks_bootstrap::exit(0);
            });
            println!("{:?}", rank.fence().map_err(|e| e.to_string()));
        }
        Some("panic-aside") => {
            let rank = gasworks_bootstrap::connect().expect("joined");
            std::thread::spawn(move || {
                let _dropped = rank;
                panic!("no more");
            });
            std::thread::sleep(FOR_EVER);
        }
        Some("finish-when-told") => {
            let rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::io::stdin().read_line(&mut String::new()).expect("told");
            rank.finalize().expect("ended");
            std::thread::sleep(Duration::from_millis(600));
        }
        _ => {
            let cases: &[cases::Case] = &[
                ("a_job_of_several_is_not_many_jobs_of_one", a_job_of_several_is_not_many_jobs_of_one),
                ("settings_say_how_long_an_end_may_take", settings_say_how_long_an_end_may_take),
                ("a_program_may_start_its_ranks_itself", a_program_may_start_its_ranks_itself),
                ("what_was_told_for_crays_pmi_makes_sense", what_was_told_for_crays_pmi_makes_sense),
                ("a_full_standard_error_changes_nothing", a_full_standard_error_changes_nothing),
                ("a_computing_rank_ends_with_its_launcher", a_computing_rank_ends_with_its_launcher),
                ("a_finished_rank_does_not_care", a_finished_rank_does_not_care),
                ("who_cannot_be_kept_ends_at_once", who_cannot_be_kept_ends_at_once),
                ("what_a_rank_has_closed_is_said", what_a_rank_has_closed_is_said),
                ("a_finished_rank_may_close_everything", a_finished_rank_may_close_everything),
                ("who_is_not_ready_is_terminated", who_is_not_ready_is_terminated),
                (
                    "who_is_not_watched_tells_the_launcher_at_once",
                    who_is_not_watched_tells_the_launcher_at_once,
                ),
                ("a_wish_before_the_ranks_have_met_counts", a_wish_before_the_ranks_have_met_counts),
                ("an_exit_before_the_ranks_have_met_waits", an_exit_before_the_ranks_have_met_waits),
                ("an_exit_interrupts_a_fence", an_exit_interrupts_a_fence),
                ("a_launcher_that_does_not_answer_the_end", a_launcher_that_does_not_answer_the_end),
                ("a_job_that_a_panic_drops_has_failed", a_job_that_a_panic_drops_has_failed),
                ("a_killed_rank_has_not_wished_for_0", a_killed_rank_has_not_wished_for_0),
                ("a_killed_leader_is_missed_by_its_followers", a_killed_leader_is_missed_by_its_followers),
                ("a_death_after_the_job_is_none_of_its", a_death_after_the_job_is_none_of_its),
                ("ranks_that_all_exit_with_0_have_done_well", ranks_that_all_exit_with_0_have_done_well),
                ("one_code_ends_all_ranks", one_code_ends_all_ranks),
                ("another_launcher_hears_that_all_ranks_end", another_launcher_hears_that_all_ranks_end),
                ("a_rank_alone_ends_with_its_own_code", a_rank_alone_ends_with_its_own_code),
                ("a_handler_of_the_program_chooses_the_code", a_handler_of_the_program_chooses_the_code),
                ("an_abort_ends_all_ranks", an_abort_ends_all_ranks),
                ("an_order_to_abort_reaches_the_launcher", an_order_to_abort_reaches_the_launcher),
                ("who_does_not_exit_with_0_is_named", who_does_not_exit_with_0_is_named),
                ("a_stopped_rank_is_let_run_to_its_end", a_stopped_rank_is_let_run_to_its_end),
            ];
            return cases::run(cases, None);
        }
    }
    ExitCode::SUCCESS
}

/// The exit time-out of jobs whose end takes as long as that.
const EXIT_TIMEOUT: Duration = Duration::from_millis(600);
/// The exit time-out of jobs whose end does not. A test that waits as long has failed.
const NEVER: Duration = Duration::from_secs(60);
/// How long leaders give their followers to ask for an end by themselves.
const CONSENT: Duration = Duration::from_millis(250);
/// How often the library looks whether its descriptors are still its own.
const LOOK: Duration = Duration::from_secs(1);
/// Longer than any of these jobs may take.
const FOR_EVER: Duration = Duration::from_secs(30);

/// The number that an action is done with.
fn operand() -> i32 {
    std::env::args().nth(2).expect("an operand").parse().expect("a number")
}

/// A handler that ends the job, a while after it was called.
extern "C" fn end_with_11(_: i32) {
    std::thread::sleep(Duration::from_millis(200));
    gasworks_bootstrap::exit(11);
}

extern "C" fn say_terminated(_: i32) {
    let _ = nix::unistd::write(std::io::stderr(), b"terminated\n");
}

/// Closes all that is open but the streams, as some programs do to have none from whoever started them.
fn close_all() {
    (3..256).for_each(|number| _ = nix::unistd::close(number));
}

extern "C" fn never_return(_: i32) {
    std::thread::sleep(FOR_EVER);
}

fn compute(finish: bool) {
    let rank = gasworks_bootstrap::connect().expect("joined");
    let started = Instant::now();
    if finish {
        rank.finalize().expect("ended");
    }
    let length = if finish { Duration::from_millis(600) } else { FOR_EVER };
    while started.elapsed() < length {
        std::hint::spin_loop();
    }
    println!("done");
}

fn me(action: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.arg(action);
    for variable in gasworks_bootstrap::SETTINGS.iter().flat_map(|row| row.aliases.iter().chain([&row.name]))
    {
        command.env_remove(variable);
    }
    command
}

fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device").into()
}

/// A job whose launcher is this test: it answers what it is asked, and leaves the ranks alone.
struct Job {
    server: Server,
    size: u32,
    name: String,
    exit_timeout: Duration,
    /// It does not say that it is one of ours.
    is_foreign: bool,
}

/// A rank of it, and the connection to it.
struct Rank {
    number: u32,
    process: Child,
    line: UnixStream,
    inbox: Vec<u8>,
}

impl Job {
    fn new(ranks: u32, name: &str) -> Self {
        let name = format!("watched-{name}-{}", std::process::id());
        let server = Server::new(ranks, &name);
        Self { server, size: ranks, name, exit_timeout: NEVER, is_foreign: false }
    }

    /// The same with an exit time-out.
    fn timed(self, exit_timeout: Duration) -> Self {
        Self { exit_timeout, ..self }
    }

    /// The same under a launcher that is none of ours.
    fn foreign(self) -> Self {
        Self { is_foreign: true, ..self }
    }

    /// The bytes of an answer as this launcher sends it.
    fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        match text.split_once("launcher=gasrun;") {
            Some((before, after)) if self.is_foreign => {
                let payload = [&before[6..], after].concat();
                format!("{:>6}{payload}", payload.len()).into_bytes()
            }
            _ => bytes.to_vec(),
        }
    }

    /// Starts a rank that waits for an answer.
    fn start(&self, number: u32, action: &str, stderr: Stdio) -> Rank {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        inherited::let_pass(&theirs).expect("passed on");
        let (action, operand) = action.split_once(' ').unwrap_or((action, ""));
        // What an action is done with: a code, or the dialect to speak.
        let dialect = if operand.starts_with("pmi") { operand } else { "auto" };
        let process = me(action)
            .arg(operand)
            .env("GASWORKS_BOOTSTRAP", dialect)
            .env("PMI_SIZE", self.size.to_string())
            .env("PMI_FD", theirs.as_raw_fd().to_string())
            .env("PMI_RANK", number.to_string())
            .env("PMI_JOBID", &self.name)
            .env("GASNET_EXITTIMEOUT", self.exit_timeout.as_secs_f64().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("started");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        Rank { number, process, line: ours, inbox: Vec::new() }
    }

    /// Answers a rank up to the question `last`.
    fn serve(&mut self, rank: &mut Rank, last: &str) {
        let mut heard = String::new();
        while !heard.contains(last) {
            let mut chunk = [0; 1000];
            let n = rank.line.read(&mut chunk).expect("the rank speaks");
            assert!(n > 0, "the rank ended early");
            rank.inbox.extend_from_slice(&chunk[..n]);
            heard.push_str(&String::from_utf8_lossy(&chunk[..n]));
            let mut out = Vec::new();
            self.server.feed(rank.number, &mut rank.inbox, &mut out);
            for output in out {
                if let Output::Send { bytes, .. } = output {
                    rank.line.write_all(&self.bytes(&bytes)).expect("sent");
                }
            }
        }
    }

    /// A rank that has joined.
    fn joined(&mut self, number: u32, action: &str, stderr: Stdio) -> Rank {
        let mut rank = self.start(number, action, stderr);
        self.serve(&mut rank, JOINED);
        rank
    }

    /// Rank 0, which does `action`, and rank 1, which does nothing; they have met.
    fn met(&mut self, action: &str) -> (Rank, Rank) {
        let [first, mut second] = self.meet([action, "meet"]);
        second.says_met();
        (first, second)
    }

    /// Two ranks that do this, once they have met.
    fn meet(&mut self, actions: [&str; 2]) -> [Rank; 2] {
        let mut ranks =
            [self.joined(0, actions[0], Stdio::piped()), self.joined(1, actions[1], Stdio::piped())];
        let mut fences = 0;
        self.attend(&mut ranks, |output| {
            if let Output::Send { bytes, .. } = output {
                fences += usize::from(bytes.windows(FENCED.len()).any(|part| part == FENCED));
            }
            fences < 2 * MEETING_FENCES
        });
        ranks
    }

    /// Answers all ranks, hands `each` what comes of it, and goes on as long as that says so and one is connected.
    fn attend(&mut self, ranks: &mut [Rank], mut each: impl FnMut(&Output) -> bool) {
        let (mut open, mut goes_on) = (vec![true; ranks.len()], true);
        while goes_on && open.contains(&true) {
            let watched: Vec<usize> = (0..ranks.len()).filter(|&at| open[at]).collect();
            let mut polled: Vec<_> =
                watched.iter().map(|&at| PollFd::new(ranks[at].line.as_fd(), PollFlags::POLLIN)).collect();
            assert!(poll(&mut polled, 10_000u16).is_ok_and(|n| n > 0), "the ranks are silent");
            let speaks: Vec<bool> = polled.iter().map(|fd| fd.any() == Some(true)).collect();
            for (at, _) in watched.into_iter().zip(speaks).filter(|(_, speaks)| *speaks) {
                let mut chunk = [0; 1000];
                // A rank that ends with an answer unread breaks the connection.
                let n = ranks[at].line.read(&mut chunk).unwrap_or(0);
                open[at] = n > 0;
                ranks[at].inbox.extend_from_slice(&chunk[..n]);
                let mut out = Vec::new();
                self.server.feed(at as u32, &mut ranks[at].inbox, &mut out);
                for output in out {
                    if let Output::Send { rank, bytes } = &output {
                        // Who has ended needs no answer.
                        let _ = ranks[*rank as usize].line.write_all(&self.bytes(bytes));
                    }
                    goes_on &= each(&output);
                }
            }
        }
    }

    /// Attends to all ranks up to their ends: what they have told the launcher, and how they have ended.
    fn see_out<const N: usize>(&mut self, mut ranks: [Rank; N]) -> (Vec<Output>, [(Option<i32>, String); N]) {
        let mut told = Vec::new();
        self.attend(&mut ranks, |output| {
            if !matches!(output, Output::Send { .. }) {
                told.push(output.clone());
            }
            true
        });
        (told, ranks.map(Rank::end))
    }
}

impl Rank {
    fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }

    /// Hears what it says up to `last`, and does not answer.
    fn hear(&mut self, last: &str) {
        let mut heard = String::from_utf8_lossy(&std::mem::take(&mut self.inbox)).into_owned();
        while !heard.contains(last) {
            let mut chunk = [0; 1000];
            let n = self.line.read(&mut chunk).expect("the rank speaks");
            assert!(n > 0, "the rank ended early");
            heard.push_str(&String::from_utf8_lossy(&chunk[..n]));
        }
    }

    /// Waits until it says on its standard output that it has met the others.
    fn says_met(&mut self) {
        let mut line = String::new();
        let stdout = self.process.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "met\n");
    }

    /// Lets one go on that waits for a line.
    fn tell(&mut self) {
        self.process.stdin.as_mut().expect("piped").write_all(b"\n").expect("told");
    }

    /// Sends it a signal.
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).expect("sent");
    }

    /// Its code, and what it said, while the connection stays open.
    fn end(self) -> (Option<i32>, String) {
        let output = self.process.wait_with_output().expect("ended");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The last question of a rank that joins, and of one that ends in good order.
const JOINED: &str = "job-getid";
const FINALIZED: &str = "finalize";
/// The answer to a fence, and how many fences ranks go through before they have met.
const FENCED: &[u8] = b"kvs-fence-response";
const MEETING_FENCES: usize = 2;

/// How long something takes that happens at once, and of which nothing is heard.
const MOMENT: Duration = Duration::from_millis(50);

fn a_job_of_several_is_not_many_jobs_of_one() {
    let said = |variable: &str, value: &str| {
        let output = me("connect").env(variable, value).output().expect("started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(said("PMI_SIZE", "1"), "rank 0 of 1\n");
    assert_eq!(
        said("PMI_SIZE", "2"),
        "join the job: PMI_SIZE=2 says there are other ranks, but no launcher has left a way in (PMI_FD, PMI_PORT, \
         ALPS_APP_PE, PMIX_NAMESPACE): unset PMI_SIZE to run alone / no source\n"
    );
    // The system's cause is told once.
    let refused = said("PMI_FD", "0");
    assert!(refused.contains("neither PMI_RANK nor PMI_ID"), "{refused}");
    let output = me("connect").env("PMI_FD", "77").env("PMI_RANK", "0").output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("read PMI_FD: PMI_FD=77 is no connection to the launcher ("), "{text}");
    assert!(text.matches("os error").count() <= 1 && text.ends_with(" / no source\n"), "{text}");
    // A wait that is none is refused by name.
    let (_ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = me("connect");
    command.stdin(OwnedFd::from(theirs)).envs([("PMI_FD", "0"), ("PMI_RANK", "0")]);
    let output = command.env("GASWORKS_BOOTSTRAP_TIMEOUT", "0").output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("setting GASWORKS_BOOTSTRAP_TIMEOUT=\"0\": wanted a number of"), "{text}");
}

fn settings_say_how_long_an_end_may_take() {
    let said = |variables: &[(&str, &str)]| {
        let output = me("exit-time-outs").envs(variables.iter().copied()).output().expect("started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(said(&[]), "[1.1s, 3s, 5s]\n");
    assert_eq!(said(&[("GASNET_EXITTIMEOUT", "7")]), "[7s, 7s, 7s]\n");
    let parts = [
        ("GASNET_EXITTIMEOUT_MIN", "2"),
        ("GASNET_EXITTIMEOUT_FACTOR", "0.5"),
        ("GASNET_EXITTIMEOUT_MAX", "20"),
    ];
    assert_eq!(said(&parts), "[2.5s, 12s, 20s]\n");
}

fn a_program_may_start_its_ranks_itself() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let program = |name: &str, says: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho {says} \"$@\"\n")).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("made a program");
        path.to_str().expect("text").to_owned()
    };
    let (configured, _on_path) = (program("configured", "configured"), program("gasrun", "found"));
    let said = |variables: &[(&str, &str)]| {
        let mut command = me("connect");
        // A shell's own commands are enough for these programs.
        command.arg("a b").env("PATH", dir.path()).envs(variables.iter().copied());
        String::from_utf8_lossy(&command.output().expect("started").stdout).into_owned()
    };
    let this = std::env::current_exe().expect("a path");
    let (nodes, path) = ("GASNET_PSHM_NODES", "GASWORKS_GASRUN");
    let started = |by: &str, ranks: u32| format!("{by} -n {ranks} -- {} connect a b\n", this.display());
    assert_eq!(said(&[(nodes, "2"), (path, &configured)]), started("configured", 2));
    assert_eq!(said(&[(nodes, "3")]), started("found", 3));
    // An installation was moved.
    assert_eq!(said(&[(nodes, "3"), (path, "/nowhere/gasrun")]), started("found", 3));
    for alone in [&[(nodes, "1")][..], &[(nodes, "0")], &[(nodes, "2"), ("GASWORKS_BOOTSTRAP", "single")]] {
        assert_eq!(said(alone), "rank 0 of 1\n");
    }
    // It leads back here, by a program between.
    let back = program("back", "back");
    std::fs::write(&back, format!("#!/bin/sh\nexec {} connect\n", this.display())).expect("written");
    let round = said(&[(nodes, "2"), (path, &back)]);
    let wanted = format!("{path}={back} leads back to this program, and starts no ranks");
    assert!(round.contains(&wanted), "{round}");
    // A launcher has started this process, and is gone.
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    drop(ours);
    let mut launched = me("connect");
    launched.stdin(OwnedFd::from(theirs)).envs([(nodes, "2"), ("PMI_FD", "0"), ("PMI_RANK", "0")]);
    let output = launched.env(path, &configured).output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("join the job: the launcher closed the connection"), "{text}");
    // What is configured is there, and is no program: that is said, and nothing else is tried.
    let directory = dir.path().to_str().expect("text");
    let refused = said(&[(nodes, "2"), (path, directory)]);
    let wanted = format!("start the ranks of GASNET_PSHM_NODES: {directory}: Permission denied");
    assert!(refused.starts_with(&wanted), "{refused}");
    assert!(refused.contains("; GASWORKS_GASRUN says where it is / no source"), "{refused}");
    let nowhere = said(&[(nodes, "2"), ("PATH", "/nowhere")]);
    assert!(nowhere.starts_with("start the ranks of GASNET_PSHM_NODES: gasrun: No such file"), "{nowhere}");
}

fn what_was_told_for_crays_pmi_makes_sense() {
    let told = |variables: &[(&str, &str)]| {
        let (_ours, theirs) = UnixStream::pair().expect("a pair");
        let mut command = me("told");
        command.stdin(OwnedFd::from(theirs)).envs(variables.iter().copied());
        String::from_utf8_lossy(&command.output().expect("started").stdout).into_owned()
    };
    let all = |rank, size, here| {
        [
            ("PMI_FD", "0"),
            ("PMI_RANK", rank),
            ("PMI_SIZE", size),
            ("PMI_JOBID", "j"),
            ("MPI_LOCALNRANKS", here),
        ]
    };
    let wanted = |rank: u32, size: u32, here: u32| {
        format!("Ok(Some(Told {{ rank: {rank}, size: {size}, job: \"j\", here: {here} }}))\n")
    };
    assert_eq!(told(&all("2", "5", "4")), wanted(2, 5, 4));
    assert_eq!(told(&all("4", "5", "5")), wanted(4, 5, 5));
    for (rank, size, here) in [("5", "5", "1"), ("6", "5", "1"), ("0", "5", "6")] {
        assert_eq!(told(&all(rank, size, here)), "Ok(None)\n", "{rank} of {size}, {here} here");
    }
    // All of it is needed, and none is asked for where there is no descriptor.
    for missing in [0, 2, 3, 4] {
        let mut some = all("2", "5", "4").to_vec();
        some.remove(missing);
        assert_eq!(told(&some), "Ok(None)\n", "without number {missing}");
    }
    let wrong = told(&[("PMI_FD", "0"), ("PMI_RANK", "x")]);
    assert!(wrong.starts_with("Err(\"setting PMI_RANK="), "{wrong}");
}

fn a_full_standard_error_changes_nothing() {
    let ended = me("abort").stderr(full()).status().expect("started");
    assert_eq!(ended.code(), Some(42));
    let Rank { mut process, line, .. } = Job::new(1, "full").joined(0, "compute", full());
    drop(line);
    assert_eq!(process.wait().expect("ended").code(), Some(1));
}

fn a_computing_rank_ends_with_its_launcher() {
    let Rank { process, line, .. } = Job::new(1, "left").joined(0, "compute", Stdio::piped());
    std::thread::sleep(MOMENT);
    let start = Instant::now();
    drop(line);
    let output = process.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text, "gasworks: rank 0: the launcher is gone (it closed the connection): this rank ends\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
}

fn a_finished_rank_does_not_care() {
    let mut job = Job::new(1, "finished");
    let mut rank = job.joined(0, "finish", Stdio::piped());
    job.serve(&mut rank, FINALIZED);
    let Rank { process, line, .. } = rank;
    drop(line);
    let output = process.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
}

fn who_cannot_be_kept_ends_at_once() {
    let begun = Instant::now();
    let rank = Job::new(1, "unkept").start(0, "without-room", Stdio::piped());
    let (code, said) = rank.end();
    assert!(code == Some(5) && said.contains("start the keeper of this rank"), "{code:?}: {said}");
    assert!(begun.elapsed() < EXIT_TIMEOUT * 10, "it took {:?}", begun.elapsed());
}

fn what_a_rank_has_closed_is_said() {
    let rank = Job::new(1, "closed").joined(0, "close-all", Stdio::piped());
    let (code, said) = rank.end();
    assert!(code == Some(1) && said.contains("closed"), "{code:?}: {said}");
}

/// Nobody waits for what is not there any more, and it is no reason for an end.
fn a_finished_rank_may_close_everything() {
    let rank = Job::new(1, "all-closed").joined(0, "close-all-at-the-end", Stdio::piped());
    assert_eq!(rank.end(), (Some(0), "true\n".into()));
}

fn who_is_not_watched_tells_the_launcher_at_once() {
    let mut job = Job::new(1, "unwatched");
    let mut rank = job.joined(0, "finish-as-cray", Stdio::piped());
    // It goes on only when it is told to.
    job.serve(&mut rank, FINALIZED);
    rank.tell();
    assert_eq!(rank.end(), (Some(0), String::new()));
}

fn a_wish_before_the_ranks_have_met_counts() {
    let mut job = Job::new(2, "early").timed(EXIT_TIMEOUT);
    let mut rank = job.start(0, "compute", Stdio::piped());
    // The hooks are there before the first question.
    let mut asked = [PollFd::new(rank.line.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut asked, 20_000u16), Ok(1));
    let begun = Instant::now();
    rank.signal(Signal::SIGTERM);
    std::thread::sleep(MOMENT);
    job.serve(&mut rank, JOINED);
    assert_eq!(rank.end(), (Some(128 + 15), String::new()));
    assert!(begun.elapsed() >= EXIT_TIMEOUT / 2, "the others may be about to meet");
}

fn an_exit_before_the_ranks_have_met_waits() {
    let mut job = Job::new(2, "early-exit").timed(EXIT_TIMEOUT);
    let mut rank = job.joined(0, "exit-early", Stdio::piped());
    let begun = Instant::now();
    rank.tell();
    // Rank 1 never comes, so nobody answers the fence in which the ranks of a host meet.
    job.serve(&mut rank, FINALIZED);
    assert!(begun.elapsed() >= EXIT_TIMEOUT * 3 / 2, "the others may be about to meet");
    let output = rank.process.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), ""));
}

fn an_exit_interrupts_a_fence() {
    let mut rank = Job::new(1, "fence").joined(0, "exit-from-fence", Stdio::piped());
    rank.hear("cmd=kvs-fence;");
    rank.tell();
    rank.hear("cmd=finalize;");
    // This is the answer to the last question. The thread in the fence is not to take it for its own.
    rank.line.write_all(b"    27cmd=finalize-response;rc=0;").expect("sent");
    let output = rank.process.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), ""));
}

fn a_launcher_that_does_not_answer_the_end() {
    let begun = Instant::now();
    let mut rank = Job::new(1, "silent").timed(EXIT_TIMEOUT).joined(0, "exit 0", Stdio::piped());
    rank.hear("cmd=finalize;");
    rank.line.write_all(b"    24cmd=another-answer;rc=0;").expect("sent");
    assert_eq!(rank.process.wait().expect("ended").code(), Some(0));
    assert!(begun.elapsed() >= EXIT_TIMEOUT, "an answer is waited for");
    // One that closes the connection is not waited for.
    let mut rank = Job::new(1, "closed").joined(0, "exit 0", Stdio::piped());
    rank.hear("cmd=finalize;");
    drop(rank.line);
    assert_eq!(rank.process.wait().expect("ended").code(), Some(0));
}

fn a_job_that_a_panic_drops_has_failed() {
    let mut job = Job::new(1, "panic");
    let rank = job.joined(0, "panic-aside", Stdio::piped());
    let (code, text) = rank.end();
    assert_eq!(code, Some(101), "{text}");
    assert!(text.contains("no more"), "{text}");
}

fn a_killed_rank_has_not_wished_for_0() {
    let mut job = Job::new(2, "killed");
    let (first, second) = job.met("exit 0");
    second.kill();
    let text = "gasworks: rank 0: rank 1 is gone without a word: the job ends\n";
    assert_eq!(first.end(), (Some(1), text.to_owned()));
}

fn a_killed_leader_is_missed_by_its_followers() {
    let mut job = Job::new(2, "leader");
    let [mut first, mut second] = job.meet(["meet", "meet"]);
    first.says_met();
    second.says_met();
    first.kill();
    let text = "gasworks: rank 1: rank 0 is gone without a word: the job ends\n";
    assert_eq!(second.end(), (Some(1), text.to_owned()));
}

fn a_death_after_the_job_is_none_of_its() {
    let mut job = Job::new(2, "after");
    let (mut first, second) = job.met("finish-when-told");
    second.kill();
    // It has noticed, and could not know yet that its job ends well.
    std::thread::sleep(MOMENT);
    first.tell();
    job.serve(&mut first, FINALIZED);
    assert_eq!(first.end(), (Some(0), String::new()));
}
