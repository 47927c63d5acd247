//! Miri, the sanitizers, and the corpora of the fuzz targets.

use super::Extent;
use crate::exec::Cmd;
use crate::needs::Need;
use crate::rows::Row;
use crate::tools;
use crate::world::{Build, World};
use anyhow::{Result, ensure};

pub fn rows(extent: Extent) -> Result<Vec<Row>> {
    let miri = |one: (&'static str, &'static str, &'static str)| {
        let row = Row::new(format!("miri/{}", one.0), move |_, log| {
            let ended = log.run_ok(&tools::miri_cmd(one).limit(900))?;
            ensure!(super::units::passed(&ended.output) > 0, "no test ran");
            Ok(())
        });
        row.need(Need::Nightly).need(Need::Miri).beside()
    };
    let today = |dir: &str| extent == Extent::Nightly || dir != tools::BY_NIGHT;
    let mut rows: Vec<Row> = tools::MIRI.into_iter().filter(|one| today(one.0)).map(miri).collect();
    rows.extend([
        super::command("miri/command", "cargo xtask miri -- -- --list").need(Need::Nightly).need(Need::Miri),
        Row::new("tsan/build", |world, _| world.built(Build::Tsan).map(drop))
            .need(Need::Nightly)
            .need(Need::RustSrc),
        super::command("tsan/command", "cargo xtask tsan --list").need(Need::Nightly).need(Need::RustSrc),
    ]);
    for package in tools::TSAN_PACKAGES {
        let dir = package.trim_start_matches("gasworks-");
        if today(dir) {
            let row = tests_of(format!("tsan/{dir}"), Build::Tsan, package);
            rows.push(row.need(Need::Nightly).need(Need::RustSrc));
        }
    }
    if extent == Extent::Nightly {
        for transport in ["simnet", "simnet-unmapped"] {
            let row = Row::new(format!("tsan/conformance/{transport}"), move |world, log| {
                let built = world.built(Build::TsanSuite)?;
                let cmd = super::conformance::simnet(&built, transport, "par", 2)?;
                let ended = log.run_ok(&tools::sanitized(cmd))?;
                super::conformance::enough(&ended.output, transport, 2)
            });
            rows.push(row.need(Need::Nightly).need(Need::RustSrc));
        }
        rows.push(Row::new("asan/build", |world, _| world.built(Build::Asan).map(drop)).need(Need::Nightly));
        let packages = crate::package_dirs().into_iter().map(|dir| (format!("gasworks-{dir}"), dir));
        for (package, dir) in packages {
            if [&dir, &package].iter().any(|name| tools::NOT_UNDER_ASAN.contains(&name.as_str())) {
                continue;
            }
            rows.push(tests_of(format!("asan/{dir}"), Build::Asan, &package).need(Need::Nightly));
        }
    }
    rows.push(Row::new("fuzz/replay", |_, log| {
        let dir = crate::root().join("target/fuzz-replay");
        let ended =
            log.run_ok(&Cmd::cargo("test --manifest-path fuzz/Cargo.toml").env("CARGO_TARGET_DIR", dir))?;
        ensure!(super::units::passed(&ended.output) > 0, "no corpus was replayed");
        Ok(())
    }));
    if extent == Extent::Nightly {
        for target in tools::fuzz_targets()? {
            let row = Row::new(format!("fuzz/{target}"), move |_, log| {
                log.run_ok(&tools::fuzz_cmd(&target, 30)?).map(drop)
            });
            rows.push(row.need(Need::Nightly).need(Need::CargoFuzz));
        }
    }
    Ok(rows)
}

/// A row that runs a package's tests as this way to build made them.
fn tests_of(name: String, build: Build, package: &str) -> Row {
    let dir = package.trim_start_matches("gasworks-").to_owned();
    Row::new(name, move |world: &World, log| {
        let mut tests = 0;
        for cmd in tools::sanitized_tests(world, build, Some(&dir))? {
            tests += super::units::passed(&log.run_ok(&cmd)?.output);
        }
        ensure!(tests > 0, "no test ran");
        Ok(())
    })
}
