//! What handles stand for.

use std::sync::Arc;

use gasworks_os::memfd::Mapping;
use gasworks_ugni_sim::near::Attached;
use gasworks_ugni_sim::nic::{Channel, Cq, Endpoint, Engine, Msgq, Nic, Subscription};
use parking_lot::Mutex;

use super::raw::{Bytes, Handler, Receiver};
use super::table::Table;
use crate::witness;

/// A communication domain.
pub(super) struct Domain {
    pub(super) instance: u32,
    pub(super) ptag: u8,
    pub(super) cookie: u32,
    pub(super) modes: u32,
    /// Its NIC, once it is attached.
    pub(super) device: Mutex<Option<Arc<Device>>>,
}

/// A domain's attachment to a NIC.
pub(super) struct Device {
    /// The job's tag; where the domain left it to the driver, the one that was found.
    pub(super) ptag: u8,
    pub(super) cookie: u32,
    pub(super) attached: Attached,
}

/// A completion queue.
pub(super) struct Queue {
    pub(super) device: Arc<Device>,
    pub(super) cq: Arc<Cq>,
    /// Whether one may wait for its events.
    pub(super) blocking: bool,
    pub(super) handler: Option<Handler>,
    /// How often its interrupts were masked, and not unmasked.
    pub(super) masks: Mutex<u32>,
    /// Who tells of it, when it is armed.
    pub(super) channel: Mutex<Option<Arc<Chan>>>,
}

/// A completion channel.
pub(super) struct Chan {
    pub(super) device: Arc<Device>,
    pub(super) channel: Arc<Channel>,
}

/// An endpoint.
pub(super) struct End {
    pub(super) device: Arc<Device>,
    pub(super) endpoint: Endpoint,
    pub(super) queue: Option<Arc<Queue>>,
    /// Where the answer to its datagram goes, and how much room there is.
    pub(super) answer: Mutex<Option<(Bytes, u16)>>,
}

/// A subscription to errors.
pub(super) struct Errors {
    pub(super) device: Arc<Device>,
    pub(super) subscription: Arc<Subscription>,
}

/// A collective engine.
pub(super) struct Collective {
    pub(super) device: Arc<Device>,
    pub(super) engine: Engine,
}

/// A shared message queue.
pub(super) struct Messages {
    pub(super) device: Arc<Device>,
    pub(super) queue: Msgq,
    /// Where it is; longer there than it is used.
    pub(super) _memory: Mapping,
    pub(super) events: Option<Arc<Queue>>,
    pub(super) receiver: Receiver,
    /// How many messages are taken at a time.
    pub(super) pool: u32,
    /// Whether those who take them wait for more.
    pub(super) blocking: bool,
}

pub(super) static DOMAINS: Table<Domain> = Table::new(1);
pub(super) static DEVICES: Table<Device> = Table::new(2);
pub(super) static QUEUES: Table<Queue> = Table::new(3);
pub(super) static ENDS: Table<End> = Table::new(4);
pub(super) static ERRORS: Table<Errors> = Table::new(5);
pub(super) static CHANNELS: Table<Chan> = Table::new(8);
pub(super) static MESSAGES: Table<Messages> = Table::new(6);
pub(super) static COLLECTIVES: Table<Collective> = Table::new(7);

impl Device {
    pub(super) fn nic(&self) -> &Nic {
        self.attached.nic()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        witness::nic_went(self.nic());
    }
}
