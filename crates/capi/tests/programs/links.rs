//! What programs are linked with: libraries that export public names alone, shared libraries, and several libraries at
//! once.

use crate::program::{
    BUILDS, LANGUAGES, Language, OPTIMISED, PROGRAMS, comes_to_its_end, runs_in, source, start,
};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::c::{
    CONDUITS, INTERFACE, MODES, SHARED, SYSTEM, compiler, is_public, linked_name, linking, names,
};
use gasworks_testkit::pairwise::product;
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Case, Cmd, Log};

/// An object's conduit and mode, and those of the library with which it must not link.
const MISMATCHES: [(&str, usize, &str, usize); 4] =
    [("smp", 0, "smp", 2), ("smp", 2, "smp", 0), ("aries", 1, "aries", 2), ("gemini", 0, "aries", 0)];

/// The orders in which two libraries are linked.
const ORDERS: [(&str, bool); 2] = [("first", false), ("last", true)];

pub fn cases() -> Vec<Case> {
    let public = product(&[CONDUITS.len(), MODES.len()]).into_iter().map(|pick| {
        let (conduit, mode) = (CONDUITS[pick[0]], MODES[pick[1]].0);
        Case::new(format!("public-names/{conduit}/{mode}"), move |_| public_names(conduit, mode))
    });
    let mismatches = MISMATCHES.into_iter().map(|(conduit, mode, other, other_mode)| {
        let name = format!("mismatch/{conduit}-{}/{other}-{}", MODES[mode].0, MODES[other_mode].0);
        Case::new(name, move |log| mismatch(log, conduit, mode, other, other_mode))
    });
    let builds = product(&[BUILDS.len(), BUILDS.len()]).into_iter().map(|pick| {
        let [one, other] = [BUILDS[pick[0]], BUILDS[pick[1]]];
        Case::new(format!("builds/{}/{}", one.0, other.0), move |log| mixed(log, [one.1, other.1]))
    });
    let programs =
        product(&[PROGRAMS.len(), MODES.len()]).into_iter().filter(|pick| runs_in(pick[0], pick[1]));
    let shared = programs.map(|pick| {
        let (name, mode) = (PROGRAMS[pick[0]].0, MODES[pick[1]]);
        Case::new(format!("shared/{name}/{}", mode.0), move |log| with_shared_libraries(log, name, mode))
    });
    let tools = [MODES[0], MODES[2]].into_iter().flat_map(|mode| {
        ORDERS.map(|(order, turned)| {
            Case::new(format!("with-tools/{}/{order}", mode.0), move |log| with_the_tools(log, mode, turned))
        })
    });
    let another = ORDERS.map(|(order, turned)| {
        Case::new(format!("with-another-library/{order}"), move |log| with_another_library(log, turned))
    });
    let published = MODES.into_iter().flat_map(|mode| {
        [LANGUAGES[0], LANGUAGES[3]].map(|language| {
            let name = format!("published/{}/{}", mode.0, language.name);
            Case::new(name, move |log| as_published(log, mode, language))
        })
    });
    public
        .chain(mismatches)
        .chain(builds)
        .chain(shared)
        .chain(tools)
        .chain(another)
        .chain(published)
        .collect()
}

/// A library exports its public names alone, and is one object. The shared one exports them in a version, under its soname.
fn public_names(conduit: &str, mode: &str) -> Result<()> {
    let lib = Fixture::C.get()?.join("lib");
    let library = lib.join(format!("libgasnet-{conduit}-{mode}.a"));
    let (found, linked) = (names(&library)?, linked_name(conduit, mode));
    let strange: Vec<_> = found.iter().filter(|name| !is_public(name)).collect();
    ensure!(strange.is_empty(), "it exports {strange:?}");
    let some = [&*linked, "gex_Segment_Attach", "gasnett_ticks_to_ns"];
    ensure!(
        some.iter().all(|name| found.contains(*name)),
        "it has {} names, not all of {some:?}",
        found.len()
    );
    let members = Cmd::new("ar").arg("t").arg(&library).read()?;
    // One object, and one for each kind of build.
    ensure!(members.lines().count() == 3, "its members are {members:?}");
    let shared = lib.join(SHARED).join(format!("libgasnet-{conduit}-{mode}.so"));
    let about = Cmd::new("readelf").words("-dW --dyn-syms").arg(&shared).read()?;
    let soname = format!("Library soname: [libgasnet-{conduit}-{mode}.so.{INTERFACE}]");
    ensure!(about.contains(&soname), "the shared library has another soname");
    let version = format!("GASWORKS_{INTERFACE}");
    let marked = format!("@@{version}");
    let exported: Vec<_> = about.lines().filter_map(|line| line.split_once(&marked)).collect();
    // What keeps objects of both kinds of builds apart is in the static one alone.
    ensure!(
        exported.len() + 1 >= found.len(),
        "the shared library exports {} names of {}",
        exported.len(),
        found.len()
    );
    let strange: Vec<_> = exported
        .iter()
        .filter_map(|(before, _)| before.split_whitespace().last())
        .filter(|name| !is_public(name) && *name != version)
        .collect();
    ensure!(strange.is_empty(), "the shared library exports {strange:?}");
    Ok(())
}

/// An object for one conduit and mode does not link with the library of another. The linker's error names them.
fn mismatch(log: &Log, conduit: &str, mode: usize, other: &str, other_mode: usize) -> Result<()> {
    let laid_out = Fixture::C.get()?;
    let compile = compiler("gcc", conduit, MODES[mode].1, &laid_out).words(OPTIMISED).arg(source("memory"));
    let compile = compile.arg("-o").arg(log.scratch()?.join("memory"));
    let ended = log.run(&linking(compile, other, MODES[other_mode].0, &laid_out))?;
    let name = linked_name(conduit, MODES[mode].0);
    ensure!(!ended.ok() && ended.output.contains(&name), "{}; {name} is in no error", ended.how());
    Ok(())
}

/// Objects of a debug build and of another do not link with each other, and those of one build do.
fn mixed(log: &Log, [one, other]: [&str; 2]) -> Result<()> {
    let (laid_out, dir) = (Fixture::C.get()?, log.scratch()?);
    std::fs::write(
        dir.join("second.c"),
        "#include <gasnetex.h>\nint second(void);\nint second(void) { return 0; }\n",
    )?;
    for (options, from, to) in [(one, source("memory"), "first.o"), (other, dir.join("second.c"), "second.o")]
    {
        let compile = compiler("gcc", CONDUITS[0], MODES[0].1, &laid_out).words(options).arg("-c");
        log.run_ok(&compile.arg(from).arg("-o").arg(dir.join(to)))?;
    }
    let link =
        Cmd::new("gcc").args([dir.join("first.o"), dir.join("second.o")]).arg("-o").arg(dir.join("program"));
    let ended = log.run(&linking(link, CONDUITS[0], MODES[0].0, &laid_out))?;
    let told = ended.output.contains("gasworks_objects_of_debug_and_optimised_builds_do_not_go_together");
    ensure!((ended.ok(), told) == (one == other, one != other), "{}", ended.how());
    Ok(())
}

/// A program runs with the shared library.
fn with_shared_libraries(log: &Log, name: &str, (mode, define): (&str, &str)) -> Result<()> {
    let laid_out = Fixture::C.get()?;
    let (folder, program) = (laid_out.join("lib").join(SHARED), log.scratch()?.join(name));
    let compile =
        compiler("gcc", CONDUITS[0], define, &laid_out).words(LANGUAGES[0].options).words(OPTIMISED);
    let compile = compile.arg(source(name)).words("-x none -o").arg(&program);
    let link = compile.arg(format!("-L{}", folder.display())).arg(format!("-lgasnet-smp-{mode}"));
    log.run_ok(&link.arg(format!("-Wl,-rpath,{}", folder.display())).limit(120))?;
    let needed = Cmd::new("readelf").arg("-dW").arg(&program).read()?;
    ensure!(needed.contains(&format!("[libgasnet-smp-{mode}.so.{INTERFACE}]")), "{name} does not need it");
    comes_to_its_end(log, &start(&program, 3)?, name)
}

/// What published programs use runs, with an object that knows no thread mode.
fn as_published(log: &Log, (mode, define): (&str, &str), language: Language) -> Result<()> {
    let (laid_out, dir) = (Fixture::C.get()?, log.scratch()?);
    let (lite, program) = (dir.join("lite.o"), dir.join("published"));
    let compile = compiler("gcc", CONDUITS[0], "GASNETT_LITE_MODE=1", &laid_out).words("-O2 -c");
    log.run_ok(&compile.arg(source("lite")).arg("-o").arg(&lite).limit(60))?;
    // The function that scripts look for is declared as they have it.
    let compile =
        compiler(language.cc, CONDUITS[0], define, &laid_out).words("-fno-builtin").words(language.options);
    let compile =
        compile.arg(source("published")).words("-x none").arg(&lite).arg("-o").arg(&program).words(OPTIMISED);
    log.run_ok(&linking(compile, CONDUITS[0], mode, &laid_out))?;
    for job in [start(&program, 2)?, start(&program, 2)?.arg("deferred")] {
        comes_to_its_end(log, &job, "published")?;
    }
    Ok(())
}

/// A program runs that is linked with the library of the tools too, which has functions of the same names.
fn with_the_tools(log: &Log, (mode, define): (&str, &str), turned: bool) -> Result<()> {
    let (laid_out, program) = (Fixture::C.get()?, log.scratch()?.join("settings"));
    let mut libraries = [format!("-lgasnet-smp-{mode}"), format!("-lgasnet_tools-{mode}")];
    if turned {
        libraries.reverse();
    }
    let compile = compiler("gcc", CONDUITS[0], define, &laid_out).words(OPTIMISED).arg(source("settings"));
    let link = compile.arg("-o").arg(&program).arg(format!("-L{}", laid_out.join("lib").display()));
    log.run_ok(&link.args(&libraries).words(SYSTEM).limit(120)).context("they do not link together")?;
    comes_to_its_end(log, &start(&program, 3)?, "settings")
}

/// A program runs that is linked with another static library of Rust, which contains Rust's standard library too.
fn with_another_library(log: &Log, turned: bool) -> Result<()> {
    let (laid_out, dir) = (Fixture::C.get()?, log.scratch()?);
    let (program, other) = (dir.join("beside"), dir.join("libother.a"));
    let rust = Cmd::new("rustc").words("--edition 2024 --crate-type staticlib --crate-name other -O -o");
    log.run_ok(&rust.arg(&other).arg(source("other").with_extension("rs")).limit(300))?;
    let mut libraries = [laid_out.join("lib/libgasnet-smp-par.a"), other];
    if turned {
        libraries.reverse();
    }
    let compile =
        compiler("gcc", CONDUITS[0], "GASNET_PAR", &laid_out).words(OPTIMISED).arg(source("beside"));
    let link = compile.arg("-o").arg(&program).args(&libraries).words(SYSTEM).words("-lrt -lgcc_s");
    log.run_ok(&link.limit(120))?;
    comes_to_its_end(log, &start(&program, 3)?, "beside")
}
