//! The same echo server five times: on plain epoll, `mio`, `tokio`, the engine, and the engine with all operations posted.
//!
//! Each is a process of its own, pinned to one processor, while this one plays the clients on another. Their blocks take
//! turns, and each block is compared with the plain epoll block of its turn: a ratio above 1 is slower. Then each
//! server runs once more under `strace`, which counts its system calls.
//!
//! `cargo bench -p gasworks-sock --bench echo [-- --short] [--tcp]`
#![cfg(not(gasworks_loom))]

mod clients;
mod report;
mod servers;

use std::process::ExitCode;

/// What one row measures.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Bytes of a message.
    pub size: usize,
    /// Connections.
    pub connections: usize,
    /// Times that each connection sends a message and gets it back, in one block.
    pub rounds: usize,
}

const CASES: &[Case] = &[
    Case { size: 8, connections: 1, rounds: 2000 },
    Case { size: 8, connections: 1000, rounds: 3 },
    Case { size: 64 << 10, connections: 1, rounds: 400 },
    Case { size: 64 << 10, connections: 1000, rounds: 1 },
];

/// What may stand on the command line; cargo puts the last there itself.
const KNOWN: [&str; 3] = ["--short", "--tcp", "--bench"];

fn main() -> ExitCode {
    // The first is this program's name.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|w| w == word);
    let result = match words.as_slice() {
        [word, kind, port, connections, size] if word == "serve" => {
            servers::serve(kind, port, connections, size)
        }
        // The test harness of cargo asks for the names of the tests.
        _ if has("--list") => Ok(()),
        _ => match words.iter().find(|word| !KNOWN.contains(&word.as_str())) {
            Some(word) => Err(std::io::Error::other(format!("{word:?} is none of {}", KNOWN.join(", ")))),
            None => run(has("--short"), has("--tcp")),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(short: bool, tcp: bool) -> std::io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let pairs = if short { 3 } else { 41 };
    println!("echo over {}, {pairs} turns; ratios to plain epoll", if tcp { "TCP" } else { "Unix sockets" });
    report::head();
    for case in CASES {
        let mut case = *case;
        if short {
            case.connections = case.connections.min(50);
            case.rounds = case.rounds.min(50);
        }
        report::row(&case, &clients::measure(&case, pairs, tcp)?, &clients::count(&case, tcp)?);
    }
    Ok(())
}
