//! The gate of a process: where NICs of other hosts come in, and through which its own go out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use gasworks_os::{OsError, threads};
use gasworks_sock::{Error, Event, HostDescription, Op, Options, Set, Sock};
use gasworks_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;

use super::Waker;
use super::frame::{Ask, HEAD, Head, PIECE, SECRET, answer};
use super::line::Line;
use super::peer::{Found, Peer};
use crate::entry::Status;
use crate::near::Name;
use crate::nic::{Home, may_be_of_kin};
use crate::station::{Station, Want, reach};

/// How long a host may take to answer, and to take what was sent to it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many may be connected and have shown no secret; beyond these who came first is dropped.
const MOST_STRANGERS: usize = 256;
/// How much is read at a time.
const READ: usize = PIECE as usize + 4096;

/// What may be asked of a NIC here.
struct Host {
    home: Arc<Home>,
    wake: Waker,
}

/// Where a process of another host is to be found.
struct Route {
    rank: usize,
    address: u32,
    place: HostDescription,
}

/// What the thread shares with the others.
struct Shared {
    set: Set,
    stop: AtomicBool,
    /// Told once all ranks have met.
    secret: OnceLock<[u8; SECRET]>,
    hosts: Mutex<BTreeMap<Name, Arc<Host>>>,
    /// Connections of which the thread has taken no note yet.
    found: Mutex<Vec<Found>>,
}

/// The gate of a process.
pub struct Gate {
    shared: Arc<Shared>,
    place: HostDescription,
    routes: Mutex<Vec<Route>>,
    /// Its socks' user words: the listener's is below.
    next: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// The user word of the first connection.
const FIRST: u64 = 1;

impl Gate {
    /// Opens it, on all interfaces.
    ///
    /// # Errors
    /// The system refuses a port or a thread, or cannot say where this host is.
    pub fn open() -> Result<Arc<Self>, OsError> {
        let failed = |error: Error| OsError::other("open", "the gate of a NIC", error.to_string());
        let set = Set::with(Options {
            unacknowledged: Some(PATIENCE),
            connect_limit: PATIENCE,
            ..Options::default()
        });
        let set = set.map_err(failed)?;
        let (listener, port) = set.listen_everywhere(0).map_err(failed)?;
        let place = HostDescription::local().map_err(failed)?.with_port(port);
        let (hosts, found) = (Mutex::default(), Mutex::default());
        let stop = AtomicBool::new(false);
        let shared = Arc::new(Shared { set, stop, secret: OnceLock::new(), hosts, found });
        let next = Arc::new(AtomicU64::new(FIRST));
        let mut keeper = Keeper::new(Arc::clone(&shared), listener, Arc::clone(&next));
        let thread = threads::start("gasworks-gate", None, move || keeper.run());
        let thread = Some(thread.map_err(|e| OsError::new("start", "the thread of a gate", e))?);
        Ok(Arc::new(Self { shared, place, routes: Mutex::default(), next, thread }))
    }

    /// Where it is: what the others are to be told.
    pub fn place(&self) -> String {
        self.place.to_string()
    }

    /// All ranks have met: the secret that they have in common, and for each the address of its NIC and where its gate is; of one
    /// that has none, nothing.
    ///
    /// # Errors
    /// What is wrong with a place.
    pub fn learn(&self, secret: [u8; SECRET], ranks: &[(u32, &str)]) -> Result<(), String> {
        let own = self.place();
        let others = ranks.iter().enumerate().filter(|(_, (_, place))| !place.is_empty() && *place != own);
        let routes = others.map(|(rank, &(address, place))| {
            let place = HostDescription::parse(place).map_err(|e| e.to_string())?;
            Ok(Route { rank, address, place })
        });
        *self.routes.lock() = routes.collect::<Result<_, String>>()?;
        // Nobody is heard before.
        let _ = self.shared.secret.set(secret);
        Ok(())
    }

    /// A NIC here is to be found, until it [leaves](Self::leave).
    pub(crate) fn show(&self, name: Name, home: Arc<Home>, wake: Waker) {
        self.shared.hosts.lock().insert(name, Arc::new(Host { home, wake }));
    }

    /// It is to be found no more, and nobody hears of it.
    pub(crate) fn leave(&self, name: &Name) {
        self.shared.hosts.lock().remove(name);
        self.shared.set.wakeup();
    }

    /// A NIC of another host, if it is there (far.2). The likeliest place is that of the rank of its instance.
    pub(crate) fn find(&self, name: &Name, wake: &Waker) -> Option<Arc<dyn Station>> {
        let secret = *self.shared.secret.get()?;
        let mut ranks: Vec<usize> = {
            let routes = self.routes.lock();
            let there = routes.iter().filter(|route| route.address == name.address);
            there.map(|route| route.rank).collect()
        };
        ranks.sort_by_key(|rank| *rank != name.instance as usize);
        ranks.into_iter().find_map(|rank| {
            let peer = self.connect(rank, wake)?;
            peer.ask(&Ask::Hello(secret, *name)).ok()?;
            Some(peer as Arc<dyn Station>)
        })
    }

    /// A connection to the gate of a rank, as far as it has been begun: what is asked over it waits for it, or fails with it.
    fn connect(&self, rank: usize, wake: &Waker) -> Option<Arc<Peer>> {
        let addresses = {
            let routes = self.routes.lock();
            let route = routes.iter().find(|route| route.rank == rank)?;
            route.place.addresses(0).ok()?
        };
        let user = self.next.fetch_add(1, Relaxed);
        // Its events wait for the thread to take note of it.
        let mut found = self.shared.found.lock();
        let sock = self.shared.set.post_connect_to(user, addresses).ok()?;
        let peer = Arc::new(Peer::new(Line::new(sock, false), Arc::clone(wake)));
        found.push((user, Arc::clone(&peer)));
        Some(peer)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        self.shared.set.wakeup();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The other end of a connection.
enum Other {
    /// Has not shown the secret.
    Stranger,
    /// Asks for things.
    Guest(Name, Arc<Host>),
    /// Is asked.
    Peer(Weak<Peer>),
}

/// A connection, for the thread.
struct Connection {
    other: Other,
    /// Its own, unless a peer has it.
    line: Option<Line>,
    inbox: Vec<u8>,
}

/// The thread's own.
struct Keeper {
    shared: Arc<Shared>,
    listener: Sock,
    next: Arc<AtomicU64>,
    all: BTreeMap<u64, Connection>,
    strangers: VecDeque<u64>,
}

impl Keeper {
    fn new(shared: Arc<Shared>, listener: Sock, next: Arc<AtomicU64>) -> Self {
        Self { shared, listener, next, all: BTreeMap::new(), strangers: VecDeque::new() }
    }

    fn run(&mut self) {
        // Its set is destroyed by nobody else while it runs.
        while let Ok(event) = self.shared.set.wait(None) {
            if self.shared.stop.load(Relaxed) {
                break;
            }
            if let Some(event) = event {
                self.take_note();
                self.event(event);
            }
        }
        self.take_note();
        for Connection { other, .. } in std::mem::take(&mut self.all).into_values() {
            other.end();
        }
    }

    /// Of connections that were begun since.
    fn take_note(&mut self) {
        for (user, peer) in self.shared.found.lock().drain(..) {
            self.all.insert(user, Connection::new(Other::Peer(Arc::downgrade(&peer)), None));
        }
    }

    fn event(&mut self, mut event: Event) {
        let user = event.user;
        match event.op {
            Op::Accept => self.accept(),
            Op::Wakeup => self.look_who_left(),
            Op::Close => {
                if let Some(connection) = self.all.remove(&user) {
                    connection.other.end();
                }
                self.strangers.retain(|stranger| *stranger != user);
            }
            Op::Connect | Op::Write | Op::Read => {
                let Some(connection) = self.all.get_mut(&user) else { return };
                let well = event.error.is_none()
                    && connection.with_line(|line| match event.op {
                        Op::Connect => line.open().is_ok() && listen(line, vec![0; FIRST_READ]),
                        Op::Write => {
                            line.sent();
                            true
                        }
                        _ => true,
                    });
                if !(well && (event.op != Op::Read || self.hear(user, &mut event))) {
                    self.drop_one(user);
                }
            }
            Op::Readable | Op::Writable => {}
        }
    }

    fn accept(&mut self) {
        let user = self.next.fetch_add(1, Relaxed);
        // What is gone again was not there.
        let Ok(sock) = self.shared.set.accept(&self.listener, user) else { return };
        let line = Line::new(sock, true);
        let listening = listen(&line, vec![0; FIRST_READ]);
        self.all.insert(user, Connection::new(Other::Stranger, Some(line)));
        if !listening {
            return self.drop_one(user);
        }
        self.strangers.push_back(user);
        if self.strangers.len() > MOST_STRANGERS
            && let Some(first) = self.strangers.pop_front()
        {
            self.drop_one(first);
        }
    }

    /// Its close is the last that is heard of it.
    fn drop_one(&mut self, user: u64) {
        if let Some(connection) = self.all.get(&user) {
            connection.other.end();
            connection.with_line(|line| {
                line.close();
                true
            });
        }
    }

    fn look_who_left(&mut self) {
        let hosts = self.shared.hosts.lock();
        let left = self.all.iter().filter(|(_, connection)| match &connection.other {
            Other::Guest(name, host) => !hosts.get(name).is_some_and(|now| Arc::ptr_eq(now, host)),
            _ => false,
        });
        let left: Vec<u64> = left.map(|(user, _)| *user).collect();
        drop(hosts);
        left.into_iter().for_each(|user| self.drop_one(user));
    }

    /// Takes in what was read, and reads on; `false`: it was nonsense (far.5).
    fn hear(&mut self, user: u64, event: &mut Event) -> bool {
        let Some(mut connection) = self.all.remove(&user) else { return false };
        connection.inbox.extend_from_slice(event.data());
        let full = event.bytes;
        let mut buffer = event.take_buffer();
        if full == buffer.len() {
            buffer.resize((4 * full).min(READ), 0);
        }
        let (mut at, mut well) = (0, true);
        while well && let Some(head) = connection.inbox[at..].first_chunk::<HEAD>() {
            let Some(head) = Head::decode(head) else {
                well = false;
                break;
            };
            let (begin, end) = (at + HEAD, at + HEAD + head.len);
            let Some(body) = connection.inbox.get(begin..end) else { break };
            let line = connection.line.as_ref();
            well = match (&connection.other, line) {
                (Other::Stranger, Some(line)) => match self.greet(&head, body, line) {
                    Some(Other::Stranger) => true,
                    Some(guest) => {
                        connection.other = guest;
                        self.strangers.retain(|stranger| *stranger != user);
                        true
                    }
                    None => false,
                },
                (Other::Guest(name, host), Some(line)) => self.serve(&head, body, (name, host), line),
                (Other::Peer(peer), _) => {
                    let peer = peer.upgrade();
                    let heard =
                        |peer: Arc<Peer>| peer.answer(head.number, head.answer()?, body).then_some(());
                    peer.and_then(heard).is_some()
                }
                (_, None) => false,
            };
            at = end;
        }
        connection.inbox.drain(..at);
        well = well && connection.with_line(|line| listen(line, buffer));
        self.all.insert(user, connection);
        well
    }

    /// What a stranger becomes who shows the secret (far.3).
    fn greet(&self, head: &Head, body: &[u8], line: &Line) -> Option<Other> {
        let Some(Ask::Hello(shown, name)) = Ask::decode(head, body) else { return None };
        let secret = self.shared.secret.get()?;
        let differs = shown.iter().zip(secret).fold(0, |differs, (a, b)| differs | (a ^ b));
        if differs != 0 {
            return None;
        }
        let host = self.shared.hosts.lock().get(&name).cloned();
        let status = if host.is_some() { Status::Ok } else { Status::Gone };
        line.send(&answer(head.number, status, &[]));
        // Who is told that nobody is here goes by itself, or is dropped when there are more.
        Some(host.map_or(Other::Stranger, |host| Other::Guest(name, host)))
    }

    /// Does what a guest asks for, and answers; `false`: it was nonsense.
    fn serve(&self, head: &Head, body: &[u8], guest: (&Name, &Host), line: &Line) -> bool {
        let done = match Ask::decode(head, body) {
            None | Some(Ask::Hello(..)) => return false,
            Some(ask) => self.carry_out(&ask, guest),
        };
        let (status, bytes) = match done {
            Ok(bytes) => (Status::Ok, bytes),
            Err(status) => (status, Vec::new()),
        };
        line.send(&answer(head.number, status, &bytes));
        true
    }

    /// At the NIC that a guest has named, or where that does not know the handle at another of its job in this process.
    fn carry_out(&self, ask: &Ask<'_>, (name, host): (&Name, &Host)) -> Result<Vec<u8>, Status> {
        let done = carry_out(ask, host);
        if !may_be_of_kin(&done) {
            return done;
        }
        let hosts = self.shared.hosts.lock();
        let kin = hosts
            .iter()
            .filter(|(other, _)| *other != name && Name { instance: name.instance, ..**other } == *name);
        let kin: Vec<Arc<Host>> = kin.map(|(_, host)| Arc::clone(host)).collect();
        drop(hosts);
        kin.iter().map(|kin| carry_out(ask, kin)).find(|done| !may_be_of_kin(done)).unwrap_or(done)
    }
}

/// How much is read first.
const FIRST_READ: usize = 4096;

/// Reads on, into a buffer; `false` if that cannot be.
fn listen(line: &Line, buffer: Vec<u8>) -> bool {
    let len = buffer.len();
    line.sock().post_read(buffer, 1, len, None).is_ok()
}

fn carry_out(ask: &Ask<'_>, Host { home, wake }: &Host) -> Result<Vec<u8>, Status> {
    match *ask {
        // None of those who are known already asks that.
        Ask::Hello(..) => Err(Status::Lost),
        Ask::Put(there, from, bytes) => {
            reach(&**home, there, Want::Write)?.write(from, bytes).map(|()| Vec::new())
        }
        Ask::Get(there, from, count) => {
            let mut bytes = vec![0; count as usize];
            reach(&**home, there, Want::Read)?.read(from, &mut bytes).map(|()| bytes)
        }
        Ask::Store(there, word) => home.store(there, word).map(|()| Vec::new()),
        Ask::Change(there, command, operands) => {
            home.change(there, command, operands).map(|old| old.to_le_bytes().to_vec())
        }
        Ask::Tell(there, data) => home.tell(there, data).map(|told| {
            vec![match told {
                None => 0,
                Some(Ok(())) => 1,
                Some(Err(_)) => 2,
            }]
        }),
        Ask::Letter(ref letter) => {
            let taken = home.deliver(letter);
            wake();
            Ok(vec![taken.into()])
        }
    }
}

impl Other {
    /// Nothing comes from there any more.
    fn end(&self) {
        if let Other::Peer(peer) = self
            && let Some(peer) = peer.upgrade()
        {
            peer.end();
        }
    }
}

impl Connection {
    fn new(other: Other, line: Option<Line>) -> Self {
        Self { other, line, inbox: Vec::new() }
    }

    /// Does something with its line; `false` if it has none any more.
    fn with_line(&self, act: impl FnOnce(&Line) -> bool) -> bool {
        match (&self.line, &self.other) {
            (Some(line), _) => act(line),
            (None, Other::Peer(peer)) => peer.upgrade().is_some_and(|peer| act(peer.line())),
            (None, _) => false,
        }
    }
}
