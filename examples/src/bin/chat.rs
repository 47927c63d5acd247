//! Endpoints with tokio: a room in which every client hears every other. A task waits for the endpoint's descriptor, and one more for each client.
//!
//! `chat` starts the room and some clients, which say something and leave, and checks that all was heard.
//!
//! # Invariants
//! - chat.1: the descriptor that tokio waits for is tokio's own copy, which stays open as long as it is registered.
#![allow(unsafe_code)]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::EndpointConfig;
use gasworks_cci::futures::{AsyncConnection, AsyncEndpoint};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Parser)]
#[command(about = "A room in which every client hears every other, with tokio")]
struct Options {
    /// How many clients there are.
    #[arg(long, default_value_t = 4)]
    clients: usize,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    runtime.block_on(tasks.run_until(talk(options.clients)))
}

/// An endpoint, and a task that moves it on whenever it has something to do.
fn endpoint() -> Result<AsyncEndpoint> {
    let end = AsyncEndpoint::create(EndpointConfig::default())?;
    let (descriptor, turned) = (end.as_fd().try_clone_to_owned()?, end.clone());
    // SAFETY: chat.1: the copy is given away here, and nobody else closes it.
    let readable = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
    tokio::task::spawn_local(async move {
        while let Ok(mut guard) = readable.readable().await {
            if turned.turn().is_err() {
                break;
            }
            guard.clear_ready();
        }
    });
    Ok(end)
}

type Members = Arc<Mutex<Vec<Arc<AsyncConnection>>>>;

/// Passes what one member says to all.
async fn attend(own: Arc<AsyncConnection>, members: Members) -> Result<()> {
    while let Some(said) = own.receive().await? {
        let all = members.lock().expect("no panic").clone();
        for member in all {
            // One that has left hears nothing.
            let _ = member.send(&[&said]).await;
        }
    }
    members.lock().expect("no panic").retain(|member| member.id() != own.id());
    Ok(())
}

async fn room(end: AsyncEndpoint) -> Result<()> {
    let members = Members::default();
    loop {
        let connection = Arc::new(end.accept(end.request().await?).await?);
        members.lock().expect("no panic").push(connection.clone());
        let members = members.clone();
        tokio::task::spawn_local(async move { attend(connection, members).await });
    }
}

async fn client(uri: String, number: usize, clients: usize) -> Result<usize> {
    let end = endpoint()?;
    let connection = end.connect(&uri, &[], Attribute::ReliableOrdered, None).await?;
    // All are there when each has heard each: those who come late do not hear what was said before, so it is said until then.
    let mut heard = vec![false; clients];
    while !heard.iter().all(|heard| *heard) {
        connection.send(&[format!("{number}").as_bytes()]).await?;
        let said = connection.receive().await?.context("the room is closed")?;
        let who: usize = std::str::from_utf8(&said)?.parse()?;
        heard[who] = true;
    }
    Ok(heard.len())
}

async fn talk(clients: usize) -> Result<()> {
    let end = endpoint()?;
    let uri = end.uri();
    tokio::task::spawn_local(room(end));
    let tasks: Vec<_> =
        (0..clients).map(|number| tokio::task::spawn_local(client(uri.clone(), number, clients))).collect();
    for task in tasks {
        ensure!(task.await?? == clients);
    }
    println!("{clients} clients have heard each other");
    Ok(())
}
