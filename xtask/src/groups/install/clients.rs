//! Programs in C and C++ that are built with an installation in each of the ways that it offers, and started by its launchers.

use super::installed;
use crate::install::{Files, NIC, ready};
use crate::rows::Row;
use crate::world::World;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::Need;
use gasworks_testkit::c::CONDUITS;
use gasworks_testkit::command::{Cmd, Ended, Log};
use gasworks_testkit::files::{copy, copy_tree, empty};
use gasworks_testkit::programs::{Fixture, target};
use std::path::{Path, PathBuf};

/// What every fragment defines.
const VARIABLES: &str = "GASNET_CC GASNET_CXX GASNET_LD GASNET_OPT_CFLAGS GASNET_OPT_CXXFLAGS GASNET_MISC_CFLAGS \
    GASNET_MISC_CXXFLAGS GASNET_DEVWARN_CFLAGS GASNET_DEVWARN_CXXFLAGS GASNET_MISC_CPPFLAGS GASNET_MISC_CXXCPPFLAGS \
    GASNET_DEFINES GASNET_INCLUDES GASNET_LDFLAGS GASNET_LIBS GASNET_CFLAGS GASNET_CPPFLAGS GASNET_CXXFLAGS \
    GASNET_CXXCPPFLAGS GASNET_SPAWNER_DEFAULT GASNET_SPAWNER_FORK GASNET_SPAWNER_PMI GASNET_SPAWNER_MPI \
    GASNET_SPAWNER_SSH GASNET_LD_REQUIRES_MPI GASNET_PREFIX";

/// What spares clients warnings of what they have from headers.
const MISC: &str = "-Wno-unused -Wunused-result -Wno-unused-parameter -Wno-address";

/// A program of the tools alone.
const TOOLS: &str = r#"
#include <gasnet_tools.h>
#include <stdio.h>
int main(void) {
  gasnett_tick_t then = gasnett_ticks_now();
  printf("tools in %s: %d\n", GASNETT_THREAD_MODEL, gasnett_cpu_count() > 0 && gasnett_ticks_now() >= then);
  return 0;
}
"#;

/// What says of itself that it is linked for another network.
const FOREIGN: &str =
    "const char name[] = \"$GASNetConduitName: ARIES $\"; int main(void) { return name[0] != '$'; }\n";

pub fn rows() -> Vec<Row> {
    let rows = [
        Row::new("install/c/readme", readme),
        Row::new("install/c/pkg-config", pkg_config),
        Row::new("install/c/sockets", sockets),
        Row::new("install/c/cci", connected),
        Row::new("install/c/make", make),
        Row::new("install/c/configured", configured),
        Row::new("install/c/variables", variables),
        Row::new("install/c/cmake", cmake).need(Need::Cmake),
        Row::new("install/c/another-mode", another_mode),
        Row::new("install/c/gasnetrun", gasnetrun),
        Row::new("install/c/networks", networks),
        Row::new("install/c/ugni-sim", software_nic),
        Row::new("install/c/man-pages", man_pages).need(Need::Groff),
    ];
    rows.into_iter().map(|row| row.need(Need::PkgConfig)).collect()
}

/// A block of README in this language.
fn block(language: &str, with: &str) -> Result<String> {
    let text = std::fs::read_to_string(crate::root().join("README.md")).context("README")?;
    let begin = format!("\n```{language}\n");
    let blocks = text.split(&*begin).skip(1).filter_map(|rest| rest.split("\n```").next());
    let found = blocks.filter(|block| block.contains(with)).map(|block| format!("{block}\n"));
    found.last().with_context(|| format!("README has no {language} with {with}"))
}

/// A folder with the program of README, one of the tools, and one of another network.
fn sources(world: &World, name: &str) -> Result<PathBuf> {
    let dir = world.scratch(&format!("install/c/{name}"))?;
    std::fs::write(dir.join("hello.c"), block("c", "gex_Client_Init")?)?;
    std::fs::write(dir.join("tools.c"), TOOLS)?;
    std::fs::write(dir.join("foreign.c"), FOREIGN)?;
    Ok(dir)
}

/// What a user of an installation types in a folder.
fn typed(prefix: &Path, dir: &Path, script: &str) -> Cmd {
    let script = format!("PATH=\"$P/bin:$PATH\"; {script}");
    let shell = Cmd::new("sh").arg("-euc").arg(script).dir(dir).limit(120);
    shell.env("P", prefix).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
}

/// Every rank of a job of the program has said so, once.
fn all_ranks(ended: &Ended, ranks: usize) -> Result<()> {
    for rank in 0..ranks {
        let line = format!("rank {rank} of {ranks}");
        let count = ended.output.lines().filter(|said| *said == line).count();
        ensure!(count == 1, "{line:?} is said {count} times");
    }
    Ok(())
}

/// The two launchers start a program.
fn started(log: &Log, prefix: &Path, dir: &Path, program: &str) -> Result<()> {
    for launcher in ["gasrun --timeout 60", "gasnetrun_smp"] {
        all_ranks(&log.run_ok(&typed(prefix, dir, &format!("{launcher} -n 3 ./{program}")))?, 3)?;
    }
    Ok(())
}

/// The three lines of README, as they stand there but for the prefix.
fn readme(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "readme")?);
    let script = block("sh", "hello.c")?;
    ensure!(script.lines().count() == 3, "it has {} lines", script.lines().count());
    let script = script.replace("/opt/gasworks", &prefix.display().to_string());
    all_ranks(&log.run_ok(&Cmd::new("sh").arg("-euc").arg(script).dir(dir).limit(120))?, 4)
}

/// Every mode in both languages, the shared library, the tools alone, variables that are given, and an installation that was moved.
fn pkg_config(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "pkg-config")?);
    for mode in ["seq", "parsync", "par"] {
        for compiler in ["cc", "c++ -x c++"] {
            let module = format!("gasnet-smp-{mode}");
            let build = format!(
                "{compiler} -Wall -Werror $(pkg-config --cflags {module}) hello.c -x none -o hello $(pkg-config --libs {module})"
            );
            log.run_ok(&typed(&prefix, &dir, &build))?;
            started(log, &prefix, &dir, "hello")?;
        }
    }
    let shared = "cc $(pkg-config --cflags gasnet-smp-seq) hello.c -o shared -L\"$P/lib/gasworks\" \
                  -Wl,-rpath,\"$P/lib/gasworks\" $(pkg-config --libs gasnet-smp-seq); ldd shared";
    let ended = log.run_ok(&typed(&prefix, &dir, shared))?;
    ensure!(ended.output.contains("libgasnet-smp-seq.so."), "it does not need the shared library");
    started(log, &prefix, &dir, "shared")?;
    for (mode, shown) in [("seq", "SEQ"), ("par", "PAR")] {
        let module = format!("gasnet_tools-{mode}");
        let build = format!(
            "cc -Wall -Werror $(pkg-config --cflags {module}) tools.c -o tools $(pkg-config --libs {module}); ./tools"
        );
        let ended = log.run_ok(&typed(&prefix, &dir, &build))?;
        ensure!(ended.output.contains(&format!("tools in {shown}: 1")), "the tools say something else");
    }
    let other = dir.join("moved");
    for folder in ["include", "lib"] {
        copy_tree(&prefix.join(folder), &other.join(folder))?;
    }
    let asked = |words: &str| -> Result<String> {
        let cmd = Cmd::new("pkg-config").words(words).env("PKG_CONFIG_PATH", other.join("lib/pkgconfig"));
        Ok(cmd.read()?.trim().to_owned())
    };
    let moved = asked("--define-prefix --variable=GASNET_PREFIX gasnet-smp-seq")?;
    ensure!(Path::new(&moved) == other, "moved there, it is in {moved}");
    let libs = asked("--define-prefix --libs gasnet-smp-seq")?;
    ensure!(libs.starts_with(&format!("-L{} ", other.join("lib").display())), "moved there, it says {libs}");
    let given = asked("--define-variable=MANUAL_CXXFLAGS=-g3 --variable=GASNET_CXXFLAGS gasnet-smp-seq")?;
    ensure!(given.split_whitespace().any(|word| word == "-g3"), "it says {given}");
    let version = asked("--modversion gasnet-smp-par")?;
    let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>()?;
    ensure!(numbers.len() == 3 && numbers > vec![1, 18], "its version is {version}");
    Ok(())
}

/// Where an installation is, and what a program is linked with beside what pkg-config says: with the static library, with that of an installation that was moved, and with the
/// shared one there.
fn linked(prefix: &Path, dir: &Path) -> Result<[(PathBuf, &'static str); 3]> {
    let moved = dir.join("moved");
    for folder in ["include", "lib"] {
        copy_tree(&prefix.join(folder), &moved.join(folder))?;
    }
    let shared = "-L$P/lib/gasworks -Wl,-rpath,$P/lib/gasworks";
    Ok([(prefix.into(), ""), (moved.clone(), ""), (moved, shared)])
}

/// The socket engine's own program, linked with its library of either kind, and from an installation that was moved.
fn sockets(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, world.scratch("install/c/sockets")?);
    copy(&crate::root().join("crates/sock-capi/tests/program.c"), &dir.join("program.c"))?;
    for (prefix, more) in &linked(&prefix, &dir)? {
        let build = format!(
            "cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror \
             $(pkg-config --define-prefix --cflags gasworks_sock) program.c -o program {more} \
             $(pkg-config --define-prefix --libs gasworks_sock); ./program; ldd program"
        );
        let ended = log.run_ok(&typed(prefix, &dir, &build))?;
        ensure!(ended.output.contains("all is well"), "the program says something else");
        let is_shared = ended.output.contains("libgasworks_sock.so.");
        ensure!(is_shared != more.is_empty(), "it was linked with the library of the other kind");
    }
    Ok(())
}

/// The key-value server in C, linked with CCI's library of either kind, and from an installation that was moved; and its clients.
fn connected(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, world.scratch("install/c/cci")?);
    copy(&crate::root().join("examples/c/kv.c"), &dir.join("kv.c"))?;
    for (prefix, more) in &linked(&prefix, &dir)? {
        let build = format!(
            "cc -std=c99 -pedantic -D_GNU_SOURCE -Wall -Wextra -Werror $(pkg-config --define-prefix --cflags cci) kv.c -o kv {more} \
             $(pkg-config --define-prefix --libs cci); ldd kv; ./kv serve >address & \
             until [ -s address ]; do sleep 0.01; done; \
             ./kv $(cat address) put colour blue; ./kv $(cat address) get colour; ./kv $(cat address) stop; wait $!; rm address"
        );
        let ended = log.run_ok(&typed(prefix, &dir, &build))?;
        ensure!(ended.output.lines().any(|line| line == "blue"), "the server has not kept the value");
        let is_shared = ended.output.contains("libcci.so.");
        ensure!(is_shared != more.is_empty(), "it was linked with the library of the other kind");
    }
    Ok(())
}

/// A Makefile that has the fragment of a mode in it, a line for each language, and one for the tools.
fn makefile(prefix: &Path, mode: &str) -> String {
    let include = prefix.join("include").display().to_string().replace(' ', "\\ ");
    let tools = if mode == "seq" { "seq" } else { "par" };
    format!(
        "include {include}/smp-conduit/smp-{mode}.mak\ninclude {include}/gasnet_tools-{tools}.mak\n\
         all: in-c in-c++ tools\n\
         in-c: hello.c\n\t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) hello.c -o $@ $(GASNET_LDFLAGS) $(GASNET_LIBS)\n\
         in-c++: hello.c\n\t$(GASNET_CXX) $(GASNET_CXXCPPFLAGS) $(GASNET_CXXFLAGS) -x c++ hello.c -x none -o $@ $(GASNET_LDFLAGS) $(GASNET_LIBS)\n\
         tools: tools.c\n\t$(GASNETTOOLS_CC) $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CFLAGS) tools.c -o $@ $(GASNETTOOLS_LDFLAGS) $(GASNETTOOLS_LIBS)\n"
    )
}

/// By the fragments, with what a Makefile adds to them.
fn make(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "make")?);
    for mode in ["seq", "par"] {
        std::fs::write(dir.join("Makefile"), makefile(&prefix, mode))?;
        let given = "make -B MANUAL_CFLAGS=-DC_GIVEN MANUAL_CXXFLAGS=-DCXX_GIVEN MANUAL_DEFINES=-DGIVEN \
                     MANUAL_LDFLAGS=-Wl,-O1 MANUAL_LIBS=-lc; ./tools";
        let ended = log.run_ok(&typed(&prefix, &dir, given))?;
        ensure!(ended.output.contains(&format!("tools in {}: 1", mode.to_uppercase())), "what the tools say");
        let lines: Vec<_> = ended.output.lines().filter(|line| line.contains("hello.c")).collect();
        ensure!(lines.len() == 2, "{} lines build it", lines.len());
        for (line, own) in lines.iter().zip(["-DC_GIVEN", "-DCXX_GIVEN"]) {
            let words: Vec<_> = line.split_whitespace().collect();
            let lacks: Vec<_> =
                [own, "-DGIVEN", "-Wl,-O1", "-lc"].into_iter().filter(|word| !words.contains(word)).collect();
            ensure!(lacks.is_empty(), "what was given is not there: {lacks:?}");
        }
        started(log, &prefix, &dir, "in-c")?;
        started(log, &prefix, &dir, "in-c++")?;
    }
    Ok(())
}

/// What a client has configured that takes the installation for a source of GASNet: a build for optimised and one for debug builds.
fn configured(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "configured")?);
    std::fs::write(
        dir.join("names.mak.in"),
        "SEEN = @CONDUITS@ @EXESUFFIX@ @CC_FAMILY@ @CXX_FAMILY@ @CC_SUBFAMILY@ @GASNET_THREAD_DEFINES@ @GASNET_THREAD_LIBS@ @ANOTHER@\n\
         TOOLS = @PERL@ @AR@\n",
    )?;
    for (kind, option, line) in
        [("opt", "--disable-debug", "optimised"), ("debug", "--enable-debug", "debug")]
    {
        let script = format!(
            "test -r \"$P/share/gasworks/gasnet/gasnet_config.h.in\"; mkdir -p {kind}; cd {kind}; \
             \"$P/share/gasworks/gasnet/configure\" --disable-parsync --enable-pthreads {option}; test -r gasnet_config.h; \
             env CONFIG_COMMANDS= CONFIG_LINKS= CONFIG_HEADERS= CONFIG_FILES=names.mak:../names.mak.in ./config.status; cat names.mak; \
             echo @CC@ | ./config.status --file=-; make all; eval $(make -s echovar VARNAME=CONDUITS); echo \"networks: $CONDUITS\"; \
             make -C smp-conduit seq smp-seq.mak; make install prefix=\"$PWD/../$KIND installed\"; \
             test -f \"../$KIND installed/lib/libgasnet-smp-seq.a\"; test -x \"../$KIND installed/bin/gasrun\""
        );
        let ended = log.run_ok(&typed(&prefix, &dir, &script).env("KIND", kind))?;
        for said in ["SEEN = smp  GNU GNU NONE -D_REENTRANT -lpthread @ANOTHER@", "networks: smp\n", "\ncc\n"]
        {
            ensure!(ended.output.contains(said), "{kind}: nobody says {said:?}");
        }
        // Its fragments build clients of this kind, from the build and where it was installed.
        for fragment in [format!("{kind}/smp-conduit"), format!("{kind} installed/include/smp-conduit")] {
            let include = dir.join(fragment).display().to_string().replace(' ', "\\ ");
            std::fs::write(
                dir.join("Makefile"),
                format!(
                    "include {include}/smp-seq.mak\nin-c: hello.c\n\t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) hello.c -o $@ $(GASNET_LIBS)\n"
                ),
            )?;
            let ended = log.run_ok(&typed(&prefix, &dir, "make -B in-c"))?;
            let is_debug = ended.output.contains("-DGASNET_DEBUG=1") && ended.output.contains("-O0 -g");
            ensure!(is_debug == (kind == "debug"), "{include} builds what is not {line}");
            started(log, &prefix, &dir, "in-c")?;
        }
    }
    Ok(())
}

/// The fragments and pkg-config say the same of every variable, in words that tools which take a part of them understand.
fn variables(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "variables")?);
    for (mode, defines) in [
        ("seq", "-D_GNU_SOURCE=1 -DGASNET_SEQ"),
        ("parsync", "-D_GNU_SOURCE=1 -DGASNET_PARSYNC"),
        ("par", "-D_GNU_SOURCE=1 -D_REENTRANT -DGASNET_PAR"),
    ] {
        let shown = format!(
            "include {}/include/smp-conduit/smp-{mode}.mak\n\
             all: ; @:\n$(foreach name,{VARIABLES},$(info $(origin $(name)) $(name)=$($(name))))\n",
            prefix.display()
        );
        std::fs::write(dir.join("Makefile"), shown)?;
        let output = log.run_ok(&typed(&prefix, &dir, "make"))?.output;
        for name in VARIABLES.split_whitespace() {
            let (_, value) = output
                .lines()
                .find_map(|line| {
                    line.strip_prefix("file ")?.split_once('=').filter(|(known, _)| *known == name)
                })
                .with_context(|| format!("smp-{mode}.mak does not define {name}"))?;
            let words: Vec<_> = value.split_whitespace().collect();
            let asked = format!("pkg-config --variable={name} gasnet-smp-{mode}");
            let said = log.run_ok(&typed(&prefix, &dir, &asked))?.output;
            ensure!(
                words == said.split_whitespace().collect::<Vec<_>>(),
                "{name}: make {value:?}, pkg-config {said:?}"
            );
            let fits = match name {
                "GASNET_LIBS" => words.iter().all(|word| word.starts_with("-L") || word.starts_with("-l")),
                "GASNET_INCLUDES" => words.iter().all(|word| word.starts_with("-I")),
                "GASNET_DEFINES" => value.trim() == defines,
                "GASNET_CPPFLAGS" | "GASNET_CXXCPPFLAGS" => value.contains(defines),
                "GASNET_MISC_CFLAGS" | "GASNET_MISC_CXXFLAGS" => value.trim() == MISC,
                "GASNET_CFLAGS" | "GASNET_CXXFLAGS" => value.contains(MISC),
                "GASNET_SPAWNER_MPI" => value == "0",
                // Makefiles ask whether it is defined.
                "GASNET_LD_REQUIRES_MPI" => value.is_empty(),
                "GASNET_SPAWNER_PMI" => value == "1",
                "GASNET_PREFIX" => Path::new(value) == prefix,
                "GASNET_CC" | "GASNET_CXX" | "GASNET_LD" | "GASNET_SPAWNER_DEFAULT" => words.len() == 1,
                _ => true,
            };
            ensure!(fits, "{name} is {value:?} in mode {mode}");
        }
    }
    Ok(())
}

/// The project of a user of the CMake package.
const PROJECT: &str = "cmake_minimum_required(VERSION 3.13)\nproject(client C CXX)\n\
    find_package(Gasworks 0.1 REQUIRED COMPONENTS smp)\n\
    configure_file(hello.c hello.cpp COPYONLY)\n\
    foreach(mode seq parsync par)\n\
    add_executable(in-c-${mode} hello.c)\ntarget_link_libraries(in-c-${mode} Gasworks::gasnet-smp-${mode})\n\
    add_executable(in-c++-${mode} ${CMAKE_BINARY_DIR}/hello.cpp)\ntarget_link_libraries(in-c++-${mode} Gasworks::gasnet-smp-${mode})\n\
    endforeach()\n\
    add_executable(tools tools.c)\ntarget_link_libraries(tools Gasworks::gasnet_tools-par)\n";

/// By the CMake package, which says what it does not have.
fn cmake(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "cmake")?);
    let lists = dir.join("CMakeLists.txt");
    std::fs::write(&lists, PROJECT)?;
    let build = "cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$P\"; cmake --build build; build/tools";
    let ended = log.run_ok(&typed(&prefix, &dir, build))?;
    ensure!(ended.output.contains("tools in PAR: 1"), "the tools say something else");
    for mode in ["seq", "par"] {
        started(log, &prefix, &dir, &format!("build/in-c-{mode}"))?;
        started(log, &prefix, &dir, &format!("build/in-c++-{mode}"))?;
    }
    for (asked, says) in [
        ("0.1 REQUIRED COMPONENTS ibv", "has no libraries for ibv, but for: smp"),
        ("9.0 REQUIRED", "requested version"),
    ] {
        std::fs::write(&lists, PROJECT.replace("0.1 REQUIRED COMPONENTS smp", asked))?;
        let ended = log.run(&typed(&prefix, &dir, "cmake -S . -B other -DCMAKE_PREFIX_PATH=\"$P\""))?;
        let said = ended.output.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(!ended.ok() && said.contains(says), "{asked}: nobody says {says:?}");
    }
    Ok(())
}

/// Objects of a mode do not link with the library of another.
fn another_mode(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "another-mode")?);
    let build = "cc $(pkg-config --cflags gasnet-smp-par) -c hello.c; cc hello.o -o hello $(pkg-config --libs gasnet-smp-seq)";
    let ended = log.run(&typed(&prefix, &dir, build))?;
    ensure!(
        !ended.ok() && ended.output.contains("gasworks_linked_SMP_par_"),
        "nobody says for what the object is"
    );
    let build = "cc $(pkg-config --cflags gasnet_tools-par) -c tools.c; cc tools.o -o tools $(pkg-config --libs gasnet_tools-seq)";
    let ended = log.run(&typed(&prefix, &dir, build))?;
    ensure!(
        !ended.ok() && ended.output.contains("gasnett_linkconfig_PAR_"),
        "nobody says for what the tools are"
    );
    Ok(())
}

/// GASNet's options, those that are none, and a program of another network.
fn gasnetrun(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "gasnetrun")?);
    let build = "cc $(pkg-config --cflags gasnet-smp-seq) hello.c -o hello $(pkg-config --libs gasnet-smp-seq); cc foreign.c -o foreign";
    log.run_ok(&typed(&prefix, &dir, build))?;
    let run = |line: &str| log.run(&typed(&prefix, &dir, line));
    for line in [
        "gasnetrun_smp -n 3 ./hello",
        "gasnetrun_smp -n3 -N1 -c 1 -E HOME,NOT_SET -v -k -- ./hello -n 5",
        "GASWORKS_NETWORK=gni gasnetrun_smp -n 3 ./hello",
        "PMIRUN_CMD='env -u PMIRUN_CMD gasrun --timeout 60 -n %N %C' gasnetrun_smp -n 3 -E HOME ./hello",
    ] {
        all_ranks(&run(line)?.check()?, 3)?;
    }
    let shown = run("GASWORKS_NETWORK=gni gasnetrun_smp -n 3 -t ./hello 'a b'")?.check()?.output;
    let wanted = format!(
        "GASWORKS_NETWORK=pshm {} -n 3 --bind none -- ./hello 'a b'",
        prefix.join("bin/gasrun").display()
    );
    ensure!(shown.trim() == wanted, "-t shows {shown:?}, not {wanted:?}");
    let through = run("PMIRUN_CMD='srun -n %N %C' gasnetrun_smp -n 3 -t -E HOME ./hello")?.check()?.output;
    ensure!(through.trim() == "srun -n 3 ./hello", "-t shows {through:?} of another launcher's");
    let version = run("gasnetrun_smp --version; gasrun --version")?.check()?.output;
    let numbers: Vec<_> = version.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    ensure!(numbers.len() == 2 && numbers[0] == numbers[1], "the versions are {version:?}");
    for (line, says, code) in [
        (
            "gasnetrun_smp -n 3 ./foreign",
            "./foreign was linked for ARIES, not for SMP: start it by gasnetrun_aries",
            2,
        ),
        ("gasnetrun_smp -n 3 --frobnicate ./hello", "unexpected argument '--frobnicate' found", 2),
        ("gasnetrun_smp -n 3 -N 2 ./hello", "-N 2: a job of smp is on one host", 2),
        ("gasnetrun_smp ./hello", "-n <N>", 2),
        ("gasnetrun_smp -n 3 ./not-there", "./not-there: No such file or directory", 127),
        (
            "ln -sf \"$P/bin/gasrun\" gasnetrun_ibv; ./gasnetrun_ibv -n 3 ./hello",
            "there is no such network",
            2,
        ),
        ("cp \"$P/bin/gasrun\" gasnetrun_smp; ./gasnetrun_smp -n 3 ./hello", "gasrun is not there", 2),
    ] {
        let ended = run(line)?;
        let found = ended.status.and_then(|status| status.code());
        ensure!(found == Some(code), "{line}: {}, not code {code}", ended.how());
        ensure!(ended.output.matches(says).count() == 1, "{line}: {says:?} is not said once");
    }
    Ok(())
}

/// All networks, in a prefix with a blank: in each way, and not over what is somebody else's. Of the optimised build, for it takes linkers
/// minutes to make so many libraries of one that is not.
fn networks(world: &World, log: &Log) -> Result<()> {
    world.fixture(Fixture::Release)?;
    let dir = sources(world, "networks")?;
    let prefix = dir.join("with a blank");
    let others = prefix.join("include/gasnet.h");
    std::fs::create_dir_all(prefix.join("include"))?;
    std::fs::write(&others, "theirs")?;
    let target = target();
    let ready = |conduits, extras| ready(&target, &prefix, (conduits, extras), &Files::new());
    let refused =
        ready(&CONDUITS[..1], &[]).err().context("it goes over what is somebody else's")?.to_string();
    ensure!(refused.starts_with(&format!("{}: this is of no installation", others.display())), "{refused}");
    ensure!(std::fs::read_to_string(&others)? == "theirs", "it is not theirs any more");
    empty(&prefix)?;
    ready(&CONDUITS, &[NIC])?.put(&prefix)?;
    for conduit in CONDUITS {
        let there = [
            format!("bin/gasnetrun_{conduit}"),
            format!("include/{conduit}-conduit/gasnet_core.h"),
            format!("include/{conduit}-conduit/{conduit}-parsync.mak"),
            format!("lib/libgasnet-{conduit}-par.a"),
            format!("lib/gasworks/libgasnet-{conduit}-parsync.so"),
            format!("lib/pkgconfig/gasnet-{conduit}-seq.pc"),
        ];
        let lacks: Vec<_> = there.iter().filter(|file| !prefix.join(file).is_file()).collect();
        ensure!(lacks.is_empty(), "there is no {lacks:?}");
        let build = format!(
            "eval \"cc $(pkg-config --cflags gasnet-{conduit}-seq) hello.c -o {conduit} $(pkg-config --libs gasnet-{conduit}-seq)\""
        );
        log.run_ok(&typed(&prefix, &dir, &build))?;
    }
    std::fs::write(dir.join("ring.c"), NIC_CLIENT)?;
    let build = "eval \"cc $(pkg-config --cflags cray-ugni cray-pmi) ring.c -o ring $(pkg-config --libs cray-ugni cray-pmi)\"; \
                 LD_LIBRARY_PATH=\"$P/lib\" ./ring";
    ensure!(
        log.run_ok(&typed(&prefix, &dir, build))?.output.contains("rank 0 has 0"),
        "the ring is not closed"
    );
    std::fs::write(dir.join("Makefile"), makefile(&prefix, "par"))?;
    log.run_ok(&typed(&prefix, &dir, "make"))?;
    for program in ["smp", "in-c", "in-c++"] {
        started(log, &prefix, &dir, program)?;
    }
    if world.machine.has(Need::Cmake) {
        std::fs::write(
            dir.join("CMakeLists.txt"),
            PROJECT.replace("COMPONENTS smp", "COMPONENTS smp gemini"),
        )?;
        log.run_ok(&typed(
            &prefix,
            &dir,
            "cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$P\"; cmake --build build --target in-c-seq",
        ))?;
        started(log, &prefix, &dir, "build/in-c-seq")?;
    }
    for (line, says) in [
        (
            "gasnetrun_smp -n 2 ./gemini",
            "./gemini was linked for GEMINI, not for SMP: start it by gasnetrun_gemini",
        ),
        ("gasnetrun_aries -n 2 ./smp", "./smp was linked for SMP, not for ARIES: start it by gasnetrun_smp"),
    ] {
        let ended = log.run(&typed(&prefix, &dir, line))?;
        ensure!(!ended.ok() && ended.output.contains(says), "{line}: nobody says {says:?}");
    }
    let shown = log
        .run_ok(&typed(&prefix, &dir, "unset GASWORKS_BOOTSTRAP; gasnetrun_aries -n 2 -t ./aries"))?
        .output;
    ensure!(
        shown.starts_with("GASWORKS_NETWORK=gni GASWORKS_BOOTSTRAP=cray "),
        "gasnetrun_aries -t shows {shown:?}"
    );
    Ok(())
}

/// A client of the software NIC, which marks what it does: one put around a ring.
const NIC_CLIENT: &str = r#"
#include <gasworks_ugni.h>
#include <gni_pub.h>
#include <pmi_cray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CHECK(it) do { if (!(it)) { fprintf(stderr, "line %d: %s\n", __LINE__, #it); exit(1); } } while (0)
struct place { int rank; uint32_t address; uint64_t at; gni_mem_handle_t handle; };
int main(void) {
  static _Alignas(4096) volatile uint64_t words[512];
  struct place mine, all[8], next;
  gni_cdm_handle_t domain; gni_nic_handle_t nic; gni_cq_handle_t queue; gni_ep_handle_t end; gni_cq_entry_t event;
  int spawned, size;
  memset(&mine, 0, sizeof mine);
  CHECK(PMI_Init(&spawned) == 0 && PMI_Get_rank(&mine.rank) == 0 && PMI_Get_size(&size) == 0 && size <= 8);
  CHECK(!GNI_CdmCreate((uint32_t)mine.rank, (uint8_t)atoi(getenv("PMI_GNI_PTAG")),
                       (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10), 0, &domain));
  CHECK(!GNI_CdmAttach(domain, 0, &mine.address, &nic));
  CHECK(!GNI_CqCreate(nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
  mine.at = (uint64_t)words;
  CHECK(!GNI_MemRegister(nic, mine.at, sizeof words, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &mine.handle));
  CHECK(PMI_Allgather(&mine, all, sizeof mine) == 0);
  for (int i = 0; i < size; i++) if (all[i].rank == (mine.rank + 1) % size) next = all[i];
  CHECK(!GNI_EpCreate(nic, queue, &end) && !GNI_EpBind(end, next.address, (uint32_t)next.rank));
  words[0] = (uint64_t)mine.rank + 1;
  gni_post_descriptor_t put, *found;
  memset(&put, 0, sizeof put);
  put.type = GNI_POST_FMA_PUT; put.cq_mode = GNI_CQMODE_GLOBAL_EVENT; put.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
  put.local_addr = mine.at; put.remote_addr = next.at + 8; put.remote_mem_hndl = next.handle; put.length = 8;
  gasworks_ugni_mark(1);
  CHECK(!GNI_PostFma(end, &put));
  while (GNI_CqGetEvent(queue, &event) != GNI_RC_SUCCESS) { }
  CHECK(!GNI_GetCompleted(queue, event, &found));
  gasworks_ugni_mark(2);
  CHECK(PMI_Barrier() == 0);
  printf("rank %d has %d\n", mine.rank, (int)words[1] - 1);
  CHECK(!GNI_EpDestroy(end) && !GNI_MemDeregister(nic, &mine.handle) && !GNI_CqDestroy(queue) && !GNI_CdmDestroy(domain));
  return PMI_Finalize();
}
"#;

/// The software NIC's libraries, headers and modules are where those of the rest are, and work from there.
fn software_nic(world: &World, log: &Log) -> Result<()> {
    let (prefix, dir) = (installed(world, log)?, sources(world, "ugni-sim")?);
    std::fs::write(dir.join("ring.c"), NIC_CLIENT)?;
    let build = "cc -Wall -Wextra -Werror $(pkg-config --cflags cray-ugni cray-pmi) ring.c -o ring \
                 $(pkg-config --libs cray-ugni cray-pmi)";
    log.run_ok(&typed(&prefix, &dir, build))?;
    let run = "LD_LIBRARY_PATH=\"$P/lib\" GASWORKS_UGNI_STRICT=1 GASWORKS_UGNI_WITNESS=\"$PWD/w\" \
               gasrun --timeout 60 -n 3 ./ring; cat w.*.json";
    let said = log.run_ok(&typed(&prefix, &dir, run))?.output;
    for (rank, last) in [(0, 2), (1, 0), (2, 1)] {
        let line = format!("rank {rank} has {last}");
        ensure!(said.lines().any(|said| said == line), "nobody says {line:?}");
    }
    for mark in ["\"mark\": 1", "\"mark\": 2"] {
        ensure!(said.matches(mark).count() == 3, "not each process has {mark} among its counts");
    }
    for module in [
        "cray-ugni",
        "cray-udreg",
        "cray-pmi",
        "cray-alps",
        "cray-alpslli",
        "cray-alpsutil",
        "cray-gni-headers",
    ] {
        let asked = format!("pkg-config --define-prefix --cflags {module}");
        let flags = log.run_ok(&typed(&prefix, &dir, &asked))?.output;
        let wanted = format!("-I{}", prefix.join("include").display());
        ensure!(flags.split_whitespace().any(|flag| flag == wanted), "{module} says {flags:?}");
    }
    Ok(())
}

/// The pages can be set without a warning, and have what their programs do.
fn man_pages(world: &World, log: &Log) -> Result<()> {
    let pages = installed(world, log)?.join("share/man");
    for (page, has) in [
        ("man1/gasrun.1", "--timeout"),
        ("man1/gasperf.1", "am-latency"),
        ("man1/gasnetrun.1", "-E"),
        ("man7/gasworks.7", "find_package(Gasworks"),
    ] {
        let set = Cmd::new("groff").words("-man -Tascii -ww -P-cbou").arg(pages.join(page));
        let ended = log.run_ok(&set)?;
        ensure!(!ended.output.contains("warning"), "{page}: groff warns");
        ensure!(ended.output.contains(has), "{page} has no {has}");
    }
    Ok(())
}
