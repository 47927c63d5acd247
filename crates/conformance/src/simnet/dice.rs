//! Where all chance comes from: the seed, the rank, what is decided, and the operation's number. Nothing else, so
//! that a run's decisions can be had again from its seed.

/// What is decided. Each has its own numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    WireBusy = 1,
    WireDelay,
    WireOrder,
    NicBusy,
    NicDelay,
    NicOrder,
    NicFault,
    Corrupt,
    Lose,
    Double,
    Config,
}

/// The chances of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice {
    seed: u64,
    rank: u32,
}

impl Dice {
    pub fn new(seed: u64, rank: u32) -> Self {
        Self { seed, rank }
    }

    /// Any number, for the `number`th decision of this kind. Mixed three times over as in SplitMix64: neighbours
    /// among seeds and numbers must not resemble each other.
    pub fn number(self, choice: Choice, number: u64) -> u64 {
        let mut x = self.seed;
        for part in [u64::from(self.rank), choice as u64, number] {
            x = x.wrapping_add(part.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x632B_E59B_D9B4_E019);
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^= x >> 31;
        }
        x
    }

    /// A number from 0 to `most`.
    pub fn up_to(self, choice: Choice, number: u64, most: u32) -> u64 {
        self.number(choice, number) % (u64::from(most) + 1)
    }

    /// True once in `one_in` times; never for 0.
    pub fn chance(self, choice: Choice, number: u64, one_in: u32) -> bool {
        one_in > 0 && self.number(choice, number).is_multiple_of(u64::from(one_in))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_about_as_often_as_said_and_repeat() {
        let dice = Dice::new(7, 3);
        let count = (0..10_000).filter(|&i| dice.chance(Choice::NicBusy, i, 4)).count();
        assert!((2_000..3_000).contains(&count), "{count}");
        assert_eq!(dice.number(Choice::WireOrder, 5), Dice::new(7, 3).number(Choice::WireOrder, 5));
        assert_ne!(dice.number(Choice::WireOrder, 5), dice.number(Choice::NicOrder, 5));
        assert_ne!(dice.number(Choice::WireOrder, 5), Dice::new(7, 4).number(Choice::WireOrder, 5));
        assert!((0..1000).all(|i| dice.up_to(Choice::WireDelay, i, 3) <= 3));
    }
}
