//! What a program may ask of its job.

use crate::{Error, settings};
use gasworks_os::settings::Share;
pub use gasworks_pshm::HugePages;
use gasworks_pshm::Memory;

/// What a program asks of its job; the environment's settings fill in the rest.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) memory: Memory,
    pub(crate) network: Box<str>,
    pub(crate) may_return: bool,
}

impl Config {
    /// The defaults and what the environment says.
    ///
    /// # Errors
    /// A setting is wrong: the error names it.
    pub fn from_env() -> Result<Self, Error> {
        settings::check_all()?;
        Ok(Self { memory: Memory::from_settings()?, network: settings::network(), may_return: false })
    }

    /// Says over what the ranks talk, by the name of a [`Network`](crate::Network), whatever the environment does (`GASWORKS_NETWORK`).
    #[must_use]
    pub fn network(mut self, name: &str) -> Self {
        self.network = name.into();
        self
    }

    /// Says whether a program that returns from `main`, or calls libc's `exit`, with code 0 and its job open ends the job
    /// well, as programs in C do. Without this it has failed, and the job ends with code 1.
    #[must_use]
    pub fn end_by_return(mut self, allowed: bool) -> Self {
        self.may_return = allowed;
        self
    }

    /// Asks for a segment of at least `bytes` on every rank that calls so; rounded up to a page.
    #[must_use]
    pub fn segment(mut self, bytes: u64) -> Self {
        (self.memory.segment, self.memory.at_most) = (Share::bytes(bytes), false);
        self
    }

    /// Asks for segments that together take so much of the host's memory, above 0 and at most 1: each rank's is an equal
    /// part of it. `GASWORKS_SEGMENT_LIMIT` allows 0.85. [`Job::open`](crate::Job::open) fails on what is no such fraction.
    #[must_use]
    pub fn segment_fraction(mut self, fraction: f64) -> Self {
        (self.memory.segment, self.memory.at_most) = (Share::of_host(fraction), false);
        self
    }

    /// Reserves room for the segment to grow to `bytes` ([`Job::grow`](crate::Job::grow)). It takes addresses in every rank
    /// of the host, and no memory.
    #[must_use]
    pub fn segment_max(mut self, bytes: u64) -> Self {
        self.memory.room = Some(Share::bytes(bytes));
        self
    }

    /// Limits segments where the environment does not (`GASWORKS_SEGMENT_LIMIT`), by a text as that has it: a size or a fraction
    /// of the machine's memory, for each rank or, with `/H`, for those of a host.
    ///
    /// # Errors
    /// The text is neither.
    pub fn segment_limit(mut self, text: &str) -> Result<Self, Error> {
        let share = Share::parse(text).ok_or_else(|| Error::NoShare { text: text.into() })?;
        if !gasworks_pshm::limits_segments() {
            self.memory.limit = Some(share);
        }
        Ok(self)
    }

    /// Asks for a segment of no bytes, which has room to grow to the largest that limits allow: for programs that say later how
    /// large it is to be, by [`Job::attach`](crate::Job::attach). Over a network it is of no use to others before.
    #[must_use]
    pub fn segment_later(mut self) -> Self {
        self.memory.later = true;
        (self.memory.segment, self.memory.at_most) = (Share::bytes(0), false);
        self.memory.room = self.memory.limit;
        self
    }

    /// Says whether the segment lies in huge pages.
    #[must_use]
    pub fn huge_pages(mut self, huge_pages: HugePages) -> Self {
        self.memory.huge_pages = huge_pages;
        self
    }

    /// Says whether all of the segment is backed with memory at once, and not page by page as it is touched.
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.memory.populate = populate;
        self
    }
}
