//! How a transfer of any offset and length becomes posts that a NIC's rules admit.
//!
//! A get whose edges are not aligned fetches more than was asked for into a bounce buffer and keeps the part that
//! was. A put cannot do the same: writing back the bytes around an edge would undo what somebody else wrote there
//! meanwhile. So an unaligned put on a NIC with such a rule is refused, by [`Rules::check`].

use crate::engine::EngineError;
use crate::nic::{Abilities, Direction};

/// A NIC's rules, with the size of the bounce buffers (0 without any).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub largest: usize,
    pub get_alignment: usize,
    pub put_alignment: usize,
    pub bounce: usize,
}

/// The next post of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Bytes before the wanted ones that are fetched too.
    pub skip: usize,
    /// Bytes of the operation that this post moves; never 0.
    pub useful: usize,
    /// Bytes of the post: `skip`, `useful`, and what rounds the end up.
    pub wire: usize,
    /// Whether it goes through a bounce buffer.
    pub bounced: bool,
}

fn down(n: usize, alignment: usize) -> usize {
    n - n % alignment
}

impl Rules {
    pub fn new(abilities: &Abilities, bounce: usize) -> Self {
        Self {
            largest: abilities.largest,
            get_alignment: abilities.get_alignment.max(1),
            put_alignment: abilities.put_alignment.max(1),
            bounce,
        }
    }

    /// What no chunking can mend.
    pub fn check(&self, direction: Direction, offset: u64, len: usize) -> Result<(), EngineError> {
        if offset.checked_add(len as u64).is_none() {
            return Err(EngineError::PastEnd { offset, len });
        }
        let alignment = self.put_alignment;
        if direction == Direction::Put
            && (!offset.is_multiple_of(alignment as u64) || !len.is_multiple_of(alignment))
        {
            return Err(EngineError::UnalignedPut { offset, len, alignment });
        }
        Ok(())
    }

    /// The first post of what is left of an operation. `direct`: the NIC can use the local memory as it is.
    pub fn next(&self, direction: Direction, offset: u64, left: usize, direct: bool) -> Chunk {
        let alignment = match direction {
            Direction::Put => self.put_alignment,
            Direction::Get => self.get_alignment,
        };
        let skip = (offset % alignment as u64) as usize;
        if direct && skip == 0 && left >= alignment {
            let useful = down(left.min(self.largest), alignment);
            return Chunk { skip: 0, useful, wire: useful, bounced: false };
        }
        // Where only the edge is in the way, bounce the edge alone: the bulk then needs no copy.
        let room = if direct { alignment } else { down(self.bounce.min(self.largest), alignment) };
        let useful = left.min(room - skip);
        Chunk { skip, useful, wire: (skip + useful).next_multiple_of(alignment), bounced: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unaligned_put_is_refused_with_the_rule() {
        let rules = Rules { largest: 64, get_alignment: 4, put_alignment: 8, bounce: 64 };
        let refused = rules.check(Direction::Put, 4, 8);
        assert_eq!(refused, Err(EngineError::UnalignedPut { offset: 4, len: 8, alignment: 8 }));
        assert!(rules.check(Direction::Put, 8, 12).is_err());
        assert_eq!(rules.check(Direction::Put, 8, 16), Ok(()));
        assert_eq!(rules.check(Direction::Get, 3, 5), Ok(()));
        assert!(matches!(rules.check(Direction::Get, u64::MAX, 2), Err(EngineError::PastEnd { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 512 }, failure_persistence: None,
            ..ProptestConfig::default() })]
        #[test]
        fn chunks_cover_a_get_and_obey_the_rules(
            alignment in prop::sample::select(vec![1usize, 4, 16, 64]),
            extra in 0usize..300, bounce in 0usize..200, direct: bool, offset in 0u64..500, len in 1usize..2000,
        ) {
            let rules = Rules { largest: alignment + extra, get_alignment: alignment, put_alignment: 1,
                bounce: alignment + bounce };
            let (mut at, mut left) = (offset, len);
            while left > 0 {
                let chunk = rules.next(Direction::Get, at, left, direct);
                prop_assert!(chunk.useful > 0 && chunk.useful <= left);
                prop_assert!(chunk.wire <= rules.largest);
                prop_assert_eq!((at - chunk.skip as u64) % alignment as u64, 0);
                prop_assert_eq!(chunk.wire % alignment, 0);
                prop_assert!(chunk.skip + chunk.useful <= chunk.wire);
                if chunk.bounced {
                    prop_assert!(chunk.wire <= rules.bounce);
                } else {
                    prop_assert!(direct && chunk.skip == 0 && chunk.wire == chunk.useful);
                }
                at += chunk.useful as u64;
                left -= chunk.useful;
            }
        }
    }
}
