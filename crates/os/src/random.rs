//! Random bytes from the system (`getrandom(2)`).
//!
//! # Invariants
//! - random.1: the kernel writes at most the length it is given, into a buffer borrowed exclusively.

use crate::{OsError, Result};

/// Sixteen bytes that nobody else has drawn: for names and for recognising a peer.
pub fn nonce() -> Result<[u8; 16]> {
    let mut bytes = [0u8; 16];
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: random.1: `rest` is the part of `bytes` that is still empty, given with its own length.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(n) => done += n,
            Err(_) => {
                let error = OsError::last("draw", "random bytes");
                if error.cause.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(bytes)
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|n| char::from(b"0123456789abcdef"[usize::from(n)]))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn nonces_differ() {
        let (a, b) = (super::nonce().expect("random"), super::nonce().expect("random"));
        assert_ne!(a, b);
        assert_eq!(super::hex(&[0x0f, 0xa0]), "0fa0");
    }
}
