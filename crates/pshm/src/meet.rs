//! How descriptors get from every rank to every other: all connect to the lowest rank, which collects and hands out,
//! and adds that of the file with everybody's card.
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

/// What the leader brings besides its own file: its socket, unless it is alone, and the file of cards.
#[derive(Debug)]
pub(crate) struct Lead {
    pub listener: Option<Listener>,
    pub cards: MemFd,
}

/// The descriptors that every rank has in the end.
#[derive(Debug)]
pub(crate) struct Met {
    /// The file of cards.
    pub cards: OwnedFd,
    /// Everybody's own file, in rank order.
    pub files: Vec<OwnedFd>,
}

/// Exchanges descriptors: every rank gives its own, the leader that of the cards as well.
pub(crate) fn exchange(
    me: u32,
    file: &MemFd,
    nonces: &[Nonce],
    lead: Option<Lead>,
    allowed: Duration,
) -> Result<Met, PshmError> {
    let deadline = Instant::now() + allowed;
    match lead {
        Some(Lead { listener: Some(listener), cards }) => {
            let files = collect(me, file, nonces, &listener, allowed, deadline)?;
            hand_out(cards, files, deadline)
        }
        Some(Lead { listener: None, cards }) => {
            Ok(Met { cards: cards.into_fd(), files: vec![duplicate(file)?] })
        }
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

/// The files of all ranks, and the connections of those that came for them.
struct Collected {
    files: Vec<OwnedFd>,
    streams: Vec<(u32, Stream)>,
}

fn collect(
    me: u32,
    file: &MemFd,
    nonces: &[Nonce],
    listener: &Listener,
    allowed: Duration,
    deadline: Instant,
) -> Result<Collected, PshmError> {
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
    Ok(Collected { files: fds.into_iter().flatten().collect(), streams })
}

fn hand_out(cards: MemFd, collected: Collected, deadline: Instant) -> Result<Met, PshmError> {
    let Collected { files, streams } = collected;
    let cards = cards.into_fd();
    let borrowed: Vec<BorrowedFd<'_>> = std::iter::once(&cards).chain(&files).map(AsFd::as_fd).collect();
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
    Ok(Met { cards, files })
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
) -> Result<Met, PshmError> {
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
    let wanted = 1 + nonces.len();
    let mut fds = Vec::with_capacity(wanted);
    while fds.len() < wanted {
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
        if more.is_empty() || fds.len() + more.len() > wanted {
            let cause = format!("{} descriptors after {} of {wanted}", more.len(), fds.len());
            return Err(PshmError::Peer { rank: LEADER, cause });
        }
        fds.extend(more);
    }
    kill_point!("pshm.meet.received");
    let files = fds.split_off(1);
    let cards =
        fds.pop().ok_or_else(|| PshmError::Peer { rank: LEADER, cause: "no descriptor came".into() })?;
    Ok(Met { cards, files })
}
