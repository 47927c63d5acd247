//! Cases about the judge of jobs, and about the table of points.

use crate::points;
use crate::scenario::{EXIT_CODE, KILLED, Scenario};
use gasworks_testkit::Case;
use std::collections::BTreeSet;

/// The cases; `names` are the kill points of the product.
pub fn cases(names: BTreeSet<String>) -> Vec<Case> {
    vec![
        Case::check("judge/a-death-needs-its-code-and-one-line", a_death_needs_its_code_and_one_line),
        Case::check("judge/an-abort-is-told-with-its-text", an_abort_is_told_with_its_text),
        Case::check("judge/an-exit-with-a-victim-is-told", an_exit_with_a_victim_is_told),
        Case::check("judge/without-a-launcher-the-signal-tells", without_a_launcher_the_signal_tells),
        Case::new("judge/every-line-of-the-table-has-a-point", move |_| {
            let unused = points::unused(&names);
            assert!(
                unused.is_empty(),
                "no kill point is for these lines of tests/kill/points.rs: {unused:?}"
            );
            Ok(())
        }),
    ]
}

fn a_death_needs_its_code_and_one_line() {
    const SUITE: Scenario = Scenario::Suite { mode: "seq", victim: 2 };
    const DEAD: &str = "case a ok\ngasrun: rank 2 (pid 71) was killed by signal 9 (SIGKILL)\n";
    assert!(SUITE.judge("p", 137, DEAD).unwrap());
    assert!(!SUITE.judge("p", 0, "3 cases passed\n").unwrap());
    let wrong = |code, output: &str| SUITE.judge("p", code, output).unwrap_err().to_string();
    assert!(wrong(0, DEAD).contains("ended well"));
    assert!(wrong(1, DEAD).contains("exit code 1"));
    assert!(wrong(137, "").contains("0 lines"));
    assert!(wrong(137, &format!("{DEAD}gasrun: rank 1 (pid 70) exited with code 1\n")).contains("2 lines"));
    assert!(wrong(137, &DEAD.replace("rank 2", "rank 1")).contains("rank 2 (pid "));
    assert!(wrong(137, &DEAD.replace("SIGKILL", "SIGTERM")).contains("SIGKILL"));
}

fn an_abort_is_told_with_its_text() {
    let said = "gasrun: rank 0 (pid 71) aborted the job: asked to\n";
    assert!(!Scenario::Aborts.judge("job.open.greeted", 42, said).unwrap());
    assert!(Scenario::Aborts.judge("bootstrap.abort", 137, said).unwrap());
    let killed = "gasrun: rank 0 (pid 71) was killed by signal 9 (SIGKILL)\n";
    assert!(Scenario::Aborts.judge("job.open.greeted", 137, killed).unwrap());
    for (name, code, output) in [
        ("bootstrap.abort", 137, killed),
        ("bootstrap.abort", 0, said),
        ("job.open.greeted", 42, "gasrun: rank 0 (pid 71) exited with code 42\n"),
        ("job.open.greeted", 2, "gasrun: rank 0 (pid 71) exited with code 2\n"),
    ] {
        assert!(Scenario::Aborts.judge(name, code, output).is_err(), "{name} {code} {output}");
    }
}

fn an_exit_with_a_victim_is_told() {
    let end = |rank: usize, how: &str| format!("gasrun: rank {rank} (pid 7{rank}) {how}\n");
    let killed = |rank| end(rank, "was killed by signal 9 (SIGKILL)");
    let exited = |rank| end(rank, "exited with code 7");
    let judge =
        |code, lines: &[String]| Scenario::Exits { victim: 2 }.judge("keeper.finish", code, &lines.concat());
    let terminated = |rank| end(rank, "exited with code 143");
    assert!(judge(KILLED, &[killed(2), killed(2), terminated(0), terminated(1)]).unwrap());
    assert!(judge(EXIT_CODE, &[exited(0), exited(1), exited(1), killed(2)]).unwrap());
    assert!(!judge(EXIT_CODE, &[exited(0), exited(1), exited(1), exited(2)]).unwrap());
    for (code, lines) in [
        // Nothing was said; nobody was killed, or another rank; the death was not the job's end.
        (KILLED, &[][..]),
        (KILLED, &[exited(0), exited(1), exited(1), exited(2)]),
        (KILLED, &[killed(1), killed(1), terminated(0), terminated(2)]),
        (KILLED, &[exited(0), exited(1), exited(1), killed(2)]),
        // Nothing was said; a rank ended otherwise, or another one was killed; the death was the job's end.
        (EXIT_CODE, &[]),
        (EXIT_CODE, &[terminated(0), exited(1), exited(1), exited(2)]),
        (EXIT_CODE, &[exited(0), exited(1), exited(1), killed(0)]),
        (EXIT_CODE, &[exited(0), exited(1), killed(2), killed(2)]),
        // The code was not said to be rank 1's.
        (EXIT_CODE, &[exited(0), exited(0), exited(2), exited(2)]),
        (0, &[exited(0), exited(1), exited(1), killed(2)]),
    ] {
        assert!(judge(code, lines).is_err(), "{code} {lines:?}");
    }
}

fn without_a_launcher_the_signal_tells() {
    assert!(Scenario::Alone.judge("p", 137, "").unwrap());
    assert!(!Scenario::Alone.judge("p", 0, "").unwrap());
    assert!(Scenario::Alone.judge("p", 1, "").is_err());
}
