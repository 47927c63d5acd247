//! Barriers by the collective engines of Aries (`GASNET_BARRIER=GNICE`).

use crate::job::{ADVERSARIAL, DELIVERY, MODES, SEED, Variables, counted, passes, suite, with};
use anyhow::{Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::nic::TOGETHER;
use gasworks_testkit::{Case, Cmd, Log};

/// The setting that says how ranks meet.
pub const BARRIER: &str = "GASNET_BARRIER";

/// Trees of engines: a name, the ranks, and settings.
const TREES: [(&str, usize, Variables); 5] = [
    ("pair", 2, &[]),
    ("chain", 3, &[("GASNET_GNI_CE_RADIX", "1")]),
    ("memory-first", 4, &[(TOGETHER, "2")]),
    ("one-each", 5, &[(TOGETHER, "2"), ("GASNET_USE_CE_PSHM", "0"), ("GASNET_GNI_CE_RADIX", "31")]),
    ("sock", 4, &[("GASWORKS_UGNI_WIRE", "sock")]),
];

/// Seeds of adversarial delivery for each tree.
const NIGHTLY_SEEDS: u32 = 3;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, (name, ranks, variables)) in TREES.into_iter().enumerate() {
        let suite =
            move |mode| Ok::<_, anyhow::Error>(with(suite(ranks, mode)?.env(BARRIER, "GNICE"), variables));
        // Over sockets the whole suite takes long, and the engines are used by barriers alone.
        let is_whole = is_nightly() || name != "sock";
        cases.push(Case::new(format!("engines/{name}/plain"), move |log| {
            let suite = suite(MODES[at % 3])?;
            if is_whole { passes(log, &suite, ranks) } else { barriers_pass(log, suite) }
        }));
        for seed in 1..=if is_nightly() { NIGHTLY_SEEDS } else { 1 } {
            cases.push(Case::new(format!("engines/{name}/adversarial/{seed}"), move |log| {
                let suite = suite(MODES[(at + 1) % 3])?.env(DELIVERY, ADVERSARIAL);
                barriers_pass(log, suite.env(SEED, seed.to_string()))
            }));
        }
    }
    for (barrier, together, users) in [("GNICE", "1", 4), ("GNICE", "2", 2), ("AUTO", "1", 0)] {
        cases.push(Case::new(format!("engines/used/{barrier}/{together}"), move |log| {
            used(log, barrier, together, users)
        }));
    }
    cases
}

/// Reductions in the case `collective.numbers` that engines do: of one integer of all ranks to all, by its bits or its sum.
const REDUCTIONS: u64 = 9;

/// Runs the suite's cases of barriers alone, and of reductions of words.
fn barriers_pass(log: &Log, suite: Cmd) -> Result<()> {
    let ended = log.run_ok(&suite.clone().words("--case barrier."))?;
    let passed =
        ended.output.lines().filter(|line| line.contains("] case barrier.") && line.ends_with(" ok"));
    ensure!(passed.count() >= 5, "few barriers passed");
    let ended = log.run_ok(&suite.words("--case collective.numbers"))?;
    ensure!(ended.output.contains("] case collective.numbers"), "no reduction of words");
    Ok(())
}

/// Of 4 ranks `users` post to an engine, all of them equally often: the ranks that meet by engines, or none where no engine is asked for. A case with
/// reductions of words posts once more for each of them.
fn used(log: &Log, barrier: &str, together: &str, users: usize) -> Result<()> {
    let posts = |case: &str| -> Result<u64> {
        let suite = suite(4, "seq")?.words(&format!("--case {case}")).env(BARRIER, barrier);
        let counts = counted(log, suite.env(TOGETHER, together), 4)?;
        let posts = counts.iter().filter_map(|counts| counts["posted"]["GNI_POST_CE"]["posts"].as_u64());
        let posts: Vec<_> = posts.collect();
        ensure!(posts.len() == users, "{case}: {} ranks in place of {users} use an engine", posts.len());
        ensure!(posts.iter().all(|count| *count > 0 && *count == posts[0]), "{case}: {posts:?} posts");
        Ok(posts.first().copied().unwrap_or(0))
    };
    // Both have as many barriers but three, one for each of their teams.
    let (scans, numbers) = (posts("collective.scans")?, posts("collective.numbers")?);
    let wanted = if users == 0 { 0 } else { scans + 3 + REDUCTIONS };
    ensure!(numbers == wanted, "{numbers} posts with reductions, and not {wanted}; {scans} without");
    Ok(())
}
