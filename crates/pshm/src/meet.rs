//! How descriptors get from every rank to every other: all connect to the lowest rank, which collects and hands out.
//!
//! The socket's name is random and known through the bootstrap alone; both sides check the other's user, and each
//! rank shows the nonce it announced. A stranger that connects is dropped and costs a moment of the leader's time.

use crate::error::PshmError;
use gasworks_os::memfd::MemFd;
use gasworks_os::unix::{self, Listener, MAX_FDS, Stream};
use gasworks_os::{OsError, random};
use gasworks_sync::kill_point;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Sixteen random bytes by which a rank is recognised.
pub(crate) type Nonce = [u8; 16];

/// The rank that collects and hands out.
pub(crate) const LEADER: u32 = 0;
/// How long a connection may take to introduce itself before it is dropped.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// How much longer than the leader a rank waits for an answer, so that it hears what went wrong there.
const GRACE: Duration = Duration::from_secs(2);
/// The longest cause that the leader tells the others.
const CAUSE: usize = 1000;
/// What a rank sends with its descriptor: its number and its nonce.
const CARD: usize = 4 + size_of::<Nonce>();

/// The name of the leader's socket.
fn address(nonce: &Nonce) -> String {
    format!("gasworks-{}", random::hex(nonce))
}

/// Opens the leader's socket; before anybody is told its name.
pub(crate) fn listen(nonce: &Nonce) -> Result<Listener, PshmError> {
    Ok(unix::listen(&address(nonce))?)
}

/// Exchanges descriptors: gives one, returns one for each rank, in rank order.
///
/// `listener` is the leader's own; a single rank needs none.
pub(crate) fn exchange(
    me: u32,
    file: &MemFd,
    nonces: &[Nonce],
    listener: Option<Listener>,
    allowed: Duration,
) -> Result<Vec<OwnedFd>, PshmError> {
    let deadline = Instant::now() + allowed;
    match listener {
        None if nonces.len() == 1 => Ok(vec![duplicate(file)?]),
        Some(listener) => lead(me, file, nonces, &listener, allowed, deadline),
        None => follow(me, file, nonces, allowed, deadline),
    }
}

fn duplicate(file: &MemFd) -> Result<OwnedFd, PshmError> {
    let copy = file.as_fd().try_clone_to_owned();
    Ok(copy.map_err(|e| OsError::new("duplicate", "the descriptor of a memory file", e))?)
}

fn own_user() -> Result<u32, PshmError> {
    let (mine, _other) = unix::pair()?;
    Ok(mine.peer()?.uid)
}

fn lead(
    me: u32,
    file: &MemFd,
    nonces: &[Nonce],
    listener: &Listener,
    allowed: Duration,
    deadline: Instant,
) -> Result<Vec<OwnedFd>, PshmError> {
    let user = own_user()?;
    let mut fds: Vec<Option<OwnedFd>> = nonces.iter().map(|_| None).collect();
    let mut streams = Vec::with_capacity(nonces.len());
    fds[me as usize] = Some(duplicate(file)?);
    let mut absent = nonces.len() - 1;
    while absent > 0 {
        let stream = match listener.accept(deadline) {
            Ok(stream) => stream,
            Err(error) if error.is_timeout() => {
                let ranks = (0..).zip(&fds).filter(|(_, fd)| fd.is_none()).map(|(rank, _)| rank).collect();
                let missing = PshmError::Missing { ranks, seconds: allowed.as_secs_f64() };
                turn_away(&streams, &missing);
                return Err(missing);
            }
            Err(error) => return Err(error.into()),
        };
        if let Some((rank, fd)) = introduce(&stream, user, nonces, deadline)
            && fds[rank as usize].is_none()
        {
            fds[rank as usize] = Some(fd);
            streams.push((rank, stream));
            absent -= 1;
        }
    }
    kill_point!("pshm.meet.collected");
    let fds: Vec<OwnedFd> = fds.into_iter().flatten().collect();
    let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
    for (rank, stream) in &streams {
        for part in borrowed.chunks(MAX_FDS) {
            let sent = stream.send_fds(&[part.len() as u8], part, deadline);
            sent.map_err(|e| PshmError::Peer {
                rank: *rank,
                cause: format!("it left before it was served: {e}"),
            })?;
        }
        kill_point!("pshm.meet.handed_out");
    }
    Ok(fds)
}

/// Tells the ranks that came why they came in vain. Who does not listen learns it from the end of the connection.
fn turn_away(streams: &[(u32, Stream)], why: &PshmError) {
    let cause = why.to_string();
    let cause = &cause.as_bytes()[..cause.len().min(CAUSE)];
    let answer = [&[0], &(cause.len() as u16).to_le_bytes()[..], cause].concat();
    for (_, stream) in streams {
        let _ = stream.send_fds(&answer, &[], Instant::now() + GRACE / 4);
    }
}

/// Who has connected, and its descriptor; `None` for somebody who does not belong here.
fn introduce(stream: &Stream, user: u32, nonces: &[Nonce], deadline: Instant) -> Option<(u32, OwnedFd)> {
    if stream.peer().ok()?.uid != user {
        return None;
    }
    let mut card = [0; CARD];
    let fds = stream.recv_fds(&mut card, 1, deadline.min(Instant::now() + INTRODUCTION)).ok()?;
    let (rank, nonce) = card.split_first_chunk()?;
    let rank = u32::from_le_bytes(*rank);
    (nonces.get(rank as usize)? == nonce).then_some((rank, fds.into_iter().next()?))
}

fn follow(
    me: u32,
    file: &MemFd,
    nonces: &[Nonce],
    allowed: Duration,
    deadline: Instant,
) -> Result<Vec<OwnedFd>, PshmError> {
    let lost = |cause| PshmError::NoLeader { leader: LEADER, seconds: allowed.as_secs_f64(), cause };
    let stream = unix::connect(&address(&nonces[LEADER as usize]), deadline).map_err(lost)?;
    kill_point!("pshm.meet.connected");
    if stream.peer()?.uid != own_user()? {
        let cause =
            OsError::new("trust socket of", "rank 0", std::io::Error::other("another user listens there"));
        return Err(lost(cause));
    }
    let mut card = [0; CARD];
    card[..4].copy_from_slice(&me.to_le_bytes());
    card[4..].copy_from_slice(&nonces[me as usize]);
    stream.send_fds(&card, &[file.as_fd()], deadline).map_err(lost)?;
    kill_point!("pshm.meet.sent");
    let deadline = deadline + GRACE;
    let mut fds = Vec::with_capacity(nonces.len());
    while fds.len() < nonces.len() {
        let mut count = [0];
        let more = stream.recv_fds(&mut count, MAX_FDS, deadline).map_err(lost)?;
        if count == [0] {
            let mut len = [0; 2];
            stream.recv_fds(&mut len, 0, deadline).map_err(lost)?;
            let mut cause = vec![0; usize::from(u16::from_le_bytes(len)).min(CAUSE)];
            stream.recv_fds(&mut cause, 0, deadline).map_err(lost)?;
            return Err(PshmError::Peer {
                rank: LEADER,
                cause: String::from_utf8_lossy(&cause).into_owned(),
            });
        }
        if more.is_empty() || fds.len() + more.len() > nonces.len() {
            let cause = format!("{} descriptors after {} of {}", more.len(), fds.len(), nonces.len());
            return Err(PshmError::Peer { rank: LEADER, cause });
        }
        fds.extend(more);
    }
    kill_point!("pshm.meet.received");
    Ok(fds)
}
