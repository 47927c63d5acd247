//! What compiles, and what the headers refuse.

use crate::program::{BUILDS, Language, source};
use anyhow::{Result, ensure};
use gasworks_testkit::c::{CONDUITS, MODES, compiler};
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Case, Log};
use std::collections::BTreeSet;

/// Options that contradict each other: the case, the options, and what the headers say of them.
const REFUSED: [(&str, &str, &str); 5] = [
    ("no-mode", "", "one of -DGASNET_SEQ, -DGASNET_PARSYNC and -DGASNET_PAR"),
    ("two-modes", "-DGASNET_SEQ -DGASNET_PAR", "one of -DGASNET_SEQ, -DGASNET_PARSYNC and -DGASNET_PAR"),
    (
        "debug-and-ndebug",
        "-DGASNET_SEQ -DGASNET_DEBUG -DNDEBUG",
        "GASNET_DEBUG and NDEBUG contradict each other",
    ),
    (
        "debug-and-optimised",
        "-DGASNET_SEQ -DGASNET_DEBUG -O2",
        "GASNET_DEBUG is for builds without optimisation",
    ),
    ("segment-everything", "-DGASNET_SEQ -DGASNET_SEGMENT_EVERYTHING", "GASNET_SEGMENT_FAST"),
];

/// Functions that cannot be called wrongly, or that only return a code where they are.
const NEVER_WRONG: [&str; 14] = [
    "gex_System_QueryJobRank",
    "gex_System_QueryJobSize",
    "gex_System_GetVerboseErrors",
    "gex_System_SetVerboseErrors",
    "gex_System_QueryMaxThreads",
    "gex_System_QueryHiddenAMConcurrencyLevel",
    "gex_System_QueryProgressThreads",
    "gasnet_ErrorName",
    "gasnet_ErrorDesc",
    "gasnet_mynode",
    "gasnet_nodes",
    "gasnet_hold_interrupts",
    "gasnet_resume_interrupts",
    "gasnet_AMMaxArgs",
];

pub fn cases() -> Vec<Case> {
    let refused = REFUSED.into_iter().map(|(name, options, says)| {
        Case::new(format!("refused/{name}"), move |log| is_refused(log, options, says))
    });
    let uses = Language::of_gcc().flat_map(|language| {
        BUILDS.map(|(kind, options)| {
            let name = format!("debug-names/{}/{kind}", language.name);
            Case::new(name, move |log| calls_compile(log, language, options))
        })
    });
    let rest = [
        Case::new("debug-names/every-function", |_| every_function_has_a_macro()),
        Case::new("judge/functions-of-a-header-are-found", |_| {
            let text = "extern int gex_A(int (*x)(void));\nGASWORKS_INLINE void *gasnet_b(void) {\n  gex_C(1);\n\
                        extern int other(int);\n";
            assert_eq!(declared_in(text).collect::<Vec<_>>(), ["gex_A", "gasnet_b"]);
            assert_eq!(name_in("gex_D(...) E(gex_D, (__VA_ARGS__))"), Some("gex_D"));
            Ok(())
        }),
    ];
    refused.chain(uses).chain(rest).collect()
}

/// Options that contradict each other do not compile.
fn is_refused(log: &Log, options: &str, says: &str) -> Result<()> {
    let compile =
        compiler("gcc", CONDUITS[0], "NOTHING_ELSE", &Fixture::C.get()?).words("-fsyntax-only -x c");
    let ended = log.run(&compile.words(options).arg(source("memory")))?;
    ensure!(!ended.ok() && ended.output.contains(says), "nobody says {says:?}");
    Ok(())
}

/// In debug builds the functions' names are macros; a program can use them as if they were functions.
fn calls_compile(log: &Log, language: Language, options: &str) -> Result<()> {
    let compile = compiler(language.cc, CONDUITS[0], MODES[2].1, &Fixture::C.get()?).words(language.options);
    log.run_ok(&compile.words(options).words("-fsyntax-only").arg(source("uses"))).map(drop)
}

/// Every function that can fail has a macro that says where a call stands.
fn every_function_has_a_macro() -> Result<()> {
    let (mut declared, mut known) = (BTreeSet::new(), BTreeSet::new());
    for file in std::fs::read_dir(gasworks_testkit::root().join("crates/capi/include"))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            let text = std::fs::read_to_string(&path)?;
            declared.extend(declared_in(&text).map(str::to_owned));
            known.extend(
                text.lines().filter_map(|line| name_in(line.strip_prefix("#define ")?)).map(str::to_owned),
            );
        }
    }
    ensure!(declared.len() > 200, "{} functions are declared", declared.len());
    let forgotten: Vec<_> =
        declared.difference(&known).filter(|name| !NEVER_WRONG.contains(&name.as_str())).collect();
    ensure!(forgotten.is_empty(), "gasworks_debug.h has no macros for {forgotten:?}");
    Ok(())
}

/// The name before a parenthesis.
fn name_in(line: &str) -> Option<&str> {
    let (before, _) = line.split_once('(')?;
    let name = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
    (name.starts_with("gex_") || name.starts_with("gasnet_")).then_some(name)
}

/// The functions that a header declares or defines at the beginning of a line.
fn declared_in(text: &str) -> impl Iterator<Item = &str> {
    let line =
        |line| ["extern ", "GASWORKS_INLINE "].into_iter().find_map(|begin| str::strip_prefix(line, begin));
    text.lines().filter_map(line).filter_map(name_in)
}
