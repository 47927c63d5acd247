//! Datagrams as they travel from one NIC to another.

/// The most bytes of a client's that one carries (`GNI_DATAGRAM_MAXSIZE`).
pub const MOST: usize = 128;
/// Bytes of a letter on its way.
pub const FRAME: usize = 10 + MOST;

/// A datagram, and who has sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The sender's address.
    pub address: u32,
    /// Its instance.
    pub instance: u32,
    /// It answers one of the receiver's.
    pub answer: bool,
    /// What the client has to say.
    pub data: Vec<u8>,
}

impl Letter {
    /// As bytes; data beyond [`MOST`] is cut.
    pub fn encode(&self) -> [u8; FRAME] {
        let mut frame = [0; FRAME];
        let len = self.data.len().min(MOST);
        frame[..4].copy_from_slice(&self.address.to_le_bytes());
        frame[4..8].copy_from_slice(&self.instance.to_le_bytes());
        (frame[8], frame[9]) = (self.answer.into(), len as u8);
        frame[10..10 + len].copy_from_slice(&self.data[..len]);
        frame
    }

    /// From bytes that a peer has sent; `None` if it says more than there can be.
    pub fn decode(frame: &[u8; FRAME]) -> Option<Self> {
        let [a0, a1, a2, a3, i0, i1, i2, i3, answer, len, data @ ..] = frame;
        let data = data.get(..usize::from(*len))?.to_vec();
        let (address, instance) =
            (u32::from_le_bytes([*a0, *a1, *a2, *a3]), u32::from_le_bytes([*i0, *i1, *i2, *i3]));
        (*answer <= 1).then_some(Self { address, instance, answer: *answer == 1, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn what_is_sent_is_read(
            (address, instance, answer) in any::<(u32, u32, bool)>(),
            data in prop::collection::vec(any::<u8>(), 0..=MOST),
        ) {
            let letter = Letter { address, instance, answer, data };
            prop_assert_eq!(Letter::decode(&letter.encode()), Some(letter));
        }

        #[test]
        fn any_bytes_are_a_letter_or_none(bytes in prop::collection::vec(any::<u8>(), FRAME..=FRAME)) {
            let frame: [u8; FRAME] = bytes.try_into().expect("as many");
            match Letter::decode(&frame) {
                Some(letter) => prop_assert!(letter.data.len() <= MOST),
                None => prop_assert!(frame[8] > 1 || usize::from(frame[9]) > MOST),
            }
        }
    }
}
