//! A set of socks: what makes them, and the wait that delivers their events.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::epoll::EpollEvent;

use super::address::{self, Address};
use super::attempts::Connecting;
use super::connect;
use super::core::{Counts, Item, interest};
use super::host::HostDescription;
use super::listen;
use super::state::{Core, Life, Listening, Native, Shared, Sink, State};
use super::sys;
use super::wait::Wait;
use crate::queue::Next;
use crate::{Buffers, Class, Error, Event, Op, Options, SetId, Sock, SockId};

/// A set of socks (`MPIDU_Sock_set_t`). Clones are the same set. Any number of threads may use it, and wait for it.
#[derive(Clone)]
pub struct Set(Arc<Owner>);

/// What the clones of a set share. Socks keep the core; without this one it has none, and nothing waits for it.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.destroy();
        let socks = std::mem::take(&mut *self.0.table.lock());
        // Each that nobody has a handle of ends here, without the lock.
        drop(socks);
    }
}

impl Set {
    /// An empty set (`MPIDU_Sock_create_set`) with the usual [`Options`].
    pub fn new() -> Result<Self, Error> {
        Self::with(Options::default())
    }

    /// An empty set whose sockets are made as `options` say.
    ///
    /// # Errors
    /// `BadPort` if the range of ports is empty or contains 0, `NoMem` if there are no descriptors left.
    pub fn with(options: Options) -> Result<Self, Error> {
        let _span = span!("sock_create_set");
        if let Some(range) = options.ports.as_ref().filter(|range| range.is_empty() || *range.start() == 0) {
            let why = format!("{} to {} is no range of ports", range.start(), range.end());
            return Err(Error::new(Class::BadPort, "create a set").cause(why));
        }
        Ok(Self(Arc::new(Owner(Arc::new(Core::new(options)?)))))
    }

    /// The set's number (`MPIDU_Sock_getsetid`).
    pub fn id(&self) -> SetId {
        let _span = span!("sock_getsetid");
        self.core().id
    }

    /// The sock with this number, if it is not closed.
    pub fn sock(&self, id: SockId) -> Option<Sock> {
        self.core().find(id).map(Sock)
    }

    /// How many socks there are.
    pub fn len(&self) -> usize {
        self.core().table.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much the set has asked of the system so far.
    pub fn counts(&self) -> Counts {
        self.core().counts()
    }

    fn core(&self) -> &Arc<Core> {
        &self.0.0
    }

    fn live(&self, operation: &'static str) -> Result<(), Error> {
        if self.core().destroyed() { Err(self.core().error(Class::BadSet, operation)) } else { Ok(()) }
    }

    /// Puts a new sock into the table, where its changes find it, and then its descriptor into the system's set.
    fn insert(&self, operation: &'static str, user: u64, state: State) -> Result<Sock, Error> {
        let shared =
            self.core().table.lock().insert(|id| Arc::new(Shared::new(id, self.core(), user, state)));
        let sock = Sock(shared);
        let state = &mut *sock.0.state.lock();
        if let Some(native) = &mut state.native {
            match self.core().epoll.add(native.as_fd(), EpollEvent::new(interest(false), sock.0.id.0)) {
                Ok(()) => {}
                // A plain file, which is always ready.
                Err(Errno::EPERM) => {
                    native.pollable = false;
                    state.read.ready = true;
                }
                Err(e) => {
                    self.core().table.lock().remove(sock.0.id);
                    return Err(self.core().error(Class::BadNativeFd, operation).errno(e));
                }
            }
        }
        Ok(sock.clone())
    }

    /// Takes a descriptor over (`MPIDU_Sock_native_to_sock`): a connected socket of any family, an end of a pipe, an event
    /// counter, signals. It is made non-blocking, for everybody who shares the open file, and closed with the sock.
    ///
    /// # Errors
    /// `BadNativeFd` with the system's reason.
    pub fn adopt(&self, user: u64, fd: impl Into<OwnedFd>) -> Result<Sock, Error> {
        const OPERATION: &str = "adopt a descriptor";
        let _span = span!("sock_native_to_sock");
        self.live(OPERATION)?;
        let fd = fd.into();
        let bad = |e| self.core().error(Class::BadNativeFd, OPERATION).errno(e);
        let flags =
            sys::set_cloexec(fd.as_fd()).and_then(|()| sys::set_nonblocking(fd.as_fd())).map_err(bad)?;
        let native = Native::of(fd, flags).map_err(bad)?;
        let mut state = State::new(Life::Open, Some(native));
        let one_way =
            |way| self.core().error(Class::BadSock, OPERATION).cause(format!("it is open for {way} only"));
        match flags & OFlag::O_ACCMODE {
            OFlag::O_RDONLY => state.write.end = Some(one_way("reading")),
            OFlag::O_WRONLY => state.read.end = Some(one_way("writing")),
            _ => {}
        }
        self.insert(OPERATION, user, state)
    }

    /// Watches a descriptor whose mode is not ours to change, such as an inherited standard input, or which is no stream of
    /// bytes, such as that of a process: nothing but [`Sock::post_ready`] is allowed, and what is read or written the
    /// caller reads or writes itself.
    ///
    /// # Errors
    /// `BadNativeFd` with the system's reason.
    pub fn watch(&self, user: u64, fd: impl Into<OwnedFd>) -> Result<Sock, Error> {
        const OPERATION: &str = "watch a descriptor";
        let _span = span!("sock_watch");
        self.live(OPERATION)?;
        let fd = fd.into();
        let native = Native { fd, socket: false, tcp: false, exact: false, pollable: true };
        self.insert(OPERATION, user, State::new(Life::Watched, Some(native)))
    }

    /// Listens (`MPIDU_Sock_listen`); the listener and its port, which is 0 for a Unix socket. Each connection is told by an
    /// [`Op::Accept`] event and taken by [`accept`](Self::accept).
    ///
    /// # Errors
    /// `BadPort` if the port is taken or none in the set's range is free, `BadHost` if the address is not of this host.
    pub fn listen(&self, user: u64, address: &Address) -> Result<(Sock, u16), Error> {
        const OPERATION: &str = "listen";
        let _span = span!("sock_listen");
        self.live(OPERATION)?;
        let (fd, port) = address::listen(address, &self.core().options).map_err(|e| e.set(self.core().id))?;
        let native = Native::made(fd, matches!(address, Address::Inet(_)));
        let state = State::new(Life::Listening(Listening::default()), Some(native));
        Ok((self.insert(OPERATION, user, state)?, port))
    }

    /// Listens on all interfaces, on a port that the system chooses: for IPv6 and IPv4, or for IPv4 alone on a host that has no other.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn listen_everywhere(&self, user: u64) -> Result<(Sock, u16), Error> {
        let by = |address: IpAddr| self.listen(user, &Address::Inet((address, 0).into()));
        // A socket for IPv6 takes what comes by the other, too.
        by(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| by(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// Takes the connection that an [`Op::Accept`] event of `listener` told of into this set, which may be another one than
    /// the listener's (`MPIDU_Sock_accept`). It may be dead already. Only then comes the next accept event.
    ///
    /// # Errors
    /// `NoNewSock` if no connection waits, `BadSock` if it is no listener or is closed, `NoMem` if there are no
    /// descriptors left: the connection goes on waiting, and no event tells of it again.
    pub fn accept(&self, listener: &Sock, user: u64) -> Result<Sock, Error> {
        const OPERATION: &str = "accept";
        let _span = span!("sock_accept");
        self.live(OPERATION)?;
        let (fd, tcp) = listen::accept(&listener.0)?;
        // Who connected is for messages only; a connection that is dead already has no name.
        let peer = if tcp { address::peer_of(&fd).ok().flatten() } else { None };
        let mut state = State::new(Life::Open, Some(Native::made(fd, tcp)));
        state.peer = peer.map(|peer| peer.to_string());
        self.insert(OPERATION, user, state)
    }

    /// Connects to a host (`MPIDU_Sock_post_connect`): [`post_connect_to`](Self::post_connect_to) its addresses. A port of
    /// 0 stands for that of the description.
    ///
    /// # Errors
    /// Those of [`HostDescription::addresses`].
    pub fn post_connect(&self, user: u64, host: &HostDescription, port: u16) -> Result<Sock, Error> {
        self.post_connect_to(user, host.addresses(port).map_err(|e| e.set(self.core().id))?)
    }

    /// Connects to the first of `addresses` that answers (`MPIDU_Sock_post_connect_ifaddr`): the next one is tried when one fails
    /// or stays silent for a while. An [`Op::Connect`] event tells the end; if all failed its error lists each with its
    /// reason.
    ///
    /// # Errors
    /// `BadHost` if there is no address.
    pub fn post_connect_to(&self, user: u64, addresses: impl Into<Vec<Address>>) -> Result<Sock, Error> {
        const OPERATION: &str = "post a connect";
        let _span = span!("sock_post_connect");
        self.live(OPERATION)?;
        let addresses = addresses.into();
        if addresses.is_empty() {
            return Err(self.core().error(Class::BadHost, OPERATION).cause("no address was given"));
        }
        let peer = match addresses.as_slice() {
            [one] => one.to_string(),
            [first, others @ ..] => format!("{first} or {} more", others.len()),
            [] => String::new(),
        };
        let mut state =
            State::new(Life::Connecting(Box::new(Connecting::new(addresses, &self.core().options))), None);
        state.peer = Some(peer);
        let sock = self.insert(OPERATION, user, state)?;
        connect::advance(&sock.0, self.core(), &mut sock.0.state.lock(), Sink::loud(self.core()));
        Ok(sock)
    }

    /// The next event (`MPIDU_Sock_wait`), waited for at most as long as `timeout` says; `None`: there was none.
    ///
    /// Signals do not shorten it. Each event is delivered to one of the threads that wait.
    ///
    /// # Errors
    /// `BadSet` if the set is destroyed, also while it waits.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Event>, Error> {
        let _span = span!("sock_wait");
        let core = self.core();
        let mut until: Option<Wait> = None;
        loop {
            let event = match core.overdue() {
                true => core.look(Wait::Not, false)?,
                false => match core.queue.next() {
                    Next::Item(item, ring) => {
                        if ring {
                            core.ring();
                        }
                        core.deliver(item)
                    }
                    Next::Later(change, ring) => {
                        if ring {
                            core.ring();
                        }
                        core.act_on(change)
                    }
                    Next::Closed(ring) => {
                        if ring {
                            core.ring();
                        }
                        return Err(core.error(Class::BadSet, "wait"));
                    }
                    Next::Sleep => match until {
                        Some(until) if until.over() => {
                            core.queue.woke(false);
                            return Ok(None);
                        }
                        _ => {
                            let until = *until.get_or_insert_with(|| Wait::of(timeout));
                            core.look(until.or_until(core.next_timer()), true)?
                        }
                    },
                },
            };
            if event.is_some() {
                core.hand_over();
                return Ok(event);
            }
        }
    }

    /// Makes one wait, the present or a future one, return an [`Op::Wakeup`] event (`MPIDU_Sock_wakeup`). Each call makes
    /// one event.
    pub fn wakeup(&self) {
        let _span = span!("sock_wakeup");
        let (op, sock, user, bytes, error) = (Op::Wakeup, None, 0, 0, None);
        self.core().push(Item::Event(Event { op, sock, user, bytes, error, buffers: Buffers::None }));
    }

    /// Posts the close of one sock that is open, and gives its user word; `None` if all are closed or being closed
    /// (`MPIDU_Sock_close_open_sockets`). The events come as after [`Sock::post_close`].
    pub fn close_open(&self) -> Option<u64> {
        let _span = span!("sock_close_open_sockets");
        let socks: Vec<_> = self.core().table.lock().socks().cloned().collect();
        let closed = socks.into_iter().map(Sock).find(|sock| sock.post_close().is_ok())?;
        Some(closed.user())
    }

    /// Destroys the set (`MPIDU_Sock_destroy_set`). Threads that wait for it get the error `BadSet`.
    ///
    /// # Errors
    /// `BusySet` while it has socks: close them and wait for their close events, or use
    /// [`destroy_now`](Self::destroy_now).
    pub fn destroy(&self) -> Result<(), Error> {
        const OPERATION: &str = "destroy a set";
        let _span = span!("sock_destroy_set");
        self.live(OPERATION)?;
        match self.len() {
            0 => {
                self.core().destroy();
                Ok(())
            }
            left => {
                let why = format!("{left} socks are left; close them and wait for their close events");
                Err(self.core().error(Class::BusySet, OPERATION).cause(why))
            }
        }
    }

    /// Closes all socks, throws away all events, and destroys the set.
    pub fn destroy_now(&self) -> Result<(), Error> {
        let socks: Vec<_> = self.core().table.lock().socks().cloned().collect();
        for shared in socks {
            // One that is being closed already is as good.
            let _ = Sock(shared).post_close();
        }
        // Others may wait and take events, so the end is not told to this thread.
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        while !self.is_empty() {
            self.wait(Some(LOOK_AGAIN))?;
        }
        self.destroy()
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Set({})", self.core().id)
    }
}
