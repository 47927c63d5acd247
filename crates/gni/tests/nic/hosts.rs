//! The conformance suite on three hosts, some of whose ranks share a host.

use crate::job::{ADVERSARIAL, CHIP, DELIVERY, passes, suite_with};
use anyhow::{Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::nic::{TOGETHER, dressed};
use gasworks_testkit::programs::{Fixture, release};
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
    let ends = [("exit-zero", 0), ("exit", 7)].into_iter().flat_map(|(act, code)| {
        ["0", "2"].map(|rank| {
            Case::new(format!("three-hosts/{act}/rank-{rank}"), move |log| ends(log, act, rank, code))
        })
    });
    whole.chain(engines).chain(ends).map(|case| case.need(Need::Hosts)).collect()
}

/// A rank ends the job by itself, and the ranks of the other hosts end with it, and with its code.
fn ends(log: &Log, act: &str, rank: &str, code: i32) -> Result<()> {
    let options = format!("--hosts h1:1,h2:2 {RSH} -x GASWORKS_NETWORK -x GASNET_EXITTIMEOUT");
    let job = dressed(release()?.gasrun_with(3, &options, "gasworks-ends")?, &Fixture::Nic.get()?);
    // Who ends so leaves what is registered.
    let job = job.env("GASWORKS_UGNI_STRICT", "0").env("GASNET_EXITTIMEOUT", "2");
    let ended = log.run(&Cluster::up()?.on_h0(job.arg("act").arg(act).arg(rank)))?;
    ensure!(ended.code() == Some(code), "{}, not code {code}", ended.how());
    ensure!(!ended.output.contains("rank ended too late"), "a rank was not told of the end");
    Ok(())
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
