//! The error of this floor: an operation, its operand and the system's reason.

use std::io;

/// A call that the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {operand}: {cause}")]
pub struct OsError {
    /// What was being done.
    pub operation: &'static str,
    /// To what.
    pub operand: String,
    /// Why it did not work. It is part of the message, and so not the error's `source()`: that would be printed twice.
    pub cause: io::Error,
}

/// The result of a call to the operating system.
pub type Result<T> = std::result::Result<T, OsError>;

impl OsError {
    /// Wraps what a call gave back.
    pub fn new(operation: &'static str, operand: impl ToString, cause: impl Into<io::Error>) -> Self {
        Self { operation, operand: operand.to_string(), cause: cause.into() }
    }

    /// Wraps `errno` as the last call left it.
    pub(crate) fn last(operation: &'static str, operand: impl ToString) -> Self {
        Self::new(operation, operand, io::Error::last_os_error())
    }

    /// An error that this crate found by itself.
    pub fn other(operation: &'static str, operand: impl ToString, cause: impl ToString) -> Self {
        Self::new(operation, operand, io::Error::other(cause.to_string()))
    }

    /// Whether the time allowed ran out.
    pub fn is_timeout(&self) -> bool {
        self.cause.kind() == io::ErrorKind::TimedOut
    }

    pub(crate) fn timed_out(operation: &'static str, operand: impl ToString) -> Self {
        let cause = io::Error::new(io::ErrorKind::TimedOut, "nothing came within the time allowed");
        Self::new(operation, operand, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn the_cause_is_told_once() {
        let error = OsError::other("map", "nothing", "it is empty");
        assert_eq!(error.to_string(), "map nothing: it is empty");
        assert!(error.source().is_none());
    }
}
