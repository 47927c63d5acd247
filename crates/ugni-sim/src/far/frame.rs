//! Frames: what is asked, and what is answered.
//!
//! | bytes | of a frame |
//! |---|---|
//! | 0 to 4 | how many bytes follow these sixteen |
//! | 4 | what is asked, or [`ANSWER`] |
//! | 5 | of an answer, its status |
//! | 6 to 8 | nothing |
//! | 8 to 16 | the number of what is asked |
//!
//! All numbers are in little-endian order.

use gasworks_gni_sys::gni_mem_handle_t;

use crate::atomics::Command;
use crate::entry::Status;
use crate::handle::Handle;
use crate::letter::{FRAME, Letter};
use crate::near::Name;
use crate::station::There;

/// The most bytes of memory that a frame carries.
pub const PIECE: u64 = 256 << 10;
/// Bytes before the rest of a frame.
pub(super) const HEAD: usize = 16;
/// The most bytes of a frame.
pub const MOST_FRAME: usize = HEAD + THERE + 8 + PIECE as usize;
/// Bytes of what names bytes.
const THERE: usize = 32;
/// Bytes of the job's secret.
pub(super) const SECRET: usize = 16;
/// What a frame is that asks for nothing.
const ANSWER: u8 = 0xff;

/// What is asked of a NIC of another host.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask<'a> {
    /// To be there: the job's secret, and the name of the NIC.
    Hello([u8; SECRET], Name),
    /// To write these bytes to some, from one of their own on.
    Put(There, u64, &'a [u8]),
    /// To read so many of some, from one of their own on.
    Get(There, u64, u32),
    /// As [`Station::store`](crate::station::Station::store).
    Store(There, u64),
    /// As [`Station::change`](crate::station::Station::change).
    Change(There, Command, [u64; 2]),
    /// As [`Station::tell`](crate::station::Station::tell).
    Tell(There, Option<u64>),
    /// As [`Station::deliver`](crate::station::Station::deliver).
    Letter(Letter),
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) len: usize,
    kind: u8,
    status: u8,
    pub(super) number: u64,
}

impl Head {
    /// `None`: a frame is not that long.
    pub(super) fn decode(bytes: &[u8; HEAD]) -> Option<Self> {
        let [l0, l1, l2, l3, kind, status, _, _, number @ ..] = *bytes;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let head = Self { len, kind, status, number: u64::from_le_bytes(number) };
        (HEAD + len <= MOST_FRAME).then_some(head)
    }

    /// How it ended, if it answers.
    pub(super) fn answer(&self) -> Option<Status> {
        // Of a number that no status has, nothing can be said but that it is none of success.
        (self.kind == ANSWER).then(|| Status::of(self.status.into()).unwrap_or(Status::Lost))
    }
}

/// A frame whose length is still to be said.
struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8, status: Status, number: u64) -> Self {
        let mut bytes = vec![0; HEAD];
        (bytes[4], bytes[5]) = (kind, status as u8);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        Self(bytes)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn word(self, word: u64) -> Self {
        self.bytes(&word.to_le_bytes())
    }

    fn there(self, there: &There) -> Self {
        let gni_mem_handle_t { qword1, qword2 } = there.handle.seal();
        self.word(qword1).word(qword2).word(there.address).word(there.len)
    }

    fn end(mut self) -> Vec<u8> {
        let len = (self.0.len() - HEAD) as u32;
        self.0[..4].copy_from_slice(&len.to_le_bytes());
        self.0
    }
}

/// An answer of so many bytes.
pub(super) fn answer(number: u64, status: Status, bytes: &[u8]) -> Vec<u8> {
    Writer::new(ANSWER, status, number).bytes(bytes).end()
}

/// What is left of a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn half(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn there(&mut self) -> Option<There> {
        let handle = gni_mem_handle_t { qword1: self.word()?, qword2: self.word()? };
        Some(There { handle: Handle::open(&handle).ok()?, address: self.word()?, len: self.word()? })
    }
}

impl<'a> Ask<'a> {
    /// As a frame. Of memory it has [`PIECE`] bytes at most.
    pub(super) fn encode(&self, number: u64) -> Vec<u8> {
        let begin = |kind| Writer::new(kind, Status::Ok, number);
        match self {
            Ask::Hello(secret, name) => begin(0)
                .bytes(secret)
                .bytes(&name.cookie.to_le_bytes())
                .bytes(&name.address.to_le_bytes())
                .bytes(&name.instance.to_le_bytes())
                .bytes(&[name.ptag]),
            Ask::Put(there, from, bytes) => begin(1).there(there).word(*from).bytes(bytes),
            Ask::Get(there, from, count) => begin(2).there(there).word(*from).bytes(&count.to_le_bytes()),
            Ask::Store(there, word) => begin(3).there(there).word(*word),
            Ask::Change(there, command, [first, second]) => {
                begin(4).there(there).bytes(&command.encode().to_le_bytes()).word(*first).word(*second)
            }
            Ask::Tell(there, data) => {
                begin(5).there(there).word(data.unwrap_or_default()).bytes(&[data.is_none().into()])
            }
            Ask::Letter(letter) => begin(6).bytes(&letter.encode()),
        }
        .end()
    }

    /// From a frame that a peer has sent; `None` if it says what cannot be.
    pub(super) fn decode(head: &Head, body: &'a [u8]) -> Option<Self> {
        let mut rest = Reader(body);
        let ask = match head.kind {
            0 => {
                let (secret, cookie) = (rest.array()?, rest.half()?);
                let (address, instance) = (rest.half()?, rest.half()?);
                let [ptag] = rest.array()?;
                Ask::Hello(secret, Name { cookie, ptag, address, instance })
            }
            1 => {
                let (there, from) = (rest.there()?, rest.word()?);
                Ask::Put(there, from, std::mem::take(&mut rest.0))
            }
            2 => {
                let (there, from, count) = (rest.there()?, rest.word()?, rest.half()?);
                Ask::Get(there, from, Some(count).filter(|count| u64::from(*count) <= PIECE)?)
            }
            3 => Ask::Store(rest.there()?, rest.word()?),
            4 => {
                let (there, command) = (rest.there()?, Command::decode(rest.half()?)?);
                Ask::Change(there, command, [rest.word()?, rest.word()?])
            }
            5 => {
                let (there, data, lost) = (rest.there()?, rest.word()?, rest.array::<1>()?);
                Ask::Tell(there, (lost == [0]).then_some(data))
            }
            6 => Ask::Letter(Letter::decode(&rest.array::<FRAME>()?)?),
            _ => return None,
        };
        rest.0.is_empty().then_some(ask)
    }

    /// Reads any bytes as a frame; what it asks, if it is one. For those who try what cannot be.
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let (head, body) = frame.split_first_chunk()?;
        let head = Head::decode(head)?;
        if head.len == body.len() { Self::decode(&head, body) } else { None }
    }
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::handle::Flags;
    use crate::letter::Body;
    use proptest::prelude::*;

    fn there() -> impl Strategy<Value = There> {
        (0..1u64 << 36, any::<(u8, u64, u64)>()).prop_map(|(page, (descriptor, address, len))| There {
            handle: Handle {
                page,
                descriptor: descriptor.into(),
                shift: 12,
                flags: Flags::MRT,
                ..Handle::default()
            },
            address,
            len,
        })
    }

    /// What is asked, with the bytes of a put apart.
    fn asked() -> impl Strategy<Value = (Ask<'static>, Vec<u8>)> {
        let name = any::<(u32, u8, u32, u32)>().prop_map(|(cookie, ptag, address, instance)| Name {
            cookie,
            ptag,
            address,
            instance,
        });
        let command = (0..0x400u32).prop_filter_map("a command", Command::decode);
        let letter = any::<(u32, u32)>().prop_map(|(address, instance)| Letter {
            address,
            instance,
            body: Body::Offer(vec![7; 9]),
        });
        let bytes = prop::collection::vec(any::<u8>(), 0..300);
        let plain = prop_oneof![
            (any::<[u8; SECRET]>(), name).prop_map(|(secret, name)| Ask::Hello(secret, name)),
            (there(), any::<u64>(), 0..=PIECE as u32)
                .prop_map(|(there, from, count)| Ask::Get(there, from, count)),
            (there(), any::<u64>()).prop_map(|(there, word)| Ask::Store(there, word)),
            (there(), command, any::<[u64; 2]>())
                .prop_map(|(there, command, two)| Ask::Change(there, command, two)),
            (there(), any::<Option<u64>>()).prop_map(|(there, data)| Ask::Tell(there, data)),
            letter.prop_map(Ask::Letter),
        ];
        prop_oneof![
            4 => plain.prop_map(|ask| (ask, Vec::new())),
            1 => (there(), any::<u64>(), bytes).prop_map(|(there, from, bytes)| (Ask::Put(there, from, &[]), bytes)),
        ]
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn what_is_asked_is_heard((ask, bytes) in asked(), number: u64) {
            let ask = match ask {
                Ask::Put(there, from, _) => Ask::Put(there, from, &bytes),
                other => other,
            };
            let frame = ask.encode(number);
            prop_assert!(frame.len() <= MOST_FRAME);
            let head = Head::decode(frame.first_chunk().expect("a head")).expect("short enough");
            prop_assert_eq!((head.number, head.answer(), head.len), (number, None, frame.len() - HEAD));
            prop_assert_eq!(Ask::read(&frame), Some(ask.clone()));
            // Another byte is too many, and one fewer too few, but for bytes that are put.
            if !matches!(ask, Ask::Put(..)) {
                let longer = [&frame[HEAD..], &[0]].concat();
                prop_assert_eq!(Ask::decode(&head, &longer), None);
                prop_assert_eq!(Ask::decode(&head, &frame[HEAD..frame.len() - 1]), None);
            }
        }

        /// And what any bytes ask could have been asked.
        #[test]
        fn any_bytes_ask_something_or_nothing(kind in 0..8u8, body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frame = vec![0; HEAD];
            frame[4] = kind;
            frame[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
            frame.extend_from_slice(&body);
            if let Some(ask) = Ask::read(&frame) {
                let again = ask.encode(0);
                prop_assert_eq!(Ask::read(&again), Some(ask));
            }
        }
    }

    #[test]
    fn an_answer_says_how_it_ended() {
        let frame = answer(7, Status::Bounds, b"abc");
        let head = Head::decode(frame.first_chunk().expect("a head")).expect("short");
        assert_eq!((head.number, head.answer(), head.len), (7, Some(Status::Bounds), 3));
        assert_eq!(Ask::decode(&head, &frame[HEAD..]), None);
        let mut strange = frame.clone();
        strange[5] = 200;
        assert_eq!(
            Head::decode(strange.first_chunk().expect("a head")).and_then(|head| head.answer()),
            Some(Status::Lost)
        );
        let most = (MOST_FRAME - HEAD) as u32;
        for (len, short) in [(most, true), (most + 1, false), (u32::MAX, false)] {
            strange[..4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(Head::decode(strange.first_chunk().expect("a head")).is_some(), short, "{len}");
        }
    }
}
