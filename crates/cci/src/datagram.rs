//! Datagrams: what two endpoints send each other over their sockets, to connect and to pass the files of registered memory.
//!
//! A datagram is a fixed part and, behind it, the sender's address and data where its kind has them. Memory is passed beside it, as file descriptors. All numbers are
//! little-endian. One without bytes only wakes the receiver.

use crate::header::ConnectionId;
use thiserror::Error;

/// The first bytes of every datagram: a name and the version of the format.
const MAGIC: [u8; 8] = *b"gw-cci\0\x01";
/// The most bytes of data that a request carries: CCI's limit.
pub const MAX_DATA: usize = 1024;
/// The longest address of a client.
pub const MAX_URI: usize = 256;
/// Bytes of a request without address and data.
const REQUEST_LEN: usize = 8 + 1 + 16 + PARTY_LEN + 1 + 2 + 2;
const PARTY_LEN: usize = 3 + 1 + 4 + 4 + 8 + 16;
/// The longest datagram.
pub const MAX_LEN: usize = REQUEST_LEN + MAX_URI + MAX_DATA;

/// A number that a client draws for each connection: a server knows a doubled request by it.
pub type Nonce = [u8; 16];

/// How a connection delivers messages: `cci_conn_attribute_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Attribute {
    /// Reliable, in order.
    ReliableOrdered = 0,
    /// Reliable, in any order.
    ReliableUnordered = 1,
    /// Unreliable, in any order.
    Unreliable = 2,
}

impl Attribute {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::ReliableOrdered, Self::ReliableUnordered, Self::Unreliable]
            .into_iter()
            .find(|attribute| *attribute as u8 == byte)
    }
}

/// What a party of a connection tells the other of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The id by which it is to be told what the connection is.
    pub connection: ConnectionId,
    /// Whether it moves headers by FIFOs, and not by rings.
    pub by_fifo: bool,
    /// The most bytes of a message that its memory has room for.
    pub max_send: u32,
    /// The endpoint's number, which its handles of registered memory have, too.
    pub tag: u32,
    /// Where the endpoint keeps a number, and which: a peer that can read it there reaches the memory of its process.
    pub mark: u64,
    /// The number.
    pub marked: Nonce,
}

/// Registered memory of an endpoint, as its owner counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegistrationId {
    /// Which of the owner's.
    pub index: u32,
    /// How often the index was given to another registration before.
    pub generation: u32,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// By which the server knows a doubled one.
    pub nonce: Nonce,
    /// The client.
    pub party: Party,
    /// How messages are to be delivered.
    pub attribute: Attribute,
    /// The client's address, for the reply.
    pub uri: String,
    /// The program's bytes, at most [`MAX_DATA`].
    pub data: Vec<u8>,
}

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// A client wants to connect.
    Request(ConnectRequest),
    /// The server's program has accepted.
    Reply {
        /// The request's.
        nonce: Nonce,
        /// The server.
        party: Party,
    },
    /// The server's program has rejected, or cannot take the connection.
    Refusal {
        /// The request's.
        nonce: Nonce,
    },
    /// The client has the reply.
    Ack {
        /// The request's.
        nonce: Nonce,
    },
    /// The client does not want the connection any more.
    Gone {
        /// The request's.
        nonce: Nonce,
    },
    /// An endpoint wants to map registered memory of the receiver's.
    FileRequest {
        /// Which.
        registration: RegistrationId,
        /// Where the file is to be sent.
        uri: String,
    },
    /// The file in which registered memory lies, which comes with it as a descriptor.
    File {
        /// Whose: the endpoint's number.
        tag: u32,
        /// Which.
        registration: RegistrationId,
        /// Where in the file it begins.
        offset: u64,
    },
}

/// Why bytes are no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DatagramError {
    /// They are of another program, or another version of this format.
    #[error("a datagram that is none of this version's")]
    Magic,
    /// They are too few, or too many.
    #[error("a datagram of {len} bytes, which is another length than its kind and its fields say")]
    Length {
        /// How many there are.
        len: usize,
    },
    /// A field has a value that nobody writes.
    #[error("a datagram with {value} as its {field}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: u32,
    },
}

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REFUSAL: u8 = 3;
const ACK: u8 = 4;
const GONE: u8 = 5;
const FILE_REQUEST: u8 = 6;
const FILE: u8 = 7;

/// Reads fields one behind the other.
struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DatagramError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(DatagramError::Length { len: self.len })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DatagramError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| DatagramError::Length { len: self.len })
    }

    fn u32(&mut self) -> Result<u32, DatagramError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DatagramError> {
        self.array().map(u64::from_le_bytes)
    }

    fn party(&mut self) -> Result<Party, DatagramError> {
        let [low, high, generation] = self.array()?;
        let connection = ConnectionId { index: u16::from_le_bytes([low, high]), generation };
        let by_fifo = match self.array()? {
            [0] => false,
            [1] => true,
            [other] => return Err(DatagramError::Field { field: "backend", value: other.into() }),
        };
        let (max_send, tag, mark) = (self.u32()?, self.u32()?, self.u64()?);
        Ok(Party { connection, by_fifo, max_send, tag, mark, marked: self.array()? })
    }

    fn registration(&mut self) -> Result<RegistrationId, DatagramError> {
        Ok(RegistrationId { index: self.u32()?, generation: self.u32()? })
    }

    fn text(&mut self, len: usize) -> Result<String, DatagramError> {
        let wrong =
            |_| DatagramError::Field { field: "address, which is no UTF-8, in bytes", value: len as u32 };
        std::str::from_utf8(self.take(len)?).map(str::to_owned).map_err(wrong)
    }

    fn length(&mut self, field: &'static str, most: usize) -> Result<usize, DatagramError> {
        let len = u16::from_le_bytes(self.array()?);
        match usize::from(len) <= most {
            true => Ok(len.into()),
            false => Err(DatagramError::Field { field, value: len.into() }),
        }
    }
}

fn party_bytes(party: Party) -> [u8; PARTY_LEN] {
    let mut bytes = [0; PARTY_LEN];
    let Party { connection: ConnectionId { index, generation }, by_fifo, max_send, tag, mark, marked } =
        party;
    bytes[..2].copy_from_slice(&index.to_le_bytes());
    (bytes[2], bytes[3]) = (generation, by_fifo.into());
    bytes[4..8].copy_from_slice(&max_send.to_le_bytes());
    bytes[8..12].copy_from_slice(&tag.to_le_bytes());
    bytes[12..20].copy_from_slice(&mark.to_le_bytes());
    bytes[20..].copy_from_slice(&marked);
    bytes
}

fn registration_bytes(RegistrationId { index, generation }: RegistrationId) -> [u8; 8] {
    (u64::from(generation) << 32 | u64::from(index)).to_le_bytes()
}

/// The address of an endpoint, cut where it is longer than the format allows, behind its length.
fn uri_bytes(uri: &str) -> impl Iterator<Item = u8> + '_ {
    let uri = &uri.as_bytes()[..uri.len().min(MAX_URI)];
    (uri.len() as u16).to_le_bytes().into_iter().chain(uri.iter().copied())
}

impl Datagram {
    /// The bytes of the datagram. Address and data are cut where they are longer than the format allows: callers check that before.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut of = |kind: u8, nonce: &Nonce| {
            bytes.push(kind);
            bytes.extend(nonce);
        };
        match self {
            Self::Request(ConnectRequest { nonce, party, attribute, uri, data }) => {
                of(REQUEST, nonce);
                bytes.extend(party_bytes(*party));
                bytes.push(*attribute as u8);
                let data = &data[..data.len().min(MAX_DATA)];
                bytes.extend((data.len() as u16).to_le_bytes());
                bytes.extend(uri_bytes(uri));
                bytes.extend(data);
            }
            Self::Reply { nonce, party } => {
                of(REPLY, nonce);
                bytes.extend(party_bytes(*party));
            }
            Self::Refusal { nonce } => of(REFUSAL, nonce),
            Self::Ack { nonce } => of(ACK, nonce),
            Self::Gone { nonce } => of(GONE, nonce),
            Self::FileRequest { registration, uri } => {
                bytes.push(FILE_REQUEST);
                bytes.extend(registration_bytes(*registration));
                bytes.extend(uri_bytes(uri));
            }
            Self::File { tag, registration, offset } => {
                bytes.push(FILE);
                bytes.extend(registration_bytes(*registration));
                bytes.extend(tag.to_le_bytes());
                bytes.extend(offset.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// [`DatagramError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DatagramError> {
        let mut reader = Reader { rest: bytes, len: bytes.len() };
        if reader.array()? != MAGIC {
            return Err(DatagramError::Magic);
        }
        let read = match reader.array()? {
            [REQUEST] => {
                let (nonce, party, [attribute]) = (reader.array()?, reader.party()?, reader.array()?);
                let attribute = Attribute::from_byte(attribute)
                    .ok_or(DatagramError::Field { field: "attribute", value: attribute.into() })?;
                let data = reader.length("length of data", MAX_DATA)?;
                let uri = reader.length("length of an address", MAX_URI)?;
                let (uri, data) = (reader.text(uri)?, reader.take(data)?.to_vec());
                Self::Request(ConnectRequest { nonce, party, attribute, uri, data })
            }
            [REPLY] => Self::Reply { nonce: reader.array()?, party: reader.party()? },
            [REFUSAL] => Self::Refusal { nonce: reader.array()? },
            [ACK] => Self::Ack { nonce: reader.array()? },
            [GONE] => Self::Gone { nonce: reader.array()? },
            [FILE_REQUEST] => {
                let (registration, len) =
                    (reader.registration()?, reader.length("length of an address", MAX_URI)?);
                Self::FileRequest { registration, uri: reader.text(len)? }
            }
            [FILE] => {
                let registration = reader.registration()?;
                Self::File { tag: reader.u32()?, registration, offset: reader.u64()? }
            }
            [kind] => return Err(DatagramError::Field { field: "kind", value: kind.into() }),
        };
        if reader.rest.is_empty() { Ok(read) } else { Err(DatagramError::Length { len: bytes.len() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn party()(index: u16, generation: u8, by_fifo: bool, max_send: u32, tag: u32, mark: u64, marked: Nonce) -> Party {
            Party { connection: ConnectionId { index, generation }, by_fifo, max_send, tag, mark, marked }
        }
    }

    prop_compose! {
        fn registration()(index: u32, generation: u32) -> RegistrationId {
            RegistrationId { index, generation }
        }
    }

    fn datagram() -> impl Strategy<Value = Datagram> {
        let attribute = prop::sample::select(vec![
            Attribute::ReliableOrdered,
            Attribute::ReliableUnordered,
            Attribute::Unreliable,
        ]);
        let (uri, data) = ("[a-z/:]{0,80}", prop::collection::vec(any::<u8>(), 0..=MAX_DATA));
        let request = (any::<Nonce>(), party(), attribute, uri, data).prop_map(
            |(nonce, party, attribute, uri, data)| {
                Datagram::Request(ConnectRequest { nonce, party, attribute, uri, data })
            },
        );
        prop_oneof![
            request,
            (any::<Nonce>(), party()).prop_map(|(nonce, party)| Datagram::Reply { nonce, party }),
            any::<Nonce>().prop_map(|nonce| Datagram::Refusal { nonce }),
            any::<Nonce>().prop_map(|nonce| Datagram::Ack { nonce }),
            any::<Nonce>().prop_map(|nonce| Datagram::Gone { nonce }),
            (registration(), uri).prop_map(|(registration, uri)| Datagram::FileRequest { registration, uri }),
            (any::<u32>(), registration(), any::<u64>())
                .prop_map(|(tag, registration, offset)| Datagram::File { tag, registration, offset }),
        ]
    }

    proptest! {
        #[test]
        fn a_datagram_survives_the_way(datagram in datagram()) {
            let bytes = datagram.encode();
            prop_assert!(bytes.len() <= MAX_LEN);
            prop_assert_eq!(Datagram::decode(&bytes), Ok(datagram));
            for cut in 0..bytes.len() {
                prop_assert!(Datagram::decode(&bytes[..cut]).is_err(), "cut at {}", cut);
            }
            prop_assert!(Datagram::decode(&[&bytes[..], &[0]].concat()).is_err());
        }

        #[test]
        fn any_bytes_are_one_datagram_or_an_error(start: bool, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = if start { [&MAGIC[..], &bytes].concat() } else { bytes };
            if let Ok(datagram) = Datagram::decode(&bytes) {
                prop_assert_eq!(datagram.encode(), bytes);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let connection = ConnectionId { index: 1, generation: 2 };
        let party = Party { connection, by_fifo: false, max_send: 3, tag: 4, mark: 5, marked: [6; 16] };
        let reply = Datagram::Reply { nonce: [7; 16], party }.encode();
        let said = |bytes: &[u8]| Datagram::decode(bytes).map_err(|error| error.to_string());
        assert_eq!(said(b"something"), Err("a datagram that is none of this version's".into()));
        let with = |at: usize, byte: u8| {
            let mut bytes = reply.clone();
            bytes[at] = byte;
            bytes
        };
        assert_eq!(said(&with(8, 9)), Err("a datagram with 9 as its kind".into()));
        assert_eq!(said(&with(28, 7)), Err("a datagram with 7 as its backend".into()));
        assert!(said(&with(8, ACK)).is_err_and(|said| said.contains("another length")));
    }
}
