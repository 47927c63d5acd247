//! Somebody who does not belong to a job and knocks at one of its ports, again and again, until the port is gone: with
//! nothing, garbage, a wrong cookie, and messages that never end. Whoever is let in, or answered, is an error.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(about = "Knocks at a port of a job, without belonging to it, until the port is gone")]
struct Args {
    /// host:port
    port: String,
}

/// How long it goes on, and how long one who is sent away may have to wait for it.
const LONG: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);
/// How many connections that say nothing more are held open.
const HELD: usize = 300;

/// What is said, and whether that is all that there will ever be.
fn words() -> [(String, bool); 9] {
    let zeros = "0".repeat(32);
    [
        (String::new(), false),
        ("x".repeat(5000), true),
        ("GET / HTTP/1.1\r\n\r\n".repeat(4), true),
        (format!("gasrun1\n{zeros}\u{1}\0\0\0"), true),
        (format!("gasrun0\n{zeros}\u{1}\0\0\0"), true),
        ("gasrun1\n0000".into(), false),
        ("cmd=initack pmiid=99999".to_owned() + &" x=y".repeat(20) + "\n", true),
        ("cmd=init pmi_version=2 pmi_subversion=0\n".repeat(2), true),
        ("cmd=initack".into(), false),
    ]
}

/// Whether the other side hangs up without a word.
fn is_sent_away(mut stream: TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(LONG)).context("set a limit")?;
    match stream.read(&mut [0; 100]) {
        Ok(0) => Ok(()),
        Ok(count) => anyhow::bail!("it was answered with {count} bytes"),
        Err(e) if e.kind() == ErrorKind::ConnectionReset => Ok(()),
        Err(e) => Err(e).context("it was not sent away"),
    }
}

fn knock(port: &str) -> Result<usize> {
    let (begun, mut knocks) = (Instant::now(), 0);
    let mut held = std::collections::VecDeque::new();
    for (text, complete) in words().iter().cycle() {
        let mut stream = match TcpStream::connect(port) {
            Ok(stream) => stream,
            // The job is over.
            Err(e) if knocks > 0 && e.kind() == ErrorKind::ConnectionRefused => break,
            Err(e) => return Err(e).with_context(|| format!("connect to {port} after {knocks} times")),
        };
        knocks += 1;
        // It may be sent away before it has said all.
        let _ = stream.write_all(text.as_bytes());
        if *complete {
            is_sent_away(stream).with_context(|| format!("{:?}...", &text[..text.len().min(40)]))?;
        } else {
            held.push_back(stream);
            if held.len() > HELD {
                held.pop_front();
            }
        }
        ensure!(begun.elapsed() < LONG, "the port is still there after {} s", LONG.as_secs());
        std::thread::sleep(PAUSE);
    }
    held.into_iter().try_for_each(|stream| is_sent_away(stream).context("one that was silent"))?;
    Ok(knocks)
}

fn main() -> ExitCode {
    match knock(&Args::parse().port) {
        Ok(knocks) => {
            println!("sent away {knocks} times");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("gasworks-strangers: {error:#}");
            ExitCode::FAILURE
        }
    }
}
