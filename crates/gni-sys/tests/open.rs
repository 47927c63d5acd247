//! What is told of a library that is not there, or is none.

use std::collections::BTreeSet;

use gasworks_gni_sys::Ugni;
use gasworks_gni_sys::pmi::{Pmi, Pmi2};
use gasworks_gni_sys::udreg::Udreg;

fn refusal(path: &str) -> String {
    Ugni::open(Some(path)).expect_err("there is no such library").to_string()
}

#[test]
fn a_library_that_is_absent_is_named() {
    let refused = refusal("/nowhere/libugni.so");
    assert!(refused.starts_with("open the library /nowhere/libugni.so: "), "{refused}");
    assert!(refused.contains("No such file"), "{refused}");
    let refused = Udreg::open(Some("/nowhere/libudreg.so")).expect_err("nor such a library").to_string();
    assert!(refused.starts_with("open the library /nowhere/libudreg.so: "), "{refused}");
}

#[test]
fn a_library_of_something_else_is_told_by_what_it_lacks() {
    let refused = refusal("libc.so.6");
    let wanted = format!("open the library libc.so.6: it has no {}: is it the right one?", Ugni::NAMES[0]);
    assert_eq!(refused, wanted);
}

#[test]
fn no_function_stands_there_twice() {
    let names: BTreeSet<_> =
        [Ugni::NAMES, Udreg::NAMES, Pmi::NAMES, Pmi2::NAMES].concat().into_iter().collect();
    assert_eq!(names.len(), 136 + 10 + 35 + 22);
}

#[test]
fn the_functions_of_pmi_are_those_that_are_known() {
    let (_heading, rows) = include_str!("facts/pmi.csv").split_once('\n').expect("rows");
    let known: BTreeSet<&str> = rows.lines().map(|line| line.split_once(',').expect("columns").0).collect();
    let ours: BTreeSet<&str> = [Pmi::NAMES, Pmi2::NAMES].concat().into_iter().collect();
    assert_eq!(ours, known);
    let refused = Pmi2::open(Some("libc.so.6")).expect_err("no such library").to_string();
    assert!(refused.contains("it has no PMI2_Init: is it the right one?"), "{refused}");
}
