//! The instances of a node, and what each of them knows of connections: its table, which all of them change.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_sync::atomic::Ordering::Relaxed;

use crate::alone::Inside;
use crate::entry::Status;
use crate::handle::Handle;
use crate::msgq::{HEAD, Head, LIST, Plan, Progress};
use crate::nic::Nic;
use crate::station::{Reach, Shown, There, Want, reach};

/// Bytes that are cleared at a time.
const PIECE: u64 = 4096;

/// An instance of this NIC's node that has a queue.
pub(super) struct Neighbour {
    pub(super) instance: u32,
    pub(super) station: Arc<dyn Shown>,
    pub(super) plan: Plan,
}

/// The table of an instance, while nobody else reads or changes it (msgq.2).
pub(super) struct Table<'a> {
    station: &'a dyn Shown,
    memory: Handle,
    pub(super) told: gni_mem_handle_t,
    pub(super) plan: Plan,
    _alone: Inside<'a>,
}

impl Nic {
    /// The instances of its node that have a queue, in the order of their numbers.
    pub(super) fn node(&self) -> Vec<Neighbour> {
        let mut all = self.0.fabric.neighbours(self.address());
        all.retain(|(instance, _)| *instance != self.instance());
        all.push((self.instance(), self.0.home.clone()));
        all.sort_unstable_by_key(|(instance, _)| *instance);
        let there = all.into_iter().filter_map(|(instance, station)| {
            // Who cannot be asked is not there.
            let plan = Table::enter(&*station).ok()??.plan;
            Some(Neighbour { instance, station, plan })
        });
        there.collect()
    }

    /// Shows the others its queue, or that it has none any more; `false` if somebody else keeps the lock.
    pub(super) fn show(&self, queue: Option<(gni_mem_handle_t, Plan)>) -> bool {
        let window = self.0.home.window();
        let (Some(_alone), Some(words)) = (window.alone(), window.messages()) else { return false };
        let (handle, plan) =
            queue.map_or((gni_mem_handle_t::zeroed(), [0; 2]), |(handle, plan)| (handle, plan.encode()));
        let all = [handle.qword1, handle.qword2, plan[0], plan[1]];
        words.iter().zip(all).for_each(|(word, value)| word.store(value, Relaxed));
        true
    }
}

impl<'a> Table<'a> {
    /// The table of an instance, if it has one.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_STATE`: somebody else keeps the lock for too long.
    pub(super) fn enter(station: &'a dyn Shown) -> Result<Option<Self>, gni_return_t> {
        let window = station.window();
        let alone = window.alone().ok_or(GNI_RC_INVALID_STATE)?;
        let sign = window.messages().ok_or(GNI_RC_INVALID_STATE)?;
        let [qword1, qword2, lane, all] = [0, 1, 2, 3].map(|at: usize| sign[at].load(Relaxed));
        let told = gni_mem_handle_t { qword1, qword2 };
        let Some((memory, plan)) = Handle::open(&told).ok().zip(Plan::decode([lane, all])) else {
            return Ok(None);
        };
        Ok(Some(Self { station, memory, told, plan, _alone: alone }))
    }

    fn reach(&self, offset: u64, len: u64, want: Want) -> Result<Reach<'_>, gni_return_t> {
        let there = There { handle: self.memory, address: self.memory.first() + offset, len };
        reach(self.station, there, want).map_err(lost)
    }

    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>, gni_return_t> {
        let mut bytes = vec![0; len as usize];
        self.reach(offset, len, Want::Read)?.read(0, &mut bytes).map_err(lost)?;
        Ok(bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), gni_return_t> {
        self.reach(offset, bytes.len() as u64, Want::Write)?.write(0, bytes).map_err(lost)
    }

    /// What it says first of each connection.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_STATE`: its owner has gone.
    pub(super) fn heads(&self) -> Result<Vec<Head>, gni_return_t> {
        let bytes = self.read(0, self.plan.head(self.plan.connections))?;
        Ok(bytes.chunks(HEAD as usize).map(Head::decode).collect())
    }

    /// The connection to an address, if there is one.
    ///
    /// # Errors
    /// As [`heads`](Self::heads).
    pub(super) fn find(&self, address: u32) -> Result<Option<(u32, Head)>, gni_return_t> {
        let heads = (0..).zip(self.heads()?);
        Ok(heads.into_iter().find(|(_, head)| head.address() == Some(address)))
    }

    /// The instances at the other end of a connection, as its client was told of them.
    ///
    /// # Errors
    /// As [`heads`](Self::heads).
    pub(super) fn list(&self, connection: u32) -> Result<gni_msgq_ep_attr_t, gni_return_t> {
        Ok(crate::msgq::decode(&self.read(self.plan.list(connection), LIST)?))
    }

    /// Assigns a connection to an address, if none is; which. The owner is at this place of its node.
    ///
    /// # Errors
    /// As [`heads`](Self::heads). `GNI_RC_ERROR_RESOURCE`: all are to others.
    pub(super) fn assign(&self, address: u32, place: u32) -> Result<u32, gni_return_t> {
        if let Some((connection, head)) = self.find(address)? {
            self.write(self.plan.head(connection), &Head { place, ..head }.encode())?;
            return Ok(connection);
        }
        let free = (0..).zip(self.heads()?).find(|(_, head)| head.progress == Progress::Free);
        let (connection, Head { turn, .. }) = free.ok_or(GNI_RC_ERROR_RESOURCE)?;
        if turn > 0 {
            // msgq.4; before the first time they are.
            let (first, end) = (self.plan.first_lane(connection), self.plan.first_lane(connection + 1));
            for at in (first..end).step_by(PIECE as usize) {
                self.write(at, &[0; PIECE as usize][..(end - at).min(PIECE) as usize])?;
            }
        }
        let head = Head { progress: Progress::Assigned(address), turn: turn.wrapping_add(1).max(1), place };
        self.write(self.plan.head(connection), &head.encode())?;
        Ok(connection)
    }

    /// Connects what is assigned to an address; whether it was not.
    ///
    /// # Errors
    /// As [`heads`](Self::heads). `GNI_RC_NO_MATCH`: nothing is assigned to it.
    pub(super) fn connect(&self, address: u32, told: &gni_msgq_ep_attr_t) -> Result<bool, gni_return_t> {
        let (connection, head) = self.find(address)?.ok_or(GNI_RC_NO_MATCH)?;
        if head.progress == Progress::Connected(address) {
            return Ok(false);
        }
        // Who is killed in between leaves it as it was.
        self.write(self.plan.list(connection), &crate::msgq::encode(told))?;
        let head = Head { progress: Progress::Connected(address), ..head };
        self.write(self.plan.head(connection), &head.encode())?;
        Ok(true)
    }

    /// Ends the connection to an address, if there is one.
    ///
    /// # Errors
    /// As [`heads`](Self::heads).
    pub(super) fn free(&self, address: u32) -> Result<(), gni_return_t> {
        let Some((connection, head)) = self.find(address)? else { return Ok(()) };
        self.write(self.plan.head(connection), &Head { progress: Progress::Free, ..head }.encode())
    }
}

/// Its owner has gone, or has no queue any more.
fn lost(_: Status) -> gni_return_t {
    GNI_RC_INVALID_STATE
}
