//! The conformance suite under the settings that lead bytes and messages by each path.

use crate::job::{
    ADVERSARIAL, CHIP, CHIPS, DELIVERIES, DELIVERY, MODES, SEED, Variables, passes, suite, with,
};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::nic::TOGETHER;
use gasworks_testkit::pairwise::{pairwise, product};
use gasworks_testkit::programs::{Fixture, release};
use gasworks_testkit::{Case, Log};

const RANKS: [usize; 4] = [1, 2, 3, 8];

/// Paths of bytes and messages: a name, the settings that lead there, and how many ranks daily runs have at most, and over sockets
/// those with adversarial delivery: on two processors 8 ranks take 10 to 20 s, and a minute where there is one of each resource.
const PATHS: [(&str, Variables, usize); 7] = [
    ("near", &[], 8),
    ("sock", &[("GASWORKS_UGNI_WIRE", "sock")], 4),
    ("fetched", &[("GASNET_GNI_AM_RVOUS_CUTOVER", "1")], 4),
    // There is one of each resource whose number can be set.
    (
        "one-of-each",
        &[
            ("GASNET_NETWORKDEPTH", "1"),
            ("GASNET_NETWORKDEPTH_TOTAL", "1"),
            ("GASNET_GNI_AM_RVOUS_BUFFERS", "1"),
            ("GASWORKS_GNI_MAILBOXES", "1"),
            ("GASNET_GNI_AM_MAX_CQE", "2"),
            ("GASNET_GNI_NUM_PD", "32"),
            ("GASNET_GNI_BOUNCE_SIZE", "1"),
            ("GASNET_GNI_MEMREG", "1"),
            ("GASNET_LONG_DEPTH", "1"),
        ],
        3,
    ),
    (
        "largest",
        &[
            ("GASNET_GNI_MAX_MEDIUM", "65408"),
            ("GASNET_NETWORKDEPTH", "64"),
            ("GASNET_NETWORKDEPTH_TOTAL", "1024"),
            ("GASNET_GNI_FMA_SHARING", "1"),
            ("GASNET_GNI_MDD_SHARING", "0"),
            ("GASNET_GNI_BTE_MULTI_CHANNEL", "0"),
            ("GASNET_GNI_MEM_CONSISTENCY", "strict"),
            ("GASNET_PHYSMEM_MAX", "5/8"),
            ("GASWORKS_BUG3480", "1"),
        ],
        4,
    ),
    ("mixed", &[(TOGETHER, "2"), ("GASNET_GNI_PACKEDLONG_CUTOVER", "0")], 4),
    ("mixed-sock", &[(TOGETHER, "3"), ("GASWORKS_UGNI_WIRE", "sock")], 4),
];

/// Routes through the network.
const ROUTES: [&str; 7] =
    ["ADAPTIVE_0", "ADAPTIVE_1", "ADAPTIVE_2", "ADAPTIVE_3", "IN_ORDER", "MIN_HASH", "NMIN_HASH"];

/// Ranks and deliveries with which threads that wait for the lock around uGNI spin: with 4 ranks there are more threads than
/// processors. The first is run daily.
const SPINNING: [(usize, &str); 4] = [(4, "plain"), (2, "plain"), (8, "plain"), (4, ADVERSARIAL)];

/// Adversarial seeds of the nightly run for each chip, and how many of them are one case.
const SEEDS: usize = 5000;
const SEEDS_OF_A_CASE: usize = 10;

pub fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new("hello", hello)];
    cases.extend(paths());
    cases.extend(seeds());
    cases.extend(routes());
    cases.extend(spinning());
    cases.extend(CHIPS.into_iter().zip(["1", "2"]).map(|(chip, together)| {
        Case::new(format!("attached/{chip}"), move |log| {
            let suite = suite(4, "par")?.arg("--attach").env(CHIP, chip);
            passes(log, &suite.env(TOGETHER, together), 4)
        })
    }));
    cases
}

/// The suite by each path, with each thread mode, chip and delivery: a pairwise covering set, in which half of the jobs have adversarial
/// delivery, each with a seed of its own, and one number of ranks after the other. Nightly runs have every pair with a number of ranks, too, and
/// all combinations with plain delivery; [`seeds`] has the others.
fn paths() -> Vec<Case> {
    let sizes = [PATHS.len(), MODES.len(), CHIPS.len(), DELIVERIES.len(), RANKS.len()];
    let daily = pairwise(&sizes[..4]).into_iter().enumerate();
    let mut picks: Vec<_> = daily.map(|(at, pick)| [pick, vec![at % RANKS.len()]].concat()).collect();
    if is_nightly() {
        let plain = product(&sizes).into_iter().filter(|pick| DELIVERIES[pick[3]] == "plain");
        let more: Vec<_> =
            pairwise(&sizes).into_iter().chain(plain).filter(|pick| !picks.contains(pick)).collect();
        picks.extend(more);
        picks.sort();
        picks.dedup();
    }
    let cell = |(at, pick): (usize, Vec<usize>)| {
        let (path, variables, max_ranks) = PATHS[pick[0]];
        let (mode, chip, delivery) = (MODES[pick[1]], CHIPS[pick[2]], DELIVERIES[pick[3]]);
        let is_capped = !is_nightly() || (path.ends_with("sock") && delivery != "plain");
        let ranks = if is_capped { RANKS[pick[4]].min(max_ranks) } else { RANKS[pick[4]] };
        Case::new(format!("suite/{path}/{mode}/{ranks}/{chip}/{delivery}"), move |log| {
            let suite = suite(ranks, mode)?.env(CHIP, chip).env(DELIVERY, delivery);
            passes(log, &with(suite.env(SEED, at.to_string()), variables), ranks)
        })
    };
    picks.into_iter().enumerate().map(cell).collect()
}

/// The suite with thousands of seeds of adversarial delivery: nightly.
fn seeds() -> Vec<Case> {
    if !is_nightly() {
        return Vec::new();
    }
    let case = |chip: &'static str, first: usize| {
        let last = first + SEEDS_OF_A_CASE - 1;
        Case::new(format!("seeds/{chip}/{first}-{last}"), move |log| {
            for seed in first..=last {
                // Each number of ranks occurs with each mode.
                let (ranks, mode) = (2 + seed % 4, MODES[seed % 3]);
                let (_, variables, _) = PATHS[[0, 5, 2, 3][seed / 4 % 4]];
                let suite = suite(ranks, mode)?.env(CHIP, chip).env(DELIVERY, ADVERSARIAL);
                let suite = with(suite.env(SEED, seed.to_string()), variables);
                passes(log, &suite, ranks).with_context(|| format!("seed {seed}"))?;
            }
            Ok(())
        })
    };
    let firsts = || (1..=SEEDS).step_by(SEEDS_OF_A_CASE);
    CHIPS.into_iter().flat_map(|chip| firsts().map(move |first| case(chip, first))).collect()
}

/// Messages arrive by whichever route. Adversarial delivery is run daily, of a route that keeps an order and of one that keeps none: it
/// reorders what the route lets it reorder.
fn routes() -> impl Iterator<Item = Case> {
    let (deliveries, routes): (&[(&str, &str)], &[&str]) = match is_nightly() {
        true => (&[(ADVERSARIAL, "par"), ("plain", "seq")], &ROUTES),
        false => (&[(ADVERSARIAL, "par")], &["IN_ORDER", "NMIN_HASH"]),
    };
    let all = routes.iter().flat_map(move |&route| deliveries.iter().map(move |way| (route, *way)));
    all.map(|(route, (delivery, mode))| {
        Case::new(format!("routing/{route}/{delivery}"), move |log| {
            let suite = suite(3, mode)?.env("GASNET_GNI_ROUTING_MODE", route);
            passes(log, &suite.env(DELIVERY, delivery), 3)
        })
    })
}

/// Threads that wait for the lock around uGNI spin. There is a lock in `par` alone; the other modes, which ignore the setting,
/// are run nightly.
fn spinning() -> impl Iterator<Item = Case> {
    let (runs, modes): (_, &[&str]) =
        if is_nightly() { (&SPINNING[..], &MODES) } else { (&SPINNING[..1], &["par"]) };
    let all = runs.iter().copied().flat_map(move |run| modes.iter().map(move |mode| (run, *mode)));
    all.map(|((ranks, delivery), mode)| {
        Case::new(format!("spinlock/{ranks}/{delivery}/{mode}"), move |log| {
            let suite = suite(ranks, mode)?.env("GASWORKS_GNI_SPINLOCK", "1").env(DELIVERY, delivery);
            passes(log, &suite, ranks)
        })
    })
}

/// A program of the examples, started with the variables that the book names.
fn hello(log: &Log) -> Result<()> {
    let hello = release()?.gasrun(4, "hello")?.env("GASWORKS_NETWORK", "gni");
    let hello =
        hello.env("GASWORKS_BOOTSTRAP", "cray").env("LD_LIBRARY_PATH", Fixture::Nic.get()?.join("lib"));
    let ended = log.run_ok(&hello.env("GASNET_GNI_AM_MEMORY_REPORT", "1"))?;
    for said in ["of 4", "544 of these for each of 4 ranks"] {
        ensure!(ended.output.contains(said), "nobody says {said:?}");
    }
    Ok(())
}
