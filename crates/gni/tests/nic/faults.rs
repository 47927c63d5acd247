//! Faults of the NIC: those that a job survives, and those that end it with an error.

use crate::engines::BARRIER;
use crate::job::{CHIP, CHIPS, FAULTS, MODES, counted, fails, passes, suite, values_daily};
use anyhow::{Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::{Case, Log};

/// Faults that a job survives: a name, and what is injected.
const SURVIVED: [(&str, &str); 5] = [
    ("no-resources", "GNI_PostFma:ERROR_RESOURCE%30 GNI_PostRdma:ERROR_RESOURCE%30"),
    ("notifications-are-lost", "remote-queue:overrun%20"),
    ("most-notifications-are-lost", "remote-queue:overrun%60"),
    // The first three are the messages', the segment's and the mailboxes'.
    ("registrations-are-refused", "GNI_MemRegister:INVALID_PARAM@4 GNI_MemRegister:ERROR_RESOURCE@5"),
    ("few-mailboxes", "GNI_MemRegister:ERROR_RESOURCE@3"),
];

/// Faults that end the job: a name, what is injected, and the error.
const FATAL: [(&str, &str, &str); 6] = [
    ("a-message-is-lost", "transaction:gone@100", "cannot be reached any more: the target cannot be reached"),
    ("events-are-lost", "queue:overrun@100", "events of its own posts were lost"),
    ("no-descriptor", "GNI_CdmAttach:ERROR_RESOURCE@1", "GASNET_GNI_FMA_SHARING=1 shares them"),
    ("no-registration", "GNI_MemRegister:INVALID_PARAM@1", "GNI_MemRegister gave GNI_RC_INVALID_PARAM"),
    ("no-segment", "GNI_MemRegister:INVALID_PARAM@2", "GNI_MemRegister gave GNI_RC_INVALID_PARAM"),
    ("no-queue", "GNI_CqCreate:ERROR_NOMEM@1", "GNI_CqCreate gave GNI_RC_ERROR_NOMEM"),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for pick in values_daily(&[SURVIVED.len(), MODES.len(), CHIPS.len()]) {
        let ((name, faults), mode, chip) = (SURVIVED[pick[0]], MODES[pick[1]], CHIPS[pick[2]]);
        cases.push(Case::new(format!("survived/{name}/{mode}/{chip}"), move |log| {
            passes(log, &suite(3, mode)?.env(CHIP, chip).env(FAULTS, faults), 3)
        }));
    }
    for (how, first) in [("timeout", 5), ("congested", 8), ("enqueue", 11)] {
        cases.push(Case::new(format!("survived/a-transfer-fails-once/{how}"), move |log| {
            transfers_again(log, how, first)
        }));
    }
    let refused = [("par", "INVALID_PARAM"), ("seq", "ERROR_RESOURCE"), ("parsync", "INVALID_PARAM")];
    for (mode, code) in refused.into_iter().take(if is_nightly() { 3 } else { 1 }) {
        cases.push(Case::new(format!("survived/every-registration-is-refused/{mode}"), move |log| {
            every_registration_refused(log, mode, code)
        }));
    }
    cases.push(Case::new("survived/registrations-have-to-wait", registrations_have_to_wait));
    cases.push(Case::new("fatal/registrations-wait-in-vain", |log| {
        let job = suite(2, "seq")?.env(FAULTS, no_room(1..=10));
        fails(log, job, "GNI_MemRegister gave GNI_RC_ERROR_RESOURCE")
    }));
    for (name, faults, says) in FATAL {
        cases.push(Case::new(format!("fatal/{name}"), move |log| {
            fails(log, suite(2, "seq")?.env(FAULTS, faults), says)
        }));
    }
    for how in ["timeout", "congested", "gone"] {
        cases.push(Case::new(format!("fatal/an-atomic-operation-is-lost/{how}"), move |log| {
            atomic_lost(log, how)
        }));
    }
    cases.push(Case::new("fatal/a-reduction-is-lost", |log| {
        // Each rank puts a word, and contributes another, in turn.
        let job = suite(2, "seq")?.env(BARRIER, "GNICE").words("--case barrier.split-phase");
        let job = job.env(FAULTS, "transaction:timeout@4");
        fails(log, job, "the collective engines have no result of a barrier")
    }));
    cases
}

/// A transfer that fails once is posted again: a case of transfers alone, of which one fails.
fn transfers_again(log: &Log, how: &str, first: usize) -> Result<()> {
    for number in (first..45).step_by(9) {
        let case = suite(2, "seq")?.words("--case rma.blocking");
        let ended = log.run_ok(&case.env(FAULTS, format!("transaction:{how}@{number}")))?;
        ensure!(ended.output.contains("1 cases passed"), "the case was not run");
    }
    Ok(())
}

/// The NIC has no room for these registrations.
fn no_room(which: impl IntoIterator<Item = usize>) -> String {
    let faults = which.into_iter().map(|number| format!("GNI_MemRegister:ERROR_RESOURCE@{number}"));
    faults.collect::<Vec<_>>().join(" ")
}

/// What the job cannot do without, the messages' memory and the segment, is registered at the tenth time.
fn registrations_have_to_wait(log: &Log) -> Result<()> {
    let job = suite(2, "seq")?.words("--case rma.blocking").env(FAULTS, no_room((1..=9).chain(11..=19)));
    for counts in counted(log, job, 2)? {
        let refused = &counts["calls"]["GNI_MemRegister"]["GNI_RC_ERROR_RESOURCE"];
        ensure!(refused.as_u64() == Some(18), "{refused} were refused");
    }
    Ok(())
}

/// No registration that a transfer asks for is made: everything goes through memory that was registered before.
fn every_registration_refused(log: &Log, mode: &str, code: &str) -> Result<()> {
    /// More than a rank asks for; the first three are the messages', the segment's and the mailboxes'.
    const LAST: usize = 2000;
    let faults: Vec<_> = (4..LAST).map(|n| format!("GNI_MemRegister:{code}@{n}")).collect();
    // A region that is created later has to be registered; everything else goes on without.
    let suite = suite(3, mode)?.words("--without region.").env(FAULTS, faults.join(" "));
    for counts in counted(log, suite, 3)? {
        let (most, asked) = (&counts["registrations"]["most"], &counts["calls"]["GNI_MemRegister"]);
        let refused = asked[format!("GNI_RC_{code}")].as_u64().unwrap_or(0);
        ensure!(most.as_u64() <= Some(3), "{most} registrations at once");
        ensure!((1..LAST as u64 - 4).contains(&refused), "{refused} were refused");
    }
    Ok(())
}

/// An atomic operation that may or may not have been done is not tried again, and the rank that waits for it is told.
fn atomic_lost(log: &Log, how: &str) -> Result<()> {
    // The 60th transaction is an atomic operation: the case begins with hundreds of them and no messages between.
    let job = suite(2, "seq")?.env(FAULTS, format!("transaction:{how}@60"));
    fails(log, job.words("--case atomic.every-operation"), "whether an atomic operation on rank")
}
