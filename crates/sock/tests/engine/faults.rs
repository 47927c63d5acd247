//! Connections that break, peers that stay silent, signals that never end.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::common::*;
use gasworks_sock::{Class, Error, Op};

#[test]
fn a_reset_ends_what_is_posted() {
    let set = set();
    let (sock, peer) = tcp_pair(&set, 1);
    sock.post_read(vec![0; 8], 1, 8, None).expect("posted");
    sock.post_write(vec![0; 30_000_000], 30_000_000, 30_000_000, None).expect("posted");
    reset(peer);
    let mut told = [next(&set), next(&set)].map(|event| {
        let error = event.error.expect("broken");
        assert_eq!(error.peer_name(), None, "adopted sockets have no name");
        (event.op, error.class(), error.raw_os_error())
    });
    told.sort_by_key(|(op, ..)| *op == Op::Write);
    let broken = Some(libc::ECONNRESET);
    assert_eq!(told[0], (Op::Read, Class::ConnFailed, broken));
    // The system tells of a reset once; the second call finds a pipe without an end.
    assert!(matches!(told[1].1, Class::ConnFailed | Class::ConnClosed), "{told:?}");
    sock.post_close().expect("posted");
    expect(&set, Op::Close, 1);
}

#[test]
fn bytes_before_a_reset_are_lost_or_read_and_then_the_reset_is_told() {
    let set = set();
    let (sock, mut peer) = tcp_pair(&set, 1);
    peer.write_all(b"abc").expect("written");
    reset(peer);
    let mut bytes = 0;
    let error = loop {
        sock.post_read(vec![0; 8], 1, 8, None).expect("not ended yet");
        let event = next(&set);
        bytes += event.bytes;
        if let Some(error) = event.error {
            break error;
        }
    };
    assert!(bytes <= 3);
    assert_eq!((error.class(), error.raw_os_error()), (Class::ConnFailed, Some(libc::ECONNRESET)));
    let again = sock.post_read(vec![0; 8], 1, 8, None).expect_err("it stays broken");
    assert_eq!((again.class(), again.raw_os_error()), (Class::ConnFailed, Some(libc::ECONNRESET)));
    assert_eq!(again.operation(), "post a read");
}

#[test]
fn half_a_connection_goes_on() {
    let set = set();
    let (sock, mut peer) = tcp_pair(&set, 1);
    peer.write_all(b"question").expect("written");
    peer.shutdown(Shutdown::Write).expect("half closed");
    sock.post_read(vec![0; 100], 100, 100, None).expect("posted");
    let event = expect_error(&set, Op::Read, 1, Class::ConnClosed);
    assert_eq!(event.data(), b"question");
    sock.post_write(b"answer".to_vec(), 6, 6, None).expect("the other half is open");
    expect(&set, Op::Write, 1);
    let mut six = [0; 6];
    peer.read_exact(&mut six).expect("read");
    assert_eq!(&six, b"answer");
}

#[test]
fn a_peer_that_goes_away_while_we_write_is_told() {
    let set = set();
    let (sock, peer) = unix_pair(&set, 1);
    sock.post_write(vec![0; 3_000_000], 3_000_000, 3_000_000, None).expect("posted");
    expect_nothing(&set);
    drop(peer);
    let event = next(&set);
    assert_eq!(event.op, Op::Write);
    assert!(event.bytes > 0 && event.bytes < 3_000_000);
    // The peer closed with bytes unread, which the system may tell as a reset.
    let class = event.error.as_ref().map(Error::class);
    assert!(matches!(class, Some(Class::ConnClosed | Class::ConnFailed)), "{class:?}");
}

#[test]
fn a_refused_connect_says_so() {
    let set = set();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let sock = set.post_connect_to(1, [loopback(port)]).expect("posted");
    let error = expect_error(&set, Op::Connect, 1, Class::ConnFailed).error.expect("the reason");
    assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}: Connection refused")), "{error}");
    sock.post_close().expect("posted");
    expect(&set, Op::Close, 1);
}

#[test]
fn a_dead_connection_is_accepted_and_says_so() {
    let set = set();
    let (listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let peer = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected");
    expect(&set, Op::Accept, 1);
    reset(peer);
    let sock = set.accept(&listener, 2).expect("accepted");
    sock.post_read(vec![0; 8], 1, 8, None).expect("posted");
    expect_error(&set, Op::Read, 2, Class::ConnFailed);
}

/// Signals that interrupt every call neither shorten a wait nor lose an event.
#[test]
fn a_storm_of_signals_changes_nothing() {
    let _storm = Storm::new();
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    let start = Instant::now();
    assert_eq!(set.wait(Some(Duration::from_millis(150))).expect("waited"), None);
    assert!(start.elapsed() >= Duration::from_millis(150));
    let echo = std::thread::spawn(move || {
        let mut bytes = vec![0; 65536];
        for _ in 0..50 {
            peer.read_exact(&mut bytes).expect("read");
            peer.write_all(&bytes).expect("written");
        }
    });
    for round in 0..50u8 {
        sock.post_write(vec![round; 65536], 65536, 65536, None).expect("posted");
        sock.post_read(vec![0; 65536], 65536, 65536, None).expect("posted");
        for _ in 0..2 {
            let event = next(&set);
            assert_eq!((event.bytes, &event.error), (65536, &None));
            assert!(event.op == Op::Write || event.data().iter().all(|byte| *byte == round));
        }
    }
    echo.join().expect("echoed");
}

/// SIGALRM every millisecond, to this thread, without `SA_RESTART`.
struct Storm {
    _timer: nix::sys::timer::Timer,
}

impl Storm {
    fn new() -> Self {
        use nix::sys::signal::{
            SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
        };
        use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
        extern "C" fn nothing(_: i32) {}
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing; no other test of this process uses the signal.
        unsafe { sigaction(Signal::SIGALRM, &action) }.expect("a handler");
        let thread = SigevNotify::SigevThreadId {
            signal: Signal::SIGALRM,
            thread_id: nix::unistd::gettid().as_raw(),
            si_value: 0,
        };
        let mut timer =
            Timer::new(nix::time::ClockId::CLOCK_MONOTONIC, SigEvent::new(thread)).expect("a timer");
        let every = Expiration::Interval(Duration::from_millis(1).into());
        timer.set(every, TimerSetTimeFlags::empty()).expect("set");
        Self { _timer: timer }
    }
}
