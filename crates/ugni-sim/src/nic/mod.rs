//! A NIC, as its client sees it: completion queues, registered memory, endpoints, and what is posted to them.
//!
//! The client's own memory is reached through numbers alone; a descriptor is known by a token that the client chooses.

mod chain;
mod channel;
mod collective;
mod datagram;
mod endpoint;
mod errors;
mod flight;
mod home;
mod kin;
mod mood;
mod msgq;
mod registrations;
mod requests;
mod sky;
mod smsg;
mod source;
mod statistics;
mod strict;

pub use chain::{LONGEST_CHAIN, LONGEST_SHARED_CHAIN, Link, Part};
pub use channel::Channel;
pub use collective::Engine;
pub use datagram::Outcome;
pub use endpoint::Endpoint;
pub use errors::{Report, Subscription};
pub use home::Home;
pub(crate) use kin::may_be_of_kin;
pub use mood::Mood;
pub(crate) use mood::mix;
pub use msgq::{Msgq, Received};
pub use registrations::{Bytes, rebuilt};
pub use smsg::Message;
pub use source::{Cq, Event, Kind, Next};
pub use strict::{Breach, Inbound, Judge, Rule};

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use crate::faults::Faults;
use crate::memory::Memory;
use crate::post::{Rules, Way};
use crate::station::{Reach, Shown, Station, Want};

/// Finds NICs.
pub trait Fabric: Send + Sync {
    /// The NIC of an instance at an address, if there is one.
    fn find(&self, address: u32, instance: u32) -> Option<Arc<dyn Station>>;

    /// The NICs of the job at an address of this host, by the numbers of their clients, in any order.
    fn neighbours(&self, _address: u32) -> Vec<(u32, Arc<dyn Shown>)> {
        Vec::new()
    }

    /// Whoever serves the NIC while its client does not look is to do so again soon.
    fn wake(&self) {}
}

/// A NIC that a client is attached to. Clones are the same. What is on its way keeps it, so a client that goes says so
/// ([`detach`](Self::detach)).
#[derive(Clone)]
pub struct Nic(Arc<Shared>);

struct Shared {
    rules: Rules,
    instance: u32,
    address: u32,
    home: Arc<Home>,
    fabric: Arc<dyn Fabric>,
    mood: Mood,
    faults: Arc<Faults>,
    sky: Mutex<sky::Sky>,
    descriptors: Mutex<registrations::Descriptors>,
    desk: Mutex<datagram::Desk>,
    /// Held by who has taken letters and not done all that they say.
    serving: Mutex<()>,
    smsg: Mutex<smsg::Settings>,
    watch: channel::Watch,
    /// The other NICs of the processes of some, by address and instance, as far as anybody had to ask them.
    kin: Mutex<BTreeMap<(u32, u32), Vec<kin::Kin>>>,
    statistics: statistics::Statistics,
    subscriptions: Mutex<Vec<Weak<Subscription>>>,
    engines: Mutex<collective::Engines>,
    strict: OnceLock<strict::Strict>,
}

impl Nic {
    /// The NIC of `instance` at `address`, whose client's memory and tables are at `home`. Besides what its mood does, it meets
    /// `faults`: `transaction` of a [`Status`](crate::entry::Status) by its name, `queue:overrun`, `remote-queue:overrun`,
    /// `datagram:timeout` and `datagram:terminated`.
    pub fn new(
        rules: Rules,
        (address, instance): (u32, u32),
        home: Arc<Home>,
        fabric: Arc<dyn Fabric>,
        mood: Mood,
        faults: Arc<Faults>,
    ) -> Self {
        let descriptors = Mutex::new(registrations::Descriptors::new(home.descriptors(), instance));
        Self(Arc::new(Shared {
            rules,
            instance,
            address,
            home,
            fabric,
            mood,
            faults,
            sky: Mutex::default(),
            descriptors,
            desk: Mutex::default(),
            serving: Mutex::default(),
            smsg: Mutex::default(),
            watch: channel::Watch::default(),
            kin: Mutex::default(),
            statistics: statistics::Statistics::default(),
            subscriptions: Mutex::default(),
            engines: Mutex::default(),
            strict: OnceLock::new(),
        }))
    }

    /// Its address.
    pub fn address(&self) -> u32 {
        self.0.address
    }

    /// The number of its client.
    pub fn instance(&self) -> u32 {
        self.0.instance
    }

    /// A completion queue of at least one entry (`GNI_CqCreate`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM` for none, `GNI_RC_ERROR_RESOURCE` if the NIC has no more.
    pub fn queue(&self, entries: u32) -> Result<Arc<Cq>, gni_return_t> {
        if entries == 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let number = self.0.home.make_queue(entries).ok_or(GNI_RC_ERROR_RESOURCE)?;
        Ok(Arc::new(Cq::new(self.clone(), number, entries)))
    }

    /// An endpoint whose events go to `queue` (`GNI_EpCreate`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: other NICs write into that queue.
    pub fn endpoint(&self, queue: Option<&Arc<Cq>>) -> Result<Endpoint, gni_return_t> {
        if let Some(queue) = queue {
            queue.become_source()?;
        }
        Ok(Endpoint::new(self.clone(), queue.cloned()))
    }

    /// Enters memory of its client that was registered with it.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: the bytes are not registered; `GNI_RC_PERMISSION_ERROR`: to be read only.
    fn own(
        &self,
        handle: &gni_mem_handle_t,
        bytes: (u64, u64),
        want: Want,
    ) -> Result<Reach<'_>, gni_return_t> {
        let entered = kin::enter_own(&*self.0.home, handle, bytes, want);
        entered.map_err(|status| self.not_registered(handle, status))
    }

    /// Carries a transaction out, or as much of it as its mood will have.
    fn take_on(&self, flight: flight::Flight) {
        if flight.post().way != Way::Bte {
            self.count(GNI_STAT_FMA_LAUNCH_COUNT);
        }
        match self.0.mood {
            Mood::Plain => flight.finish(),
            mood => self.0.sky.lock().take_on(flight, mood, self.instance()),
        }
    }

    /// What is due of transactions that are on their way. Each look at a queue does this too.
    pub fn progress(&self) {
        if self.0.mood != Mood::Plain {
            self.0.sky.lock().progress();
        }
    }

    /// The client goes: what is on its way is lost, and nobody touches what is registered any more.
    pub fn detach(&self) {
        self.deregister_all();
        let lost = std::mem::take(&mut *self.0.sky.lock());
        let unfinished = std::mem::take(&mut *self.0.engines.lock());
        let kin = std::mem::take(&mut *self.0.kin.lock());
        // Dropped without the locks.
        drop((lost, unfinished, kin));
    }

    /// Whether both are the same.
    fn is(&self, other: &Nic) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn memory(&self) -> &dyn Memory {
        self.0.home.memory()
    }
}
