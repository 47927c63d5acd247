//! [`Blocks`] against a list of flags.

use crate::{CALLS, config};
use gasworks_shmem::blocks::Blocks;
use gasworks_sync::atomic::AtomicU32;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn blocks(alone in any::<bool>(), calls in prop::collection::vec((any::<bool>(), 0u32..6), 0..CALLS)) {
        let flags: Vec<_> = (0..6).map(|_| AtomicU32::new(0)).collect();
        let blocks = Blocks::new(&flags);
        let mut model = [false; 6];
        for (claim, number) in calls {
            if claim {
                let free = (number..6).find(|&index| !model[index as usize]);
                let claimed = if alone { blocks.claim_alone(number, 6) } else { blocks.claim(number, 6) };
                prop_assert_eq!(claimed, free);
                free.into_iter().for_each(|index| model[index as usize] = true);
            } else {
                blocks.free(number);
                model[number as usize] = false;
            }
            prop_assert_eq!(blocks.claimed(), model.iter().filter(|&&claimed| claimed).count());
        }
        prop_assert_eq!((blocks.claim(3, 7), blocks.claim_alone(3, 7)), (None, None));
    }
}
