//! What programs ask of ALPS.
use std::collections::BTreeSet;

use crate::program::{Programs, declared, defined, run, said};

#[test]
fn whoever_asks_is_told_of_its_job() {
    let programs = Programs::of("alps", &["alpslli", "alpsutil", "pmi", "ugni"]);
    for form in ["static", "shared"] {
        let mut told = programs.alone(form);
        told.env("PMI_GNI_DEV_ID", "1").env("PMI_GNI_LOC_ADDR", "5:6:7").env("PMI_GNI_PTAG", "17:18");
        assert!(run(told.env("PMI_GNI_COOKIE", "9:10")).ends_with(" 17 9\n"), "it says what is set");
        for nodes in [None, Some("2")] {
            let marker = tempfile::tempdir().expect("a folder");
            let marker = marker.path().join("answered");
            let mut ranks = programs.ranks(form, 2);
            ranks.arg("apart").arg(&marker).env("ALPS_APP_PE", "7");
            ranks.envs(nodes.map(|nodes| ("GASWORKS_UGNI_NODES", nodes)));
            let text = run(&mut ranks);
            assert_eq!(text.lines().collect::<BTreeSet<_>>().len(), 1, "nobody waits for the other: {text}");
        }
        // Who is to go over sockets has to be met, and here nobody comes.
        let mut met = programs.ranks(form, 2);
        met.args(["apart", "/nowhere/at/all"]).env("GASWORKS_UGNI_WIRE", "sock");
        let ended = met.env("GASWORKS_BOOTSTRAP_TIMEOUT", "1").output().expect("started");
        let words = said(&ended);
        assert!(!ended.status.success() && words.contains("nothing came for 1 s"), "{words}");
        for what in ["first", "then", "alone"] {
            assert_eq!(run(programs.alone(form).arg(what)).lines().count(), 1);
            let text = run(programs.ranks(form, 3).arg(what));
            assert_eq!(text.lines().count(), 3, "{text}");
            assert_eq!(text.lines().collect::<BTreeSet<_>>().len(), 1, "all are of one job: {text}");
        }
    }
}

#[test]
fn where_nobody_can_be_asked_that_is_said() {
    let programs = Programs::of("alps", &["alpslli", "alpsutil", "pmi", "ugni"]);
    let mut lost = programs.alone("shared");
    let ended =
        lost.arg("alone").env("PMI_PORT", "127.0.0.1:1").env("PMI_ID", "0").output().expect("started");
    let words = said(&ended);
    assert!(!ended.status.success() && words.contains("status == ALPS_APP_LLI_ALPS_STAT_OK"), "{words}");
}

#[test]
fn the_headers_and_the_library_have_the_same_functions() {
    let headers =
        [include_str!("../../include/alps/libalpslli.h"), include_str!("../../include/alps/libalpsutil.h")];
    let headers: BTreeSet<_> = headers.iter().flat_map(|header| declared(header, "alps_")).collect();
    let library: BTreeSet<_> = defined(include_str!("../../src/alps.rs")).into_iter().collect();
    assert_eq!(headers, library);
    assert_eq!(headers.len(), 6);
}
