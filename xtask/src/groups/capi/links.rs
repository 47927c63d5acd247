//! What programs link with: the shared libraries, and several libraries at once.

use super::{LANGUAGES, PROGRAMS, laid_out, source};
use crate::capi::{CONDUITS, MODES, SHARED, SYSTEM, compiler, is_public, linked_name, linking, names};
use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::world::{Build, World};
use anyhow::{Result, ensure};
use std::path::Path;

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("capi/names-of-its-own", names_of_its_own),
        Row::new("capi/another-mode", another_mode),
        Row::new("capi/shared", shared),
        Row::new("capi/with-the-tools", with_the_tools),
        Row::new("capi/beside-another-library", beside_another),
    ]
}

/// Runs three ranks of a program that says so at its end.
fn runs(world: &World, log: &Log, program: &Path, name: &str) -> Result<()> {
    let leftovers = Leftovers::before();
    let gasrun = Cmd::new(world.built(Build::Release)?.program("gasrun")?);
    let ended = log.run_ok(&gasrun.words("-n 3 --timeout 60 --").arg(program).limit(90))?;
    ensure!(ended.output.contains(&format!("{name}: done")), "it did not come to its end");
    leftovers.check()
}

/// A library shows its public names alone, and is one object; a shared one has them in a version, and says what it is called.
fn names_of_its_own(world: &World, log: &Log) -> Result<()> {
    let lib = laid_out(world, log)?.join("lib");
    for (conduit, (mode, _)) in CONDUITS.into_iter().flat_map(|conduit| MODES.map(|mode| (conduit, mode))) {
        let library = lib.join(format!("libgasnet-{conduit}-{mode}.a"));
        let (found, linked) = (names(&library)?, linked_name(conduit, mode));
        let strange: Vec<_> = found.iter().filter(|name| !is_public(name)).collect();
        ensure!(strange.is_empty(), "{conduit} {mode}: others see {strange:?}");
        ensure!(
            [&*linked, "gex_Segment_Attach", "gasnett_ticks_to_ns"].iter().all(|name| found.contains(*name)),
            "{conduit} {mode}: {} names",
            found.len()
        );
        let members = Cmd::new("ar").arg("t").arg(&library).read()?;
        ensure!(members.lines().count() == 1, "{conduit} {mode}: its members are {members:?}");
        let shared = lib.join(SHARED).join(format!("libgasnet-{conduit}-{mode}.so"));
        let about = Cmd::new("readelf").words("-dW --dyn-syms").arg(&shared).read()?;
        let soname = format!("Library soname: [libgasnet-{conduit}-{mode}.so.1]");
        ensure!(about.contains(&soname), "{conduit} {mode}: the shared library is not called so");
        let seen: Vec<_> = about.lines().filter_map(|line| line.split_once("@@GASWORKS_1")).collect();
        ensure!(seen.len() >= found.len(), "{conduit} {mode}: {} names of {}", seen.len(), found.len());
        let strange: Vec<_> = seen
            .iter()
            .filter_map(|(before, _)| before.split_whitespace().last())
            .filter(|name| !is_public(name) && *name != "GASWORKS_1")
            .collect();
        ensure!(strange.is_empty(), "{conduit} {mode}: others see {strange:?} of the shared library");
    }
    Ok(())
}

/// An object for one network and mode does not link with the library of another, whose name is said.
fn another_mode(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    let pairs =
        [("smp", 0, "smp", 2), ("smp", 2, "smp", 0), ("aries", 1, "aries", 2), ("gemini", 0, "aries", 0)];
    for (network, own, another, other) in pairs {
        let compile = compiler("gcc", network, MODES[own].1, &place).arg("-O2").arg(source("memory"));
        let compile = compile.arg("-o").arg(place.join("none"));
        let ended = log.run(&linking(compile, another, MODES[other].0, &place))?;
        let name = linked_name(network, MODES[own].0);
        ensure!(!ended.ok(), "{name} links with {another} {}", MODES[other].0);
        ensure!(ended.output.contains(&name), "nobody says {name}");
    }
    Ok(())
}

/// Programs run with the shared libraries, of each mode.
fn shared(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    let folder = place.join("lib").join(SHARED);
    for (mode, define) in MODES {
        for (name, has_threads) in PROGRAMS {
            if has_threads && mode != "par" {
                continue;
            }
            let program = place.join(format!("{name}-{mode}-shared"));
            let compile = compiler("gcc", "smp", define, &place).words(LANGUAGES[0].2).arg("-O2");
            let compile = compile.arg(source(name)).words("-x none -o").arg(&program);
            let compile = compile.arg(format!("-L{}", folder.display())).arg(format!("-lgasnet-smp-{mode}"));
            log.run_ok(&compile.arg(format!("-Wl,-rpath,{}", folder.display())).limit(120))?;
            let needed = Cmd::new("readelf").arg("-dW").arg(&program).read()?;
            ensure!(needed.contains(&format!("[libgasnet-smp-{mode}.so.1]")), "{name} does not need it");
            runs(world, log, &program, name)?;
        }
    }
    Ok(())
}

/// The library and that of the tools, which has functions of the same names, are linked together, in either order.
fn with_the_tools(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    for (mode, define, tools) in [("seq", "GASNET_SEQ", "seq"), ("par", "GASNET_PAR", "par")] {
        let libraries = [format!("-lgasnet-smp-{mode}"), format!("-lgasnet_tools-{tools}")];
        for turned in [false, true] {
            let program = place.join(format!("settings-{mode}-{turned}"));
            let compile = compiler("gcc", "smp", define, &place).arg("-O2").arg(source("settings"));
            let compile = compile.arg("-o").arg(&program).arg(format!("-L{}", place.join("lib").display()));
            let mut ordered = libraries.clone();
            if turned {
                ordered.reverse();
            }
            let ended = log.run(&compile.args(&ordered).words(SYSTEM).limit(120))?;
            ensure!(ended.ok(), "{ordered:?} do not link together");
            runs(world, log, &program, "settings")?;
        }
    }
    Ok(())
}

/// A program has another library made with Rust besides, with that one's own standard library.
fn beside_another(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    let other = place.join("libother.a");
    let rust = Cmd::new("rustc").words("--edition 2024 --crate-type staticlib --crate-name other -O -o");
    log.run_ok(&rust.arg(&other).arg(source("other").with_extension("rs")).limit(300))?;
    for turned in [false, true] {
        let program = place.join(format!("beside-{turned}"));
        let compile = compiler("gcc", "smp", "GASNET_PAR", &place).arg("-O2").arg(source("beside"));
        let mut libraries = vec![place.join("lib/libgasnet-smp-par.a"), other.clone()];
        if turned {
            libraries.reverse();
        }
        let compile = compile.arg("-o").arg(&program).args(&libraries).words(SYSTEM).words("-lrt -lgcc_s");
        log.run_ok(&compile.limit(120))?;
        runs(world, log, &program, "beside")?;
    }
    Ok(())
}
