//! The transport over uGNI, on the software NIC: the conformance suite on both chips and in all moods, with all ranks over the NIC or some in
//! shared memory; faults, and bad input.

use super::{Extent, conformance, input, limits, udreg, ugni};
use crate::exec::{Cmd, Log};
use crate::gni_report::{self, Programs};
use crate::leftovers::Leftovers;
use crate::matrix::{pairwise, product};
use crate::needs::Need;
use crate::rows::Row;
use crate::ugni::{TOGETHER, dressed};
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};

const CHIPS: [&str; 2] = ["aries", "gemini"];
const MODES: [&str; 3] = ["seq", "par", "parsync"];
const RANKS: [usize; 4] = [1, 2, 3, 8];

/// What is set for a run.
type Variables = &'static [(&'static str, &'static str)];

/// Ways for bytes and messages: what they are called, and the variables that lead there.
const WAYS: [(&str, Variables); 7] = [
    ("near", &[]),
    ("sock", &[("GASWORKS_UGNI_WIRE", "sock")]),
    ("fetched", &[("GASNET_GNI_AM_RVOUS_CUTOVER", "1")]),
    // Of all that there may be one of, there is one.
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
    ),
    ("mixed", &[(TOGETHER, "2"), ("GASNET_GNI_PACKEDLONG_CUTOVER", "0")]),
    ("mixed-sock", &[(TOGETHER, "3"), ("GASWORKS_UGNI_WIRE", "sock")]),
];

/// How many domains a rank has, the variable that says so, and the one that says how rarely a thread sees to those that it does not have.
const DOMAINS: [&str; 2] = ["2", "4"];
const DOMAIN_COUNT: &str = "GASNET_DOMAIN_COUNT";
const POLL_MASK: &str = "GASNET_AM_DOMAIN_POLL_MASK";

/// What goes wrong, and is borne.
const BORNE: [(&str, &str); 5] = [
    ("no-room", "GNI_PostFma:ERROR_RESOURCE%30 GNI_PostRdma:ERROR_RESOURCE%30"),
    ("calls-are-lost", "remote-queue:overrun%20"),
    ("most-calls-are-lost", "remote-queue:overrun%60"),
    // The first three are the messages', the segment's and the mailboxes'.
    ("registrations-are-refused", "GNI_MemRegister:INVALID_PARAM@4 GNI_MemRegister:ERROR_RESOURCE@5"),
    ("few-mailboxes", "GNI_MemRegister:ERROR_RESOURCE@3"),
];

/// What cannot be borne: what went wrong, and what is said.
const FATAL: [(&str, &str, &str); 6] = [
    ("a-message-is-lost", "transaction:gone@100", "cannot be reached any more: the target cannot be reached"),
    ("events-are-lost", "queue:overrun@100", "events of its own posts were lost"),
    ("no-descriptor", "GNI_CdmAttach:ERROR_RESOURCE@1", "GASNET_GNI_FMA_SHARING=1 shares them"),
    ("no-registration", "GNI_MemRegister:INVALID_PARAM@1", "GNI_MemRegister gave GNI_RC_INVALID_PARAM"),
    ("no-segment", "GNI_MemRegister:INVALID_PARAM@2", "GNI_MemRegister gave GNI_RC_INVALID_PARAM"),
    ("no-queue", "GNI_CqCreate:ERROR_NOMEM@1", "GNI_CqCreate gave GNI_RC_ERROR_NOMEM"),
];

/// Settings that are wrong, or missing: the variable and its value, and what is said.
const WRONG: [(&str, &str, &str, &str); 13] = [
    (
        "no-library",
        "GASWORKS_UGNI_LIBRARY",
        "/nowhere/libugni.so",
        "GASWORKS_UGNI_LIBRARY says where libugni is",
    ),
    ("another-library", "GASWORKS_UGNI_LIBRARY", "libm.so.6", "it has no GNI_"),
    ("no-cookie", "GASWORKS_BOOTSTRAP", "pmi2", "is not set: it comes from Cray's PMI"),
    ("cookie-is-no-number", "PMI_GNI_COOKIE", "cake", "PMI_GNI_COOKIE=\"cake\""),
    ("medium-too-small", "GASNET_GNI_MAX_MEDIUM", "511", "GASNET_GNI_MAX_MEDIUM"),
    ("medium-too-large", "GASNET_GNI_MAX_MEDIUM", "64K", "GASNET_GNI_MAX_MEDIUM"),
    ("too-few-descriptors", "GASNET_GNI_NUM_PD", "31", "GASNET_GNI_NUM_PD"),
    ("no-such-route", "GASNET_GNI_ROUTING_MODE", "SCENIC", "GASNET_GNI_ROUTING_MODE=\"SCENIC\""),
    ("no-such-consistency", "GASNET_GNI_MEM_CONSISTENCY", "sloppy", "GASNET_GNI_MEM_CONSISTENCY"),
    ("all-memory-registered", "GASNET_PHYSMEM_MAX", "1.0", "a fraction of memory below 1"),
    ("too-little-registered", "GASNET_PHYSMEM_MAX", "127M", "a size of at least 128M"),
    ("registered-in-no-parts", "GASNET_PHYSMEM_MAX", "5/0", "GASNET_PHYSMEM_MAX=\"5/0\""),
    ("no-such-network", "GASWORKS_NETWORK", "gnu", "GASWORKS_NETWORK"),
];

/// The variable that says how ranks meet.
const BARRIER: &str = "GASNET_BARRIER";

/// Trees of collective engines: how many ranks have one, and the variables that lead there.
const TREES: [(usize, Variables); 5] = [
    (2, &[]),
    (3, &[("GASNET_GNI_CE_RADIX", "1")]),
    (4, &[(TOGETHER, "2")]),
    (5, &[(TOGETHER, "2"), ("GASNET_USE_CE_PSHM", "0"), ("GASNET_GNI_CE_RADIX", "31")]),
    (4, &[("GASWORKS_UGNI_WIRE", "sock")]),
];

/// Where a barrier by engines cannot be had: the variable and its value, and what is said.
const NO_ENGINE: [(&str, &str, &str, &str); 6] = [
    (
        "none-on-gemini",
        "GASWORKS_UGNI_CHIP",
        "gemini",
        "do not meet like that here: wanted one of AUTO, DISSEM, AMCENTRAL",
    ),
    (
        "not-to-be-used",
        "GASNET_USE_CE",
        "0",
        "do not meet like that here: wanted one of AUTO, DISSEM, AMCENTRAL",
    ),
    (
        "none-left",
        "GASWORKS_UGNI_FAULTS",
        "GNI_CeCreate:ERROR_RESOURCE@1",
        "GNI_CeCreate gave GNI_RC_ERROR_RESOURCE",
    ),
    (
        "no-tree",
        "GASWORKS_UGNI_FAULTS",
        "GNI_CeConfigure:INVALID_PARAM@1",
        "GNI_CeConfigure gave GNI_RC_INVALID_PARAM",
    ),
    ("none-below", "GASNET_GNI_CE_RADIX", "0", "GASNET_GNI_CE_RADIX"),
    ("too-many-below", "GASNET_GNI_CE_RADIX", "32", "GASNET_GNI_CE_RADIX"),
];

/// Ways through the network.
const ROUTES: [&str; 7] =
    ["ADAPTIVE_0", "ADAPTIVE_1", "ADAPTIVE_2", "ADAPTIVE_3", "IN_ORDER", "MIN_HASH", "NMIN_HASH"];

/// With UDREG: the same, where it has room for one, and where something goes wrong that is borne.
const KEPT: [(&str, &[(&str, &str)]); 4] = [
    ("usual", &[]),
    ("one", &[("GASNET_GNI_MEMREG", "1")]),
    // The first three are the messages', the segment's and the mailboxes'.
    (
        "refused",
        &[("GASWORKS_UGNI_FAULTS", "GNI_MemRegister:INVALID_PARAM@4 GNI_MemRegister:ERROR_RESOURCE@5")],
    ),
    ("full", &[("GASWORKS_UGNI_FAULTS", "UDREG_Register:NO_SPACE%50 UDREG_Evict:NO_MATCH%50")]),
];

/// Where there is no cache of UDREG: the variable and its value, and what is said.
const NOT_KEPT: [(&str, &str, &str, &str); 5] = [
    (
        "no-library",
        "GASWORKS_UDREG_LIBRARY",
        "/nowhere/libudreg.so",
        "GASWORKS_UDREG_LIBRARY says where libudreg is",
    ),
    ("another-library", "GASWORKS_UDREG_LIBRARY", "libm.so.6", "it has no UDREG_"),
    (
        "no-cache",
        "GASWORKS_UGNI_FAULTS",
        "UDREG_CacheCreate:NO_SPACE@1",
        "UDREG_CacheCreate() failed with rc=2 (UDREG_RC_NO_SPACE)",
    ),
    ("too-many", "GASNET_GNI_MEMREG", "100000", "GASNET_GNI_MEMREG makes it smaller, and GASNET_USE_UDREG=0"),
    ("none", "GASNET_GNI_MEMREG", "0", "UDREG keeps a number of registrations from 1 on"),
];

pub fn rows(extent: Extent) -> Vec<Row> {
    let sizes = [WAYS.len(), RANKS.len(), MODES.len(), CHIPS.len()];
    let picks = if extent == Extent::Nightly { product(&sizes) } else { pairwise(&sizes) };
    let cells = picks.into_iter().map(|pick| {
        let (way, variables) = WAYS[pick[0]];
        let (ranks, mode, chip) = (RANKS[pick[1]], MODES[pick[2]], CHIPS[pick[3]]);
        Row::new(format!("gni/{way}/{mode}/{ranks}/{chip}"), move |world, log| {
            let suite = suite(world, log, ranks, mode)?.env("GASWORKS_UGNI_CHIP", chip);
            passes(log, &with(suite, variables), ranks)
        })
    });
    let seeds = if extent == Extent::Nightly { 5000 } else { 16 };
    let adverse = CHIPS.into_iter().map(|chip| {
        Row::new(format!("gni/seeds/{chip}"), move |world, log| with_seeds(world, log, chip, seeds)).beside()
    });
    let borne = BORNE.into_iter().map(|(name, faults)| {
        Row::new(format!("gni/borne/{name}"), move |world, log| {
            MODES.into_iter().try_for_each(|mode| {
                let suite = suite(world, log, 3, mode)?.env("GASWORKS_UGNI_FAULTS", faults);
                // What is refused is no rule that was broken.
                passes(log, &suite, 3)
            })
        })
    });
    let fatal = FATAL.into_iter().map(|(name, faults, says)| {
        let row = move |world: &World, log: &Log| {
            fails(world, log, |job| job.env("GASWORKS_UGNI_FAULTS", faults), says)
        };
        Row::new(format!("gni/fatal/{name}"), row)
    });
    let wrong = WRONG.into_iter().map(|(name, variable, value, says)| {
        let row = move |world: &World, log: &Log| fails(world, log, |job| job.env(variable, value), says);
        Row::new(format!("gni/bad-input/{name}"), row)
    });
    let kept = KEPT.into_iter().map(|(name, variables)| {
        Row::new(format!("gni/udreg/{name}"), move |world, log| {
            product(&[CHIPS.len(), MODES.len()]).into_iter().try_for_each(|pick| {
                let suite = suite(world, log, 3, MODES[pick[1]])?.env("GASWORKS_UGNI_CHIP", CHIPS[pick[0]]);
                passes(log, &with(suite, variables).env("GASNET_USE_UDREG", "1"), 3)
            })
        })
    });
    let not_kept = NOT_KEPT.into_iter().map(|(name, variable, value, says)| {
        let row = move |world: &World, log: &Log| {
            fails(world, log, |job| job.env("GASNET_USE_UDREG", "1").env(variable, value), says)
        };
        Row::new(format!("gni/bad-input/udreg/{name}"), row)
    });
    let routed = Row::new("gni/routing", routed);
    let spins = Row::new("gni/spinlock", spins);
    let no_such_route = Row::new("gni/bad-input/route-of-aries", |world, log| {
        let gemini =
            |job: Cmd| job.env("GASWORKS_UGNI_CHIP", "gemini").env("GASNET_GNI_ROUTING_MODE", "MIN_HASH");
        fails(world, log, gemini, "Gemini has ADAPTIVE_0 and IN_ORDER")
    });
    let domains = product(&[CHIPS.len(), DOMAINS.len()]).into_iter().map(|pick| {
        let (chip, domains) = (CHIPS[pick[0]], DOMAINS[pick[1]]);
        Row::new(format!("gni/domains/{domains}/{chip}"), move |world, log| {
            several_domains(world, log, chip, domains)
        })
    });
    let domains_used = Row::new("gni/domains/used", domains_used);
    let too_many = Row::new("gni/bad-input/domains-of-aries", |world, log| {
        fails_in(
            world,
            log,
            "par",
            |job| job.env("GASWORKS_UGNI_CHIP", "gemini").env(DOMAIN_COUNT, "31"),
            "Gemini has at most 30",
        )
    });
    let once = Row::new("gni/udreg/registers-once", registers_once);
    let posts = Row::new("gni/posts", posts);
    let apart =
        Row::new("gni/three-hosts", move |world, log| on_three_hosts(world, log, extent)).need(Need::Hosts);
    let vast = Row::new("gni/bad-input/segment-too-large", |world, log| {
        fails(
            world,
            log,
            |job| job.words("--segment 1125899906842624"),
            "take 1125899906842624 bytes together, but",
        )
    });
    let registered = Row::new("gni/bad-input/segment-beyond-what-may-be-registered", |world, log| {
        // Half of it is a rank's, of which messages and transfers take some.
        let limited = |job: Cmd| job.env("GASNET_PHYSMEM_MAX", "256M").words("--segment 134217728");
        fails(
            world,
            log,
            limited,
            "more than the setting GASNET_PHYSMEM_MAX (268435456 bytes for all ranks of a host) allows",
        )
    });
    let again = Row::new("gni/borne/a-transfer-fails-once", transfers_again);
    let lost = Row::new("gni/fatal/an-atomic-operation-is-lost", atomic_lost);
    let atomics = Row::new("gni/atomics", atomics);
    let engines = Row::new("gni/engines", engines);
    let engines_used = Row::new("gni/engines/used", engines_used);
    let engines_apart = Row::new("gni/engines/three-hosts", engines_apart).need(Need::Hosts);
    let refused = Row::new("gni/borne/every-registration-is-refused", every_registration_refused);
    let foreign = Row::new("gni/bad-input/another-cookie", another_cookie);
    let foreign_handle = Row::new("gni/bad-input/handle-of-another-job", foreign_handle);
    let unreduced = Row::new("gni/fatal/a-reduction-is-lost", |world, log| {
        // Each rank puts a word, and gives another, in turn.
        let spoilt = |job: Cmd| {
            let job = job.env(BARRIER, "GNICE").words("--case barrier.split-phase");
            job.env("GASWORKS_UGNI_FAULTS", "transaction:timeout@4")
        };
        fails(world, log, spoilt, "the collective engines have no result of a barrier")
    });
    let no_engine = NO_ENGINE.into_iter().map(|(name, variable, value, says)| {
        let row = move |world: &World, log: &Log| {
            fails(world, log, |job| job.env(BARRIER, "GNICE").env(variable, value), says)
        };
        Row::new(format!("gni/bad-input/engines/{name}"), row)
    });
    let attached = CHIPS.into_iter().zip(["1", "2"]).map(|(chip, together)| {
        Row::new(format!("gni/attached/{chip}"), move |world, log| {
            let suite = suite(world, log, 4, "par")?.arg("--attach").env("GASWORKS_UGNI_CHIP", chip);
            passes(log, &suite.env(TOGETHER, together), 4)
        })
    });
    let hello = Row::new("gni/hello", hello);
    let registrations = Row::new("gni/registrations", registrations);
    let report = Row::new("gni/report", report);
    let rows = cells
        .chain(domains)
        .chain(adverse)
        .chain(borne)
        .chain(fatal)
        .chain(wrong)
        .chain(kept)
        .chain(not_kept)
        .chain(no_engine)
        .chain(attached);
    let rows = rows.chain([
        once,
        domains_used,
        too_many,
        routed,
        no_such_route,
        spins,
        vast,
        registered,
        again,
        lost,
        atomics,
        engines,
        engines_used,
        engines_apart,
        unreduced,
        refused,
        foreign,
        foreign_handle,
        hello,
        limits::row(),
        registrations,
        posts,
        report,
        apart,
    ]);
    rows.chain(udreg::rows(extent)).map(|row| row.need(Need::PkgConfig)).collect()
}

/// The suite over uGNI, whose client it is to be to the letter.
pub(super) fn suite(world: &World, log: &Log, ranks: usize, mode: &str) -> Result<Cmd> {
    let prefix = ugni::lay_out(world, log)?;
    let suite = world.built(Build::Release)?.gasrun_with(ranks, "--label", "gasworks-conformance")?;
    Ok(dressed(suite, &prefix).words(&format!("--mode {mode}")))
}

fn with(command: Cmd, variables: &[(&str, &str)]) -> Cmd {
    variables.iter().fold(command, |command, (name, value)| command.env(name, value))
}

fn passes(log: &Log, suite: &Cmd, ranks: usize) -> Result<()> {
    let leftovers = Leftovers::before();
    let ended = log.run_ok(suite)?;
    leftovers.check()?;
    // Each line says from which rank it is.
    let said = ended.output.lines().filter_map(|line| line.strip_prefix("[0] "));
    conformance::enough(&said.collect::<Vec<_>>().join("\n"), "pshm", ranks)
}

/// The same of some cases.
fn barriers_pass(log: &Log, suite: Cmd) -> Result<()> {
    let leftovers = Leftovers::before();
    let ended = log.run_ok(&suite.words("--case barrier."))?;
    let passed =
        ended.output.lines().filter(|line| line.contains("] case barrier.") && line.ends_with(" ok"));
    ensure!(passed.count() >= 5, "few barriers passed");
    leftovers.check()
}

fn with_seeds(world: &World, log: &Log, chip: &str, seeds: usize) -> Result<()> {
    for seed in 1..=seeds {
        // Every number of ranks comes with every mode.
        let (ranks, mode) = (2 + seed % 4, MODES[seed % 3]);
        let (_, variables) = WAYS[[0, 5, 2, 3][seed / 4 % 4]];
        let suite = suite(world, log, ranks, mode)?.env("GASWORKS_UGNI_CHIP", chip);
        let suite =
            suite.env("GASWORKS_UGNI_MOOD", "adversarial").env("GASWORKS_UGNI_SEED", seed.to_string());
        passes(log, &with(suite, variables), ranks).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// The job ends by itself, some rank says why, and none says it twice.
fn fails(world: &World, log: &Log, spoilt: impl FnOnce(Cmd) -> Cmd, says: &str) -> Result<()> {
    fails_in(world, log, "seq", spoilt, says)
}

fn fails_in(world: &World, log: &Log, mode: &str, spoilt: impl FnOnce(Cmd) -> Cmd, says: &str) -> Result<()> {
    let leftovers = Leftovers::before();
    let ended = log.run(&spoilt(suite(world, log, 2, mode)?).limit(60))?;
    let status = ended.status.context("it did not end")?;
    ensure!(!status.success(), "it went well");
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    input::told_once(&ended.output, &[says])?;
    leftovers.check()
}

/// What may work the next time is posted again: a case of transfers alone, of which one fails.
fn transfers_again(world: &World, log: &Log) -> Result<()> {
    for (number, how) in (5..45).step_by(3).zip(["timeout", "congested", "enqueue"].into_iter().cycle()) {
        let case = suite(world, log, 2, "seq")?.words("--case rma.blocking");
        let ended = log.run_ok(&case.env("GASWORKS_UGNI_FAULTS", format!("transaction:{how}@{number}")))?;
        ensure!(ended.output.contains("1 cases passed"), "the case was not run");
    }
    Ok(())
}

/// None of the registrations that transfers ask for is made: all goes by the memory that was registered beforehand.
fn every_registration_refused(world: &World, log: &Log) -> Result<()> {
    /// More than a rank asks for; the first three are the messages', the segment's and the mailboxes'.
    const LAST: usize = 2000;
    let faults =
        |code: &str| -> Vec<_> { (4..LAST).map(|n| format!("GNI_MemRegister:{code}@{n}")).collect() };
    for (mode, code) in MODES.into_iter().zip(["INVALID_PARAM", "ERROR_RESOURCE", "INVALID_PARAM"]) {
        let suite = suite(world, log, 3, mode)?.env("GASWORKS_UGNI_FAULTS", faults(code).join(" "));
        let counts = counted(world, log, &format!("refused-{mode}"), suite, 3)?;
        for counts in counts {
            let (most, asked) = (&counts["registrations"]["most"], &counts["calls"]["GNI_MemRegister"]);
            let refused = asked[format!("GNI_RC_{code}")].as_u64().unwrap_or(0);
            ensure!(most.as_u64() <= Some(3), "{mode}: {most} registrations at once");
            ensure!((1..LAST as u64 - 4).contains(&refused), "{mode}: {refused} were refused");
        }
    }
    Ok(())
}

/// A rank that is of another job for the NIC is told apart before anything is sent to it.
fn another_cookie(world: &World, log: &Log) -> Result<()> {
    const SCRIPT: &str = "if [ \"$PMI_RANK\" = 1 ]; then export PMI_GNI_COOKIE=7; fi; exec \"$@\"";
    let (prefix, built) = (ugni::lay_out(world, log)?, world.built(Build::Release)?);
    let job =
        Cmd::new(built.program("gasrun")?).words("-n 2 --timeout 120 --label -- sh -c").args([SCRIPT, "sh"]);
    let job = dressed(job.arg(built.program("gasworks-conformance")?), &prefix);
    fails(world, log, |_| job, "is of another job for the NIC: PMI_GNI_PTAG and PMI_GNI_COOKIE")
}

/// Memory by a handle of another job's, which no registration of the target's has: a message to it, and a transfer.
fn foreign_handle(world: &World, log: &Log) -> Result<()> {
    for (case, at) in [("message.arguments", 100), ("rma.blocking", 20)] {
        let spoilt = |job: Cmd| {
            let job = job.words(&format!("--case {case}"));
            job.env("GASWORKS_UGNI_FAULTS", format!("transaction:descriptor@{at}"))
        };
        fails(world, log, spoilt, "cannot be reached any more: the memory handle is of no registration")?;
    }
    Ok(())
}

/// An atomic operation of which nobody knows whether it was done is not tried again, and whoever waits for it is told.
fn atomic_lost(world: &World, log: &Log) -> Result<()> {
    for how in ["timeout", "congested", "gone"] {
        // That one is an atomic operation: the case begins with hundreds that no message goes between.
        let spoilt = |job: Cmd| {
            let job = job.env("GASWORKS_UGNI_FAULTS", format!("transaction:{how}@60"));
            job.words("--case atomic.every-operation")
        };
        fails(world, log, spoilt, "whether an atomic operation on rank")?;
    }
    Ok(())
}

/// Whatever the NIC can do of atomic operations it does, each by one post, and the processor the rest.
fn atomics(world: &World, log: &Log) -> Result<()> {
    // A case in which each of two ranks fetches 96 words of 64 bits and has a look, the first of them twice; and adds to 96 words of 32
    // bits, which Gemini's NIC does not do.
    for (chip, wanted) in [("aries", [96 + 1 + 96, 96 + 2 + 96]), ("gemini", [96 + 1, 96 + 2])] {
        let suite = suite(world, log, 2, "seq")?.words("--case atomic.none-is-lost");
        let counts =
            counted(world, log, &format!("atomics-{chip}"), suite.env("GASWORKS_UGNI_CHIP", chip), 2)?;
        let posts =
            counts.iter().map(|counts| counts["posted"]["GNI_POST_AMO"]["posts"].as_u64().unwrap_or(0));
        let mut posts: Vec<_> = posts.collect();
        posts.sort_unstable();
        ensure!(posts == wanted, "{posts:?} in place of {wanted:?} atomic operations by the NIC of {chip}");
    }
    Ok(())
}

/// Ranks that meet by collective engines, in trees of all shapes, each in a plain network with all that the suite does beside, and in
/// adverse ones.
fn engines(world: &World, log: &Log) -> Result<()> {
    for (at, (ranks, variables)) in (0..).zip(TREES) {
        for (mood, mode) in [("plain", MODES[at % 3]), ("adversarial", MODES[(at + 1) % 3])] {
            for seed in if mood == "plain" { 1..=1 } else { 1..=3 } {
                let suite = suite(world, log, ranks, mode)?.env(BARRIER, "GNICE");
                let suite = suite.env("GASWORKS_UGNI_MOOD", mood).env("GASWORKS_UGNI_SEED", seed.to_string());
                let suite = with(suite, variables);
                let passed =
                    if mood == "plain" { passes(log, &suite, ranks) } else { barriers_pass(log, suite) };
                passed.with_context(|| format!("{ranks} ranks, {mood}, seed {seed}"))?;
            }
        }
    }
    Ok(())
}

/// All meet by engines where these are asked for, by one post each, and nobody uses one where they are not.
fn engines_used(world: &World, log: &Log) -> Result<()> {
    for (barrier, together, users) in [("GNICE", "1", 4), ("GNICE", "2", 2), ("AUTO", "1", 0)] {
        let suite = suite(world, log, 4, "seq")?.words("--case barrier.").env(BARRIER, barrier);
        let suite = suite.env(TOGETHER, together);
        let counts = counted(world, log, &format!("engines-{barrier}-{together}"), suite, 4)?;
        let given: Vec<_> =
            counts.iter().filter_map(|counts| counts["posted"]["GNI_POST_CE"]["posts"].as_u64()).collect();
        ensure!(given.len() == users, "{barrier}: {} ranks in place of {users} use an engine", given.len());
        ensure!(given.windows(2).all(|two| two[0] == two[1] && two[0] > 0), "{barrier}: {given:?} are given");
    }
    Ok(())
}

/// Engines of several hosts, whose ranks meet in memory first, or each by one of its own.
fn engines_apart(world: &World, log: &Log) -> Result<()> {
    let prefix = ugni::lay_out(world, log)?;
    let hosts = "--label --hosts h1:2,h2:2,h3:2 --rsh /run/rsh -x LD_LIBRARY_PATH -x GASWORKS_BOOTSTRAP";
    for (mood, mode, beside_memory) in [("plain", "seq", "1"), ("adversarial", "par", "0")] {
        let suite = world.built(Build::Release)?.gasrun_with(6, hosts, "gasworks-conformance")?;
        let suite = dressed(suite, &prefix).words(&format!("--mode {mode}")).env(BARRIER, "GNICE");
        let suite = suite.env("GASWORKS_UGNI_MOOD", mood).env(TOGETHER, "0");
        let suite = suite.words("--case barrier.").env("GASNET_USE_CE_PSHM", beside_memory);
        let ended = log.run_ok(&world.cluster()?.on_h0(suite))?;
        ensure!(ended.output.contains("cases passed"), "no case passed");
    }
    Ok(())
}

/// A program of the examples, by the variables that the book names.
fn hello(world: &World, log: &Log) -> Result<()> {
    let prefix = ugni::lay_out(world, log)?;
    let hello = world.built(Build::Release)?.gasrun(4, "hello")?.env("GASWORKS_NETWORK", "gni");
    let hello = hello.env("GASWORKS_BOOTSTRAP", "cray").env("LD_LIBRARY_PATH", prefix.join("lib"));
    let ended = log.run_ok(&hello.env("GASNET_GNI_AM_MEMORY_REPORT", "1"))?;
    for said in ["of 4", "544 of these for each of 4 ranks"] {
        ensure!(ended.output.contains(said), "nobody says {said:?}");
    }
    Ok(())
}

/// Two ranks on each of three hosts, which share memory or do not.
fn on_three_hosts(world: &World, log: &Log, extent: Extent) -> Result<()> {
    let prefix = ugni::lay_out(world, log)?;
    let hosts = "--label --hosts h1:2,h2:2,h3:2 --rsh /run/rsh -x LD_LIBRARY_PATH -x GASWORKS_BOOTSTRAP";
    // Three hosts with threads in each rank are much for few processors.
    let with_threads = (extent == Extent::Nightly).then_some(("gemini", "adversarial", "par", "1"));
    let runs = [("gemini", "adversarial", "parsync", "1"), ("aries", "plain", "seq", "0")];
    for (chip, mood, mode, together) in runs.into_iter().chain(with_threads) {
        let suite = world.built(Build::Release)?.gasrun_with(6, hosts, "gasworks-conformance")?;
        let suite = dressed(suite, &prefix).words(&format!("--mode {mode}"));
        let suite =
            suite.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", mood).env(TOGETHER, together);
        // What speaks for a host may have to wait that long for its turn.
        let suite = suite.env("GASWORKS_LOST_AFTER", "20");
        passes(log, &world.cluster()?.on_h0(suite), 6)?;
    }
    Ok(())
}

/// What a rank registers before the program does anything does not grow with the ranks: what messages and transfers go through, and the
/// segment.
fn registrations(world: &World, log: &Log) -> Result<()> {
    const WANTED: u64 = 2;
    for ranks in [2, 4, 8] {
        for counts in witnessed(world, log, ranks, "--silent")? {
            let most = counts["registrations"]["most"].as_u64();
            ensure!(most == Some(WANTED), "{ranks} ranks: {most:?} registrations at once, not {WANTED}");
        }
    }
    Ok(())
}

/// Threads of several domains of each rank, which see to the others' always, now and then, and hardly ever.
fn several_domains(world: &World, log: &Log, chip: &str, domains: &str) -> Result<()> {
    const EACH: [(usize, &str, Variables); 5] = [
        (3, "255", &[]),
        (
            2,
            "0",
            &[
                ("GASNET_GNI_PTHREADS_PER_DOMAIN", "2"),
                ("GASWORKS_GNI_SPINLOCK", "1"),
                ("GASWORKS_PROGRESS_THREAD", "1"),
            ],
        ),
        (4, "4294967295", &[("GASWORKS_UGNI_MOOD", "adversarial"), (TOGETHER, "2")]),
        (2, "7", &[("GASNET_GNI_NUM_PD", "32"), ("GASNET_GNI_MEMREG", "1"), ("GASNET_USE_UDREG", "1")]),
        (3, "1", &[("GASWORKS_UGNI_FAULTS", "remote-queue:overrun%20"), ("GASNET_GNI_AM_MAX_CQE", "8")]),
    ];
    for (ranks, mask, variables) in EACH {
        let suite = suite(world, log, ranks, "par")?.env("GASWORKS_UGNI_CHIP", chip);
        passes(log, &with(suite, variables).env(DOMAIN_COUNT, domains).env(POLL_MASK, mask), ranks)?;
    }
    // Who has one thread has one domain.
    let one = suite(world, log, 2, "seq")?.env("GASWORKS_UGNI_CHIP", chip);
    passes(log, &one.env(DOMAIN_COUNT, domains), 2)
}

/// Every domain moves what its threads put and get, and none registers anything for itself.
fn domains_used(world: &World, log: &Log) -> Result<()> {
    /// The memory of messages, the peer's mailbox, the segment; and for transfers no more than may be.
    const REGISTERED: u64 = 3;
    for domains in 1..=3 {
        let suite = suite(world, log, 2, "par")?.env(DOMAIN_COUNT, domains.to_string());
        let suite = suite.words("--case threads.all-at-once").env("GASNET_GNI_MEMREG", "3");
        for counts in counted(world, log, &format!("domains-{domains}"), suite, 2)? {
            let calls = |name: &str| counts["calls"][name]["GNI_RC_SUCCESS"].as_u64();
            // An endpoint is made when something goes by it; there is one peer.
            let (attached, used) = (calls("GNI_CdmAttach"), calls("GNI_EpCreate"));
            ensure!(
                [attached, used] == [Some(domains); 2],
                "{domains} domains: {attached:?} attached, {used:?} used"
            );
            let most = counts["registrations"]["most"].as_u64();
            ensure!(
                most.is_some_and(|most| most <= REGISTERED + 3),
                "{domains} domains: {most:?} registrations"
            );
        }
    }
    Ok(())
}

/// Ranks that talk do so by mailboxes, and nobody is told of a source that nobody waits for.
fn posts(world: &World, log: &Log) -> Result<()> {
    /// Requests that go before the mailbox has come: no more than may be under way.
    const FETCHED: u64 = 64;
    for counts in witnessed(world, log, 2, "--case flow")? {
        let posts = |kind: &str| counts["posted"][kind]["posts"].as_u64().unwrap_or(0);
        let (messages, fetched) = (posts("GNI_POST_FMA_PUT_W_SYNCFLAG"), posts("GNI_POST_FMA_GET"));
        ensure!(messages > 1000 && fetched <= FETCHED, "{messages} messages by mailboxes, {fetched} fetched");
    }
    for counts in witnessed(world, log, 2, "--case rma.blocking")? {
        let events = &counts["events"];
        ensure!(events["global"].is_object() && events["local"].is_null(), "events of sources: {events}");
    }
    Ok(())
}

/// Whichever ways transfers take, messages arrive, also where order is nobody's concern.
fn routed(world: &World, log: &Log) -> Result<()> {
    for (route, mood) in ROUTES.into_iter().flat_map(|route| [(route, "plain"), (route, "adversarial")]) {
        let mode = if mood == "plain" { "seq" } else { "par" };
        let suite = suite(world, log, 3, mode)?.env("GASNET_GNI_ROUTING_MODE", route);
        passes(log, &suite.env("GASWORKS_UGNI_MOOD", mood), 3)?;
    }
    Ok(())
}

/// More ranks than processors, of which each has threads that wait for its lock.
fn spins(world: &World, log: &Log) -> Result<()> {
    for (ranks, mood) in [(2, "plain"), (8, "plain"), (4, "adversarial")] {
        for mode in MODES {
            let suite = suite(world, log, ranks, mode)?.env("GASWORKS_GNI_SPINLOCK", "1");
            passes(log, &suite.env("GASWORKS_UGNI_MOOD", mood), ranks)?;
        }
    }
    Ok(())
}

/// Memory that is put from time and again is registered once, by whichever cache.
fn registers_once(world: &World, log: &Log) -> Result<()> {
    /// The messages' memory and the segment, and what the bench puts from and gets to in all.
    const MOST: u64 = 16;
    for (chip, udreg) in product(&[2, 2]).into_iter().map(|pick| (CHIPS[pick[0]], ["0", "1"][pick[1]])) {
        let prefix = ugni::lay_out(world, log)?;
        let bench = world.built(Build::Release)?.gasrun(2, "gasperf")?;
        let bench = dressed(bench, &prefix).words("put-latency --bytes 64K --blocks 60");
        let bench = bench.env("GASWORKS_UGNI_CHIP", chip).env("GASNET_USE_UDREG", udreg);
        let counts = counted(world, log, &format!("once-{chip}-{udreg}"), bench, 2)?;
        let posts =
            counts.iter().filter_map(|rank| rank["posted"]["GNI_POST_RDMA_PUT"]["posts"].as_u64()).max();
        let made = counts.iter().filter_map(|rank| rank["registrations"]["made"].as_u64()).max();
        let is_so = posts.is_some_and(|posts| posts > 4 * MOST) && made.is_some_and(|made| made <= MOST);
        ensure!(is_so, "on {chip}, GASNET_USE_UDREG={udreg}: {made:?} registrations for {posts:?} puts");
    }
    Ok(())
}

/// What each operation takes: within its limits, and as the book says.
fn report(world: &World, log: &Log) -> Result<()> {
    let prefix = ugni::lay_out(world, log)?;
    let (counting, release) = (world.built(Build::Debug)?, world.built(Build::Release)?);
    let programs = Programs::of(&counting, release.program("ugni-clock")?, &prefix)?;
    let run = |command: &Cmd| log.run_ok(command).map(|ended| ended.output);
    let report = gni_report::measure(&programs, &world.scratch("gni/report")?, run)?;
    let wrong = [gni_report::broken(&report), gni_report::differs(&report)?].concat();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What the NIC of each rank has counted in a run of the suite.
fn witnessed(world: &World, log: &Log, ranks: usize, words: &str) -> Result<Vec<serde_json::Value>> {
    let suite = suite(world, log, ranks, "seq")?.words(words);
    counted(world, log, &format!("{ranks}{words}"), suite, ranks)
}

/// What it has counted in a job.
fn counted(world: &World, log: &Log, name: &str, job: Cmd, ranks: usize) -> Result<Vec<serde_json::Value>> {
    let place = world.scratch(&format!("gni/witnessed/{name}"))?;
    log.run_ok(&job.env("GASWORKS_UGNI_WITNESS", place.join("seen")))?;
    let read = |file: std::io::Result<std::fs::DirEntry>| -> Result<serde_json::Value> {
        serde_json::from_str(&std::fs::read_to_string(file?.path())?).context("what the NIC has counted")
    };
    let all: Vec<_> = std::fs::read_dir(&place)?.map(read).collect::<Result<_>>()?;
    ensure!(all.len() == ranks, "{} of {ranks} ranks were counted", all.len());
    Ok(all)
}
