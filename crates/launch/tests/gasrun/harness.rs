//! Cases as entries of this test program's table, each with a watchdog.

use gasworks_testkit::{Case as Entry, Need};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// No case may take longer. What a case must not wait for (a sleeping rank, as a rule) lasts longer than this.
const WATCHDOG: Duration = Duration::from_secs(60);

/// The name of a case, and what it does: it panics where something is wrong.
pub type Case = (&'static str, fn());

/// Cases as entries of the table.
pub fn entries(cases: &'static [Case]) -> impl Iterator<Item = Entry> {
    cases.iter().map(|&case| entry(case))
}

/// Cases as entries of the table, each with what it needs of the machine.
pub fn entries_with_needs(cases: &'static [(Need, Case)]) -> impl Iterator<Item = Entry> {
    cases.iter().map(|&(need, case)| entry(case).need(need))
}

fn entry((name, body): Case) -> Entry {
    Entry::new(name, move |_| {
        watched(body, WATCHDOG);
        Ok(())
    })
}

/// Runs `body` and panics if it does, or if it has not ended in time.
fn watched(body: fn(), limit: Duration) {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(catch_unwind(body)));
    match wait.recv_timeout(limit) {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("the case did not end within {} s", limit.as_secs_f32()),
    }
}

/// The watchdog itself: what panics or hangs is found.
pub const CASES: &[Case] = &[("the_watchdog_finds_a_case_that_hangs", the_watchdog_finds_a_case_that_hangs)];

fn the_watchdog_finds_a_case_that_hangs() {
    let said = |body: fn(), limit: Duration| -> String {
        let panic = catch_unwind(|| watched(body, limit)).expect_err("it ended well");
        let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    let hangs = || std::thread::sleep(Duration::from_secs(50));
    assert_eq!(said(hangs, Duration::from_millis(20)), "the case did not end within 0.02 s");
    assert_eq!(said(|| panic!("as it should"), WATCHDOG), "as it should");
}
