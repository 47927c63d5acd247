//! The other NICs of a process. On the machines memory is registered with a job's tables on a node, not with one of its NICs: a handle
//! serves through all NICs of the process that has registered it, its own and its peers'. Here each NIC has a table, and where
//! that of the NIC that is named does not know a handle, those of its kin are asked. Two tables that both know it name the same bytes,
//! for both are of one process.

use std::sync::Arc;

use gasworks_gni_sys::*;

use super::Nic;
use crate::entry::Status;
use crate::handle::Handle;
use crate::letter::Letter;
use crate::memory::Memory;
use crate::shares::Shares;
use crate::station::{Reach, Shown, There, Want, enter};
use crate::window::Window;

/// A NIC of the same process as another one.
pub(super) type Kin = Arc<dyn Shown>;

impl Shown for Kin {
    fn window(&self) -> &Window {
        (**self).window()
    }

    fn memory(&self) -> &dyn Memory {
        (**self).memory()
    }

    fn shares(&self) -> Option<&Shares> {
        (**self).shares()
    }

    fn take_in(&self, letter: &Letter) -> bool {
        (**self).take_in(letter)
    }

    fn has_gone(&self) -> bool {
        (**self).has_gone()
    }
}

/// Whether a NIC may not be the one with which the memory was registered.
pub(crate) fn may_be_of_kin<T>(done: &Result<T, Status>) -> bool {
    matches!(done, Err(Status::Descriptor | Status::Bounds))
}

/// Whether two NICs are of one process.
fn are_kin(one: &dyn Shown, other: &dyn Shown) -> bool {
    one.memory().process().zip(other.memory().process()).is_some_and(|(one, other)| one.is(other))
}

/// Enters memory that a handle names with a NIC of this process.
pub(super) fn enter_own<'a>(
    nic: &'a dyn Shown,
    handle: &gni_mem_handle_t,
    (address, len): (u64, u64),
    want: Want,
) -> Result<Reach<'a>, Status> {
    let handle = Handle::open(handle).map_err(|_| Status::Descriptor)?;
    enter(nic, There { handle, address, len }, want)
}

impl Nic {
    /// What a NIC's kin gives. Those that are known are tried before the host is asked which there are.
    pub(super) fn of_kin<T>(&self, name: (u32, u32), act: impl Fn(&[Kin]) -> Option<T>) -> Option<T> {
        let mut known = self.0.kin.lock().get(&name).cloned().unwrap_or_default();
        known.retain(|kin| !kin.has_gone());
        act(&known).or_else(|| {
            let found = self.kin_of(name);
            let given = act(&found);
            if !found.is_empty() {
                self.0.kin.lock().insert(name, found);
            }
            given
        })
    }

    /// The other NICs, on this host, of the process of an instance at an address; where no NIC has that number, all that are there.
    fn kin_of(&self, (address, instance): (u32, u32)) -> Vec<Kin> {
        let mut all = self.0.fabric.neighbours(address);
        let named = all.iter().position(|(other, _)| *other == instance).map(|at| all.swap_remove(at).1);
        let kin = all.into_iter().map(|(_, nic)| nic);
        kin.filter(|nic| named.as_ref().is_none_or(|named| are_kin(&**nic, &**named))).collect()
    }

    /// Does something with memory at an address of this host that a NIC there has registered, whatever number it has. On the machines a
    /// transaction goes to a node, and the handle says the rest: clients bind endpoints to numbers that no NIC has. More than one
    /// process there that knows the handle is as good as none.
    pub(super) fn at_node<T>(
        &self,
        name: (u32, u32),
        there: There,
        act: impl Fn(&Kin) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let knows = |nic: &&Kin| enter(&***nic, there, Want::Read).is_ok();
        let done = self.of_kin(name, |all| {
            let mut holders = all.iter().filter(knows);
            let first = holders.next()?;
            holders.all(|other| are_kin(&**other, &**first)).then(|| act(first))
        });
        done.unwrap_or(Err(Status::Gone))
    }

    /// With which NIC memory of the client was registered, if not with this one.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: the bytes are not registered; `GNI_RC_PERMISSION_ERROR`: to be read only.
    pub(super) fn holder(
        &self,
        handle: &gni_mem_handle_t,
        bytes: (u64, u64),
        want: Want,
    ) -> Result<Option<Kin>, gni_return_t> {
        let own = enter_own(&*self.0.home, handle, bytes, want);
        if !may_be_of_kin(&own) {
            return own.map(|_| None).map_err(|status| self.not_registered(handle, status));
        }
        let holds = |kin: &&Kin| enter_own(&***kin, handle, bytes, want).is_ok();
        let name = (self.address(), self.instance());
        let holder = self.of_kin(name, |kin| kin.iter().find(holds).map(Arc::clone));
        match (holder, own) {
            (Some(kin), _) => Ok(Some(kin)),
            (None, own) => own.map(|_| None).map_err(|status| self.not_registered(handle, status)),
        }
    }

    /// Memory of the client was not entered.
    pub(super) fn not_registered(&self, handle: &gni_mem_handle_t, status: Status) -> gni_return_t {
        self.misused(handle);
        if status == Status::Permission { GNI_RC_PERMISSION_ERROR } else { GNI_RC_INVALID_PARAM }
    }
}
