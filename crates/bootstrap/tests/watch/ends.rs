//! How ranks end together, and who is told.

use super::*;

pub fn ranks_that_all_exit_with_0_have_done_well() {
    let mut job = Job::new(2, "well");
    let ranks = job.meet(["exit 0", "exit 0"]);
    let (mut told, ends) = job.see_out(ranks);
    told.sort_by_key(|output| format!("{output:?}"));
    assert_eq!(told, [Output::Finalized { rank: 0 }, Output::Finalized { rank: 1 }]);
    assert_eq!(ends, [(Some(0), String::new()), (Some(0), String::new())]);
}

pub fn one_code_ends_all_ranks() {
    for who in [0u32, 1] {
        let mut job = Job::new(2, "code");
        let mut actions = ["meet"; 2];
        actions[who as usize] = "exit-when-told";
        let mut ranks = job.meet(actions);
        let begun = Instant::now();
        ranks[who as usize].tell();
        let (told, ends) = job.see_out(ranks);
        assert!(begun.elapsed() >= CONSENT, "the other may come to the same wish");
        assert_eq!(told, [Output::Exits { rank: who, code: 7, told: true }]);
        assert_eq!(ends, [(Some(7), String::new()), (Some(7), String::new())], "rank {who} exits");
    }
}

pub fn another_launcher_hears_that_all_ranks_end() {
    // It would take the end of a rank that has not said so for a failure of its own, and end the others.
    let mut job = Job::new(2, "foreign").foreign();
    let ranks = job.meet(["meet", "exit 7"]);
    let (mut told, ends) = job.see_out(ranks);
    told.sort_by_key(|output| format!("{output:?}"));
    assert_eq!(told, [Output::Finalized { rank: 0 }, Output::Finalized { rank: 1 }]);
    assert_eq!(ends, [(Some(7), String::new()), (Some(7), String::new())]);
    let mut job = Job::new(1, "foreign-alone").foreign();
    let rank = job.joined(0, "exit 7", Stdio::piped());
    let (told, ends) = job.see_out([rank]);
    assert_eq!((told, ends), (vec![Output::Finalized { rank: 0 }], [(Some(7), String::new())]));
}

pub fn a_rank_alone_ends_with_its_own_code() {
    for (action, wanted) in [
        ("exit 0", Output::Finalized { rank: 0 }),
        ("exit 7", Output::Exits { rank: 0, code: 7, told: true }),
        ("exit 256", Output::Exits { rank: 0, code: 1, told: true }),
    ] {
        let mut job = Job::new(1, "alone");
        let rank = job.joined(0, action, Stdio::piped());
        let (told, ends) = job.see_out([rank]);
        let code = if let Output::Exits { code, .. } = wanted { code } else { 0 };
        assert_eq!((told, ends), (vec![wanted], [(Some(code), String::new())]), "{action}");
    }
    // After its last job a process ends by itself, and not in good order where its code says so.
    for (action, wanted) in
        [("finish-and-end 0", vec![Output::Finalized { rank: 0 }]), ("finish-and-end 3", vec![])]
    {
        let mut job = Job::new(1, "leaves");
        let rank = job.joined(0, action, Stdio::piped());
        let (told, [(code, text)]) = job.see_out([rank]);
        assert_eq!((told, text), (wanted, String::new()), "{action}");
        assert_eq!(code, action.rsplit(' ').next().and_then(|code| code.parse().ok()));
    }
}

pub fn a_handler_of_the_program_chooses_the_code() {
    // It takes its time, and ends the process.
    let mut job = Job::new(1, "handled");
    let mut rank = job.joined(0, "handle 11", Stdio::piped());
    rank.says_met();
    rank.signal(Signal::SIGTERM);
    let (told, ends) = job.see_out([rank]);
    assert_eq!(told, [Output::Exits { rank: 0, code: 11, told: true }]);
    assert_eq!(ends, [(Some(11), String::new())]);
    // It does not come back.
    let mut job = Job::new(1, "hangs").timed(EXIT_TIMEOUT);
    let mut rank = job.joined(0, "handle 0", Stdio::piped());
    rank.says_met();
    let begun = Instant::now();
    rank.signal(Signal::SIGTERM);
    let (told, ends) = job.see_out([rank]);
    assert!(begun.elapsed() >= EXIT_TIMEOUT / 2, "the handler has half the time-out");
    assert_eq!(told, [Output::Exits { rank: 0, code: 143, told: true }]);
    assert_eq!(ends, [(Some(143), String::new())]);
}

/// Whose handler of the end does not come back is terminated, by itself where it leads the others.
pub fn who_is_not_ready_is_terminated() {
    let mut job = Job::new(2, "terminated").timed(EXIT_TIMEOUT);
    let [mut stuck, mut other] = job.meet(["be-terminated", "exit-when-told"]);
    stuck.says_met();
    other.says_met();
    other.tell();
    let (_told, [stuck, other]) = job.see_out([stuck, other]);
    assert_eq!((stuck.0, other.0), (Some(7), Some(7)));
    assert!(stuck.1.contains("terminated\n"), "{}", stuck.1);
}

pub fn an_abort_ends_all_ranks() {
    let mut job = Job::new(2, "abort");
    let ranks = job.meet(["meet", "abort"]);
    let (told, ends) = job.see_out(ranks);
    assert!(matches!(told.first(), Some(Output::Exits { rank: 1, code: 42, .. })), "{told:?}");
    let expected =
        |output: &Output| matches!(output, Output::Exits { rank: 1, code: 42, .. } | Output::Abort { .. });
    assert!(told.iter().all(expected), "{told:?}");
    let said = format!("gasworks: rank 1: no more{}\n", "!".repeat(200));
    assert_eq!(ends, [(Some(42), String::new()), (Some(42), said)]);
}

pub fn an_order_to_abort_reaches_the_launcher() {
    let said = format!("gasworks: rank 0: no more{}\n", "!".repeat(200));
    // PMI-2 has no place for the code, and a message is short and on one line; PMI-1 has no place for that.
    let message = format!("no more{}", "!".repeat(121));
    for (dialect, code, message) in [("pmi2", None, message), ("pmi1", Some(42), String::new())] {
        let mut job = Job::new(1, "order");
        let rank = job.start(0, &format!("abort-unwatched {dialect}"), Stdio::piped());
        let (told, ends) = job.see_out([rank]);
        assert_eq!(told, [Output::Joined { rank: 0 }, Output::Abort { rank: 0, code, message }]);
        assert_eq!(ends, [(Some(42), said.clone())]);
    }
    // Another launcher ends the job by the code of the process, which the order would replace.
    let mut rank = Job::new(1, "other").start(0, "abort-unwatched pmi2", Stdio::piped());
    rank.line.write_all(b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n").expect("sent");
    rank.line.write_all(b"    41cmd=fullinit-response;rc=0;rank=0;size=1;").expect("sent");
    rank.line.write_all(b"    36cmd=job-getid-response;jobid=j;rc=0;").expect("sent");
    let mut asked = String::new();
    rank.line.read_to_string(&mut asked).expect("read");
    assert!(asked.ends_with("cmd=job-getid;"), "{asked}");
    assert_eq!(rank.end(), (Some(42), said));
}

pub fn who_does_not_exit_with_0_is_named() {
    for who in [0, 1] {
        let mut job = Job::new(2, "named").timed(EXIT_TIMEOUT);
        let begun = Instant::now();
        let mut actions = ["meet"; 2];
        actions[who] = "exit 0";
        let ranks = job.meet(actions);
        let (mut told, ends) = job.see_out(ranks);
        assert!(begun.elapsed() >= EXIT_TIMEOUT, "the others may come to the same wish");
        told.sort_by_key(|output| format!("{output:?}"));
        assert_eq!(told, [Output::Finalized { rank: 0 }, Output::Finalized { rank: 1 }]);
        // The leader says so, also where it is the one.
        let text = format!(
            "gasworks: the job ends by exit(0), which not all ranks have called within 0.6 s (GASNET_EXITTIMEOUT): rank {} \
             did not\n",
            1 - who
        );
        assert_eq!(ends, [(Some(0), text), (Some(0), String::new())]);
    }
}

/// A process that would stay where a test fails.
struct KilledAfterFailure(u32);

impl Drop for KilledAfterFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = kill(Pid::from_raw(self.0 as i32), Signal::SIGKILL);
        }
    }
}

pub fn a_stopped_rank_is_let_run_to_its_end() {
    // The leader signals its follower, or the other way round: after half the time-out.
    for stopped in [1, 0] {
        let mut job = Job::new(2, "stopped").timed(2 * EXIT_TIMEOUT);
        let mut actions = ["finish-when-told"; 2];
        actions[1 - stopped] = "exit-when-told";
        let mut ranks = job.meet(actions);
        // One that is stopped earlier holds up the other, which then is not told anything.
        ranks.iter_mut().for_each(Rank::says_met);
        ranks[stopped].signal(Signal::SIGSTOP);
        let _killed = KilledAfterFailure(ranks[stopped].process.id());
        ranks[1 - stopped].tell();
        let (told, ends) = job.see_out(ranks);
        // The signal that ends a rank may be told as well, but later.
        assert_eq!(told.first(), Some(&Output::Exits { rank: 1 - stopped as u32, code: 7, told: true }));
        assert_eq!(ends, [(Some(7), String::new()), (Some(7), String::new())], "rank {stopped} is stopped");
    }
}
