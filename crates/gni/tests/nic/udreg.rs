//! The cache of registrations that Cray's UDREG keeps: the software NIC's, and a site's library of another layout, which is
//! refused by programs that were not built for it and used by those that were.

use crate::job::{CHIP, CHIPS, FAULTS, MODES, Variables, fails, passes, suite, values_daily, with};
use anyhow::{Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{Fixture, release, target};
use gasworks_testkit::{Case, Cmd, Log};
use std::path::{Path, PathBuf};

/// The suite with UDREG: as usual, with one registration, and with faults that a job survives.
const KEPT: [(&str, Variables); 4] = [
    ("usual", &[]),
    ("one", &[("GASNET_GNI_MEMREG", "1")]),
    // The first three are the messages', the segment's and the mailboxes'.
    ("refused", &[(FAULTS, "GNI_MemRegister:INVALID_PARAM@4 GNI_MemRegister:ERROR_RESOURCE@5")]),
    ("full", &[(FAULTS, "UDREG_Register:NO_SPACE%50 UDREG_Evict:NO_MATCH%50")]),
];

/// The folder with the header and the source of the site's library.
const SITE: &str = "crates/ugni-sim-capi/tests/site";
/// The variable that tells a build the folder of the site's header.
const INCLUDE: &str = "GASWORKS_UDREG_INCLUDE";

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("bad-input/udreg/not-built-for-it", not_built_for_it),
        Case::new("bad-input/udreg/no-such-header", no_such_header),
    ];
    for pick in values_daily(&[KEPT.len(), MODES.len(), CHIPS.len()]) {
        let ((name, variables), mode, chip) = (KEPT[pick[0]], MODES[pick[1]], CHIPS[pick[2]]);
        cases.push(Case::new(format!("udreg/{name}/{mode}/{chip}"), move |log| {
            let suite = suite(3, mode)?.env(CHIP, chip).env("GASNET_USE_UDREG", "1");
            passes(log, &with(suite, variables), 3)
        }));
    }
    if is_nightly() {
        // It builds the workspace once more.
        cases.push(Case::new("udreg/of-a-site", of_a_site));
    }
    cases
}

/// The folder of what is built for the site's header.
fn site_target() -> PathBuf {
    target().join("udreg-site")
}

/// The suite over the site's library, by a program that was built for it.
fn of_a_site(log: &Log) -> Result<()> {
    let site = gasworks_testkit::root().join(SITE);
    let build = Cmd::cargo("build -p gasworks-conformance --bin gasworks-conformance").limit(600);
    log.run_ok(&build.env("CARGO_TARGET_DIR", site_target()).env(INCLUDE, site))?;
    let program = site_target().join("debug/gasworks-conformance");
    // The first three registrations are the messages', the segment's and the mailboxes'. The last way is over the software NIC's
    // own library, which says so itself.
    for (mode, chip, variable, value) in [
        ("seq", "aries", FAULTS, "GNI_MemRegister:INVALID_PARAM@4"),
        ("seq", "aries", FAULTS, "UDREG_Register:NO_SPACE%50 UDREG_Evict:NO_MATCH%50"),
        ("par", "gemini", "GASNET_GNI_MEMREG", "1"),
        ("seq", "aries", "GASWORKS_UDREG_LIBRARY", "libudreg.so.0"),
    ] {
        let suite = job(log, &program)?.words(&format!("--mode {mode}"));
        passes(log, &suite.env(CHIP, chip).env(variable, value), 2)?;
    }
    Ok(())
}

fn not_built_for_it(log: &Log) -> Result<()> {
    let job = job(log, &release()?.program("gasworks-conformance")?)?.words("--mode seq");
    fails(log, job, "libudreg-site.so: its layout is not known here")
}

/// Headers whose library could not be called as it is: the part of the site's header that is replaced, and by what.
const WRONG: [(&str, &str); 6] = [
    ("    uint64_t max_entries;", ""),
    ("    uint64_t max_entries;", "    uint8_t max_entries;"),
    ("    char cache_name[UDREG_MAX_CACHENAME_LEN + 1];", "    char *cache_name;"),
    (
        "typedef struct site_cache *udreg_cache_handle_t;",
        "typedef struct { void *a, *b, *c; } udreg_cache_handle_t;",
    ),
    (
        "(*device_reg_func)(void *address, uint64_t length, void *context)",
        "(*device_reg_func)(void *address)",
    ),
    ("uint64_t length, udreg_entry_t **entry)", "uint64_t length, udreg_entry_t *entry)"),
];

/// A build is refused that is told of a folder without the header, or of a header that does not do.
fn no_such_header(log: &Log) -> Result<()> {
    let place = log.scratch()?;
    let text = std::fs::read_to_string(gasworks_testkit::root().join(SITE).join("udreg_pub.h"))?;
    let check = |dir: &Path, says: &str| -> Result<()> {
        let check = Cmd::cargo("check -p gasworks-gni-sys").env(INCLUDE, dir).limit(300);
        let ended = log.run(&check.env("CARGO_TARGET_DIR", site_target()))?;
        ensure!(!ended.ok(), "{}: it was built", dir.display());
        ensure!(ended.output.contains(says), "it does not say {says:?}");
        Ok(())
    };
    check(&place, "where there is no udreg_pub.h")?;
    for (number, (right, wrong)) in WRONG.into_iter().enumerate() {
        ensure!(text.contains(right), "the site's header has no {right:?}");
        let dir = place.join(number.to_string());
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("udreg_pub.h"), text.replace(right, wrong))?;
        check(&dir, "lacks what is needed of UDREG")?;
    }
    Ok(())
}

/// Two ranks of a program over the software NIC, with the site's library.
fn job(log: &Log, program: &Path) -> Result<Cmd> {
    let prefix = Fixture::Nic.get()?;
    let gasrun = Cmd::new(release()?.program("gasrun")?).words("-n 2 --timeout 120 --label --");
    let job = dressed(gasrun.arg(program).limit(150).job(), &prefix).env("GASNET_USE_UDREG", "1");
    let job = job.env("SITE_UDREG", prefix.join("lib/libudreg.so.0"));
    Ok(job.env("GASWORKS_UDREG_LIBRARY", library(log)?))
}

/// Compiles the site's library.
fn library(log: &Log) -> Result<PathBuf> {
    let library = log.scratch()?.join("libudreg-site.so");
    let cc = Cmd::new("cc").words("-Wall -Wextra -Werror -shared -fPIC -I").arg(SITE).arg("-o").arg(&library);
    log.run_ok(&cc.arg(format!("{SITE}/udreg.c")).arg("-ldl"))?;
    Ok(library)
}
