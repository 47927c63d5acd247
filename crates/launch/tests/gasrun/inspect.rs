//! Jobs that hang, and are asked why.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cases::{err, gasrun, mark, out, run};
use crate::harness::Case;
use crate::hosts::{Pretend, agent_of, me};

pub const CASES: &[Case] = &[
    ("a_rank_in_a_loop_is_named", a_rank_in_a_loop_is_named),
    ("barriers_by_messages_are_seen", barriers_by_messages_are_seen),
    ("collectives_that_wait_are_told", collectives_that_wait_are_told),
    ("credits_that_are_out_are_told", credits_that_are_out_are_told),
    ("how_given_memory_is_reached_is_told", how_given_memory_is_reached_is_told),
    ("a_job_is_asked_by_signal", a_job_is_asked_by_signal),
    ("ranks_that_do_not_answer_are_told_of", ranks_that_do_not_answer_are_told_of),
    ("a_script_in_between", a_script_in_between),
    ("a_job_that_is_just_starting", a_job_that_is_just_starting),
    ("a_job_that_is_not_there", a_job_that_is_not_there),
    ("ranks_of_several_hosts_are_asked", ranks_of_several_hosts_are_asked),
    ("a_host_that_does_not_answer", a_host_that_does_not_answer),
];

/// A job that hangs; it is ended when this is dropped.
struct Hanging {
    gasrun: Child,
    ranks: u32,
    /// The processes of its ranks.
    pids: Vec<i32>,
    name: String,
}

impl Hanging {
    /// Starts a job with `-v` and waits until it says that it hangs.
    fn start(ranks: u32, mut command: Command) -> Self {
        let mut gasrun =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("gasrun starts");
        let (mut name, mut pids) = (String::new(), Vec::new());
        {
            let mut lines = BufReader::new(gasrun.stderr.as_mut().expect("a pipe")).lines();
            while pids.len() < ranks as usize {
                let line = lines.next().expect("it goes on").expect("text");
                if let Some((_, word)) = line.split_once("this is job ") {
                    word.clone_into(&mut name);
                } else if let Some((_, rest)) = line.split_once(" as process ") {
                    let pid = rest.split(' ').next().and_then(|pid| pid.parse().ok());
                    pids.push(pid.expect("a pid"));
                }
            }
        }
        let mut line = String::new();
        BufReader::new(gasrun.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("read");
        assert_eq!(line, "it hangs\n");
        Self { gasrun, ranks, pids, name }
    }

    fn program(ranks: u32, action: &str, variables: &[(&str, &str)]) -> Self {
        let me = std::env::current_exe().expect("a path");
        let (ranks_word, me) = (ranks.to_string(), me.to_str().expect("text"));
        let mut command = gasrun(&["-v", "-n", &ranks_word, me, "program", action]);
        command.envs(variables.iter().copied());
        Self::start(ranks, command)
    }

    /// Asks until the answer has all these words: the ranks are on their way to where they hang.
    fn says(&self, words: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let output = run(&["--inspect", &self.name]);
            let text = out(&output);
            assert!(output.status.success(), "{}", err(&output));
            if words.iter().all(|word| text.contains(word)) {
                let (name, ranks) = (&self.name, self.ranks);
                assert!(text.starts_with(&format!("job {name}: {ranks} of {ranks} ranks run")), "{text}");
                return text;
            }
            assert!(Instant::now() < deadline, "{text} should say {words:?}");
        }
    }

    /// Ends the job; what it wrote to standard error since the start.
    fn end(mut self) -> String {
        self.stop();
        let mut text = String::new();
        self.gasrun.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
        text
    }

    fn stop(&mut self) {
        // It is a child that was not collected, so the number is its own.
        let _ = kill(Pid::from_raw(self.gasrun.id() as i32), Signal::SIGTERM);
        let _ = self.gasrun.wait();
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.stop();
    }
}

fn a_rank_in_a_loop_is_named() {
    let job = Hanging::program(64, "hang-in-a-loop", &[]);
    let text =
        job.says(&["ranks 0-62: in barrier 3, which waits for rank 63\nrank 63: in no barrier, after 2\n"]);
    // The one that computes is seen to compute, and not to poll.
    let (_, last) = text.split_once(&format!("rank 63 (pid {})", job.pids[63])).expect("its own paragraph");
    assert!(last.starts_with(": runs") && last.contains(", none of them in the last 500 ms"), "{last}");
    assert!(last.contains("requests not answered: 0 of "), "{last}");
    assert_eq!(text.lines().filter(|line| line.contains("(pid ")).count(), 64);
    // The process of gasrun will do for a name.
    let output = run(&["--inspect", &job.gasrun.id().to_string()]);
    assert!(out(&output).contains("which waits for rank 63"), "{}", err(&output));
}

fn barriers_by_messages_are_seen() {
    for algorithm in ["AMCENTRAL", "AMDISSEM"] {
        let job = Hanging::program(4, "hang-in-a-loop", &[("GASNET_BARRIER", algorithm)]);
        job.says(&["ranks 0-2: in barrier 3, which waits for rank 3\nrank 3: in no barrier, after 2\n"]);
    }
}

/// Of four ranks the odd ones are a team, whose second does not come; the even ones have done theirs, and wait for it in everyone's. In shared memory and by
/// messages.
fn collectives_that_wait_are_told() {
    for algorithm in ["AUTO", "AMDISSEM"] {
        let job = Hanging::program(4, "hang-in-a-collective", &[("GASNET_BARRIER", algorithm)]);
        // On a board all wait for the root, by messages each for the one before it in a tree.
        let root = if algorithm == "AUTO" { "3\n" } else { "" };
        let wanted = [
            &*format!("in broadcast of 9 bytes, collective 1 of everyone, which waits for rank {root}"),
            "in all_gather of 12 bytes, collective 0 of team 1:1, which waits for rank 3\n",
            "in reduce_all of 8 bytes, collective 1 of team 1:1, which waits for rank 3\n",
        ];
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let text = job.says(&wanted);
            match wanted.map(|line| text.matches(line).count()) {
                [2, 1, 1] => break,
                _ => assert!(Instant::now() < deadline, "{text}"),
            }
        }
    }
}

fn credits_that_are_out_are_told() {
    let depth = [("GASNET_NETWORKDEPTH", "12"), ("GASNET_NETWORKDEPTH_TOTAL", "64")];
    let job = Hanging::program(2, "hang-in-a-wait", &depth);
    let text = job.says(&["requests not answered: 12 of 64; to rank 1: 12 of 12, 0 bytes"]);
    // It waits, polling: unlike the other one.
    assert_eq!(text.matches("none of them in the last 500 ms").count(), 1, "{text}");
    assert!(text.contains("ranks 0-1: in no barrier, after 1\n"), "{text}");
}

fn how_given_memory_is_reached_is_told() {
    let job = Hanging::program(2, "hang-with-given-memory", &[]);
    // Processes of one user, unless the system is set up not to let them.
    let words = match gasworks_os::remote::Remote::open(job.pids[0]) {
        Ok(_) => "given memory by process_vm_*: of rank 1\n".to_owned(),
        Err(_) => format!("given memory by messages: of rank 1: reach the memory of process {}", job.pids[1]),
    };
    job.says(&[&words]);
    let job = Hanging::program(2, "hang-with-given-memory", &[("GASWORKS_PROCESS_VM", "0")]);
    let text = job.says(&["rank 0: in barrier"]);
    assert!(!text.contains("given memory"), "nobody was asked: {text}");
}

fn a_job_is_asked_by_signal() {
    let job = Hanging::program(2, "hang-in-a-loop", &[]);
    job.says(&["rank 0: in barrier 3"]);
    let send = |pid: i32| {
        assert!(Command::new("kill").args(["-62", &pid.to_string()]).status().expect("kill").success());
    };
    send(job.pids[1]);
    send(job.gasrun.id() as i32);
    std::thread::sleep(Duration::from_secs(4));
    let text = job.end();
    // The rank for itself, gasrun for all.
    assert!(text.contains("gasworks: rank 1: in no barrier, after 2\n  polls: "), "{text}");
    assert!(text.contains("gasrun: rank 0: in barrier 3, which waits for rank 1\n"), "{text}");
    assert!(text.contains("gasrun: rank 1: in no barrier, after 2\n"), "{text}");
    assert!(!text.contains("gasworks: rank 0"), "{text}");
}

fn ranks_that_do_not_answer_are_told_of() {
    // One is stopped, and so cannot answer.
    let job = Hanging::program(2, "hang-in-a-loop", &[]);
    job.says(&["rank 0: in barrier 3"]);
    kill(Pid::from_raw(job.pids[0]), Signal::SIGSTOP).expect("stopped");
    let stopped = format!("rank 0 (pid {}): is stopped", job.pids[0]);
    job.says(&["rank 0: gave no answer within 3 s\nrank 1: in no barrier, after 2\n", &stopped]);
    // No program of this library, which the signal would kill: it is not sent.
    let mut stranger = Hanging::start(1, gasrun(&["-v", "-n", "1", "sh", "-c", "echo it hangs; sleep 50"]));
    stranger.says(&["rank 0: has not joined the job\n", ": sleeps"]);
    stranger.says(&["rank 0: has not joined the job\n"]);
    assert!(stranger.gasrun.try_wait().expect("known").is_none());
    // Without a signal nobody is asked.
    let silent = Hanging::program(2, "hang-in-a-loop", &[("GASWORKS_INSPECT_SIGNAL", "0")]);
    silent.says(&["ranks 0-1: has joined the job and cannot be asked\n"]);
}

fn a_script_in_between() {
    let me = std::env::current_exe().expect("a path");
    let script = format!("{} program hang-in-a-loop; true", me.display());
    let job = Hanging::start(2, gasrun(&["-v", "-n", "2", "sh", "-c", &script]));
    let text = job.says(&["rank 0: in barrier 3, which waits for rank 1\nrank 1: in no barrier, after 2\n"]);
    assert!(job.pids.iter().all(|pid| !text.contains(&format!("(pid {pid})"))), "the script's own: {text}");
}

/// Asked again and again from the first rank on, each of which hears the question and does not answer: what is said after a
/// while is about those that were there when it was asked.
fn a_job_that_is_just_starting() {
    const RANKS: u32 = 96;
    let script = "trap : USR2; while :; do sleep 1; done";
    let mut command = gasrun(&["-n", &RANKS.to_string(), "sh", "-c", script]);
    command.env("GASWORKS_INSPECT_SIGNAL", "12");
    let mut gasrun = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("gasrun starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    // It is known by name before it has said it.
    let first = format!("gasrun-{}-", gasrun.id());
    let name = loop {
        let jobs = err(&run(&["--inspect", "no-such-job"]));
        if let Some(name) = jobs.lines().map(str::trim).find(|line| line.starts_with(&first)) {
            break name.to_owned();
        }
        assert!(Instant::now() < deadline, "{jobs}");
    };
    loop {
        let output = run(&["--inspect", &name]);
        let text = out(&output);
        assert!(output.status.success(), "{}", err(&output));
        if text.contains(&format!("{RANKS} of {RANKS} ranks run")) {
            break;
        }
        assert!(text.starts_with(&format!("job {name}: ")) && Instant::now() < deadline, "{text}");
    }
    kill(Pid::from_raw(gasrun.id() as i32), Signal::SIGTERM).expect("sent");
    assert_eq!(gasrun.wait().expect("its end").code(), Some(128 + 15));
}

/// On two hosts, and on more than `gasrun` starts agents on itself; the ranks of one were started by a script, and are asked by another
/// signal.
fn ranks_of_several_hosts_are_asked() {
    let pretend = Pretend::new("");
    let many = (1..=18).map(|i| format!("h{i}")).collect::<Vec<_>>().join(",");
    let script = format!("{} program hang-in-a-loop; true", me());
    for (hosts, ranks, last) in [("a,b:3", 4, "b"), (&many, 18, "h18")] {
        let words = ["-v", "-n", &ranks.to_string(), "sh", "-c", &script];
        let mut command = pretend.gasrun(hosts, &words);
        command.env("GASWORKS_INSPECT_SIGNAL", "50");
        let job = Hanging::start(ranks, command);
        let waited = ranks - 1;
        let groups = format!(
            "ranks 0-{}: in barrier 3, which waits for rank {waited}\nrank {waited}: in no barrier, after 2\n",
            waited - 1
        );
        let text = job.says(&[&groups]);
        let line = format!("rank {waited} (pid ");
        let line = text.lines().find(|text| text.starts_with(&line)).expect("its own paragraph");
        assert!(line.contains(&format!(" on {last}): runs")), "{text}");
        assert_eq!(text.matches("requests not answered: 0 of ").count() as u32, ranks, "{text}");
        let text = err(&run(&["--inspect", "no-such-job"]));
        assert!(text.contains(&job.name) && !text.contains("gasworks-host"), "agents are no jobs: {text}");
        // Asked by signal it says the same.
        let sent = Command::new("kill").args(["-50", &job.gasrun.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        std::thread::sleep(Duration::from_secs(2));
        let text = job.end();
        assert!(text.contains(&format!("gasrun: rank {waited}: in no barrier, after 2\n")), "{text}");
    }
}

fn a_host_that_does_not_answer() {
    let pretend = Pretend::new("");
    let (key, entry) = mark("SILENT");
    let mut command = pretend.gasrun("a,b", &["-v", "-n", "2", &me(), "program", "hang-in-a-loop"]);
    command.env(&key, "1");
    let job = Hanging::start(2, command);
    let text = job.says(&["rank 0: in barrier 3, which waits for rank 1\n"]);
    assert!(text.contains("rank 1: in no barrier, after 2\n"), "{text}");
    let agent = agent_of("b", &entry);
    kill(agent, Signal::SIGSTOP).expect("stopped");
    let text = job.says(&["rank 0: in barrier 3, which waits for some of rank 1\n"]);
    assert!(text.contains("rank 1: nothing was heard from its host\n"), "{text}");
    assert!(text.contains("rank 1 (somewhere on b): is elsewhere\n"), "{text}");
    kill(agent, Signal::SIGCONT).expect("it goes on");
    job.says(&["rank 0: in barrier 3, which waits for rank 1\n"]);
}

fn a_job_that_is_not_there() {
    let job = Hanging::program(2, "hang-in-a-loop", &[]);
    let missing = |output: &Output| {
        assert!(output.status.code() == Some(1) && out(output).is_empty());
        err(output)
    };
    let text = missing(&run(&["--inspect", "no-such-job"]));
    assert!(
        text.starts_with("gasrun: inspect \"no-such-job\": you run no such job on this machine, but\n"),
        "{text}"
    );
    assert!(text.lines().any(|line| line.trim() == job.name), "{text}");
    let name = job.name.clone();
    drop(job);
    assert!(!missing(&run(&["--inspect", &name])).contains(&format!("  {name}")));
}
