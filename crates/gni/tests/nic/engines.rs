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
        for of in ["barrier.", "collective.numbers"] {
            cases.push(Case::new(format!("engines/used/{barrier}/{together}/{of}"), move |log| {
                used(log, of, barrier, together, users)
            }));
        }
    }
    cases
}

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

/// Of 4 ranks so many post to an engine, all of them equally often: those that are to meet by engines, and nobody where no
/// engine is asked for.
fn used(log: &Log, cases: &str, barrier: &str, together: &str, users: usize) -> Result<()> {
    let suite = suite(4, "seq")?.words(&format!("--case {cases}")).env(BARRIER, barrier);
    let counts = counted(log, suite.env(TOGETHER, together), 4)?;
    let posts = counts.iter().filter_map(|counts| counts["posted"]["GNI_POST_CE"]["posts"].as_u64());
    let posts: Vec<_> = posts.collect();
    ensure!(posts.len() == users, "{} ranks in place of {users} use an engine", posts.len());
    ensure!(posts.iter().all(|count| *count > 0 && *count == posts[0]), "{posts:?} posts");
    Ok(())
}
