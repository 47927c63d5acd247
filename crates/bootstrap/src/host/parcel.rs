//! What ranks of a host send each other: bytes with descriptors, or the reason why nothing comes.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use gasworks_os::unix::{MAX_FDS, Stream};
use gasworks_os::{OsError, Result};

/// Bytes, and descriptors that came with them.
#[derive(Debug, Default)]
pub struct Parcel {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The descriptors, in the order in which they were sent.
    pub fds: Vec<OwnedFd>,
}

/// The length of what stands before a parcel: of its bytes, of its descriptors, and whether it is a reason.
const HEAD: usize = 12;
/// More bytes than any parcel has.
const MOST: u32 = 1 << 30;

fn send(
    stream: &Stream,
    reason: bool,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Instant,
) -> Result<()> {
    let len = u32::try_from(bytes.len()).ok().filter(|&len| len <= MOST);
    let len = len.ok_or_else(|| {
        OsError::other("send to", "a rank of this host", format!("{} bytes; at most {MOST}", bytes.len()))
    })?;
    let numbers = [len, fds.len() as u32, reason.into()];
    let head: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    stream.send_fds(&head, &[], deadline)?;
    for part in fds.chunks(MAX_FDS) {
        stream.send_fds(&[0], part, deadline)?;
    }
    stream.send_fds(bytes, &[], deadline)
}

/// Sends a parcel.
pub(super) fn send_parcel(
    stream: &Stream,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Instant,
) -> Result<()> {
    send(stream, false, bytes, fds, deadline)
}

/// Says why no parcel comes. Who does not listen learns it from the end of the connection.
pub(super) fn send_reason(stream: &Stream, why: &str, deadline: Instant) {
    let _ = send(stream, true, why.as_bytes(), &[], deadline);
}

/// What has come: a parcel, or the reason why there is none.
pub(super) type Received = std::result::Result<Parcel, String>;

/// Receives what comes next, with no more than `most_fds` descriptors.
pub(super) fn receive(stream: &Stream, most_fds: usize, deadline: Instant) -> Result<Received> {
    const OPERATION: &str = "receive from";
    let wrong = |what: String| Err(OsError::other(OPERATION, "a rank of this host", what));
    let mut head = [0; HEAD];
    stream.recv_fds(&mut head, 0, deadline)?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (len, wanted, reason) = (number(0), number(4) as usize, number(8));
    if len > MOST || wanted > most_fds || reason > 1 {
        return wrong(format!("a head that announces {len} bytes and {wanted} descriptors"));
    }
    let mut fds = Vec::with_capacity(wanted);
    while fds.len() < wanted {
        let more = stream.recv_fds(&mut [0], (wanted - fds.len()).min(MAX_FDS), deadline)?;
        if more.is_empty() {
            return wrong(format!("{} of {wanted} descriptors", fds.len()));
        }
        fds.extend(more);
    }
    let mut bytes = vec![0; len as usize];
    stream.recv_fds(&mut bytes, 0, deadline)?;
    Ok(match reason {
        0 => Ok(Parcel { bytes, fds }),
        _ => Err(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_os::{memfd, unix};
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn parcels_arrive_with_all_their_descriptors() {
        let (a, b) = unix::pair().expect("a pair");
        let file = memfd::create("parcel", 4096).expect("a file");
        let bytes: Vec<u8> = (0..100_000).map(|i| i as u8).collect();
        for count in [0, 1, MAX_FDS, MAX_FDS + 1] {
            std::thread::scope(|scope| {
                scope.spawn(|| send_parcel(&a, &bytes, &vec![file.as_fd(); count], soon()).expect("sent"));
                let got = receive(&b, count, soon()).expect("received").expect("a parcel");
                assert_eq!((got.fds.len(), got.bytes == bytes), (count, true));
            });
        }
        send_reason(&a, "no more", soon());
        assert_eq!(receive(&b, 0, soon()).expect("received").expect_err("a reason"), "no more");
    }

    #[test]
    fn heads_that_lie_are_refused() {
        let file = memfd::create("parcel", 4096).expect("a file");
        let head = |numbers: [u32; 3]| numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        for (numbers, wanted) in [
            ([MOST + 1, 0, 0], "announces 1073741825 bytes"),
            ([1, 3, 0], "1 bytes and 3 descriptors"),
            ([1, 0, 2], "announces 1 bytes"),
        ] {
            let (a, b) = unix::pair().expect("a pair");
            a.send_fds(&head(numbers), &[], soon()).expect("sent");
            let refused = receive(&b, 2, soon()).expect_err("a lie").to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
        let (a, b) = unix::pair().expect("a pair");
        a.send_fds(&head([1, 2, 0]), &[], soon()).expect("sent");
        a.send_fds(&[0], &[file.as_fd()], soon()).expect("sent");
        a.send_fds(&[0], &[], soon()).expect("sent");
        let refused = receive(&b, 2, soon()).expect_err("one is missing").to_string();
        assert!(refused.contains("1 of 2 descriptors"), "{refused}");
        let (a, b) = unix::pair().expect("a pair");
        a.send_fds(&head([1, 2, 0]), &[], soon()).expect("sent");
        a.send_fds(&[0], &[file.as_fd()], soon()).expect("sent");
        a.send_fds(&[0], &[file.as_fd(); 2], soon()).expect("sent");
        let refused = receive(&b, 2, soon()).expect_err("one too many").to_string();
        assert!(refused.contains("2 descriptors where at most 1 belong"), "{refused}");
        let (a, b) = unix::pair().expect("a pair");
        a.send_fds(&head([1, 0, 0])[..5], &[], soon()).expect("sent");
        drop(a);
        let cut = receive(&b, 2, soon()).expect_err("a head that is cut");
        assert_eq!(cut.cause.kind(), std::io::ErrorKind::UnexpectedEof, "{cut}");
    }
    #[test]
    fn a_parcel_has_at_most_1_gib() {
        let (a, b) = unix::pair().expect("a pair");
        // Zeroes that nobody touches take no memory. What may be sent is sent, but nobody receives it.
        let zeroes = vec![0; MOST as usize + 1];
        let refused = send_parcel(&a, &zeroes, &[], Instant::now()).expect_err("too many").to_string();
        assert!(refused.ends_with("1073741825 bytes; at most 1073741824"), "{refused}");
        let sent = send_parcel(&a, &zeroes[1..], &[], Instant::now()).expect_err("nobody receives it");
        assert!(sent.is_timeout(), "{sent}");
        drop(a);
        let cut = receive(&b, 0, soon()).expect_err("its end never came");
        assert_eq!(cut.cause.kind(), std::io::ErrorKind::UnexpectedEof, "{cut}");
    }
}
