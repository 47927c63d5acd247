//! The conformance suite with several domains of the NIC in each rank, as `GASNET_DOMAIN_COUNT` asks for them.

use crate::job::{
    ADVERSARIAL, CHIP, CHIPS, DELIVERY, FAULTS, Variables, counted, passes, suite, values_daily, with,
};
use anyhow::{Result, ensure};
use gasworks_testkit::nic::TOGETHER;
use gasworks_testkit::{Case, Log};

/// How many domains a rank has.
pub const COUNT: &str = "GASNET_DOMAIN_COUNT";
const COUNTS: [&str; 2] = ["2", "4"];
/// How rarely a thread polls the domains of other threads.
pub const POLL_MASK: &str = "GASNET_AM_DOMAIN_POLL_MASK";

/// Ways to use several domains: a name, the ranks, the thread mode, and settings.
const USES: [(&str, usize, &str, Variables); 6] = [
    ("usual", 3, "par", &[(POLL_MASK, "255")]),
    (
        "shared-by-threads",
        2,
        "par",
        &[
            (POLL_MASK, "0"),
            ("GASNET_GNI_PTHREADS_PER_DOMAIN", "2"),
            ("GASWORKS_GNI_SPINLOCK", "1"),
            ("GASWORKS_PROGRESS_THREAD", "1"),
        ],
    ),
    ("hardly-polled", 4, "par", &[(POLL_MASK, "4294967295"), (DELIVERY, ADVERSARIAL), (TOGETHER, "2")]),
    (
        "one-registration",
        2,
        "par",
        &[
            (POLL_MASK, "7"),
            ("GASNET_GNI_NUM_PD", "32"),
            ("GASNET_GNI_MEMREG", "1"),
            ("GASNET_USE_UDREG", "1"),
        ],
    ),
    (
        "notifications-are-lost",
        3,
        "par",
        &[(POLL_MASK, "1"), (FAULTS, "remote-queue:overrun%20"), ("GASNET_GNI_AM_MAX_CQE", "8")],
    ),
    // A rank with one thread has one domain, whatever is asked for.
    ("one-thread", 2, "seq", &[]),
];

pub fn cases() -> Vec<Case> {
    let suites = values_daily(&[USES.len(), COUNTS.len(), CHIPS.len()]).into_iter().map(|pick| {
        let (name, ranks, mode, variables) = USES[pick[0]];
        let (count, chip) = (COUNTS[pick[1]], CHIPS[pick[2]]);
        Case::new(format!("domains/{name}/{count}/{chip}"), move |log| {
            let suite = suite(ranks, mode)?.env(CHIP, chip).env(COUNT, count);
            passes(log, &with(suite, variables), ranks)
        })
    });
    let used = (1..=3).map(|count| Case::new(format!("domains/used/{count}"), move |log| used(log, count)));
    suites.chain(used).collect()
}

/// Every domain transfers what its threads put and get, and none registers memory for itself.
fn used(log: &Log, count: u64) -> Result<()> {
    /// The memory of messages, the peer's mailbox, and the segment.
    const REGISTERED: u64 = 3;
    /// For transfers.
    const MEMREG: u64 = 3;
    let suite = suite(2, "par")?.env(COUNT, count.to_string()).words("--case threads.all-at-once");
    for counts in counted(log, suite.env("GASNET_GNI_MEMREG", MEMREG.to_string()), 2)? {
        let calls = |name: &str| counts["calls"][name]["GNI_RC_SUCCESS"].as_u64();
        // An endpoint is made when something goes by it; there is one peer.
        let (attached, used) = (calls("GNI_CdmAttach"), calls("GNI_EpCreate"));
        ensure!([attached, used] == [Some(count); 2], "{attached:?} attached, {used:?} used");
        let most = counts["registrations"]["most"].as_u64();
        ensure!(most.is_some_and(|most| most <= REGISTERED + MEMREG), "{most:?} registrations");
    }
    Ok(())
}
