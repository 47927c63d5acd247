//! What the system knows of a connection over TCP.
//!
//! # Invariants
//! - inet.1: a structure of zeros is a valid one, and the system writes no more of it than its length says.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// How long ago the other side's system has acknowledged anything; `None` of what is no such connection.
pub fn acknowledged(fd: BorrowedFd<'_>) -> Option<Duration> {
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: inet.1: all fields of `tcp_info` are integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let to = (&raw mut info).cast();
    // SAFETY: inet.1: `to` points to `info`, whose size `len` says; both are locals that live through the call, and `fd` is borrowed.
    let rc = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut len) };
    (rc == 0).then(|| Duration::from_millis(info.tcpi_last_ack_recv.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn what_is_sent_is_acknowledged_though_nobody_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut near = TcpStream::connect(listener.local_addr().expect("a name")).expect("connected");
        let pause = Duration::from_millis(100);
        std::thread::sleep(pause);
        assert!(acknowledged(near.as_fd()).expect("of TCP") >= pause);
        near.write_all(b"x").expect("sent");
        std::thread::sleep(Duration::from_millis(10));
        assert!(acknowledged(near.as_fd()).expect("of TCP") < pause);
        let (other, _) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert_eq!(acknowledged(other.as_fd()), None);
    }
}
