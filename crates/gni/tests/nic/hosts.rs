//! The conformance suite on three hosts, some of whose ranks share a host.

use crate::job::{ADVERSARIAL, CHIP, DELIVERY, passes, suite_with};
use anyhow::{Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::nic::TOGETHER;
use gasworks_testkit::{Case, Cmd, Log, Need};

/// The ranks of each host, and how many there are in all.
type Placement = (&'static str, usize);

/// How ranks are started on other hosts, and what they get of the environment.
const RSH: &str = "--rsh /run/rsh -x LD_LIBRARY_PATH -x GASWORKS_BOOTSTRAP";

const SIX: Placement = ("h1:2,h2:2,h3:2", 6);
const FOUR: Placement = ("h1:2,h2:1,h3:1", 4);

pub fn cases() -> Vec<Case> {
    // On two processors, six ranks take a minute for the whole suite, and adversarial delivery or several threads more.
    let placement = if is_nightly() { SIX } else { FOUR };
    let runs = [
        ("aries", "plain", "seq", "0"),
        ("gemini", ADVERSARIAL, "parsync", "1"),
        ("gemini", ADVERSARIAL, "par", "1"),
    ];
    let daily = if is_nightly() { runs.len() } else { 1 };
    let whole = runs.into_iter().take(daily).map(|(chip, delivery, mode, together)| {
        Case::new(format!("three-hosts/{mode}/{chip}/{delivery}"), move |log| {
            let suite = suite(placement, mode)?.env(CHIP, chip).env(DELIVERY, delivery);
            let suite = suite.env(TOGETHER, together);
            // The service process of a host may have to wait that long for a processor.
            passes(log, &Cluster::up()?.on_h0(suite.env("GASWORKS_LOST_AFTER", "20")), placement.1)
        })
    });
    let runs = [("plain", "seq", "1"), (ADVERSARIAL, "par", "0")];
    let engines = runs.into_iter().map(|(delivery, mode, beside_memory)| {
        Case::new(format!("engines/three-hosts/{mode}/{delivery}"), move |log| {
            barriers(log, suite(SIX, mode)?.env(DELIVERY, delivery).env("GASNET_USE_CE_PSHM", beside_memory))
        })
    });
    whole.chain(engines).map(|case| case.need(Need::Hosts)).collect()
}

fn suite((hosts, ranks): Placement, mode: &str) -> Result<Cmd> {
    suite_with(ranks, &format!("--hosts {hosts} {RSH}"), mode)
}

/// Barriers by the collective engines of several hosts, whose ranks meet in memory first, or each by an engine of its own.
fn barriers(log: &Log, suite: Cmd) -> Result<()> {
    let suite = suite.env("GASNET_BARRIER", "GNICE").env(TOGETHER, "0").words("--case barrier.");
    let ended = log.run_ok(&Cluster::up()?.on_h0(suite))?;
    ensure!(ended.output.contains("cases passed"), "no case passed");
    Ok(())
}
