//! How the ranks of a host find each other.
//!
//! Which ranks share a host is not what a launcher says: some are wrong, and some call one host several. Every rank tries
//! to listen under one name in the abstract name space, which only the ranks of this job know. Who succeeds *leads*; the
//! others, who find the name taken, connect to it. After a fence all who are coming have come. Who cannot attach is
//! elsewhere, whatever else it shares.
//!
//! Names belong to a network name space, and each rank may have one of its own. So `gasrun`, where it starts all ranks of a
//! job, leaves them a way to rank 0 besides, which leads there from anywhere.
//!
//! Everybody on the machine can read the name. A thread takes in who comes as they come and sends strangers away, so that
//! they do not fill the queue before the last rank is there.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gasworks_os::eventfd::EventFd;
use gasworks_os::limits::{MoreDescriptors, more_descriptors};
use gasworks_os::unix::{self, Connector, Listener, Stream};
use gasworks_os::{process, random, threads};
use gasworks_sync::kill_point;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::parcel::{Parcel, receive, send_parcel};
use super::{GRACE, Host, Lines, lost};
use crate::lifeline::Line;
use crate::settings::MEETING;
use crate::{Bootstrap, BootstrapError};

const MEET: &str = "meet the ranks of this host";
/// How long one that has connected may take to say who it is: it does so at once.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(2);
/// Between two looks at a name that is taken where nobody listens.
const BRIEF: Duration = Duration::from_millis(1);
/// Descriptors beyond those for each rank.
const SPARE: u64 = 64;
/// Enough for a thread that accepts connections.
const STACK: usize = 128 << 10;

/// What a launcher of ours has left open for the ranks that it has started on one host.
#[derive(Debug)]
pub(crate) enum Inherited {
    /// For rank 0.
    Listener(Listener),
    /// For the others.
    Connector(Connector),
}

impl Inherited {
    /// For a rank of a launcher of ours; `None` if that has left nothing, or it did not come through.
    pub(crate) fn for_rank(rank: u32) -> Result<Option<Self>, BootstrapError> {
        let Some(number) = MEETING.number()? else { return Ok(None) };
        let number = i32::try_from(number).unwrap_or(-1);
        let inherited = if rank == 0 {
            Listener::inherited(number).map(Self::Listener)
        } else {
            Connector::inherited(number).map(Self::Connector)
        };
        Ok(inherited.ok())
    }
}

/// The name under which the ranks of a host meet.
pub(super) fn address(nonce: &[u8]) -> String {
    format!("gasworks-{}", random::hex(nonce))
}

/// Finds the ranks of this host, by what the launcher has left them as `inherited` too; gives also the connections for the end, one for each of
/// those for the rest.
pub(crate) fn meet(
    job: &dyn Bootstrap,
    limit: Duration,
    inherited: Option<Inherited>,
) -> Result<(Host, Lines), BootstrapError> {
    const KEY: &str = "host";
    let me = job.rank();
    if job.size() == 1 {
        return Ok((Host::alone(me), Lines { leads: true, ..Lines::default() }));
    }
    let (listener, connector) = match inherited {
        Some(Inherited::Listener(listener)) => (Some(listener), None),
        Some(Inherited::Connector(connector)) => (None, Some(connector)),
        None => (None, None),
    };
    // Everybody learns a name from rank 0, which listens before anybody can know it: so rank 0 leads where it is. The name of
    // the job would not do: launchers in other name spaces of processes use the same ones.
    let mut place = None;
    if me == 0 {
        let nonce = random::nonce()?;
        let listeners = [unix::listen(&address(&nonce))?].into_iter().chain(listener).collect();
        place = Some(Place::leading(me, job.size(), listeners)?);
        job.put(KEY, &nonce)?;
    }
    kill_point!("host.named");
    job.fence()?;
    let place = match place {
        Some(place) => place,
        None => come(job, connector, &address(&job.get(0, KEY)?), limit)?,
    };
    kill_point!("host.come");
    job.fence()?;
    kill_point!("host.fenced");
    let deadline = Instant::now() + limit;
    match place {
        Place::Leader(acceptor, _room) => welcome(me, acceptor.guests()?, deadline),
        Place::Guest(stream) => follow(me, stream, deadline + GRACE),
    }
}

/// A rank's place when the ranks of a host meet.
enum Place {
    /// It takes in the others, and has room for them.
    Leader(Acceptor, MoreDescriptors),
    /// It has come to the one that does.
    Guest(Stream),
}

impl Place {
    fn leading(me: u32, ranks: u32, listeners: Vec<Listener>) -> Result<Self, BootstrapError> {
        // Two connections to each, and what tells of its end.
        let room = more_descriptors(3 * u64::from(ranks) + SPARE);
        Ok(Self::Leader(Acceptor::start(me, ranks, listeners)?, room))
    }
}

/// Those who have come, by rank.
pub(super) type Guests = Vec<(u32, Stream)>;

/// Takes in those who come, on a thread of its own.
pub(super) struct Acceptor {
    closing: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    found: std::sync::mpsc::Receiver<gasworks_os::Result<Guests>>,
}

impl Acceptor {
    pub(super) fn start(me: u32, ranks: u32, listeners: Vec<Listener>) -> Result<Self, BootstrapError> {
        let closing = Arc::new(EventFd::new()?);
        let told = Arc::clone(&closing);
        let (tell, found) = std::sync::mpsc::channel();
        let body = move || {
            // Nobody listens any more where the meeting has failed.
            let _ = tell.send(take_in(me, ranks, &listeners, &told));
        };
        let thread = threads::start("gasworks-meeting", Some(STACK), body);
        let thread = thread.map_err(|source| BootstrapError::Io { during: MEET, source })?;
        Ok(Self { closing, thread: Some(thread), found })
    }

    /// Those who have come, now that all have who will.
    pub(super) fn guests(self) -> Result<Guests, BootstrapError> {
        self.closing.ring()?;
        let gone = |_| BootstrapError::protocol(MEET, "nobody has taken them in");
        Ok(self.found.recv().map_err(gone)??)
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // It can only be full, and then the thread knows.
        let _ = self.closing.ring();
        if let Some(thread) = self.thread.take() {
            // A panic there has ended this process.
            let _ = thread.join();
        }
    }
}

/// Takes in who comes to one of `listeners` until `closing` is rung; then who has come by then. Who does not belong here is sent away.
pub(super) fn take_in(
    me: u32,
    ranks: u32,
    listeners: &[Listener],
    closing: &EventFd,
) -> gasworks_os::Result<Guests> {
    let mut guests = Guests::new();
    loop {
        // Looked at first: who came before it was rung is in a queue now.
        let last = closing.clear() > 0;
        for listener in listeners {
            while let Some(stream) = next(listener)? {
                if let Some(rank) = introduce(&stream, listener.is_hidden())
                    && rank != me
                    && rank < ranks
                    && guests.iter().all(|(other, _)| *other != rank)
                {
                    guests.push((rank, stream));
                }
            }
        }
        if last {
            return Ok(guests);
        }
        let watched = listeners.iter().map(AsFd::as_fd).chain([closing.as_fd()]);
        let mut watched: Vec<_> = watched.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(gasworks_os::OsError::new("wait for", "the ranks of this host", e)),
        }
    }
}

/// Who has come next to a listener, if anybody has.
fn next(listener: &Listener) -> gasworks_os::Result<Option<Stream>> {
    match listener.accept(Instant::now()) {
        Ok(stream) => Ok(Some(stream)),
        Err(e) if e.is_timeout() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Comes by the connector, or by the name.
fn come(
    job: &dyn Bootstrap,
    connector: Option<Connector>,
    name: &str,
    limit: Duration,
) -> Result<Place, BootstrapError> {
    let deadline = Instant::now() + limit;
    // Without /proc there is only the name.
    let stream = match connector.and_then(|connector| connector.connect(deadline).ok()) {
        Some(stream) => stream,
        None => match go(name, deadline)? {
            Gone::Found(stream) if stream.peer()?.uid != process::user() => {
                let what = "another user listens under the name of this job";
                return Err(BootstrapError::protocol(MEET, what));
            }
            Gone::Found(stream) => stream,
            Gone::Taken(listener) => return Place::leading(job.rank(), job.size(), vec![listener]),
        },
    };
    stream.send_fds(&job.rank().to_le_bytes(), &[], deadline)?;
    Ok(Place::Guest(stream))
}

/// What came of a name.
pub(super) enum Gone {
    /// This rank has taken it.
    Taken(Listener),
    /// Somebody has it, and this leads there.
    Found(Stream),
}

/// Takes the name, or goes to whoever has it. A name that is taken where nobody listens has only just been taken, or is
/// of one that ended meanwhile, and then it is free again.
pub(super) fn go(name: &str, deadline: Instant) -> gasworks_os::Result<Gone> {
    loop {
        match unix::listen(name) {
            Ok(listener) => return Ok(Gone::Taken(listener)),
            Err(e) if e.cause.kind() == io::ErrorKind::AddrInUse => {}
            Err(e) => return Err(e),
        }
        match unix::connect_if_there(name, deadline) {
            Ok(stream) => return Ok(Gone::Found(stream)),
            Err(e) if e.cause.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < deadline => {
                std::thread::sleep(BRIEF);
            }
            Err(e) => return Err(e),
        }
    }
}

/// At the leader: tells each of those that have come who is there.
pub(super) fn welcome(
    me: u32,
    mut guests: Guests,
    deadline: Instant,
) -> Result<(Host, Lines), BootstrapError> {
    guests.sort_by_key(|(rank, _)| *rank);
    let mut ranks: Vec<u32> = guests.iter().map(|(rank, _)| *rank).chain([me]).collect();
    ranks.sort_unstable();
    let list: Vec<u8> = [me].iter().chain(&ranks).flat_map(|rank| rank.to_le_bytes()).collect();
    let mut lines = Vec::with_capacity(guests.len());
    for (rank, stream) in &guests {
        let (ours, theirs) = unix::pair()?;
        send_parcel(stream, &list, &[theirs.as_fd()], deadline).map_err(|e| lost(*rank, e))?;
        lines.push((*rank, Line::new(ours, stream.peer()?.pid)));
        kill_point!("host.welcomed");
    }
    Ok((
        Host::of(me, me, ranks, guests.into_iter().map(|(_, stream)| stream).collect()),
        Lines { lines, leads: true, ..Lines::default() },
    ))
}

/// Who has connected; `None` for somebody who does not belong here.
fn introduce(stream: &Stream, is_known: bool) -> Option<u32> {
    // A user may have another number in the name spaces of each rank; who knows the way has been given it.
    if !is_known && stream.peer().ok()?.uid != process::user() {
        return None;
    }
    let mut rank = [0; 4];
    stream.recv_fds(&mut rank, 0, Instant::now() + INTRODUCTION).ok()?;
    Some(u32::from_le_bytes(rank))
}

/// Elsewhere: hears who is there.
pub(super) fn follow(me: u32, stream: Stream, deadline: Instant) -> Result<(Host, Lines), BootstrapError> {
    let wrong = |what: String| BootstrapError::protocol(MEET, what);
    let welcome = receive(&stream, 1, deadline).map_err(|e| wrong(format!("its leader: {e}")))?;
    let Parcel { bytes, mut fds } = welcome.map_err(wrong)?;
    let mut numbers = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let (leader, ranks) = (numbers.next(), numbers.collect::<Vec<u32>>());
    let sound = ranks.is_sorted_by(|a, b| a < b) && ranks.contains(&me);
    let (Some(leader), Some(line), true) = (leader.filter(|l| ranks.contains(l)), fds.pop(), sound) else {
        return Err(wrong("its leader sent something that is no list of ranks".into()));
    };
    kill_point!("host.met");
    let line = Line::new(Stream::adopt(line, "lifeline")?, stream.peer()?.pid);
    let lines = Lines { lines: vec![(leader, line)], ..Lines::default() };
    Ok((Host::of(me, leader, ranks, vec![stream]), lines))
}
