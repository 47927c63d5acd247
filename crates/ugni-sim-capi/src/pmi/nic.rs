//! What ranks need to use the NIC, and the variables in which ALPS leaves it.
//!
//! # Invariants
//! - nic.1: whoever joins a job by a call of this library has no other thread that uses the environment meanwhile, as the headers
//!   demand: `PMI_Init`, `PMI2_Init`, and the requests to ALPS.

use gasworks_os::environ;
use gasworks_os::settings::{Kind, Setting};

/// The tags that jobs of users have, from the first to the last, and the one among them that none has.
const TAGS: std::ops::RangeInclusive<u8> = 3..=253;
const NO_TAG: u8 = 128;

const fn row(name: &'static str, meaning: &'static str) -> Setting {
    Setting {
        name,
        aliases: &[],
        kind: Kind::Text,
        default: "",
        unit: "",
        meaning,
        reader: "gasworks-ugni-sim-capi",
    }
}

const DEVICE: Setting = row("PMI_GNI_DEV_ID", "the number of the NIC, or of each, with colons between");
const ADDRESS: Setting = row("PMI_GNI_LOC_ADDR", "the address of each NIC, with colons between");
const TAG: Setting = row("PMI_GNI_PTAG", "the protection tag of the job, or one for each of its domains");
const COOKIE: Setting = row("PMI_GNI_COOKIE", "the cookie of the job, or one for each of its domains");
const PLACE: Setting = row("ALPS_APP_PE", "which of the application's ranks this is");

/// What a rank needs to use the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The number of the NIC.
    pub device: u32,
    /// Its address.
    pub address: u32,
    /// The protection tag of the job.
    pub tag: u8,
    /// The cookie of the job.
    pub cookie: u32,
}

impl Nic {
    /// That of a job whose first rank has drawn these bytes, for a rank at this address. The cookie is one that programs
    /// can read as an `int`.
    pub fn drawn(bytes: [u8; 16], address: u32) -> Self {
        let count = TAGS.len() - 1;
        let drawn = u16::from_le_bytes([bytes[0], bytes[1]]);
        let tag = TAGS.filter(|tag| *tag != NO_TAG).nth(usize::from(drawn) % count).unwrap_or(*TAGS.start());
        let cookie = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]) & 0x7fff_ffff;
        Self { device: 0, address, tag, cookie: cookie.max(1) }
    }

    /// Leaves it in the environment, where it is not set, and in any case which rank this is; gives what is set.
    pub fn publish(self, rank: u32) -> Self {
        let numbers = [self.device, self.address, self.tag.into(), self.cookie];
        for (setting, number) in [DEVICE, ADDRESS, TAG, COOKIE].iter().zip(numbers) {
            // SAFETY: nic.1: this rank is in one of the calls that join a job, and no other thread uses the environment meanwhile.
            unsafe { environ::set_unless_set(setting, &number.to_string()) };
        }
        // SAFETY: nic.1: it is still in that call, so no other thread reads or writes the environment.
        unsafe { environ::set(&PLACE, &rank.to_string()) };
        let device = listed(&DEVICE, 0).unwrap_or(self.device);
        let tag = listed(&TAG, 0).and_then(|tag| u8::try_from(tag).ok());
        Self {
            device,
            address: listed(&ADDRESS, device as usize).unwrap_or(self.address),
            tag: tag.unwrap_or(self.tag),
            cookie: listed(&COOKIE, 0).unwrap_or(self.cookie),
        }
    }
}

/// A number of a list with colons.
fn listed(setting: &Setting, at: usize) -> Option<u32> {
    setting.raw()?.1.split(':').nth(at)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_a_tag_and_a_cookie_that_a_job_may_have() {
        let mut tags = std::collections::BTreeSet::new();
        for drawn in 0..=u16::MAX {
            let mut bytes = [0xff; 16];
            bytes[..2].copy_from_slice(&drawn.to_le_bytes());
            tags.insert(Nic::drawn(bytes, 5).tag);
        }
        assert_eq!(tags.len(), 250);
        assert!(tags.iter().all(|tag| TAGS.contains(tag) && *tag != NO_TAG));
        assert_eq!(Nic::drawn([0xff; 16], 5).cookie, 0x7fff_ffff);
        assert_eq!(Nic::drawn([0; 16], 5), Nic { device: 0, address: 5, tag: 3, cookie: 1 });
    }
}
