//! What settings do, seen at the NIC: which posts there are, and how many at once; what is registered; and how memory, domains and
//! posts are asked for.

use crate::domains::{COUNT, POLL_MASK};
use crate::engines::BARRIER;
use crate::job::{counted, suite};
use anyhow::{Context, Result, ensure};
use gasworks_gni_sys::{
    GNI_CDM_MODE_BTE_SINGLE_CHANNEL, GNI_CDM_MODE_FMA_DEDICATED, GNI_CDM_MODE_FMA_SHARED,
    GNI_CDM_MODE_MDD_DEDICATED, GNI_CDM_MODE_MDD_SHARED, GNI_DLVMODE_IN_ORDER, GNI_DLVMODE_PERFORMANCE,
    GNI_MEM_READ_ONLY, GNI_MEM_RELAXED_PI_ORDERING, GNI_MEM_STRICT_PI_ORDERING,
};
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{Fixture, debug};
use gasworks_testkit::{Case, Cmd, Log, root};
use std::collections::BTreeSet;
use std::path::Path;

/// What is looked at: of the rank that has more of it.
#[derive(Clone, Copy, Debug)]
enum What {
    /// Posts of this type.
    Posts(&'static str),
    /// Posts whose last event was not taken yet, at most.
    UnderWay,
    /// Registrations at the same time, at most, and their bytes.
    Registrations,
    Bytes,
    /// These of the modes of its domain.
    Modes(u32),
    /// These of the flags of the segment's registration, and of the last one.
    SegmentFlags(u32),
    LastFlags(u32),
    /// The ways that transfers of the NIC's own take.
    Delivery,
}
use What::*;

/// A setting, what two ranks do, what is looked at, and what that is by the values of the setting. With an empty value nothing is set.
type Effect = (&'static str, &'static str, What, &'static [(&'static str, u64)]);

/// How often the first rank does an operation of `gasworks-operations`: once, and in two rounds.
const TIMES: u64 = 1 + 1 + 2;
/// What a rank registers first: the memory of messages and transfers, and its segment.
const FIRST: u64 = 2;
const FMA: u32 = GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED;
const MDD: u32 = GNI_CDM_MODE_MDD_DEDICATED | GNI_CDM_MODE_MDD_SHARED;
const ORDERING: u32 = GNI_MEM_RELAXED_PI_ORDERING | GNI_MEM_STRICT_PI_ORDERING;

const PUT_SHORT: &str = "GASNET_GNI_PUT_FMA_RDMA_CUTOVER";
const GET_SHORT: &str = "GASNET_GNI_GET_FMA_RDMA_CUTOVER";
const PUT_BOUNCE: &str = "GASNET_GNI_PUT_BOUNCE_REGISTER_CUTOVER";
const GET_BOUNCE: &str = "GASNET_GNI_GET_BOUNCE_REGISTER_CUTOVER";
const PUTS_BY_BUFFERS: &str = "put 4096 outside aligned*100";

const EFFECTS: [Effect; 23] = [
    (
        PUT_SHORT,
        "put 4096 inside aligned",
        Posts("GNI_POST_RDMA_PUT"),
        &[("", TIMES), ("4095", TIMES), ("4096", 0)],
    ),
    (
        GET_SHORT,
        "get 4096 inside aligned",
        Posts("GNI_POST_RDMA_GET"),
        &[("", TIMES), ("4095", TIMES), ("4096", 0)],
    ),
    // 16 KiB at most.
    (PUT_SHORT, "put 65536 inside aligned", Posts("GNI_POST_RDMA_PUT"), &[("64K", TIMES)]),
    (GET_SHORT, "get 65536 inside aligned", Posts("GNI_POST_RDMA_GET"), &[("64K", TIMES)]),
    (
        PUT_BOUNCE,
        "put 8192 outside aligned",
        Registrations,
        &[("", FIRST + 1), ("8191", FIRST + 1), ("8192", FIRST)],
    ),
    (
        GET_BOUNCE,
        "get 8192 outside aligned",
        Registrations,
        &[("", FIRST + 1), ("8191", FIRST + 1), ("8192", FIRST)],
    ),
    // No less than a page, and 32 KiB at most.
    (PUT_BOUNCE, "put 4096 outside aligned", Registrations, &[("1", FIRST)]),
    (GET_BOUNCE, "get 4096 outside aligned", Registrations, &[("1", FIRST)]),
    (PUT_BOUNCE, "put 65536 outside aligned", Registrations, &[("64K", FIRST + 1)]),
    (GET_BOUNCE, "get 65536 outside aligned", Registrations, &[("64K", FIRST + 1)]),
    ("GASNET_GNI_BOUNCE_SIZE", PUTS_BY_BUFFERS, UnderWay, &[("", 64), ("256K", 64), ("8K", 2), ("1", 1)]),
    ("GASNET_GNI_NUM_PD", "put 4096 inside aligned*100", UnderWay, &[("", 100), ("32", 32), ("64", 64)]),
    ("GASNET_GNI_NUM_PD", "flow", UnderWay, &[("32", 32)]),
    (
        "GASNET_GNI_MEMREG",
        "put 8192 outside aligned*40",
        Registrations,
        &[("", FIRST + 40), ("4", FIRST + 4)],
    ),
    (
        "GASNET_GNI_FMA_SHARING",
        "put 8 inside aligned",
        Modes(FMA),
        &[
            ("", GNI_CDM_MODE_FMA_DEDICATED as u64),
            ("0", GNI_CDM_MODE_FMA_DEDICATED as u64),
            ("1", GNI_CDM_MODE_FMA_SHARED as u64),
            ("yes", GNI_CDM_MODE_FMA_SHARED as u64),
        ],
    ),
    (
        "GASNET_GNI_MDD_SHARING",
        "put 8 inside aligned",
        Modes(MDD),
        &[
            ("", GNI_CDM_MODE_MDD_SHARED as u64),
            ("0", GNI_CDM_MODE_MDD_DEDICATED as u64),
            ("1", GNI_CDM_MODE_MDD_SHARED as u64),
        ],
    ),
    (
        "GASNET_GNI_BTE_MULTI_CHANNEL",
        "put 8 inside aligned",
        Modes(GNI_CDM_MODE_BTE_SINGLE_CHANNEL),
        &[("", 0), ("0", GNI_CDM_MODE_BTE_SINGLE_CHANNEL as u64), ("1", 0)],
    ),
    (
        "GASNET_GNI_MEM_CONSISTENCY",
        "put 8 inside aligned",
        SegmentFlags(ORDERING),
        &[
            ("", GNI_MEM_RELAXED_PI_ORDERING as u64),
            ("relaxed", GNI_MEM_RELAXED_PI_ORDERING as u64),
            ("strict", GNI_MEM_STRICT_PI_ORDERING as u64),
            ("none", 0),
        ],
    ),
    (
        "GASNET_GNI_ROUTING_MODE",
        "put 65536 inside aligned",
        Delivery,
        &[("", GNI_DLVMODE_PERFORMANCE as u64), ("IN_ORDER", GNI_DLVMODE_IN_ORDER as u64)],
    ),
    // What is read-only is registered for each put that reads it, and no put from it goes by buffers.
    (
        "GASNET_USE_UDREG",
        "constant",
        LastFlags(GNI_MEM_READ_ONLY),
        &[("0", GNI_MEM_READ_ONLY as u64), ("1", GNI_MEM_READ_ONLY as u64)],
    ),
    ("GASNET_USE_UDREG", "constant", Posts("GNI_POST_RDMA_PUT"), &[("0", TIMES), ("1", TIMES)]),
    (BARRIER, "barrier", Posts("GNI_POST_FMA_PUT_W_SYNCFLAG"), &[("", 0), ("GNIDISSEM", 0)]),
    (
        "GASNET_GNI_PACKEDLONG_CUTOVER",
        "long 4096",
        Posts("GNI_POST_RDMA_PUT"),
        &[("", TIMES), ("4032", TIMES)],
    ),
];

pub fn cases() -> Vec<Case> {
    let effects = EFFECTS.into_iter().enumerate().map(|(number, (variable, does, what, values))| {
        Case::new(format!("effects/{number}/{variable}"), move |log| {
            let place = log.scratch()?;
            for (at, &(value, wanted)) in values.iter().enumerate() {
                let place = place.join(at.to_string());
                let found = seen(log, &place, job(does)?, variable, value)?.of(what)?;
                let told = format!("{does}, {variable}={value}: {found} in place of {wanted} of {what:?}");
                ensure!(found == wanted, told);
            }
            Ok(())
        })
    });
    let mut cases: Vec<_> = effects.collect();
    for (number, (variable, does, smaller, larger, by)) in GROWN.into_iter().enumerate() {
        cases.push(Case::new(format!("effects/grown/{number}/{variable}"), move |log| {
            let place = log.scratch()?;
            let bytes = |value: &str| seen(log, &place.join(value), job(does)?, variable, value)?.of(Bytes);
            let (less, more) = (bytes(smaller)?, bytes(larger)?);
            ensure!(more == less + by, "{variable}={smaller}: {less} bytes registered, {larger}: {more}");
            Ok(())
        }));
    }
    for udreg in ["0", "1"] {
        cases.push(Case::new(format!("effects/pinned/udreg-{udreg}"), move |log| pinned(log, udreg)));
    }
    for burst in [1, 5, 20, 50] {
        for domains in ["1", "2"] {
            cases.push(Case::new(format!("effects/polls/{burst}/{domains}"), move |log| {
                polls(log, burst, domains)
            }));
        }
    }
    cases.push(Case::new("effects/threads-of-a-domain", threads_of_a_domain));
    cases
}

/// Settings by which more memory is registered: an operation, a value and a larger one, and by how many bytes the latter grows it.
const GROWN: [(&str, &str, &str, &str, u64); 5] = [
    ("GASNET_GNI_BOUNCE_SIZE", "put 8 inside aligned", "256K", "512K", 256 << 10),
    // Each has 128 bytes of its own.
    ("GASNET_GNI_NUM_PD", "put 8 inside aligned", "512", "1024", 512 * 128),
    // A slot holds the largest message, and has a word for the notification of its reply.
    ("GASNET_NETWORKDEPTH_TOTAL", "put 8 inside aligned", "64", "128", 64 * (4160 + 8)),
    ("GASNET_GNI_AM_RVOUS_BUFFERS", "put 8 inside aligned", "64", "128", 64 * 4160),
    // Mailboxes are made 16 at a time, and each is 64 granules of a power of two.
    ("GASNET_NETWORKDEPTH_SPACE", "short", "16K", "64K", 16 * 64 * (1024 - 256)),
];

/// No more is registered than is a rank's part, and what finds no room for a registration goes by buffers.
fn pinned(log: &Log, udreg: &str) -> Result<()> {
    const MIB: u64 = 1 << 20;
    // A segment of 8 MiB and two pages, and 25 times 4 MiB that are put from outside it.
    let job =
        || Ok::<_, anyhow::Error>(job("put 4194304 outside aligned*25")?.env("GASNET_USE_UDREG", udreg));
    let place = log.scratch()?;
    let free = seen(log, &place.join("free"), job()?, "", "")?.of(Bytes)?;
    ensure!(free > 108 * MIB, "{free} bytes registered where nothing is set");
    // Half of it is for each of the ranks.
    let bound = seen(log, &place.join("bound"), job()?, "GASNET_PHYSMEM_MAX", "128M")?.of(Bytes)?;
    ensure!((56 * MIB..=64 * MIB).contains(&bound), "{bound} bytes registered in place of 64 MiB");
    Ok(())
}

/// A poll takes as many messages, and a poll of a thread of each domain as many completions, as the settings say.
fn polls(log: &Log, burst: u64, domains: &str) -> Result<()> {
    let job = dressed(debug()?.gasrun(4, "gasworks-operations")?, &Fixture::Nic.get()?).words("--polls");
    let value = burst.to_string();
    let job = job.env("GASNET_GNI_AMPOLL_BURST", &value).env("GASWORKS_GNI_POLL_BURST", &value);
    let counts = counted(log, job.env(COUNT, domains).env(POLL_MASK, "0"), 4)?;
    let marks = counts.iter().find_map(|counts| counts["marks"].as_array()).context("nobody made marks")?;
    // The polls for messages have marks below a thousand, those for puts from there on.
    for (kind, is_it) in [("remote", false), ("global", true)] {
        let of = marks.iter().filter(|mark| (mark["mark"].as_u64() >= Some(1000)) == is_it);
        let taken: Vec<_> = of.map(|mark| mark["events"][kind]["ok"].as_u64().unwrap_or(0)).collect();
        let most = taken.windows(2).map(|pair| pair[1] - pair[0]).max();
        ensure!(most == Some(burst), "{most:?} {kind} events in a poll at most, not {burst}");
    }
    Ok(())
}

/// With more threads for a domain than there are, all use the first.
fn threads_of_a_domain(log: &Log) -> Result<()> {
    let suite = suite(2, "par")?.env(COUNT, "3").words("--case threads.all-at-once");
    for counts in counted(log, suite.env("GASNET_GNI_PTHREADS_PER_DOMAIN", "100"), 2)? {
        let calls = |name: &str| counts["calls"][name]["GNI_RC_SUCCESS"].as_u64();
        let (attached, used) = (calls("GNI_CdmAttach"), calls("GNI_EpCreate"));
        ensure!([attached, used] == [Some(3), Some(1)], "{attached:?} attached, {used:?} used");
    }
    Ok(())
}

/// Two ranks do something: an operation of `gasworks-operations`, perhaps with `*` and how often at once, puts of constants, or the suite's
/// floods of messages.
fn job(does: &str) -> Result<Cmd> {
    if does == "flow" {
        return Ok(suite(2, "seq")?.words("--case flow"));
    }
    let (only, together) = does.split_once('*').unwrap_or((does, "1"));
    let job = dressed(debug()?.gasrun(2, "gasworks-operations")?, &Fixture::Nic.get()?);
    let job = job.words("--times 1 --together").arg(together).arg("--only");
    Ok(match only {
        "constant" => job.arg("put 65536 outside aligned").arg("--constant"),
        only => job.arg(only),
    })
}

/// What the NIC of a rank saw.
struct Rank {
    /// What the witness has counted.
    counts: serde_json::Value,
    /// The most posts that were under way.
    under_way: u64,
    /// What the spy has written down.
    asked: Vec<(String, u64)>,
}

struct Seen(Vec<Rank>);

/// Runs a job with a value of a setting, if it is not empty, and looks at what the NICs saw.
fn seen(log: &Log, place: &Path, job: Cmd, variable: &str, value: &str) -> Result<Seen> {
    std::fs::create_dir_all(place)?;
    let spy = place.join("libspy.so");
    let (nic, source) = (Fixture::Nic.get()?, root().join("crates/gni/tests/nic/spy.c"));
    let compile = Cmd::new("cc").words("-shared -fPIC -O1 -Wall -Wextra -Werror -o").arg(&spy).arg(source);
    let compile = compile.arg(format!("-I{}", nic.join("include").display()));
    // What it has not itself is found in the genuine one, which comes with it.
    let link = format!("-L{}", nic.join("lib").display());
    log.run_ok(&compile.arg(link).words("-Wl,--no-as-needed -l:libugni.so.0 -ldl"))?;
    let job = if value.is_empty() { job } else { job.env(variable, value) };
    let job = job.env("GASWORKS_UGNI_LIBRARY", &spy).env("SPY", place.join("spy"));
    let job = job.env("GASWORKS_UGNI_WITNESS", place.join("counts"));
    log.run_ok(&job.env("GASWORKS_UGNI_TRACE", place.join("trace")))?;
    let of = |start: &str| -> Result<Vec<String>> {
        let files = std::fs::read_dir(place)?.collect::<Result<Vec<_>, _>>()?;
        let paths = files.into_iter().map(|file| file.path());
        let mut paths: Vec<_> = paths
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)))
            .collect();
        // By the numbers of the processes: the same order of each kind.
        paths.sort();
        ensure!(paths.len() == 2, "{} ranks have written {start}", paths.len());
        Ok(paths.iter().map(std::fs::read_to_string).collect::<Result<_, _>>()?)
    };
    let (counts, traces, asked) = (of("counts.")?, of("trace.")?, of("spy.")?);
    let ranks = counts.iter().zip(&traces).zip(&asked).map(|((counts, trace), asked)| {
        let asked = asked.lines().map(|line| {
            let (word, number) = line.split_once(' ').context("a word alone")?;
            Ok((word.to_owned(), number.parse()?))
        });
        Ok(Rank {
            counts: serde_json::from_str(counts)?,
            under_way: most_under_way(trace),
            asked: asked.collect::<Result<_>>()?,
        })
    });
    ranks.collect::<Result<_>>().map(Seen)
}

/// The most posts at once whose last event had not been taken, by a record for the clock; but for words, such as barriers'.
fn most_under_way(trace: &str) -> u64 {
    let (mut under_way, mut most) = (BTreeSet::new(), 0);
    for line in trace.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["post", id, _, _, length, .., events, _] if events.contains('g') && length != "8" => {
                under_way.insert(id);
            }
            ["global", id] => _ = under_way.remove(id),
            _ => {}
        }
        most = most.max(under_way.len());
    }
    most as u64
}

impl Rank {
    /// The numbers of a word.
    fn asked(&self, word: &str) -> impl Iterator<Item = u64> {
        self.asked.iter().filter(move |(of, _)| of == word).map(|(_, number)| *number)
    }

    fn of(&self, what: What) -> Option<u64> {
        let counted = |number: &serde_json::Value| number.as_u64().unwrap_or(0);
        match what {
            Posts(kind) => Some(counted(&self.counts["posted"][kind]["posts"])),
            UnderWay => Some(self.under_way),
            Registrations => Some(counted(&self.counts["registrations"]["most"])),
            Bytes => self.asked("bytes").max(),
            Modes(which) => self.asked("modes").next().map(|modes| modes & u64::from(which)),
            SegmentFlags(which) => self.asked("flags").nth(1).map(|flags| flags & u64::from(which)),
            LastFlags(which) => self.asked("flags").last().map(|flags| flags & u64::from(which)),
            Delivery => self.asked("GNI_PostRdma").last(),
        }
    }
}

impl Seen {
    fn of(&self, what: What) -> Result<u64> {
        self.0.iter().filter_map(|rank| rank.of(what)).max().with_context(|| format!("{what:?}: none"))
    }
}
