//! Bad input to the transport: the job ends with one clear error.

use crate::domains::COUNT;
use crate::engines::BARRIER;
use crate::job::{CHIP, FAULTS, fails, suite, with};
use anyhow::Result;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{Fixture, release};
use gasworks_testkit::{Case, Cmd, Log};

/// A setting that is wrong or missing: the case's name, the variable, its value, and what the error says.
type Wrong = (&'static str, &'static str, &'static str, &'static str);

const WRONG: [Wrong; 13] = [
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

/// With `GASNET_USE_UDREG=1`, where no cache of UDREG can be had.
const NO_UDREG: [Wrong; 5] = [
    (
        "no-library",
        "GASWORKS_UDREG_LIBRARY",
        "/nowhere/libudreg.so",
        "GASWORKS_UDREG_LIBRARY says where libudreg is",
    ),
    ("another-library", "GASWORKS_UDREG_LIBRARY", "libm.so.6", "it has no UDREG_"),
    (
        "no-cache",
        FAULTS,
        "UDREG_CacheCreate:NO_SPACE@1",
        "UDREG_CacheCreate() failed with rc=2 (UDREG_RC_NO_SPACE)",
    ),
    ("too-many", "GASNET_GNI_MEMREG", "100000", "GASNET_GNI_MEMREG makes it smaller, and GASNET_USE_UDREG=0"),
    ("none", "GASNET_GNI_MEMREG", "0", "UDREG keeps a number of registrations from 1 on"),
];

/// With `GASNET_BARRIER=GNICE`, where no barrier by collective engines can be had.
const NO_ENGINE: [Wrong; 6] = [
    ("none-on-gemini", CHIP, "gemini", "do not meet like that here: wanted one of AUTO, DISSEM, AMCENTRAL"),
    (
        "not-to-be-used",
        "GASNET_USE_CE",
        "0",
        "do not meet like that here: wanted one of AUTO, DISSEM, AMCENTRAL",
    ),
    ("none-left", FAULTS, "GNI_CeCreate:ERROR_RESOURCE@1", "GNI_CeCreate gave GNI_RC_ERROR_RESOURCE"),
    ("no-tree", FAULTS, "GNI_CeConfigure:INVALID_PARAM@1", "GNI_CeConfigure gave GNI_RC_INVALID_PARAM"),
    ("none-below", "GASNET_GNI_CE_RADIX", "0", "GASNET_GNI_CE_RADIX"),
    ("too-many-below", "GASNET_GNI_CE_RADIX", "32", "GASNET_GNI_CE_RADIX"),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, variable, value, says) in WRONG {
        cases.push(fails_with(name, [(variable, value)], says));
    }
    for (name, variable, value, says) in NO_UDREG {
        cases.push(fails_with(
            &format!("udreg/{name}"),
            [("GASNET_USE_UDREG", "1"), (variable, value)],
            says,
        ));
    }
    for (name, variable, value, says) in NO_ENGINE {
        cases.push(fails_with(&format!("engines/{name}"), [(BARRIER, "GNICE"), (variable, value)], says));
    }
    let route = [(CHIP, "gemini"), ("GASNET_GNI_ROUTING_MODE", "MIN_HASH")];
    cases.push(fails_with("route-of-aries", route, "Gemini has ADAPTIVE_0 and IN_ORDER"));
    for (kind, case, at) in [("message", "message.arguments", 100), ("transfer", "rma.blocking", 20)] {
        cases.push(Case::new(format!("bad-input/handle-of-another-job/{kind}"), move |log| {
            foreign_handle(log, case, at)
        }));
    }
    cases.extend([
        Case::new("bad-input/domains-of-aries", domains_of_aries),
        Case::new("bad-input/segment-too-large", segment_too_large),
        Case::new("bad-input/segment-beyond-what-may-be-registered", segment_beyond_the_setting),
        Case::new("bad-input/another-cookie", another_cookie),
    ]);
    cases
}

/// A case of two ranks with these settings.
fn fails_with<const N: usize>(
    name: &str,
    variables: [(&'static str, &'static str); N],
    says: &'static str,
) -> Case {
    Case::new(format!("bad-input/{name}"), move |log| fails(log, with(suite(2, "seq")?, &variables), says))
}

fn domains_of_aries(log: &Log) -> Result<()> {
    fails(log, suite(2, "par")?.env(CHIP, "gemini").env(COUNT, "31"), "Gemini has at most 30")
}

fn segment_too_large(log: &Log) -> Result<()> {
    let job = suite(2, "seq")?.words("--segment 1125899906842624");
    fails(log, job, "take 1125899906842624 bytes together, but")
}

fn segment_beyond_the_setting(log: &Log) -> Result<()> {
    // Half of what may be registered is a rank's, and messages and transfers take some of that.
    let job = suite(2, "seq")?.env("GASNET_PHYSMEM_MAX", "256M").words("--segment 134217728");
    fails(
        log,
        job,
        "more than the setting GASNET_PHYSMEM_MAX (268435456 bytes for all ranks of a host) allows",
    )
}

/// A rank that is of another job for the NIC is recognised before anything is sent to it.
fn another_cookie(log: &Log) -> Result<()> {
    const SCRIPT: &str = "if [ \"$PMI_RANK\" = 1 ]; then export PMI_GNI_COOKIE=7; fi; exec \"$@\"";
    let built = release()?;
    let gasrun = Cmd::new(built.program("gasrun")?).words("-n 2 --timeout 120 --label -- sh -c");
    let job = gasrun.args([SCRIPT, "sh"]).arg(built.program("gasworks-conformance")?).job();
    let says = "is of another job for the NIC: PMI_GNI_PTAG and PMI_GNI_COOKIE";
    fails(log, dressed(job, &Fixture::Nic.get()?), says)
}

/// A message or a transfer to memory by another job's handle, which is of none of the target's registrations.
fn foreign_handle(log: &Log, case: &str, at: usize) -> Result<()> {
    let job = suite(2, "seq")?.words(&format!("--case {case}"));
    let job = job.env(FAULTS, format!("transaction:descriptor@{at}"));
    fails(log, job, "cannot be reached any more: the memory handle is of no registration")
}
