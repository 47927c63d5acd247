//! What travels in the suite: bytes that say who sent them to whom, so that a byte out of place is seen.

use super::Failure;
use gasworks::Pod;

/// A number that stands for a message: who, to whom, and which.
pub(super) fn tag(from: u32, to: u32, which: u64) -> u64 {
    let mixed = (u64::from(from) << 32 | u64::from(to)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ which;
    (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Eight bytes of the message. By words, and compared as a whole: debug builds spent most of the suite's time on single bytes.
fn word(tag: u64, number: usize) -> [u8; 8] {
    let mixed =
        (tag ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ (mixed >> 32)).to_le_bytes()
}

/// Fills `bytes` with the message's bytes.
pub(super) fn fill(tag: u64, bytes: &mut [u8]) {
    for (number, place) in bytes.chunks_mut(8).enumerate() {
        place.copy_from_slice(&word(tag, number)[..place.len()]);
    }
}

/// The first `len` bytes of the message.
pub(super) fn made(tag: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(tag, &mut bytes);
    bytes
}

/// Arguments, or any other plain value.
pub(super) fn value<T: Pod>(tag: u64) -> T {
    let mut value = T::zeroed();
    fill(tag, bytemuck::bytes_of_mut(&mut value));
    value
}

/// Whether these are the message's bytes; if not, where they first differ.
pub(super) fn check(what: &str, tag: u64, bytes: &[u8]) -> Result<(), Failure> {
    let wanted = made(tag, bytes.len());
    if bytes == wanted {
        return Ok(());
    }
    let at = bytes.iter().zip(&wanted).position(|(byte, wanted)| byte != wanted).unwrap_or_default();
    let (len, byte, wanted) = (bytes.len(), bytes[at], wanted[at]);
    Err(Failure::Wrong(format!("{what}: byte {at} of {len} is {byte:#04x} instead of {wanted:#04x}")))
}

/// Whether this is the message's value.
pub(super) fn check_value<T: Pod>(what: &str, tag: u64, value: &T) -> Result<(), Failure> {
    check(what, tag, bytemuck::bytes_of(value))
}

/// Numbers from a seed, for what the suite does at random.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_out_of_place_is_named() {
        let mut bytes = made(tag(1, 2, 3), 5000);
        assert!(check("it", tag(1, 2, 3), &bytes).is_ok());
        assert!(check("it", tag(2, 1, 3), &bytes).is_err());
        bytes[4711] ^= 1;
        let wrong = check("it", tag(1, 2, 3), &bytes).err().map(|e| e.to_string());
        assert!(wrong.is_some_and(|e| e.contains("byte 4711 of 5000")));
        // A run that is 256 or 4096 bytes off does not pass.
        assert!(check("it", tag(1, 2, 3), &made(tag(1, 2, 3), 5000)[256..]).is_err());
        assert!(check("it", tag(1, 2, 3), &made(tag(1, 2, 3), 5000)[4096..]).is_err());
    }
}
