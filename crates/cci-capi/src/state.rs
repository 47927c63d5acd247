//! What an endpoint is behind its pointer: all of it is guarded by one lock.
//!
//! Whose an object is, a connection, an event or a handle, is written in it, and changes only while the lock of the endpoint that is named there is held. So an address leads to an
//! object, its owner to an endpoint, and after locking the endpoint the owner is read again: if it is the same, the object is alive and this endpoint's.

use crate::abi::{CConnection, CEndpoint, CHandle, EAGAIN, EINVAL, SUCCESS, event_type, of_result};
use crate::devices::{self, Device};
use crate::events::{EVENTS, Events, Held};
use crate::slab::{Owner, Slab};
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{CallError, Endpoint, Event, Failure, RmaHandle};
use gasworks_cci::header::ConnectionId;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::ffi::c_int;

/// An endpoint's structure, and what it is.
#[repr(C)]
#[derive(Default)]
struct EndpointObject {
    public: CEndpoint,
    /// How many endpoints had this structure.
    uses: AtomicU64,
    state: Mutex<Option<State>>,
}

/// A connection's structure, and whose it is.
#[repr(C)]
#[derive(Default)]
struct ConnectionObject {
    public: CConnection,
    owner: Owner,
}

/// A handle's structure, and whose it is.
#[repr(C)]
#[derive(Default)]
struct HandleObject {
    public: CHandle,
    owner: Owner,
}

static ENDPOINTS: Slab<EndpointObject> = Slab::new();
static CONNECTIONS: Slab<ConnectionObject> = Slab::new();
static HANDLES: Slab<HandleObject> = Slab::new();

/// An endpoint that is locked.
pub type Locked = MappedMutexGuard<'static, State>;

/// One of all endpoints that there have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointNumber {
    index: u32,
    use_of_it: u64,
}

/// A connection that the program knows, or knew: its structure stays until the id has another generation, for what is still told of it.
#[derive(Clone, Copy)]
struct Known {
    id: ConnectionId,
    object: u32,
    address: u64,
}

/// A registration.
struct Registered {
    handle: RmaHandle,
    object: u32,
}

/// An endpoint.
pub struct State {
    /// The endpoint.
    pub engine: Endpoint,
    number: EndpointNumber,
    /// By the id's index.
    connections: Vec<Option<Known>>,
    events: Events,
    handles: Vec<Option<Registered>>,
    /// The empty ones of them.
    free_handles: Vec<u32>,
}

/// The number of a connection in its structure's owner.
fn number_of(id: ConnectionId) -> u64 {
    u64::from(id.index) | u64::from(id.generation) << 16
}

/// The connection that has it.
fn id_of(number: u64) -> ConnectionId {
    ConnectionId { index: number as u16, generation: (number >> 16) as u8 }
}

fn lock(index: u32) -> Result<Locked, c_int> {
    MutexGuard::try_map(ENDPOINTS.get(index).state.lock(), Option::as_mut).map_err(|_| EINVAL)
}

/// Adds an endpoint of a device, and gives its address.
pub fn add(engine: Endpoint, device: &Device) -> usize {
    let index = ENDPOINTS.take();
    let object = ENDPOINTS.get(index);
    object.public.device.store(device.address() as u64, Relaxed);
    let use_of_it = object.uses.fetch_add(1, Relaxed);
    *object.state.lock() = Some(State {
        engine,
        number: EndpointNumber { index, use_of_it },
        connections: Vec::new(),
        events: Events::new(index),
        handles: Vec::new(),
        free_handles: Vec::new(),
    });
    ENDPOINTS.address(index)
}

/// Locks the endpoint at an address.
///
/// # Errors
/// `CCI_EINVAL`: there is none.
#[inline]
pub fn endpoint(address: usize) -> Result<Locked, c_int> {
    let object = ENDPOINTS.find(address).ok_or(EINVAL)?;
    MutexGuard::try_map(object.state.lock(), Option::as_mut).map_err(|_| EINVAL)
}

/// Locks an endpoint again, if it was not destroyed meanwhile.
pub fn again(number: EndpointNumber) -> Option<Locked> {
    lock(number.index).ok().filter(|state| state.number == number)
}

/// Locks the endpoint of an object, if the object is alive.
#[inline]
fn owned(owner: &Owner) -> Result<(Locked, u64), c_int> {
    let before = owner.get().ok_or(EINVAL)?;
    let state = lock(before.0)?;
    if owner.get() == Some(before) { Ok((state, before.1)) } else { Err(EINVAL) }
}

/// Locks the endpoint of the connection at an address, which is returned, too.
///
/// # Errors
/// `CCI_EINVAL`: there is none.
#[inline]
pub fn connection(address: usize) -> Result<(Locked, ConnectionId), c_int> {
    let (state, number) = owned(&CONNECTIONS.find(address).ok_or(EINVAL)?.owner)?;
    Ok((state, id_of(number)))
}

/// Locks the endpoint of the event at an address; its number there is returned, too.
///
/// # Errors
/// `CCI_EINVAL`: there is none.
#[inline]
pub fn event(address: usize) -> Result<(Locked, u64), c_int> {
    owned(&EVENTS.find(address).ok_or(EINVAL)?.owner)
}

/// Destroys the endpoint at an address.
///
/// # Errors
/// `CCI_EINVAL`: there is none.
pub fn destroy(address: usize) -> Result<(), c_int> {
    let object = ENDPOINTS.find(address).ok_or(EINVAL)?;
    destroy_object(object).then_some(()).ok_or(EINVAL)
}

/// Destroys all endpoints.
pub fn destroy_all() {
    for index in 0..ENDPOINTS.made() {
        destroy_object(ENDPOINTS.get(index));
    }
}

/// Destroys an endpoint, if there is one, and says whether there was.
fn destroy_object(object: &'static EndpointObject) -> bool {
    let mut slot = object.state.lock();
    let Some(state) = slot.take() else { return false };
    let State { engine, number, connections, events, handles, .. } = state;
    // While the lock is held: from now on nobody finds any of them.
    for known in connections.into_iter().flatten() {
        CONNECTIONS.get(known.object).owner.clear();
        CONNECTIONS.release(known.object);
    }
    for registered in handles.into_iter().flatten() {
        HANDLES.get(registered.object).owner.clear();
        HANDLES.release(registered.object);
    }
    drop(events);
    drop(slot);
    drop(engine);
    ENDPOINTS.release(number.index);
    true
}

impl State {
    /// Which endpoint it is.
    pub fn number(&self) -> EndpointNumber {
        self.number
    }

    fn address(&self) -> usize {
        ENDPOINTS.address(self.number.index)
    }

    /// Gives a connection its structure, and the address of it.
    fn open(&mut self, id: ConnectionId, context: u64) -> u64 {
        let at = usize::from(id.index);
        if at >= self.connections.len() {
            self.connections.resize(at + 1, None);
        }
        self.forget(id.index);
        let number = CONNECTIONS.take();
        let object = CONNECTIONS.get(number);
        let max_send = self.engine.max_send(id).unwrap_or(0);
        let attribute = self.engine.attribute(id).unwrap_or(Attribute::ReliableOrdered);
        object.public.max_send_size.store(u32::try_from(max_send).unwrap_or(u32::MAX), Relaxed);
        object.public.endpoint.store(self.address() as u64, Relaxed);
        object.public.attribute.store(attribute as u32, Relaxed);
        object.public.context.store(context, Relaxed);
        object.owner.set(self.number.index, number_of(id));
        let address = CONNECTIONS.address(number) as u64;
        self.connections[at] = Some(Known { id, object: number, address });
        address
    }

    /// Takes the structure of the connection that last had an id away.
    fn forget(&mut self, index: u16) {
        if let Some(known) = self.connections.get_mut(usize::from(index)).and_then(Option::take) {
            CONNECTIONS.get(known.object).owner.clear();
            CONNECTIONS.release(known.object);
        }
    }

    /// The address of a connection's structure; 0 if it has none. After a disconnect it is still known, and leads nowhere.
    #[inline]
    fn structure(&self, id: ConnectionId) -> u64 {
        match self.connections.get(usize::from(id.index)) {
            Some(Some(known)) if known.id == id => known.address,
            _ => 0,
        }
    }

    /// Closes a connection.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn disconnect(&mut self, id: ConnectionId) -> Result<(), CallError> {
        self.engine.disconnect(id)?;
        if let Some(Some(known)) = self.connections.get(usize::from(id.index)) {
            CONNECTIONS.get(known.object).owner.clear();
        }
        Ok(())
    }

    /// Takes the next event, and gives its address.
    ///
    /// # Errors
    /// `CCI_EAGAIN`, `CCI_ENOBUFS`, and what the system refuses.
    #[inline]
    pub fn next_event(&mut self) -> Result<usize, c_int> {
        loop {
            match self.engine.event() {
                Ok(Some(event)) => {
                    if let Some(address) = self.add_event(event) {
                        return Ok(address);
                    }
                }
                Ok(None) => return Err(EAGAIN),
                Err(error) => return Err(devices::failed("cci_get_event", &error)),
            }
        }
    }

    /// Makes an event for the program, and gives its address; `None` for what the program is not told.
    fn add_event(&mut self, event: Event) -> Option<usize> {
        let address = match event {
            Event::Sent { connection, context, result, .. } => {
                let (status, structure) = (of_result(result) as u32, self.structure(connection));
                self.events.add(Held::Plain, event_type::SEND, status, structure, context)
            }
            Event::Received(message) => {
                let structure = self.structure(message.connection);
                let (len, bytes) = lent(&message.bytes);
                self.events.add(Held::Message(message), event_type::RECV, len, bytes, structure)
            }
            Event::Connected { connection, context, result } => {
                self.answered(event_type::CONNECT, connection, context, result)
            }
            Event::Accepted { connection, context, result } => {
                self.answered(event_type::ACCEPT, connection, context, result)
            }
            Event::Requested(request) => {
                let (len, bytes) = lent(&request.data);
                let attribute = request.attribute as u64;
                let held = Held::Request { request, is_answered: false };
                self.events.add(held, event_type::CONNECT_REQUEST, len, bytes, attribute)
            }
            Event::Silent { connection } => {
                let structure = self.structure(connection);
                self.events.add(Held::Plain, event_type::KEEPALIVE_TIMEDOUT, 0, structure, 0)
            }
            // The next call on the connection says so. A program that waits for signs of life learns at once that none will come.
            Event::Closed { connection } => {
                self.engine.connection_keepalive(connection).ok().flatten()?;
                self.engine.set_connection_keepalive(connection, None).ok()?;
                let structure = self.structure(connection);
                self.events.add(Held::Plain, event_type::KEEPALIVE_TIMEDOUT, 0, structure, 0)
            }
        };
        Some(address)
    }

    /// What became of a connect or an accept.
    fn answered(
        &mut self,
        event_type: u32,
        id: ConnectionId,
        context: u64,
        result: Result<(), Failure>,
    ) -> usize {
        let structure = if result.is_ok() { self.open(id, context) } else { 0 };
        let status = if result.is_ok() { SUCCESS } else { of_result(result) };
        self.events.add(Held::Plain, event_type, status as u32, context, structure)
    }

    /// The request behind an event that was not answered; `None` if it is none.
    pub fn request(
        &mut self,
        number: u64,
    ) -> Option<(&mut bool, &mut Endpoint, gasworks_cci::endpoint::RequestId)> {
        match self.events.held(number) {
            Some(Held::Request { request, is_answered }) if !*is_answered => {
                Some((is_answered, &mut self.engine, request.id))
            }
            _ => None,
        }
    }

    /// Takes an event back from the program.
    ///
    /// # Errors
    /// `CCI_EINVAL`: it was returned before, or is a request that was not answered.
    #[inline]
    pub fn return_event(&mut self, number: u64) -> Result<(), c_int> {
        if let Held::Message(message) = self.events.take_back(number).ok_or(EINVAL)? {
            self.engine.give_back(message);
        }
        Ok(())
    }

    /// Gives a registration its structure, and the address of it.
    pub fn add_handle(&mut self, handle: RmaHandle) -> usize {
        let number = self.free_handles.pop().unwrap_or_else(|| {
            self.handles.push(None);
            self.handles.len() as u32 - 1
        });
        let object = HANDLES.take();
        let structure = HANDLES.get(object);
        for (word, value) in structure.public.stuff.iter().zip(handle.to_words()) {
            word.store(value, Relaxed);
        }
        structure.owner.set(self.number.index, number.into());
        self.handles[number as usize] = Some(Registered { handle, object });
        HANDLES.address(object)
    }

    /// The number of the registration of this endpoint at an address, and the registration.
    ///
    /// # Errors
    /// `CCI_EINVAL`: there is none.
    pub fn handle(&self, address: usize) -> Result<(u32, RmaHandle), c_int> {
        let owner = HANDLES.find(address).and_then(|structure| structure.owner.get());
        let (endpoint, number) = owner.ok_or(EINVAL)?;
        let registered = self.handles.get(number as usize).filter(|_| endpoint == self.number.index);
        let registered = registered.and_then(Option::as_ref).ok_or(EINVAL)?;
        Ok((number as u32, registered.handle))
    }

    /// Takes the structure of a registration away.
    pub fn remove_handle(&mut self, number: u32) {
        if let Some(registered) = self.handles.get_mut(number as usize).and_then(Option::take) {
            HANDLES.get(registered.object).owner.clear();
            HANDLES.release(registered.object);
            self.free_handles.push(number);
        }
    }
}

/// Length and address of bytes that a program may read; null where there are none.
fn lent(bytes: &[u8]) -> (u32, u64) {
    let address = if bytes.is_empty() { 0 } else { bytes.as_ptr().expose_provenance() as u64 };
    (bytes.len() as u32, address)
}
