//! Connected endpoints: two of them in this process, of which one thread does in turn what both do.

use anyhow::{Context, Result, bail, ensure};
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event, RmaKind, RmaRights, SendFlags};
use gasworks_cci::header::ConnectionId;
use std::path::Path;

struct Pair {
    client: Endpoint,
    server: Endpoint,
    /// The client's connections.
    connections: Vec<ConnectionId>,
    /// The server's last one.
    back: Option<ConnectionId>,
}

impl Pair {
    fn new(base: &Path, connections: usize) -> Result<Self> {
        let base = base.to_str().context("text")?.to_owned();
        let make = || Endpoint::create(EndpointConfig { base: base.clone(), ..EndpointConfig::default() });
        let mut pair = Self { client: make()?, server: make()?, connections: Vec::new(), back: None };
        let uri = pair.server.uri().to_string();
        for _ in 0..connections {
            let asked = pair.client.connect(&uri, &[], Attribute::ReliableOrdered, 0, None)?;
            let (mut connected, mut accepted) = (false, false);
            while !connected || !accepted {
                match pair.server.event()? {
                    Some(Event::Requested(request)) => drop(pair.server.accept(request.id, 0)?),
                    Some(Event::Accepted { connection, result: Ok(()), .. }) => {
                        (accepted, pair.back) = (true, Some(connection));
                    }
                    None => {}
                    other => bail!("{other:?}"),
                }
                match pair.client.event()? {
                    Some(Event::Connected { result: Ok(()), .. }) => connected = true,
                    None => {}
                    other => bail!("{other:?}"),
                }
            }
            pair.connections.push(asked);
        }
        Ok(pair)
    }

    /// Sends a message, takes it, and gets an answer.
    fn round_trip(&mut self, payload: &[u8]) -> Result<()> {
        self.client.send(self.connections[0], &[payload], 0, SendFlags::empty())?;
        let Some(Event::Received(message)) = self.server.event()? else { bail!("no message") };
        ensure!(message.bytes.len() == payload.len());
        self.server.give_back(message);
        // The server answers, by which the client learns that its message was taken.
        let back = self.back.context("a connection")?;
        self.server.send(back, &[payload], 0, SendFlags::SILENT)?;
        for _ in 0..2 {
            match self.client.event()? {
                Some(Event::Received(message)) => self.client.give_back(message),
                Some(Event::Sent { result: Ok(()), .. }) => {}
                other => bail!("{other:?}"),
            }
        }
        Ok(())
    }
}

/// Does an operation so many times.
pub fn run(kind: &str, payload: &[u8], number: usize, times: u64, mut count: impl FnMut()) -> Result<()> {
    let base = std::env::temp_dir().join(format!("gascount-{}", std::process::id()));
    let mut pair = Pair::new(&base, if kind == "idle" { number } else { 1 })?;
    match kind {
        "round-trip" => {
            // Behind the handshake both look at their sockets for a while.
            (0..3000).try_for_each(|_| pair.round_trip(payload))?;
            count();
            (0..times).try_for_each(|_| pair.round_trip(payload))?;
        }
        "idle" => {
            for _ in 0..3000 {
                ensure!(pair.server.event()?.is_none());
            }
            count();
            for _ in 0..times {
                ensure!(pair.server.event()?.is_none());
            }
        }
        "write" => {
            let (here, _) = pair.client.allocate(4096, RmaRights::empty())?;
            let (there, _) = pair.server.allocate(4096, RmaRights::all())?;
            let write = |pair: &mut Pair| -> Result<()> {
                let (to, len) = (pair.connections[0], payload.len() as u64);
                let flags = SendFlags::empty();
                pair.client.rma(to, RmaKind::Write, (here, 0), (there, 0), len, None, 0, flags)?;
                ensure!(matches!(pair.client.event()?, Some(Event::Sent { result: Ok(()), .. })));
                Ok(())
            };
            // The first asks for the file.
            write(&mut pair)?;
            for _ in 0..3000 {
                ensure!(pair.server.event()?.is_none() && pair.client.event()?.is_none());
            }
            count();
            (0..times).try_for_each(|_| write(&mut pair))?;
        }
        _ => bail!("cci:{kind} is no operation"),
    }
    count();
    drop(pair);
    std::fs::remove_dir(&base).context("what endpoints have left")
}
