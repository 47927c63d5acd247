//! UDREG from C.
use std::collections::BTreeSet;

use crate::program::{Programs, declared, defined, run};

#[test]
fn a_client_does_all_of_it() {
    let programs = Programs::of("udreg", &["udreg"]);
    for form in ["static", "shared"] {
        assert_eq!(run(&mut programs.alone(form)), "all is well\n");
    }
}

#[test]
fn the_header_and_the_library_have_the_same_functions() {
    let mut header: BTreeSet<_> =
        declared(include_str!("../../include/udreg_pub.h"), "UDREG_").into_iter().collect();
    // By this one, which no header has, a client that was built without any knows the library.
    header.insert(gasworks_gni_sys::udreg::MARK.into());
    let library: BTreeSet<_> = defined(include_str!("../../src/udreg/calls.rs")).into_iter().collect();
    assert_eq!(header, library);
    assert_eq!(header.len(), 11);
}
