//! A NIC's semantics, item by item, and random programs against a plain model of memory and events. All NICs are in one
//! process, with memories that are no process's.
#![cfg(not(gasworks_loom))]

// What takes Miri long and shows it nothing new.
#[cfg(not(miri))]
#[path = "nic/chains.rs"]
mod chains;
#[cfg(not(miri))]
#[path = "nic/channels.rs"]
mod channels;
#[cfg(not(miri))]
#[path = "nic/collective.rs"]
mod collective;
#[cfg(not(miri))]
#[path = "nic/datagrams.rs"]
mod datagrams;
#[cfg(not(miri))]
#[path = "nic/errors.rs"]
mod errors;
#[cfg(not(miri))]
#[path = "nic/faults.rs"]
mod faults;
#[cfg(not(miri))]
#[path = "nic/messages.rs"]
mod messages;
#[path = "nic/model.rs"]
mod model;
#[cfg(not(miri))]
#[path = "nic/moods.rs"]
mod moods;
#[cfg(not(miri))]
#[path = "nic/msgq.rs"]
mod msgq;
#[cfg(not(miri))]
#[path = "nic/registrations.rs"]
mod registrations;
#[cfg(not(miri))]
#[path = "nic/rules.rs"]
mod rules;
#[path = "nic/semantics.rs"]
mod semantics;
#[cfg(not(miri))]
#[path = "nic/statistics.rs"]
mod statistics;
#[cfg(not(miri))]
#[path = "nic/strict.rs"]
mod strict;
#[cfg(not(miri))]
#[path = "nic/traffic.rs"]
mod traffic;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gasworks_gni_sys::*;
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::faults::Faults;
use gasworks_ugni_sim::memory::{Arena, Memory};
use gasworks_ugni_sim::nic::{Cq, Endpoint, Event, Fabric, Home, Mood, Next, Nic};
use gasworks_ugni_sim::post::{Rules, Way};
use gasworks_ugni_sim::station::{Shown, Station};

/// The modes of most tests.
pub const MODES: u32 = GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_MDD_SHARED;
/// The size of each memory in words, and where that of the first rank begins; the others lie elsewhere.
pub const WORDS: usize = 64;
pub const FIRST: u64 = 0x10_0000;
pub const APART: u64 = 0x100_0000;
/// Entries of each queue.
pub const ENTRIES: u32 = 16;

/// The NICs of a job.
#[derive(Default)]
pub struct Net(Mutex<BTreeMap<(u32, u32), Arc<Home>>>);

impl Fabric for Net {
    fn find(&self, address: u32, instance: u32) -> Option<Arc<dyn Station>> {
        let home = self.0.lock().unwrap().get(&(address, instance))?.clone();
        Some(home)
    }

    fn neighbours(&self, address: u32) -> Vec<(u32, Arc<dyn Shown>)> {
        // A host lists them in any order.
        let all = self.0.lock().unwrap();
        let near = all.iter().rev().filter(|(name, _)| name.0 == address);
        near.map(|(name, home)| (name.1, home.clone() as Arc<dyn Shown>)).collect()
    }
}

/// One rank: its NIC, its memory, which is registered with the second queue, and an endpoint to every rank.
pub struct Rank {
    pub nic: Nic,
    pub arena: Arc<Arena>,
    pub events: Arc<Cq>,
    pub arrivals: Arc<Cq>,
    pub handle: gni_mem_handle_t,
    pub endpoints: Vec<Endpoint>,
}

/// The address of the NIC of a rank.
pub fn address(rank: u32) -> u32 {
    0x40 + rank
}

pub fn job(chip: Chip, modes: u32, ranks: u32) -> Vec<Rank> {
    job_in(Mood::Plain, chip, modes, ranks)
}

pub fn job_in(mood: Mood, chip: Chip, modes: u32, ranks: u32) -> Vec<Rank> {
    job_of(mood, chip, modes, ranks, WORDS, |arena| arena)
}

/// Ranks with so many words of memory each, which the NICs reach as is said.
pub fn job_of(
    mood: Mood,
    chip: Chip,
    modes: u32,
    ranks: u32,
    words: usize,
    reached: impl Fn(Arc<Arena>) -> Arc<dyn Memory>,
) -> Vec<Rank> {
    job_with((mood, Faults::default()), chip, modes, ranks, words, reached)
}

/// The same, with faults that each NIC meets.
pub fn job_with(
    (mood, faults): (Mood, Faults),
    chip: Chip,
    modes: u32,
    ranks: u32,
    words: usize,
    reached: impl Fn(Arc<Arena>) -> Arc<dyn Memory>,
) -> Vec<Rank> {
    let faults = Arc::new(faults);
    let net = Arc::new(Net::default());
    let rules = Rules { chip, modes };
    (0..ranks)
        .map(|rank| {
            let arena = Arc::new(Arena::new(FIRST + APART * u64::from(rank), words));
            let home = Arc::new(Home::new(chip, reached(arena.clone()), 8, 8));
            net.0.lock().unwrap().insert((address(rank), rank), home.clone());
            let nic = Nic::new(rules, (address(rank), rank), home, net.clone(), mood, faults.clone());
            let (events, arrivals) = (nic.queue(ENTRIES).unwrap(), nic.queue(ENTRIES).unwrap());
            let handle = nic.register((arena.first(), arena.len()), Some(&arrivals), 0).unwrap();
            let endpoints = (0..ranks)
                .map(|peer| {
                    let endpoint = nic.endpoint(Some(&events)).unwrap();
                    endpoint.bind(address(peer), peer).unwrap();
                    endpoint
                })
                .collect();
            Rank { nic, arena, events, arrivals, handle, endpoints }
        })
        .collect()
}

impl Rank {
    /// The address of a byte of its memory.
    pub fn at(&self, offset: u64) -> u64 {
        self.arena.first() + offset
    }

    /// A descriptor of so many bytes between the same place of both memories.
    pub fn descriptor(&self, peer: &Rank, kind: gni_post_type_t, length: u64) -> gni_post_descriptor_t {
        gni_post_descriptor_t {
            r#type: kind,
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            local_addr: self.at(0),
            local_mem_hndl: self.handle,
            remote_addr: peer.at(0),
            remote_mem_hndl: peer.handle,
            length,
            post_id: 77,
            ..gni_post_descriptor_t::zeroed()
        }
    }

    pub fn post(&self, peer: usize, descriptor: &gni_post_descriptor_t) -> Result<(), gni_return_t> {
        let way = match descriptor.r#type {
            GNI_POST_RDMA_PUT | GNI_POST_RDMA_GET => Way::Bte,
            GNI_POST_CQWRITE => Way::CqWrite,
            _ => Way::Fma,
        };
        self.endpoints[peer].post(descriptor, way, descriptor.post_id + 1000, None)
    }

    pub fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.arena.read(self.at(offset), &mut bytes).unwrap();
        bytes
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.arena.write(self.at(offset), bytes).unwrap();
    }
}

pub fn event(queue: &Cq) -> Event {
    match queue.next() {
        Next::Event(event) => event,
        Next::Nothing => panic!("there is no event"),
    }
}

pub fn nothing(queue: &Cq) -> bool {
    queue.next() == Next::Nothing
}
