//! Each routine of the interface, as the seed describes it.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::*;
use gasworks_os::eventfd::EventFd;
use gasworks_sock::host::HostDescription;
use gasworks_sock::{Address, Class, Direction, Error, Op, Options, Set};
use nix::sys::socket::{getsockopt, sockopt};

#[test]
fn a_set_is_created_and_destroyed() {
    let set = set();
    let (sock, _peer) = unix_pair(&set, 1);
    assert_eq!(class(set.destroy()), Class::BusySet);
    assert!(set.wait(Some(Duration::ZERO)).expect("still a set").is_none());
    sock.post_close().expect("posted");
    expect(&set, Op::Close, 1);
    set.destroy().expect("empty");
    assert_eq!(class(set.destroy()), Class::BadSet);
    assert_eq!(class(set.wait(None)), Class::BadSet);
    assert_eq!(
        class(set.adopt(1, EventFd::new().expect("a counter").as_fd().try_clone_to_owned().expect("a copy"))),
        Class::BadSet
    );
    assert_eq!(class(sock.post_close()), Class::BadSet);
    for (low, high) in [(0, 5), (9, 8)] {
        let options = Options { ports: Some(low..=high), ..Options::default() };
        assert_eq!(class(Set::with(options)), Class::BadPort);
    }
}

#[test]
fn a_set_in_use_is_destroyed_by_force() {
    let set = set();
    let pairs: Vec<_> = (0..5).map(|user| unix_pair(&set, user)).collect();
    for (sock, _) in &pairs {
        sock.post_read(vec![0; 8], 1, 8, None).expect("posted");
    }
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let set = set.clone();
            std::thread::spawn(move || {
                loop {
                    if let Err(error) = set.wait(None) {
                        return error.class();
                    }
                }
            })
        })
        .collect();
    set.destroy_now().expect("destroyed");
    for waiter in waiters {
        assert_eq!(waiter.join().expect("ended"), Class::BadSet);
    }
    for (sock, mut peer) in pairs {
        assert_eq!(peer.read(&mut [0; 8]).expect("the end"), 0);
        assert_eq!(class(sock.read(&mut [0; 8])), Class::BadSet);
    }
}

/// Listens at `address`, connects twice, talks over each.
fn meet(address: &Address) {
    let set = set();
    let (listener, port) = set.listen(1, address).expect("a listener");
    let to = match address {
        Address::Inet(inet) => Address::Inet((inet.ip(), port).into()),
        other => other.clone(),
    };
    for round in [10, 20] {
        let client = set.post_connect_to(round, [to.clone()]).expect("posted");
        let mut told = [next(&set), next(&set)].map(|event| {
            assert_eq!(event.error, None);
            (event.op, event.user)
        });
        told.sort_by_key(|(_, user)| *user);
        assert_eq!(told, [(Op::Accept, 1), (Op::Connect, round)]);
        let server = set.accept(&listener, round + 1).expect("accepted");
        assert_eq!(class(set.accept(&listener, 0)), Class::NoNewSock);
        client.post_write(b"ping".to_vec(), 4, 4, None).expect("posted");
        assert_eq!(expect(&set, Op::Write, round).bytes, 4);
        server.post_read(vec![0; 9], 4, 9, None).expect("posted");
        assert_eq!(expect(&set, Op::Read, round + 1).data(), b"ping");
    }
    expect_nothing(&set);
    set.destroy_now().expect("destroyed");
}

#[test]
fn a_listener_tells_of_each_connection_once() {
    meet(&loopback(0));
    meet(&Address::Inet((std::net::Ipv6Addr::LOCALHOST, 0).into()));
    meet(&Address::Abstract(format!("gasworks-sock-{}", std::process::id()).into()));
    let dir = tempfile::tempdir().expect("a directory");
    meet(&Address::Path(dir.path().join("socket")));
}

/// Those of both kinds that this host has come to one port.
#[test]
fn one_listener_serves_all_interfaces() {
    let set = set();
    let (listener, port) = set.listen_everywhere(7).expect("a listener");
    let has = |address: IpAddr| TcpListener::bind((address, 0)).is_ok();
    let all = [IpAddr::from(Ipv6Addr::LOCALHOST), Ipv4Addr::LOCALHOST.into()];
    let addresses: Vec<_> = all.into_iter().filter(|address| has(*address)).collect();
    assert!(!addresses.is_empty());
    for address in addresses {
        let peer = TcpStream::connect((address, port)).expect("connected");
        expect(&set, Op::Accept, 7);
        let sock = set.accept(&listener, 9).expect("accepted");
        sock.post_read(vec![0; 1], 1, 1, None).expect("posted");
        drop(peer);
        let event = set.wait(Some(Duration::from_secs(10))).expect("well").expect("an event");
        let error = event.error.expect("it is gone").to_string();
        assert!(error.contains(&address.to_string()) && !error.contains("ffff"), "{error}");
    }
    drop(listener);
    set.destroy_now().expect("destroyed");
}

#[test]
fn many_connections_wait_for_their_turn() {
    let set = set();
    let (listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let peers: Vec<_> =
        (0..20).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected")).collect();
    for user in 0..20 {
        expect(&set, Op::Accept, 1);
        expect_nothing(&set);
        set.accept(&listener, 100 + user).expect("accepted");
    }
    expect_nothing(&set);
    assert_eq!(set.len(), 21);
    drop(peers);
    set.destroy_now().expect("destroyed");
}

#[test]
fn a_taken_address_is_refused() {
    let set = set();
    let (_listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let error = set.listen(2, &loopback(port)).expect_err("taken");
    assert_eq!((error.class(), error.raw_os_error()), (Class::BadPort, Some(libc::EADDRINUSE)));
    let error = set.listen(2, &Address::Inet(([192, 0, 2, 77], 0).into())).expect_err("not ours");
    assert_eq!(error.class(), Class::BadHost);
}

#[test]
fn a_connect_tries_each_address() {
    let set = set();
    let (_listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let refused = {
        // A port that was free a moment ago, and that nobody listens on.
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        socket.local_addr().expect("its address").port()
    };
    let nobody = Address::Abstract(b"gasworks-sock-nobody".to_vec());
    let sock = set.post_connect_to(2, [nobody.clone(), loopback(refused), loopback(port)]).expect("posted");
    let mut told = [next(&set), next(&set)].map(|event| {
        assert_eq!(event.error, None);
        event.op
    });
    told.sort_by_key(|op| *op == Op::Accept);
    assert_eq!(told, [Op::Connect, Op::Accept]);
    sock.post_write(b"x".to_vec(), 1, 1, None).expect("connected");
    expect(&set, Op::Write, 2);
    let failing = set.post_connect_to(3, [nobody, loopback(refused)]).expect("posted");
    let event = expect_error(&set, Op::Connect, 3, Class::ConnFailed);
    let error = event.error.expect("the reason");
    assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    let text = error.to_string();
    assert!(
        text.contains("@gasworks-sock-nobody: ") && text.contains(&format!("127.0.0.1:{refused}: ")),
        "{text}"
    );
    assert_eq!(class(failing.write(b"x")), Class::ConnFailed);
    failing.post_close().expect("posted");
    expect(&set, Op::Close, 3);
    assert_eq!(class(set.post_connect_to(4, [])), Class::BadHost);
}

#[test]
fn a_host_is_described_and_connected_to() {
    let set = set();
    let any = Address::Inet(([0, 0, 0, 0], 0).into());
    let (listener, port) = set.listen(1, &any).expect("a listener");
    let card = HostDescription::describe("", "").expect("this host").with_port(port).to_string();
    let host = HostDescription::parse(&card).expect("a description");
    set.post_connect(2, &host, 0).expect("posted");
    let mut told = [next(&set), next(&set)].map(|event| (event.user, event.error));
    told.sort_by_key(|(user, _)| *user);
    assert_eq!(told, [(1, None), (2, None)]);
    set.accept(&listener, 3).expect("accepted");
    let named = HostDescription::named("localhost").expect("a name");
    assert_eq!(class(set.post_connect(4, &named, 0)), Class::BadPort);
    set.post_connect(4, &named, port).expect("posted");
    let mut told = [next(&set), next(&set)].map(|event| (event.user, event.error));
    told.sort_by_key(|(user, _)| *user);
    assert_eq!(told, [(1, None), (4, None)]);
    let wrong = HostDescription::named("no-such-host.invalid").expect("a name");
    assert_eq!(class(set.post_connect(5, &wrong, port)), Class::BadHostname);
}

#[test]
fn immediate_calls_move_what_they_can() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    assert_eq!(sock.read(&mut [0; 4]).expect("nothing yet"), 0);
    peer.write_all(b"abcdef").expect("written");
    let mut four = [0; 4];
    assert_eq!(sock.read(&mut four).expect("read"), 4);
    let (mut one, mut three) = ([0; 1], [0; 3]);
    let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut three)];
    assert_eq!(sock.readv(&mut parts).expect("read"), 2);
    assert_eq!((&four, &one, three[0]), (b"abcd", b"e", b'f'));
    assert_eq!(sock.write(b"gh").expect("written"), 2);
    assert_eq!(sock.writev(&[IoSlice::new(b"i"), IoSlice::new(b"jk")]).expect("written"), 3);
    let mut five = [0; 5];
    peer.read_exact(&mut five).expect("read");
    assert_eq!(&five, b"ghijk");
    let mut total = 0;
    loop {
        match sock.write(&[7; 4096]).expect("written") {
            0 => break,
            n => total += n,
        }
    }
    assert!(total > 4096);
    assert_eq!(class(sock.read(&mut [])), Class::BadLen);
    assert_eq!(class(sock.writev(&[])), Class::BadLen);
    assert_eq!(class(sock.readv(&mut [])), Class::BadLen);
    // A Unix socket that is closed with bytes unread is reset; an orderly end is one after all were read.
    peer.shutdown(std::net::Shutdown::Write).expect("half closed");
    assert_eq!(class(sock.read(&mut four)), Class::ConnClosed);
}

#[test]
fn a_posted_read_takes_at_least_min_and_at_most_max() {
    let set = set();
    let (sock, mut peer) = tcp_pair(&set, 1);
    sock.post_read(vec![0; 100], 4, 6, None).expect("posted");
    assert_eq!(class(sock.post_read(vec![0; 1], 1, 1, None)), Class::InProgress);
    assert_eq!(class(sock.read(&mut [0; 1])), Class::InProgress);
    peer.write_all(b"abc").expect("written");
    expect_nothing(&set);
    peer.write_all(b"defghij").expect("written");
    let mut event = expect(&set, Op::Read, 1);
    assert_eq!((event.bytes, event.data()), (6, &b"abcdef"[..]));
    assert_eq!(event.take_buffer().len(), 100);
    sock.post_read(vec![0; 100], 1, 100, None).expect("posted");
    assert_eq!(expect(&set, Op::Read, 1).data(), b"ghij");
    for (len, min, max) in [(8, 0, 8), (8, 5, 4), (8, 1, 9), (0, 1, 1)] {
        assert_eq!(class(sock.post_read(vec![0; len], min, max, None)), Class::BadLen);
    }
    sock.post_read(vec![0; 100], 50, 100, None).expect("posted");
    peer.write_all(b"the end").expect("written");
    drop(peer);
    let event = expect_error(&set, Op::Read, 1, Class::ConnClosed);
    assert_eq!(event.data(), b"the end");
}

/// The end that came together with the last bytes is found, though the system tells of it only once.
#[test]
fn an_end_right_behind_the_bytes_is_told() {
    for _ in 0..50 {
        let set = set();
        let (sock, mut peer) = tcp_pair(&set, 1);
        sock.post_read(vec![0; 100], 1, 100, None).expect("posted");
        peer.write_all(b"last").expect("written");
        drop(peer);
        assert_eq!(expect(&set, Op::Read, 1).bytes, 4);
        sock.post_read(vec![0; 100], 1, 100, None).expect("posted");
        expect_error(&set, Op::Read, 1, Class::ConnClosed);
        assert_eq!(class(sock.post_read(vec![0; 100], 1, 100, None)), Class::ConnClosed);
    }
}

#[test]
fn a_posted_readv_fills_its_buffers_in_order() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    sock.post_readv(vec![vec![0; 2], vec![], vec![0; 3], vec![0; 50]], 6, None).expect("posted");
    peer.write_all(b"abc").expect("written");
    expect_nothing(&set);
    peer.write_all(b"defg").expect("written");
    let mut event = expect(&set, Op::Read, 1);
    let buffers = event.take_buffers();
    assert_eq!(
        (event.bytes, &buffers[0][..], &buffers[2][..], &buffers[3][..2]),
        (7, &b"ab"[..], &b"cde"[..], &b"fg"[..])
    );
    assert_eq!(class(sock.post_readv(vec![], 1, None)), Class::BadLen);
    assert_eq!(class(sock.post_readv(vec![vec![0; 1]; 1025], 1, None)), Class::BadLen);
}

#[test]
fn a_posted_write_goes_on_when_there_is_room() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    sock.post_write(b"at once".to_vec(), 7, 7, None).expect("posted");
    let mut seven = [0; 7];
    peer.read_exact(&mut seven).expect("written before any wait");
    assert_eq!(expect(&set, Op::Write, 1).bytes, 7);
    let sent: Vec<u8> = (0..4_000_000u32).map(|i| (i % 251) as u8).collect();
    sock.post_write(sent.clone(), sent.len(), sent.len(), None).expect("posted");
    assert_eq!(class(sock.write(b"x")), Class::InProgress);
    let reading = std::thread::spawn(move || {
        let mut all = vec![0; 4_000_000];
        peer.read_exact(&mut all).expect("read");
        (all, peer)
    });
    let mut event = expect(&set, Op::Write, 1);
    assert_eq!(event.bytes, sent.len());
    let (got, peer) = reading.join().expect("read");
    assert!(got == sent && event.take_buffer() == sent);
    // What a minimum is for: the rest is the caller's.
    sock.post_write(sent.clone(), 1, sent.len(), None).expect("posted");
    let event = expect(&set, Op::Write, 1);
    assert!(event.bytes >= 1 && event.bytes < sent.len());
    drop(peer);
    assert_eq!(class(sock.post_write(vec![], 1, 1, None)), Class::BadLen);
}

/// What is posted behind a write that found no room for all it had is told when there is room.
#[test]
fn a_write_behind_a_full_buffer_goes_on() {
    let set = set();
    let tcp = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let near = std::net::TcpStream::connect(listener.local_addr().expect("a name")).expect("connected");
        (OwnedFd::from(near), OwnedFd::from(listener.accept().expect("accepted").0))
    };
    let unix = || {
        let (near, far) = UnixStream::pair().expect("a pair");
        (OwnedFd::from(near), OwnedFd::from(far))
    };
    let pipe = || {
        let (far, near) = std::io::pipe().expect("a pipe");
        (OwnedFd::from(near), OwnedFd::from(far))
    };
    for (near, far) in [tcp(), unix(), pipe()] {
        let sock = set.adopt(1, near).expect("adopted");
        let mut total = 0;
        loop {
            match sock.write(&[7; 3000]).expect("written") {
                0 => break,
                n => total += n,
            }
        }
        sock.post_write(vec![7; 9], 9, 9, None).expect("posted");
        let mut far = std::fs::File::from(far);
        let mut take = |count: usize| {
            let mut rest = vec![0; count];
            far.read_exact(&mut rest).expect("read");
        };
        take(total);
        assert_eq!(expect(&set, Op::Write, 1).bytes, 9);
        // The same with a posted write that has its minimum.
        sock.post_write(vec![7; 8 << 20], 1, 8 << 20, None).expect("posted");
        let first = expect(&set, Op::Write, 1).bytes;
        sock.post_write(vec![7; 8], 8, 8, None).expect("posted");
        take(9 + first);
        assert_eq!(expect(&set, Op::Write, 1).bytes, 8);
        sock.post_close().expect("posted");
        expect(&set, Op::Close, 1);
    }
}

#[test]
fn a_posted_writev_empties_its_buffers_in_order() {
    let set = set();
    let (sock, mut peer) = tcp_pair(&set, 1);
    let parts: Vec<Vec<u8>> = (0..100u8).map(|i| vec![i; usize::from(i) * 1000]).collect();
    let total: usize = parts.iter().map(Vec::len).sum();
    sock.post_writev(parts.clone(), total, None).expect("posted");
    let reading = std::thread::spawn(move || {
        let mut all = vec![0; total];
        peer.read_exact(&mut all).expect("read");
        all
    });
    let mut event = expect(&set, Op::Write, 1);
    assert_eq!((event.bytes, event.take_buffers()), (total, parts.clone()));
    assert!(reading.join().expect("read") == parts.concat());
    assert_eq!(class(sock.post_writev(vec![vec![]], 1, None)), Class::BadLen);
}

#[test]
fn progress_is_told_before_the_end() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 7);
    let (other, mut other_peer) = unix_pair(&set, 8);
    let told = Arc::new(Mutex::new(Vec::new()));
    let (seen, posts) = (Arc::clone(&told), other.clone());
    let progress = move |bytes, user| {
        // No lock is held: it may post, also on its own sock.
        if seen.lock().expect("ours").is_empty() {
            posts.post_write(b"from within".to_vec(), 11, 11, None).expect("posted");
        }
        seen.lock().expect("ours").push((bytes, user));
    };
    sock.post_read(vec![0; 10], 10, 10, Some(Box::new(progress))).expect("posted");
    for part in [&b"abc"[..], b"de"] {
        peer.write_all(part).expect("written");
        while set.wait(Some(SHORT)).expect("waited").is_some() {}
    }
    assert_eq!(*told.lock().expect("ours"), [(3, 7), (2, 7)]);
    peer.write_all(b"fghij").expect("written");
    assert_eq!(expect(&set, Op::Read, 7).data(), b"abcdefghij");
    assert_eq!(told.lock().expect("ours").len(), 2, "the last part is told by the event");
    let mut eleven = [0; 11];
    other_peer.read_exact(&mut eleven).expect("read");
    // A write that cannot be done at once tells its parts as well, on the thread that waits.
    let waiter = std::thread::current().id();
    let parts = Arc::new(Mutex::new(0));
    let sum = Arc::clone(&parts);
    let progress = move |bytes, _| {
        assert_eq!(std::thread::current().id(), waiter);
        *sum.lock().expect("ours") += bytes;
    };
    let poster = sock.clone();
    std::thread::spawn(move || {
        poster.post_write(vec![1; 3_000_000], 3_000_000, 3_000_000, Some(Box::new(progress)))
    })
    .join()
    .expect("ended")
    .expect("posted");
    let reading = std::thread::spawn(move || peer.read_exact(&mut vec![0; 3_000_000]));
    assert_eq!(expect(&set, Op::Write, 7).bytes, 3_000_000);
    let before_end = *parts.lock().expect("ours");
    assert!(before_end > 0 && before_end < 3_000_000);
    reading.join().expect("ended").expect("read");
}

#[test]
fn a_close_while_progress_is_told_waits_for_it() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    let closes = sock.clone();
    let done = Arc::new(Mutex::new(false));
    let sets = Arc::clone(&done);
    let progress = move |_, _| {
        closes.post_close().expect("posted");
        std::thread::sleep(SHORT);
        *sets.lock().expect("ours") = true;
    };
    sock.post_read(vec![0; 10], 10, 10, Some(Box::new(progress))).expect("posted");
    peer.write_all(b"abc").expect("written");
    let event = expect_error(&set, Op::Read, 1, Class::SockClosed);
    assert!(*done.lock().expect("ours") && event.data() == b"abc");
    expect(&set, Op::Close, 1);
}

#[test]
fn a_close_ends_what_is_posted() {
    let set = set();
    let (sock, mut peer) = tcp_pair(&set, 1);
    sock.post_read(vec![0; 10], 5, 10, None).expect("posted");
    peer.write_all(b"abc").expect("written");
    expect_nothing(&set);
    sock.post_write(vec![0; 30_000_000], 30_000_000, 30_000_000, None).expect("posted");
    sock.post_close().expect("posted");
    assert_eq!(class(sock.post_close()), Class::BadSock);
    assert_eq!(expect_error(&set, Op::Read, 1, Class::SockClosed).data(), b"abc");
    let mut event = expect_error(&set, Op::Write, 1, Class::SockClosed);
    assert!(event.bytes < 30_000_000 && event.take_buffer().len() == 30_000_000);
    assert!(set.sock(sock.id()).is_some(), "it lives until its close is delivered");
    expect(&set, Op::Close, 1);
    assert!(set.sock(sock.id()).is_none() && set.is_empty());
    expect_nothing(&set);
}

#[test]
fn a_closed_listener_turns_its_queue_away() {
    let set = set();
    let (listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let peers: Vec<_> =
        (0..5).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected")).collect();
    expect(&set, Op::Accept, 1);
    listener.post_close().expect("posted");
    let taken = set.accept(&listener, 2).expect("accepting is legal until the close is delivered");
    taken.post_write(b"hello".to_vec(), 5, 5, None).expect("posted");
    let close = expect(&set, Op::Close, 1);
    assert_eq!(close.bytes, 4, "one of five was accepted");
    expect(&set, Op::Write, 2);
    assert_eq!(class(set.accept(&listener, 3)), Class::BadSock);
    let mut ends = [0, 0];
    for mut peer in peers {
        let mut five = [0; 5];
        match peer.read(&mut five) {
            Ok(5) => ends[0] += 1,
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => ends[1] += 1,
            other => panic!("neither served nor reset: {other:?}"),
        }
    }
    assert_eq!(ends, [1, 4]);
    let refused = std::net::TcpStream::connect(("127.0.0.1", port)).expect_err("closed");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_wait_ends_in_time() {
    let set = set();
    let (_sock, _peer) = unix_pair(&set, 1);
    for timeout in [Duration::ZERO, Duration::from_micros(300), SHORT] {
        let start = Instant::now();
        assert_eq!(set.wait(Some(timeout)).expect("waited"), None);
        assert!(start.elapsed() >= timeout);
    }
}

#[test]
fn a_wakeup_is_an_event_of_its_own() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 9);
    sock.post_read(vec![0; 4], 1, 4, None).expect("posted");
    let waker = set.clone();
    let waking = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        waker.wakeup();
        waker.wakeup();
    });
    for _ in 0..2 {
        let event = expect(&set, Op::Wakeup, 0);
        assert!(event.sock.is_none() && event.bytes == 0);
    }
    waking.join().expect("woken");
    peer.write_all(b"x").expect("written");
    expect(&set, Op::Read, 9);
    expect_nothing(&set);
}

#[test]
fn events_carry_the_user_word() {
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    assert_eq!(sock.user(), 1);
    sock.post_write(b"x".to_vec(), 1, 1, None).expect("posted");
    sock.set_user(2);
    sock.post_read(vec![0; 4], 1, 4, None).expect("posted");
    peer.write_all(b"y").expect("written");
    expect(&set, Op::Write, 1);
    expect(&set, Op::Read, 2);
}

#[test]
fn numbers_tell_socks_and_sets_apart() {
    let (one, two) = (set(), set());
    assert_ne!(one.id(), two.id());
    let mut seen = std::collections::HashSet::new();
    for user in 0..10 {
        let (sock, _peer) = unix_pair(&one, user);
        assert!(seen.insert(sock.id()), "a number was given twice");
        assert_eq!((sock.set_id(), one.sock(sock.id()).expect("there").user()), (one.id(), user));
        assert!(two.sock(sock.id()).is_none());
        sock.post_close().expect("posted");
        expect(&one, Op::Close, user);
    }
}

#[test]
fn any_descriptor_is_adopted() {
    let set = set();
    let (from, to) = nix::unistd::pipe().expect("a pipe");
    let (from, to) = (set.adopt(1, from).expect("adopted"), set.adopt(2, to).expect("adopted"));
    from.post_read(vec![0; 8], 3, 8, None).expect("posted");
    to.post_writev(vec![b"pi".to_vec(), b"pe".to_vec()], 4, None).expect("posted");
    expect(&set, Op::Write, 2);
    assert_eq!(expect(&set, Op::Read, 1).data(), b"pipe");
    from.post_close().expect("posted");
    expect(&set, Op::Close, 1);

    let counter = EventFd::new().expect("a counter");
    let sock = set.adopt(3, counter.as_fd().try_clone_to_owned().expect("a copy")).expect("adopted");
    sock.post_read(vec![0; 64], 8, 64, None).expect("posted");
    counter.ring().expect("rung");
    counter.ring().expect("rung");
    assert_eq!(expect(&set, Op::Read, 3).data(), 2u64.to_ne_bytes());

    let mut mask = nix::sys::signal::SigSet::empty();
    mask.add(nix::sys::signal::Signal::SIGURG);
    mask.thread_block().expect("blocked");
    // SAFETY: the call only reads the mask, and the descriptor it gives is new.
    let signals = unsafe {
        use std::os::fd::FromRawFd;
        OwnedFd::from_raw_fd(libc::signalfd(-1, mask.as_ref(), 0))
    };
    let sock = set.adopt(4, signals).expect("adopted");
    sock.post_read(vec![0; 1024], 128, 1024, None).expect("posted");
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGURG).expect("raised");
    let event = expect(&set, Op::Read, 4);
    assert_eq!((event.bytes, event.data()[0]), (128, libc::SIGURG as u8));

    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"plain").expect("written");
    std::io::Seek::rewind(&mut file).expect("rewound");
    let sock = set.adopt(5, file).expect("adopted");
    sock.post_read(vec![0; 64], 1, 64, None).expect("posted");
    assert_eq!(expect(&set, Op::Read, 5).data(), b"plain");
    sock.post_read(vec![0; 64], 1, 64, None).expect("posted");
    expect_error(&set, Op::Read, 5, Class::ConnClosed);

    let directory = OwnedFd::from(std::fs::File::open("/").expect("a directory"));
    let sock = set.adopt(6, directory).expect("the system lets it be watched");
    assert_eq!(sock.read(&mut [0; 8]).expect_err("no bytes").raw_os_error(), Some(libc::EISDIR));
}

#[test]
fn a_watched_descriptor_tells_its_readiness() {
    let set = set();
    let (from, to) = nix::unistd::pipe().expect("a pipe");
    let sock = set.watch(1, from.try_clone().expect("a copy")).expect("watched");
    assert_eq!(class(sock.read(&mut [0; 8])), Class::BadSock);
    assert_eq!(class(sock.post_read(vec![0; 8], 1, 8, None)), Class::BadSock);
    for _ in 0..2 {
        sock.post_ready(Direction::Read).expect("posted");
        assert_eq!(class(sock.post_ready(Direction::Read)), Class::InProgress);
        expect_nothing(&set);
        nix::unistd::write(&to, b"abc").expect("written");
        expect(&set, Op::Readable, 1);
        expect_nothing(&set);
        // Some is left: it is ready still, though nothing changes.
        nix::unistd::read(&from, &mut [0; 2]).expect("read");
        sock.post_ready(Direction::Read).expect("posted");
        expect(&set, Op::Readable, 1);
        nix::unistd::read(&from, &mut [0; 2]).expect("read");
    }
    let flags = nix::fcntl::fcntl(&from, nix::fcntl::FcntlArg::F_GETFL).expect("flags");
    assert_eq!(flags & libc::O_NONBLOCK, 0, "the mode of a watched descriptor is left alone");
    sock.post_ready(Direction::Read).expect("posted");
    drop(to);
    expect(&set, Op::Readable, 1);
    sock.post_close().expect("posted");
    expect(&set, Op::Close, 1);
    nix::unistd::read(&from, &mut [0; 2]).expect("the caller's own descriptor is open still");

    let (quiet, _to) = nix::unistd::pipe().expect("a pipe");
    let sock = set.watch(4, quiet).expect("watched");
    sock.post_ready(Direction::Read).expect("posted");
    sock.post_close().expect("posted");
    expect_error(&set, Op::Readable, 4, Class::SockClosed);
    expect(&set, Op::Close, 4);

    let file = set.watch(2, tempfile::tempfile().expect("a file")).expect("watched");
    file.post_ready(Direction::Read).expect("posted");
    expect(&set, Op::Readable, 2);

    let (sock, mut peer) = unix_pair(&set, 3);
    while sock.write(&[0; 65536]).expect("written") > 0 {}
    sock.post_ready(Direction::Write).expect("posted");
    expect_nothing(&set);
    // A Unix socket tells of room when most of what was written is gone.
    peer.set_nonblocking(true).expect("set");
    while peer.read(&mut [0; 65536]).is_ok() {}
    let event = expect(&set, Op::Writable, 3);
    assert_eq!(event.sock, Some(sock.id()));
}

#[test]
fn what_comes_in_makes_no_room_for_what_goes_out() {
    let set = set();
    let (ours, mut peer) = UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("set");
    let sock = set.watch(1, ours.try_clone().expect("a copy")).expect("watched");
    while (&ours).write(&[0; 65536]).is_ok() {}
    sock.post_ready(Direction::Write).expect("posted");
    peer.write_all(b"x").expect("written");
    expect_nothing(&set);
    peer.set_nonblocking(true).expect("set");
    while peer.read(&mut [0; 65536]).is_ok() {}
    expect(&set, Op::Writable, 1);
    sock.post_ready(Direction::Read).expect("posted");
    expect(&set, Op::Readable, 1);
}

#[test]
fn the_end_of_a_process_is_told() {
    let set = set();
    let mut child =
        std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("a child");
    // SAFETY: the descriptor that the call gives is new.
    let process = unsafe {
        use std::os::fd::FromRawFd;
        OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_open, child.id(), 0) as i32)
    };
    let sock = set.watch(1, process).expect("watched");
    sock.post_ready(Direction::Read).expect("posted");
    expect_nothing(&set);
    drop(child.stdin.take());
    expect(&set, Op::Readable, 1);
    assert!(child.wait().expect("ended").success());
}

#[test]
fn open_socks_are_closed_one_by_one() {
    let set = set();
    let _peers: Vec<_> = (1..=4).map(|user| unix_pair(&set, user)).collect();
    let (_, _) = set.listen(5, &loopback(0)).expect("a listener");
    let mut users: Vec<u64> = std::iter::from_fn(|| set.close_open()).collect();
    let mut closed: Vec<u64> =
        (0..5).map(|_| next(&set)).inspect(|e| assert_eq!(e.op, Op::Close)).map(|e| e.user).collect();
    users.sort_unstable();
    closed.sort_unstable();
    assert_eq!((users, closed), (vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5]));
    set.destroy().expect("empty");
}

#[test]
fn a_connection_may_be_accepted_into_another_set() {
    let (one, two) = (set(), set());
    let (listener, port) = one.listen(1, &loopback(0)).expect("a listener");
    let mut peer = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected");
    expect(&one, Op::Accept, 1);
    let sock = two.accept(&listener, 2).expect("accepted");
    sock.post_read(vec![0; 8], 2, 8, None).expect("posted");
    peer.write_all(b"hi").expect("written");
    assert_eq!(expect(&two, Op::Read, 2).data(), b"hi");
    assert_eq!(sock.set_id(), two.id());
}

#[test]
fn sockets_are_as_the_options_say() {
    let options = Options { buffer: Some(64 << 10), keepalive: true, reset: true, ..Options::default() };
    let set = Set::with(options).expect("a set");
    let (listener, port) = set.listen(1, &loopback(0)).expect("a listener");
    let client = set.post_connect_to(2, [loopback(port)]).expect("posted");
    let _ = (next(&set), next(&set));
    let server = set.accept(&listener, 3).expect("accepted");
    for sock in [&client, &server] {
        sock.with_fd(|fd| {
            assert!(getsockopt(&fd, sockopt::TcpNoDelay).expect("an option"));
            assert!(getsockopt(&fd, sockopt::KeepAlive).expect("an option"));
            // The kernel doubles what it is given.
            assert_eq!(getsockopt(&fd, sockopt::RcvBuf).expect("a size"), 128 << 10);
            let flags = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_GETFD).expect("flags");
            assert_ne!(flags & libc::FD_CLOEXEC, 0);
        })
        .expect("open");
    }
    client.post_close().expect("posted");
    expect(&set, Op::Close, 2);
    server.post_read(vec![0; 8], 1, 8, None).expect("posted");
    let event = expect_error(&set, Op::Read, 3, Class::ConnFailed);
    assert_eq!(event.error.as_ref().and_then(Error::raw_os_error), Some(libc::ECONNRESET));
    assert_eq!(class(client.with_fd(|_| ())), Class::BadSock);
}
