//! A server of keys and values, and clients that come and go.
//!
//! `kv serve [--clients N]` prints its address; `kv ADDRESS COMMAND...` does `set KEY VALUE`, `get KEY` or `del KEY`. Without `--clients` the server serves until it is killed.

use anyhow::{Context, Result, bail};
use clap::Parser;
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event, SendFlags};
use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

#[derive(Parser)]
#[command(about = "A server of keys and values, and its clients")]
struct Options {
    /// `serve`, or the server's address.
    server: String,
    /// A client's command: set KEY VALUE, get KEY or del KEY.
    command: Vec<String>,
    /// How many clients the server serves before it ends.
    #[arg(long)]
    clients: Option<usize>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    match options.server.as_str() {
        "serve" => serve(options.clients),
        uri => ask(uri, &options.command),
    }
}

/// An endpoint whose thread sleeps while there is nothing to do.
fn endpoint() -> Result<Endpoint> {
    Ok(Endpoint::create(EndpointConfig { wakes: true, ..EndpointConfig::default() })?)
}

fn next(end: &mut Endpoint) -> Result<Event> {
    loop {
        if let Some(event) = end.event()? {
            return Ok(event);
        }
        end.wait(None, |_| false)?;
    }
}

fn serve(mut clients: Option<usize>) -> Result<()> {
    let mut end = endpoint()?;
    println!("{}", end.uri());
    std::io::stdout().flush()?;
    let mut values: HashMap<String, String> = HashMap::new();
    while clients != Some(0) {
        match next(&mut end)? {
            Event::Requested(request) => drop(end.accept(request.id, 0)?),
            Event::Received(message) => {
                let text = String::from_utf8_lossy(&message.bytes);
                let answer = match *text.splitn(3, ' ').collect::<Vec<_>>() {
                    ["set", key, value] => {
                        values.insert(key.into(), value.into());
                        "+".into()
                    }
                    ["get", key] => values.get(key).map_or("-".into(), |value| format!("+{value}")),
                    ["del", key] => if values.remove(key).is_some() { "+" } else { "-" }.into(),
                    _ => "!a command is: set KEY VALUE, get KEY, del KEY".into(),
                };
                // A client that does not wait for its answer has gone.
                let _ = end.send(message.connection, &[answer.as_bytes()], 0, SendFlags::SILENT);
                end.give_back(message);
            }
            Event::Closed { connection } => {
                end.disconnect(connection)?;
                clients = clients.map(|clients| clients - 1);
            }
            _ => {}
        }
    }
    println!("served; {} values are left", values.len());
    Ok(())
}

fn ask(uri: &str, command: &[String]) -> Result<()> {
    let mut end = endpoint()?;
    end.connect(uri, &[], Attribute::ReliableOrdered, 0, Some(Duration::from_secs(10)))?;
    loop {
        match next(&mut end)? {
            Event::Connected { connection, result, .. } => {
                result.with_context(|| format!("connect to {uri}"))?;
                end.send(connection, &[command.join(" ").as_bytes()], 0, SendFlags::SILENT)?;
            }
            Event::Received(message) => {
                let answer = String::from_utf8_lossy(&message.bytes).into_owned();
                end.give_back(message);
                match answer.split_at_checked(1) {
                    Some(("+", value)) => println!("{}", if value.is_empty() { "done" } else { value }),
                    Some(("-", _)) => println!("there is no such key"),
                    _ => bail!("the server says: {answer}"),
                }
                return Ok(());
            }
            Event::Closed { .. } => bail!("the server has ended"),
            _ => {}
        }
    }
}
