//! What the tests of the engine share.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gasworks_sock::{Address, Class, Error, Event, Op, Set, Sock};

/// No event of a test takes so long.
pub const LONG: Duration = Duration::from_secs(20);
/// Long enough to see that nothing comes.
pub const SHORT: Duration = Duration::from_millis(20);

pub fn set() -> Set {
    Set::new().expect("a set")
}

/// The next event, which must come.
pub fn next(set: &Set) -> Event {
    set.wait(Some(LONG)).expect("waited").expect("an event")
}

/// The next event, which must be this one, without an error.
pub fn expect(set: &Set, op: Op, user: u64) -> Event {
    let event = next(set);
    assert_eq!((event.op, event.user, &event.error), (op, user, &None));
    event
}

/// The next event, which must be this one and tell of an error of this class.
pub fn expect_error(set: &Set, op: Op, user: u64, class: Class) -> Event {
    let event = next(set);
    let told = event.error.as_ref().map(Error::class);
    assert_eq!((event.op, event.user, told), (op, user, Some(class)), "{:?}", event.error);
    event
}

pub fn expect_nothing(set: &Set) {
    let event = set.wait(Some(SHORT)).expect("waited");
    assert_eq!(event, None);
}

/// A Unix socket in the set, and its other end outside.
pub fn unix_pair(set: &Set, user: u64) -> (Sock, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    (set.adopt(user, ours).expect("adopted"), theirs)
}

/// A TCP connection over loopback in the set, and its other end outside.
pub fn tcp_pair(set: &Set, user: u64) -> (Sock, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let ours = TcpStream::connect(listener.local_addr().expect("its address")).expect("connected");
    let (theirs, _) = listener.accept().expect("accepted");
    (set.adopt(user, ours).expect("adopted"), theirs)
}

pub fn loopback(port: u16) -> Address {
    Address::Inet(([127, 0, 0, 1], port).into())
}

/// Has the kernel reset the connection when the stream is dropped.
pub fn reset(stream: TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).expect("set");
}

/// The class of a call that must fail.
pub fn class<T: std::fmt::Debug>(result: Result<T, Error>) -> Class {
    result.expect_err("refused").class()
}
