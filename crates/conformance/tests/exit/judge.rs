//! Judging how a job ended.

use crate::launcher::Launcher;
use anyhow::{Result, ensure};
use gasworks_conformance::ends::{self, CASES, RANKS};
use gasworks_testkit::Case;

/// An error unless a job that `launcher` started ended as `end` says, by its exit code (`None` if it has none) and its output.
pub fn judge(launcher: Launcher, end: &ends::Case, code: Option<i32>, output: &str) -> Result<()> {
    let is_own = launcher.has_own_codes(end) && code.is_some_and(|code| code > 0);
    let is_wanted = code.is_some_and(|code| end.codes.contains(&code));
    ensure!(is_wanted || is_own, "the job did not end with a code of {:?}", end.codes);
    // Where Hydra kills a rank that has just said it ends in good order, its own answer breaks it, and what ranks print is lost.
    let may_be_lost = launcher == Launcher::Hydra && end.is_mixed();
    for text in end.said.iter().filter(|_| !may_be_lost) {
        ensure!(output.contains(text), "nobody said {text:?}");
    }
    for text in end.unsaid {
        ensure!(!output.contains(text), "somebody said {text:?}");
    }
    ensure!(!output.contains("rank ended too late"), "a rank was not told of the end");
    if launcher == Launcher::HydraWithoutCleanup && end.vanishes() {
        // Only the other ranks can notice it here.
        ensure!(output.contains("is gone without a word"), "no rank has noticed that another one is gone");
    }
    // Cray's PMI knows no end with a code: whoever ends takes its leave first.
    if launcher == Launcher::Gasrun {
        let heard = output.matches("is about to end in good order").count();
        ensure!(heard <= RANKS as usize, "{heard} ends in good order of {RANKS} ranks");
        match end.finalized {
            Some(wanted) => ensure!(heard == wanted, "{heard} ends in good order, not {wanted}"),
            None => ensure!(heard == 0 || end.is_mixed(), "{heard} ends in good order of a job that failed"),
        }
    }
    Ok(())
}

/// Cases about the judge itself.
pub fn cases() -> Vec<Case> {
    vec![
        Case::check("judge/another-code-is-found", another_code_is_found),
        Case::check("judge/what-is-said-is-found", what_is_said_is_found),
        Case::check("judge/ends-in-good-order-are-counted", ends_in_good_order_are_counted),
    ]
}

#[track_caller]
fn end(name: &str) -> &'static ends::Case {
    CASES.iter().find(|end| end.name == name).unwrap_or_else(|| panic!("there is no case {name:?}"))
}

/// What is wrong with an end, or nothing.
fn wrong(launcher: Launcher, name: &str, code: Option<i32>, output: &str) -> String {
    judge(launcher, end(name), code, output).err().map(|error| error.to_string()).unwrap_or_default()
}

fn another_code_is_found() {
    assert_eq!(wrong(Launcher::Gasrun, "exit", Some(7), ""), "");
    for launcher in Launcher::ALL {
        for code in [Some(0), Some(1), None] {
            assert!(wrong(launcher, "exit", code, "").contains("a code of [7]"), "{launcher:?} {code:?}");
        }
    }
    // Hydra chooses the code of a rank that is killed, but it is no success.
    assert_eq!(wrong(Launcher::Hydra, "sigkill", Some(9), ""), "");
    assert_ne!(wrong(Launcher::Hydra, "sigkill", Some(0), ""), "");
    assert_ne!(wrong(Launcher::Hydra, "sigkill", None, ""), "");
    assert_ne!(wrong(Launcher::Gasrun, "sigkill", Some(9), ""), "");
}

fn what_is_said_is_found() {
    let said = "gasworks: rank 1: asked to";
    assert_eq!(wrong(Launcher::Hydra, "abort", Some(42), said), "");
    assert!(wrong(Launcher::Hydra, "abort", Some(42), "").contains("nobody said"));
    assert!(wrong(Launcher::Hydra, "exit-by-all", Some(4), "quit handler ran").contains("somebody said"));
    assert!(wrong(Launcher::Hydra, "exit", Some(7), "rank ended too late").contains("not told"));
    let gone = "gasworks: rank 1 is gone without a word";
    assert_eq!(wrong(Launcher::HydraWithoutCleanup, "sigkill", Some(9), gone), "");
    assert!(wrong(Launcher::HydraWithoutCleanup, "sigkill", Some(9), "").contains("noticed"));
}

fn ends_in_good_order_are_counted() {
    let heard = |count: usize| "rank is about to end in good order\n".repeat(count);
    let ended = |name, code, count| wrong(Launcher::Gasrun, name, Some(code), &heard(count));
    assert_eq!(ended("close", 0, 3), "");
    assert_eq!(ended("close", 0, 2), "2 ends in good order, not 3");
    assert_eq!(ended("exit", 7, 1), "1 ends in good order of a job that failed");
    assert_eq!(ended("exit-after-close", 5, 1), "");
    assert_eq!(ended("exit-after-close", 5, 4), "4 ends in good order of 3 ranks");
}
