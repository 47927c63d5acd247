//! How much of each rank's memory messages take, before anybody has talked.

use crate::GniError;
use crate::domain::{self, Chip};
use crate::messages;
use crate::open::{arrivals, shape};
use crate::region::Layout;
use crate::settings::Settings;

/// Bytes of each rank's memory that messages take in a job of so many ranks: what `GASNET_GNI_AM_MEMORY_REPORT` says, and what
/// else grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Registered with the NIC: what others write to and read from.
    pub registered: u64,
    /// Tables with an entry for each rank, of one domain.
    pub tables: u64,
    /// The library's queue of notifications.
    pub queue: u64,
}

/// Bytes of an event in a queue of the library's.
const EVENT: u64 = 8;

impl Memory {
    /// On this chip, in a job of so many ranks, by the settings.
    ///
    /// # Errors
    /// A setting is wrong, or asks for more than any memory.
    pub fn of(chip: Chip, ranks: u32) -> Result<Self, GniError> {
        let settings = Settings::read(chip)?;
        let (shape, _) = shape(chip, ranks, &settings)?;
        let too_large = || GniError::TooLarge { what: format!("{shape:?} is beyond any memory") };
        let layout = Layout::new(shape).ok_or_else(too_large)?;
        Ok(Self {
            registered: layout.len as u64,
            tables: u64::from(ranks) * (domain::EACH + messages::EACH) as u64,
            queue: EVENT
                * u64::from(arrivals(&shape, settings.longs(shape.tickets)).min(settings.most_arrivals)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the issue of memory is about: a rank that has not talked costs little, whatever the job's size.
    #[test]
    fn a_silent_rank_takes_little() {
        for chip in [Chip::Gemini, Chip::Aries] {
            let [few, many] = [2, 100_000].map(|ranks| Memory::of(chip, ranks).expect("it fits"));
            let whole = |memory: Memory| memory.registered + memory.tables + memory.queue;
            let each = (whole(many) - whole(few)) / (100_000 - 2);
            assert!(each <= 1024, "{chip:?}: {each}");
            let some = Memory::of(chip, 2000).expect("it fits");
            let each = (whole(some) - whole(few)) / (2000 - 2);
            assert!(each <= 1024, "{chip:?}, below the queue's limit: {each}");
            assert!(many.queue <= 2 << 20, "{chip:?}: {many:?}");
        }
    }
}
