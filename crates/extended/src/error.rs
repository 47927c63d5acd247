//! What can go wrong with a put, a get or a barrier.

use thiserror::Error;

/// Why an operation of `extended` failed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An active message, a transfer or a poll failed.
    #[error(transparent)]
    Core(#[from] gasworks_core::Error),
    /// A setting cannot be used as it stands.
    #[error(transparent)]
    Setting(#[from] gasworks_os::settings::SettingError),
    /// An access region out of turn.
    #[error("access region: {0}")]
    Region(&'static str),
    /// A value that is none.
    #[error("put or get of a value of {bytes} bytes: a value has 1 to 8")]
    ValueSize {
        /// The size that was given.
        bytes: usize,
    },
    /// A barrier call out of turn.
    #[error("barrier: {0}")]
    Barrier(&'static str),
}

impl Error {
    /// Whether polling and trying again may help.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Core(error) if error.is_busy())
    }
}
