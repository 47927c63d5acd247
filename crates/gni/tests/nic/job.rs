//! Jobs over the software NIC, and judging how they end.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::output::told_once;
use gasworks_testkit::pairwise::{Pick, product};
use gasworks_testkit::programs::{Fixture, release};
use gasworks_testkit::suite::enough;
use gasworks_testkit::{Case, Cmd, Log};

/// The chips, as [`CHIP`] names them.
pub const CHIPS: [&str; 2] = ["aries", "gemini"];
/// The thread modes of a job.
pub const MODES: [&str; 3] = ["seq", "par", "parsync"];
/// The delivery, as [`DELIVERY`] names it, of which a client may expect least: late, in an order that follows from [`SEED`], and with
/// events that come before what they tell of.
pub const ADVERSARIAL: &str = "unordered";
/// How the NIC delivers: at once and in order, or so.
pub const DELIVERIES: [&str; 2] = ["plain", ADVERSARIAL];

/// The setting that chooses the chip of the software NIC.
pub const CHIP: &str = "GASWORKS_UGNI_CHIP";
/// The setting that chooses how the software NIC delivers.
pub const DELIVERY: &str = "GASWORKS_UGNI_MOOD";
/// The setting from which the delays of adversarial delivery follow.
pub const SEED: &str = "GASWORKS_UGNI_SEED";
/// The setting that injects faults into the software NIC.
pub const FAULTS: &str = "GASWORKS_UGNI_FAULTS";

/// Settings of a job: variables and their values.
pub type Variables = &'static [(&'static str, &'static str)];

/// All combinations of dimensions with these numbers of values, by night; by day a set in which every value occurs.
pub fn values_daily(sizes: &[usize]) -> Vec<Pick> {
    if is_nightly() { product(sizes) } else { each_value(sizes) }
}

/// As many combinations as the largest dimension has values: each value of each dimension occurs.
fn each_value(sizes: &[usize]) -> Vec<Pick> {
    let most = sizes.iter().copied().max().unwrap_or(0);
    (0..most).map(|n| sizes.iter().map(|size| n % size).collect()).collect()
}

/// The conformance suite on so many ranks in a thread mode, as a job over the software NIC.
pub fn suite(ranks: usize, mode: &str) -> Result<Cmd> {
    suite_with(ranks, "", mode)
}

/// The same, with more options for `gasrun`.
pub fn suite_with(ranks: usize, options: &str, mode: &str) -> Result<Cmd> {
    let suite = release()?.gasrun_with(ranks, &format!("--label {options}"), "gasworks-conformance")?;
    Ok(dressed(suite, &Fixture::Nic.get()?).words(&format!("--mode {mode}")))
}

/// A job with these settings too.
pub fn with(job: Cmd, variables: &[(&str, &str)]) -> Cmd {
    variables.iter().fold(job, |job, (name, value)| job.env(name, value))
}

/// Runs the whole suite: an error unless it ends with code 0 and rank 0 counts as many cases as there are.
pub fn passes(log: &Log, suite: &Cmd, ranks: usize) -> Result<()> {
    let output = log.run_ok(suite)?.output;
    // Each line begins with the rank that wrote it.
    let said = output.lines().filter_map(|line| line.strip_prefix("[0] "));
    enough(&said.collect::<Vec<_>>().join("\n"), "pshm", ranks)
}

/// Runs a job that must fail: an error unless it ends by itself with another code than 0, some rank says why, and none says it
/// twice.
pub fn fails(log: &Log, job: Cmd, says: &str) -> Result<()> {
    let ended = log.run(&job.limit(60))?;
    let code = ended.code().context("it did not end")?;
    ensure!(code != 0, "it went well");
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    told_once(&ended.output, &[says])
}

/// Runs a job and returns what the NIC of each rank counted, as JSON. A case may call it once: its counts are in the case's
/// own folder.
pub fn counted(log: &Log, job: Cmd, ranks: usize) -> Result<Vec<serde_json::Value>> {
    let place = log.scratch()?;
    log.run_ok(&job.env("GASWORKS_UGNI_WITNESS", place.join("seen")))?;
    let read = |file: std::io::Result<std::fs::DirEntry>| -> Result<serde_json::Value> {
        serde_json::from_str(&std::fs::read_to_string(file?.path())?).context("what the NIC has counted")
    };
    let all: Vec<_> = std::fs::read_dir(&place)?.map(read).collect::<Result<_>>()?;
    ensure!(all.len() == ranks, "{} of {ranks} ranks were counted", all.len());
    Ok(all)
}

/// Cases that test the functions above.
pub fn judges() -> Vec<Case> {
    vec![Case::new("judge/every-value-occurs", |_| {
        for sizes in [&[5, 3, 2][..], &[2, 4], &[1]] {
            let picks = each_value(sizes);
            for (at, &size) in sizes.iter().enumerate() {
                let missing = (0..size).find(|value| !picks.iter().any(|pick| pick[at] == *value));
                ensure!(missing.is_none(), "{sizes:?}: no combination has {missing:?} of dimension {at}");
            }
            ensure!(Some(picks.len()) == sizes.iter().copied().max(), "{sizes:?}: {} picks", picks.len());
        }
        Ok(())
    })]
}
