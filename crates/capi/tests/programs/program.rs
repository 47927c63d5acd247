//! The programs of `crates/capi/tests/c`: compiled as clients compile theirs, and started as jobs.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::c::{CONDUITS, MODES, compiler, linking};
use gasworks_testkit::files::newest;
use gasworks_testkit::programs::{self, Fixture};
use gasworks_testkit::{Cmd, Log, nic};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Programs that any number of ranks can run, and whether they start threads.
pub const PROGRAMS: [(&str, bool); 12] = [
    ("memory", false),
    ("collectives", false),
    ("atomics", false),
    ("teams", false),
    ("segments", false),
    ("scattered", false),
    ("spread", false),
    ("messages", false),
    ("legacy", false),
    ("granted", false),
    ("allowed", false),
    ("threads", true),
];

/// Whether a program of that number runs in the mode of that number: programs with threads run in `par` alone.
pub fn runs_in(program: usize, mode: usize) -> bool {
    !PROGRAMS[program].1 || MODES[mode].0 == "par"
}

/// A language, and the compiler for it.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Its part of a case's name.
    pub name: &'static str,
    /// The compiler.
    pub cc: &'static str,
    /// The compiler's options.
    pub options: &'static str,
}

const fn language(name: &'static str, cc: &'static str, options: &'static str) -> Language {
    Language { name, cc, options }
}

/// The languages that programs are compiled as.
pub const LANGUAGES: [Language; 8] = [
    language("c99", "gcc", "-x c -std=c99 -pedantic"),
    language("c11", "gcc", "-x c -std=c11 -pedantic"),
    language("c2x", "gcc", "-x c -std=c2x -pedantic"),
    language("c++11", "g++", "-x c++ -std=c++11 -pedantic"),
    language("c++23", "g++", "-x c++ -std=c++2b -pedantic"),
    language("clang-c99", "clang", "-x c -std=c99 -pedantic"),
    language("clang-c2x", "clang", "-x c -std=c2x -pedantic"),
    language("clang-c++23", "clang++", "-x c++ -std=c++2b -pedantic"),
];

impl Language {
    /// Whether it takes clang, which a machine may lack.
    pub fn is_clang(self) -> bool {
        self.cc.starts_with("clang")
    }

    /// Those that need no clang.
    pub fn of_gcc() -> impl Iterator<Item = Language> {
        LANGUAGES.into_iter().filter(|language| !language.is_clang())
    }
}

/// The options of an optimised build.
pub const OPTIMISED: &str = "-O2";
/// The same of one that looks at the ranks and bounds of puts and gets.
pub const CHECKED: &str = "-O2 -DGASWORKS_CHECKED";
/// The options of a build in which the headers check every call.
pub const DEBUG: &str = "-O0 -g -DGASNET_DEBUG=1";
/// The kinds of builds, with their part of a case's name.
pub const BUILDS: [(&str, &str); 2] = [("optimised", OPTIMISED), ("debug", DEBUG)];

/// Where the sources are.
const SOURCES: &str = "crates/capi/tests/c";

/// The source of a program.
pub fn source(name: &str) -> PathBuf {
    gasworks_testkit::root().join(format!("{SOURCES}/{name}.c"))
}

/// A program, and how it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of its source.
    pub name: &'static str,
    /// The conduit, of `CONDUITS`.
    pub conduit: &'static str,
    /// The number of the mode in `MODES`.
    pub mode: usize,
    /// The language.
    pub language: Language,
    /// Further options of the compiler.
    pub options: &'static str,
}

impl Program {
    /// As most clients compile: over shared memory, in C99, optimised.
    pub const fn usual(name: &'static str, mode: usize) -> Self {
        Self { name, conduit: CONDUITS[0], mode, language: LANGUAGES[0], options: OPTIMISED }
    }

    /// The program, compiled unless that has been done for an earlier case: nobody changes it.
    pub fn compile(&self, log: &Log) -> Result<PathBuf> {
        let Self { name, conduit, mode, language, options } = *self;
        let (laid_out, (mode, define)) = (Fixture::C.get()?, MODES[mode]);
        let kind = BUILDS.iter().find(|(_, of_build)| *of_build == options).map_or("other", |(kind, _)| kind);
        let compile =
            compiler(language.cc, conduit, define, &laid_out).words(language.options).words(options);
        let compile = linking(compile.arg(source(name)).words("-x none"), conduit, mode, &laid_out);
        let mut key = DefaultHasher::new();
        compile.shown().hash(&mut key);
        let dir = programs::target().join(format!("fixtures/programs-in-c/{:016x}", key.finish()));
        std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let program = dir.join(format!("{name}-{conduit}-{mode}-{}-{kind}", language.name));
        // Cases are processes of their own, of which one compiles.
        let lock = File::create(dir.join("lock")).context("the lock of a program in C")?;
        lock.lock().context("the lock of a program in C")?;
        let changed =
            newest(&gasworks_testkit::root().join(SOURCES))?.max(newest(&laid_out.join("laid-out"))?);
        if newest(&program).is_ok_and(|compiled| compiled > changed) {
            return Ok(program);
        }
        let new = dir.join("new");
        log.run_ok(&compile.arg("-o").arg(&new))?;
        std::fs::rename(&new, &program).with_context(|| format!("moving {}", new.display()))?;
        Ok(program)
    }

    /// A job of it.
    pub fn job(&self, log: &Log, ranks: usize) -> Result<Cmd> {
        let job = start(&self.compile(log)?, ranks)?;
        Ok(match self.conduit {
            "smp" => job,
            // Such a program says itself which conduit it is for.
            chip => nic::dressed(job, &Fixture::Nic.get()?)
                .env("GASWORKS_NETWORK", "pshm")
                .env("GASWORKS_UGNI_CHIP", chip),
        })
    }
}

/// A job of a compiled program, whose lines say from which rank they are.
pub fn start(program: &Path, ranks: usize) -> Result<Cmd> {
    let gasrun = Cmd::new(programs::release()?.program("gasrun")?);
    Ok(gasrun.words(&format!("-n {ranks} --timeout 60 --label --")).arg(program).limit(90).job())
}

/// Runs a job to its end, which must be a good one, announced by the program `name`.
pub fn comes_to_its_end(log: &Log, job: &Cmd, name: &str) -> Result<()> {
    let ended = log.run_ok(job)?;
    ensure!(ended.output.contains(&format!("{name}: done")), "{name} did not come to its end");
    Ok(())
}
