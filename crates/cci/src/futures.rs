//! Endpoints whose operations are futures, for any executor.
//!
//! Whoever polls one of these futures moves the endpoint on. While all of them wait somebody has to call [`AsyncEndpoint::turn`] when the endpoint's descriptor is readable: a task of its own, by
//! what the executor has for descriptors (`tokio::io::unix::AsyncFd`, `async_io::Async`).

use crate::datagram::Attribute;
use crate::endpoint::{
    CallError, Endpoint, EndpointConfig, Event, Failure, Message, Request, RmaHandle, RmaKind, SendFlags,
};
use crate::header::ConnectionId;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use thiserror::Error;

/// Why an operation came to nothing: it could not be begun, or has failed.
#[derive(Debug, Error)]
pub enum OperationError {
    /// It was not begun.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It has failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// What a task may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Awaited {
    Operation(u64),
    Message(ConnectionId),
    Request,
    Room,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    /// The number of the next operation.
    next: u64,
    /// Tasks that wait, of which several may wait for one thing.
    wakers: HashMap<Awaited, Vec<Waker>>,
    /// Operations whose task wants to know, and how those that are over ended.
    begun: HashSet<u64>,
    ended: HashMap<u64, Result<(), Failure>>,
    messages: HashMap<ConnectionId, VecDeque<Message>>,
    /// Connections of which somebody has an [`AsyncConnection`], or will, and those of them that the peer has closed.
    open: HashSet<ConnectionId>,
    closed: HashSet<ConnectionId>,
    requests: VecDeque<Request>,
    /// Who is to be woken when the lock is free again: an executor may poll at once.
    woken: Vec<Waker>,
}

impl Shared {
    /// Takes all events and wakes who waits for them.
    fn turn(&mut self) -> Result<(), CallError> {
        loop {
            let event = match self.endpoint.event() {
                Ok(Some(event)) => event,
                // Who gives a message back turns again.
                Ok(None) | Err(CallError::NoBuffers) => return Ok(()),
                Err(error) => return Err(error),
            };
            match event {
                Event::Sent { context, result, .. } => {
                    self.end(context, result);
                    self.wake(Awaited::Room);
                }
                Event::Connected { context, result, .. } | Event::Accepted { context, result, .. } => {
                    self.end(context, result);
                }
                Event::Received(message) if !self.open.contains(&message.connection) => {
                    self.endpoint.give_back(message);
                }
                Event::Received(message) => {
                    let connection = message.connection;
                    self.messages.entry(connection).or_default().push_back(message);
                    self.wake(Awaited::Message(connection));
                }
                Event::Requested(request) => {
                    self.requests.push_back(*request);
                    self.wake(Awaited::Request);
                }
                Event::Closed { connection } if self.open.contains(&connection) => {
                    self.closed.insert(connection);
                    self.wake(Awaited::Message(connection));
                }
                // A peer that is silent may speak again: tasks have time-outs of their own.
                Event::Closed { .. } | Event::Silent { .. } => {}
            }
        }
    }

    fn end(&mut self, operation: u64, result: Result<(), Failure>) {
        if self.begun.remove(&operation) {
            self.ended.insert(operation, result);
        }
        self.wake(Awaited::Operation(operation));
    }

    fn wake(&mut self, awaited: Awaited) {
        self.woken.extend(self.wakers.remove(&awaited).into_iter().flatten());
    }

    fn wait(&mut self, awaited: Awaited, context: &Context<'_>) {
        let wakers = self.wakers.entry(awaited).or_default();
        if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
    }
}

/// An endpoint whose operations are futures. Clones are the same endpoint.
#[derive(Clone, Debug)]
pub struct AsyncEndpoint {
    state: Arc<Mutex<Shared>>,
    /// What becomes readable, by a descriptor of its own: it can be borrowed while a thread turns the endpoint.
    readable: Arc<OwnedFd>,
}

impl AsyncEndpoint {
    /// Makes an endpoint. It [wakes](EndpointConfig::wakes), whatever the configuration says.
    ///
    /// # Errors
    /// As of [`Endpoint::create`].
    pub fn create(config: EndpointConfig) -> Result<Self, crate::endpoint::CreateError> {
        let endpoint = Endpoint::create(EndpointConfig { wakes: true, ..config })?;
        let copied = endpoint.as_fd().try_clone_to_owned();
        let readable =
            copied.map_err(|error| gasworks_os::OsError::new("copy", "an endpoint's descriptor", error))?;
        let state = Shared {
            endpoint,
            next: 0,
            wakers: HashMap::new(),
            begun: HashSet::new(),
            ended: HashMap::new(),
            messages: HashMap::new(),
            open: HashSet::new(),
            closed: HashSet::new(),
            requests: VecDeque::new(),
            woken: Vec::new(),
        };
        Ok(Self { state: Arc::new(Mutex::new(state)), readable: Arc::new(readable) })
    }

    /// Does something with the state, and wakes behind it who is to be woken.
    fn locked<R>(&self, f: impl FnOnce(&mut Shared) -> R) -> R {
        let (done, woken) = {
            let mut state = self.state.lock();
            let done = f(&mut state);
            (done, std::mem::take(&mut state.woken))
        };
        woken.into_iter().for_each(Waker::wake);
        done
    }

    /// The endpoint's address.
    pub fn uri(&self) -> String {
        self.locked(|state| state.endpoint.uri().to_string())
    }

    /// Moves the endpoint on, and wakes tasks whose operations are over. To be called when the descriptor is readable; it is not any more then, until there is something to do again.
    ///
    /// # Errors
    /// As of [`Endpoint::event`].
    pub fn turn(&self) -> Result<(), CallError> {
        self.locked(Shared::turn)
    }

    /// What the endpoint itself can do beyond futures: registering memory, options.
    pub fn with<R>(&self, f: impl FnOnce(&mut Endpoint) -> R) -> R {
        self.locked(|state| f(&mut state.endpoint))
    }

    /// Connects to the endpoint at `uri`, with some data for its program.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn connect(
        &self,
        uri: &str,
        data: &[u8],
        attribute: Attribute,
        timeout: Option<Duration>,
    ) -> Result<AsyncConnection, OperationError> {
        self.open(|endpoint, context| endpoint.connect(uri, data, attribute, context, timeout)).await
    }

    /// The next client's request, to be [accepted](Self::accept) or [rejected](Self::reject).
    ///
    /// # Errors
    /// As of [`Endpoint::event`].
    pub async fn request(&self) -> Result<Request, CallError> {
        self.until(Awaited::Request, |state| state.requests.pop_front()).await
    }

    /// Accepts a request.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn accept(&self, request: Request) -> Result<AsyncConnection, OperationError> {
        self.open(|endpoint, context| endpoint.accept(request.id, context)).await
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// As of [`Endpoint::reject`].
    pub fn reject(&self, request: &Request) -> Result<(), CallError> {
        self.locked(|state| state.endpoint.reject(request.id))
    }

    /// Opens a connection by a call, and waits until it is there. One that is given up meanwhile is closed.
    async fn open(
        &self,
        call: impl FnOnce(&mut Endpoint, u64) -> Result<ConnectionId, CallError>,
    ) -> Result<AsyncConnection, OperationError> {
        let (id, operation) = self.begin(|state, context| {
            let id = call(&mut state.endpoint, context)?;
            state.open.insert(id);
            Ok(id)
        })?;
        let connection = AsyncConnection { end: self.clone(), id };
        operation.end().await?;
        Ok(connection)
    }

    /// Begins an operation, whose end is a future.
    fn begin<R>(
        &self,
        call: impl FnOnce(&mut Shared, u64) -> Result<R, CallError>,
    ) -> Result<(R, Pending), CallError> {
        let (begun, operation) = self.locked(|state| {
            state.next += 1;
            let operation = state.next;
            let begun = call(state, operation)?;
            state.begun.insert(operation);
            Ok::<_, CallError>((begun, operation))
        })?;
        Ok((begun, Pending { end: self.clone(), operation }))
    }

    /// Waits until one more operation may be begun.
    async fn has_room(&self) -> Result<(), CallError> {
        self.until(Awaited::Room, |state| state.endpoint.has_room().then_some(())).await
    }

    /// Waits for something of the state's.
    async fn until<R>(
        &self,
        awaited: Awaited,
        mut look: impl FnMut(&mut Shared) -> Option<R>,
    ) -> Result<R, CallError> {
        poll_fn(|context| {
            self.locked(|state| {
                if let Some(found) = look(state) {
                    return Poll::Ready(Ok(found));
                }
                if let Err(error) = state.turn() {
                    return Poll::Ready(Err(error));
                }
                match look(state) {
                    Some(found) => Poll::Ready(Ok(found)),
                    None => {
                        state.wait(awaited, context);
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }
}

impl AsRawFd for AsyncEndpoint {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for AsyncEndpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

/// An operation that a task waits for. One that is dropped goes on, and nobody is told of its end.
struct Pending {
    end: AsyncEndpoint,
    operation: u64,
}

impl Pending {
    async fn end(self) -> Result<(), OperationError> {
        let ended = |state: &mut Shared| state.ended.remove(&self.operation);
        Ok(self.end.until(Awaited::Operation(self.operation), ended).await??)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let dropped = self.end.locked(|state| {
            state.begun.remove(&self.operation);
            state.ended.remove(&self.operation);
            state.wakers.remove(&Awaited::Operation(self.operation))
        });
        // A task's last waker may be dropped with it, which drops what it has of this endpoint.
        drop(dropped);
    }
}

/// A connection of such an endpoint. Dropping it closes it.
#[derive(Debug)]
pub struct AsyncConnection {
    end: AsyncEndpoint,
    id: ConnectionId,
}

impl AsyncConnection {
    /// The endpoint's name of it.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Sends a message, whose parts follow each other, and waits until the peer's endpoint has it. Where as much is under way as the endpoint admits, it is sent later.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn send(&self, parts: &[&[u8]]) -> Result<(), OperationError> {
        let begin = || {
            self.end.begin(|state, context| state.endpoint.send(self.id, parts, context, SendFlags::empty()))
        };
        let operation = loop {
            match begin() {
                Ok((_, operation)) => break operation,
                Err(CallError::NoRoom) => self.end.has_room().await?,
                Err(error) => return Err(error.into()),
            }
        };
        operation.end().await
    }

    /// The next message; `None` when the peer has ended or has closed the connection.
    ///
    /// # Errors
    /// As of [`Endpoint::event`].
    pub async fn receive(&self) -> Result<Option<Received>, CallError> {
        let look = |state: &mut Shared| {
            let message = state.messages.get_mut(&self.id).and_then(VecDeque::pop_front);
            match message {
                Some(message) => Some(Some(message)),
                None => state.closed.contains(&self.id).then_some(None),
            }
        };
        let found = self.end.until(Awaited::Message(self.id), look).await?;
        Ok(found.map(|message| Received { end: self.end.clone(), message: Some(message) }))
    }

    /// Moves bytes between registered memory of this endpoint's and the peer's: see [`Endpoint::rma`].
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn rma(
        &self,
        kind: RmaKind,
        local: (RmaHandle, u64),
        remote: (RmaHandle, u64),
        len: u64,
        message: Option<&[&[u8]]>,
    ) -> Result<(), OperationError> {
        let (_, operation) = self.end.begin(|state, context| {
            state.endpoint.rma(self.id, kind, local, remote, len, message, context, SendFlags::empty())
        })?;
        operation.end().await
    }
}

impl Drop for AsyncConnection {
    fn drop(&mut self) {
        self.end.locked(|state| {
            // One that the peer has closed, or that never came to be, is gone already.
            let _ = state.endpoint.disconnect(self.id);
            state.open.remove(&self.id);
            state.closed.remove(&self.id);
            for message in state.messages.remove(&self.id).into_iter().flatten() {
                state.endpoint.give_back(message);
            }
        });
    }
}

/// A message that has come. Dropping it makes room for another one.
#[derive(Debug)]
pub struct Received {
    end: AsyncEndpoint,
    message: Option<Message>,
}

impl std::ops::Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.message.as_ref().map_or(&[], |message| &message.bytes)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.end.locked(|state| {
                state.endpoint.give_back(message);
                // What had no room comes now, and nobody else may look for it. An error is told by the next call.
                let _ = state.turn();
            });
        }
    }
}
