//! What NICs send each other besides transactions: datagrams, and the shares of reductions.

use crate::chip::Chip;
use crate::entry::Status;
use crate::reduction::{EXCEPTIONS, Operation, Part, Seat, Share, is_name};
use gasworks_gni_sys::GNI_CE_MAX_CHILDREN;

/// The most bytes of a client's that a datagram carries (`GNI_DATAGRAM_MAXSIZE`).
pub const MOST: usize = 128;
/// Bytes of a letter on its way.
pub const FRAME: usize = 10 + MOST;
/// Bytes of a share.
const SHARE: usize = 32;
/// Stands for a client where engines have numbers.
const CLIENT: u8 = u8::MAX;

/// A letter, and who has sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The sender's address.
    pub address: u32,
    /// Its instance.
    pub instance: u32,
    /// What it says.
    pub body: Body,
}

/// What a letter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A datagram of a client's.
    Offer(Vec<u8>),
    /// One that answers the receiver's.
    Answer(Vec<u8>),
    /// What is contributed to a reduction, for an engine of the receiver's.
    Up(Share),
    /// What has come of it, for one of its children.
    Down(Share),
}

impl Letter {
    /// As bytes; data beyond [`MOST`] is cut.
    pub fn encode(&self) -> [u8; FRAME] {
        let share;
        let (kind, data) = match &self.body {
            Body::Offer(data) => (0, &data[..]),
            Body::Answer(data) => (1, &data[..]),
            Body::Up(up) => {
                share = encode_share(up);
                (2, &share[..])
            }
            Body::Down(down) => {
                share = encode_share(down);
                (3, &share[..])
            }
        };
        let mut frame = [0; FRAME];
        let len = data.len().min(MOST);
        frame[..4].copy_from_slice(&self.address.to_le_bytes());
        frame[4..8].copy_from_slice(&self.instance.to_le_bytes());
        (frame[8], frame[9]) = (kind, len as u8);
        frame[10..10 + len].copy_from_slice(&data[..len]);
        frame
    }

    /// From bytes that a peer has sent; `None` if it says more than there can be, or what cannot be.
    pub fn decode(frame: &[u8; FRAME]) -> Option<Self> {
        let [a0, a1, a2, a3, i0, i1, i2, i3, kind, len, data @ ..] = frame;
        let data = data.get(..usize::from(*len))?;
        let (address, instance) =
            (u32::from_le_bytes([*a0, *a1, *a2, *a3]), u32::from_le_bytes([*i0, *i1, *i2, *i3]));
        let body = match kind {
            0 => Body::Offer(data.to_vec()),
            1 => Body::Answer(data.to_vec()),
            2 => Body::Up(decode_share(data)?),
            3 => Body::Down(decode_share(data)?),
            _ => return None,
        };
        Some(Self { address, instance, body })
    }
}

fn encode_share(share: &Share) -> [u8; SHARE] {
    let mut bytes = [0; SHARE];
    (bytes[0], bytes[1], bytes[2]) = (share.seat.engine, share.seat.child, share.below.unwrap_or(CLIENT));
    bytes[8..16].copy_from_slice(&share.id.to_le_bytes());
    match share.part {
        Ok(part) => {
            let (command, two) = part.operation().encode();
            (bytes[4], bytes[5], bytes[6]) = (command, two.into(), part.exceptions());
            let [first, second] = part.numbers();
            bytes[16..24].copy_from_slice(&first.to_le_bytes());
            bytes[24..].copy_from_slice(&second.to_le_bytes());
        }
        Err(status) => bytes[3] = status as u8,
    }
    bytes
}

fn decode_share(bytes: &[u8]) -> Option<Share> {
    let bytes: &[u8; SHARE] = bytes.try_into().ok()?;
    let [engine, child, below, status, command, two, exceptions, _, ..] = *bytes;
    let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let engines = Chip::Aries.engines();
    let is_there = engine < engines
        && u32::from(child) < GNI_CE_MAX_CHILDREN
        && (below < engines || below == CLIENT)
        && is_name(word(8));
    let part = match Status::of(status.into())? {
        Status::Ok if two <= 1 && exceptions & !EXCEPTIONS == 0 => {
            Ok(Part::new(Operation::decode(command.into(), two == 1)?, [word(16), word(24)], exceptions))
        }
        Status::Ok => return None,
        status => Err(status),
    };
    let below = (below != CLIENT).then_some(below);
    is_there.then_some(Share { seat: Seat { engine, child }, below, id: word(8), part })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share() -> impl Strategy<Value = Share> {
        let part = (0..64u32, any::<bool>(), any::<[u64; 2]>(), 0..=EXCEPTIONS);
        let part = part.prop_filter_map("a command", |(command, two, numbers, exceptions)| {
            Some(Part::new(Operation::decode(command, two)?, numbers, exceptions))
        });
        let failure = (1..Status::ALL.len()).prop_map(|at| Status::ALL[at]);
        let part = prop_oneof![part.prop_map(Ok), failure.prop_map(Err)];
        let edge = (0..4u8, 0..32u8, prop::option::of(0..4u8));
        (edge, 0..1u64 << 44, part).prop_map(|((engine, child, below), id, part)| Share {
            seat: Seat { engine, child },
            below,
            id,
            part,
        })
    }

    fn body() -> impl Strategy<Value = Body> {
        let data = || prop::collection::vec(any::<u8>(), 0..=MOST);
        prop_oneof![
            data().prop_map(Body::Offer),
            data().prop_map(Body::Answer),
            share().prop_map(Body::Up),
            share().prop_map(Body::Down),
        ]
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn what_is_sent_is_read((address, instance) in any::<(u32, u32)>(), body in body()) {
            let letter = Letter { address, instance, body };
            prop_assert_eq!(Letter::decode(&letter.encode()), Some(letter));
        }

        /// And one that is read is one that could have been sent.
        #[test]
        fn any_bytes_are_a_letter_or_none(
            bytes in prop::collection::vec(any::<u8>(), FRAME..=FRAME),
            (kind, len) in (0..5u8, prop_oneof![3 => Just(SHARE as u8), 1 => any::<u8>()]),
            (engine, child, below) in (0..5u8, 0..34u8, prop_oneof![0..5u8, Just(CLIENT)]),
            (status, command, two, exceptions) in (0..2u8, 0..64u8, 0..3u8, 0..18u8),
            top in 0..20u8,
        ) {
            let mut frame: [u8; FRAME] = bytes.try_into().expect("as many");
            (frame[8], frame[9]) = (kind, len);
            if kind >= 2 {
                frame[10..17].copy_from_slice(&[engine, child, below, status, command, two, exceptions]);
                (frame[24], frame[25]) = (0, 0);
                frame[23] = top;
            }
            let sound = Operation::decode(command.into(), false).is_some() && two <= 1 && exceptions <= EXCEPTIONS;
            let edge = engine < 4 && child < 32 && (below < 4 || below == CLIENT);
            let possible = match kind {
                0 | 1 => usize::from(len) <= MOST,
                2 | 3 => usize::from(len) == SHARE && edge && top < 16 && (status != 0 || sound),
                _ => false,
            };
            let letter = Letter::decode(&frame);
            prop_assert_eq!(letter.is_some(), possible);
            if let Some(letter) = letter {
                prop_assert_eq!(Letter::decode(&letter.encode()), Some(letter));
            }
        }
    }
}
