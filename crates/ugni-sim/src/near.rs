//! The NICs of a host: each shows its window to processes of the same user that know its name, and finds theirs.
//!
//! A thread of each, its door, waits at a socket whose name says job, address and instance, and gives whoever connects a descriptor of
//! the window. The connection stays open for as long as both live: it carries letters, and by it each learns that the other is
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
use gasworks_os::{OsError, memfd, process, remote, threads};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::{Condvar, Mutex};

use crate::far::{Gate, Waker};
use crate::faults::Faults;
use crate::fma;
use crate::letter::{FRAME, Letter};
use crate::memory::Memory;
use crate::neighbours;
use crate::nic::{Channel, Cq, Fabric, Home, Mood, Nic};
use crate::post::Rules;
use crate::process::Process;
use crate::shares::Shares;
use crate::station::{Shown, Station};
use crate::window::{Shape, Window};

/// How long a peer that is there may take to show its window.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a NIC on which things take their time, or that could not send all, is moved on if its client does not look.
const PACE: Duration = Duration::from_millis(1);
/// How often queues are looked at of which a client wants to be told, which may sleep meanwhile.
const LOOK: Duration = Duration::from_micros(100);
/// After so many looks in vain it does not hurry any more.
const LOOKS: u32 = 200;
/// How long the rest of a letter may take.
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
        format!("{}{:x}", self.node(), self.instance)
    }

    /// With what the names of all begin that the job has at its address.
    fn node(&self) -> String {
        let Self { cookie, ptag, address, .. } = self;
        format!("gasworks-ugni-{}-{cookie:x}-{ptag:x}-{address:x}-", process::user())
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
    /// Where those of other hosts find it, and under which name.
    gate: Option<(Arc<Gate>, Name)>,
}

/// The way to NICs of other hosts.
#[derive(Clone, Default)]
pub struct Wire {
    /// The gate of this process, if the job has other hosts.
    pub gate: Option<Arc<Gate>>,
    /// Whether all others are reached through it, those of this host too.
    pub always: bool,
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

impl Threads {
    fn call_the_engine(&self) {
        self.orders.lock().letters = true;
        self.ordered.notify_one();
    }
}

/// What the threads are to do.
#[derive(Default)]
struct Orders {
    stop: bool,
    /// A letter has come, or whoever could send one has gone.
    letters: bool,
    /// A queue was armed.
    armed: bool,
}

/// The NICs of a host, as one of them finds them.
struct Near {
    name: Name,
    home: Arc<Home>,
    peers: Mutex<BTreeMap<(u32, u32), Arc<dyn Station>>>,
    /// Those whose windows were looked into, whatever way transactions take.
    neighbours: Mutex<BTreeMap<Name, Arc<Peer>>>,
    threads: Arc<Threads>,
    wire: Wire,
    wake: Waker,
}

/// A NIC of another process.
struct Peer {
    window: Window,
    memory: Process,
    shares: Shares,
    /// What it is told by; that it ends says that the other has gone.
    stream: Stream,
}

/// Attaches a NIC of that name to a client whose memory it is. Those of other hosts it reaches by the wire.
///
/// # Errors
/// [`AttachError`].
pub fn attach(
    name: Name,
    rules: Rules,
    memory: Arc<dyn Memory>,
    (mood, faults): (Mood, Arc<Faults>),
    wire: &Wire,
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
    let woken = Arc::clone(&threads);
    let wake: Waker = Arc::new(move || woken.call_the_engine());
    let near = Near {
        name,
        home: Arc::clone(&home),
        peers: Mutex::default(),
        neighbours: Mutex::default(),
        threads: Arc::clone(&threads),
        wire: wire.clone(),
        wake: Arc::clone(&wake),
    };
    let nic = Nic::new(rules, (name.address, name.instance), Arc::clone(&home), Arc::new(near), mood, faults);
    // Should the second not start, the first is stopped again.
    let (running, gate) = (Vec::new(), wire.gate.clone().map(|gate| (gate, name)));
    let mut attached = Attached { nic: nic.clone(), threads: Arc::clone(&threads), running, fma, gate };
    let (shared, shown) = (Arc::clone(&threads), Arc::clone(&home));
    attached.start("gasworks-door", move || keep_door(&listener, &file, &shared, &home))?;
    let pace = (mood != Mood::Plain).then_some(PACE);
    attached.start("gasworks-nic", move || run_engine(&nic, &threads, pace))?;
    if let Some(gate) = &wire.gate {
        gate.show(name, shown, wake);
    }
    Ok(attached)
}

impl Attached {
    fn start(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), OsError> {
        let thread = threads::start(name, None, body);
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
        if let Some((gate, name)) = &self.gate {
            gate.leave(name);
        }
        self.threads.orders.lock().stop = true;
        self.threads.ordered.notify_one();
        if self.threads.bell.ring().is_ok() {
            self.running.drain(..).for_each(|thread| drop(thread.join()));
        }
        self.nic.detach();
    }
}

/// What the engine does until it is stopped: what is due after a while, where things take their time, letters, and a look at armed
/// queues.
fn run_engine(nic: &Nic, threads: &Threads, pace: Option<Duration>) {
    let mut orders = threads.orders.lock();
    let mut looks = 0u32;
    while !orders.stop {
        // A client that sleeps asks anew before long; one that does something else leaves its queue armed.
        looks = if orders.armed { 0 } else { looks.saturating_add(1) };
        (orders.letters, orders.armed) = (false, false);
        let waits = parking_lot::MutexGuard::unlocked(&mut orders, || {
            nic.progress();
            // Both, whatever the first says.
            let unsent = nic.serve_letters().then_some(PACE);
            nic.watch().then_some(if looks < LOOKS { LOOK } else { PACE }).or(unsent)
        });
        match waits.or(pace) {
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
            threads.call_the_engine();
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
        if peers_ready.contains(&true) {
            threads.call_the_engine();
        }
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
        let own = self.home.memory().process().filter(|own| own.is_of(who.pid));
        let memory = own.map_or_else(|| Process::other(who.pid).map_err(said), |own| Ok(own.twin()))?;
        let peer = Arc::new(Peer { window, shares: Shares::of(memory.remote()), memory, stream });
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
            return Some(Arc::clone(peer));
        }
        // Who is not there may come; a transaction says that it is gone.
        let name = Name { address, instance, ..self.name };
        let near = if self.wire.always { None } else { self.meet(&name).ok() };
        let far = || self.wire.gate.as_ref()?.find(&name, &self.wake);
        let peer = near.map(|peer| peer as Arc<dyn Station>).or_else(far)?;
        peers.insert((address, instance), Arc::clone(&peer));
        Some(peer)
    }

    fn neighbours(&self, address: u32) -> Vec<(u32, Arc<dyn Shown>)> {
        let mut known = self.neighbours.lock();
        known.retain(|_, peer| !peer.has_gone());
        let meet = |instance: u32| -> Option<(u32, Arc<dyn Shown>)> {
            let name = Name { address, instance, ..self.name };
            if name == self.name {
                return Some((instance, self.home.clone()));
            }
            let peer = match known.get(&name) {
                Some(peer) => Arc::clone(peer),
                None => self.meet(&name).ok()?,
            };
            known.insert(name, Arc::clone(&peer));
            Some((instance, peer))
        };
        neighbours::named(&Name { address, ..self.name }.node()).into_iter().filter_map(meet).collect()
    }

    fn wake(&self) {
        self.threads.call_the_engine();
    }
}

impl Shown for Peer {
    fn window(&self) -> &Window {
        &self.window
    }

    fn memory(&self) -> &dyn Memory {
        &self.memory
    }

    fn shares(&self) -> Option<&Shares> {
        Some(&self.shares)
    }

    fn take_in(&self, letter: &Letter) -> bool {
        !self.is_gone() && self.stream.send_fds(&letter.encode(), &[], Instant::now()).is_ok()
    }

    fn has_gone(&self) -> bool {
        self.memory.is_gone()
    }
}
