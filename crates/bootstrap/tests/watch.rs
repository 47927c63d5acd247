//! A rank whose launcher vanishes says so and ends, even while it computes, and even where it cannot say so; and what
//! ranks make of each other's ends under a launcher that leaves them alone. Runs itself again as those ranks.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::server::{Output, Server};
use gasworks_os::inherited;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("compute") => compute(false),
        Some("finish") => compute(true),
        Some("abort") => gasworks_bootstrap::connect().expect("joined").abort(42, "no more"),
        Some("connect") => match gasworks_bootstrap::connect() {
            Ok(rank) => println!("rank {} of {}", rank.rank(), rank.size()),
            Err(e) => println!("{e} / {}", e.source().map_or("no source".into(), ToString::to_string)),
        },
        Some("meet") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            println!("met");
            std::thread::sleep(FOR_EVER);
        }
        Some("exit-zero") => {
            let _rank = gasworks_bootstrap::connect().expect("joined");
            gasworks_bootstrap::exit(0);
        }
        Some("finish-when-told") => {
            let rank = gasworks_bootstrap::connect().expect("joined");
            std::io::stdin().read_line(&mut String::new()).expect("told");
            rank.finalize().expect("ended");
            std::thread::sleep(Duration::from_millis(600));
        }
        _ => {
            let tests: [(&str, fn()); 7] = [
                ("a_job_of_several_is_not_many_jobs_of_one", a_job_of_several_is_not_many_jobs_of_one),
                ("a_full_standard_error_changes_nothing", a_full_standard_error_changes_nothing),
                ("a_computing_rank_ends_with_its_launcher", a_computing_rank_ends_with_its_launcher),
                ("a_finished_rank_does_not_care", a_finished_rank_does_not_care),
                ("a_wish_before_the_ranks_have_met_counts", a_wish_before_the_ranks_have_met_counts),
                ("a_killed_rank_has_not_wished_for_0", a_killed_rank_has_not_wished_for_0),
                ("a_death_after_the_job_is_none_of_its", a_death_after_the_job_is_none_of_its),
            ];
            for (name, test) in tests {
                test();
                println!("test {name} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}

/// Longer than any of these jobs may take.
const FOR_EVER: Duration = Duration::from_secs(30);

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
    name: String,
}

/// A rank of it, and the connection to it.
struct Rank {
    number: u32,
    process: Child,
    line: UnixStream,
}

impl Job {
    fn new(ranks: u32, name: &str) -> Self {
        let name = format!("watched-{name}-{}", std::process::id());
        Self { server: Server::new(ranks, &name), name }
    }

    /// Starts a rank that waits for an answer.
    fn start(&self, number: u32, action: &str, stderr: Stdio) -> Rank {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        inherited::let_pass(&theirs).expect("passed on");
        let process = me(action)
            .env("PMI_FD", theirs.as_raw_fd().to_string())
            .env("PMI_RANK", number.to_string())
            .env("PMI_JOBID", &self.name)
            .env("GASNET_EXITTIMEOUT", "3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("started");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        Rank { number, process, line: ours }
    }

    /// Answers a rank up to the question `last`.
    fn serve(&mut self, rank: &mut Rank, last: &str) {
        let (mut inbox, mut heard) = (Vec::new(), String::new());
        while !heard.contains(last) {
            let mut chunk = [0; 1000];
            let n = rank.line.read(&mut chunk).expect("the rank speaks");
            assert!(n > 0, "the rank ended early");
            inbox.extend_from_slice(&chunk[..n]);
            heard.push_str(&String::from_utf8_lossy(&chunk[..n]));
            let mut out = Vec::new();
            self.server.feed(rank.number, &mut inbox, &mut out);
            for output in out {
                if let Output::Send { bytes, .. } = output {
                    rank.line.write_all(&bytes).expect("sent");
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
        let mut ranks = [self.joined(0, action, Stdio::piped()), self.joined(1, "meet", Stdio::inherit())];
        let (mut inboxes, mut fences) = ([Vec::new(), Vec::new()], 0);
        while fences < 2 * MEETING_FENCES {
            let mut ready: Vec<_> =
                ranks.iter().map(|rank| PollFd::new(rank.line.as_fd(), PollFlags::POLLIN)).collect();
            assert!(poll(&mut ready, 20_000u16).is_ok_and(|n| n > 0), "the ranks do not meet");
            let ready: Vec<bool> = ready.iter().map(|fd| fd.any() == Some(true)).collect();
            for (at, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
                let mut chunk = [0; 1000];
                let n = ranks[at].line.read(&mut chunk).expect("the rank speaks");
                assert!(n > 0, "the rank ended early");
                inboxes[at].extend_from_slice(&chunk[..n]);
                let mut out = Vec::new();
                self.server.feed(at as u32, &mut inboxes[at], &mut out);
                for output in out {
                    if let Output::Send { rank, bytes } = output {
                        fences += usize::from(bytes.windows(FENCED.len()).any(|part| part == FENCED));
                        ranks[rank as usize].line.write_all(&bytes).expect("sent");
                    }
                }
            }
        }
        let [first, mut second] = ranks;
        let mut line = String::new();
        let stdout = second.process.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "met\n");
        (first, second)
    }
}

impl Rank {
    fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
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

fn a_wish_before_the_ranks_have_met_counts() {
    let mut job = Job::new(2, "early");
    let mut rank = job.start(0, "compute", Stdio::piped());
    // The hooks are there before the first question.
    let mut asked = [PollFd::new(rank.line.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut asked, 20_000u16), Ok(1));
    kill(Pid::from_raw(rank.process.id() as i32), Signal::SIGTERM).expect("sent");
    std::thread::sleep(MOMENT);
    job.serve(&mut rank, JOINED);
    assert_eq!(rank.end(), (Some(128 + 15), String::new()));
}

fn a_killed_rank_has_not_wished_for_0() {
    let mut job = Job::new(2, "killed");
    let (first, second) = job.met("exit-zero");
    second.kill();
    let text = "gasworks: rank 0: rank 1 is gone without a word: the job ends\n";
    assert_eq!(first.end(), (Some(1), text.to_owned()));
}

fn a_death_after_the_job_is_none_of_its() {
    let mut job = Job::new(2, "after");
    let (mut first, second) = job.met("finish-when-told");
    second.kill();
    // It has noticed, and could not know yet that its job ends well.
    std::thread::sleep(MOMENT);
    first.process.stdin.take().expect("piped").write_all(b"\n").expect("told");
    job.serve(&mut first, FINALIZED);
    assert_eq!(first.end(), (Some(0), String::new()));
}
