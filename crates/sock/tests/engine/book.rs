//! What the book says about the engine is so: each routine of the seed has its row, and each row its test.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use gasworks_sock::{HostDescription, Op};
use tracing::span::{Attributes, Id, Record};

/// The routines of the seed and of what became of it.
const ROUTINES: &str = "init finalize get_host_description hostname_to_host_description create_set destroy_set \
    close_open_sockets set_user_ptr native_to_sock listen accept post_connect post_connect_ifaddr post_read post_readv \
    post_write post_writev post_close wait wakeup read readv write writev getid getsetid get_last_os_error \
    get_error_class_string";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_routine_has_a_row_and_every_row_a_test() {
    let here = ["events", "faults", "namespaces", "states", "book"];
    let mut tests: String = here.map(|name| read(&format!("tests/engine/{name}.rs"))).concat();
    tests += &read("../sock-capi/tests/c.rs");
    let header = read("../sock-capi/include/gasworks_sock.h");
    let page = read("../../docs/src/sock.md");
    let mut named = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(|cell| cell.trim()).collect();
        let [routine, _, c, test] = cells.as_slice() else { panic!("four cells: {row}") };
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        assert!(tests.contains(&format!("\nfn {}()", bare(test))), "no test {test}");
        if c.starts_with('`') && !c.contains("GASWORKS_SOCK") {
            assert!(header.contains(&format!("gasworks_sock_{}", bare(c))), "not in the header: {c}");
        }
        named.insert(bare(routine));
    }
    for routine in ROUTINES.split_whitespace() {
        assert!(named.contains(routine), "no row for {routine}");
    }
}

/// Notes the names of all spans.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeSet<&'static str>>>);

impl tracing::Subscriber for Names {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().expect("ours").insert(span.metadata().name());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Calls every routine.
fn call_all() {
    let set = set();
    let (listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let host = HostDescription::named("127.0.0.1").expect("a name");
    HostDescription::local().expect("this host");
    let sock = set.post_connect(2, &host, port).expect("posted");
    let _ = (next(&set), next(&set));
    set.accept(&listener, 3).expect("accepted");
    sock.set_user(4);
    let _ = (sock.id(), set.id());
    sock.read(&mut [0]).expect("nothing");
    sock.readv(&mut [std::io::IoSliceMut::new(&mut [0])]).expect("nothing");
    sock.write(&[0]).expect("written");
    sock.writev(&[std::io::IoSlice::new(&[0])]).expect("written");
    sock.post_read(vec![0], 1, 1, None).expect("posted");
    let _ = sock.post_readv(vec![vec![0]], 1, None);
    sock.post_write(vec![0], 1, 1, None).expect("posted");
    expect(&set, Op::Write, 4);
    sock.post_writev(vec![vec![0]], 1, None).expect("posted");
    unix_pair(&set, 5);
    set.wakeup();
    sock.post_close().expect("posted");
    while set.close_open().is_some() {}
    while set.wait(Some(Duration::ZERO)).expect("waited").is_some() {}
    set.destroy().expect("empty");
}

#[test]
fn every_routine_has_its_span() {
    let names = Names::default();
    tracing::subscriber::with_default(names.clone(), || {
        // Other tests meet the same places at the same time, without a listener: the second time all places are known,
        // and are asked again.
        call_all();
        tracing::callsite::rebuild_interest_cache();
        call_all();
    });
    let seen = names.0.lock().expect("ours").clone();
    // Without those of C alone, and the system's number, which is part of an error.
    let ours = ROUTINES.split_whitespace().filter(|routine| {
        !["init", "finalize", "post_connect_ifaddr", "get_last_os_error", "get_error_class_string"]
            .contains(routine)
    });
    for routine in ours {
        assert!(seen.contains(format!("sock_{routine}").as_str()), "no span for {routine}: {seen:?}");
    }
}
