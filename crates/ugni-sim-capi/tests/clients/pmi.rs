//! Both versions of PMI, and Cray's extensions.
use std::collections::BTreeSet;
use std::process::Command;

use gasworks_gni_sys::pmi::{Pmi, Pmi2};

use crate::program::{Programs, declared, defined, run, said};

const FORMS: [&str; 2] = ["static", "shared"];

fn programs() -> Programs {
    Programs::of("pmi", &["pmi", "pmi2"])
}

/// What `ranks` lines say after the ranks' numbers, which is the same.
fn agreed(text: &str, ranks: usize) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), ranks, "{text}");
    let said = lines.iter().enumerate().map(|(rank, line)| {
        let start = format!("rank {rank} of {ranks}: ");
        line.strip_prefix(&start).unwrap_or_else(|| panic!("{line}")).to_owned()
    });
    let said: BTreeSet<_> = said.collect();
    assert_eq!(said.len(), 1, "{text}");
    said.into_iter().next().expect("one")
}

#[test]
fn a_client_does_all_of_it_alone_and_among_others() {
    let programs = programs();
    let mut jobs = BTreeSet::new();
    for form in FORMS {
        jobs.insert(agreed(&run(&mut programs.alone(form)), 1));
        for ranks in [1, 2, 5] {
            jobs.insert(agreed(&run(&mut programs.ranks(form, ranks)), ranks as usize));
        }
    }
    assert_eq!(jobs.len(), 8, "every job has a cookie of its own: {jobs:?}");
}

#[test]
fn it_never_asks_itself_and_leaves_what_is_set() {
    let programs = programs();
    for form in FORMS {
        // As the only rank, although a launcher of Cray's seems to be there; and by gasrun's own way.
        for wish in ["auto", "cray"] {
            let mut alone = programs.alone(form);
            alone.env("ALPS_APP_PE", "3").env("GASWORKS_BOOTSTRAP", wish).arg("variables");
            agreed(&run(&mut alone), 1);
            agreed(&run(programs.ranks(form, 2).env("GASWORKS_BOOTSTRAP", wish).arg("variables")), 2);
        }
        let mut alone = programs.alone(form);
        alone
            .env("PMI_GNI_PTAG", "17:18")
            .env("PMI_GNI_COOKIE", "5")
            .env("PMI_GNI_DEV_ID", "")
            .arg("variables");
        let said = agreed(&run(&mut alone), 1);
        let words: Vec<_> = said.split(' ').collect();
        assert_eq!((words[0], words[2], words[3]), ("0", "17:18", "5"));
    }
}

#[test]
fn an_end_that_is_none_is_the_jobs() {
    let programs = programs();
    for form in FORMS {
        for (what, code, words) in [
            ("abort", 42, "no more"),
            ("abort2", 1, "PMI2_Abort"),
            ("abort-waiting", 43, "while another thread waits"),
        ] {
            for mut job in [programs.ranks(form, 3), programs.alone(form)] {
                let ended = job.arg(what).output().expect("started");
                assert_eq!(ended.status.code(), Some(code), "{what}: {}", said(&ended));
                assert!(said(&ended).contains(words), "{what}: {}", said(&ended));
            }
        }
        // A rank ends although it has not left: the launcher sees to it, as on the machines, and nobody waits for ever.
        let ended = programs.ranks(form, 3).arg("leave").output().expect("started");
        let words = said(&ended);
        assert!(words.contains("exited with code 0 without finalize"), "{words}");
        let ended = programs.alone(form).arg("abort-outside").output().expect("started");
        assert_eq!((ended.status.code(), said(&ended)), (Some(9), "gasworks: outside\n".to_owned()));
    }
}

#[test]
fn whoever_opens_it_by_two_names_has_one_of_it() {
    let programs = programs();
    assert_eq!(run(programs.alone("static").arg("open")), "rank 0 of 1\n");
    assert_eq!(run(programs.ranks("static", 3).arg("open")).lines().count(), 3);
}

/// Our own client of Cray's PMI finds here what it knows of the genuine one.
#[test]
fn a_rank_of_ours_joins_by_it() {
    let programs = programs();
    for words in [&["fence"][..], &["ask", "3000"], &["exchange", "3000"]] {
        let text = run(programs.ours(3).env("GASWORKS_BOOTSTRAP", "cray").args(words));
        assert!(text.starts_with(&format!("{} 3 ", words[0])), "{text}");
    }
}

#[test]
fn a_launcher_that_fails_is_told_of() {
    let programs = programs();
    let mut lost = programs.alone("shared");
    let ended = lost.env("PMI_PORT", "127.0.0.1:1").env("PMI_ID", "0").output().expect("started");
    assert!(!ended.status.success());
    let words = said(&ended);
    assert!(words.contains("gasworks: PMI: connect to the launcher: PMI_PORT=127.0.0.1:1"), "{words}");
    assert!(words.contains("PMI2_Init(&spawned, &size, &rank, &appnum): got -1, not 0"), "{words}");
}

#[test]
fn the_headers_and_the_library_have_the_same_functions() {
    let headers: BTreeSet<_> = [
        include_str!("../../include/pmi.h"),
        include_str!("../../include/pmi2.h"),
        include_str!("../../include/pmi_cray_ext.h"),
    ]
    .iter()
    .flat_map(|header| declared(header, "PMI"))
    .collect();
    let library: BTreeSet<_> = [
        include_str!("../../src/pmi/pmi1.rs"),
        include_str!("../../src/pmi/pmi2.rs"),
        include_str!("../../src/pmi/cray.rs"),
    ]
    .iter()
    .flat_map(|source| defined(source))
    .collect();
    assert_eq!(headers, library);
    let known: BTreeSet<_> = [Pmi::NAMES, Pmi2::NAMES].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(library, known);
}

/// What clients call with which header alone: GASNet and Charm++ include `pmi_cray.h`, others nothing but `pmi.h`.
const CLIENTS: [&str; 4] = [
    "#include <pmi.h>\n#include <pmi2.h>\n#include <pmi_cray_ext.h>\n#include <alps/alps.h>\n\
     #include <alps/libalpslli.h>\n#include <alps/libalpsutil.h>\nint main(void) { return 0; }\n",
    "#include <pmi_cray.h>\nint main(void) { int n; char key[PMI2_MAX_KEYLEN]; PMI_BOOL begun = PMI_FALSE; void *nids;\n\
     return PMI_Initialized(&begun) + PMI_Get_numpes_on_smp(&n) + PMI_Get_nidlist_ptr(&nids) + PMI2_Job_GetId(key, 9)\n\
     + PMI2_KVS_Fence() + (PMI2_SUCCESS != PMI_SUCCESS) + (begun != PMI_TRUE) + PMI2_ID_NULL; }\n",
    "#include <pmi.h>\nint main(void) { int n = 1, all[1]; PMI_BOOL begun;\n\
     return PMI_Initialized(&begun) + PMI_Get_nid(0, &n) + PMI_Allgather(&n, all, 4) + PMI_Bcast(&n, 4); }\n",
    "#include <gasworks_ugni.h>\nint main(void) { gasworks_ugni_mark(1); return 0; }\n",
];

#[test]
fn the_headers_are_of_old_c_and_of_cxx_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("all.c");
    for client in CLIENTS {
        std::fs::write(&file, client).expect("a file");
        for words in [&["-std=c99"][..], &["-std=c11"], &["-x", "c++"]] {
            let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"];
            let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
            run(Command::new("cc").args(words).args(strict).arg(include).arg(&file));
        }
    }
}
