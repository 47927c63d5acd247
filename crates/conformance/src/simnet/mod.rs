//! `SimNet`: a network in one process, whose ranks are threads and whose decisions come from a seed.
//!
//! It implements the ports `Wire` and `Nic`, and the port to the launcher. It does everything that the ports allow and
//! a real machine seldom does: messages overtake each other, requests are refused, transfers complete late and in
//! any order, the NIC's rules are as odd as the configuration says, peers vanish. What it decides depends on the seed,
//! the rank and the number of that rank's operation, and on nothing else; delays are counted in polls. How threads
//! interleave is the machine's: a seed repeats the decisions, not the schedule.
//!
//! It checks what it can see: a reply or a return of credits that has no request to pay for its room is reported as
//! corruption, a key put twice or asked for in vain as an error.

#[allow(unsafe_code)]
mod block;
mod boot;
mod dice;
#[allow(unsafe_code)]
mod job;
mod lock;
mod net;
#[allow(unsafe_code)]
mod nic;
#[allow(unsafe_code)]
mod regions;
mod run;
mod teams;
#[allow(unsafe_code)]
mod wire;

pub use boot::SimBootstrap;
pub use job::{SimMode, job};
pub use nic::SimNic;
pub use run::{SimError, run};
pub use wire::{SimBarrier, SimWire};

use dice::Dice;
use gasworks_core::TeamBarriers;
use gasworks_memory::atomic::{Ops, Type};
use gasworks_rdma::{Abilities, Atomics};
use gasworks_sync::VolatileSlice;
use net::{Net, Seat};
use std::sync::Arc;
use std::time::Duration;

/// What goes wrong on purpose. The last three are what no transport may do: the conformance suite must notice them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// This rank vanishes after so many messages.
    pub gone: Option<(u32, u64)>,
    /// This rank's NIC registers nothing.
    pub refuse_registration: Option<u32>,
    /// One transfer in so many fails when it completes; 0 for none.
    pub nic_error: u32,
    /// One message or transfer in so many arrives with a bit flipped; 0 for none.
    pub corrupt: u32,
    /// One message in so many is lost; 0 for none.
    pub lose: u32,
    /// One message in so many arrives twice; 0 for none.
    pub double: u32,
}

/// What kind of net.
#[derive(Clone, Copy, Debug)]
pub struct SimConfig {
    /// How many ranks.
    pub ranks: u32,
    /// Where chance begins.
    pub seed: u64,
    /// Whether ranks reach each other's segments by pointer; if not, through the NIC only.
    pub mapped: bool,
    /// Bytes of each rank's segment.
    pub segment: usize,
    /// Bytes that each rank's RDMA engine has for bounce buffers, where the NIC wants local memory registered.
    pub aux: usize,
    /// How many requests may be on their way to one rank.
    pub queue: usize,
    /// The largest payload of a message.
    pub max_medium: usize,
    /// The largest Long.
    pub max_long: u64,
    /// One request in so many is refused though there is room; 0 for none.
    pub busy: u32,
    /// Whether messages overtake each other.
    pub reorder: bool,
    /// For at most how many polls of its receiver a message is held back, where they overtake each other.
    pub max_delay: u32,
    /// Whether a Long's message may go beside its payload.
    pub beside: bool,
    /// What the NIC can do.
    pub nic: Abilities,
    /// One post in so many is refused though there is room; 0 for none.
    pub nic_busy: u32,
    /// After at most how many polls more a transfer completes.
    pub nic_delay: u32,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// How long [`run`] waits for all ranks.
    pub watchdog: Duration,
    /// The stack of a rank's thread, where the default will not do.
    pub stack: Option<usize>,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            ranks: 2,
            seed: 0,
            mapped: false,
            segment: 1 << 20,
            aux: 64 << 10,
            queue: 64,
            max_medium: 4096,
            max_long: 1 << 40,
            busy: 7,
            reorder: true,
            max_delay: 5,
            beside: true,
            nic: Abilities {
                largest: 8192,
                get_alignment: 4,
                short: 1024,
                registers_local: true,
                tells_source: true,
                depth: 16,
                atomics: Atomics { of: Type::ALL.map(Type::operations), mixes: false },
                ..Abilities::default()
            },
            nic_busy: 9,
            nic_delay: 4,
            faults: Faults::default(),
            watchdog: Duration::from_secs(60),
            stack: None,
        }
    }
}

impl SimConfig {
    /// A net whose every limit comes from the seed as well: roomy and tight queues, NICs that want registered local
    /// memory or none, long and short transfers, aligned gets or not, one transfer at a time or many.
    pub fn varied(ranks: u32, seed: u64) -> Self {
        let dice = Dice::new(seed, u32::MAX);
        let mut number = 0;
        let mut pick = |from: &[usize]| {
            number += 1;
            from[dice.up_to(dice::Choice::Config, number, from.len() as u32 - 1) as usize]
        };
        Self {
            ranks,
            seed,
            queue: pick(&[1, 3, 64]),
            max_medium: pick(&[512, 4096, 10_000]),
            busy: pick(&[0, 3, 20]) as u32,
            reorder: pick(&[0, 1, 1]) == 1,
            max_delay: pick(&[0, 3, 20]) as u32,
            aux: pick(&[4096, 64 << 10]),
            nic: Abilities {
                largest: pick(&[4096, 8192, 1 << 20]),
                get_alignment: pick(&[1, 4, 64]),
                registers_local: pick(&[0, 1]) == 1,
                depth: pick(&[1, 4, 64]),
                local_alignment: pick(&[1, 4]),
                short: pick(&[0, 64, 4096]),
                tells_source: pick(&[0, 1]) == 1,
                atomics: atomics(pick(&[0, 1, 2, 3])),
                ..Abilities::default()
            },
            nic_busy: pick(&[0, 3, 20]) as u32,
            nic_delay: pick(&[0, 2, 10]) as u32,
            beside: pick(&[0, 1]) == 1,
            ..Self::default()
        }
    }
}

/// What NICs do of atomic operations: nothing, sums of integers, all but products, or all, beside the processor.
fn atomics(which: usize) -> Atomics {
    let sums = Ops::ADD | Ops::FADD | Ops::GET;
    let on = |of: Type| match which {
        0 => Ops::empty(),
        1 if of.is_float() => Ops::empty(),
        1 => sums,
        2 => of.operations() - (Ops::MULT | Ops::FMULT),
        _ => of.operations(),
    };
    Atomics { of: Type::ALL.map(on), mixes: which == 3 }
}

/// The net. Only its ranks are handed out.
#[derive(Debug)]
pub struct SimNet;

impl SimNet {
    /// Makes a net and returns its ranks, in order.
    #[allow(clippy::new_ret_no_self)] // the net is nothing but its ranks
    pub fn new(config: SimConfig) -> Vec<SimRank> {
        let net = Arc::new(Net::new(config));
        (0..config.ranks).map(|rank| SimRank { net: net.clone(), rank }).collect()
    }
}

/// One rank: what a job is opened with. Clones are the same rank.
#[derive(Clone)]
pub struct SimRank {
    net: Arc<Net>,
    rank: u32,
}

impl SimRank {
    /// Its number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The net's configuration.
    pub fn config(&self) -> SimConfig {
        self.net.config
    }

    /// Its way to the others at the start and the end.
    pub fn bootstrap(&self) -> SimBootstrap {
        SimBootstrap::new(self.clone())
    }

    /// Its transport.
    pub fn wire(&self) -> SimWire {
        SimWire::new(self.clone())
    }

    /// Its network interface.
    pub fn nic(&self) -> SimNic {
        SimNic(self.clone())
    }

    /// The barrier in shared memory, where ranks are mapped.
    pub fn barrier(&self) -> Option<SimBarrier> {
        let meeting = self.net.everyone.clone();
        let barrier = || SimBarrier { rank: self.clone(), meeting, mine: lock::Mutex::new(0) };
        self.net.config.mapped.then(barrier)
    }

    /// Barriers of teams in shared memory, where ranks are mapped.
    pub fn teams(&self) -> Option<Arc<dyn TeamBarriers + Send + Sync>> {
        self.net.config.mapped.then(|| Arc::new(self.clone()) as _)
    }

    /// The bytes of its segment. They live as long as any part of the net.
    pub fn segment(&self) -> VolatileSlice<'_> {
        self.seat().segment.bytes()
    }

    /// The bytes for its RDMA engine's bounce buffers.
    pub fn aux(&self) -> VolatileSlice<'_> {
        self.seat().aux.bytes()
    }

    /// The bytes of a rank's segment, if this rank reaches them by pointer.
    pub fn peer_segment(&self, rank: u32) -> Option<VolatileSlice<'_>> {
        let seat = self.net.seats.get(rank as usize)?;
        (rank == self.rank || self.net.config.mapped).then(|| seat.segment.bytes())
    }

    /// Lets this rank vanish without a word: the others find out.
    pub fn vanish(&self) {
        self.net.give_up(self.rank, "it vanished".into());
    }

    fn seat(&self) -> &Seat {
        &self.net.seats[self.rank as usize]
    }

    fn dice(&self) -> Dice {
        Dice::new(self.net.config.seed, self.rank)
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
