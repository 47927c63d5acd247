//! Running a closure as every rank, under a watchdog.

use super::boot::Aborted;
use super::net::Net;
use super::{SimConfig, SimNet, SimRank};
use std::any::Any;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long ranks have to notice that the watchdog has broken the net.
const GRACE: Duration = Duration::from_secs(10);

/// Why a run failed. The seed is in the message: with it the decisions are the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// A rank panicked, for instance in an assertion.
    #[error("simnet seed {seed}, {ranks} ranks: rank {rank} panicked: {message}")]
    Panicked {
        /// The net's seed.
        seed: u64,
        /// How many ranks it has.
        ranks: u32,
        /// Which one.
        rank: u32,
        /// What it said.
        message: String,
    },
    /// A rank aborted the job.
    #[error("simnet seed {seed}, {ranks} ranks: rank {rank} aborted with code {code}: {message}")]
    Aborted {
        /// The net's seed.
        seed: u64,
        /// How many ranks it has.
        ranks: u32,
        /// Which one.
        rank: u32,
        /// The code.
        code: i32,
        /// What it said.
        message: String,
    },
    /// Some rank did not end in time.
    #[error("simnet seed {seed}, {ranks} ranks: rank {rank} did not end within {seconds} s")]
    TimedOut {
        /// The net's seed.
        seed: u64,
        /// How many ranks it has.
        ranks: u32,
        /// The lowest that did not.
        rank: u32,
        /// The limit.
        seconds: u64,
    },
    /// A thread could not be started.
    #[error("starting the thread of rank {rank}: {cause}")]
    Thread {
        /// Which one.
        rank: u32,
        /// What the system said.
        cause: String,
    },
}

fn explain(config: &SimConfig, rank: u32, payload: Box<dyn Any + Send>) -> SimError {
    let (seed, ranks) = (config.seed, config.ranks);
    let payload = match payload.downcast::<Aborted>() {
        Ok(aborted) => {
            let Aborted { code, message } = *aborted;
            return SimError::Aborted { seed, ranks, rank, code, message };
        }
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let message = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned();
    SimError::Panicked { seed, ranks, rank, message }
}

/// Runs `body` as every rank of a net, each on a thread of its own, and returns what the ranks returned, in order.
///
/// A rank that panics or aborts breaks the net for all. So does the watchdog of [`SimConfig::watchdog`]; a rank that
/// does not even notice that cannot be stopped, so then the process ends with code 124.
///
/// # Errors
/// What went wrong first.
pub fn run<R: Send>(config: SimConfig, body: impl Fn(SimRank) -> R + Sync) -> Result<Vec<R>, SimError> {
    let ranks = SimNet::new(config);
    let (sender, ended) = mpsc::channel();
    let body = &body;
    std::thread::scope(|scope| {
        let mut nets = Vec::new();
        for rank in ranks {
            let (number, sender, net) = (rank.rank, sender.clone(), rank.net.clone());
            nets.push(net.clone());
            let mut builder = std::thread::Builder::new().name(format!("rank {number}"));
            if let Some(stack) = config.stack {
                builder = builder.stack_size(stack);
            }
            let mine = sender.clone();
            let spawned = builder.spawn_scoped(scope, move || {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(rank)));
                let result = result.map_err(|payload| explain(&config, number, payload));
                if let Err(error) = &result {
                    net.give_up(number, error.to_string());
                }
                // The receiver outlives the scope.
                let _ = mine.send((number, result));
            });
            if let Err(cause) = spawned {
                let error = SimError::Thread { rank: number, cause: cause.to_string() };
                nets.iter().for_each(|net| net.give_up(number, error.to_string()));
                let _ = sender.send((number, Err(error)));
            }
        }
        drop(sender);
        collect(&config, nets.first(), &ended)
    })
}

type Ended<R> = mpsc::Receiver<(u32, Result<R, SimError>)>;

/// Waits for all ranks, breaking the net when time is up.
fn collect<R>(config: &SimConfig, net: Option<&Arc<Net>>, ended: &Ended<R>) -> Result<Vec<R>, SimError> {
    let ranks = config.ranks as usize;
    let mut results: Vec<Option<Result<R, SimError>>> = std::iter::repeat_with(|| None).take(ranks).collect();
    let mut limit = Instant::now() + config.watchdog;
    let mut late = None;
    while results.iter().any(Option::is_none) {
        match ended.recv_timeout(limit.saturating_duration_since(Instant::now())) {
            Ok((rank, result)) => results[rank as usize] = Some(result),
            Err(_) => {
                let rank = results.iter().position(Option::is_none).unwrap_or(0) as u32;
                let seconds = config.watchdog.as_secs();
                let error = SimError::TimedOut { seed: config.seed, ranks: config.ranks, rank, seconds };
                if late.is_some() {
                    // A thread cannot be ended from outside.
                    eprintln!("{error}, nor when told to: the process ends");
                    std::process::exit(124);
                }
                if let Some(net) = net {
                    net.give_up(rank, error.to_string());
                }
                late = Some(error);
                limit = Instant::now() + GRACE;
            }
        }
    }
    // Others fail because somebody was gone: who broke the net tells why.
    let first = net.and_then(|net| net.broken()).map(|broken| broken.rank as usize);
    if let Some(error) = late {
        return Err(error);
    }
    if let Some(Some(Err(error))) = first.and_then(|rank| results.get(rank)) {
        return Err(error.clone());
    }
    results.into_iter().flatten().collect()
}
