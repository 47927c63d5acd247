//! A launcher that says what it was told to say, whatever the rank asks.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use gasworks_bootstrap::{Bootstrap, BootstrapError, Dialect, Launched, Start, Stream, Way, Wire};

/// A message of PMI-2.
pub fn message(text: &str) -> Vec<u8> {
    format!("{:>6}{text}", text.len()).into_bytes()
}

pub fn script(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Rank 1, and what the launcher left in its environment.
pub struct Rank {
    pub dialect: Option<Dialect>,
    pub port: bool,
    pub size: Option<u32>,
    pub job: Option<&'static str>,
}

/// How long a rank waits for this launcher. What the launcher says is there before the rank asks.
const TIMEOUT: Duration = Duration::from_millis(50);

pub struct Met {
    /// What came of it: `all well`, or the error.
    pub outcome: String,
    /// What the rank has said.
    pub said: String,
}

impl Rank {
    pub fn speaking(dialect: Dialect) -> Self {
        Rank { dialect: Some(dialect), port: false, size: None, job: None }
    }

    /// Meets a launcher that says `bytes` and then closes, or stays silent.
    pub fn meet(self, bytes: &[u8], close: bool) -> Met {
        self.meet_with(bytes, close, b"bytes")
    }

    /// The same, with a value of its own to put.
    pub fn meet_with(self, bytes: &[u8], close: bool, value: &[u8]) -> Met {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        ours.write_all(bytes).expect("sent");
        if close {
            // Only this direction: what the client says must not meet a reset.
            ours.shutdown(Shutdown::Write).expect("shut");
        }
        let socket = theirs.into();
        let stream = if self.port { Stream::Port(socket) } else { Stream::Descriptor(socket) };
        let Rank { dialect, size, job, .. } = self;
        let way = Way::Wire(Wire { stream, rank: 1, size, job: job.map(str::to_owned), dialect });
        let begun = Instant::now();
        let outcome = take_part(Start { way, timeout: TIMEOUT }, value);
        assert!(begun.elapsed() < Duration::from_secs(20), "every wait is bounded");
        // The rank has closed its end. Where it has not read everything this ends in a reset.
        let mut said = Vec::new();
        let _ = ours.read_to_end(&mut said);
        let said = String::from_utf8(said).expect("text");
        let outcome = match outcome {
            Ok(()) => "all well".to_owned(),
            Err(e @ BootstrapError::TimedOut { .. }) => {
                assert!(begun.elapsed() >= TIMEOUT, "{e}");
                format!("timed out: {e}")
            }
            Err(e) => e.to_string(),
        };
        Met { outcome, said }
    }
}

/// One of everything.
fn take_part(start: Start, value: &[u8]) -> Result<(), BootstrapError> {
    let rank = Launched::join(start)?;
    rank.put("key", value)?;
    rank.fence()?;
    rank.get(0, "key")?;
    rank.finalize()
}
