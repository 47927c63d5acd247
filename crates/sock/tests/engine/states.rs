//! Every state of a sock against every call: what it gives, and whether an event follows.

use std::any::Any;
use std::io::Write;
use std::net::Shutdown;

use crate::common::*;
use gasworks_sock::{Address, Class, Direction, Op, Set, Sock};

/// What a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// It succeeds.
    Done,
    /// It succeeds, and its event tells of success.
    Event,
    /// It succeeds, and its event tells of an error of this class.
    Fails(Class),
    /// It succeeds, and no event comes now.
    Waits,
    /// It is refused with this class.
    Refused(Class),
}
use Gives::*;

const BAD: Gives = Refused(Class::BadSock);
const BUSY: Gives = Refused(Class::InProgress);
const ENDED: Gives = Refused(Class::ConnClosed);
const BROKEN: Gives = Refused(Class::ConnFailed);

/// The calls, in the order of the table's columns.
const CALLS: [Call; 8] = [
    Call { name: "read", op: None, call: |_, sock| sock.read(&mut [0; 4]).map(drop) },
    Call { name: "write", op: None, call: |_, sock| sock.write(b"w").map(drop) },
    Call { name: "post_read", op: Some(Op::Read), call: |_, sock| sock.post_read(vec![0; 4], 1, 4, None) },
    Call {
        name: "post_readv",
        op: Some(Op::Read),
        call: |_, sock| sock.post_readv(vec![vec![0; 4]], 1, None),
    },
    Call { name: "post_write", op: Some(Op::Write), call: |_, sock| sock.post_write(vec![1], 1, 1, None) },
    Call {
        name: "post_writev",
        op: Some(Op::Write),
        call: |_, sock| sock.post_writev(vec![vec![1]], 1, None),
    },
    Call { name: "accept", op: None, call: |set, sock| set.accept(sock, 9).map(drop) },
    Call { name: "post_close", op: Some(Op::Close), call: |_, sock| sock.post_close() },
];

struct Call {
    name: &'static str,
    op: Option<Op>,
    call: fn(&Set, &Sock) -> Result<(), gasworks_sock::Error>,
}

/// A name, how to get there, and what the calls give.
type State = (&'static str, fn(&Set) -> Arranged, [Gives; 8]);

/// The states, each with how to get there, and what each of the calls gives in it.
const STATES: &[State] = &[
    //                                read   write  post_read      post_readv  post_write  writev  accept  post_close
    ("listening", listening, [BAD, BAD, BAD, BAD, BAD, BAD, Refused(Class::NoNewSock), Event]),
    ("connecting", connecting, [BAD, BAD, BAD, BAD, BAD, BAD, BAD, Event]),
    ("connected, nothing to read", connected, [Done, Done, Waits, Waits, Event, Event, BAD, Event]),
    ("connected, bytes to read", with_bytes, [Done, Done, Event, Event, Event, Event, BAD, Event]),
    ("a read is posted", read_posted, [BUSY, Done, BUSY, BUSY, Event, Event, BAD, Event]),
    ("a write is posted", write_posted, [Done, BUSY, Waits, Waits, BUSY, BUSY, BAD, Event]),
    (
        "the peer has half closed, and we do not know",
        half_closed,
        [ENDED, Done, Fails(Class::ConnClosed), Fails(Class::ConnClosed), Event, Event, BAD, Event],
    ),
    (
        "the peer has half closed, and we know",
        half_closed_known,
        [ENDED, Done, ENDED, ENDED, Event, Event, BAD, Event],
    ),
    (
        "the write side is dead, bytes to read",
        write_dead,
        [Done, ENDED, Event, Event, ENDED, ENDED, BAD, Event],
    ),
    ("disconnected by a reset", disconnected, [BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, BAD, Event]),
    ("a connect failed", never_connected, [BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, BAD, Event]),
    ("closing", closing, [BUSY, BUSY, BUSY, BUSY, BUSY, BUSY, BAD, BAD]),
    (
        "closing listener",
        closing_listener,
        [BUSY, BUSY, BUSY, BUSY, BUSY, BUSY, Refused(Class::NoNewSock), BAD],
    ),
    ("closed", closed, [BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD]),
    ("the reading end of a pipe", pipe_reader, [Done, BAD, Event, Event, BAD, BAD, BAD, Event]),
    ("the writing end of a pipe", pipe_writer, [BAD, Done, BAD, BAD, Event, Event, BAD, Event]),
    (
        "a pipe whose writer is gone",
        pipe_ended,
        [ENDED, BAD, Fails(Class::ConnClosed), Fails(Class::ConnClosed), BAD, BAD, BAD, Event],
    ),
    (
        "a pipe whose reader is gone",
        pipe_broken,
        [BAD, ENDED, BAD, BAD, Fails(Class::ConnClosed), Fails(Class::ConnClosed), BAD, Event],
    ),
    ("watched", watched, [BAD, BAD, BAD, BAD, BAD, BAD, BAD, Event]),
];

/// A sock in some state, and what has to stay for it to be so.
struct Arranged {
    sock: Sock,
    _keep: Vec<Box<dyn Any>>,
}

fn arranged(sock: Sock, keep: impl Any) -> Arranged {
    Arranged { sock, _keep: vec![Box::new(keep)] }
}

fn listening(set: &Set) -> Arranged {
    arranged(set.listen(1, &loopback(0)).expect("a listener").0, ())
}

/// A Unix listener whose queue is full lets nobody in, and says nothing.
fn connecting(set: &Set) -> Arranged {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    use std::os::fd::AsRawFd;
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let listener = socket(AddressFamily::Unix, kind, flags, None).expect("a socket");
    bind(listener.as_raw_fd(), &UnixAddr::new_unnamed()).expect("bound");
    let own: UnixAddr = nix::sys::socket::getsockname(listener.as_raw_fd()).expect("a name");
    let name = own.as_abstract().expect("an abstract one").to_vec();
    listen(&listener, Backlog::new(0).expect("a backlog")).expect("listens");
    let address = Address::Abstract(name);
    let first = set.post_connect_to(2, [address.clone()]).expect("posted");
    expect(set, Op::Connect, 2);
    let sock = set.post_connect_to(1, [address]).expect("posted");
    expect_nothing(set);
    arranged(sock, (listener, first))
}

fn connected(set: &Set) -> Arranged {
    let (sock, peer) = tcp_pair(set, 1);
    arranged(sock, peer)
}

fn with_bytes(set: &Set) -> Arranged {
    let (sock, mut peer) = tcp_pair(set, 1);
    peer.write_all(b"abc").expect("written");
    arranged(sock, peer)
}

fn read_posted(set: &Set) -> Arranged {
    let (sock, peer) = tcp_pair(set, 1);
    sock.post_read(vec![0; 8], 1, 8, None).expect("posted");
    arranged(sock, peer)
}

fn write_posted(set: &Set) -> Arranged {
    let (sock, peer) = unix_pair(set, 1);
    sock.post_write(vec![0; 10_000_000], 10_000_000, 10_000_000, None).expect("posted");
    arranged(sock, peer)
}

fn half_closed(set: &Set) -> Arranged {
    let (sock, peer) = tcp_pair(set, 1);
    peer.shutdown(Shutdown::Write).expect("half closed");
    arranged(sock, peer)
}

fn half_closed_known(set: &Set) -> Arranged {
    let arranged = half_closed(set);
    assert_eq!(class(arranged.sock.read(&mut [0; 4])), Class::ConnClosed);
    arranged
}

/// What the peer sent before it went away can still be read after a write has failed.
fn write_dead(set: &Set) -> Arranged {
    let (sock, mut peer) = unix_pair(set, 1);
    peer.write_all(b"abc").expect("written");
    drop(peer);
    assert_eq!(class(sock.write(b"x")), Class::ConnClosed);
    arranged(sock, ())
}

fn disconnected(set: &Set) -> Arranged {
    let (sock, peer) = tcp_pair(set, 1);
    reset(peer);
    let refused = std::iter::from_fn(|| Some(sock.read(&mut [0; 4]))).find_map(Result::err);
    assert_eq!(refused.expect("it fails some time").raw_os_error(), Some(libc::ECONNRESET));
    arranged(sock, ())
}

fn never_connected(set: &Set) -> Arranged {
    let sock =
        set.post_connect_to(1, [Address::Abstract(b"gasworks-sock-nowhere".to_vec())]).expect("posted");
    expect_error(set, Op::Connect, 1, Class::ConnFailed);
    arranged(sock, ())
}

fn closing(set: &Set) -> Arranged {
    let arranged = connected(set);
    arranged.sock.post_close().expect("posted");
    arranged
}

fn closing_listener(set: &Set) -> Arranged {
    let arranged = listening(set);
    arranged.sock.post_close().expect("posted");
    arranged
}

fn closed(set: &Set) -> Arranged {
    let arranged = closing(set);
    expect(set, Op::Close, 1);
    arranged
}

fn pipe_reader(set: &Set) -> Arranged {
    let (from, to) = nix::unistd::pipe().expect("a pipe");
    nix::unistd::write(&to, b"abc").expect("written");
    arranged(set.adopt(1, from).expect("adopted"), to)
}

fn pipe_writer(set: &Set) -> Arranged {
    let (from, to) = nix::unistd::pipe().expect("a pipe");
    arranged(set.adopt(1, to).expect("adopted"), from)
}

fn pipe_ended(set: &Set) -> Arranged {
    let (from, _) = nix::unistd::pipe().expect("a pipe");
    arranged(set.adopt(1, from).expect("adopted"), ())
}

fn pipe_broken(set: &Set) -> Arranged {
    let (_, to) = nix::unistd::pipe().expect("a pipe");
    arranged(set.adopt(1, to).expect("adopted"), ())
}

fn watched(set: &Set) -> Arranged {
    let (from, to) = nix::unistd::pipe().expect("a pipe");
    arranged(set.watch(1, from).expect("watched"), to)
}

/// Makes the call and looks what comes of it.
fn gives(set: &Set, sock: &Sock, call: &Call) -> Gives {
    if let Err(error) = (call.call)(set, sock) {
        assert!(error.sock_id() == Some(sock.id()) && !error.to_string().is_empty());
        return Refused(error.class());
    }
    let Some(op) = call.op else { return Done };
    // A close ends what was posted before, each in an event of its own.
    let wait = if op == Op::Close { LONG } else { SHORT };
    while let Some(event) = set.wait(Some(wait)).expect("waited") {
        let closed = event.error.as_ref().map(gasworks_sock::Error::class) == Some(Class::SockClosed);
        match event.error {
            _ if event.op != op => assert!(closed && op == Op::Close, "a stray event: {event:?}"),
            None => return Event,
            Some(error) => return Fails(error.class()),
        }
    }
    Waits
}

#[test]
fn every_state_answers_every_call() {
    let mut wrong = Vec::new();
    for (state, arrange, wanted) in STATES {
        for (call, wanted) in CALLS.iter().zip(wanted) {
            let set = set();
            let arranged = arrange(&set);
            let got = gives(&set, &arranged.sock, call);
            if got != *wanted {
                wrong.push(format!("{state}: {} gives {got:?}, not {wanted:?}", call.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn readiness_is_awaited_where_it_makes_sense() {
    for (state, arrange, wanted) in STATES {
        let set = set();
        let Arranged { sock, _keep } = arrange(&set);
        let result = sock.post_ready(Direction::Read);
        let allowed = *state == "watched" || !matches!(wanted[2], Refused(_));
        assert_eq!(result.is_ok(), allowed, "{state}: {result:?}");
    }
}
