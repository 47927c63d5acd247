//! Miri, the sanitizers, the corpora of the fuzz targets, and mutants.

use super::Extent;
use crate::rows::Row;
use crate::tools::{self, passed};
use crate::world::{Build, World};
use anyhow::{Result, ensure};
use gasworks_testkit::{Cmd, Need, suite};

/// Miri, a row for each package.
pub fn miri(extent: Extent) -> Vec<Row> {
    let is_nightly = extent == Extent::Nightly;
    let packages = tools::MIRI.into_iter().filter(|one| is_nightly || one.package != tools::BY_NIGHT);
    let row = |one: tools::MiriPackage| {
        let row = Row::new(format!("miri/{}", one.package), move |_, log| {
            let ended = log.run_ok(&tools::miri_cmd(one, is_nightly).limit(900))?;
            ensure!(passed(&ended.output) > 0, "no test ran");
            Ok(())
        });
        row.need(Need::Nightly).need(Need::Miri).single()
    };
    packages.map(row).collect()
}

pub fn rows(extent: Extent) -> Result<Vec<Row>> {
    let is_nightly = extent == Extent::Nightly;
    let with_sources = |row: Row| row.need(Need::Nightly).need(Need::RustSrc);
    let mut rows = vec![with_sources(Row::new("tsan/build", |world, _| world.built(Build::Tsan).map(drop)))];
    for package in tools::tsan_packages(is_nightly) {
        let dir = package.trim_start_matches("gasworks-");
        rows.push(with_sources(tests_of(format!("tsan/{dir}"), Build::Tsan, package)));
    }
    rows.push(Row::new("fuzz/replay", |_, log| {
        // Where the workspace is built: most dependencies are there already.
        let dir = gasworks_testkit::programs::target();
        let replay = Cmd::cargo("test --manifest-path fuzz/Cargo.toml").env("CARGO_TARGET_DIR", dir);
        ensure!(passed(&log.run_ok(&replay)?.output) > 0, "no corpus was replayed");
        Ok(())
    }));
    if is_nightly {
        rows.extend(by_night()?.into_iter().map(|row| row.need(Need::Nightly)));
        // It builds for the packages of the night.
        rows.push(with_sources(super::command("tsan/command", "cargo xtask tsan --list")));
        rows.extend(tools::optimised_tests());
        rows.extend(crate::mutants::rows()?);
    }
    Ok(rows)
}

/// What takes too long for every day.
fn by_night() -> Result<Vec<Row>> {
    let suites = ["simnet", "simnet-unmapped"].into_iter().map(|transport| {
        let row = Row::new(format!("tsan/conformance/{transport}"), move |world, log| {
            let built = world.built(Build::TsanSuite)?;
            let mapped = if transport == "simnet-unmapped" { "--unmapped" } else { "" };
            let suite = Cmd::new(built.program("gasworks-conformance")?);
            let suite = suite.words(&format!("--transport simnet {mapped} --ranks 2 --mode par")).limit(300);
            suite::enough(&log.run_ok(&tools::sanitized(suite))?.output, transport, 2)
        });
        row.need(Need::RustSrc)
    });
    let asan =
        std::iter::once(Row::new("asan/build", |world: &World, _: &_| world.built(Build::Asan).map(drop)));
    let packages = crate::package_dirs().into_iter().filter(|dir| {
        let named = [dir.clone(), format!("gasworks-{dir}")];
        !named.iter().any(|name| tools::NOT_UNDER_ASAN.contains(&name.as_str()))
    });
    let tests = packages.map(|dir| tests_of(format!("asan/{dir}"), Build::Asan, &format!("gasworks-{dir}")));
    let fuzz = tools::fuzz_targets()?.into_iter().map(|target| {
        let row = Row::new(format!("fuzz/{target}"), move |_, log| {
            log.run_ok(&tools::fuzz_cmd(&target, 30)?).map(drop)
        });
        row.need(Need::CargoFuzz)
    });
    Ok(suites.chain(asan).chain(tests).chain(fuzz).collect())
}

/// A row that runs a package's tests as this way to build made them.
fn tests_of(name: String, build: Build, package: &str) -> Row {
    let dir = package.trim_start_matches("gasworks-").to_owned();
    Row::new(name, move |world: &World, log| {
        let mut tests = 0;
        for cmd in tools::sanitized_tests(world, build, Some(&dir))? {
            tests += passed(&log.run_ok(&cmd)?.output);
        }
        ensure!(tests > 0, "no test ran");
        Ok(())
    })
}
