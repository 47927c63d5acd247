//! A server that greets whoever connects, and a client, in one process.

use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event, SendFlags};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Endpoint::create(EndpointConfig { wakes: true, ..EndpointConfig::default() })?;
    let mut client = Endpoint::create(EndpointConfig::default())?;
    println!("the server is {}", server.uri());
    client.connect(&server.uri().to_string(), b"Ada", Attribute::ReliableOrdered, 0, None)?;
    loop {
        match server.event()? {
            Some(Event::Requested(request)) => {
                let connection = server.accept(request.id, 0)?;
                let words: &[&[u8]] = &[b"hello, ", &request.data];
                server.send(connection, words, 0, SendFlags::SILENT)?;
            }
            Some(other) => println!("server: {other:?}"),
            // Another process would sleep on the server's descriptor here.
            None => {}
        }
        if let Some(Event::Received(message)) = client.event()? {
            println!("client: {}", std::str::from_utf8(&message.bytes)?);
            client.give_back(message);
            return Ok(());
        }
    }
}
