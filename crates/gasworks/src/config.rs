//! What a program may ask of its job.

use crate::{Error, settings};

/// What a program asks of its job; the environment's settings fill in the rest.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) segment: u64,
}

impl Config {
    /// The defaults and what the environment says.
    ///
    /// # Errors
    /// A setting is wrong: the error names it.
    pub fn from_env() -> Result<Self, Error> {
        settings::check_all()?;
        let segment = gasworks_pshm::segment_size()?;
        Ok(Self { segment })
    }

    /// Asks for a segment of at least `bytes` on every rank that calls so; rounded up to a page.
    #[must_use]
    pub fn segment(mut self, bytes: u64) -> Self {
        self.segment = bytes;
        self
    }
}
