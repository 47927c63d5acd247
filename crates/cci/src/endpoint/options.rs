//! What a program can set while an endpoint works.

use super::Endpoint;
use super::connection::Keepalive;
use super::event::CallError;
use crate::header::ConnectionId;
use gasworks_os::clock;
use std::time::Duration;

impl Endpoint {
    /// How long messages may take on connections that are made from now on; `None` for ever.
    pub fn set_send_timeout(&mut self, timeout: Option<Duration>) {
        self.config.send_timeout = timeout;
    }

    /// After how long without a sign of life from a peer the program is told, for connections that are made from now on; `None` for never.
    pub fn set_keepalive(&mut self, time: Option<Duration>) {
        self.config.keepalive = time;
    }

    /// How many messages the program may have at once. Those that it has already stay.
    pub fn set_receive_buffers(&mut self, count: usize) {
        self.config.receive_buffers = count;
    }

    /// How many messages and transfers may be under way at once.
    pub fn set_send_buffers(&mut self, count: usize) {
        self.config.send_buffers = count;
    }

    /// How long messages of a connection may take, from now on.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn set_connection_send_timeout(
        &mut self,
        connection: ConnectionId,
        timeout: Option<Duration>,
    ) -> Result<(), CallError> {
        self.connections.get_mut(connection).ok_or(CallError::NoConnection)?.send_timeout = timeout;
        Ok(())
    }

    /// How long messages of a connection may take.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn connection_send_timeout(&self, connection: ConnectionId) -> Result<Option<Duration>, CallError> {
        self.connections.get(connection).map(|found| found.send_timeout).ok_or(CallError::NoConnection)
    }

    /// After how long without a sign of life from the peer the program is told; counted from now on.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn set_connection_keepalive(
        &mut self,
        connection: ConnectionId,
        time: Option<Duration>,
    ) -> Result<(), CallError> {
        let now = clock::monotonic();
        let found = self.connections.get_mut(connection).ok_or(CallError::NoConnection)?;
        found.keepalive = time.map(|time| Box::new(Keepalive::new(time, now)));
        self.schedule(connection);
        Ok(())
    }

    /// After how long without a sign of life from the peer the program is told; `None` also after it was told.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn connection_keepalive(&self, connection: ConnectionId) -> Result<Option<Duration>, CallError> {
        let found = self.connections.get(connection).ok_or(CallError::NoConnection)?;
        Ok(found.keepalive.as_ref().map(|keepalive| keepalive.time))
    }
}
