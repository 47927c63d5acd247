//! What a NIC counts, by the names of the interface (`GNI_STAT_*`).
//!
//! What goes through FMA windows is counted when it is launched, each link of a chain by itself; of short messages, the sends that
//! were refused, each by what was lacking, and what was sent again. The rest is of parts that this NIC does not have, so that
//! nothing of it happens: it stays 0.

use gasworks_gni_sys::*;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Nic;

/// How often each happened: since the client had it counted from 0, and in all.
#[derive(Default)]
pub(super) struct Statistics {
    since: [AtomicU32; GNI_NUM_STATS as usize],
    all: [AtomicU64; GNI_NUM_STATS as usize],
}

impl Statistics {
    fn get(&self, which: gni_statistic_t) -> Result<&AtomicU32, gni_return_t> {
        self.since.get(which as usize).ok_or(GNI_RC_INVALID_PARAM)
    }
}

impl Nic {
    pub(super) fn count(&self, which: gni_statistic_t) {
        let Statistics { since, all } = &self.0.statistics;
        if let (Some(since), Some(all)) = (since.get(which as usize), all.get(which as usize)) {
            since.fetch_add(1, Relaxed);
            all.fetch_add(1, Relaxed);
        }
    }

    /// How often something happened in all, whatever the client has forgotten; of what there is not, 0.
    pub fn total(&self, which: gni_statistic_t) -> u64 {
        self.0.statistics.all.get(which as usize).map_or(0, |count| count.load(Relaxed))
    }

    /// How often something happened (`GNI_GetNicStat`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there is no such statistic.
    pub fn statistic(&self, which: gni_statistic_t) -> Result<u32, gni_return_t> {
        Ok(self.0.statistics.get(which)?.load(Relaxed))
    }

    /// Counts it from 0 again (`GNI_ResetNicStat`).
    ///
    /// # Errors
    /// As [`statistic`](Self::statistic).
    pub fn forget_statistic(&self, which: gni_statistic_t) -> Result<(), gni_return_t> {
        self.0.statistics.get(which)?.store(0, Relaxed);
        Ok(())
    }
}
