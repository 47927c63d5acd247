//! The NICs of a host: each shows its window to processes of the same user that know its name, and finds theirs.
//!
//! A thread of each waits at a socket whose name says job, address and instance, and gives whoever connects a descriptor of
//! the window. The connection stays open for as long as both live: so each learns that the other is gone, however it
//! ends.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gasworks_os::eventfd::EventFd;
use gasworks_os::unix::{self, Listener, Stream};
use gasworks_os::{OsError, memfd, process, remote};
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use parking_lot::Mutex;

use crate::memory::Memory;
use crate::nic::{Fabric, Home, Mood, Nic};
use crate::post::Rules;
use crate::process::Process;
use crate::station::Station;
use crate::window::{Shape, Window};

/// How long a peer that is there may take to show its window.
const PATIENCE: Duration = Duration::from_secs(5);
/// After how many milliseconds a NIC on which things take their time is moved on if its client does not look.
const PACE: u8 = 1;
/// What comes with the descriptor.
const GREETING: &[u8] = b"gwnic";

/// By what a NIC is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// What the processes of a job have in common.
    pub cookie: u32,
    /// The same.
    pub ptag: u8,
    /// The host.
    pub address: u32,
    /// Which of the job's NICs on the host.
    pub instance: u32,
}

impl Name {
    /// The name of its socket. Other users' jobs may have the same numbers.
    fn socket(&self) -> String {
        let Self { cookie, ptag, address, instance } = self;
        format!("gasworks-ugni-{}-{cookie:x}-{ptag:x}-{address:x}-{instance:x}", process::user())
    }
}

/// Why a NIC could not be had.
#[derive(Debug)]
pub enum AttachError {
    /// Another process has one of that name.
    Taken,
    /// The system refuses something.
    Os(OsError),
}

impl From<OsError> for AttachError {
    fn from(error: OsError) -> Self {
        Self::Os(error)
    }
}

/// A NIC that other processes of the host find, until this is dropped.
pub struct Attached {
    nic: Nic,
    stop: Arc<Thread>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with the others.
struct Thread {
    wake: EventFd,
    stopped: AtomicBool,
    /// Peers that were found since it last looked.
    found: Mutex<Vec<(Stream, Arc<Peer>)>>,
}

/// The NICs of a host, as one of them finds them.
struct Near {
    name: Name,
    home: Arc<Home>,
    peers: Mutex<BTreeMap<(u32, u32), Arc<Peer>>>,
    thread: Arc<Thread>,
}

/// A NIC of another process.
struct Peer {
    window: Window,
    memory: Process,
}

/// Attaches a NIC of that name to a client whose memory it is.
///
/// # Errors
/// [`AttachError`].
pub fn attach(
    name: Name,
    rules: Rules,
    mood: Mood,
    memory: Arc<dyn Memory>,
) -> Result<Attached, AttachError> {
    remote::admit_all();
    let listener = unix::listen(&name.socket()).map_err(|e| match e.cause.kind() {
        io::ErrorKind::AddrInUse => AttachError::Taken,
        _ => AttachError::Os(e),
    })?;
    let shape = Shape::of(rules.chip);
    let file = memfd::create("gasworks-nic", shape.bytes())?;
    let too_small = || OsError::other("lay out", "the window of a NIC", "the file is too small");
    let window = Window::make(rules.chip, shape, file.map()?).ok_or_else(too_small)?;
    let home = Arc::new(Home::of(window, memory));
    let (stopped, found) = (AtomicBool::new(false), Mutex::default());
    let thread = Arc::new(Thread { wake: EventFd::new()?, stopped, found });
    let (peers, stop) = (Mutex::default(), Arc::clone(&thread));
    let near = Near { name, home: Arc::clone(&home), peers, thread };
    let nic = Nic::new(rules, (name.address, name.instance), home, Arc::new(near), mood);
    let (pumped, shared) = (nic.clone(), Arc::clone(&stop));
    let body = move || {
        // The client's signals are for the client's threads.
        let _ = SigSet::all().thread_block();
        serve(&listener, &file, &shared, (mood != Mood::Plain).then_some(&pumped));
    };
    let thread = std::thread::Builder::new().name("gasworks-nic".into()).spawn(body);
    let thread = thread.map_err(|e| OsError::new("start", "the thread of a NIC", e))?;
    Ok(Attached { nic, stop, thread: Some(thread) })
}

impl Attached {
    /// The NIC.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stop.stopped.store(true, Relaxed);
        let rung = self.stop.wake.ring();
        if let (Some(thread), Ok(())) = (self.thread.take(), rung) {
            let _ = thread.join();
        }
        self.nic.detach();
    }
}

/// What the thread does until it is stopped.
fn serve(listener: &Listener, file: &memfd::MemFd, shared: &Thread, pumped: Option<&Nic>) {
    let (mut guests, mut peers): (Vec<Stream>, Vec<(Stream, Arc<Peer>)>) = Default::default();
    let pace = if pumped.is_some() { PACE.into() } else { PollTimeout::NONE };
    while !shared.stopped.load(Relaxed) {
        let streams = guests.iter().chain(peers.iter().map(|(stream, _)| stream)).map(AsFd::as_fd);
        let all = [shared.wake.as_fd(), listener.as_fd()].into_iter().chain(streams);
        let mut ready: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // Interrupted or not, what is there is looked at.
        let _ = poll(&mut ready, pace);
        // Neither side says anything more: what is readable is at its end.
        let ended: Vec<bool> = ready.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let (guests_ended, peers_ended) = ended[2..].split_at(guests.len());
        let mut at = guests_ended.iter();
        guests.retain(|_| at.next() != Some(&true));
        let mut at = peers_ended.iter();
        peers.retain(|(_, peer)| {
            let ended = at.next() == Some(&true);
            if ended {
                peer.memory.give_up();
            }
            !ended
        });
        shared.wake.clear();
        peers.append(&mut shared.found.lock());
        while let Ok(guest) = listener.accept(Instant::now()) {
            let ours = guest.peer().is_ok_and(|peer| peer.uid == process::user());
            // One that does not take it at once is none of us.
            if ours && guest.send_fds(GREETING, &[file.as_fd()], Instant::now()).is_ok() {
                guests.push(guest);
            }
        }
        if let Some(nic) = pumped {
            nic.progress();
        }
    }
}

impl Near {
    fn meet(&self, name: &Name) -> Result<Arc<Peer>, String> {
        let deadline = Instant::now() + PATIENCE;
        let said = |e: OsError| e.to_string();
        let stream = unix::connect_if_there(&name.socket(), deadline).map_err(said)?;
        let who = stream.peer().map_err(said)?;
        if who.uid != process::user() {
            return Err(format!("process {} is another user's", who.pid));
        }
        let mut greeting = [0; GREETING.len()];
        let file = stream.recv_fds(&mut greeting, 1, deadline).map_err(said)?.pop();
        let file = file.filter(|file| greeting == *GREETING && memfd::is_sealed(file.as_fd()));
        let file = file.ok_or_else(|| format!("process {} shows no window", who.pid))?;
        let len = memfd::size_of_file(file.as_fd()).map_err(said)?.min(Shape::MOST_BYTES as u64);
        let window = Window::open(memfd::map(file.as_fd(), len as usize).map_err(said)?)?;
        let peer = Arc::new(Peer { window, memory: Process::other(who.pid).map_err(said)? });
        self.thread.found.lock().push((stream, Arc::clone(&peer)));
        self.thread.wake.ring().map_err(said)?;
        Ok(peer)
    }
}

impl Fabric for Near {
    fn find(&self, address: u32, instance: u32) -> Option<Arc<dyn Station>> {
        if (address, instance) == (self.name.address, self.name.instance) {
            return Some(self.home.clone());
        }
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get(&(address, instance)).filter(|peer| !peer.is_gone()) {
            return Some(peer.clone());
        }
        // Who is not there may come; a transaction says that it is gone.
        let peer = self.meet(&Name { address, instance, ..self.name }).ok()?;
        peers.insert((address, instance), Arc::clone(&peer));
        Some(peer)
    }
}

impl Station for Peer {
    fn window(&self) -> &Window {
        &self.window
    }

    fn memory(&self) -> &dyn Memory {
        &self.memory
    }

    fn is_gone(&self) -> bool {
        self.memory.is_gone()
    }
}
