//! How connections begin and end.

use super::*;
use gasworks_cci::directory::{Liveness, endpoints};
use gasworks_cci::endpoint::{CallError, CreateError, Request};
use gasworks_os::datagram::DatagramSocket;
use proptest::prelude::*;

#[test]
fn an_endpoint_is_found_while_it_lives_and_leaves_nothing() {
    let directory = directory();
    let base = directory.path().to_str().expect("text");
    let first = Endpoint::create(config(&directory)).expect("an endpoint");
    let service = Some((77, 5));
    let at = Endpoint::create(EndpointConfig { service, ..config(&directory) }).expect("at a service");
    assert_eq!(at.uri().to_string(), format!("sm://{base}/77/5"));
    let again = Endpoint::create(EndpointConfig { service, ..config(&directory) }).expect_err("it is in use");
    assert!(again.to_string().contains("an endpoint that is alive"), "{again}");
    let found = endpoints(base, false).expect("listed");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|found| found.liveness == Liveness::Alive));
    drop((first, at));
    assert!(endpoints(base, false).expect("listed").is_empty());
    assert_eq!(std::fs::read_dir(base).expect("it is there").count(), 0);
}

#[test]
fn an_endpoint_that_cannot_be_is_refused_and_leaves_nothing() {
    let directory = directory();
    for max_send in [0, (64 << 10) + 1] {
        let refused = Endpoint::create(EndpointConfig { max_send, ..config(&directory) });
        assert!(matches!(refused, Err(CreateError::MaxSend { len }) if len == max_send));
    }
    let base = format!("{}/{}", directory.path().display(), "x".repeat(100));
    let long = Endpoint::create(EndpointConfig { base, ..config(&directory) }).expect_err("too long");
    assert!(long.to_string().contains("use a shorter directory"), "{long}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
}

#[test]
fn who_is_refused_or_finds_nobody_is_told() {
    let directory = directory();
    let [mut client, mut server] =
        [(); 2].map(|()| Endpoint::create(config(&directory)).expect("an endpoint"));
    let uri = server.uri().to_string();
    client.connect(&uri, &[], Attribute::ReliableUnordered, 1, None).expect("asked");
    let (_, Event::Requested(request)) = next_of(&mut [&mut client, &mut server]) else {
        panic!("a request")
    };
    assert!(request.data.is_empty());
    server.reject(request.id).expect("rejected");
    assert!(matches!(server.accept(request.id, 0), Err(CallError::NoRequest)));
    assert!(matches!(server.reject(request.id), Err(CallError::NoRequest)));
    let refused = |event: &Event, wanted| matches!(event, Event::Connected { context, result: Err(Failure::Refused), .. } if *context == wanted);
    let (side, event) = next_of(&mut [&mut client, &mut server]);
    assert!(side == CLIENT && refused(&event, 1), "{event:?}");
    // Nobody has that address, or not any more.
    let nobody = uri.rsplit_once('/').map(|(process, _)| format!("{process}/99")).expect("a path");
    client.connect(&nobody, &[], Attribute::ReliableOrdered, 2, None).expect("asked");
    let (_, event) = next_of(&mut [&mut client]);
    assert!(refused(&event, 2), "{event:?}");
    drop(server);
    client.connect(&uri, &[], Attribute::ReliableOrdered, 3, None).expect("asked");
    let (_, event) = next_of(&mut [&mut client]);
    assert!(refused(&event, 3), "{event:?}");
}

#[test]
fn wrong_requests_are_refused_at_once() {
    let directory = directory();
    let mut client = Endpoint::create(config(&directory)).expect("an endpoint");
    let uri = client.uri().to_string();
    let mut connect = |uri: &str, len| {
        client
            .connect(uri, &vec![0; len], Attribute::ReliableOrdered, 0, None)
            .expect_err("refused")
            .to_string()
    };
    assert!(connect("tcp://somewhere", 0).contains("does not begin with sm://"));
    assert!(connect("sm://", 0).contains("an absolute path"));
    assert!(connect(&uri, 1025).contains("at most 1024"));
    assert_eq!(client.connections(), 0);
}

/// A server that does not answer: the request is sent again and again, always the same, until the time is over.
#[test]
fn a_request_is_sent_again_until_it_is_too_late() {
    use gasworks_cci::datagram::Datagram;
    let directory = directory();
    let mut client = Endpoint::create(config(&directory)).expect("an endpoint");
    let silent = directory.path().join("1").join("2");
    std::fs::create_dir_all(&silent).expect("a directory");
    let socket = DatagramSocket::bind(&silent.join("sock")).expect("a socket");
    let uri = format!("sm://{}", silent.display());
    let timeout = Duration::from_millis(400);
    let start = Instant::now();
    client.connect(&uri, b"data", Attribute::Unreliable, 9, Some(timeout)).expect("asked");
    let (_, event) = next_of(&mut [&mut client]);
    assert!(
        matches!(event, Event::Connected { context: 9, result: Err(Failure::TimedOut), .. }),
        "{event:?}"
    );
    assert!(start.elapsed() >= timeout);
    let mut requests = Vec::new();
    let mut last = None;
    let mut buffer = [0; 2000];
    while let Some(received) = socket.receive(&mut buffer).expect("no error") {
        match Datagram::decode(&buffer[..received.len]).expect("a datagram") {
            Datagram::Request(request) => {
                let files = if backend() == Backend::Rings { 3 } else { 2 };
                assert_eq!((received.fds.len(), &request.data[..]), (files, &b"data"[..]));
                requests.push(request.nonce);
            }
            other => last = Some(other),
        }
    }
    assert!(requests.len() >= 2 && requests.iter().all(|nonce| *nonce == requests[0]), "{requests:?}");
    assert_eq!(last, Some(Datagram::Gone { nonce: requests[0] }), "who comes late finds that it is over");
    assert_eq!(client.connections(), 0);
}

/// A client, and a server that it has asked for a connection.
fn asked() -> (Endpoint, Endpoint, Box<Request>, TempDir) {
    let directory = directory();
    let [mut client, mut server] =
        [(); 2].map(|()| Endpoint::create(config(&directory)).expect("an endpoint"));
    let uri = server.uri().to_string();
    client.connect(&uri, &[], Attribute::ReliableOrdered, 1, None).expect("asked");
    let (_, Event::Requested(request)) = next_of(&mut [&mut server]) else { panic!("a request") };
    (client, server, request, directory)
}

/// A client that has gone before it was accepted: who accepts it is told.
#[test]
fn who_accepts_a_client_that_is_gone_is_told() {
    let (client, mut server, request, _directory) = asked();
    drop(client);
    server.accept(request.id, 5).expect("tried");
    let (_, event) = next_of(&mut [&mut server]);
    assert!(
        matches!(event, Event::Accepted { context: 5, result: Err(Failure::Disconnected), .. }),
        "{event:?}"
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn what_was_sent_before_the_end_comes_and_then_the_end() {
    // More than are taken at once.
    let mut pair = Pair::new();
    for number in 0..7 {
        pair.send(CLIENT, &[number], 0);
    }
    let [client, server] = pair.ids;
    pair.ends[CLIENT].disconnect(client).expect("closed");
    assert!(matches!(pair.ends[CLIENT].disconnect(client), Err(CallError::NoConnection)));
    let sent = pair.ends[CLIENT].send(client, &[b"x"], 0, SendFlags::empty());
    assert!(matches!(sent, Err(CallError::NoConnection)));
    for number in 0..7 {
        let (_, event) = next_of(&mut [&mut pair.ends[SERVER]]);
        let Event::Received(message) = event else { panic!("{event:?}") };
        assert_eq!(&*message.bytes, [number]);
        pair.ends[SERVER].give_back(message);
    }
    let (_, event) = next_of(&mut [&mut pair.ends[SERVER]]);
    assert!(matches!(event, Event::Closed { connection } if connection == server), "{event:?}");
    let sent = pair.ends[SERVER].send(server, &[b"x"], 0, SendFlags::empty());
    assert!(matches!(sent, Err(CallError::Disconnected)));
    pair.ends[SERVER].disconnect(server).expect("closed");
    assert_eq!((pair.ends[CLIENT].connections(), pair.ends[SERVER].connections()), (0, 0));
}

/// What the peer has not taken when it closes the connection was not delivered.
#[test]
fn what_the_peer_did_not_take_fails() {
    let mut pair = Pair::new();
    let [client, server] = pair.ids;
    for context in 0..20 {
        pair.send(CLIENT, b"never taken", context);
    }
    pair.ends[SERVER].disconnect(server).expect("closed");
    let (mut failed, mut closed) = (0, false);
    while failed < 20 || !closed {
        match next_of(&mut [&mut pair.ends[CLIENT]]).1 {
            Event::Sent { context, result, .. } => {
                assert_eq!((context, result), (failed, Err(Failure::Disconnected)));
                failed += 1;
            }
            Event::Closed { connection } => closed = connection == client,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_endpoint_connects_to_itself() {
    let directory = directory();
    let mut end = Endpoint::create(config(&directory)).expect("an endpoint");
    let uri = end.uri().to_string();
    let client = end.connect(&uri, b"me", Attribute::ReliableOrdered, 1, None).expect("asked");
    let (_, Event::Requested(request)) = next_of(&mut [&mut end]) else { panic!("a request") };
    let server = end.accept(request.id, 2).expect("accepted");
    assert!(matches!(next_of(&mut [&mut end]).1, Event::Connected { context: 1, result: Ok(()), .. }));
    assert!(matches!(next_of(&mut [&mut end]).1, Event::Accepted { context: 2, result: Ok(()), .. }));
    end.send(client, &[b"to the other side"], 3, SendFlags::empty()).expect("sent");
    let (_, Event::Received(message)) = next_of(&mut [&mut end]) else { panic!("a message") };
    assert_eq!((message.connection, &*message.bytes), (server, &b"to the other side"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    /// Whatever datagrams come, an endpoint goes on: its connections work, and nobody is taken for a client that has not asked for it.
    #[test]
    fn any_datagram_is_survived(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..20), start: bool) {
        let mut pair = Pair::new();
        let directory = directory();
        let socket = DatagramSocket::bind(&directory.path().join("sock")).expect("a socket");
        let to = pair.ends[SERVER].uri().socket();
        for datagram in datagrams {
            let datagram = if start { [&b"gw-cci\0\x01"[..], &datagram].concat() } else { datagram };
            socket.send_to(&to, &datagram, &[]).expect("sent");
            prop_assert!(pair.ends[SERVER].event().expect("no error").is_none());
        }
        pair.send(CLIENT, b"still there", 1);
        let message = pair.message(SERVER);
        prop_assert_eq!(&*message.bytes, b"still there");
    }
}

/// The book's example.
#[test]
#[cfg(not(gasworks_tsan))]
fn the_book_s_example_greets() {
    let directory = directory();
    let program = gasworks_testkit::programs::target().join("debug/examples/greeting");
    let ended =
        std::process::Command::new(program).env("TMPDIR", directory.path()).output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.starts_with("the server is sm://") && said.ends_with("client: hello, Ada\n"), "{ended:?}");
}

/// What a server sends before the client knows that it was accepted, and the client ends: it fails.
#[test]
fn what_is_sent_to_a_client_that_never_answers_fails() {
    let (client, mut server, request, _directory) = asked();
    let id = server.accept(request.id, 5).expect("accepted");
    server.send(id, &[b"x"], 6, SendFlags::empty()).expect("sent");
    drop(client);
    let (mut sent, mut accepted) = (None, None);
    while sent.is_none() || accepted.is_none() {
        match next_of(&mut [&mut server]).1 {
            Event::Sent { context: 6, result, .. } => sent = Some(result),
            Event::Accepted { context: 5, result, .. } => accepted = Some(result),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((sent, accepted), (Some(Err(Failure::Disconnected)), Some(Err(Failure::Disconnected))));
}
