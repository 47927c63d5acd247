//! Binomial trees: the root, and each other member below the one that it has one bit less than, counted from the root.

/// The position of a member in a binomial tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub root: u32,
    /// How far the member is beyond the root.
    pub at: u32,
    pub size: u32,
}

impl Position {
    pub fn new(root: u32, own: u32, size: u32) -> Self {
        let at = (u64::from(own) + u64::from(size - root)) % u64::from(size);
        Self { root, at: at as u32, size }
    }

    pub fn member(self, at: u32) -> u32 {
        ((u64::from(self.root) + u64::from(at)) % u64::from(self.size)) as u32
    }

    /// Above it.
    pub fn parent(self) -> Option<u32> {
        (self.at != 0).then(|| self.member(self.at & (self.at - 1)))
    }

    /// How many bits those below it may have more.
    pub fn bits(self) -> u32 {
        match self.at {
            0 => (self.size - 1).checked_ilog2().map_or(0, |bits| bits + 1),
            at => at.trailing_zeros(),
        }
    }

    /// The one below it by that bit.
    pub fn child(self, bit: u32) -> Option<u32> {
        self.distance_of(bit).map(|at| self.member(at))
    }

    /// How far that one is beyond the root.
    fn distance_of(self, bit: u32) -> Option<u32> {
        let at = u64::from(self.at) + (1 << bit);
        (at < self.size.into()).then_some(at as u32)
    }

    /// How many are below it, with itself: those that follow it.
    pub fn below(self) -> u32 {
        match self.at {
            0 => self.size,
            at => (1 << at.trailing_zeros()).min(self.size - at),
        }
    }

    /// The place of the one below it by that bit, if there is one.
    pub fn below_by(self, bit: u32) -> Option<Self> {
        self.distance_of(bit).map(|at| Self { at, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In every tree each member but the root is below one other, from which it has one bit more.
    #[test]
    fn each_member_is_below_one_other() {
        for size in 1..40 {
            for root in 0..size {
                let place = |own: u32| Position::new(root, own, size);
                let mut above = vec![None; size as usize];
                for own in 0..size {
                    for child in (0..place(own).bits()).filter_map(|bit| place(own).child(bit)) {
                        assert_eq!(
                            above[child as usize].replace(own),
                            None,
                            "{child} of {size} is below two"
                        );
                        assert_eq!(place(child).parent(), Some(own));
                    }
                }
                let alone: Vec<u32> = (0..size).filter(|&own| above[own as usize].is_none()).collect();
                assert_eq!(alone, [root], "of {size}");
            }
        }
    }
}
