//! What is particular to NICs of other hosts: bytes in pieces, strangers at the gate, and gates that lie.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use gasworks_ugni_sim::far::PIECE;

use super::*;

/// Bytes that NICs may change, registered with one.
struct Buffer {
    bytes: Vec<AtomicU64>,
    handle: gni_mem_handle_t,
}

impl Buffer {
    fn of(rank: &Rank, len: u64) -> Self {
        let bytes: Vec<_> = (0..len / 8).map(AtomicU64::new).collect();
        let place = (bytes.as_ptr() as u64, len);
        let handle = rank.attached.nic().register(place, None, 0).expect("registered");
        Self { bytes, handle }
    }

    fn descriptor(&self, offset: u64, there: &Buffer, at: u64, len: u64) -> gni_post_descriptor_t {
        gni_post_descriptor_t {
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            local_addr: self.bytes.as_ptr() as u64 + offset,
            local_mem_hndl: self.handle,
            remote_addr: there.bytes.as_ptr() as u64 + at,
            remote_mem_hndl: there.handle,
            length: len,
            ..Default::default()
        }
    }

    fn get(&self) -> Vec<u8> {
        self.bytes.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect()
    }

    fn set(&self, change: impl Fn(u64) -> u64) {
        (0..).zip(&self.bytes).for_each(|(at, word)| word.store(change(at), Relaxed));
    }
}

fn ended(rank: &Rank, descriptor: &gni_post_descriptor_t, way: Way) -> Status {
    rank.endpoint.post(descriptor, way, 1, None).expect("posted");
    rank.events.completed(await_event(&rank.events)).expect("a transaction").1
}

/// Two ranks that are far apart.
fn two(cookie: u32) -> [Rank; 2] {
    let wires = far_apart(2);
    let job = (cookie, Mood::Plain);
    [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)]
}

#[test]
fn transfers_of_several_pieces_arrive_whole_and_touch_nothing_else() {
    let [first, second] = two(60);
    let size = 4 * PIECE;
    let (here, there) = (Buffer::of(&first, size), Buffer::of(&second, size));
    for len in [4, 8, PIECE - 4, PIECE, PIECE + 4, 3 * PIECE + 20] {
        for (kind, way) in [
            (GNI_POST_FMA_PUT, Way::Fma),
            (GNI_POST_RDMA_PUT, Way::Bte),
            (GNI_POST_FMA_GET, Way::Fma),
            (GNI_POST_RDMA_GET, Way::Bte),
        ] {
            here.set(|at| at.wrapping_mul(0x0101_0101_0101_0107));
            there.set(|at| !at);
            let (from, to) = (12u64, 36u64);
            let is_put = matches!(kind, GNI_POST_FMA_PUT | GNI_POST_RDMA_PUT);
            let (source, target) = if is_put { (here.get(), there.get()) } else { (there.get(), here.get()) };
            let (source_at, target_at) = if is_put { (from, to) } else { (to, from) };
            let mut wanted = target;
            wanted[target_at as usize..][..len as usize]
                .copy_from_slice(&source[source_at as usize..][..len as usize]);
            let post = gni_post_descriptor_t { r#type: kind, ..here.descriptor(from, &there, to, len) };
            assert_eq!(ended(&first, &post, way), Status::Ok);
            let now = if is_put { there.get() } else { here.get() };
            assert!(now == wanted, "{len} bytes of kind {kind}");
        }
    }
}

/// A transfer that goes beyond what is registered moves nothing, though its first pieces would fit.
#[test]
fn all_of_a_transfer_is_checked_before_a_piece_is_moved() {
    let [first, second] = two(61);
    let (here, there) = (Buffer::of(&first, 3 * PIECE), Buffer::of(&second, 2 * PIECE));
    there.set(|_| 5);
    let before = there.get();
    let put = gni_post_descriptor_t { r#type: GNI_POST_FMA_PUT, ..here.descriptor(0, &there, 0, 3 * PIECE) };
    assert_eq!(ended(&first, &put, Way::Fma), Status::Bounds);
    let get = gni_post_descriptor_t { r#type: GNI_POST_FMA_GET, ..put };
    assert_eq!(ended(&first, &get, Way::Fma), Status::Bounds);
    assert!(there.get() == before);
    // And what is not registered any more.
    second.attached.nic().deregister(&there.handle).expect("it was");
    let put = gni_post_descriptor_t { length: 8, ..put };
    assert_eq!(ended(&first, &put, Way::Fma), Status::Descriptor);
    // Of an address here that is not mapped it is said that it is not.
    let unmapped = gni_post_descriptor_t { local_addr: 8, remote_mem_hndl: second.handle, ..put };
    let unmapped = gni_post_descriptor_t { remote_addr: second.words.as_ptr() as u64, ..unmapped };
    assert_eq!(ended(&first, &unmapped, Way::Fma), Status::Translation);
    assert_eq!(first.run(second.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
}

/// The port of a gate of this host.
fn port(gate: &Gate) -> u16 {
    let place = gate.place();
    let text = place.split("port=").nth(1).and_then(|rest| rest.split(';').next()).expect("a port");
    text.parse().expect("a number")
}

fn hello(secret: &[u8; 16], name: &Name) -> Vec<u8> {
    let mut frame = vec![0; 16];
    frame.extend_from_slice(secret);
    frame.extend_from_slice(&name.cookie.to_le_bytes());
    frame.extend_from_slice(&name.address.to_le_bytes());
    frame.extend_from_slice(&name.instance.to_le_bytes());
    frame.push(name.ptag);
    let len = frame.len() as u32 - 16;
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame
}

/// What becomes of an event afar is known here: there is no queue, there is room in it, or there is none.
#[test]
fn it_is_told_whether_there_is_a_queue() {
    let [first, second] = two(64);
    let place = second.place();
    let without = second.attached.nic().register((place.0, 8), None, 0).expect("registered");
    let post = |handle| gni_post_descriptor_t {
        r#type: GNI_POST_CQWRITE,
        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
        remote_mem_hndl: handle,
        cqwrite_value: 5,
        ..Default::default()
    };
    assert_eq!(ended(&first, &post(without), Way::CqWrite), Status::Descriptor);
    assert_eq!(second.arrivals.next(), Next::Nothing);
    // It has room for so many.
    for at in 0..=16 {
        first.endpoint.post(&post(second.handle), Way::CqWrite, 1, None).expect("posted");
        let event = await_event(&first.events);
        assert_eq!(Entry::decode(event, Chip::Aries).expect("an event").remote_overrun, at == 16, "{at}");
        assert_eq!(first.events.completed(event).expect("a transaction").1, Status::Ok);
    }
}

/// Who shows no secret, another one, or nonsense, is dropped; who asks for a NIC that is not there is told so. The gate goes on.
#[test]
fn strangers_are_not_served() {
    let wires = far_apart(2);
    let job = (62, Mood::Plain);
    let [first, second] = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
    let port = port(wires[1].gate.as_ref().expect("a gate"));
    let visit = |says: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream.write_all(says).expect("said");
        stream
    };
    let known = hello(&SECRET, &name(62, 1));
    let wrong = hello(b"something other!", &name(62, 1));
    let nearly = hello(b"nobody knows it?", &name(62, 1));
    let mut long = known.clone();
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut ask_first = known.clone();
    ask_first[4] = 3;
    let nonsense = [&known[..], &[9; 64]].concat();
    let again = [&known[..], &known[..]].concat();
    for says in [&wrong, &nearly, &long, &ask_first, &nonsense, &again] {
        let mut heard = Vec::new();
        visit(says).read_to_end(&mut heard).expect("its end");
        // An answer to what was right of it at most.
        let right = if [&nonsense, &again].contains(&says) { 16 } else { 0 };
        assert_eq!(heard.len(), right, "{heard:?}");
    }
    let mut answer = [0; 16];
    visit(&hello(&SECRET, &name(62, 7))).read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[4..6], [0xff, Status::Gone as u8]);
    visit(&known).read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[4..6], [0xff, Status::Ok as u8]);
    // Many that say nothing do not keep others out.
    let mut silent: Vec<TcpStream> = (0..300).map(|_| visit(&[])).collect();
    assert_eq!(first.run(second.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
    assert_eq!(silent[0].read(&mut [0]).expect("its end"), 0, "who came first is dropped");
    drop(silent);
    assert_eq!(second.run(first.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
}

/// A gate that answers what nobody has asked, answers too much or too little, or goes away while it is asked, is as good as
/// none, at once.
#[test]
fn a_gate_that_lies_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let gate = Gate::open().expect("a gate");
    let place = gate.place();
    let own = place.split("port=").nth(1).and_then(|rest| rest.split(';').next()).expect("a port");
    let false_place = place.replace(&format!("port={own}"), &format!("port={port}"));
    gate.learn(SECRET, &[(ADDRESS, &place), (ADDRESS, &false_place)]).expect("places");
    let wire = Wire { gate: Some(gate), always: true };
    let rank = rank(&wire, (63, Mood::Plain), 0, 1);
    /// An answer to what was asked, or to something else.
    fn answer(asked: &[u8], status: u8, body: &[u8], other: u8) -> Vec<u8> {
        let mut frame = [0; 16];
        frame[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        (frame[4], frame[5]) = (0xff, status);
        frame[8..].copy_from_slice(&asked[8..16]);
        frame[15] ^= other;
        [&frame[..], body].concat()
    }
    type Answer = fn(&[u8]) -> Vec<u8>;
    let put_answers: [(Answer, Status); 6] = [
        (|asked| answer(asked, 0, b"", 1), Status::Gone),
        (|asked| answer(asked, 0, b"too much", 0), Status::Lost),
        (|asked| answer(asked, 200, b"", 0), Status::Lost),
        (|_| b"this is no frame at all".to_vec(), Status::Gone),
        (|_| Vec::new(), Status::Gone),
        (|asked| answer(asked, Status::Permission as u8, b"", 0), Status::Permission),
    ];
    let get_answers: [(Answer, Status); 2] = [
        (|asked| answer(asked, 0, b"too few", 0), Status::Lost),
        (|asked| answer(asked, 0, b"too many.", 0), Status::Lost),
    ];
    let puts = put_answers.map(|lie| (GNI_POST_FMA_PUT, 40 + 8, lie));
    let gets = get_answers.map(|lie| (GNI_POST_FMA_GET, 40 + 4, lie));
    for (kind, bytes, (lie, status)) in puts.into_iter().chain(gets) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let (mut guest, _) = listener.accept().expect("a guest");
                let mut asked = [0; 16 + 29];
                guest.read_exact(&mut asked).expect("a greeting");
                assert_eq!(asked, *hello(&SECRET, &name(63, 1)));
                guest.write_all(&answer(&asked, 0, b"", 0)).expect("said");
                let mut asked = vec![0; 16 + bytes];
                guest.read_exact(&mut asked).expect("a put or a get");
                let lie = lie(&asked);
                guest.write_all(&lie).expect("said");
                // What goes away while it is asked goes now; the others stay as long as they are let.
                (!lie.is_empty()).then_some(guest)
            });
            assert_eq!(rank.run(rank.place(), kind, 0), status);
            drop(thread.join().expect("no panic"));
        });
        // That it has ended is learnt soon, whether or not it was found out.
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(listener);
    assert_eq!(rank.run(NOWHERE, GNI_POST_FMA_PUT, 0), Status::Gone);
}
