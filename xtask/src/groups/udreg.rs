//! A site's UDREG, of another layout than the software NIC's: refused by what was not built for it, and used by what was.

use super::{Extent, conformance, input};
use crate::exec::{Cmd, Log};
use crate::rows::Row;
use crate::ugni::dressed;
use crate::world::{Build, World};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

/// Its header, and the library's source.
const SITE: &str = "crates/ugni-sim-capi/tests/site";
/// Where its header is, to whoever builds.
const INCLUDE: &str = "GASWORKS_UDREG_INCLUDE";

pub fn rows(extent: Extent) -> Vec<Row> {
    let mut rows = vec![
        Row::new("gni/bad-input/udreg/not-built-for-it", not_built_for_it),
        Row::new("gni/bad-input/udreg/no-such-header", no_such_header),
    ];
    if extent == Extent::Nightly {
        // All is built once more for it.
        rows.push(Row::new("gni/udreg/of-a-site", of_a_site));
    }
    rows
}

/// The suite over that library, by a program that was built for it.
fn of_a_site(world: &World, log: &Log) -> Result<()> {
    let dir = crate::root().join("target/udreg-site");
    let site = crate::root().join(SITE);
    let words = "build -p gasworks-testkit --bin gasworks-conformance";
    log.run_ok(&Cmd::cargo(words).env("CARGO_TARGET_DIR", &dir).env(INCLUDE, site).limit(600))?;
    let program = dir.join("debug/gasworks-conformance");
    // The first three registrations are the messages', the segment's and the mailboxes'. The last way is over the software NIC's own
    // library, which says so itself.
    for (mode, chip, variable, value) in [
        ("seq", "aries", "GASWORKS_UGNI_FAULTS", "GNI_MemRegister:INVALID_PARAM@4"),
        ("seq", "aries", "GASWORKS_UGNI_FAULTS", "UDREG_Register:NO_SPACE%50 UDREG_Evict:NO_MATCH%50"),
        ("par", "gemini", "GASNET_GNI_MEMREG", "1"),
        ("seq", "aries", "GASWORKS_UDREG_LIBRARY", "libudreg.so.0"),
    ] {
        let suite = job(world, log, &program)?.words(&format!("--mode {mode}"));
        let suite = suite.env("GASWORKS_UGNI_CHIP", chip).env(variable, value);
        let ended = log.run_ok(&suite)?;
        let said = ended.output.lines().filter_map(|line| line.strip_prefix("[0] "));
        conformance::enough(&said.collect::<Vec<_>>().join("\n"), "pshm", 2)?;
    }
    Ok(())
}

fn not_built_for_it(world: &World, log: &Log) -> Result<()> {
    let built = world.built(Build::Release)?;
    let ended = log.run(&job(world, log, built.program("gasworks-conformance")?)?.words("--mode seq"))?;
    ensure!(!ended.ok(), "it went well");
    input::told_once(&ended.output, &["libudreg-site.so: its layout is not known here"])
}

/// Of a header what is replaced, and by what: so that the library could not be called as it is.
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

/// A directory without the header, and headers that cannot do.
fn no_such_header(world: &World, log: &Log) -> Result<()> {
    let place = world.scratch("udreg/headers")?;
    let text = std::fs::read_to_string(crate::root().join(SITE).join("udreg_pub.h"))?;
    let check = |dir: &Path, says: &str| -> Result<()> {
        let check = Cmd::cargo("check -p gasworks-gni-sys").env(INCLUDE, dir).limit(300);
        let ended = log.run(&check.env("CARGO_TARGET_DIR", crate::root().join("target/udreg-site")))?;
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
fn job(world: &World, log: &Log, program: &Path) -> Result<Cmd> {
    let prefix = super::ugni::lay_out(world, log)?;
    let gasrun = Cmd::new(world.built(Build::Release)?.program("gasrun")?);
    let job = gasrun.words("-n 2 --timeout 120 --label --").arg(program).limit(150);
    let job = dressed(job, &prefix)
        .env("GASNET_USE_UDREG", "1")
        .env("SITE_UDREG", prefix.join("lib/libudreg.so.0"));
    Ok(job.env("GASWORKS_UDREG_LIBRARY", library(world, log)?))
}

fn library(world: &World, log: &Log) -> Result<PathBuf> {
    let library = world.scratch("udreg/library")?.join("libudreg-site.so");
    let cc = Cmd::new("cc").words("-Wall -Wextra -Werror -shared -fPIC -I").arg(SITE).arg("-o").arg(&library);
    log.run_ok(&cc.arg(format!("{SITE}/udreg.c")).arg("-ldl").dir(crate::root()))?;
    Ok(library)
}
