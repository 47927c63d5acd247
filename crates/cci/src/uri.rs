//! Addresses of endpoints: `sm://path/pid/id`.
//!
//! The URI without `sm://` is a directory with the endpoint's socket and other files. The path of the socket has to fit into a socket address
//! (`sun_path`), which is checked when a URI is made, and not when the socket is bound.

use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a URI begins with.
pub const SCHEME: &str = "sm://";
/// The socket's name in an endpoint's directory.
pub const SOCKET: &str = "sock";
/// The longest path of a socket, without the zero byte that ends it.
pub const MAX_SOCKET_PATH: usize = 107;

/// Why something is no address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UriError {
    /// It begins otherwise.
    #[error("{uri:?} is no URI of an endpoint: it does not begin with {SCHEME}")]
    Scheme {
        /// What was given.
        uri: String,
    },
    /// It is not a path with a process and a number at its end.
    #[error(
        "{uri:?} is no URI of an endpoint: after {SCHEME} an absolute path, a process id and a number are expected ({SCHEME}/tmp/cci/4567/2)"
    )]
    Form {
        /// What was given.
        uri: String,
    },
    /// The socket's path is longer than a socket address.
    #[error(
        "the socket {path:?} has a path of {} bytes, and a socket address holds {MAX_SOCKET_PATH}: use a shorter directory",
        path.as_os_str().len()
    )]
    TooLong {
        /// The socket's path.
        path: PathBuf,
    },
}

/// The address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uri {
    base: String,
    pid: u32,
    id: u32,
}

impl Uri {
    /// The address of endpoint `id` of process `pid`, whose directory lies under `base`.
    ///
    /// # Errors
    /// `base` is no absolute path in UTF-8, has a component that is `.` or `..`, or is too long.
    pub fn new(base: &str, pid: u32, id: u32) -> Result<Self, UriError> {
        let uri = Self { base: base.trim_end_matches('/').to_owned(), pid, id };
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
        let parts = uri.base.strip_prefix('/');
        if !parts.is_some_and(|parts| parts.split('/').all(is_plain)) {
            return Err(UriError::Form { uri: uri.to_string() });
        }
        match uri.socket() {
            path if path.as_os_str().len() > MAX_SOCKET_PATH => Err(UriError::TooLong { path }),
            _ => Ok(uri),
        }
    }

    /// Reads an address.
    ///
    /// # Errors
    /// [`UriError`].
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let path = text.strip_prefix(SCHEME).ok_or_else(|| UriError::Scheme { uri: text.into() })?;
        let form = || UriError::Form { uri: text.into() };
        let (rest, id) = path.rsplit_once('/').ok_or_else(form)?;
        let (base, pid) = rest.rsplit_once('/').ok_or_else(form)?;
        Self::new(base, number(pid).ok_or_else(form)?, number(id).ok_or_else(form)?)
    }

    /// The endpoint's directory.
    pub fn directory(&self) -> PathBuf {
        Path::new(&self.base).join(self.pid.to_string()).join(self.id.to_string())
    }

    /// The endpoint's socket.
    pub fn socket(&self) -> PathBuf {
        self.directory().join(SOCKET)
    }

    /// The process that the endpoint is of.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The endpoint's number in its process.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}/{}", self.base, self.pid, self.id)
    }
}

/// A decimal number as it is printed: without a sign and leading zeroes, so that an endpoint has one address.
pub(crate) fn number(text: &str) -> Option<u32> {
    let number = text.parse().ok()?;
    (text == u32::to_string(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seed_s_example_is_the_directory_that_it_says() {
        let uri = Uri::parse("sm:///tmp/cci/sm/4567/2").expect("an address");
        assert_eq!((uri.pid(), uri.id()), (4567, 2));
        assert_eq!(uri.directory(), Path::new("/tmp/cci/sm/4567/2"));
        assert_eq!(uri.socket(), Path::new("/tmp/cci/sm/4567/2/sock"));
        assert_eq!(uri.to_string(), "sm:///tmp/cci/sm/4567/2");
    }

    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for (text, words) in [
            ("", "does not begin with sm://"),
            ("tcp://127.0.0.1:7", "does not begin"),
            ("sm://", "an absolute path"),
            ("sm:///1/2", "an absolute path"),
            ("sm://tmp/1/2", "an absolute path"),
            ("sm:///tmp/1", "an absolute path"),
            ("sm:///tmp/+1/2", "an absolute path"),
            ("sm:///tmp/01/2", "an absolute path"),
            ("sm:///tmp/1/4294967296", "an absolute path"),
            ("sm:///tmp/../etc/1/2", "an absolute path"),
            ("sm:///tmp//x/1/2", "an absolute path"),
        ] {
            let refused = Uri::parse(text).expect_err(text).to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
        // "/x…/1/2/sock" with as many bytes as fit, and one more.
        let base = |len: usize| format!("/{}", "x".repeat(len - "//1/2/sock".len()));
        assert!(Uri::new(&base(MAX_SOCKET_PATH), 1, 2).is_ok());
        let long = Uri::new(&base(MAX_SOCKET_PATH + 1), 1, 2).expect_err("too long").to_string();
        assert!(long.contains("108 bytes"), "{long}");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_printed_as_it_was_given(text in "(sm://)?[/a-z0-9.]{0,40}|\\PC{0,40}") {
            if let Ok(uri) = Uri::parse(&text) {
                prop_assert_eq!(uri.to_string(), text);
            }
        }
    }
}
