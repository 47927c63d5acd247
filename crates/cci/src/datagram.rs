//! Datagrams of the handshake: what two endpoints send each other over their sockets.
//!
//! A datagram is a fixed part and, behind it, the client's address and data (of a request). Memory is passed beside it, as file descriptors. All numbers are
//! little-endian.

use crate::header::ConnectionId;
use thiserror::Error;

/// The first bytes of every datagram: a name and the version of the format.
const MAGIC: [u8; 8] = *b"gw-cci\0\x01";
/// The most bytes of data that a request carries: CCI's limit.
pub const MAX_DATA: usize = 1024;
/// The longest address of a client.
pub const MAX_URI: usize = 256;
/// Bytes of a request without address and data.
const REQUEST_LEN: usize = 8 + 1 + 16 + 3 + 1 + 4 + 2 + 2;
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

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// By which the server knows a doubled one.
    pub nonce: Nonce,
    /// The id by which the server is to name the connection in what it sends.
    pub connection: ConnectionId,
    /// How messages are to be delivered.
    pub attribute: Attribute,
    /// The most bytes of a message that the client's memory has room for.
    pub max_send: u32,
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
        /// The id by which the client is to name the connection in what it sends.
        connection: ConnectionId,
        /// The most bytes of a message that the server's memory has room for.
        max_send: u32,
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

    fn connection(&mut self) -> Result<ConnectionId, DatagramError> {
        let [low, high, generation] = self.array()?;
        Ok(ConnectionId { index: u16::from_le_bytes([low, high]), generation })
    }

    fn length(&mut self, field: &'static str, most: usize) -> Result<usize, DatagramError> {
        let len = u16::from_le_bytes(self.array()?);
        match usize::from(len) <= most {
            true => Ok(len.into()),
            false => Err(DatagramError::Field { field, value: len.into() }),
        }
    }
}

fn connection(ConnectionId { index, generation }: ConnectionId) -> [u8; 3] {
    let [low, high] = index.to_le_bytes();
    [low, high, generation]
}

impl Datagram {
    /// The bytes of the datagram. Address and data of a request are cut where they are longer than the format allows: callers check that before.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        match self {
            Self::Request(request) => {
                let uri = &request.uri.as_bytes()[..request.uri.len().min(MAX_URI)];
                let data = &request.data[..request.data.len().min(MAX_DATA)];
                bytes.push(REQUEST);
                bytes.extend(request.nonce);
                bytes.extend(connection(request.connection));
                bytes.push(request.attribute as u8);
                bytes.extend(request.max_send.to_le_bytes());
                bytes.extend((uri.len() as u16).to_le_bytes());
                bytes.extend((data.len() as u16).to_le_bytes());
                bytes.extend(uri);
                bytes.extend(data);
            }
            Self::Reply { nonce, connection: id, max_send } => {
                bytes.push(REPLY);
                bytes.extend(nonce);
                bytes.extend(connection(*id));
                bytes.extend(max_send.to_le_bytes());
            }
            Self::Refusal { nonce } => {
                bytes.push(REFUSAL);
                bytes.extend(nonce);
            }
            Self::Ack { nonce } => {
                bytes.push(ACK);
                bytes.extend(nonce);
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
        let [kind] = reader.array()?;
        let nonce = reader.array()?;
        let read = match kind {
            REQUEST => {
                let connection = reader.connection()?;
                let [attribute] = reader.array()?;
                let attribute = Attribute::from_byte(attribute)
                    .ok_or(DatagramError::Field { field: "attribute", value: attribute.into() })?;
                let max_send = u32::from_le_bytes(reader.array()?);
                let uri = reader.length("length of an address", MAX_URI)?;
                let data = reader.length("length of data", MAX_DATA)?;
                let uri = std::str::from_utf8(reader.take(uri)?).map_err(|_| DatagramError::Field {
                    field: "address, which is no UTF-8, in bytes",
                    value: uri as u32,
                })?;
                let (uri, data) = (uri.to_owned(), reader.take(data)?.to_vec());
                Self::Request(ConnectRequest { nonce, connection, attribute, max_send, uri, data })
            }
            REPLY => Self::Reply {
                nonce,
                connection: reader.connection()?,
                max_send: u32::from_le_bytes(reader.array()?),
            },
            REFUSAL => Self::Refusal { nonce },
            ACK => Self::Ack { nonce },
            kind => return Err(DatagramError::Field { field: "kind", value: kind.into() }),
        };
        if reader.rest.is_empty() { Ok(read) } else { Err(DatagramError::Length { len: bytes.len() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> impl Strategy<Value = ConnectionId> {
        any::<(u16, u8)>().prop_map(|(index, generation)| ConnectionId { index, generation })
    }

    fn datagram() -> impl Strategy<Value = Datagram> {
        let attribute = prop::sample::select(vec![
            Attribute::ReliableOrdered,
            Attribute::ReliableUnordered,
            Attribute::Unreliable,
        ]);
        let data = prop::collection::vec(any::<u8>(), 0..=MAX_DATA);
        let request = (any::<Nonce>(), id(), attribute, any::<u32>(), "[a-z/:]{0,80}", data).prop_map(
            |(nonce, connection, attribute, max_send, uri, data)| {
                Datagram::Request(ConnectRequest { nonce, connection, attribute, max_send, uri, data })
            },
        );
        prop_oneof![
            request,
            (any::<Nonce>(), id(), any::<u32>()).prop_map(|(nonce, connection, max_send)| Datagram::Reply {
                nonce,
                connection,
                max_send
            }),
            any::<Nonce>().prop_map(|nonce| Datagram::Refusal { nonce }),
            any::<Nonce>().prop_map(|nonce| Datagram::Ack { nonce }),
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
        let nonce = [7; 16];
        let reply =
            Datagram::Reply { nonce, connection: ConnectionId { index: 1, generation: 2 }, max_send: 3 }
                .encode();
        let said = |bytes: &[u8]| Datagram::decode(bytes).map_err(|error| error.to_string());
        assert_eq!(said(b"something"), Err("a datagram that is none of this version's".into()));
        let with = |at: usize, byte: u8| {
            let mut bytes = reply.clone();
            bytes[at] = byte;
            bytes
        };
        assert_eq!(said(&with(8, 9)), Err("a datagram with 9 as its kind".into()));
        assert!(said(&with(8, ACK)).is_err_and(|said| said.contains("another length")));
    }
}
