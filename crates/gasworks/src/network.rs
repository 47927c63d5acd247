//! The networks that a job may talk over.

use crate::Error;

/// Over what ranks talk: GASNet's conduits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The memory of their host: `smp`.
    Memory,
    /// Gemini or Aries, whichever there is, and the memory of a host.
    Gni,
    /// Aries alone.
    Aries,
    /// Gemini alone.
    Gemini,
}

impl Network {
    /// The largest payload of a Medium in any job over it, in bytes, as the settings say: none needs to be open. Of [`Gni`](Self::Gni),
    /// which may be either chip, it is the less.
    ///
    /// # Errors
    /// A setting is wrong: the error names it.
    pub fn max_medium(self) -> Result<usize, Error> {
        use gasworks_gni::{Chip, max_medium};
        let chips: &[Chip] = match self {
            Self::Memory => &[],
            Self::Gni => &[Chip::Aries, Chip::Gemini],
            Self::Aries => &[Chip::Aries],
            Self::Gemini => &[Chip::Gemini],
        };
        let most = |least: usize, &chip: &Chip| Ok(least.min(max_medium(chip)?));
        chips.iter().try_fold(gasworks_pshm::MAX_MEDIUM, most)
    }
}
