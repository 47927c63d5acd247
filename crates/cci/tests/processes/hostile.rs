//! A process that writes nonsense to all that it may map of an endpoint, all the time, and sends it datagrams of any bytes. Another connection of the same endpoint works on.

use super::raw::RawPeer;
use super::*;
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Event, SendFlags};

/// What the hostile process does, until it is killed.
pub fn live(base: &str, uri: &str, seed: u64) -> ExitCode {
    let mut random = Random::new(seed);
    loop {
        let nonce = [random.word().to_le_bytes(), random.word().to_le_bytes()];
        let mut raw = RawPeer::new(base, uri, *nonce.as_flattened().first_chunk().expect("16 bytes"));
        raw.request();
        until("the endpoint accepts", || {
            std::thread::sleep(Duration::from_millis(1));
            raw.request();
            raw.receive()
        });
        println!("it has begun");
        // At first nearly as an honest peer would, so that the connection is not closed at once.
        for number in 0..random.below(60) {
            let id = u64::from(raw.connection.index) << 4 | u64::from(raw.connection.generation) << 20;
            // Mostly messages, else keepalives, seldom what only an initiator of transfers is sent.
            let of = [1, 1, 1, 1, 1, 3, 4, 5, 6, 1 + random.below(8)][random.below(10) as usize];
            let block = if of > 4 || random.below(3) == 0 { 1 << 15 } else { 0 };
            let len = if block == 0 { random.below(40) } else { 8 };
            let flag = (1 + number / 8) << 32 | 8 << 8 | block | len;
            let (header, third) =
                (of | id | random.word() << 28, random.below(9) << 32 | random.below(66_000));
            raw.write_slot(number as usize, [flag, header, third]);
            raw.announce();
            std::thread::sleep(Duration::from_micros(random.below(2000)));
        }
        // For so long the endpoint has this connection; it may close it much earlier.
        let start = Instant::now();
        let mut counts = 0u32;
        while start.elapsed() < Duration::from_millis(200) {
            for _ in 0..64 {
                nonsense(&raw, &mut random);
            }
            counts = counts.wrapping_add(1);
            if counts.is_multiple_of(64) {
                let bytes: Vec<u8> = (0..random.below(80)).map(|_| random.word() as u8).collect();
                let start: &[u8] = if random.below(2) == 0 { b"gw-cci\0\x01" } else { b"" };
                raw.send(&[start, &bytes].concat(), random.below(8) == 0);
            }
            raw.receive();
        }
    }
}

fn nonsense(raw: &RawPeer, random: &mut Random) {
    let word = match random.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => random.below(16),
        _ => random.word(),
    };
    match random.below(8) {
        0 | 1 => {
            let lap = if random.below(4) == 0 { random.below(1 << 32) } else { random.below(40) };
            let (head, block, len) = (8, random.below(2) << 15, random.below(100));
            let id = u64::from(raw.connection.index) << 4 | u64::from(raw.connection.generation) << 20;
            let header = random.below(10) | id | random.word() << 28;
            let third = random.below(10) << 32 | random.below(70_000);
            raw.write_slot(random.word() as usize, [lap << 32 | head << 8 | block | len, header, third]);
        }
        // The first words hold counts, flags, the doorbell and the summary.
        2 | 3 => raw.write(random.below(4) as usize, random.below(160) as usize, word),
        4 => raw.write(1, random.below(64) as usize, word),
        _ => raw.write(random.below(4) as usize, random.word() as usize >> 8, word),
    }
}

/// Round trips of an honest connection beside the hostile one.
pub fn check(sleeps: bool) {
    let _beside_others = COUNTED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = directory();
    let base = folder.path().to_str().expect("text").to_owned();
    let create = || Endpoint::create(EndpointConfig { wakes: sleeps, ..config(&base) }).expect("an endpoint");
    let (mut server, mut client) = (create(), create());
    let uri = server.uri().to_string();
    let honest = client.connect(&uri, b"honest", Attribute::ReliableOrdered, 0, None).expect("asked");
    let mut process = Process::start(&["write-nonsense", &base, &uri, "1"], None);
    let mut said = std::io::BufReader::new(process.0.stdout.take().expect("piped"));
    let (rounds, mut round, mut is_open, mut hostile, mut closed, mut nonsense) =
        (if sleeps { 200u64 } else { 20_000 }, 0, false, 0, 0, 0);
    let (own, start) = (std::process::id() as i32, Instant::now());
    let mut honest_at_server = None;
    // Until there were enough round trips, and enough of the hostile process's doings.
    while round < rounds || hostile < 8 || nonsense < 10 || closed < 3 {
        let mut is_idle = true;
        while let Some(event) = server.event().expect("no error") {
            is_idle = false;
            match event {
                Event::Requested(request) => {
                    let is_honest = request.pid == own;
                    hostile += u32::from(!is_honest);
                    let id = server.accept(request.id, u64::from(is_honest)).expect("accepted");
                    if is_honest {
                        honest_at_server = Some(id);
                    }
                }
                Event::Received(message) if Some(message.connection) == honest_at_server => {
                    assert_eq!(*message.bytes, round.to_le_bytes(), "another message than was sent");
                    let to = message.connection;
                    server.send(to, &[&message.bytes], 0, SendFlags::SILENT).expect("sent");
                    server.give_back(message);
                }
                Event::Received(message) => {
                    nonsense += 1;
                    // An answer, to be written where the hostile one writes as well.
                    let _ = server.send(message.connection, &[&message.bytes], 0, SendFlags::SILENT);
                    server.give_back(message);
                }
                Event::Closed { connection } => {
                    assert_ne!(Some(connection), honest_at_server, "the honest connection was closed");
                    closed += 1;
                    server.disconnect(connection).expect("it is there");
                }
                Event::Accepted { context, result, .. } => {
                    assert!(context == 0 || result.is_ok(), "the honest connection failed");
                }
                Event::Sent { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        while let Some(event) = client.event().expect("no error") {
            is_idle = false;
            let sent = match event {
                Event::Connected { result: Ok(()), .. } => {
                    is_open = true;
                    true
                }
                Event::Received(message) => {
                    assert_eq!(*message.bytes, round.to_le_bytes());
                    client.give_back(message);
                    round += 1;
                    true
                }
                other => panic!("{other:?}"),
            };
            if sent {
                client.send(honest, &[&round.to_le_bytes()], 0, SendFlags::SILENT).expect("sent");
            }
        }
        if is_idle && sleeps {
            sleep_long(&[&server, &client]);
        }
        assert!(start.elapsed() < 2 * LONG, "after {round} round trips and {hostile} hostile connections");
    }
    println!(
        "{hostile} hostile connections, {closed} of them closed by the server, {nonsense} messages, {:?}",
        start.elapsed()
    );
    assert!(is_open);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("it has said so");
    assert!(process.0.try_wait().expect("a process").is_none(), "the hostile process has ended");
    drop(process);
    until("the endpoint learns that it is gone", || {
        while let Some(event) = server.event().expect("no error") {
            match event {
                Event::Closed { connection } => server.disconnect(connection).expect("it is there"),
                Event::Requested(request) => server.reject(request.id).expect("a request"),
                Event::Received(message) => server.give_back(message),
                _ => {}
            }
        }
        server.connections() == 1
    });
    nothing_is_left(&base, 2);
}

/// Sleeps until one has something to do: nothing but the endpoints' own descriptors ends that.
fn sleep_long(ends: &[&Endpoint]) {
    let mut fds: Vec<_> = ends.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
    let _ = poll(&mut fds, PollTimeout::from(10_000u16));
}
