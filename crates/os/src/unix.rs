//! Stream sockets in the abstract name space of the machine (`unix(7)`): they carry descriptors, leave nothing in
//! any directory, and end with their processes.
//!
//! # Invariants
//! - unix.1: a message header given to the kernel points at buffers that outlive the call, with their true lengths.
//! - unix.2: a descriptor number found in a control message is new, open and ours alone: it becomes an `OwnedFd` exactly
//!   once, before anything can fail.
//! - unix.3: all zeroes is a valid, empty message header.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrLike, UnixAddr, sockopt};
use nix::sys::stat::Mode;

use crate::descriptor::Descriptor;
use crate::{OsError, Result, inherited};

/// The most descriptors that one message carries (the system's own limit is 253).
pub const MAX_FDS: usize = 250;

/// Room for the control message of [`MAX_FDS`] descriptors, in words so that it is aligned.
const CONTROL_WORDS: usize = (MAX_FDS * 4 + 64) / 8;

/// A socket that waits for connections.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    name: String,
    is_hidden: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Stream {
    inner: Descriptor,
    /// The peer, for messages.
    name: String,
}

/// Who is at the other end, as the kernel saw it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// Waits until `fd` is ready for `what` (an error or a hang-up counts as ready), or until the deadline.
pub(crate) fn wait_ready(fd: BorrowedFd<'_>, what: PollFlags, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, so that the last wait does not spin.
        let ms = u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        match poll(&mut [PollFd::new(fd, what)], PollTimeout::from(ms)) {
            Ok(0) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Listens under `name`, which no other socket of this machine (of this network name space) may have.
pub fn listen(name: &str) -> Result<Listener> {
    let fail = |e| OsError::new("listen on socket", format!("@{name}"), e);
    let address = SocketAddr::from_abstract_name(name).map_err(fail)?;
    let inner = UnixListener::bind_addr(&address).map_err(fail)?;
    inner.set_nonblocking(true).map_err(fail)?;
    Ok(Listener { inner, name: name.to_owned(), is_hidden: false })
}

/// What leads to a listener that has no name.
#[derive(Debug)]
pub struct Connector(OwnedFd);

/// Listens where nobody finds it who is not given the connector: a program that inherits that, of the same user, connects by it from
/// whichever name spaces it is in. `file` is there for a moment, and gone when this returns.
///
/// # Errors
/// There can be no socket at `file`, or no `/proc`, by which such a connector is gone.
pub fn listen_hidden(file: &Path) -> Result<(Listener, Connector)> {
    let fail = |e| OsError::new("listen on socket", file.display(), e);
    let inner = UnixListener::bind(file).map_err(fail)?;
    let connector = fcntl::open(file, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
    std::fs::remove_file(file).map_err(fail)?;
    let connector = Connector(connector.map_err(|e| fail(e.into()))?);
    std::fs::metadata(connector.path()).map_err(fail)?;
    Ok((Listener::hidden(inner)?, connector))
}

impl Connector {
    /// One that whoever started this process has left open, of this number.
    pub fn inherited(number: i32) -> Result<Self> {
        inherited::socket(number).map(Self)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Connects, trying again until `deadline` while the listener's queue is full.
    pub fn connect(&self, deadline: Instant) -> Result<Stream> {
        let fail = |e: Errno| OsError::new("connect to socket", HIDDEN, e);
        connect_at(&UnixAddr::new(&self.path()).map_err(fail)?, HIDDEN, deadline, false)
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a listener without a name is called in messages.
const HIDDEN: &str = "unnamed";

impl Listener {
    /// One that whoever started this process has left open, of this number.
    pub fn inherited(number: i32) -> Result<Self> {
        let inner = UnixListener::from(inherited::socket(number)?);
        match socket::getsockopt(&inner, sockopt::AcceptConn) {
            Ok(true) => Self::hidden(inner),
            _ => Err(OsError::other("use the inherited descriptor", number, "it does not listen")),
        }
    }

    fn hidden(inner: UnixListener) -> Result<Self> {
        inner.set_nonblocking(true).map_err(|e| OsError::new("listen on socket", HIDDEN, e))?;
        Ok(Self { inner, name: HIDDEN.to_owned(), is_hidden: true })
    }

    /// Whether only those find it who are given the connector ([`listen_hidden`]).
    pub fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// The next connection, waited for until `deadline`.
    pub fn accept(&self, deadline: Instant) -> Result<Stream> {
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::TimedOut => OsError::timed_out("accept on socket", format!("@{}", self.name)),
            _ => OsError::new("accept on socket", format!("@{}", self.name), e),
        };
        loop {
            match self.inner.accept() {
                Ok((inner, _)) => return Stream::new(inner, &self.name),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait_ready(self.inner.as_fd(), PollFlags::POLLIN, deadline).map_err(fail)?;
                }
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {}
                Err(e) => return Err(fail(e)),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Connects to `name`, trying again until `deadline` while nobody listens there yet or its queue is full.
pub fn connect(name: &str, deadline: Instant) -> Result<Stream> {
    connect_to(name, deadline, true)
}

/// As [`connect`], but that nobody listens there is an error at once, of the kind `ConnectionRefused`.
pub fn connect_if_there(name: &str, deadline: Instant) -> Result<Stream> {
    connect_to(name, deadline, false)
}

fn connect_to(name: &str, deadline: Instant, wait: bool) -> Result<Stream> {
    let address = UnixAddr::new_abstract(name.as_bytes());
    let address = address.map_err(|e| OsError::new("connect to socket", format!("@{name}"), e))?;
    connect_at(&address, name, deadline, wait)
}

fn connect_at(address: &UnixAddr, name: &str, deadline: Instant, wait: bool) -> Result<Stream> {
    let operand = || format!("@{name}");
    let fail = |e: Errno| OsError::new("connect to socket", operand(), e);
    let mut pause = Duration::from_micros(50);
    loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(fail)?;
        match socket::connect(fd.as_raw_fd(), address) {
            Ok(()) => return Stream::new(UnixStream::from(fd), name),
            Err(Errno::ECONNREFUSED) if wait => {}
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(e) => return Err(fail(e)),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(OsError::timed_out("connect to socket", operand()));
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// A connected pair.
pub fn pair() -> Result<(Stream, Stream)> {
    let fail = |e| OsError::new("make", "a pair of sockets", e);
    let (a, b) = UnixStream::pair().map_err(fail)?;
    Ok((Stream::new(a, "pair")?, Stream::new(b, "pair")?))
}

impl Stream {
    fn new(inner: UnixStream, name: &str) -> Result<Self> {
        inner.set_nonblocking(true).map_err(|e| OsError::new("set up socket", format!("@{name}"), e))?;
        Ok(Self { inner: OwnedFd::from(inner).into(), name: name.to_owned() })
    }

    /// A stream socket that came from elsewhere; `name` is for messages.
    pub fn adopt(fd: OwnedFd, name: &str) -> Result<Self> {
        Self::new(UnixStream::from(fd), name)
    }

    /// The descriptor, given away; reads and writes of it do not block.
    pub fn into_fd(self) -> OwnedFd {
        self.inner.into_fd()
    }

    /// Whether the program has left it open ([`Descriptor::is_whole`]).
    pub fn is_whole(&self) -> bool {
        self.inner.is_whole()
    }

    /// Who is at the other end. For a connection that came through a [`Listener`] this is who connected.
    pub fn peer(&self) -> Result<Credentials> {
        peer_of(&self.inner)
            .map_err(|e| OsError::new("ask who is behind socket", format!("@{}", self.name), e))
    }

    fn fail(&self, operation: &'static str, e: io::Error) -> OsError {
        match e.kind() {
            io::ErrorKind::TimedOut => OsError::timed_out(operation, format!("@{}", self.name)),
            _ => OsError::new(operation, format!("@{}", self.name), e),
        }
    }

    /// Sends all of `bytes`, and up to [`MAX_FDS`] descriptors with the first of them (so there must be one byte).
    pub fn send_fds(&self, bytes: &[u8], fds: &[BorrowedFd<'_>], deadline: Instant) -> Result<()> {
        const OPERATION: &str = "send to socket";
        if fds.len() > MAX_FDS || (bytes.is_empty() && !fds.is_empty()) {
            let cause = format!("{} descriptors with {} bytes; at most {MAX_FDS}", fds.len(), bytes.len());
            return Err(OsError::other(OPERATION, format!("@{}", self.name), cause));
        }
        let (mut sent, mut fds) = (0, fds);
        while sent < bytes.len() {
            match send_once(self.inner.as_fd(), None, &bytes[sent..], fds) {
                Ok(n) => {
                    sent += n;
                    fds = &[];
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait_ready(self.inner.as_fd(), PollFlags::POLLOUT, deadline)
                        .map_err(|e| self.fail(OPERATION, e))?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(OPERATION, e)),
            }
        }
        Ok(())
    }

    /// Receives exactly `bytes.len()` bytes and the descriptors that came with them, at most `max_fds`.
    ///
    /// What comes beyond the bytes asked for stays in the socket. On any error the descriptors that have come are
    /// closed.
    pub fn recv_fds(&self, bytes: &mut [u8], max_fds: usize, deadline: Instant) -> Result<Vec<OwnedFd>> {
        const OPERATION: &str = "receive from socket";
        let (mut fds, mut done) = (Vec::new(), 0);
        while done < bytes.len() {
            match recv_once(self.inner.as_fd(), &mut bytes[done..], &mut fds) {
                Ok((0, _)) => return Err(self.fail(OPERATION, io::ErrorKind::UnexpectedEof.into())),
                Ok((n, _)) => done += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait_ready(self.inner.as_fd(), PollFlags::POLLIN, deadline)
                        .map_err(|e| self.fail(OPERATION, e))?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(OPERATION, e)),
            }
            if fds.len() > max_fds {
                let cause = format!("the peer sent {} descriptors where at most {max_fds} belong", fds.len());
                return Err(self.fail(OPERATION, io::Error::other(cause)));
            }
        }
        Ok(fds)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Who is at the other end of a connected Unix socket; see [`Stream::peer`].
pub fn peer_of(socket: impl AsFd) -> io::Result<Credentials> {
    let found = socket::getsockopt(&socket, sockopt::PeerCredentials)?;
    Ok(Credentials { pid: found.pid(), uid: found.uid(), gid: found.gid() })
}

/// Sends as much as goes at once, with descriptors of which there are at most [`MAX_FDS`], to an address or to whom the socket is connected.
pub(crate) fn send_once(
    socket: BorrowedFd<'_>,
    to: Option<&UnixAddr>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let numbers: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let payload = u32::try_from(std::mem::size_of_val(numbers.as_slice())).unwrap_or(u32::MAX);
    let mut control = [0u64; CONTROL_WORDS];
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: unix.3: it is empty until its pointers and lengths are set below.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    if let Some(to) = to {
        (header.msg_name, header.msg_namelen) = (to.as_ptr().cast_mut().cast(), to.len());
    }
    if !numbers.is_empty() {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: unix.1: the one control message lies at the start of `control`, a local that is aligned for it and has room for MAX_FDS
        // numbers, and the caller has checked that there are no more. CMSG_SPACE and CMSG_LEN compute from a length.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(payload) as usize;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(payload) as usize;
            let data = libc::CMSG_DATA(message).cast::<i32>();
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), data, numbers.len());
        }
    }
    // SAFETY: unix.1: `bytes` and the address are borrowed; `header`, `iov` and `control` are locals, given with the lengths that are filled.
    let n = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives what has come, with its descriptors; how many bytes, and who has sent them if the socket asks for that.
pub(crate) fn recv_once(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<(usize, Option<Credentials>)> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: unix.3: it is empty until it is pointed at the locals below.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = std::mem::size_of_val(&control);
    // SAFETY: unix.1: `bytes` is borrowed exclusively; `header`, `iov` and `control` are locals, given with their whole lengths.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    let mut from = None;
    // Every descriptor is taken, whatever else is wrong with the message: one left in the buffer would leak.
    // SAFETY: unix.1: `header` and `control` are as the kernel filled them, and the macros stay inside msg_controllen. unix.2: each number,
    // read unaligned, is owned from here on, once. Credentials are three numbers, as the length says.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let len = (*message).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(message).cast::<i32>();
                for i in 0..len / std::mem::size_of::<i32>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            if (*message).cmsg_level == libc::SOL_SOCKET
                && (*message).cmsg_type == libc::SCM_CREDENTIALS
                && (*message).cmsg_len >= libc::CMSG_LEN(std::mem::size_of::<libc::ucred>() as u32) as usize
            {
                let libc::ucred { pid, uid, gid } =
                    libc::CMSG_DATA(message).cast::<libc::ucred>().read_unaligned();
                from = Some(Credentials { pid, uid, gid });
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        let cause = format!(
            "the system dropped descriptors: too many in the message, or more than the {} that this process may have open (ulimit -n)",
            crate::limits::descriptors()
        );
        return Err(io::Error::other(cause));
    }
    Ok((n, from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memfd, random};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn open_fds() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("/proc").count()
    }

    #[test]
    fn who_is_given_the_way_finds_a_listener_without_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("listens");
        let (listener, connector) = listen_hidden(&file).expect("a listener");
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 0, "something is left there");
        let stream = connector.connect(soon()).expect("connected");
        stream.send_fds(b"here", &[], soon()).expect("sent");
        let mut text = [0; 4];
        let accepted = listener.accept(soon()).expect("accepted");
        accepted.recv_fds(&mut text, 0, soon()).expect("received");
        assert_eq!(&text, b"here");
        // Both pass on by number.
        let again = Connector::inherited(connector.as_fd().as_raw_fd()).expect("the connector");
        let same = Listener::inherited(listener.as_fd().as_raw_fd()).expect("the listener");
        let _second = again.connect(soon()).expect("connected");
        same.accept(soon()).expect("accepted");
        let refused = Listener::inherited(accepted.as_fd().as_raw_fd()).expect_err("a stream").to_string();
        assert!(refused.contains("it does not listen"), "{refused}");
        drop((listener, same));
        let refused = connector.connect(soon()).expect_err("nobody listens");
        assert_eq!(refused.cause.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn descriptors_travel() {
        let name = random::hex(&random::nonce().expect("random"));
        let listener = listen(&name).expect("a listener");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let stream = connect(&name, soon()).expect("connected");
                let file = memfd::create("travels", 4096).expect("a memfd");
                let map = file.map().expect("a map");
                map.bytes().write(b"hello");
                stream.send_fds(b"here", &vec![file.as_fd(); MAX_FDS], soon()).expect("sent");
                stream.send_fds(b"more", &[], soon()).expect("sent");
            });
            let stream = listener.accept(soon()).expect("accepted");
            assert_eq!(stream.peer().expect("credentials").pid, std::process::id() as i32);
            let mut text = [0; 4];
            let fds = stream.recv_fds(&mut text, MAX_FDS, soon()).expect("received");
            assert_eq!((&text, fds.len()), (b"here", MAX_FDS));
            let map = memfd::map(fds[MAX_FDS - 1].as_fd(), 4096).expect("a map");
            let mut back = [0; 5];
            map.bytes().read(&mut back);
            assert_eq!(&back, b"hello");
            assert!(stream.recv_fds(&mut text, 0, soon()).expect("received").is_empty());
            assert_eq!(&text, b"more");
            let ended = stream.recv_fds(&mut text, 0, soon()).expect_err("closed");
            assert_eq!(ended.cause.kind(), io::ErrorKind::UnexpectedEof);
        });
    }

    #[test]
    fn too_many_descriptors_are_refused_and_closed() {
        let (a, b) = pair().expect("a pair");
        assert!(a.send_fds(b"x", &vec![a.as_fd(); MAX_FDS + 1], soon()).is_err());
        assert!(a.send_fds(b"", &[a.as_fd()], soon()).is_err());
        let before = open_fds();
        a.send_fds(b"x", &[a.as_fd(); 120], soon()).expect("sent");
        let refused = b.recv_fds(&mut [0; 1], 2, soon()).expect_err("too many");
        assert!(refused.to_string().contains("120 descriptors where at most 2"), "{refused}");
        // Other tests open and close descriptors meanwhile, but never a hundred fewer than were leaked.
        assert!(open_fds() < before + 100);
    }

    #[test]
    fn waits_end_at_the_deadline() {
        let name = random::hex(&random::nonce().expect("random"));
        let short = || Instant::now() + Duration::from_millis(30);
        let start = Instant::now();
        assert!(connect(&name, short()).expect_err("nobody listens").is_timeout());
        let refused = connect_if_there(&name, soon()).expect_err("nobody listens");
        assert_eq!(refused.cause.kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&name).expect("a listener");
        assert!(listener.accept(short()).expect_err("nobody connects").is_timeout());
        let (a, _b) = pair().expect("a pair");
        assert!(a.recv_fds(&mut [0; 1], 0, short()).expect_err("nothing comes").is_timeout());
        assert!(start.elapsed() >= Duration::from_millis(90));
        assert!(listen(&name).is_err());
    }
}
