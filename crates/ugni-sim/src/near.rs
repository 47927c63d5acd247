//! The NICs of a host: each shows its window to processes of the same user that know its name, and finds theirs.
//!
//! A thread of each, its door, waits at a socket whose name says job, address and instance, and gives whoever connects a descriptor of
//! the window. The connection stays open for as long as both live: it carries datagrams, and by it each learns that the other is
//! gone, however it ends. The door waits for nobody else, so that two who look for each other find each other; what a NIC has to do
//! while its client does something else is done by another thread, its engine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gasworks_gni_sys::GNI_CDM_MODE_FMA_DEDICATED;
use gasworks_os::eventfd::EventFd;
use gasworks_os::unix::{self, Listener, Stream};
use gasworks_os::{OsError, memfd, process, remote};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use parking_lot::{Condvar, Mutex};

use crate::faults::Faults;
use crate::fma;
use crate::letter::{FRAME, Letter};
use crate::memory::Memory;
use crate::nic::{Channel, Cq, Fabric, Home, Mood, Nic};
use crate::post::Rules;
use crate::process::Process;
use crate::station::Station;
use crate::window::{Shape, Window};

/// How long a peer that is there may take to show its window.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a NIC on which things take their time is moved on if its client does not look, and how often queues are looked at of
/// which a client wants to be told.
const PACE: Duration = Duration::from_millis(1);
/// How long the rest of a datagram may take.
const FRAME_PATIENCE: Duration = Duration::from_secs(1);
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
    /// It is to have an FMA descriptor of its own, and the host has no more.
    NoDescriptor,
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
    threads: Arc<Threads>,
    running: Vec<JoinHandle<()>>,
    /// Its own, in a domain that shares none.
    fma: Option<fma::Descriptor>,
}

/// What the threads of a NIC share with its client's.
struct Threads {
    /// Wakes the door.
    bell: EventFd,
    /// Peers that were found since the door last looked.
    found: Mutex<Vec<Arc<Peer>>>,
    orders: Mutex<Orders>,
    /// Wakes the engine.
    ordered: Condvar,
}

/// What the threads are to do.
#[derive(Default)]
struct Orders {
    stop: bool,
    /// A datagram has come.
    letters: bool,
    /// A queue was armed.
    armed: bool,
}

/// The NICs of a host, as one of them finds them.
struct Near {
    name: Name,
    home: Arc<Home>,
    peers: Mutex<BTreeMap<(u32, u32), Arc<Peer>>>,
    threads: Arc<Threads>,
}

/// A NIC of another process.
struct Peer {
    window: Window,
    memory: Process,
    /// What it is told by; that it ends says that the other has gone.
    stream: Stream,
}

/// Attaches a NIC of that name to a client whose memory it is.
///
/// # Errors
/// [`AttachError`].
pub fn attach(
    name: Name,
    rules: Rules,
    memory: Arc<dyn Memory>,
    (mood, faults): (Mood, Arc<Faults>),
) -> Result<Attached, AttachError> {
    remote::admit_all();
    let dedicated = rules.modes & GNI_CDM_MODE_FMA_DEDICATED != 0;
    let fma = dedicated.then(|| fma::Descriptor::take(rules.chip, name.address)).transpose()?;
    let fma = fma.map(|fma| fma.ok_or(AttachError::NoDescriptor)).transpose()?;
    let listener = unix::listen(&name.socket()).map_err(|e| match e.cause.kind() {
        io::ErrorKind::AddrInUse => AttachError::Taken,
        _ => AttachError::Os(e),
    })?;
    let shape = Shape::of(rules.chip);
    let file = memfd::create("gasworks-nic", shape.bytes())?;
    let too_small = || OsError::other("lay out", "the window of a NIC", "the file is too small");
    let window = Window::make(rules.chip, shape, file.map()?).ok_or_else(too_small)?;
    let home = Arc::new(Home::of(window, memory));
    let (bell, found, orders) = (EventFd::new()?, Mutex::default(), Mutex::default());
    let threads = Arc::new(Threads { bell, found, orders, ordered: Condvar::new() });
    let near = Near { name, home: Arc::clone(&home), peers: Mutex::default(), threads: Arc::clone(&threads) };
    let nic = Nic::new(rules, (name.address, name.instance), Arc::clone(&home), Arc::new(near), mood, faults);
    // Should the second not start, the first is stopped again.
    let mut attached = Attached { nic: nic.clone(), threads: Arc::clone(&threads), running: Vec::new(), fma };
    let shared = Arc::clone(&threads);
    attached.start("gasworks-door", move || keep_door(&listener, &file, &shared, &home))?;
    let pace = (mood != Mood::Plain).then_some(PACE);
    attached.start("gasworks-nic", move || run_engine(&nic, &threads, pace))?;
    Ok(attached)
}

impl Attached {
    fn start(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), OsError> {
        let body = || {
            // The client's signals are for the client's threads.
            let _ = SigSet::all().thread_block();
            body();
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(body);
        self.running.push(thread.map_err(|e| OsError::new("start", "a thread of a NIC", e))?);
        Ok(())
    }

    /// Arms a queue, as [`Nic::arm`] does; it is looked at from now on.
    pub fn arm(&self, queue: &Arc<Cq>, channel: &Arc<Channel>, name: u64) {
        self.nic.arm(queue, channel, name);
        self.threads.orders.lock().armed = true;
        self.threads.ordered.notify_one();
    }

    /// Whether it has an FMA descriptor of its own.
    pub fn has_fma_descriptor(&self) -> bool {
        self.fma.is_some()
    }

    /// The NIC.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.threads.orders.lock().stop = true;
        self.threads.ordered.notify_one();
        if self.threads.bell.ring().is_ok() {
            self.running.drain(..).for_each(|thread| drop(thread.join()));
        }
        self.nic.detach();
    }
}

/// What the engine does until it is stopped: what is due after a while, where things take their time, datagrams, and a look at
/// armed queues.
fn run_engine(nic: &Nic, threads: &Threads, pace: Option<Duration>) {
    let mut orders = threads.orders.lock();
    while !orders.stop {
        (orders.letters, orders.armed) = (false, false);
        let watching = parking_lot::MutexGuard::unlocked(&mut orders, || {
            nic.progress();
            nic.serve_datagrams();
            nic.watch()
        });
        match pace.or(watching.then_some(PACE)) {
            _ if orders.stop || orders.letters || orders.armed => {}
            Some(pace) => drop(threads.ordered.wait_for(&mut orders, pace)),
            None => threads.ordered.wait(&mut orders),
        }
    }
}

/// What the door does until it is stopped.
fn keep_door(listener: &Listener, file: &memfd::MemFd, threads: &Threads, home: &Home) {
    let (mut guests, mut peers): (Vec<Stream>, Vec<Arc<Peer>>) = Default::default();
    while !threads.orders.lock().stop {
        let streams = guests.iter().chain(peers.iter().map(|peer| &peer.stream)).map(AsFd::as_fd);
        let all = [threads.bell.as_fd(), listener.as_fd()].into_iter().chain(streams);
        let mut ready: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // Interrupted or not, what is there is looked at.
        let _ = poll(&mut ready, PollTimeout::NONE);
        let ready: Vec<bool> = ready.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let (guests_ready, peers_ready) = ready[2..].split_at(guests.len());
        let mut at = guests_ready.iter();
        guests.retain(|guest| at.next() != Some(&true) || hear(guest, home));
        if guests_ready.contains(&true) {
            threads.orders.lock().letters = true;
            threads.ordered.notify_one();
        }
        // They say nothing: what is readable is at its end.
        let mut at = peers_ready.iter();
        peers.retain(|peer| {
            let ended = at.next() == Some(&true);
            if ended {
                peer.memory.give_up();
            }
            !ended
        });
        threads.bell.clear();
        peers.append(&mut threads.found.lock());
        while let Ok(guest) = listener.accept(Instant::now()) {
            let ours = guest.peer().is_ok_and(|peer| peer.uid == process::user());
            // One that does not take it at once is none of us.
            if ours && guest.send_fds(GREETING, &[file.as_fd()], Instant::now()).is_ok() {
                guests.push(guest);
            }
        }
    }
}

/// Takes in what a guest says; `false` if that is its end, or nonsense.
fn hear(guest: &Stream, home: &Home) -> bool {
    let mut frame = [0; FRAME];
    let heard = guest.recv_fds(&mut frame, 0, Instant::now() + FRAME_PATIENCE);
    heard.is_ok() && Letter::decode(&frame).is_some_and(|letter| home.deliver(&letter))
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
        let peer = Arc::new(Peer { window, memory: Process::other(who.pid).map_err(said)?, stream });
        self.threads.found.lock().push(Arc::clone(&peer));
        self.threads.bell.ring().map_err(said)?;
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

    fn deliver(&self, letter: &Letter) -> bool {
        !self.is_gone() && self.stream.send_fds(&letter.encode(), &[], Instant::now()).is_ok()
    }

    fn is_gone(&self) -> bool {
        self.memory.is_gone()
    }
}
