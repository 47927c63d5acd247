//! What needs a network of its own: each test runs itself again inside new user and network namespaces.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::*;
use gasworks_sock::host::HostDescription;
use gasworks_sock::{Address, Class, Op, Options, Set};

const INSIDE: &str = "GASWORKS_TEST_INSIDE";

/// Whether this is the run inside the namespaces; if not, makes it.
fn inside(test: &str) -> bool {
    if std::env::var(INSIDE).is_ok() {
        run("ip", &["link", "set", "lo", "up"]);
        return true;
    }
    let own = std::env::current_exe().expect("this program");
    let name = format!("namespaces::{test}");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--"])
        .arg(own)
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let [text, errors] =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    // A name that no test has is a success as well, of no test.
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "{test} did not pass inside its namespaces: {}\n{text}{errors}", output.status);
    false
}

fn run(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).status().expect("it runs");
    assert!(status.success(), "{program} {args:?}");
}

/// A link that leads nowhere, of whatever kind this kernel has.
fn link(name: &str) {
    let made = |kind| {
        let made = Command::new("ip").args(["link", "add", name, "type", kind]).output();
        made.expect("ip runs").status.success()
    };
    assert!(["dummy", "ifb"].into_iter().any(made), "the kernel has neither dummy nor ifb links");
    run("ip", &["link", "set", name, "up"]);
}

/// A network that swallows everything that is sent to it.
fn black_hole() {
    link("hole");
    run("ip", &["link", "set", "hole", "arp", "off"]);
    run("ip", &["addr", "add", "192.0.2.2/24", "dev", "hole"]);
}

fn hole(port: u16) -> Address {
    Address::Inet(([192, 0, 2, 1], port).into())
}

#[test]
fn a_connect_into_a_black_hole_can_be_closed() {
    if !inside("a_connect_into_a_black_hole_can_be_closed") {
        return;
    }
    black_hole();
    let set = set();
    let sock = set.post_connect_to(1, [hole(9)]).expect("posted");
    assert_eq!(set.wait(Some(Duration::from_millis(200))).expect("waited"), None);
    let start = Instant::now();
    sock.post_close().expect("posted");
    expect_error(&set, Op::Connect, 1, Class::SockClosed);
    expect(&set, Op::Close, 1);
    assert!(start.elapsed() < LONG, "closing waited for the peer");
}

#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    if !inside("a_silent_address_does_not_hold_up_the_next") {
        return;
    }
    black_hole();
    let set = set();
    let (_listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let start = Instant::now();
    set.post_connect_to(2, [hole(9), hole(10), loopback(port)]).expect("posted");
    let mut told = [next(&set), next(&set)].map(|event| (event.op, event.error));
    told.sort_by_key(|(op, _)| *op == Op::Accept);
    assert_eq!(told, [(Op::Connect, None), (Op::Accept, None)]);
    assert!(start.elapsed() >= 2 * Options::default().connect_stagger, "each had its chance");
    expect_nothing(&set);
}

#[test]
fn an_address_that_stays_silent_fails_in_the_end() {
    if !inside("an_address_that_stays_silent_fails_in_the_end") {
        return;
    }
    black_hole();
    let connect_limit = Duration::from_millis(300);
    let set = Set::with(Options { connect_limit, ..Options::default() }).expect("a set");
    // Somebody who waits already is told of the new time limit.
    let waiter = set.clone();
    let waiting = std::thread::spawn(move || next(&waiter));
    std::thread::sleep(SHORT);
    let start = Instant::now();
    set.post_connect_to(1, [hole(9)]).expect("posted");
    let event = waiting.join().expect("told");
    assert!(start.elapsed() >= connect_limit);
    let error = event.error.expect("the reason");
    assert_eq!((error.class(), error.raw_os_error()), (Class::ConnFailed, Some(libc::ETIMEDOUT)));
    assert!(error.to_string().contains("192.0.2.1:9: no answer in 0.3 s"), "{error}");
}

#[test]
fn a_port_range_holds_for_both_ends_and_runs_out() {
    if !inside("a_port_range_holds_for_both_ends_and_runs_out") {
        return;
    }
    let options = Options { ports: Some(4000..=4003), ..Options::default() };
    let set = Set::with(options.clone()).expect("a set");
    let mut ports = Vec::new();
    for user in 0..4 {
        ports.push(set.listen(user, &loopback(0)).expect("a free port").1);
    }
    ports.sort_unstable();
    assert_eq!(ports, [4000, 4001, 4002, 4003]);
    let error = set.listen(9, &loopback(0)).expect_err("none left");
    assert_eq!((error.class(), error.raw_os_error()), (Class::BadPort, Some(libc::EADDRINUSE)));
    assert!(error.to_string().contains("no port from 4000 to 4003 is free"), "{error}");
    // Where all ports listen no connector gets one either.
    set.post_connect_to(10, [loopback(4000)]).expect("posted");
    let error = expect_error(&set, Op::Connect, 10, Class::BadPort).error.expect("the reason");
    assert!(error.to_string().contains("no port from 4000 to 4003 is free"), "{error}");

    // Connectors to one address have one port of the range each, and then it is used up.
    let (there, here) = (set_with(None), set_with(Some(5000..=5004)));
    let (listener, port) = there.listen(1, &loopback(0)).expect("a listener");
    for user in 0..5 {
        here.post_connect_to(user, [loopback(port)]).expect("posted");
        expect(&here, Op::Connect, user);
        expect(&there, Op::Accept, 1);
        let accepted = there.accept(&listener, 2).expect("accepted");
        let peer = accepted
            .with_fd(|fd| {
                use std::os::fd::AsRawFd;
                nix::sys::socket::getpeername::<nix::sys::socket::SockaddrIn>(fd.as_raw_fd()).expect("a name")
            })
            .expect("open");
        assert!((5000..=5004).contains(&peer.port()), "{peer}");
    }
    here.post_connect_to(5, [loopback(port)]).expect("posted");
    expect_error(&here, Op::Connect, 5, Class::BadPort);
    // Another address is another connection: the ports serve again.
    let (_other, port) = there.listen(3, &Address::Inet(([127, 0, 0, 2], 0).into())).expect("a listener");
    here.post_connect_to(6, [Address::Inet(([127, 0, 0, 2], port).into())]).expect("posted");
    expect(&here, Op::Connect, 6);
}

fn set_with(ports: Option<std::ops::RangeInclusive<u16>>) -> Set {
    Set::with(Options { ports, ..Options::default() }).expect("a set")
}

#[test]
fn every_interface_is_described_and_near_ones_are_tried_first() {
    if !inside("every_interface_is_described_and_near_ones_are_tried_first") {
        return;
    }
    ["docker0", "eth0", "eth1"].into_iter().for_each(link);
    run("ip", &["addr", "add", "172.17.0.1/16", "dev", "docker0"]);
    run("ip", &["addr", "add", "10.1.0.1/16", "dev", "eth0"]);
    run("ip", &["addr", "add", "198.51.100.1/24", "dev", "eth1"]);
    run("ip", &["addr", "add", "2001:db8::1/64", "dev", "eth1", "nodad"]);
    let host = HostDescription::describe("", "").expect("this host");
    let listed: Vec<_> = host.interfaces().iter().map(|i| i.address.to_string()).collect();
    assert_eq!(listed, ["198.51.100.1", "2001:db8::1", "10.1.0.1", "172.17.0.1", "127.0.0.1", "::1"]);
    let some = HostDescription::describe("eth*", "").expect("this host");
    assert_eq!(some.interfaces().len(), 3);
    let all_but = HostDescription::describe("^docker0,lo", "").expect("this host");
    assert_eq!(all_but.interfaces(), some.interfaces());
    let far = "v1 host=far;if=eth0,inet,203.0.113.5;if=eth1,inet,10.1.7.7;if=lo,inet,127.0.0.1";
    let addresses = HostDescription::parse(far).expect("a description").addresses(7).expect("addresses");
    let tried: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(
        tried,
        ["10.1.7.7:7", "203.0.113.5:7"],
        "a shared network first, another host's loopback never"
    );
    // Without a route to the first address the next is taken at once.
    let set = set();
    let (_listener, port) = set.listen(1, &Address::Inet(([10, 1, 0, 1], 0).into())).expect("a listener");
    let card = format!("v1 host=here;port={port};if=gone,inet,203.0.113.5;if=eth0,inet,10.1.0.1");
    set.post_connect(2, &HostDescription::parse(&card).expect("a description"), 0).expect("posted");
    let mut told = [next(&set), next(&set)].map(|event| (event.op, event.error));
    told.sort_by_key(|(op, _)| *op == Op::Accept);
    assert_eq!(told, [(Op::Connect, None), (Op::Accept, None)]);
}
