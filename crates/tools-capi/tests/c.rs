//! C and C++ programs: compiled by each compiler that is here, in several standards of their languages, with warnings as
//! errors, linked with the library of their mode, and run.

mod support;

use std::process::Command;

use support::{Mode, Program, Tools, compilers, ended, fails, passes};

/// What a program is compiled as.
const LANGUAGES: &[(&str, bool)] = &[
    ("c99", false),
    ("c11", false),
    ("c17", false),
    ("c2x", false),
    ("c++11", true),
    ("c++14", true),
    ("c++17", true),
    ("c++2b", true),
];

/// The header compiles in every standard and mode without a word from the compiler.
#[test]
fn the_header_is_quiet_in_every_standard() {
    let tools = Tools::get();
    for compiler in compilers() {
        for (standard, is_cxx) in LANGUAGES {
            for mode in Mode::ALL {
                for name in ["probe", "compiler", "locks"] {
                    let program = Program { name, standard, is_cxx: *is_cxx, mode, extra: &[] };
                    passes(&mut tools.check(compiler, &program));
                }
            }
        }
    }
}

/// Every program says that all is well in every mode, in turn in the oldest and the newest standard of each language.
#[test]
fn programs_run_in_every_mode() {
    const STANDARDS: [(&str, bool); 4] = [("c99", false), ("c2x", false), ("c++11", true), ("c++2b", true)];
    let tools = Tools::get();
    for compiler in compilers() {
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            let names = ["compiler", "atomics", "locks", "timers", "environ", "misc"];
            for (number, name) in names.into_iter().enumerate() {
                let (standard, is_cxx) = STANDARDS[(at + number) % STANDARDS.len()];
                let program = tools.build(compiler, &Program { name, standard, is_cxx, mode, extra: &[] });
                passes(&mut Command::new(program));
            }
        }
    }
}

/// Clients may ask for locks in a program of one thread, and turn hints and attributes off.
#[test]
fn clients_override_what_they_may() {
    let tools = Tools::get();
    let mut off: Vec<String> = include_str!("names.txt")
        .lines()
        .filter(|name| name.starts_with("GASNETT_USE_"))
        .map(|name| format!("-D{name}=0"))
        .collect();
    assert_eq!(off.len(), 22);
    // What is meant to stay, and falls through, is told to the compiler by attributes.
    const QUIET: [&str; 3] =
        ["-Wno-implicit-fallthrough", "-Wno-unused-const-variable", "-Wno-unused-variable"];
    // `constant_p` is what the program asks about; it has to say 0 then.
    off.retain(|word| !word.contains("CONSTANT_P"));
    let off: Vec<&str> = off.iter().map(String::as_str).chain(QUIET).collect();
    for compiler in compilers() {
        for mode in Mode::ALL {
            let locks = ["-DGASNETT_USE_TRUE_MUTEXES=1"];
            let program = Program { name: "locks", standard: "c99", is_cxx: false, mode, extra: &locks };
            passes(&mut Command::new(tools.build(compiler, &program)));
            let program = Program { name: "compiler", standard: "c11", is_cxx: false, mode, extra: &off };
            passes(&mut Command::new(tools.build(compiler, &program)));
        }
        let wrapped = ["-DGASNETT_USE_CTYPE_WRAPPERS=1"];
        let mode = Mode { threads: true, debug: false };
        let program = Program { name: "compiler", standard: "c11", is_cxx: false, mode, extra: &wrapped };
        passes(&mut Command::new(tools.build(compiler, &program)));
    }
}

/// A race in what the atomics order would be seen by the thread sanitizer.
#[test]
fn orderings_satisfy_the_thread_sanitizer() {
    let tools = Tools::get();
    let extra = ["-fsanitize=thread"];
    for compiler in compilers() {
        if !tools.links(compiler, &extra) {
            println!("{} has no thread sanitizer here: not tried", compiler.c);
            continue;
        }
        // With one thread the strong ones are atomic all the same.
        for threads in [false, true] {
            let mode = Mode { threads, debug: false };
            let program = Program { name: "atomics", standard: "c11", is_cxx: false, mode, extra: &extra };
            passes(&mut Command::new(tools.build(compiler, &program)));
        }
    }
}

/// On this processor a full fence is an instruction, and the weaker ones are none; plain integers take neither.
#[test]
#[cfg(target_arch = "x86_64")]
fn fences_are_the_instructions_that_they_have_to_be() {
    let strong = "gasnett_strongatomic_set(p, 1, GASNETT_ATOMIC";
    let cases = [
        (format!("{strong}_MB_POST)"), true, true),
        (format!("{strong}_MB_PRE)"), true, true),
        (format!("{strong}_ACQ)"), true, true),
        (format!("{strong}_REL)"), false, false),
        (format!("{strong}_NONE)"), false, false),
        ("gasnett_strongatomic_increment(p, 0)".to_owned(), true, true),
        ("gasnett_local_mb(); (void)p".to_owned(), true, true),
        ("gasnett_local_rmb(); gasnett_local_wmb(); (void)p".to_owned(), false, false),
        ("gasnett_weak_mb(); (void)p".to_owned(), true, false),
        (
            "gasnett_atomic_t *w = (gasnett_atomic_t *)p; gasnett_atomic_increment(w, 0)".to_owned(),
            true,
            false,
        ),
    ];
    let tools = Tools::get();
    for compiler in compilers() {
        for (body, with_threads, without) in &cases {
            for (threads, wanted) in [(true, with_threads), (false, without)] {
                let text = format!(
                    "void f(gasnett_strongatomic_t *p);\nvoid f(gasnett_strongatomic_t *p) {{ {body}; }}"
                );
                let code = tools.assembly(compiler, &text, Mode { threads, debug: false });
                let body_of =
                    code.split("\nf:").nth(1).and_then(|rest| rest.split(".size").next()).expect("a body");
                let found = ["mfence", "lock", "xchg"].iter().any(|word| body_of.contains(word));
                assert_eq!(found, *wanted, "{body}, threads {threads}: {body_of}");
            }
        }
    }
}

/// What must not compile does not, for the reason that is given.
#[test]
fn errors_are_found_when_compiling() {
    const ALONE: &str = "#define GASNETT_THREAD_SAFE 1\n#include <gasnet_tools.h>\n";
    let cases: &[(&str, &str, &[&str])] = &[
        ("#include <gasnet_tools.h>\n", "defined to 1 or not at all", &["-DGASNETT_THREAD_SAFE=0"]),
        (
            "#define GASNETT_THREAD_SINGLE 1\n",
            "exclude each other",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1", "-DGASNETT_THREAD_SINGLE=1"],
        ),
        (ALONE, "includes gasnetex.h or gasnet.h before", &["-DGASNET_PAR"]),
        (ALONE, "includes gasnetex.h or gasnet.h before", &["-DGASNET_SEQ"]),
        (ALONE, "builds without optimisation and without NDEBUG", &["-DGASNET_DEBUG=1", "-O1"]),
        (ALONE, "builds without optimisation and without NDEBUG", &["-DGASNET_DEBUG=1", "-DNDEBUG"]),
        (ALONE, "GASNET_DEBUG and GASNET_NDEBUG exclude", &["-DGASNET_DEBUG=1", "-DGASNET_NDEBUG=1"]),
        (ALONE, "threads need locks", &["-DGASNETT_USE_TRUE_MUTEXES=0"]),
        // A plain integer is no atomic, nor one kind another; a key is no pointer.
        (
            "uint64_t n; uint64_t f(void) { return gasnett_atomic_read(&n, 0); }",
            "incompatible",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
        (
            "gasnett_atomic32_t n; uint64_t f(void) { return gasnett_strongatomic32_read(&n, 0); }",
            "incompatible",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
        (
            "static GASNETT_THREADKEY_DEFINE(k); void *f(void) { return k; }",
            "incompatible|returning",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
        // The compiler looks at formats, and knows what does not come back.
        (
            "void f(void) { gasnett_fatalerror(\"%s\", 3); }",
            "format",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
        (
            "GASNETT_DEPRECATED int old(void); int f(void) { return old(); }",
            "deprecated",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
        (
            "GASNETT_WARN_UNUSED_RESULT int use(void); void f(void) { use(); }",
            "unused",
            &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"],
        ),
    ];
    let tools = Tools::get();
    for compiler in compilers() {
        for (source, reason, arguments) in cases {
            let text = fails(&mut tools.check_text(compiler, source, arguments));
            assert!(reason.split('|').any(|words| text.contains(words)), "{source}: {text}");
        }
        // The same frame around what is right compiles.
        let good = "gasnett_atomic_t n; uint64_t f(void) { return gasnett_atomic_read(&n, 0); }\n\
                    int g(int x) { if (x) return 1; gasnett_fatalerror(\"%s\", \"x\"); }";
        passes(&mut tools.check_text(compiler, good, &["-includegasnet_tools.h", "-DGASNETT_THREAD_SAFE=1"]));
        // Alone there are threads unless the client says that there are none; defined to nothing is to 1.
        for (words, threads) in [("-O0", 1), ("-DGASNETT_THREAD_SAFE=", 1), ("-DGASNETT_THREAD_SINGLE=", 0)] {
            let source = format!(
                "#if GASNETT_THREAD_SAFE + 0 != {threads} || GASWORKS_TOOLS_LIBRARY_IS_PAR + 0 != {threads}\n\
                 #error wrong\n#endif\n"
            );
            passes(&mut tools.check_text(compiler, &source, &[words, "-includegasnet_tools.h"]));
        }
        // After the header of GASNet the modes are its own.
        for mode in ["-DGASNET_SEQ", "-DGASNET_PAR", "-DGASNET_PARSYNC"] {
            let source = "#if defined(GASNETT_THREAD_SAFE) == defined(GASNET_SEQ) || defined(GASNET_TOOLS_H_ALONE)\n\
                          #error wrong\n#endif\n";
            let arguments = ["-DGASNETEX_H_INCLUDED=1", mode, "-includegasnet_tools.h"];
            passes(&mut tools.check_text(compiler, source, &arguments));
            let source = "#if GASNETT_THREAD_SAFE != 1 || defined(GASWORKS_TOOLS_LIBRARY_IS_PAR) == defined(GASNET_SEQ)\n\
                          #error wrong\n#endif\n";
            let arguments = [&arguments[..], &["-DGASNETT_THREAD_SAFE="]].concat();
            passes(&mut tools.check_text(compiler, source, &arguments));
        }
    }
}

/// An object that is compiled for one library does not link with another.
#[test]
fn the_wrong_library_does_not_link() {
    let tools = Tools::get();
    for compiler in compilers() {
        for mode in Mode::ALL {
            let object = tools.object(compiler, mode);
            for library in Mode::ALL {
                let mut link = tools.link(compiler, &object, library);
                if library == mode {
                    passes(&mut link);
                } else {
                    let text = fails(&mut link);
                    assert!(text.contains("gasnett_linkconfig_"), "{text}");
                }
            }
        }
    }
}

/// Locks of a build for debugging find misuse, and say where; others do not look.
#[test]
fn misuse_of_locks_is_found_in_debug_builds() {
    let tools = Tools::get();
    let cases = ["twice", "unlock", "locked", "unlocked", "wait", "write", "read", "nobody"];
    for compiler in compilers() {
        for threads in [false, true] {
            let mode = Mode { threads, debug: true };
            let program = tools.build(
                compiler,
                &Program { name: "locks", standard: "c11", is_cxx: false, mode, extra: &[] },
            );
            for case in cases {
                let text = fails(Command::new(&program).arg(case));
                assert!(text.contains("*** FATAL ERROR: ") && text.contains("locks.c:"), "{case}: {text}");
            }
        }
        let mode = Mode { threads: false, debug: false };
        let program = tools
            .build(compiler, &Program { name: "locks", standard: "c11", is_cxx: false, mode, extra: &[] });
        for case in cases.iter().filter(|case| **case != "wait") {
            passes(Command::new(&program).arg(case));
        }
        let text = fails(Command::new(&program).arg("wait"));
        assert!(text.contains("no other thread can signal"), "{text}");
    }
}

fn built(name: &'static str, debug: bool, extra: &'static [&'static str]) -> std::path::PathBuf {
    let mode = Mode { threads: true, debug };
    Tools::get().build(compilers()[0], &Program { name, standard: "c11", is_cxx: false, mode, extra })
}

/// Settings are said as they are read, with a mark where they have their default; a bad one ends the program.
#[test]
fn settings_are_displayed_and_checked() {
    let program = built("environ", false, &[]);
    let shown = |verbose: &str| {
        passes(Command::new(&program).arg("display").envs([
            ("GASNET_VERBOSEENV", verbose),
            ("GASNET_B", "yes"),
            ("GASNET_C", ""),
        ]))
    };
    let lines: Vec<String> =
        shown("1").lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "ENV parameter: GASNET_A = 64 KB (default)",
            "ENV parameter: GASNET_B = YES",
            "ENV parameter: GASNET_C = *empty*",
            "ENV parameter: GASNET_D = *not set*",
            "ENV parameter: GASNET_E = 12 (default)",
            "ENV parameter: GASNET_F = 0.25",
        ]
    );
    assert_eq!(shown("0"), "");
    for kind in ["int", "yesno", "dbl"] {
        let text = fails(Command::new(&program).arg(kind).env("GASNET_A", "rubbish"));
        assert!(text.contains("GASNET_A is 'rubbish', which is not"), "{text}");
    }
}

/// A fatal error says what and where, after what was said before, and ends by `abort`.
#[test]
fn fatal_errors_say_what_and_where() {
    let program = built("misc", false, &[]);
    let (status, text) = ended(Command::new(&program).arg("fatal"));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6));
    assert!(text.starts_with("said before\n*** FATAL ERROR: a number: 42\n    in end at "), "{text}");
    assert!(text.contains("misc.c:"), "{text}");
    let (_, text) = ended(Command::new(&program).arg("nopos"));
    assert_eq!(text, "*** FATAL ERROR: no place\n");
    assert_eq!(ended(Command::new(&program).arg("kill")).0.code(), Some(23));
    assert_eq!(passes(Command::new(&program).arg("close")), "written\n");
    let text = fails(Command::new(built("misc", true, &[])).arg("assume"));
    assert!(text.contains("wrong == 0") && text.contains("misc.c:"), "{text}");
}

/// A backtrace is printed in the way that is wanted, when it is wanted.
#[test]
fn backtraces_are_printed() {
    let program = built("misc", false, &["-rdynamic"]);
    let with = |how: &str, settings: &[(&str, &str)]| {
        ended(Command::new(&program).arg(how).envs(settings.iter().copied())).1
    };
    let own = ("GASNET_BACKTRACE_TYPE", "execinfo");
    // As execinfo says it (of what calls `main`, too), and as gdb does; a path may have the word.
    let names_main = |text: &str| text.contains("main+") || text.contains(" main (");
    assert!(names_main(&with("print", &[own])), "{}", with("print", &[own]));
    assert!(names_main(&with("fatal", &[own, ("GASNET_BACKTRACE", "1")])));
    assert!(!names_main(&with("fatal", &[own])));
    assert!(names_main(&with("signal", &[("GASNET_BACKTRACE_SIGNAL", "SIGUSR2")])));
    assert!(with("assigned", &[]).contains("assigned backtrace"));
    // A program ends once, whatever a setting says that is read then.
    let bad =
        [("GASNET_BACKTRACE_TYPE", "GDB"), ("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_MT", "rubbish")];
    let text = with("fatal", &bad);
    assert_eq!(text.matches("FATAL ERROR").count(), 1, "{text}");
    let odd = ("GASNET_BACKTRACE_TYPE", "SMOKE");
    assert!(with("print", &[odd]).contains("WARNING: GASNET_BACKTRACE_TYPE names 'SMOKE'"));
    assert_eq!(with("print", &[odd, ("GASNET_QUIET", "1")]), "");
    let client = built("misc", false, &["-DOWN_BACKTRACE"]);
    let text = passes(Command::new(&client).arg("print").env_remove("GASNET_BACKTRACE_TYPE"));
    assert_eq!(text, "own backtrace\n");
    if Command::new("gdb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let text = with("print", &[("GASNET_BACKTRACE_TYPE", "GDB,EXECINFO")]);
        assert!(text.contains("#0") || names_main(&text), "{text}");
        println!("gdb: {}", if text.contains("#0") { "it printed" } else { "it may not look here" });
    } else {
        println!("gdb is not installed: not tried");
    }
}

/// The rate of ticks comes from where the environment says, and is compared with the clock.
#[test]
fn the_rate_of_ticks_is_checked() {
    let program = built("misc", false, &[]);
    let with = |rate: &str, more: (&str, &str)| {
        ended(Command::new(&program).arg("rate").env("GASNET_TSC_RATE", rate).envs([more]))
    };
    let verbose = ("GASNET_TSC_RATE_VERBOSE", "1");
    let (status, text) = with("walltime", verbose);
    assert!(status.success(), "{text}");
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let rate: f64 =
        words[words.iter().position(|w| *w == "has").expect("a rate") + 1].parse().expect("a number");
    assert!(with(&format!("{rate:.0}"), verbose).1.starts_with("the time stamp counter"));
    let off = format!("{:.0}", rate * 1.01);
    let (status, text) = with(&off, verbose);
    assert!(status.success() && text.starts_with("WARNING: GASNET_TSC_RATE="), "{text}");
    let (status, text) = with(&off, ("GASNET_TSC_RATE_TOLERANCE", "0.015"));
    assert!(status.success() && text.is_empty(), "{text}");
    let (status, text) = with(&off, ("GASNET_TSC_RATE_HARD_TOLERANCE", "0.005"));
    assert!(!status.success() && text.contains("FATAL ERROR: GASNET_TSC_RATE="), "{text}");
    assert!(!with(&format!("{:.0}", rate * 2.0), verbose).0.success());
    assert!(with("nonsense", verbose).1.contains("gives no rate"));
}

/// Each name of the interface is in the headers: all that the list of names beside this test holds.
#[test]
fn every_name_is_declared() {
    let tools = Tools::get();
    let names = include_str!("names.txt");
    let text = tools.definitions(compilers()[0]);
    let words: std::collections::BTreeSet<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let missing: Vec<&str> = names.lines().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(names.lines().count() > 300);
}
