//! How kind a NIC is to its client: whether things happen at once and in order, or as late and as mixed up as the network
//! may have it.

use crate::post::{Action, Post, Way};
use gasworks_gni_sys::GNI_DLVMODE_NO_ADAPT;

/// How a NIC treats what is posted to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// A post is carried out before the function that posts it returns.
    #[default]
    Plain,
    /// Each step of a transaction happens some calls of its client later. How many follows from the seed, the client's
    /// instance, and how many transactions it has posted before: the same program meets the same again. A message is
    /// spoiled as soon as it is released.
    Adversarial {
        /// The seed.
        seed: u64,
    },
    /// The same, and the event at a target may come before the flag that it tells of, and before the bytes too where the memory
    /// was registered with neither `GNI_MEM_STRICT_PI_ORDERING` nor `GNI_MEM_PI_FLUSH`.
    Unordered {
        /// The seed.
        seed: u64,
    },
}

impl Mood {
    /// The seed, where nothing happens at once.
    pub fn seed(self) -> Option<u64> {
        match self {
            Mood::Plain => None,
            Mood::Adversarial { seed } | Mood::Unordered { seed } => Some(seed),
        }
    }
}

/// The steps of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The block transfer engine reads what it puts.
    Fetch,
    /// The bytes, the word or the value are where they are to go; what the processor puts is read only now.
    Move,
    /// The flag after them.
    Flag,
    /// The event at the target.
    There,
    /// The event that says that the source may be used again.
    Local,
    /// The event that says that all is done.
    Global,
}

impl Step {
    pub(super) const ALL: [Step; 6] =
        [Step::Fetch, Step::Move, Step::Flag, Step::There, Step::Local, Step::Global];
}

/// How late each step is, in calls of the client.
pub(super) type Delays = [u64; Step::ALL.len()];

/// The latest that a step is.
const LATEST: u64 = 12;

/// Whether all of a transaction goes the same way as what was posted before.
pub(super) fn is_ordered(post: &Post) -> bool {
    post.delivery & GNI_DLVMODE_NO_ADAPT != 0
}

/// What the network may do to a transaction, the `number`th of a client, in a mood that has a seed.
pub(super) fn delays(mood: Mood, instance: u32, number: u64, post: &Post) -> Delays {
    let seed = mood.seed().unwrap_or_default();
    let mut random = Random(mix(seed) ^ mix(u64::from(instance) << 40 ^ number));
    // Half of them go at once, so that they overtake the others.
    let mut late = || if random.next() & 1 == 0 { 0 } else { random.next() % (LATEST + 1) };
    let fetched = late();
    let moved = fetched + late();
    let flag = moved + late();
    let is_unordered = matches!(mood, Mood::Unordered { .. });
    let there = match post.action {
        // A value for a queue is its own event.
        Action::CqWrite { .. } => flag,
        // Of messages clients hear when they can be read: who has looked in vain would not look again.
        _ if !is_unordered || is_ordered(post) || post.way == Way::Smsg => flag + late(),
        // Events may overtake flags even where the writes are ordered: GASNet's conduit says that it has seen that.
        _ if post.remote_handle.is_ok_and(|handle| handle.orders_writes()) => moved + late(),
        _ => late(),
    };
    // The source of a put is free when it was read.
    let local = if matches!(post.action, Action::Put) { fetched } else { moved } + late();
    let global = flag.max(there).max(local) + late();
    [fetched, moved, flag, there, local, global]
}

/// Whether the `number`th wait of a client for several queues ends for nothing.
pub(super) fn wakes_falsely(seed: u64, instance: u32, number: u64) -> bool {
    mix(mix(seed) ^ u64::from(instance) << 40 ^ number) & 3 == 0
}

pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Numbers that look as if they were drawn (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;
    use crate::handle::{Flags, Handle, ORDERED};
    use crate::post::Rules;
    use gasworks_gni_sys::{GNI_POST_RDMA_PUT, gni_post_descriptor_t};

    /// What may not be swapped is not, and what may be is.
    #[test]
    fn steps_keep_the_order_that_they_must() {
        let rules = Rules { chip: Chip::Aries, modes: 0 };
        let put = |dlvr_mode| {
            let put = gni_post_descriptor_t {
                r#type: GNI_POST_RDMA_PUT,
                length: 8,
                dlvr_mode,
                ..Default::default()
            };
            Post::read(&put, Way::Bte, &rules).expect("a put")
        };
        let (any, ordered) = (put(0), put(GNI_DLVMODE_NO_ADAPT));
        let may_be_early =
            Post { remote_handle: Ok(Handle { flags: Flags::NEW_FORMAT, ..Handle::default() }), ..any };
        let is_kept = Handle { flags: Flags::NEW_FORMAT, entropy: ORDERED, ..Handle::default() };
        let (mut notified, mut free) = (0, 0);
        for number in 0..if cfg!(miri) { 100 } else { 10_000 } {
            let seed = number / 7;
            let (mood, unordered) = (Mood::Adversarial { seed }, Mood::Unordered { seed });
            let [.., flag, there, _, _] = delays(mood, 3, number, &may_be_early);
            assert!(flag <= there, "{number}");
            let [_, moved, _, there, ..] =
                delays(unordered, 3, number, &Post { remote_handle: Ok(is_kept), ..any });
            assert!(moved <= there, "{number}");
            let [fetched, moved, flag, there, local, global] = delays(unordered, 3, number, &may_be_early);
            assert!(fetched <= moved && moved <= flag && fetched <= local, "{number}");
            assert!(flag.max(there).max(local) <= global, "{number}");
            notified += u32::from(there < moved);
            free += u32::from(local < moved);
            for post in [ordered, Post { way: Way::Smsg, ..any }] {
                let [.., flag, there, _, _] = delays(unordered, 3, number, &post);
                assert!(flag <= there, "{number}");
            }
        }
        assert!(
            cfg!(miri) || (1000..7000).contains(&notified),
            "{notified} notifications came before their bytes"
        );
        assert!(
            cfg!(miri) || (1000..7000).contains(&free),
            "{free} sources were free before the bytes had arrived"
        );
    }
}
