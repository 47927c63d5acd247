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
    /// A barrier call out of turn.
    #[error("barrier: {0}")]
    Barrier(&'static str),
}
